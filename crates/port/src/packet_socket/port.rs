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
    Mapping, attach_filter, bind_to, bypass_queueing, detach_filter, enlarge_send_buffer,
    instruction, open_socket, set_option, take_drops,
};
use crate::PortError;
use crate::frame::{BATCH, Batch, CAPACITY, Frame};
use crate::poll::{Wakers, Woken, clear_error};
use crate::port::{Port, Sent};
use crate::xdp::interface_index;
use fwdlab_packet::checksum;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots of the receive ring: 4096 of 2 KiB hold 2 ms of 2 million frames a second.
const SLOTS: usize = 4096;
/// Bytes of each: the longest frame with tag and what the kernel writes before it.
const SLOT_BYTES: usize = 2048;
/// Slots come in blocks of that size, for which the kernel needs whole pages in a row.
const BLOCK_BYTES: usize = 1 << 16;
/// Bytes that may wait to be sent; the default is 200 kB, which some hundred frames fill.
const SEND_BUFFER: i32 = 8 << 20;

const _: () = assert!(CAPACITY + libc::TPACKET2_HDRLEN + 32 <= SLOT_BYTES);

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

/// A port on an interface, by packet sockets.
///
/// VLAN tags that the kernel removed from received frames are restored.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    number: u8,
    index: u32,
    memory: Mapping,
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

    /// Opens the port.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, when the interface is missing, the ring's memory is refused,
    /// or the fanout group belongs to sockets of another kind.
    pub fn open(config: &PacketConfig) -> Result<PacketPort, PortError> {
        let interface = config.interface.as_str();
        let failed = |what: &str| {
            let what = format!("{what} of a packet port on {interface}");
            move |e: io::Error| PortError::system(what, e)
        };
        let socket = open_socket(interface)?;
        bypass_queueing(&socket)?;
        enlarge_send_buffer(&socket, SEND_BUFFER);
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(failed("deafness to its own frames"))?;
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))
            .map_err(failed("ring version"))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (SLOTS * SLOT_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request).map_err(failed("ring"))?;
        let memory = Mapping::new(&socket, SLOTS * SLOT_BYTES).map_err(failed("ring mapping"))?;
        // Only a bound socket may join a group; until then it would receive what
        // belongs to the others.
        let nothing = [instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0)];
        attach_filter(&socket, &nothing).map_err(failed("filter"))?;
        bind_to(&socket, interface, libc::ETH_P_ALL as u16)?;
        if let Some(group) = config.fanout {
            let argument = libc::PACKET_FANOUT_HASH << 16 | u32::from(group);
            set_option(&socket, libc::PACKET_FANOUT, &argument).map_err(failed("fanout group"))?;
        }
        detach_filter(&socket).map_err(failed("filter"))?;
        Ok(PacketPort {
            socket,
            number: config.number,
            index: interface_index(interface)?,
            memory,
            next: 0,
            outbox: Outbox::new(),
            missed: 0,
            completed: None,
        })
    }

    /// Header of the slot that is filled next.
    fn slot(&self) -> *const libc::tpacket2_hdr {
        self.memory.at(self.next * SLOT_BYTES).cast_const().cast()
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
        if total > CAPACITY || begin + length > SLOT_BYTES || header.tp_snaplen < header.tp_len {
            return false;
        }
        let address = self.memory.at(self.next * SLOT_BYTES + begin);
        // SAFETY: inside the slot, as just checked, which is ours for now.
        let bytes = unsafe { std::slice::from_raw_parts(address, length) };
        if !tagged || length < MAC_BYTES {
            let taken = frame.receive(self.number, bytes).is_ok();
            if taken && status & libc::TP_STATUS_CSUMNOTREADY != 0 {
                self.complete(frame);
            }
            return taken;
        }
        let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let kind = if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        put_tag_back(frame, self.number, bytes, kind, header.tp_vlan_tci)
    }
}

impl PacketPort {
    #[cold]
    fn complete(&self, frame: &mut Frame) {
        let length = frame.len();
        if let Some(completed) = &self.completed
            && checksum::complete(&mut frame.buffer_mut()[..length], true)
        {
            completed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

const TAG_BYTES: usize = 4;
/// Bytes of both MAC addresses, after which a tag stands.
const MAC_BYTES: usize = 12;

/// Makes the frame of `bytes`, of which the kernel has taken the tag.
fn put_tag_back(frame: &mut Frame, port: u8, bytes: &[u8], kind: u16, tag: u16) -> bool {
    let (addresses, rest) = bytes.split_at(MAC_BYTES);
    if frame.receive(port, addresses).is_err() {
        return false;
    }
    let buffer = frame.buffer_mut();
    buffer[MAC_BYTES..MAC_BYTES + 2].copy_from_slice(&kind.to_be_bytes());
    buffer[MAC_BYTES + 2..MAC_BYTES + TAG_BYTES].copy_from_slice(&tag.to_be_bytes());
    let Some(place) = buffer[MAC_BYTES + TAG_BYTES..].get_mut(..rest.len()) else { return false };
    place.copy_from_slice(rest);
    frame.set_len(bytes.len() + TAG_BYTES);
    true
}

impl Port for PacketPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
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
            self.next = (self.next + 1) % SLOTS;
        }
        batch.fill(count);
        Ok(count)
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
        self.outbox.send(&self.socket, self.number, batch.frames())
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), PortError> {
        match self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            true => wakers.ready(),
            false => wakers.add(self.socket.as_fd()),
        }
        Ok(())
    }

    fn woken(&mut self, woken: Woken) -> Result<(), PortError> {
        if woken == Woken::Failing { clear_error(&self.socket, self.index) } else { Ok(()) }
    }

    /// Frames for which the ring had no slot, and those that are longer than a
    /// [`crate::Frame`] can be.
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
}

// SAFETY: the pointers inside are written anew for every call and not used after it.
unsafe impl Send for Outbox {}

impl Outbox {
    fn new() -> Outbox {
        Outbox { vectors: Vec::with_capacity(BATCH), messages: Vec::with_capacity(BATCH) }
    }

    /// Sends the frames that go out at port `number`.
    fn send(&mut self, socket: &OwnedFd, number: u8, frames: &[Frame]) -> Result<Sent, PortError> {
        self.vectors.clear();
        self.messages.clear();
        let frames = frames.iter().filter(|frame| frame.egress() == Some(number));
        self.vectors.extend(frames.map(|frame| libc::iovec {
            // The kernel only reads what is to be sent.
            iov_base: frame.bytes().as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        }));
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
            // call, and their number is given.
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
fn lost_by(error: io::Error, frames: usize) -> Result<usize, PortError> {
    match error.raw_os_error() {
        Some(libc::EINTR) => Ok(0),
        // Too much waits already: a queue that is full loses what comes.
        Some(libc::EAGAIN) => Ok(frames),
        // The driver had no room for this frame, or it has no form that could be sent.
        Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => Ok(1),
        _ => Err(PortError::system("sending through a packet socket", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stand_behind_the_addresses() {
        let bytes: Vec<u8> = (0..60).collect();
        let mut frame = Frame::of(1, &[0xa5; 100]).expect("it fits");
        assert!(put_tag_back(&mut frame, 4, &bytes, 0x88a8, 0x2064));
        assert_eq!((frame.len(), frame.ingress(), frame.egress()), (64, 4, None));
        assert_eq!(frame.bytes()[..12], bytes[..12]);
        assert_eq!(frame.bytes()[12..16], [0x88, 0xa8, 0x20, 0x64]);
        assert_eq!(frame.bytes()[16..], bytes[12..]);
        assert!(!put_tag_back(&mut frame, 4, &[0; CAPACITY - 3], 0x8100, 1));
        assert!(put_tag_back(&mut frame, 4, &[0; CAPACITY - 4], 0x8100, 1));
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
