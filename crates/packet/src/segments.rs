//! Segmentation of packets that stacks leave to devices (TSO, USO), and that receivers have merged
//! (GRO, LRO).
//!
//! Supported: TCP and UDP over IPv4 and IPv6, behind up to two VLAN tags, IPv4 options, and the
//! IPv6 hop-by-hop and destination options. Not supported: tunnels, IPv6 routing headers, fragments.
//!
//! A merged packet inside a tunnel has the offload header of the inner packet ([`Merged`]); the
//! outer headers contradict it.

use crate::checksum;
use std::ops::Range;

/// Maximum number of bytes of a merged packet: Ethernet header, two tags, the longest IP packet
/// without a jumbo payload.
pub const MERGED_MAX: usize = ETHERNET + 2 * TAG + IPV6 + 65_535;

const ETHERNET: usize = 14;
const TAG: usize = 4;
const IPV6: usize = 40;
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// TCP flags that only the first or the last segment has.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Protocols of a merged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergedKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP.
    Udp,
}

/// Offload header of a merged packet.
#[derive(Clone, Copy, Debug)]
pub struct Merged {
    /// Protocols.
    pub kind: MergedKind,
    /// Payload bytes of each segment; the last one may have fewer.
    pub size: u16,
    /// Offset of the TCP or UDP header from the start of the frame; `None` if unknown.
    pub transport: Option<usize>,
    /// True if only the first segment keeps CWR (RFC 3168). With Accurate ECN (RFC 9768) all do.
    pub clears_cwr: bool,
}

/// Cuts one merged packet after the other; its buffer is reused.
#[derive(Debug)]
pub struct Segmenter {
    bytes: Box<[u8]>,
    /// Headers of the merged packet.
    headers: Vec<u8>,
    layout: Layout,
    /// Payload bytes of a segment; the last one may have fewer.
    size: usize,
    /// TCP flags that later segments keep.
    later_flags: u8,
    /// Payload not yet returned.
    rest: Range<usize>,
    /// Number of the next segment; `None` if all have been returned.
    next: Option<u32>,
}

/// Offsets within the headers.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    ip: usize,
    is_inet: bool,
    transport: usize,
    is_tcp: bool,
    /// Length of all headers.
    headers: usize,
    /// End of the packet.
    end: usize,
}

impl Default for Segmenter {
    fn default() -> Segmenter {
        Segmenter::new()
    }
}

impl Segmenter {
    /// Creates a segmenter without a packet.
    pub fn new() -> Segmenter {
        Segmenter {
            bytes: vec![0; MERGED_MAX].into_boxed_slice(),
            headers: Vec::new(),
            layout: Layout::default(),
            size: 0,
            later_flags: 0,
            rest: 0..0,
            next: None,
        }
    }

    /// Returns the buffer for the next packet. Discards segments of the previous one.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.next = None;
        &mut self.bytes
    }

    /// True if no segments are left.
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    /// Begins to cut the packet at `place` of the buffer. Returns false, without segments, if the
    /// packet is malformed, not supported, or different from its offload header.
    pub fn begin(&mut self, place: Range<usize>, merged: Merged) -> bool {
        self.next = None;
        let size = merged.size;
        let Some(frame) = self.bytes.get(place.clone()).filter(|_| size > 0) else { return false };
        let layout = Layout::parse(frame).filter(|layout| layout.fits(merged));
        let Some(layout) = layout else { return false };
        self.headers.clear();
        self.headers.extend_from_slice(&frame[..layout.headers]);
        self.rest = place.start + layout.headers..place.start + layout.end;
        self.later_flags = if merged.clears_cwr { !CWR } else { 0xff };
        (self.layout, self.size, self.next) = (layout, size.into(), Some(0));
        true
    }

    /// Returns the next segment, with complete checksums; `None` if all have been returned.
    pub fn next_segment(&mut self) -> Option<&[u8]> {
        let number = self.next?;
        let take = self.size.min(self.rest.len());
        let payload = self.rest.start;
        self.rest.start += take;
        let is_last = self.rest.is_empty();
        self.next = if is_last { None } else { Some(number + 1) };
        // The headers replace the end of the previous segment, which was returned before.
        let begin = payload - self.headers.len();
        self.bytes[begin..payload].copy_from_slice(&self.headers);
        let segment = &mut self.bytes[begin..payload + take];
        self.layout.write(segment, (number, is_last), (self.size, self.later_flags));
        Some(segment)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

impl Layout {
    fn parse(frame: &[u8]) -> Option<Layout> {
        let mut ip = ETHERNET;
        while matches!(half(frame, ip - 2)?, 0x8100 | 0x88a8) && ip < ETHERNET + 2 * TAG {
            ip += TAG;
        }
        let is_inet = half(frame, ip - 2)? == 0x0800;
        let (protocol, transport, end) = match half(frame, ip - 2)? {
            0x0800 => {
                let header = usize::from(frame.get(ip)? & 15) * 4;
                let is_fragment = half(frame, ip + 6)? & 0x3fff != 0;
                if frame[ip] >> 4 != 4 || header < 20 || is_fragment {
                    return None;
                }
                (*frame.get(ip + 9)?, ip + header, ip + usize::from(half(frame, ip + 2)?))
            }
            0x86dd if frame.get(ip)? >> 4 == 6 => {
                let (mut next, mut at) = (*frame.get(ip + 6)?, ip + IPV6);
                // Hop-by-hop and destination options.
                while matches!(next, 0 | 60) {
                    let length = usize::from(*frame.get(at + 1)?) * 8 + 8;
                    (next, at) = (frame[at], at + length);
                }
                (next, at, ip + IPV6 + usize::from(half(frame, ip + 4)?))
            }
            _ => return None,
        };
        let is_tcp = protocol == TCP;
        let header = match protocol {
            TCP => usize::from(frame.get(transport + 12)? >> 4) * 4,
            UDP => UDP_HEADER,
            _ => return None,
        };
        let headers = transport + header;
        let is_valid = (!is_tcp || header >= 20) && headers <= end && end <= frame.len();
        is_valid.then_some(Layout { ip, is_inet, transport, is_tcp, headers, end })
    }

    /// True if the outermost headers are the headers that the offload header describes.
    fn fits(&self, merged: Merged) -> bool {
        let is_kind = match merged.kind {
            MergedKind::Tcp4 => self.is_tcp && self.is_inet,
            MergedKind::Tcp6 => self.is_tcp && !self.is_inet,
            MergedKind::Udp => !self.is_tcp,
        };
        is_kind && merged.transport.is_none_or(|transport| transport == self.transport)
    }

    /// Turns the headers of the merged packet into the headers of a segment.
    fn write(
        self,
        segment: &mut [u8],
        (number, is_last): (u32, bool),
        (size, later_flags): (usize, u8),
    ) {
        let Layout { ip, transport, .. } = self;
        let length = segment.len() - transport;
        let (pseudo, protocol) = if self.is_inet {
            put(segment, ip + 2, (segment.len() - ip) as u16);
            let id = u16::from_be_bytes([segment[ip + 4], segment[ip + 5]]);
            put(segment, ip + 4, id.wrapping_add(number as u16));
            put(segment, ip + 10, 0);
            let check = checksum::finish(checksum::add(0, &segment[ip..transport]));
            segment[ip + 10..ip + 12].copy_from_slice(&check);
            (checksum::add(0, &segment[ip + 12..ip + 20]), segment[ip + 9])
        } else {
            put(segment, ip + 4, (segment.len() - ip - IPV6) as u16);
            let protocol = if self.is_tcp { TCP } else { UDP };
            (checksum::add(0, &segment[ip + 8..ip + IPV6]), protocol)
        };
        let field = if self.is_tcp {
            let at = transport + 4;
            let before = segment[at..].first_chunk().copied().map_or(0, u32::from_be_bytes);
            let sequence = before.wrapping_add(number.wrapping_mul(size as u32));
            segment[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut segment[transport + 13];
            *flags &= if is_last { 0xff } else { !(FIN | PSH) };
            *flags &= if number == 0 { 0xff } else { later_flags };
            transport + 16
        } else {
            put(segment, transport + 4, length as u16);
            transport + 6
        };
        segment[field..field + 2].fill(0);
        let pseudo = checksum::add(pseudo, &(length as u32).to_be_bytes());
        let pseudo = checksum::add(pseudo, &[0, protocol]);
        let check = checksum::finish(checksum::add(pseudo, &segment[transport..]));
        // 0 means that there is no checksum (RFC 768).
        let check = if !self.is_tcp && check == [0, 0] { [0xff; 2] } else { check };
        segment[field..field + 2].copy_from_slice(&check);
    }
}

#[cfg(test)]
mod tests;
