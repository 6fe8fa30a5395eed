//! A router's port on an interface, by packet sockets.
//!
//! Receives from a ring of slots (TPACKET_V2). Blocks of frames (TPACKET_V3) would save
//! memory, but one that is not full is handed over by a timer of whole milliseconds,
//! which at low rates is what would be measured; `recvmmsg` costs a system call a batch,
//! and a control message for each frame that had a VLAN tag.
//!
//! A packet socket receives a copy: the kernel's stack processes every frame as well. The
//! caller must make sure that the kernel neither forwards nor answers on that interface
//! (no address, `ip_forward` 0, or an nftables hook `ingress` that drops). Frames from the
//! local stack through a veth may be merged and lack checksums: `ethtool -K NAME tx off
//! gro off` at both ends prevents that.

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

/// Slots of the receive ring, and bytes of each: the longest frame with tag and what the
/// kernel writes before it.
#[derive(Clone, Copy, Debug)]
struct Slots {
    count: usize,
    bytes: usize,
    /// Longest frame.
    longest: usize,
}

/// They hold 2 ms of 2 million frames a second.
const SLOTS: Slots = Slots { count: 4096, bytes: 2048, longest: CAPACITY };
/// For links with long frames: 32 MiB.
const LONG_SLOTS: Slots = Slots { count: 2048, bytes: 16_384, longest: LONGEST };
/// Slots come in blocks of that size, for which the kernel needs whole pages in a row.
const BLOCK_BYTES: usize = 1 << 16;
/// Bytes that may wait to be sent; the default is 200 kB, which some hundred frames fill.
const SEND_BUFFER: i32 = 8 << 20;

const _: () = assert!(SLOTS.longest + libc::TPACKET2_HDRLEN + 32 <= SLOTS.bytes);
const _: () = assert!(LONGEST + libc::TPACKET2_HDRLEN + 32 <= LONG_SLOTS.bytes);
/// Bytes of a frame beside its IP packet: Ethernet header and two tags.
const HEADERS: usize = 14 + 2 * TAG_BYTES;

/// A port on an interface.
#[derive(Clone, Debug)]
pub struct PacketConfig {
    /// Interface, in the calling thread's namespace.
    pub interface: String,
    /// Number of the port.
    pub number: u8,
    /// Group among which the interface's frames are spread by flow (PACKET_FANOUT_HASH):
    /// for several workers, each with a port of its own in the same group. Numbers of
    /// groups belong to the network namespace, not to the interface.
    pub fanout: Option<u16>,
}

/// Which of several ports on an interface one is, each of which gets some of the flows.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// From 0.
    pub own: u32,
    /// How many there are.
    pub all: u32,
}

impl Share {
    /// Receives a frame whose flow's number (as the kernel or the device has made it) is this
    /// one's. Those without one are the first's.
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
    /// Slot that is filled next.
    next: usize,
    outbox: Outbox,
    missed: u64,
    /// Counts checksums that a stack had left to a device, and that are completed.
    completed: Option<Arc<AtomicU64>>,
}

impl PacketPort {
    /// Completes checksums of TCP and UDP that a stack on this machine has left to a device
    /// which isn't there: the kernel says which (`TP_STATUS_CSUMNOTREADY`). Counts them in
    /// `completed`.
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
    /// Without CAP_NET_RAW, when the interface is missing, the ring's memory is refused,
    /// or the fanout group belongs to sockets of another kind.
    pub fn open_for(config: &PacketConfig, mtu: u16) -> Result<PacketPort, NetioError> {
        let slots = slots_for(mtu);
        let interface = config.interface.as_str();
        let socket = open_socket(interface)?;
        PacketPort::on(socket, config, interface_index(interface)?, slots, None)
    }

    /// Opens the port with a socket that there is, and that may have been one before, on an
    /// interface whose number is known.
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
        // No slots: what they were is of no use any more.
        // SAFETY: an all-zero request is valid: it asks for nothing.
        let nothing: libc::tpacket_req = unsafe { std::mem::zeroed() };
        set_option(&socket, libc::PACKET_RX_RING, &nothing).map_err(failed("old ring"))?;
        // Whoever knows the MAC that the router had sends to it.
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
        // Only a bound socket may join a group; until then it would receive what
        // belongs to the others.
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

    /// Header of the slot that is filled next.
    fn slot(&self) -> *const libc::tpacket2_hdr {
        self.memory.at(self.next * self.slots.bytes).cast_const().cast()
    }

    /// Whether kernel or program owns the slot: the first word of its header.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the slot lies inside the mapping, page-aligned or at a multiple of its
        // size; the kernel writes the word whole, so both sides access it atomically.
        unsafe { &*self.slot().cast() }
    }

    /// Copies the slot's frame; false when it is too long.
    fn take(&self, status: u32, frame: &mut Frame) -> bool {
        // SAFETY: the kernel has handed the slot over with that status and leaves it
        // alone until it is given back.
        let header = unsafe { self.slot().read() };
        let (begin, length) = (usize::from(header.tp_mac), header.tp_len as usize);
        let tagged = status & libc::TP_STATUS_VLAN_VALID != 0;
        let total = length + if tagged { TAG_BYTES } else { 0 };
        let is_cut = header.tp_snaplen < header.tp_len;
        if total > self.slots.longest || begin + length > self.slots.bytes || is_cut {
            return false;
        }
        let address = self.memory.at(self.next * self.slots.bytes + begin);
        // SAFETY: inside the slot, as just checked, which is ours for now.
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
        let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let kind = if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
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
/// Bytes of both MAC addresses, after which a tag stands.
const MAC_BYTES: usize = 12;

/// Puts the tag in its place that the kernel has taken out; false when that is too long.
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

    /// Frames for which the ring had no slot, and those that are longer than its slots hold.
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
    /// Those that are not in their buffers as a whole.
    long: Vec<Vec<u8>>,
}

// SAFETY: the pointers inside are written anew for every call and not used after it.
unsafe impl Send for Outbox {}

impl Outbox {
    fn new() -> Outbox {
        let (vectors, messages) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        Outbox { vectors, messages, long: Vec::new() }
    }

    /// Sends the frames that go out at port `number`.
    fn send(&mut self, socket: &OwnedFd, number: u8, frames: &[Frame]) -> Result<Sent, NetioError> {
        self.vectors.clear();
        self.messages.clear();
        self.long.clear();
        for frame in frames.iter().filter(|frame| frame.egress() == Some(number)) {
            let bytes = match frame.is_long() {
                false => frame.bytes(),
                true => {
                    self.long.push(frame.whole().into_owned());
                    // Its bytes stay where they are when others follow.
                    self.long.last().map_or(&[][..], Vec::as_slice)
                }
            };
            // The kernel only reads what is to be sent.
            let (iov_base, iov_len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
            self.vectors.push(libc::iovec { iov_base, iov_len });
        }
        // All vectors are in their places now.
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
            // SAFETY: the messages point to vectors and frames that live through the
            // call (or copies in `long` do), and their number is given.
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

/// How many of the frames that were not sent yet an error loses.
fn lost_by(error: io::Error, frames: usize) -> Result<usize, NetioError> {
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(0),
        // Too much waits already: a queue that is full loses what comes.
        Some(libc::EAGAIN) => Ok(frames),
        // The driver had no room for this frame, or it has no form that could be sent.
        Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => Ok(1),
        _ => Err(NetioError::system("sending through a packet socket", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stand_behind_the_addresses() {
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
    fn a_full_queue_loses_the_rest_and_a_refused_frame_itself() {
        let lost = |code| lost_by(io::Error::from_raw_os_error(code), 7);
        assert!(matches!(lost(libc::EAGAIN), Ok(7)));
        assert!(matches!(lost(libc::EMSGSIZE), Ok(1)));
        assert!(matches!(lost(libc::EINTR), Ok(0)));
        assert!(lost(libc::ENXIO).is_err());
    }
}
