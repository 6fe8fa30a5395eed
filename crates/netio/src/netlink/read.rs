//! Interprets routing messages.
//!
//! Not supported: cached routes, routes by type of service, and encapsulations, whose next hops are
//! useless to a router without them. Next hop objects are also included in the routes
//! (`net.ipv4.nexthop_compat_mode`, on by default).

use super::message::{Malformed, Message, attributes, half, word};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From linux/rtnetlink.h and linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_APPEND: u16 = 0x800;
/// Attributes of routes.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP: u16 = 22;
/// Bytes before the attributes: `struct rtmsg`, `struct rtnexthop`, `struct ifinfomsg`.
const ROUTE: usize = 12;
const NEXT_HOP: usize = 8;
const LINK: usize = 16;
/// A cached route that is in no table.
const RTM_F_CLONED: u32 = 0x200;
/// An unusable next hop: its link is gone or has no carrier.
const RTNH_DEAD: u8 = 1 | 1 << 4;
const IFLA_IFNAME: u16 = 3;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A route was added or removed.
    Route(RouteEvent),
    /// Current state of an interface.
    Link(LinkState),
    /// An interface is gone.
    LinkGone(u32),
    /// An address is gone or a next hop has changed; the kernel removes or changes the affected
    /// IPv4 routes without notification.
    Silent(Topic),
    /// End of a dump: 0, or the negative number of an error that ended it.
    Done(i32),
    /// Answer to a request: 0, or the negative number of an error.
    Answer(i32),
}

/// An object whose change may have changed routes silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// An address.
    Address,
    /// A next hop object.
    NextHop,
}

/// A route in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEvent {
    /// True if the route is removed.
    pub is_gone: bool,
    /// True if it replaces another of the same prefix and metric.
    pub replaces: bool,
    /// True if it comes after others of the same prefix and metric.
    pub appends: bool,
    /// Number of the kernel's table: 254 is `main`, 255 `local`.
    pub table: u32,
    /// Destination address.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub length: u8,
    /// Of several with the same prefix, the lowest applies.
    pub metric: u32,
    /// Treatment of packets.
    pub kind: RouteKind,
    /// Next hops; empty unless `kind` is a way.
    pub hops: Vec<Hop>,
}

/// Treatment of the packets of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Forwarded.
    Way,
    /// Delivered to this machine.
    Local,
    /// Dropped silently.
    Blackhole,
    /// Dropped; the sender is notified that the destination is unreachable.
    Unreachable,
    /// Dropped; the sender is notified that communication is prohibited.
    Prohibit,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Address; `None` if destinations are on the link itself.
    pub gateway: Option<IpAddr>,
    /// Index of the interface; 0 if unspecified.
    pub interface: u32,
    /// Share of flows, from 1 to 256.
    pub weight: u16,
}

/// An interface in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Index of the interface.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
    /// True if the interface is up.
    pub is_up: bool,
    /// True if it has a carrier.
    pub has_carrier: bool,
    /// Number of times that it has lost its carrier, also between two messages; 0 if unknown.
    pub carrier_losses: u32,
}

/// Reads a message; `None` if it is about anything else.
///
/// # Errors
/// If the message ends too early.
pub fn read(message: &Message<'_>) -> Result<Option<Event>, Malformed> {
    let payload = message.payload;
    Ok(match message.kind {
        // Old kernels send no code.
        NLMSG_DONE => Some(Event::Done(word(payload, 0).unwrap_or(0) as i32)),
        NLMSG_ERROR => {
            let code = word(payload, 0).ok_or(Malformed { at: 0 })?;
            Some(Event::Answer(code as i32))
        }
        RTM_NEWROUTE | RTM_DELROUTE => route(message)?.map(Event::Route),
        RTM_NEWLINK => Some(Event::Link(link(payload)?)),
        RTM_DELLINK => Some(Event::LinkGone(word(payload, 4).ok_or(Malformed { at: 0 })?)),
        RTM_DELADDR => Some(Event::Silent(Topic::Address)),
        RTM_DELNEXTHOP => Some(Event::Silent(Topic::NextHop)),
        RTM_NEWNEXTHOP if message.flags & NLM_F_REPLACE != 0 => Some(Event::Silent(Topic::NextHop)),
        RTM_NEWADDR => None,
        _ => None,
    })
}

fn route(message: &Message<'_>) -> Result<Option<RouteEvent>, Malformed> {
    let bytes = message.payload;
    let &[family, length, _, tos, table, _, _, kind, flags @ ..] =
        bytes.first_chunk::<ROUTE>().ok_or(Malformed { at: 0 })?;
    let Some(unspecified) = any(family) else { return Ok(None) };
    let kind = match kind {
        1 => RouteKind::Way,
        2 => RouteKind::Local,
        6 => RouteKind::Blackhole,
        7 => RouteKind::Unreachable,
        8 => RouteKind::Prohibit,
        _ => return Ok(None),
    };
    if u32::from_ne_bytes(flags) & RTM_F_CLONED != 0 || tos != 0 {
        return Ok(None);
    }
    let mut event = RouteEvent {
        is_gone: message.kind == RTM_DELROUTE,
        replaces: message.flags & NLM_F_REPLACE != 0,
        appends: message.flags & NLM_F_APPEND != 0,
        table: table.into(),
        address: unspecified,
        length,
        metric: 0,
        kind,
        hops: Vec::new(),
    };
    let mut single = Hop { gateway: None, interface: 0, weight: 1 };
    for attribute in attributes(&bytes[ROUTE..]) {
        let (kind, value) = attribute?;
        match kind {
            RTA_DST => event.address = address(family, value).ok_or(Malformed { at: 0 })?,
            RTA_PRIORITY => event.metric = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_TABLE => event.table = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_OIF => single.interface = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_GATEWAY => single.gateway = address(family, value),
            RTA_VIA => single.gateway = via(value),
            RTA_ENCAP => return Ok(None),
            RTA_MULTIPATH => event.hops = hops(family, value)?,
            _ => {}
        }
    }
    let bits = if event.address.is_ipv4() { 32 } else { 128 };
    if length > bits {
        return Err(Malformed { at: 1 });
    }
    match event.kind {
        RouteKind::Way if event.hops.is_empty() && single.interface != 0 => event.hops.push(single),
        RouteKind::Way => {}
        _ => event.hops.clear(),
    }
    Ok(Some(event))
}

/// Returns the next hops of a multipath route, without unusable ones.
fn hops(family: u8, mut bytes: &[u8]) -> Result<Vec<Hop>, Malformed> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = half(bytes, 0).map_or(0, usize::from);
        let (true, Some(whole)) = (length >= NEXT_HOP, bytes.get(..length)) else {
            return Err(Malformed { at: 0 });
        };
        let interface = word(whole, 4).ok_or(Malformed { at: 0 })?;
        let mut hop = Hop { gateway: None, interface, weight: u16::from(whole[3]) + 1 };
        for attribute in attributes(&whole[NEXT_HOP..]) {
            match attribute? {
                (RTA_GATEWAY, value) => hop.gateway = address(family, value),
                (RTA_VIA, value) => hop.gateway = via(value),
                _ => {}
            }
        }
        if whole[2] & RTNH_DEAD == 0 {
            all.push(hop);
        }
        bytes = bytes.get(length.div_ceil(4) * 4..).unwrap_or_default();
    }
    Ok(all)
}

fn link(bytes: &[u8]) -> Result<LinkState, Malformed> {
    let (Some(index), Some(flags)) = (word(bytes, 4), word(bytes, 8)) else {
        return Err(Malformed { at: 0 });
    };
    let (mut name, mut carrier_losses) = (String::new(), 0);
    for attribute in attributes(bytes.get(LINK..).ok_or(Malformed { at: 0 })?) {
        match attribute? {
            (IFLA_IFNAME, value) => {
                let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                name = String::from_utf8_lossy(&value[..end]).into_owned();
            }
            (IFLA_CARRIER_DOWN_COUNT, value) => carrier_losses = word(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    let (is_up, has_carrier) = (flags & IFF_UP != 0, flags & IFF_LOWER_UP != 0);
    Ok(LinkState { index, name, is_up, has_carrier, carrier_losses })
}

/// Returns the unspecified address.
fn any(family: u8) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => Some(Ipv4Addr::UNSPECIFIED.into()),
        libc::AF_INET6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

fn address(family: u8, value: &[u8]) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(value).ok().map(IpAddr::from),
        libc::AF_INET6 => <[u8; 16]>::try_from(value).ok().map(IpAddr::from),
        _ => None,
    }
}

/// Returns a next hop of a family different from the route's (RFC 8950).
fn via(value: &[u8]) -> Option<IpAddr> {
    let family = u8::try_from(half(value, 0)?).ok()?;
    address(family, value.get(2..)?)
}

#[cfg(test)]
mod tests {
    use super::super::message::{Writer, messages};
    use super::*;

    /// Writes a route message with these attributes.
    fn route(kind: u16, flags: u16, head: [u8; ROUTE], rest: &[(u16, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::new(kind, flags, 0);
        writer.put(&head);
        rest.iter().for_each(|(kind, value)| writer.attribute(*kind, value));
        writer.finish()
    }

    fn event(bytes: &[u8]) -> Result<Option<Event>, Malformed> {
        read(&messages(bytes).next().expect("a message").expect("whole"))
    }

    /// Returns `struct rtmsg` of a family, length and type, in table `main`.
    fn head(family: i32, length: u8, kind: u8) -> [u8; ROUTE] {
        [family as u8, length, 0, 0, 254, 16, 0, kind, 0, 0, 0, 0]
    }

    const V4: i32 = libc::AF_INET;
    const V6: i32 = libc::AF_INET6;

    #[test]
    fn read_returns_route_with_next_hops() {
        let rest: [(u16, &[u8]); 5] = [
            (RTA_DST, &[10, 1, 0, 0]),
            (RTA_GATEWAY, &[192, 0, 2, 7]),
            (RTA_OIF, &4u32.to_ne_bytes()),
            (RTA_PRIORITY, &20u32.to_ne_bytes()),
            (RTA_TABLE, &1000u32.to_ne_bytes()),
        ];
        let bytes = route(RTM_NEWROUTE, NLM_F_REPLACE, head(V4, 16, 1), &rest);
        let gateway = Some("192.0.2.7".parse().expect("one"));
        let expected = RouteEvent {
            is_gone: false,
            replaces: true,
            appends: false,
            table: 1000,
            address: "10.1.0.0".parse().expect("one"),
            length: 16,
            metric: 20,
            kind: RouteKind::Way,
            hops: vec![Hop { gateway, interface: 4, weight: 1 }],
        };
        assert_eq!(event(&bytes), Ok(Some(Event::Route(expected))));
        let via6 = [&(V6 as u16).to_ne_bytes()[..], &[0x20; 16]].concat();
        let rest: [(u16, &[u8]); 2] = [(RTA_VIA, &via6), (RTA_OIF, &4u32.to_ne_bytes())];
        let Ok(Some(Event::Route(found))) = event(&route(RTM_DELROUTE, 0, head(V4, 0, 1), &rest))
        else {
            panic!("a route");
        };
        assert!(found.is_gone && found.hops[0].gateway.is_some_and(|via| via.is_ipv6()));
        for (kind, expected) in
            [(6, RouteKind::Blackhole), (7, RouteKind::Unreachable), (8, RouteKind::Prohibit)]
        {
            let bytes = route(RTM_NEWROUTE, 0, head(V6, 32, kind), &[(RTA_DST, &[0x20; 16])]);
            let Ok(Some(Event::Route(found))) = event(&bytes) else { panic!("a route") };
            assert_eq!((found.kind, found.hops), (expected, Vec::new()));
        }
    }

    fn hop(flags: u8, weight: u8, interface: u32, gateway: [u8; 4]) -> Vec<u8> {
        let [a, b, c, d] = gateway;
        let interface = interface.to_ne_bytes();
        [&[16, 0, flags, weight][..], &interface, &[8, 0, RTA_GATEWAY as u8, 0, a, b, c, d]]
            .concat()
    }

    #[test]
    fn read_skips_dead_next_hops() {
        let hops = [
            hop(0, 0, 3, [192, 0, 2, 1]),
            hop(1, 0, 4, [192, 0, 2, 2]),
            hop(0, 255, 5, [192, 0, 2, 3]),
        ]
        .concat();
        let bytes = route(RTM_NEWROUTE, 0, head(V4, 0, 1), &[(RTA_MULTIPATH, &hops)]);
        let Ok(Some(Event::Route(found))) = event(&bytes) else { panic!("a route") };
        let found: Vec<_> = found.hops.iter().map(|hop| (hop.interface, hop.weight)).collect();
        assert_eq!(found, [(3, 1), (5, 256)]);
        for cut in 1..hops.len() {
            let rest: [(u16, &[u8]); 1] = [(RTA_MULTIPATH, &hops[..cut])];
            let cut_short = event(&route(RTM_NEWROUTE, 0, head(V4, 0, 1), &rest));
            assert_eq!(cut_short.is_err(), cut % 16 != 0, "{cut}");
        }
    }

    #[test]
    fn read_ignores_unsupported_and_rejects_malformed_routes() {
        let cloned = [V6 as u8, 128, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0];
        assert_eq!(event(&route(RTM_NEWROUTE, 0, cloned, &[])), Ok(None));
        assert_eq!(event(&route(RTM_NEWROUTE, 0, head(7, 0, 1), &[])), Ok(None));
        assert_eq!(event(&route(RTM_NEWROUTE, 0, head(V4, 0, 3), &[])), Ok(None));
        assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 33, 1), &[])).is_err());
        assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 8, 1), &[(RTA_DST, &[1; 3])])).is_err());
        assert!(event(&route(RTM_NEWROUTE, 0, head(V4, 8, 1), &[(RTA_OIF, &[1])])).is_err());
        for kind in [NLMSG_ERROR, RTM_NEWROUTE, RTM_NEWLINK, RTM_DELLINK] {
            assert!(event(&Writer::new(kind, 0, 0).finish()).is_err(), "{kind}");
        }
        assert_eq!(event(&Writer::new(99, 0, 0).finish()), Ok(None));
    }

    /// Arbitrary bytes cause no panic, and reading ends.
    #[test]
    fn read_accepts_arbitrary_bytes() {
        let hops = hop(0, 0, 3, [192, 0, 2, 1]);
        let whole = route(RTM_NEWROUTE, 0, head(V4, 0, 1), &[(RTA_MULTIPATH, &hops)]);
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..200_000 {
            let mut bytes = whole.clone();
            for _ in 0..3 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let at = seed as usize % bytes.len();
                bytes[at] = (seed >> 32) as u8;
            }
            bytes.truncate(seed as usize >> 8 & 127);
            let read = messages(&bytes).map(|message| message.and_then(|m| read(&m)));
            assert!(read.count() <= 1 + bytes.len() / 16);
        }
    }

    #[test]
    fn read_returns_link_name_and_carrier() {
        let mut writer = Writer::new(RTM_NEWLINK, 0, 0);
        let [flags, index] = [(IFF_UP | IFF_LOWER_UP).to_ne_bytes(), 9u32.to_ne_bytes()];
        writer.put(&[&[0; 4][..], &index, &flags, &[0; 4]].concat());
        writer.attribute(IFLA_IFNAME, b"eth1\0");
        writer.attribute(IFLA_CARRIER_DOWN_COUNT, &3u32.to_ne_bytes());
        let (name, is_up, has_carrier, carrier_losses) = ("eth1".into(), true, true, 3);
        let state = LinkState { index: 9, name, is_up, has_carrier, carrier_losses };
        assert_eq!(event(&writer.finish()), Ok(Some(Event::Link(state))));
    }
}
