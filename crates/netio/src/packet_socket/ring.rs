//! The receive ring of a packet socket (TPACKET_V2): slots that the kernel fills one after the
//! other.
//!
//! Kernels without "net/packet: clear RX owner on VNET header error" stop filling the ring at a
//! frame whose offload header they cannot write: merged SCTP, UDP fragments from a tap, merged UDP
//! before Linux 6.2. The slot stays reserved, and the kernel drops all later frames until the ring
//! is a new one. [`StallDetector`] finds this.

use super::socket::{Mapping, set_option};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Size of a block of slots, for which the kernel needs contiguous pages.
const BLOCK_BYTES: usize = 1 << 16;

/// Number of slots, and bytes of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub(super) count: usize,
    pub(super) bytes: usize,
    /// Longest frame.
    pub(super) longest: usize,
}

/// A ring in use.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Mapping,
    slots: Slots,
    /// Next slot to be filled.
    next: usize,
}

impl Ring {
    /// Creates the ring of a socket without one.
    pub(super) fn new(socket: &OwnedFd, slots: Slots) -> io::Result<Ring> {
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (slots.count * slots.bytes / BLOCK_BYTES) as u32,
            tp_frame_size: slots.bytes as u32,
            tp_frame_nr: slots.count as u32,
        };
        set_option(socket, libc::PACKET_RX_RING, &request)?;
        let memory = Mapping::new(socket, slots.count * slots.bytes)?;
        Ok(Ring { memory, slots, next: 0 })
    }

    /// Removes the ring of a socket, if it has one; it must not be mapped.
    pub(super) fn remove(socket: &OwnedFd) -> io::Result<()> {
        // SAFETY: an all-zero request is valid: it requests no slots.
        let nothing: libc::tpacket_req = unsafe { std::mem::zeroed() };
        set_option(socket, libc::PACKET_RX_RING, &nothing)
    }

    /// Replaces the ring by a new one; this needs no rights.
    ///
    /// Frames that arrive during the call are lost without being counted. The kernel moves the socket to
    /// the end of its fanout group, so that some flows change their worker.
    pub(super) fn renew(&mut self, socket: &OwnedFd) -> io::Result<()> {
        self.memory.unmap();
        Ring::remove(socket)?;
        *self = Ring::new(socket, self.slots)?;
        Ok(())
    }

    pub(super) fn slots(&self) -> Slots {
        self.slots
    }

    /// Returns a pointer to the byte at `offset` of the next slot to be filled.
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        self.memory.at(self.next * self.slots.bytes + offset)
    }

    /// Returns the first word of the slot's header: its owner, kernel or program.
    fn owner(&self) -> &AtomicU32 {
        // SAFETY: the slot is inside the mapping, page-aligned or at a multiple of its size; the
        // kernel writes the word whole, so both sides access it atomically.
        unsafe { &*self.at(0).cast_const().cast() }
    }

    /// Returns the slot's status; `None` if the kernel has not filled it yet.
    pub(super) fn status(&self) -> Option<u32> {
        let status = self.owner().load(Ordering::Acquire);
        (status & libc::TP_STATUS_USER != 0).then_some(status)
    }

    /// Returns the slot to the kernel.
    pub(super) fn advance(&mut self) {
        self.owner().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots.count;
    }
}

/// Receives without frames between two checks of a busy worker.
const EMPTY_RECEIVES: u32 = 1024;
/// Minimum time between two new rings, doubled as long as no frame arrives: a kernel with the fix
/// drops frames as well, and then a new ring only costs time.
const MIN_PAUSE_NS: u64 = Duration::from_millis(100).as_nanos() as u64;
const MAX_PAUSE_NS: u64 = 32 * MIN_PAUSE_NS;

/// Detects a ring that the kernel has stopped filling: it drops frames at two checks although the
/// ring is empty.
#[derive(Debug)]
pub(super) struct StallDetector {
    /// Receives without frames since the last frame or check.
    empty: u32,
    /// Frames dropped since the last frame or check.
    drops: u64,
    /// A check has found drops, and no frame has arrived since.
    is_suspect: bool,
    /// Earliest time of the next new ring.
    earliest_ns: u64,
    pause_ns: u64,
}

impl StallDetector {
    pub(super) fn new() -> StallDetector {
        let pause_ns = MIN_PAUSE_NS;
        StallDetector { empty: 0, drops: 0, is_suspect: false, earliest_ns: 0, pause_ns }
    }

    /// Records that the ring had frames.
    #[inline]
    pub(super) fn note_frames(&mut self) {
        (self.empty, self.drops, self.is_suspect) = (0, 0, false);
        self.pause_ns = MIN_PAUSE_NS;
    }

    /// Records an empty ring; returns true if a check is due.
    #[inline]
    pub(super) fn note_empty(&mut self) -> bool {
        self.empty += 1;
        self.empty >= EMPTY_RECEIVES
    }

    /// Records frames that the kernel has dropped.
    pub(super) fn note_drops(&mut self, drops: u64) {
        self.drops += drops;
    }

    /// Checks an empty ring; true if it needs to be a new one.
    pub(super) fn is_stalled(&mut self, now_ns: u64) -> bool {
        self.empty = 0;
        if std::mem::take(&mut self.drops) == 0 {
            return false;
        }
        // The first drops may be older than the last frame: then the ring was full.
        if !std::mem::replace(&mut self.is_suspect, true) || now_ns < self.earliest_ns {
            return false;
        }
        self.is_suspect = false;
        self.earliest_ns = now_ns.saturating_add(self.pause_ns);
        self.pause_ns = (2 * self.pause_ns).min(MAX_PAUSE_NS);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detector_needs_drops_at_two_checks_without_frames_between() {
        let mut detector = StallDetector::new();
        assert!(!detector.is_stalled(0));
        detector.note_drops(9);
        assert!(!detector.is_stalled(0));
        // No drops, no evidence: neither for nor against.
        assert!(!detector.is_stalled(0));
        // A frame refutes.
        detector.note_drops(1);
        detector.note_frames();
        assert!(!detector.is_stalled(0));
        detector.note_drops(1);
        assert!(!detector.is_stalled(0));
        assert!(!detector.is_stalled(0));
        detector.note_drops(1);
        assert!(detector.is_stalled(0));
    }

    #[test]
    fn detector_limits_rate_of_new_rings() {
        let mut detector = StallDetector::new();
        let mut new_rings = |times: std::ops::Range<u64>, has_frames: bool| {
            let is_stalled = |ms: &u64| {
                if has_frames {
                    detector.note_frames();
                }
                (0..2).any(|_| {
                    detector.note_drops(1);
                    detector.is_stalled(ms * 1_000_000)
                })
            };
            times.filter(is_stalled).collect::<Vec<u64>>()
        };
        assert_eq!(new_rings(0..800, false), [0, 100, 300, 700]);
        assert_eq!(new_rings(1500..1800, true), [1500, 1600, 1700]);
        let times = new_rings(100_000..120_000, false);
        assert_eq!(times[..5], [100_000, 100_100, 100_300, 100_700, 101_500]);
        assert!(times[6..].windows(2).all(|pair| pair[1] - pair[0] == 3200));
    }

    #[test]
    fn detector_checks_after_many_empty_receives() {
        let mut detector = StallDetector::new();
        let mut due = || (0..).find(|_| detector.note_empty());
        assert_eq!(due(), Some(EMPTY_RECEIVES - 1));
        detector.note_frames();
        assert!(!detector.note_empty());
        detector.empty = EMPTY_RECEIVES - 1;
        assert!(detector.note_empty());
        assert!(!detector.is_stalled(0) && !detector.note_empty());
    }
}
