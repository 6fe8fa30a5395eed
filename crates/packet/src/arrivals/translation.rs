//! Source address translation (NAT): packets that arrive with the device's address.
//!
//! A device that translates gives every packet its own source address and a source port of its
//! choice. The receiver restores both from the flow in the packet's stamp, adjusts the checksums by
//! the difference (RFC 1624), and then checks the packet like any other: nothing else may differ.
//! The two addresses are exchanged, so an untranslated packet has a wrong source address.
//!
//! The port may be any, but a flow must keep it: `Mappings` remembers it per flow.
//!
//! Translated destinations need none of this. They are known in advance, so the expected packets
//! have them.

use super::expected::{Pattern, offsets};
use super::order::ENTRIES_MAX;
use crate::address::Family;
use crate::checksum;
use crate::stamp;
use std::net::IpAddr;

/// Offset of the checksum in an IPv4 frame.
const IP_CHECK: usize = 24;
/// Set in the mapping of a flow once it is known.
const KNOWN: u32 = 1 << 16;

/// A packet as sent by a device that does not translate sources.
pub(super) struct Restored {
    pub(super) frame: Vec<u8>,
    /// Source port that the device chose; `None` for a packet that is not translated.
    pub(super) port: Option<u16>,
}

/// Source ports that the device chose, by flow. Empty if there are too many flows to follow.
#[derive(Debug, Default)]
pub(super) struct Mappings(Vec<u32>);

impl Mappings {
    /// Creates mappings of this number of flows; none is known.
    pub(super) fn new(flows: u32) -> Mappings {
        let is_followed = u64::from(flows) <= ENTRIES_MAX;
        Mappings(if is_followed { vec![0; flows as usize] } else { Vec::new() })
    }

    /// Records the port of a packet. Returns true if the flow's previous packet had another.
    #[cold]
    pub(super) fn is_changed(&mut self, flow: u32, port: Option<u16>) -> bool {
        let (Some(known), Some(port)) = (self.0.get_mut(flow as usize), port) else { return false };
        let before = std::mem::replace(known, KNOWN | u32::from(port));
        before != 0 && before != *known
    }
}

impl Pattern {
    /// Restores source address and port of a translated frame; `None` if packets are not
    /// translated.
    pub(super) fn restored(&self, frame: &[u8]) -> Option<Restored> {
        let translated = self.expected.translated?;
        let mut frame = frame.to_vec();
        let port = match translated {
            IpAddr::V4(address) => self.restore(&mut frame, &address.octets()),
            IpAddr::V6(address) => self.restore(&mut frame, &address.octets()),
        };
        Some(Restored { frame, port })
    }

    /// Restores a frame with the source `translated`; returns its port, or `None` for other frames.
    fn restore(&self, frame: &mut [u8], translated: &[u8]) -> Option<u16> {
        let (template, at) = (&self.expected.template, offsets(self.family));
        let is_udp = match self.family {
            Family::Inet => {
                frame.get(12..15) == Some(&[0x08, 0x00, 0x45]) && frame.get(23) == Some(&17)
            }
            Family::Inet6 => frame.get(12..14) == Some(&[0x86, 0xdd]) && frame.get(20) == Some(&17),
        };
        // The stamp's tag, whose low 24 bits are the flow.
        let tag = at.udp + 8 + 6;
        if !is_udp || frame.len() < at.udp + 8 + stamp::BYTES {
            return None;
        }
        let flows = template.flows();
        let flow = u32::from_be_bytes([0, frame[tag + 1], frame[tag + 2], frame[tag + 3]]);
        if flow >= flows.count() {
            return None;
        }
        let source = at.source + 4 - translated.len()..at.source + 4;
        let mut original = template.bytes()[source.clone()].to_vec();
        let low = (template.bases().0 + flow / flows.destinations).to_be_bytes();
        original[translated.len() - 4..].copy_from_slice(&low);
        if frame[source.clone()] == original {
            frame[source].copy_from_slice(translated);
            return None;
        }
        if frame[source.clone()] != *translated {
            return None;
        }
        let (udp_check, port_at) = (at.udp + 6, at.udp);
        let has_udp_check = frame[udp_check..udp_check + 2] != [0, 0];
        let mut replace = |at: usize, after: [u8; 2], is_of_ip: bool| {
            let before = [frame[at], frame[at + 1]];
            frame[at..at + 2].copy_from_slice(&after);
            for (check, covers) in [(IP_CHECK, is_of_ip), (udp_check, has_udp_check)] {
                if covers {
                    let there = [frame[check], frame[check + 1]];
                    let adjusted = checksum::update(there, before, after);
                    frame[check..check + 2].copy_from_slice(&adjusted);
                }
            }
            u16::from_be_bytes(before)
        };
        for (at, after) in source.step_by(2).zip(original.as_chunks::<2>().0) {
            replace(at, *after, self.family == Family::Inet);
        }
        let own_port = [template.bytes()[port_at], template.bytes()[port_at + 1]];
        let port = replace(port_at, own_port, false);
        // UDP writes a checksum of 0 as 0xffff (RFC 768).
        if has_udp_check && frame[udp_check..udp_check + 2] == [0, 0] {
            frame[udp_check..udp_check + 2].fill(0xff);
        }
        Some(port)
    }
}
