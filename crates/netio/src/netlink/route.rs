//! Routes in messages.
//!
//! Cached routes are skipped. Parts of a route that a router cannot follow are named
//! ([`Unsupported`]), so that it does not follow a different route instead.

use super::message::{
    Malformed, Message, NLM_F_APPEND, NLM_F_REPLACE, RTM_DELROUTE, attributes, half, word,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Attributes of routes (linux/rtnetlink.h).
pub(super) const RTA_DST: u16 = 1;
pub(super) const RTA_SRC: u16 = 2;
pub(super) const RTA_OIF: u16 = 4;
pub(super) const RTA_GATEWAY: u16 = 5;
pub(super) const RTA_PRIORITY: u16 = 6;
pub(super) const RTA_METRICS: u16 = 8;
pub(super) const RTA_MULTIPATH: u16 = 9;
pub(super) const RTA_TABLE: u16 = 15;
pub(super) const RTA_VIA: u16 = 18;
pub(super) const RTA_ENCAP_TYPE: u16 = 21;
pub(super) const RTA_ENCAP: u16 = 22;
pub(super) const RTA_NH_ID: u16 = 30;
/// Attributes within `RTA_METRICS`.
pub(super) const RTAX_LOCK: u16 = 1;
pub(super) const RTAX_MTU: u16 = 2;
/// Bytes before the attributes: `struct rtmsg`, `struct rtnexthop`.
pub(super) const ROUTE: usize = 12;
const NEXT_HOP: usize = 8;
/// A cached route that is in no table.
const RTM_F_CLONED: u32 = 0x200;
/// The next hop's link has no carrier.
const RTNH_LINKDOWN: u8 = 1 << 4;
const RTNH_F_DEAD: u32 = 1;
/// An unusable next hop: its link is gone or has no carrier.
pub(super) const RTNH_DEAD: u8 = 1 | RTNH_LINKDOWN;

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
    /// Source prefix to which the route is limited; `None` for packets from anywhere.
    pub source: Option<(IpAddr, u8)>,
    /// Of several with the same prefix, the lowest applies.
    pub metric: u32,
    /// Treatment of packets.
    pub kind: RouteKind,
    /// Next hops; empty unless `kind` is a way, and if only `object` names them.
    pub hops: Vec<Hop>,
    /// Number of the next hop object that the route uses.
    pub object: Option<u32>,
    /// Largest packet in bytes, if the route limits it.
    pub mtu: Option<RouteMtu>,
    /// A part that cannot be followed.
    pub unsupported: Option<Unsupported>,
}

impl RouteEvent {
    /// A new route to all addresses of this one's family, in table 0, without next hops.
    pub fn new(address: IpAddr, kind: RouteKind) -> RouteEvent {
        RouteEvent {
            is_gone: false,
            replaces: false,
            appends: false,
            table: 0,
            address,
            length: 0,
            source: None,
            metric: 0,
            kind,
            hops: Vec::new(),
            object: None,
            mtu: None,
            unsupported: None,
        }
    }
}

/// Limit of a route for the size of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteMtu {
    /// Largest packet in bytes.
    pub bytes: u32,
    /// True if path MTU discovery does not change it: the kernel applies other limits to IPv6
    /// packets that it sends itself only.
    pub is_locked: bool,
}

/// A part of a route that cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unsupported {
    /// Packets are encapsulated at a next hop.
    Encapsulation,
    /// The route applies to one type of service only.
    TypeOfService(u8),
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
    /// Looked up in the table of the next rule, in no case in this one.
    Throw,
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

pub(super) fn route(message: &Message<'_>) -> Result<Option<RouteEvent>, Malformed> {
    let bytes = message.payload;
    let &[family, length, source_length, tos, table, _, _, kind, flags @ ..] =
        bytes.first_chunk::<ROUTE>().ok_or(Malformed { at: 0 })?;
    let Some(unspecified) = any(family) else { return Ok(None) };
    let kind = match kind {
        1 => RouteKind::Way,
        2 => RouteKind::Local,
        6 => RouteKind::Blackhole,
        7 => RouteKind::Unreachable,
        8 => RouteKind::Prohibit,
        9 => RouteKind::Throw,
        _ => return Ok(None),
    };
    let flags = u32::from_ne_bytes(flags);
    if flags & RTM_F_CLONED != 0 {
        return Ok(None);
    }
    let mut event = RouteEvent {
        is_gone: message.kind == RTM_DELROUTE,
        replaces: message.flags & NLM_F_REPLACE != 0,
        appends: message.flags & NLM_F_APPEND != 0,
        table: table.into(),
        length,
        source: (source_length > 0).then_some((unspecified, source_length)),
        unsupported: (tos != 0).then_some(Unsupported::TypeOfService(tos)),
        ..RouteEvent::new(unspecified, kind)
    };
    let mut single = Hop { gateway: None, interface: 0, weight: 1 };
    for attribute in attributes(&bytes[ROUTE..]) {
        let (kind, value) = attribute?;
        match kind {
            RTA_DST => event.address = address(family, value).ok_or(Malformed { at: 0 })?,
            RTA_SRC if source_length > 0 => {
                let source = address(family, value).ok_or(Malformed { at: 0 })?;
                event.source = Some((source, source_length));
            }
            RTA_PRIORITY => event.metric = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_TABLE => event.table = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_OIF => single.interface = word(value, 0).ok_or(Malformed { at: 0 })?,
            RTA_GATEWAY => single.gateway = address(family, value),
            RTA_VIA => single.gateway = via(value),
            RTA_ENCAP | RTA_ENCAP_TYPE => event.unsupported = Some(Unsupported::Encapsulation),
            RTA_NH_ID => event.object = word(value, 0),
            RTA_METRICS => event.mtu = mtu(value)?,
            RTA_MULTIPATH => {
                let (hops, is_encapsulated) = hops(family, value)?;
                event.hops = hops;
                if is_encapsulated {
                    event.unsupported = Some(Unsupported::Encapsulation);
                }
            }
            _ => {}
        }
    }
    let bits = if event.address.is_ipv4() { 32 } else { 128 };
    if length > bits || source_length > bits {
        return Err(Malformed { at: 1 });
    }
    match event.kind {
        // The flags of a single next hop are in the route's flags (rtnetlink(7)).
        RouteKind::Way if single.interface != 0 && flags & RTNH_F_DEAD == 0 => {
            if event.hops.is_empty() {
                event.hops.push(single);
            }
        }
        RouteKind::Way => {}
        _ => event.hops.clear(),
    }
    Ok(Some(event))
}

/// Returns the next hops of a multipath route, without unusable ones, and true if packets are
/// encapsulated at one of them. Links without carrier are used if there are no others, as the kernel
/// does unless `ignore_routes_with_linkdown` is set: then it marks them as dead.
fn hops(family: u8, mut bytes: &[u8]) -> Result<(Vec<Hop>, bool), Malformed> {
    let (mut all, mut down, mut is_encapsulated) = (Vec::new(), Vec::new(), false);
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
                (RTA_ENCAP | RTA_ENCAP_TYPE, _) => is_encapsulated = true,
                _ => {}
            }
        }
        match whole[2] & RTNH_DEAD {
            0 => all.push(hop),
            RTNH_LINKDOWN => down.push(hop),
            _ => {}
        }
        bytes = bytes.get(length.div_ceil(4) * 4..).unwrap_or_default();
    }
    if all.is_empty() {
        all = down;
    }
    Ok((all, is_encapsulated))
}

/// Returns the MTU among a route's metrics.
fn mtu(metrics: &[u8]) -> Result<Option<RouteMtu>, Malformed> {
    let (mut bytes, mut locks) = (0, 0);
    for attribute in attributes(metrics) {
        match attribute? {
            (RTAX_MTU, value) => bytes = word(value, 0).ok_or(Malformed { at: 0 })?,
            (RTAX_LOCK, value) => locks = word(value, 0).ok_or(Malformed { at: 0 })?,
            _ => {}
        }
    }
    let is_locked = locks >> RTAX_MTU & 1 != 0;
    Ok((bytes > 0).then_some(RouteMtu { bytes, is_locked }))
}

/// Returns the unspecified address.
fn any(family: u8) -> Option<IpAddr> {
    match i32::from(family) {
        libc::AF_INET => Some(Ipv4Addr::UNSPECIFIED.into()),
        libc::AF_INET6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

pub(super) fn address(family: u8, value: &[u8]) -> Option<IpAddr> {
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
