//! Maps shared with the BPF program: `bpf/flow.h` in Rust.

use std::mem::offset_of;

/// Words of a key.
pub(super) const WORDS: usize = 5;
/// Places of interfaces: an interface is at its index modulo this number.
pub(super) const INTERFACES: u32 = 1024;
/// Odd multiplier of the hash.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// `flags` of an interface: stacks behind it leave checksums to devices.
pub(super) const INCOMPLETE_CHECKSUMS: u8 = 1;
/// One packet in a flow's count; the bits below contain bytes.
const PACKET: u64 = 1 << 40;
/// Bits of the TCP header with which a packet opens or closes a connection: FIN, SYN and RST.
const PHASE_FLAGS: u8 = 1 | 2 | 4;

/// `struct flow`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) key: FlowKey,
    pub(super) generation: u32,
    pub(super) mtu: u32,
    pub(super) macs: [u8; 12],
    pub(super) egress: u8,
    pad: [u8; 3],
}

/// `struct control`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    pub(super) generation: u64,
    pub(super) namespace: u64,
    pub(super) links: u64,
}

/// `struct interface`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interface {
    pub(super) index: u32,
    pub(super) first_socket: u32,
    pub(super) mac: [u8; 6],
    pub(super) number: u8,
    pub(super) flags: u8,
}

/// Frames of a port that the BPF program forwarded: `struct port_count`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCount {
    /// Frames that came in at the port.
    pub received: u64,
    /// Frames handed to the port's device.
    pub sent: u64,
    /// Frames of these that the device refused.
    pub lost: u64,
}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<Interface>() == 16);
const _: () = assert!(offset_of!(Slot, generation) == 40 && offset_of!(Slot, macs) == 48);

impl Slot {
    pub(super) fn new(key: &FlowKey, link: &FlowLink) -> Slot {
        let FlowLink { macs, mtu, egress } = *link;
        Slot { key: *key, generation: 0, mtu: mtu.into(), macs, egress, pad: [0; 3] }
    }
}

/// The link on which packets of a flow leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLink {
    /// MACs of destination and source.
    pub macs: [u8; 12],
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Number of the router's port.
    pub egress: u8,
}

/// Packets and bytes, from the IP header on, of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl FlowCount {
    /// Difference of two counts of a flow, which contain the number of packets modulo 2^24 and of
    /// bytes modulo 2^40.
    pub(super) fn between(before: u64, after: u64) -> FlowCount {
        let more = after.wrapping_sub(before);
        FlowCount { packets: more / PACKET, bytes: more % PACKET }
    }
}

/// One direction of a TCP or UDP connection, at the port where it comes in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey([u64; WORDS]);

impl FlowKey {
    /// Key of a frame that came in at port `number`, if it contains a whole TCP or UDP packet
    /// without options or extension headers, and whether the packet may open or close a connection.
    pub fn read(bytes: &[u8], number: u8) -> Option<(FlowKey, bool)> {
        let word =
            |at: usize| bytes.get(at..at + 8)?.first_chunk().map(|&word| u64::from_ne_bytes(word));
        let mut key = [0; WORDS];
        let (family, protocol, transport) = match bytes.get(12..14)? {
            [8, 0] => {
                let is_fragment = *bytes.get(20)? & 0x3f != 0 || *bytes.get(21)? != 0;
                if *bytes.get(14)? != 0x45 || is_fragment {
                    return None;
                }
                key[0] = word(26)?;
                (1, *bytes.get(23)?, 34)
            }
            [0x86, 0xdd] => {
                for (at, word_of_key) in key[..4].iter_mut().enumerate() {
                    *word_of_key = word(22 + 8 * at)?;
                }
                (2, *bytes.get(20)?, 54)
            }
            _ => return None,
        };
        let changes_phase = match protocol {
            6 => *bytes.get(transport + 13)? & PHASE_FLAGS != 0,
            17 => false,
            _ => return None,
        };
        let ports: &[u8; 4] = bytes.get(transport..)?.first_chunk()?;
        let [a, b, c, d] = *ports;
        key[WORDS - 1] = u64::from_ne_bytes([family, protocol, number, 0, a, b, c, d]);
        Some((FlowKey(key), changes_phase))
    }

    /// Addresses in packet byte order: one word of source and destination for IPv4, or two each.
    pub fn addresses(&self) -> &[u64] {
        if self.is_inet6() { &self.0[..4] } else { &self.0[..1] }
    }

    /// True for IPv6.
    pub fn is_inet6(&self) -> bool {
        self.0[WORDS - 1].to_ne_bytes()[0] == 2
    }

    /// Protocol number.
    pub fn protocol(&self) -> u8 {
        self.0[WORDS - 1].to_ne_bytes()[1]
    }

    /// Ports of source and destination in packet byte order, the source's first.
    pub fn ports(&self) -> u32 {
        let [_, _, _, _, ports @ ..] = self.0[WORDS - 1].to_ne_bytes();
        u32::from_ne_bytes(ports)
    }

    /// Key of the opposite direction, coming in at port `number`.
    pub fn reversed(&self, number: u8) -> FlowKey {
        let FlowKey([a, b, c, d, last]) = *self;
        let [family, protocol, _, _, e, f, g, h] = last.to_ne_bytes();
        let last = u64::from_ne_bytes([family, protocol, number, 0, g, h, e, f]);
        if self.is_inet6() {
            FlowKey([c, d, a, b, last])
        } else {
            FlowKey([a.rotate_left(32), b, c, d, last])
        }
    }

    /// First of the two slots where the flow may be: an even number up to `mask`.
    pub(super) fn place(&self, seed: u64, mask: u32) -> u32 {
        let hash = self.0.iter().fold(seed, |hash, word| {
            let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
            hash ^ hash >> 32
        });
        (hash ^ hash >> 16) as u32 & mask & !1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::{Family, Flows, Stamp, Stream, Template};

    fn frame(family: Family) -> Vec<u8> {
        let flows = Flows { sources: 1, destinations: 1 };
        let template = Template::new(&Stream::new(family, 100, flows), 1, [2; 6], [4; 6]);
        template.frame(
            0,
            0,
            &Stamp { run_id: 1, sender: 0, phase: 1, flow: 0, sequence: 0, time_ns: 0 },
        )
    }

    #[test]
    fn keys_contain_ends_ports_and_protocol() {
        for (family, words) in [(Family::Inet, 1), (Family::Inet6, 4)] {
            let bytes = frame(family);
            let (key, changes_phase) = FlowKey::read(&bytes, 3).expect("a UDP packet");
            let (at, transport) = if words == 1 { (26, 34) } else { (22, 54) };
            assert_eq!(key.addresses().len(), words);
            assert_eq!(key.addresses()[0].to_ne_bytes(), bytes[at..at + 8]);
            assert_eq!(key.ports().to_ne_bytes(), bytes[transport..transport + 4]);
            assert_eq!((key.protocol(), key.is_inet6(), changes_phase), (17, words == 4, false));
            assert_ne!(FlowKey::read(&bytes, 4).expect("the same packet").0, key);
            let reversed = key.reversed(7);
            assert_eq!(reversed.reversed(3), key);
            let mut turned = bytes.clone();
            let half = if words == 1 { 4 } else { 16 };
            turned[at..at + 2 * half].rotate_left(half);
            turned[transport..transport + 4].rotate_left(2);
            assert_eq!(FlowKey::read(&turned, 7).expect("a UDP packet").0, reversed);
        }
    }

    #[test]
    fn fragments_options_and_other_protocols_have_no_key() {
        let bytes = frame(Family::Inet);
        for (at, value) in [(14, 0x46), (20, 0x20), (21, 1), (23, 1), (12, 9)] {
            let mut other = bytes.clone();
            other[at] = value;
            assert_eq!(FlowKey::read(&other, 0), None, "byte {at}");
        }
        for length in 0..38 {
            assert_eq!(FlowKey::read(&bytes[..length], 0), None, "{length} bytes");
        }
        let mut syn = bytes;
        (syn[23], syn[47]) = (6, 2);
        assert!(FlowKey::read(&syn, 0).expect("a TCP packet").1);
    }

    #[test]
    fn counts_may_overflow() {
        assert_eq!(
            FlowCount::between(u64::MAX - PACKET - 9, 90),
            FlowCount { packets: 1, bytes: 100 }
        );
    }
}
