//! Packets from hosts of one side to hosts of the other.

use crate::packets::{at, sound, sound6};
use crate::seen::Side;
use crate::setup::{FAR, NEAR, SENDER};
use fwdlab_packet::{Family, checksum};
use fwdlab_testdata::Random;
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// A protocol without known ports.
pub(crate) const OTHER: u8 = 99;
/// Number of hosts of a set on each side.
pub(crate) const HOSTS: u64 = 3;
/// Ports of servers and of clients.
pub(crate) const SERVERS: [u16; 8] = [22, 53, 80, 443, 5000, 5001, 5002, 5003];
pub(crate) const CLIENTS: [u16; 5] = [53, 1024, 1025, 40_000, 40_001];

/// Flags of TCP (RFC 9293 section 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// A frame received at a side.
pub(crate) struct Packet {
    pub(crate) name: String,
    pub(crate) from: Side,
    pub(crate) frame: Vec<u8>,
}

/// A host's address. Each set has its own networks, so that no state outlives it.
pub(crate) fn address(family: Family, side: Side, set: u8, host: u8) -> Vec<u8> {
    let network = set + 10;
    let far = side == Side::Far;
    match family {
        Family::Inet => vec![198, 18 + u8::from(far), network, host],
        Family::Inet6 => {
            let mut address = vec![0x20, 1, 0, 2, 0, 0, if far { 0x80 } else { 0 }, network];
            address.resize(15, 0);
            address.push(host);
            address
        }
    }
}

/// The prefix of this length that contains an address.
pub(crate) fn prefix(address: &[u8], length: u8) -> String {
    let mut bytes = address.to_vec();
    for (number, byte) in bytes.iter_mut().enumerate() {
        let bits = u32::from(length).saturating_sub(8 * number as u32).min(8);
        *byte &= (0xff00_u16 >> bits) as u8;
    }
    match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => format!("{}/{length}", Ipv4Addr::from(bytes)),
        Err(_) => {
            let bytes = <[u8; 16]>::try_from(bytes).expect("an address of IPv6");
            format!("{}/{length}", Ipv6Addr::from(bytes))
        }
    }
}

/// Two hosts and their ports; `client` is the side that begins.
#[derive(Clone)]
struct Flow {
    family: Family,
    protocol: u8,
    client: Side,
    /// Addresses and ports of client and server.
    ends: [(Vec<u8>, u16); 2],
}

impl Flow {
    fn random(random: &mut Random, set: u8, client: Side) -> Flow {
        let family = [Family::Inet, Family::Inet6][random.below(2) as usize];
        let protocol = [TCP, TCP, UDP, UDP, ICMP, OTHER][random.below(6) as usize];
        let mut end = |side, ports: &[u16]| {
            let host = 1 + random.below(HOSTS) as u8;
            (address(family, side, set, host), ports[random.below(ports.len() as u64) as usize])
        };
        let ends = [end(client, &CLIENTS), end(client.other(), &SERVERS)];
        Flow { family, protocol, client, ends }
    }

    /// A packet with the given IP payload, from the client or the server.
    fn packet(&self, answers: bool, what: &str, payload: &[u8]) -> Packet {
        let from = if answers { self.client.other() } else { self.client };
        let [own, other] = [usize::from(answers), usize::from(!answers)].map(|n| &self.ends[n]);
        let protocol =
            if self.protocol == ICMP { "icmp".into() } else { self.protocol.to_string() };
        let text = |address: &[u8]| match <[u8; 4]>::try_from(address) {
            Ok(bytes) => Ipv4Addr::from(bytes).to_string(),
            Err(_) => {
                Ipv6Addr::from(<[u8; 16]>::try_from(address).expect("an address")).to_string()
            }
        };
        let ends = format!("{} {} > {} {}", text(&own.0), own.1, text(&other.0), other.1);
        let name = format!("{what} of protocol {protocol}, {ends}, from the {from} side");
        Packet { name, from, frame: frame(from, self.protocol, &own.0, &other.0, payload) }
    }

    fn ports(&self, answers: bool) -> [u8; 4] {
        let [own, other] = [usize::from(answers), usize::from(!answers)].map(|n| self.ends[n].1);
        let ([a, b], [c, d]) = (own.to_be_bytes(), other.to_be_bytes());
        [a, b, c, d]
    }

    fn udp(&self, answers: bool) -> Packet {
        let payload = [&self.ports(answers)[..], &[0, 18, 0, 0], b"a datagram"].concat();
        self.packet(answers, "a datagram", &payload)
    }

    fn tcp(
        &self,
        answers: bool,
        flags: u8,
        [sequence, acknowledged]: [u32; 2],
        data: u32,
    ) -> Packet {
        let mut payload = self.ports(answers).to_vec();
        payload.extend(sequence.to_be_bytes());
        payload.extend(if flags & ACK == 0 { [0; 4] } else { acknowledged.to_be_bytes() });
        payload.extend([5 << 4, flags, 0x7f, 0xff, 0, 0, 0, 0]);
        payload.resize(payload.len() + data as usize, b'x');
        self.packet(answers, &format!("flags {flags:#x} at {sequence} ({data} bytes)"), &payload)
    }

    fn echo(&self, answers: bool) -> Packet {
        let kind = match (self.family, answers) {
            (Family::Inet, false) => 8,
            (Family::Inet, true) => 0,
            (Family::Inet6, answers) => 128 + u8::from(answers),
        };
        let [high, low] = self.ends[0].1.to_be_bytes();
        let what = if answers { "an echo reply" } else { "an echo request" };
        self.packet(answers, what, &[kind, 0, 0, 0, high, low, 0, 1, 1, 2, 3, 4])
    }

    /// An error by the server: port or protocol unreachable.
    fn unreachable(&self) -> Packet {
        let about = match self.protocol {
            UDP => self.udp(false),
            _ => self.packet(false, "", b"whatever it is"),
        };
        let mut quoted = about.frame[at::IP..].to_vec();
        let message = match self.family {
            Family::Inet => {
                // As it came through a router.
                let header = sound(about.frame.clone(), &[(at::TTL, &[63])]);
                quoted[..20].copy_from_slice(&header[at::IP..at::AFTER]);
                [3, if self.protocol == UDP { 3 } else { 2 }]
            }
            Family::Inet6 => {
                quoted[7] = 63;
                [1, 4]
            }
        };
        let payload = [&message[..], &[0; 6], &quoted].concat();
        let error = Flow { protocol: ICMP, ..self.clone() };
        error.packet(true, "an ICMP error", &payload)
    }

    /// Any packet of the protocol between the two; not for TCP.
    fn any(&self, answers: bool) -> Packet {
        match self.protocol {
            UDP => self.udp(answers),
            ICMP => self.echo(answers),
            _ => self.packet(answers, "something", b"whatever it is"),
        }
    }
}

/// An IP packet with valid checksums, in a frame to the router.
fn frame(from: Side, protocol: u8, own: &[u8], other: &[u8], payload: &[u8]) -> Vec<u8> {
    let [router, host] = match from {
        Side::Near => [NEAR, SENDER],
        Side::Far => [FAR, [2, 0, 0, 0, 0, 0x20]],
    };
    let mut frame = [router, host].concat();
    let length = payload.len() as u16;
    if own.len() == 4 {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([if protocol == ICMP { 58 } else { protocol }, 64]);
    }
    frame.extend(own);
    frame.extend(other);
    let after = frame.len();
    frame.extend(payload);
    match (protocol, own.len()) {
        (ICMP, 4) => {
            let sum = checksum::finish(checksum::add(0, payload));
            frame[after + 2..after + 4].copy_from_slice(&sum);
        }
        (ICMP, _) => frame = sound6(frame, &[]),
        (TCP | UDP, _) => {
            checksum::complete(&mut frame, true);
        }
        _ => {}
    }
    if own.len() == 4 { sound(frame, &[]) } else { frame }
}

/// A packet of no conversation.
pub(crate) fn packet(random: &mut Random, set: u8) -> Packet {
    let client = [Side::Near, Side::Far][random.below(2) as usize];
    let flow = Flow::random(random, set, client);
    let answers = random.below(4) == 0;
    match flow.protocol {
        TCP => {
            let all = [SYN, SYN, SYN | ACK, ACK, PSH | ACK, RST, FIN | ACK];
            flow.tcp(answers, all[random.below(7) as usize], [1000, 2000], 0)
        }
        _ => flow.any(answers),
    }
}

/// Packets of a few simultaneous conversations, and a few of none.
pub(crate) fn conversations(random: &mut Random, set: u8, count: usize) -> Vec<Packet> {
    let mut all: Vec<Conversation> = (0..6)
        .map(|number| {
            let client = [Side::Near, Side::Far][random.below(2) as usize];
            let mut flow = Flow::random(random, set, client);
            // An identifier that no other conversation uses, whatever the rules require.
            if flow.protocol == ICMP {
                flow.ends[0].1 = 7000 + number;
            }
            Conversation { flow, sent: 0, next: [10_000, 900_000], ends_by: random.below(3) as u8 }
        })
        .collect();
    let mut packets = Vec::new();
    for _ in 0..4 * count {
        if packets.len() == count {
            break;
        }
        let number = random.below(all.len() as u64) as usize;
        packets.extend(all[number].next_packet(random));
    }
    packets
}

/// A conversation between two hosts.
struct Conversation {
    flow: Flow,
    /// Number of packets so far.
    sent: u32,
    /// TCP sequence numbers of the next segments of both.
    next: [u32; 2],
    /// The end of TCP: 0: none, 1: by both sides, 2: by a reset.
    ends_by: u8,
}

impl Conversation {
    /// Its next packet; `None` after the last one.
    fn next_packet(&mut self, random: &mut Random) -> Option<Packet> {
        self.sent += 1;
        if self.flow.protocol != TCP {
            let is_about = matches!(self.flow.protocol, UDP | OTHER);
            if is_about && random.below(8) == 0 {
                return Some(self.flow.unreachable());
            }
            return Some(self.flow.any(self.sent > 1 && random.below(2) == 0));
        }
        let (client, answers) = (false, true);
        match self.sent {
            1 => Some(self.segment(client, SYN, 0)),
            2 => Some(self.segment(answers, SYN | ACK, 0)),
            3 => Some(self.segment(client, ACK, 0)),
            4..10 if random.below(4) == 0 => {
                // Of another connection, or a forgery.
                let answers = random.below(2) == 0;
                let [next, acknowledged] = self.numbers(answers);
                let flags = [ACK, PSH | ACK, RST, RST | ACK, FIN | ACK][random.below(5) as usize];
                let far_off = [next.wrapping_add(1_000_000_000), acknowledged];
                Some(self.flow.tcp(answers, flags, far_off, 5))
            }
            4..10 => Some(self.segment(random.below(2) == 0, PSH | ACK, 10)),
            10 if self.ends_by == 1 => Some(self.segment(client, FIN | ACK, 0)),
            11 if self.ends_by == 1 => Some(self.segment(answers, FIN | ACK, 0)),
            12 if self.ends_by == 1 => Some(self.segment(client, ACK, 0)),
            10 if self.ends_by == 2 => Some(self.segment(random.below(2) == 0, RST | ACK, 0)),
            _ if self.ends_by == 0 => Some(self.segment(random.below(2) == 0, ACK, 100)),
            _ => None,
        }
    }

    /// Sequence number and acknowledgement number of the next segment of one of them.
    fn numbers(&self, answers: bool) -> [u32; 2] {
        [self.next[usize::from(answers)], self.next[usize::from(!answers)]]
    }

    fn segment(&mut self, answers: bool, flags: u8, data: u32) -> Packet {
        let packet = self.flow.tcp(answers, flags, self.numbers(answers), data);
        self.next[usize::from(answers)] += data + u32::from(flags & (SYN | FIN) != 0);
        packet
    }
}
