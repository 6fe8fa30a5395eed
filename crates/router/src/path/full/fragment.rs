//! Fragmentation of packets (RFC 791 section 3.2).

use super::super::ethernet::{self, HEADER as ETHERNET};
use super::super::ipv4::{self, field};
use fwdlab_netio::frame::Frame;

/// More fragments follow.
const MORE: u16 = 0x2000;
/// The offset, in units of eight bytes.
const OFFSET: u16 = 0x1fff;
/// Maximum header length.
const HEADER_MAX: usize = 60;

/// Returns all fragments but the first of a packet that is ready to be sent but too large. `None`
/// if an offset would exceed the maximum packet size, or no payload fits into the MTU.
pub(super) fn further(frame: &Frame, mtu: u16) -> Option<Vec<Frame>> {
    let bytes = frame.buffer();
    let begin = ETHERNET + header_length(frame);
    let end = ETHERNET + usize::from(ipv4::total_length(bytes));
    let flags = flags(frame);
    let has_room = usize::from(mtu) >= begin - ETHERNET + 8;
    if !has_room || usize::from(flags & OFFSET) + (end - begin) / 8 > usize::from(OFFSET) {
        return None;
    }
    let (header, length) = later_header(frame);
    let header = &header[..length];
    let mut fragments = Vec::new();
    let mut at = payload(begin - ETHERNET, mtu);
    while begin + at < end {
        let room = usize::from(mtu) - header.len();
        let rest = end - begin - at;
        let (part, more) = match rest <= room {
            true => (rest, flags & MORE),
            false => (room & !7, MORE),
        };
        let mut to = vec![0; ETHERNET + header.len() + part];
        to[..ETHERNET].copy_from_slice(&bytes[..ETHERNET]);
        to[ETHERNET..ETHERNET + header.len()].copy_from_slice(header);
        frame.copy_to(begin + at, &mut to[ETHERNET + header.len()..]);
        let mut fragment = Frame::of(frame.ingress(), &to).ok()?;
        finish(&mut fragment, part, ((flags & !MORE) + (at / 8) as u16) | more);
        fragments.push(fragment);
        at += part;
    }
    Some(fragments)
}

/// Shortens a packet to its first fragment.
pub(super) fn shorten(frame: &mut Frame, mtu: u16) {
    let (payload, flags) = (payload(header_length(frame), mtu), flags(frame));
    finish(frame, payload, flags | MORE);
}

/// Bytes that the first fragment has after its header.
fn payload(header: usize, mtu: u16) -> usize {
    (usize::from(mtu) - header) & !7
}

fn header_length(frame: &Frame) -> usize {
    usize::from(frame.buffer()[ETHERNET] & 15) * 4
}

fn flags(frame: &Frame) -> u16 {
    u16::from_be_bytes([frame.buffer()[field::FLAGS], frame.buffer()[field::FLAGS + 1]])
}

/// The header with those options that all fragments copy, and its length.
fn later_header(frame: &Frame) -> ([u8; HEADER_MAX], usize) {
    let bytes = frame.buffer();
    let end = ETHERNET + header_length(frame);
    let mut header = [0; HEADER_MAX];
    header[..ipv4::HEADER].copy_from_slice(&bytes[ETHERNET..ETHERNET + ipv4::HEADER]);
    let mut length = ipv4::HEADER;
    let mut at = ETHERNET + ipv4::HEADER;
    // The options were checked: each has a length, and ends within the header.
    while at < end && bytes[at] != 0 {
        let option = if bytes[at] == 1 { 1 } else { usize::from(bytes[at + 1]).max(1) };
        let option = &bytes[at..end.min(at + option)];
        if option[0] & 0x80 != 0 {
            header[length..length + option.len()].copy_from_slice(option);
            length += option.len();
        }
        at += option.len();
    }
    // Pad to whole words with 0, the end of options.
    let length = length.next_multiple_of(4);
    header[0] = 0x40 | (length / 4) as u8;
    (header, length)
}

/// Writes length, flags and checksum of a fragment with `payload` bytes after its header.
fn finish(frame: &mut Frame, payload: usize, flags: u16) {
    let header = header_length(frame);
    let bytes = frame.buffer_mut();
    let total = ((header + payload) as u16).to_be_bytes();
    bytes[field::TOTAL_LENGTH..field::TOTAL_LENGTH + 2].copy_from_slice(&total);
    bytes[field::FLAGS..field::FLAGS + 2].copy_from_slice(&flags.to_be_bytes());
    ipv4::write_checksum(bytes, header);
    let end = ETHERNET + header + payload;
    if let Some(padding) = bytes.get_mut(end..ethernet::SMALLEST) {
        padding.fill(0);
    }
    frame.set_len(end.max(ethernet::SMALLEST));
}
