//! Damage to a benchmark packet as devices cause it, unlike noise on a cable: one field is wrong,
//! and everything else is right, checksums included.

use crate::frame::Frame;
use fwdlab_packet::arrivals::Fault;
use fwdlab_packet::checksum;
use fwdlab_packet::injection::Damage;

/// Offsets of fields in the frame, in bytes.
struct Layout {
    /// Checksum of the IP header; `None` if the family has none.
    ip_check: Option<usize>,
    length: usize,
    ttl: usize,
    source: usize,
    destination: usize,
    udp: usize,
}

const INET: Layout =
    Layout { ip_check: Some(24), length: 16, ttl: 22, source: 28, destination: 32, udp: 34 };
const INET6: Layout =
    Layout { ip_check: None, length: 18, ttl: 21, source: 36, destination: 52, udp: 54 };

/// Damages a frame; `random` selects the position if it is open. Returns false and leaves the frame
/// unchanged if it is not a benchmark packet, or contains nothing that can be damaged in this way.
pub fn inflict(damage: Damage, frame: &mut Frame, random: u64) -> bool {
    let layout = match frame.bytes().get(12..15) {
        Some([0x08, 0x00, 0x45]) => INET,
        Some([0x86, 0xdd, _]) => INET6,
        _ => return false,
    };
    // Only the beginning of a long frame is damaged.
    let (length, stamp) = (frame.bytes().len(), layout.udp + 8);
    if length < stamp + 18 {
        return false;
    }
    let fault = match damage {
        Damage::Fault(fault) => fault,
        Damage::Flip => {
            let bit = random as usize % (8 * (length - 14));
            frame.buffer_mut()[14 + bit / 8] ^= 1 << (bit % 8);
            return true;
        }
    };
    // For each fault: offset of a 16-bit word, bits to change in it, and the checksums that cover
    // it.
    let (ip, udp, ip_and_udp) = ([true, false], [false, true], [true, true]);
    let (at, bits, covered) = match fault {
        Fault::Length => {
            let smallest = stamp + 18;
            let new = if length > smallest { smallest } else { length + 4 };
            frame.buffer_mut()[length..].iter_mut().take(4).for_each(|byte| *byte = 0);
            frame.set_len(new);
            return true;
        }
        Fault::DestinationMac => (4, 1, [false; 2]),
        Fault::SourceMac => (10, 1, [false; 2]),
        Fault::IpHeader => (14, 4, ip),
        Fault::IpLength => (layout.length, 4, ip),
        // 63 becomes 64 again.
        Fault::Ttl if layout.ttl % 2 == 0 => (layout.ttl, 0x7f00, ip),
        Fault::Ttl => (layout.ttl - 1, 0x007f, ip),
        Fault::SourceAddress => (layout.source, 1, ip_and_udp),
        Fault::DestinationAddress => (layout.destination, 1, ip_and_udp),
        Fault::UdpHeader => (layout.udp + 2, 8, udp),
        // As a translator would: without translation of sources this is the header's fault.
        Fault::Mapping => (layout.udp, 8, udp),
        Fault::Stamp => (stamp + 2, 1 << (random % 16), udp),
        Fault::Sequence => (stamp + 12, 1, udp),
        // A second or so: a packet that arrives later than that is no longer from the future.
        Fault::Time => (stamp + 14, 0x4000, udp),
        Fault::Payload if length >= stamp + 20 => {
            let words = (length - stamp - 18) / 2;
            (stamp + 18 + 2 * (random as usize % words), 0x0100, udp)
        }
        Fault::Payload => return false,
        Fault::IpChecksum => match layout.ip_check {
            Some(at) => (at, 0x0100, [false; 2]),
            None => return false,
        },
        Fault::UdpChecksum => (layout.udp + 6, 0x0100, [false; 2]),
    };
    let bytes = frame.buffer_mut();
    let before = [bytes[at], bytes[at + 1]];
    let after = (u16::from_be_bytes(before) ^ bits).to_be_bytes();
    bytes[at..at + 2].copy_from_slice(&after);
    let checks = [layout.ip_check, Some(layout.udp + 6)];
    for check in
        checks.into_iter().zip(covered).filter_map(|(at, is_covered)| at.filter(|_| is_covered))
    {
        let field = [bytes[check], bytes[check + 1]];
        let mut updated = checksum::update(field, before, after);
        if check == layout.udp + 6 && updated == [0, 0] {
            updated = [0xff, 0xff]; // 0 means no checksum
        }
        bytes[check..check + 2].copy_from_slice(&updated);
    }
    true
}
