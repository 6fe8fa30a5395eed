//! A router's port on an interface, by packet sockets.
//!
//! Receives from a ring of slots (TPACKET_V2). Blocks of frames (TPACKET_V3) would save memory, but
//! a timer of whole milliseconds hands over partly filled blocks, and at low rates that delay would
//! dominate the measurement. `recvmmsg` costs a system call per batch, and a control message for
//! each frame that had a VLAN tag.
//!
//! A packet socket receives a copy: the kernel's stack processes every frame as well. The caller
//! must make sure that the kernel neither forwards nor answers on that interface (no address,
//! `ip_forward` 0, or an nftables hook `ingress` that drops). Frames from the local stack through a
//! veth may be merged and lack checksums: `ethtool -K NAME tx off gro off` at both ends prevents
//! that.

use super::socket::{
    Mapping, attach_filter, bind_at, bypass_queueing, detach_filter, enlarge_send_buffer,
    instruction, join, open_socket, set_option, take_drops,
};
use crate::NetioError;
use crate::frame::{BATCH, Batch, CAPACITY, Frame, LONGEST};
use crate::poll::{Wakers, Woken, clear_error};
use crate::port::{Port, Sent};
use crate::xdp::interface_index;
use fwdlab_packet::checksum;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots of the receive ring, and bytes of each: the longest frame with its tag and the header that
/// the kernel writes before it.
#[derive(Clone, Copy, Debug)]
struct Slots {
    count: usize,
    bytes: usize,
    /// Longest frame.
    longest: usize,
}

/// Holds 2 ms of 2 million frames a second.
const SLOTS: Slots = Slots { count: 4096, bytes: 2048, longest: CAPACITY };
/// For links with long frames: 32 MiB.
const LONG_SLOTS: Slots = Slots { count: 2048, bytes: 16_384, longest: LONGEST };
/// Size of a block of slots, for which the kernel needs contiguous pages.
const BLOCK_BYTES: usize = 1 << 16;
/// Bytes of the send buffer; the default is 200 kB, which some hundred frames fill.
const SEND_BUFFER: i32 = 8 << 20;

const _: () = assert!(SLOTS.longest + libc::TPACKET2_HDRLEN + 32 <= SLOTS.bytes);
const _: () = assert!(LONGEST + libc::TPACKET2_HDRLEN + 32 <= LONG_SLOTS.bytes);
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
/// VLAN tags that the kernel removed from received frames are restored.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    number: u8,
    index: u32,
    memory: Mapping,
    slots: Slots,
    /// Next slot to be filled.
    next: usize,
    outbox: Outbox,
    missed: u64,
    /// Counts completed checksums that a stack had left to a device; `None` if they are not
    /// completed.
    completed: Option<Arc<AtomicU64>>,
}

impl PacketPort {
    /// Completes TCP and UDP checksums that a stack on this machine has left to a nonexistent
    /// device: the kernel marks such frames (`TP_STATUS_CSUMNOTREADY`). Counts them in `completed`.
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
        PacketPort::on(socket, config, interface_index(interface)?, slots, None)
    }

    /// Opens the port with an existing socket, which another port may have used before, on an
    /// interface with a known index.
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
        // No slots: the old ring is useless now.
        // SAFETY: an all-zero request is valid: it requests nothing.
        let nothing: libc::tpacket_req = unsafe { std::mem::zeroed() };
        set_option(&socket, libc::PACKET_RX_RING, &nothing).map_err(failed("old ring"))?;
        // Other stations that know the router's previous MAC send to it.
        for kind in [libc::PACKET_MR_ALLMULTI, libc::PACKET_MR_PROMISC] {
            join(&socket, index, kind).map_err(failed("groups"))?;
        }
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
        enlarge_send_buffer(&socket, SEND_BUFFER);
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(failed("deafness to its own frames"))?;
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))
            .map_err(failed("ring version"))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (slots.count * slots.bytes / BLOCK_BYTES) as u32,
            tp_frame_size: slots.bytes as u32,
            tp_frame_nr: slots.count as u32,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request).map_err(failed("ring"))?;
        let memory = Mapping::new(&socket, slots.count * slots.bytes);
        let memory = memory.map_err(failed("ring mapping"))?;
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
            memory,
            slots,
            next: 0,
            outbox: Outbox::new(),
            missed: 0,
            completed: None,
        })
    }

    /// Returns the header of the next slot to be filled.
    fn slot(&self) -> *const libc::tpacket2_hdr {
        self.memory.at(self.next * self.slots.bytes).cast_const().cast()
    }

    /// Returns the first word of the slot's header: its owner, kernel or program.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the slot is inside the mapping, page-aligned or at a multiple of its size; the
        // kernel writes the word whole, so both sides access it atomically.
        unsafe { &*self.slot().cast() }
    }

    /// Copies the slot's frame; false if it is too long.
    fn take(&self, status: u32, frame: &mut Frame) -> bool {
        // SAFETY: the kernel has handed the slot over with that status and does not touch it until
        // it is returned.
        let header = unsafe { self.slot().read() };
        let (begin, length) = (usize::from(header.tp_mac), header.tp_len as usize);
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let total = length + if tagged { TAG_BYTES } else { 0 };
        let is_cut = header.tp_snaplen < header.tp_len;
        if total > self.slots.longest || begin + length > self.slots.bytes || is_cut {
            return false;
        }
        let address = self.memory.at(self.next * self.slots.bytes + begin);
        // SAFETY: inside the slot, as just checked, which the program owns for now.
        let bytes = unsafe { std::slice::from_raw_parts(address, length) };
        if frame.receive(self.number, bytes).is_err() {
            return false;
        }
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            self.complete(frame);
        }
        if !tagged || length < MAC_BYTES {
            return true;
        }
        let has_kind = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let kind = if has_kind { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        put_tag_back(frame, kind, header.tp_vlan_tci)
    }
}

impl PacketPort {
    #[cold]
    fn complete(&self, frame: &mut Frame) {
        if let Some(completed) = &self.completed
            && frame.edit(|bytes| checksum::complete(bytes, true))
        {
            completed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

const TAG_BYTES: usize = 4;
/// Bytes of both MAC addresses, which precede a tag.
const MAC_BYTES: usize = 12;

/// Restores the tag that the kernel removed; false if the frame becomes too long.
fn put_tag_back(frame: &mut Frame, kind: u16, tag: u16) -> bool {
    let length = frame.len();
    let [a, b] = kind.to_be_bytes();
    let [c, d] = tag.to_be_bytes();
    if length + TAG_BYTES > CAPACITY {
        let whole = frame.whole();
        let (addresses, rest) = whole.split_at(MAC_BYTES);
        let whole = [addresses, &[a, b, c, d], rest].concat();
        return frame.receive(frame.ingress(), &whole).is_ok();
    }
    let buffer = frame.buffer_mut();
    buffer.copy_within(MAC_BYTES..length, MAC_BYTES + TAG_BYTES);
    buffer[MAC_BYTES..MAC_BYTES + TAG_BYTES].copy_from_slice(&[a, b, c, d]);
    frame.set_len(length + TAG_BYTES);
    true
}

impl Port for PacketPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        let (frames, mut count) = (batch.fill(BATCH), 0);
        while count < frames.len() {
            let status = self.status().load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            match self.take(status, &mut frames[count]) {
                true => count += 1,
                false => self.missed += 1,
            }
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.slots.count;
        }
        batch.fill(count);
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        self.outbox.send(&self.socket, self.number, batch.frames())
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        match self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            true => wakers.ready(),
            false => wakers.add(self.socket.as_fd()),
        }
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        if woken == Woken::Failing { clear_error(&self.socket, self.index) } else { Ok(()) }
    }

    /// Returns the number of frames without a free slot, and of frames longer than a slot.
    fn missed(&mut self) -> u64 {
        self.missed += take_drops(&self.socket);
        self.missed
    }
}

/// Arguments of `sendmmsg`, allocated once.
#[derive(Debug)]
struct Outbox {
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    /// Copies of frames that extend beyond their buffers.
    long: Vec<Vec<u8>>,
}

// SAFETY: the pointers inside are rewritten for every call and not used after it.
unsafe impl Send for Outbox {}

impl Outbox {
    fn new() -> Outbox {
        let (vectors, messages) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        Outbox { vectors, messages, long: Vec::new() }
    }

    /// Sends the frames whose egress is port `number`.
    fn send(&mut self, socket: &OwnedFd, number: u8, frames: &[Frame]) -> Result<Sent, NetioError> {
        self.vectors.clear();
        self.messages.clear();
        self.long.clear();
        for frame in frames.iter().filter(|frame| frame.egress() == Some(number)) {
            let bytes = match frame.is_long() {
                false => frame.bytes(),
                true => {
                    self.long.push(frame.whole().into_owned());
                    // The bytes do not move when more copies follow.
                    self.long.last().map_or(&[][..], Vec::as_slice)
                }
            };
            // The kernel only reads the frames.
            let (iov_base, iov_len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
            self.vectors.push(libc::iovec { iov_base, iov_len });
        }
        // No vector moves from now on.
        self.messages.extend(self.vectors.iter_mut().map(|vector| {
            // SAFETY: an all-zero mmsghdr is valid (null pointers, zero lengths).
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message
        }));
        let mut sent = Sent::default();
        let mut rest = &mut self.messages[..];
        while !rest.is_empty() {
            // SAFETY: the messages point to vectors and frames (or copies in `long`) that outlive
            // the call, and their number is given.
            let taken = unsafe {
                let (first, count) = (rest.as_mut_ptr(), rest.len() as u32);
                libc::sendmmsg(socket.as_raw_fd(), first, count, libc::MSG_DONTWAIT)
            };
            let done = match usize::try_from(taken) {
                Ok(taken) => {
                    sent.sent += taken as u64;
                    taken
                }
                Err(_) => {
                    let lost = lost_by(io::Error::last_os_error(), rest.len())?;
                    sent.lost += lost as u64;
                    lost
                }
            };
            rest = &mut rest[done..];
        }
        Ok(sent)
    }
}

/// Returns the number of unsent frames that an error loses.
fn lost_by(error: io::Error, frames: usize) -> Result<usize, NetioError> {
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(0),
        // The queue is full: all remaining frames are lost.
        Some(libc::EAGAIN) => Ok(frames),
        // The driver had no room for this frame, or the frame cannot be sent.
        Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => Ok(1),
        _ => Err(NetioError::system("sending through a packet socket", error)),
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
            assert!(put_tag_back(&mut frame, 0x88a8, 0x2064));
            let whole = frame.whole();
            assert_eq!((whole.len(), frame.ingress(), frame.egress()), (length + 4, 4, None));
            assert_eq!(whole[12..16], [0x88, 0xa8, 0x20, 0x64]);
            assert_eq!((&whole[..12], &whole[16..]), bytes.split_at(12));
        }
        let mut frame = Frame::of(4, &[0; LONGEST - 3]).expect("it fits");
        assert!(!put_tag_back(&mut frame, 0x8100, 1));
    }

    #[test]
    fn full_queue_loses_all_and_refused_frame_only_itself() {
        let lost = |code| lost_by(io::Error::from_raw_os_error(code), 7);
        assert!(matches!(lost(libc::EAGAIN), Ok(7)));
        assert!(matches!(lost(libc::EMSGSIZE), Ok(1)));
        assert!(matches!(lost(libc::EINTR), Ok(0)));
        assert!(lost(libc::ENXIO).is_err());
    }
}
