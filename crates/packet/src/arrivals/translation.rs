//! Source address translation (NAT): packets that arrive with the device's address.
//!
//! A device that translates gives every packet its own source address and a source port of its
//! choice. The receiver restores both from the flow in the packet's stamp, adjusts the checksums by
//! the difference (RFC 1624), and then checks the packet like any other: nothing else may differ.
//! The two addresses are exchanged, so an untranslated packet has a wrong source address.

use super::expected::Pattern;
use crate::checksum;
use crate::stamp;

/// Offsets in an IPv4 frame.
const IP_CHECK: usize = 24;
const SOURCE: usize = 26;
const SOURCE_PORT: usize = 34;
const UDP_CHECK: usize = 40;
/// The stamp's tag, whose low 24 bits are the flow.
const TAG: usize = 48;
const END: usize = 42 + stamp::BYTES;

impl Pattern {
    /// Restores source address and port of a translated frame; `None` if packets are not
    /// translated.
    pub(super) fn restored(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let translated = self.expected.translated?;
        let mut frame = frame.to_vec();
        self.restore(&mut frame, translated);
        Some(frame)
    }

    fn restore(&self, frame: &mut [u8], translated: [u8; 4]) {
        let template = &self.expected.template;
        let is_udp = frame.get(12..15) == Some(&[0x08, 0x00, 0x45]) && frame.get(23) == Some(&17);
        if !is_udp || frame.len() < END {
            return;
        }
        let flows = template.flows();
        let flow = u32::from_be_bytes([0, frame[TAG + 1], frame[TAG + 2], frame[TAG + 3]]);
        if flow >= flows.count() {
            return;
        }
        let original = (template.bases().0 + flow / flows.destinations).to_be_bytes();
        let found: [u8; 4] = std::array::from_fn(|byte| frame[SOURCE + byte]);
        if found == original {
            frame[SOURCE..SOURCE + 4].copy_from_slice(&translated);
        }
        if found != translated {
            return;
        }
        let has_udp_check = frame[UDP_CHECK..UDP_CHECK + 2] != [0, 0];
        let mut replace = |at: usize, after: [u8; 2], is_of_ip: bool| {
            let before = [frame[at], frame[at + 1]];
            frame[at..at + 2].copy_from_slice(&after);
            for (check, covers) in [(IP_CHECK, is_of_ip), (UDP_CHECK, has_udp_check)] {
                if covers {
                    let there = [frame[check], frame[check + 1]];
                    let adjusted = checksum::update(there, before, after);
                    frame[check..check + 2].copy_from_slice(&adjusted);
                }
            }
        };
        let port = &template.bytes()[SOURCE_PORT..SOURCE_PORT + 2];
        replace(SOURCE, [original[0], original[1]], true);
        replace(SOURCE + 2, [original[2], original[3]], true);
        replace(SOURCE_PORT, [port[0], port[1]], false);
        // UDP writes a checksum of 0 as 0xffff (RFC 768).
        if has_udp_check && frame[UDP_CHECK..UDP_CHECK + 2] == [0, 0] {
            frame[UDP_CHECK..UDP_CHECK + 2].fill(0xff);
        }
    }
}
