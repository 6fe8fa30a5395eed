//! Work that stacks leave to devices, as described by the header before each frame of a packet
//! socket with PACKET_VNET_HDR (`struct virtio_net_hdr`).
//!
//! On a veth or tap there is no device: frames arrive without checksums, and TCP segments and UDP
//! datagrams arrive merged, up to 64 kB long. Network cards and the kernel merge them as well (LRO,
//! GRO). The port cuts them before the router sees them.

use super::socket::set_option;
use fwdlab_packet::segments::{MERGED_MAX, Merged, MergedKind, Segmenter};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = size_of::<OffloadHeader>();

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// A flag: only the first segment keeps CWR.
const GSO_ECN: u8 = 0x80;

/// `struct virtio_net_hdr`, in the machine's byte order.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct OffloadHeader {
    flags: u8,
    gso_type: u8,
    _header_length: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl OffloadHeader {
    /// True if the frame is merged.
    pub(super) fn is_merged(self) -> bool {
        self.gso_type != 0
    }

    /// Description of a merged frame; `None` if the frame is not merged, or in an unknown way.
    pub(super) fn merged(self) -> Option<Merged> {
        let kind = match self.gso_type & !GSO_ECN {
            GSO_TCPV4 => MergedKind::Tcp4,
            GSO_TCPV6 => MergedKind::Tcp6,
            GSO_UDP_L4 => MergedKind::Udp,
            _ => return None,
        };
        let transport = self.incomplete_checksum().map(|(start, _)| start);
        let clears_cwr = self.gso_type & GSO_ECN != 0;
        Some(Merged { kind, size: self.gso_size, transport, clears_cwr })
    }

    /// First byte that an incomplete checksum covers, and the offset of its field from there.
    pub(super) fn incomplete_checksum(self) -> Option<(usize, usize)> {
        let place = (self.csum_start.into(), self.csum_offset.into());
        (self.flags & NEEDS_CSUM != 0).then_some(place)
    }
}

/// Requests the headers, and a queue for frames that exceed a slot. Call this before the ring
/// exists.
pub(super) fn request(socket: &OwnedFd) -> io::Result<()> {
    set_option(socket, libc::PACKET_VNET_HDR, &1i32)?;
    set_option(socket, libc::PACKET_COPY_THRESH, &1i32)
}

/// Bytes of a tag, and of the addresses before it.
const TAG_BYTES: usize = 4;
const MAC_BYTES: usize = 12;

/// A merged frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergedFrame {
    /// Its length.
    pub(super) length: usize,
    /// Its description, without the tag.
    pub(super) merged: Merged,
    /// Tag that the kernel removed.
    pub(super) tag: Option<[u8; TAG_BYTES]>,
}

/// Cuts merged frames.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    segmenter: Segmenter,
}

impl Cutter {
    /// True if no segments are left.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.segmenter.is_empty()
    }

    /// Returns the next segment.
    pub(super) fn next_segment(&mut self) -> Option<&[u8]> {
        self.segmenter.next_segment()
    }

    /// Cuts a frame that is in a slot; false if that is impossible.
    #[cold]
    pub(super) fn cut(&mut self, bytes: &[u8], merged: MergedFrame) -> bool {
        let place = self.segmenter.buffer_mut().get_mut(TAG_BYTES..TAG_BYTES + bytes.len());
        let Some(place) = place else { return false };
        place.copy_from_slice(bytes);
        self.begin(merged)
    }

    /// Cuts the next frame in the queue; false if that is impossible.
    #[cold]
    pub(super) fn cut_queued(
        &mut self,
        socket: &OwnedFd,
        merged: MergedFrame,
        failure: &mut Option<Errno>,
    ) -> bool {
        let place = &mut self.segmenter.buffer_mut()[TAG_BYTES..];
        let is_complete = dequeue(socket, merged.length, place, failure);
        is_complete && self.begin(merged)
    }

    fn begin(&mut self, MergedFrame { length, merged, tag }: MergedFrame) -> bool {
        let Some(tag) = tag else {
            return self.segmenter.begin(TAG_BYTES..TAG_BYTES + length, merged);
        };
        let buffer = self.segmenter.buffer_mut();
        buffer.copy_within(TAG_BYTES..TAG_BYTES + MAC_BYTES, 0);
        buffer[MAC_BYTES..MAC_BYTES + TAG_BYTES].copy_from_slice(&tag);
        let transport = merged.transport.map(|transport| transport + TAG_BYTES);
        self.segmenter.begin(0..TAG_BYTES + length, Merged { transport, ..merged })
    }
}

/// Takes the frame with this length out of the queue. Discards frames before it, which have lost
/// their slots. Returns true if the whole frame is in `buffer`.
///
/// `failure` becomes the error that the socket reports, which nothing else reports again.
pub(super) fn dequeue(
    socket: &OwnedFd,
    length: usize,
    buffer: &mut [u8],
    failure: &mut Option<Errno>,
) -> bool {
    let mut header = [0; HEADER_BYTES];
    let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
    // An interface that is down reports it once, before the frames.
    let mut failures = 0..1;
    loop {
        let parts = &mut [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        match recvmsg(socket, parts, &mut RecvAncillaryBuffer::default(), flags) {
            Ok(message) if message.bytes == HEADER_BYTES + length => return length <= buffer.len(),
            Ok(_) => {}
            Err(error) if error != Errno::AGAIN && failures.next().is_some() => {
                *failure = Some(error);
            }
            Err(_) => return false,
        }
    }
}

const _: () = assert!(HEADER_BYTES == 10 && MERGED_MAX > 65_535);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_merged_in_unknown_ways_have_no_description() {
        for gso_type in 0..=u8::MAX {
            let header = OffloadHeader { gso_type, ..OffloadHeader::default() };
            let is_known = matches!(gso_type & !GSO_ECN, GSO_TCPV4 | GSO_TCPV6 | GSO_UDP_L4);
            let expected = (gso_type != 0, is_known);
            assert_eq!((header.is_merged(), header.merged().is_some()), expected, "{gso_type}");
        }
    }

    #[test]
    fn merged_reports_kind_and_treatment_of_cwr() {
        let merged = |gso_type| OffloadHeader { gso_type, ..OffloadHeader::default() }.merged();
        let kinds = [
            (GSO_TCPV4, MergedKind::Tcp4),
            (GSO_TCPV6, MergedKind::Tcp6),
            (GSO_UDP_L4, MergedKind::Udp),
        ];
        for (gso_type, kind) in kinds {
            for flag in [0, GSO_ECN] {
                let merged = merged(gso_type | flag).expect("supported");
                assert_eq!((merged.kind, merged.clears_cwr), (kind, flag != 0));
            }
        }
    }
}
