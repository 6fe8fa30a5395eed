//! A router's port on an interface, by packet sockets.
//!
//! Receives from a ring of slots (TPACKET_V2). Blocks of frames (TPACKET_V3) would save memory, but
//! a timer of whole milliseconds hands over partly filled blocks, and at low rates that delay would
//! dominate the measurement. `recvmmsg` costs a system call per batch, and a control message for
//! each frame that had a VLAN tag.
//!
//! A packet socket receives a copy: the kernel's stack processes every frame as well. The caller
//! must make sure that the kernel neither forwards nor answers on that interface (no address,
//! `ip_forward` 0, or an nftables hook `ingress` that drops).
//!
//! Merged frames, which exceed a slot, wait in the socket's queue (PACKET_COPY_THRESH) while their
//! slots keep the order ([`super::offload`]).

use super::offload::{self, Cutter, HEADER_BYTES, MergedFrame, OffloadHeader};
use super::outbox::Outbox;
use super::ring::{Ring, Slots, StallDetector};
use super::socket::{
    attach_filter, bind_at, bypass_queueing, detach_filter, enlarge_buffers, instruction,
    open_socket, set_option, take_drops,
};
use crate::frame::{BATCH, Batch, CAPACITY, Frame, LONGEST};
use crate::poll::{Wakers, Woken, check_error, clear_error};
use crate::port::{Port, Sent};
use crate::xdp::interface_index;
use crate::{NetioError, clock};
use fwdlab_packet::checksum;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Holds 2 ms of 2 million frames a second.
const SLOTS: Slots = Slots { count: 4096, bytes: 2048, longest: CAPACITY };
/// For links with long frames: 32 MiB.
const LONG_SLOTS: Slots = Slots { count: 2048, bytes: 16_384, longest: LONGEST };
/// Bytes of a slot before the frame.
const SLOT_HEADERS: usize = libc::TPACKET2_HDRLEN + HEADER_BYTES + 32;

const _: () = assert!(SLOTS.longest + SLOT_HEADERS <= SLOTS.bytes);
const _: () = assert!(LONGEST + SLOT_HEADERS <= LONG_SLOTS.bytes);
/// Bytes of a frame besides its IP packet: Ethernet header and two tags.
const HEADERS: usize = 14 + 2 * TAG_BYTES;

/// A port on an interface.
#[derive(Clone, Debug)]
pub struct PacketConfig {
    /// Interface, in the calling thread's namespace.
    pub interface: String,
    /// Number of the port.
    pub number: u8,
    /// Group that spreads the interface's frames by flow (PACKET_FANOUT_HASH): for several workers,
    /// each with its own port in the same group. Group numbers belong to the network namespace, not
    /// to the interface.
    pub fanout: Option<u16>,
}

/// The index of one of several ports on an interface, each of which gets some of the flows.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Index of this port, from 0.
    pub own: u32,
    /// Number of ports.
    pub all: u32,
}

impl Share {
    /// Returns a filter for frames whose flow hash (computed by the kernel or the device) selects
    /// this port. Frames without a hash go to the first port.
    fn program(self) -> [libc::sock_filter; 5] {
        let number = (libc::SKF_AD_OFF + libc::SKF_AD_RXHASH) as u32;
        [
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number),
            instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, 0, self.all.max(1)),
            instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, self.own),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
            instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ]
    }
}

fn slots_for(mtu: u16) -> Slots {
    if usize::from(mtu) + HEADERS <= CAPACITY { SLOTS } else { LONG_SLOTS }
}

/// A port on an interface, by packet sockets.
///
/// VLAN tags that the kernel removed from received frames are restored. Merged TCP segments and UDP
/// datagrams are cut.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    number: u8,
    index: u32,
    ring: Ring,
    detector: StallDetector,
    cutter: Cutter,
    outbox: Outbox,
    missed: u64,
    /// Error that the socket reported with a frame of the queue.
    failure: Option<Errno>,
    /// Counts completed checksums that a stack had left to a device; `None` if they are not
    /// completed.
    completed: Option<Arc<AtomicU64>>,
}

impl PacketPort {
    /// Completes checksums that a stack on this machine has left to a nonexistent device: the
    /// kernel marks such frames. Counts them in `completed`. Cut frames always have checksums.
    pub fn completing(self, completed: Arc<AtomicU64>) -> PacketPort {
        PacketPort { completed: Some(completed), ..self }
    }

    /// Opens the port, for frames of an MTU of 1500.
    ///
    /// # Errors
    /// As [`PacketPort::open_for`].
    pub fn open(config: &PacketConfig) -> Result<PacketPort, NetioError> {
        PacketPort::open_for(config, 1500)
    }

    /// Opens the port, for frames with IP packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or if the interface is missing, the kernel refuses the ring's memory,
    /// or the fanout group belongs to sockets of another kind.
    pub fn open_for(config: &PacketConfig, mtu: u16) -> Result<PacketPort, NetioError> {
        let slots = slots_for(mtu);
        let interface = config.interface.as_str();
        let socket = open_socket(interface)?;
        enlarge_buffers(&socket);
        PacketPort::on(socket, config, interface_index(interface)?, slots, None)
    }

    /// Opens the port with an existing socket, which has large buffers and which another port may
    /// have used before, on an interface with a known index.
    pub(super) fn again(
        socket: OwnedFd,
        config: &PacketConfig,
        index: u32,
        mtu: u16,
        share: Option<Share>,
    ) -> Result<PacketPort, NetioError> {
        let failed = |what: &str| {
            let what = format!("{what} of a packet port on {}", config.interface);
            move |e: io::Error| NetioError::system(what, e)
        };
        Ring::remove(&socket).map_err(failed("old ring"))?;
        PacketPort::on(socket, config, index, slots_for(mtu), share)
    }

    fn on(
        socket: OwnedFd,
        config: &PacketConfig,
        index: u32,
        slots: Slots,
        share: Option<Share>,
    ) -> Result<PacketPort, NetioError> {
        let interface = config.interface.as_str();
        let failed = |what: &str| {
            let what = format!("{what} of a packet port on {interface}");
            move |e: io::Error| NetioError::system(what, e)
        };
        bypass_queueing(&socket)?;
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(failed("deafness to its own frames"))?;
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))
            .map_err(failed("ring version"))?;
        offload::request(&socket).map_err(failed("offload headers"))?;
        let ring = Ring::new(&socket, slots).map_err(failed("ring"))?;
        // Only a bound socket may join a group; until then it would receive frames that belong to
        // the other ports.
        let nothing = [instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0)];
        attach_filter(&socket, &nothing).map_err(failed("filter"))?;
        bind_at(&socket, interface, index, libc::ETH_P_ALL as u16)?;
        if let Some(group) = config.fanout {
            let argument = libc::PACKET_FANOUT_HASH << 16 | u32::from(group);
            set_option(&socket, libc::PACKET_FANOUT, &argument).map_err(failed("fanout group"))?;
        }
        match share {
            Some(share) => attach_filter(&socket, &share.program()),
            None => detach_filter(&socket),
        }
        .map_err(failed("filter"))?;
        Ok(PacketPort {
            socket,
            number: config.number,
            index,
            ring,
            detector: StallDetector::new(),
            cutter: Cutter::default(),
            outbox: Outbox::new(),
            missed: 0,
            failure: None,
            completed: None,
        })
    }

    /// Takes the slot's frame.
    fn take(&mut self, status: u32, frame: &mut Frame) -> Taken {
        // SAFETY: the kernel has handed the slot over with that status and does not touch it until
        // it is returned.
        let header = unsafe { self.ring.at(0).cast::<libc::tpacket2_hdr>().read() };
        let (begin, length) = (usize::from(header.tp_mac), header.tp_len as usize);
        let there = header.tp_snaplen as usize;
        if begin < HEADER_BYTES || begin + there > self.ring.slots().bytes {
            return Taken::Lost;
        }
        let address = self.ring.at(begin - HEADER_BYTES);
        // SAFETY: inside the slot, as just checked, which the program owns for now; any bytes are a
        // header.
        let offload = unsafe { address.cast::<OffloadHeader>().read_unaligned() };
        let address = address.wrapping_add(HEADER_BYTES);
        // SAFETY: likewise.
        let bytes = unsafe { std::slice::from_raw_parts(address, there) };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let has_kind = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let kind = if has_kind { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
            let ([a, b], [c, d]) = (kind.to_be_bytes(), header.tp_vlan_tci.to_be_bytes());
            [a, b, c, d]
        });
        if let Some(merged) = offload.merged() {
            let merged = MergedFrame { length, merged, tag };
            let is_cut = match status & libc::TP_STATUS_COPY != 0 {
                true => self.cutter.cut_queued(&self.socket, merged, &mut self.failure),
                false => there == length && self.cutter.cut(bytes, merged),
            };
            if is_cut && offload.incomplete_checksum().is_some() {
                self.count_completed();
            }
            return if is_cut { Taken::Segments } else { Taken::Lost };
        }
        if status & libc::TP_STATUS_COPY != 0 {
            // It exceeds a slot.
            offload::dequeue(&self.socket, length, &mut [], &mut self.failure);
            return Taken::Lost;
        }
        let total = length + tag.map_or(0, |tag| tag.len());
        let is_whole =
            !offload.is_merged() && there == length && total <= self.ring.slots().longest;
        if !is_whole || frame.receive(self.number, bytes).is_err() {
            return Taken::Lost;
        }
        if let Some(place) = offload.incomplete_checksum() {
            self.complete(frame, place);
        }
        match tag.filter(|_| length >= MAC_BYTES) {
            Some(tag) if !put_tag_back(frame, tag) => Taken::Lost,
            _ => Taken::Frame,
        }
    }
}

/// Result of taking a slot's frame.
enum Taken {
    Frame,
    /// It was merged; the segments are pending.
    Segments,
    /// It is too long, or merged and cannot be cut.
    Lost,
}

impl PacketPort {
    #[cold]
    fn complete(&self, frame: &mut Frame, (start, offset): (usize, usize)) {
        if self.completed.is_some()
            && frame.edit(|bytes| checksum::complete_at(bytes, start, offset))
        {
            self.count_completed();
        }
    }

    fn count_drops(&mut self) {
        let drops = take_drops(&self.socket);
        self.missed += drops;
        self.detector.note_drops(drops);
    }

    /// Creates a new ring if the kernel has stopped filling this one.
    #[cold]
    fn check_ring(&mut self) -> Result<(), NetioError> {
        self.count_drops();
        if self.ring.status().is_some() || !self.detector.is_stalled(clock::monotonic_ns()) {
            return Ok(());
        }
        let failed = |e| NetioError::system(format!("new ring at interface {}", self.index), e);
        self.ring.renew(&self.socket).map_err(failed)
    }

    /// Checks whether the interface is gone, if the socket has reported an error.
    fn check_failure(&mut self) -> Result<(), NetioError> {
        let failure = self.failure.take();
        failure.map_or(Ok(()), |error| check_error(&self.socket, self.index, error))
    }

    fn count_completed(&self) {
        if let Some(completed) = &self.completed {
            completed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

const TAG_BYTES: usize = 4;
/// Bytes of both MAC addresses, which precede a tag.
const MAC_BYTES: usize = 12;

/// Restores the tag that the kernel removed; false if the frame becomes too long.
fn put_tag_back(frame: &mut Frame, tag: [u8; TAG_BYTES]) -> bool {
    let length = frame.len();
    if length + TAG_BYTES > CAPACITY {
        let whole = frame.whole();
        let (addresses, rest) = whole.split_at(MAC_BYTES);
        let whole = [addresses, &tag, rest].concat();
        return frame.receive(frame.ingress(), &whole).is_ok();
    }
    let buffer = frame.buffer_mut();
    buffer.copy_within(MAC_BYTES..length, MAC_BYTES + TAG_BYTES);
    buffer[MAC_BYTES..MAC_BYTES + TAG_BYTES].copy_from_slice(&tag);
    frame.set_len(length + TAG_BYTES);
    true
}

impl Port for PacketPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let (frames, mut count) = (batch.fill(BATCH), 0);
        let mut is_empty = true;
        while count < frames.len() {
            if let Some(segment) = self.cutter.next_segment() {
                match frames[count].receive(self.number, segment) {
                    Ok(()) => count += 1,
                    Err(_) => self.missed += 1,
                }
                continue;
            }
            let Some(status) = self.ring.status() else { break };
            is_empty = false;
            match self.take(status, &mut frames[count]) {
                Taken::Frame => count += 1,
                Taken::Segments => {}
                Taken::Lost => self.missed += 1,
            }
            self.ring.advance();
        }
        batch.fill(count);
        if !is_empty {
            self.detector.note_frames();
        } else if self.detector.note_empty() {
            self.check_ring()?;
        }
        if count == 0 {
            self.check_failure()?;
        }
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        self.outbox.send(&self.socket, self.number, batch.frames())
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        if self.ring.status().is_some() || !self.cutter.is_empty() {
            wakers.ready();
            return Ok(());
        }
        self.check_failure()?;
        wakers.add(self.socket.as_fd());
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        match woken {
            Woken::Failing => clear_error(&self.socket, self.index),
            // A ring that is not filled any more wakes no thread.
            Woken::InVain => self.check_ring(),
            Woken::Here | Woken::Elsewhere => Ok(()),
        }
    }

    /// Returns the number of frames without a free slot, and of frames longer than a slot.
    fn missed(&mut self) -> u64 {
        self.count_drops();
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_tag_back_inserts_tag_after_addresses() {
        for length in [60, CAPACITY - 4, CAPACITY - 3, CAPACITY + 9, LONGEST - 4] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut frame = Frame::of(4, &bytes).expect("it fits");
            assert!(put_tag_back(&mut frame, [0x88, 0xa8, 0x20, 0x64]));
            let whole = frame.whole();
            assert_eq!((whole.len(), frame.ingress(), frame.egress()), (length + 4, 4, None));
            assert_eq!(whole[12..16], [0x88, 0xa8, 0x20, 0x64]);
            assert_eq!((&whole[..12], &whole[16..]), bytes.split_at(12));
        }
        let mut frame = Frame::of(4, &[0; LONGEST - 3]).expect("it fits");
        assert!(!put_tag_back(&mut frame, [0x81, 0, 0, 1]));
    }
}
