//! The Internet checksum (RFC 1071).
//!
//! Sums are kept unfolded, over 16-bit words read in *native* byte order: the one's complement sum
//! is independent of byte order (RFC 1071 section 2 (B)), so nothing is swapped and the result is
//! stored unchanged.

/// Adds the 16-bit words of `bytes` to `sum`; an odd last byte is padded with 0.
pub fn add(sum: u32, bytes: &[u8]) -> u32 {
    let mut words = bytes.chunks_exact(2);
    let mut sum = u64::from(sum);
    for word in words.by_ref() {
        sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    while sum > 0xffff_ffff {
        sum = (sum & 0xffff_ffff) + (sum >> 32);
    }
    sum as u32
}

/// Folds a sum to 16 bits and complements it; returns the bytes of the checksum field.
#[inline]
pub fn finish(sum: u32) -> [u8; 2] {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_ne_bytes()
}

/// Returns the checksum field after one of the covered words has changed, without reading the
/// others (RFC 1624 equation 3).
#[inline]
pub fn update(check: [u8; 2], before: [u8; 2], after: [u8; 2]) -> [u8; 2] {
    let [check, before, after] = [check, before, after].map(u16::from_ne_bytes);
    finish(u32::from(!check) + u32::from(!before) + u32::from(after))
}

/// Offsets in an untagged Ethernet frame.
const IP: usize = 14;

/// Completes the checksum of TCP or UDP that a stack has left to a device and no device has
/// completed, as on virtual links, whose ends share memory. The field then contains only the sum of
/// the pseudo header. Returns true if the checksum was changed.
///
/// With `always`, any value is replaced. Otherwise only that sum is, unless it is the right
/// checksum by chance; other errors remain. Fragments, IPv6 extension headers and tags are left
/// alone: no stack leaves them to a device.
pub fn complete(frame: &mut [u8], always: bool) -> bool {
    let Some((protocol, at, end, pseudo)) = transport(frame) else { return false };
    let field = at + if protocol == TCP { 16 } else { 6 };
    if field + 2 > end {
        return false;
    }
    let there = [frame[field], frame[field + 1]];
    let [high, low] = finish(pseudo);
    let is_partial = there == [!high, !low];
    let is_right = || finish(add(pseudo, &frame[at..end])) == [0, 0];
    if !always && (!is_partial || is_right()) {
        return false;
    }
    frame[field..field + 2].fill(0);
    let check = finish(add(pseudo, &frame[at..end]));
    // 0 means that there is no checksum (RFC 768).
    let check = if protocol == UDP && check == [0, 0] { [0xff; 2] } else { check };
    frame[field..field + 2].copy_from_slice(&check);
    true
}

/// Offset of the checksum in an SCTP header: a CRC, not an Internet checksum.
const SCTP_FIELD: usize = 8;

/// Completes a checksum that a stack is known to have left to a device. It covers the frame from
/// `start` on, and its field, `offset` bytes later, contains the sum of the pseudo header. Returns
/// false without change if the field is outside of the frame, or SCTP's.
pub fn complete_at(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let field = start + offset;
    if field + 2 > frame.len() || offset == SCTP_FIELD {
        return false;
    }
    let check = finish(add(0, &frame[start..]));
    // In UDP 0 means that there is no checksum (RFC 768); elsewhere both are the same number.
    let check = if check == [0, 0] { [0xff; 2] } else { check };
    frame[field..field + 2].copy_from_slice(&check);
    true
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Returns protocol, start and end of TCP or UDP in a frame, and the sum of its pseudo header (RFC
/// 9293 section 3.1, RFC 8200 section 8.1).
fn transport(frame: &[u8]) -> Option<(u8, usize, usize, u32)> {
    let half = |at: usize| Some(u16::from_be_bytes(*frame.get(at..at + 2)?.first_chunk()?));
    let (protocol, at, length, ends) = match half(12)? {
        0x0800 if half(IP + 6)? & 0x3fff == 0 => {
            let at = IP + usize::from(frame[IP] & 15) * 4;
            let length = usize::from(half(IP + 2)?).checked_sub(at - IP)?;
            (*frame.get(IP + 9)?, at, length, frame.get(IP + 12..IP + 20)?)
        }
        0x86dd => {
            (*frame.get(IP + 6)?, IP + 40, usize::from(half(IP + 4)?), frame.get(IP + 8..IP + 40)?)
        }
        _ => return None,
    };
    let end = at + length;
    if !matches!(protocol, TCP | UDP) || end > frame.len() {
        return None;
    }
    let sum = add(add(0, ends), &(length as u32).to_be_bytes());
    Some((protocol, at, end, add(sum, &[0, protocol])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Flows, Stamp, Stream, Template};

    #[test]
    fn only_offloaded_checksums_are_completed() {
        for family in [Family::Inet, Family::Inet6] {
            for size in [84, 85, 1518] {
                let flows = Flows { sources: 1, destinations: 1 };
                let template = Template::new(&Stream::new(family, size, flows), 7, [2; 6], [4; 6]);
                let (sender, phase, flow) = (0, 1, 0);
                let stamp = Stamp { run_id: 7, sender, phase, flow, sequence: 5, time_ns: 9 };
                let right = template.frame(0, 0, &stamp);
                let field = if family == Family::Inet { 40 } else { 60 };
                let mut frame = right.clone();
                assert!(!complete(&mut frame, false) && frame == right);
                let (_, start, _, pseudo) = transport(&right).expect("UDP");
                let [high, low] = finish(pseudo);
                frame[field..field + 2].copy_from_slice(&[!high, !low]);
                let mut known = frame.clone();
                assert!(complete_at(&mut known, start, 6) && known == right);
                assert!(complete(&mut frame, false) && frame == right);
                // A wrong checksum is left for the receiver to detect.
                frame[field] ^= 1;
                let wrong = frame.clone();
                assert!(!complete(&mut frame, false) && frame == wrong);
                assert!(complete(&mut frame, true) && frame == right);
                for length in 0..right.len() {
                    complete(&mut right[..length].to_vec(), true);
                    complete_at(&mut right[..length].to_vec(), start, 6);
                }
                assert!(!complete_at(&mut frame, start, SCTP_FIELD) && frame == right);
                assert!(!complete_at(&mut frame, right.len(), 0) && frame == right);
            }
        }
    }

    #[test]
    fn example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        // The sum is ddf2, its complement 220d.
        assert_eq!(finish(add(0, &bytes)), [0x22, 0x0d]);
    }

    #[test]
    fn sum_over_data_with_checksum_is_zero() {
        let data = [0x45, 0x00, 0x00, 0x2e, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11];
        let check = finish(add(0, &data));
        assert_eq!(finish(add(add(0, &data), &check)), [0, 0]);
    }

    #[test]
    fn example_of_rfc_1624_section_4() {
        let [check, before, after] = [[0xdd, 0x2f], [0x55, 0x55], [0x32, 0x85]];
        assert_eq!(update(check, before, after), [0x00, 0x00]);
    }

    #[test]
    fn ttl_decrements_keep_the_sum_right() {
        for protocol in 0..=255 {
            for ttl in 1..=255 {
                let check = finish(add(0, &[ttl, protocol, 0x12, 0x34]));
                let updated = update(check, [ttl, protocol], [ttl - 1, protocol]);
                let sum = add(add(0, &[ttl - 1, protocol, 0x12, 0x34]), &updated);
                assert_eq!(finish(sum), [0, 0]);
            }
        }
    }
}
