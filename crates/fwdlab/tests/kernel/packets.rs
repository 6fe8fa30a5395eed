//! Frames, byte by byte: the benchmark's own packets and changes to them.

use crate::setup::{NEAR, SENDER};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stamp, Stream, Template, checksum};

/// Run identifiers of the packets under test, and of the marks between them.
const RUN: u32 = 0x00c0_ffee;
const MARKS: u32 = 0x00c0_ffef;
const SOURCES: u32 = 1000;

/// Offsets in a frame.
pub(crate) mod at {
    pub(crate) const IP: usize = 14;
    pub(crate) const TOS: usize = 15;
    pub(crate) const LENGTH: usize = 16;
    pub(crate) const ID: usize = 18;
    pub(crate) const FLAGS: usize = 20;
    pub(crate) const TTL: usize = 22;
    pub(crate) const PROTOCOL: usize = 23;
    pub(crate) const CHECKSUM: usize = 24;
    pub(crate) const SOURCE: usize = 26;
    pub(crate) const DESTINATION: usize = 30;
    pub(crate) const AFTER: usize = 34;
    pub(crate) const LENGTH6: usize = 18;
    pub(crate) const NEXT6: usize = 20;
    pub(crate) const HOPS6: usize = 21;
    pub(crate) const SOURCE6: usize = 22;
    pub(crate) const DESTINATION6: usize = 38;
    pub(crate) const AFTER6: usize = 54;
}

/// A valid UDP packet of its own flow from behind the sender to behind the receiver, in a frame of
/// `size` bytes with FCS.
pub(crate) fn udp(family: Family, size: u16, flow: u32) -> Vec<u8> {
    stamped(family, size, RUN, flow)
}

fn stamped(family: Family, size: u16, run_id: u32, number: u32) -> Vec<u8> {
    let flows = Flows { sources: SOURCES, destinations: 1 };
    let template = Template::new(&Stream::new(family, size, flows), run_id, SENDER, NEAR);
    let flow = number % SOURCES;
    let stamp = Stamp { run_id, sender: 0, phase: 1, flow, sequence: number, time_ns: 0 };
    let mut frame = template.frame(flow, 0, &stamp);
    let begin = template.stamp_offset() + fwdlab_packet::stamp::BYTES;
    // A payload in which a wrong fragment boundary is visible.
    for (at, byte) in frame.iter_mut().enumerate().skip(begin) {
        *byte = (at * 7 + at / 256) as u8;
    }
    frame
}

/// The number of the frame that a mark follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mark(pub(crate) u32);

/// Two packets that certainly go to the near and to the far side.
pub(crate) fn marks(number: u32) -> [Vec<u8>; 2] {
    let far = stamped(Family::Inet, 64, MARKS, number);
    let near = sound(far.clone(), &[(at::DESTINATION, &[198, 18, 7, 7])]);
    [near, far]
}

/// The mark in a frame, if it is one.
pub(crate) fn mark_of(frame: &[u8]) -> Option<Mark> {
    let stamp = Stamp::parse_frame(frame).filter(|stamp| stamp.run_id == MARKS)?;
    Some(Mark(stamp.sequence))
}

/// A frame that every forwarder drops: EtherType for local experiments (IEEE 802).
pub(crate) fn filler() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&NEAR);
    frame[6..12].copy_from_slice(&SENDER);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// Changes bytes.
pub(crate) fn changed(mut frame: Vec<u8>, changes: &[(usize, &[u8])]) -> Vec<u8> {
    for (at, bytes) in changes {
        frame[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    frame
}

/// Changes bytes, and recomputes the checksum of the IPv4 header.
pub(crate) fn sound(frame: Vec<u8>, changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut frame = changed(frame, changes);
    let end = (at::IP + usize::from(frame[at::IP] & 15) * 4).min(frame.len());
    frame[at::CHECKSUM..at::CHECKSUM + 2].fill(0);
    let sum = checksum::finish(checksum::add(0, &frame[at::IP..end]));
    frame[at::CHECKSUM..at::CHECKSUM + 2].copy_from_slice(&sum);
    frame
}

/// Inserts options of whole words after the IPv4 header.
pub(crate) fn with_options(mut frame: Vec<u8>, options: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4));
    frame.splice(at::AFTER..at::AFTER, options.iter().copied());
    frame[at::IP] = 0x45 + (options.len() / 4) as u8;
    let total = ((frame.len() - at::IP) as u16).to_be_bytes();
    sound(frame, &[(at::LENGTH, &total)])
}

/// The IPv4 packet with another payload.
pub(crate) fn carrying(mut frame: Vec<u8>, protocol: u8, payload: &[u8]) -> Vec<u8> {
    frame.truncate(at::AFTER);
    frame.extend(payload);
    let total = ((frame.len() - at::IP) as u16).to_be_bytes();
    sound(frame, &[(at::LENGTH, &total), (at::PROTOCOL, &[protocol])])
}

/// The IPv6 packet with another payload; the checksum of ICMPv6 is computed last.
pub(crate) fn carrying6(mut frame: Vec<u8>, next: u8, payload: &[u8]) -> Vec<u8> {
    frame.truncate(at::AFTER6);
    frame.extend(payload);
    frame[at::LENGTH6..at::NEXT6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    frame[at::NEXT6] = next;
    frame
}

/// An ICMP message: type, code, second word, 40 bytes.
pub(crate) fn icmp(kind: u8, code: u8) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0x12, 0x34, 0, 7];
    message.extend(1..=40);
    let sum = checksum::finish(checksum::add(0, &message));
    message[2..4].copy_from_slice(&sum);
    message
}

/// Changes bytes, and writes the checksum of the ICMPv6 message after the IPv6 header.
pub(crate) fn sound6(frame: Vec<u8>, changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut frame = changed(frame, changes);
    frame[at::AFTER6 + 2..at::AFTER6 + 4].fill(0);
    let sum = checksum::finish(sum6(&frame, 58));
    frame[at::AFTER6 + 2..at::AFTER6 + 4].copy_from_slice(&sum);
    frame
}

/// The checksum of everything after an IPv6 header, of protocol `next`, with its pseudo-header (RFC
/// 8200 section 8.1).
pub(crate) fn sum6(frame: &[u8], next: u8) -> u32 {
    let sum = checksum::add(0, &frame[at::SOURCE6..]);
    let sum = checksum::add(sum, &((frame.len() - at::AFTER6) as u32).to_be_bytes());
    checksum::add(sum, &[0, next])
}

/// An ARP packet: operation, sender's MAC and address, target's address.
pub(crate) fn arp(operation: u8, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(SENDER);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(SENDER);
    frame.extend(sender);
    frame.extend([0; 6]);
    frame.extend(target);
    frame.resize(60, 0);
    frame
}
