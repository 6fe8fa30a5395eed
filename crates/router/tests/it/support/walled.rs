//! Packet builders, and a router with a firewall.

use super::{FAR, NEAR, SENDER, config, hop, with};
use fwdlab_packet::checksum;
use fwdlab_router::fib::{Auto, Fib, Prefix, V4, V6};
use fwdlab_router::firewall::{Filter, SharedFirewall, StateConfig, text};
use fwdlab_router::path::{Class, Config, Counters, ForwardingPath, Frame, Router};
use std::net::IpAddr;
use std::sync::Arc;

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
pub const SECOND: u64 = 1_000_000_000;

/// A packet by its parts.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The router's port where it comes in.
    pub port: u8,
    pub ends: [IpAddr; 2],
    pub protocol: u8,
    /// Bytes from the transport header on.
    pub payload: Vec<u8>,
    /// Offset in units of 8 bytes, and true if more fragments follow.
    pub fragment: Option<(u16, bool)>,
}

/// A packet from `source` to `destination`, each as `address port`; it comes in at the near port if
/// its source is there.
pub fn spec(protocol: u8, source: (&str, u16), destination: (&str, u16), rest: &[u8]) -> Spec {
    let mut payload = source.1.to_be_bytes().to_vec();
    payload.extend(destination.1.to_be_bytes());
    payload.extend(rest);
    let near = source.0.starts_with("198.18.") || source.0 == "2001:2::5";
    let ends = [source.0.parse().expect("one"), destination.0.parse().expect("one")];
    Spec { port: u8::from(!near), ends, protocol, payload, fragment: None }
}

pub fn tcp(source: (&str, u16), destination: (&str, u16), flags: u8) -> Spec {
    let rest = [0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0];
    spec(TCP, source, destination, &rest)
}

/// A segment with its sequence number, its acknowledgement unless that is 0, and its payload; its
/// window is 256.
pub fn segment(
    source: (&str, u16),
    destination: (&str, u16),
    flags: u8,
    [sequence, acknowledges]: [u32; 2],
    payload: &[u8],
) -> Spec {
    let mut rest = sequence.to_be_bytes().to_vec();
    rest.extend(acknowledges.to_be_bytes());
    rest.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    rest.extend(payload);
    spec(TCP, source, destination, &rest)
}

pub fn datagram(source: (&str, u16), destination: (&str, u16)) -> Spec {
    spec(UDP, source, destination, &[0, 8, 0, 0])
}

/// ICMP or ICMPv6 with an identifier.
pub fn icmp(source: &str, destination: &str, kind: u8, identifier: u16) -> Spec {
    let protocol = if source.contains(':') { 58 } else { 1 };
    let mut packet = spec(protocol, (source, 0), (destination, 0), &[]);
    packet.payload = vec![kind, 0, 0, 0];
    packet.payload.extend(identifier.to_be_bytes());
    packet.payload.extend([0, 1]);
    packet
}

/// An ICMP or ICMPv6 error that quotes these bytes.
pub fn error(source: &str, destination: &str, kind: u8, quote: &[u8]) -> Spec {
    let mut packet = icmp(source, destination, kind, 0);
    packet.payload[4..].fill(0);
    packet.payload.extend(quote);
    packet
}

impl Spec {
    /// Destination unreachable.
    pub fn is_error(&self) -> bool {
        matches!((self.protocol, self.payload[0]), (1, 3) | (58, 1))
    }

    /// The bytes that errors quote, complete.
    pub fn quote(&self) -> Vec<u8> {
        self.bytes()[14..].to_vec()
    }

    /// Writes the checksum of TCP or ICMP, after IPv6 options, if the packet is whole.
    fn summed_up(&self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        let (mut protocol, mut at) = (self.protocol, 0);
        while matches!(protocol, 0 | 60) && payload.len() > at + 8 {
            protocol = payload[at];
            at += 8 + 8 * usize::from(payload[at + 1]);
        }
        let place = at + if protocol == TCP { 16 } else { 2 };
        let summed = matches!(protocol, 1 | TCP | 58) && self.fragment.is_none();
        if !summed || payload.len() < place + 2 {
            return payload;
        }
        payload[place..place + 2].fill(0);
        let mut sum = checksum::add(0, &payload[at..]);
        if protocol != 1 {
            for end in self.ends {
                sum = match end {
                    IpAddr::V4(end) => checksum::add(sum, &end.octets()),
                    IpAddr::V6(end) => checksum::add(sum, &end.octets()),
                };
            }
            let length = (payload.len() - at) as u32;
            sum = checksum::add(checksum::add(sum, &length.to_be_bytes()), &[0, protocol]);
        }
        payload[place..place + 2].copy_from_slice(&checksum::finish(sum));
        payload
    }

    /// The Ethernet frame, to the router's port.
    pub fn bytes(&self) -> Vec<u8> {
        let payload = self.summed_up();
        let mut frame = if self.port == 0 { NEAR.to_vec() } else { FAR.to_vec() };
        frame.extend(SENDER);
        match self.ends {
            [IpAddr::V4(source), IpAddr::V4(destination)] => {
                let total = 20 + self.payload.len() as u16;
                let (offset, more) = self.fragment.unwrap_or_default();
                frame.extend([8, 0, 0x45, 0]);
                frame.extend(total.to_be_bytes());
                frame.extend([0, 1]);
                frame.extend((offset | u16::from(more) << 13).to_be_bytes());
                frame.extend([64, self.protocol, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
                frame.extend(&payload);
                with(frame, &[])
            }
            [IpAddr::V6(source), IpAddr::V6(destination)] => {
                let extension = if self.fragment.is_some() { 8 } else { 0 };
                let next = if self.fragment.is_some() { 44 } else { self.protocol };
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((extension + self.payload.len() as u16).to_be_bytes());
                frame.extend([next, 64]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
                if let Some((offset, more)) = self.fragment {
                    frame.extend([self.protocol, 0]);
                    frame.extend((offset << 3 | u16::from(more)).to_be_bytes());
                    frame.extend([0, 0, 0, 7]);
                }
                frame.extend(&payload);
                frame
            }
            _ => panic!("two families"),
        }
    }

    pub fn frame(&self) -> Frame {
        Frame::of(self.port, &self.bytes()).expect("it fits")
    }
}

/// A firewall with these rules.
pub fn wall(rules: &str, config: &StateConfig) -> Arc<SharedFirewall> {
    let ruleset = text::read(rules).unwrap_or_else(|error| panic!("{error}"));
    SharedFirewall::new(&ruleset, config).expect("sound rules")
}

/// The support's router with a firewall.
pub struct Walled {
    pub router: Router<Filter>,
    pub counters: Arc<Counters>,
    pub wall: Arc<SharedFirewall>,
}

/// A router with the support's routes behind a firewall.
fn router_of(
    config: &Config,
    counters: &Arc<Counters>,
    wall: &Arc<SharedFirewall>,
) -> Router<Filter> {
    let (mut inet, mut inet6) = (Auto::<V4>::new(), Auto::<V6>::new());
    for (prefix, number) in [("198.19.0.0/16", 0), ("198.18.0.0/16", 1)] {
        inet.insert(prefix.parse::<Prefix<V4>>().expect("a prefix"), hop(number));
    }
    for (prefix, number) in [("2001:2:0:8000::/49", 0), ("2001:2::/49", 1)] {
        inet6.insert(prefix.parse::<Prefix<V6>>().expect("a prefix"), hop(number));
    }
    let tally = counters.tally(0).expect("a worker");
    let router = Router::new(config, Arc::new(inet), Arc::new(inet6), wall.filter(), tally);
    router.expect("a sound set-up")
}

impl Walled {
    pub fn new(rules: &str, states: &StateConfig) -> Walled {
        Walled::along(ForwardingPath::Fast, rules, states)
    }

    /// A router whose packets take this path.
    pub fn along(path: ForwardingPath, rules: &str, states: &StateConfig) -> Walled {
        Walled::of(&Config { path, ..config() }, rules, states)
    }

    /// A router with this configuration.
    pub fn of(config: &Config, rules: &str, states: &StateConfig) -> Walled {
        let counters = Counters::new(1);
        let wall = wall(rules, states);
        let router = router_of(config, &counters, &wall);
        Walled { router, counters, wall }
    }

    /// Continues with other rules.
    pub fn reload(&mut self, config: &Config, rules: &str, states: &StateConfig) {
        let ruleset = text::read(rules).unwrap_or_else(|error| panic!("{error}"));
        self.wall = self.wall.with_other_rules(&ruleset, states).expect("sound rules");
        let mut next = router_of(config, &self.counters, &self.wall);
        next.take_over(self.router.hand_over(), 0);
        self.router = next;
    }

    /// Outcome of a packet.
    pub fn send(&mut self, spec: &Spec, now_ns: u64) -> &'static str {
        self.send_all(std::slice::from_ref(spec), now_ns)[0]
    }

    /// Outcomes of packets in one batch: `forwarded`, or the reason if all dropped packets have the
    /// same one.
    pub fn send_all(&mut self, specs: &[Spec], now_ns: u64) -> Vec<&'static str> {
        let before = self.counters.read();
        let mut batch: Vec<Frame> = specs.iter().map(Spec::frame).collect();
        self.router.process(&mut batch, now_ns);
        self.router.flush();
        let after = self.counters.read();
        assert_eq!(after.received(), before.received() + specs.len() as u64);
        let sum = [Class::Forwarded, Class::Dropped, Class::Slow].map(|class| after.total(class));
        assert_eq!(sum.iter().sum::<u64>(), after.received());
        let new = after.iter().filter(|&(reason, n)| n > before.get(reason));
        let reason = new.map(|(reason, _)| reason.name()).find(|&name| name != "forwarded");
        let of = |frame: &Frame| match frame.egress() {
            Some(_) => "forwarded",
            None => reason.expect("a reason"),
        };
        batch.iter().map(of).collect()
    }
}
