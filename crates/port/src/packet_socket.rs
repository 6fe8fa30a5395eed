//! Sending and receiving through AF_PACKET (packet(7)): slower than XDP, but
//! allowed wherever raw sockets are, also in a namespace of an ordinary user.

use crate::sender::{Received, Receiver, SenderConfig};
use crate::user_sender::{Transmit, UserSender};
use crate::xdp::interface_index;
use crate::{NetNs, PortError, affinity};
use fwdlab_packet::FrameWriter;
use fwdlab_packet::stamp::{PHASES, Stamp};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Starts a sending thread that uses `sendmmsg` and bypasses the queueing
/// discipline.
///
/// # Errors
/// Without CAP_NET_RAW, or when the interface is missing.
pub fn sender(config: &SenderConfig) -> Result<UserSender, PortError> {
    UserSender::new(config, |config, writer| PacketTransmit::open(&config.interface, writer, 64))
}

fn open_socket(interface: &str, protocol: u16) -> Result<OwnedFd, PortError> {
    // SAFETY: socket(2) takes plain integers; the result is checked, then owned once.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(PortError::system("a packet socket", io::Error::last_os_error()));
        }
        OwnedFd::from_raw_fd(fd)
    };
    bind_to(&socket, interface, protocol)?;
    Ok(socket)
}

/// Binds to an interface; with a protocol of 0 nothing is received.
fn bind_to(socket: &OwnedFd, interface: &str, protocol: u16) -> Result<(), PortError> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface_index(interface)? as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a whole sockaddr_ll and its size is given.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    if bound < 0 {
        let error = io::Error::last_os_error();
        return Err(PortError::system(format!("binding a packet socket to {interface}"), error));
    }
    Ok(())
}

fn set_option<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a live value of the size given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

struct PacketTransmit {
    socket: OwnedFd,
    frames: Vec<Vec<u8>>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl PacketTransmit {
    fn open(
        interface: &str,
        writer: &FrameWriter,
        batch: usize,
    ) -> Result<PacketTransmit, PortError> {
        let socket = open_socket(interface, 0)?;
        set_option(&socket, libc::PACKET_QDISC_BYPASS, &1i32)
            .map_err(|e| PortError::system("bypassing the queueing discipline", e))?;
        let mut frames = vec![vec![0; writer.frame_length()]; batch];
        frames.iter_mut().for_each(|frame| writer.prepare(frame));
        let mut vectors: Vec<libc::iovec> = frames
            .iter_mut()
            .map(|f| libc::iovec { iov_base: f.as_mut_ptr().cast(), iov_len: f.len() })
            .collect();
        let messages = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: an all-zero msghdr is valid (null pointers, zero lengths).
                let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
                message.msg_hdr.msg_iov = vector;
                message.msg_hdr.msg_iovlen = 1;
                message
            })
            .collect();
        Ok(PacketTransmit { socket, frames, vectors, messages })
    }
}

impl Transmit for PacketTransmit {
    fn capacity(&self) -> usize {
        self.frames.len()
    }

    fn transmit(
        &mut self,
        count: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        debug_assert_eq!(self.vectors.len(), self.messages.len());
        self.frames[..count].iter_mut().for_each(|frame| fill(frame));
        // SAFETY: the messages point to vectors and frames that this struct owns
        // and never resizes; `count` is at most their number.
        let taken = unsafe {
            libc::sendmmsg(self.socket.as_raw_fd(), self.messages.as_mut_ptr(), count as u32, 0)
        };
        if taken >= 0 {
            return Ok(taken as usize);
        }
        match io::Error::last_os_error() {
            // The queue is full, or a signal came: nothing was taken, try again.
            e if matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR)) => {
                Ok(0)
            }
            error => Err(PortError::system("sending through a packet socket", error)),
        }
    }
}

/// Blocks of the receive ring: 64 of 1 MiB hold some 10 ms of the fastest traffic.
const BLOCKS: usize = 64;
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes kept of every packet: headers and stamp of both families.
const SNAP: usize = 96;

#[derive(Debug, Default)]
struct Counters {
    packets: [AtomicU64; PHASES],
    bytes: AtomicU64,
    foreign: AtomicU64,
    unstamped: AtomicU64,
    dropped: AtomicU64,
    flows: Vec<AtomicBool>,
    stop: AtomicBool,
}

/// A receiver that reads a TPACKET_V3 ring on a thread of its own.
#[derive(Debug)]
pub struct PacketReceiver {
    counters: Arc<Counters>,
    thread: Option<JoinHandle<Result<(), PortError>>>,
}

impl PacketReceiver {
    /// Opens the ring on `interface` and starts the thread on `cpus`.
    /// `flows` is the number of flows to tell apart, 0 for none.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or when the ring's memory is refused.
    pub fn new(
        namespace: &NetNs,
        interface: &str,
        run_id: u32,
        flows: u32,
        cpus: &[u16],
    ) -> Result<PacketReceiver, PortError> {
        let counters = Arc::new(Counters {
            flows: (0..flows).map(|_| AtomicBool::new(false)).collect(),
            ..Counters::default()
        });
        let interface = interface.to_owned();
        let mut ring = namespace.run(move || Ring::open(&interface))?;
        let theirs = counters.clone();
        let cpus = cpus.to_vec();
        let thread = namespace.spawn("receiver", &[], move || {
            if !cpus.is_empty() {
                affinity::pin_thread(&cpus)?;
            }
            ring.count_until_stopped(run_id, &theirs)
        })?;
        Ok(PacketReceiver { counters, thread: Some(thread) })
    }
}

impl Receiver for PacketReceiver {
    fn received(&self) -> Received {
        let c = &self.counters;
        Received {
            packets: std::array::from_fn(|phase| c.packets[phase].load(Ordering::Acquire)),
            bytes: c.bytes.load(Ordering::Relaxed),
            foreign: c.foreign.load(Ordering::Relaxed),
            unstamped: c.unstamped.load(Ordering::Relaxed),
        }
    }

    fn flows_seen(&self) -> Option<u32> {
        let flows = &self.counters.flows;
        let seen = flows.iter().filter(|flow| flow.load(Ordering::Relaxed)).count();
        (!flows.is_empty()).then_some(seen as u32)
    }

    fn dropped(&self) -> u64 {
        self.counters.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.counters.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Ring {
    socket: OwnedFd,
    base: *mut u8,
}

// SAFETY: the mapping belongs to the ring alone and is used by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    fn open(interface: &str) -> Result<Ring, PortError> {
        // Set up before binding to a protocol, so that the first packet already
        // goes to the ring.
        let socket = open_socket(interface, 0)?;
        let failed = |what: &str| {
            let what = format!("{what} of a packet ring");
            move |e: io::Error| PortError::system(what, e)
        };
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as i32))
            .map_err(failed("version"))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK_BYTES / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: 5, // ms: a block is handed over at the latest then
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request).map_err(failed("memory"))?;
        snap(&socket).map_err(failed("filter"))?;
        // SAFETY: a fresh shared mapping of the ring's exact size, checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCKS * BLOCK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(failed("mapping")(io::Error::last_os_error()));
        }
        let ring = Ring { socket, base: base.cast() };
        bind_to(&ring.socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    fn count_until_stopped(&mut self, run_id: u32, counters: &Counters) -> Result<(), PortError> {
        let mut block = 0;
        while !counters.stop.load(Ordering::Acquire) {
            // SAFETY: block < BLOCKS, so the pointer lies inside the mapping, page-aligned.
            let head =
                unsafe { self.base.add(block * BLOCK_BYTES) }.cast::<libc::tpacket_block_desc>();
            // SAFETY: the status word is shared with the kernel: read as volatile,
            // then ordered before the packets' reads by the fence below.
            let status = unsafe { (&raw const (*head).hdr.bh1.block_status).read_volatile() };
            if status & libc::TP_STATUS_USER == 0 {
                self.wait();
                self.take_statistics(counters);
                continue;
            }
            std::sync::atomic::fence(Ordering::Acquire);
            // SAFETY: the kernel gave the block to us (status); it writes no more to it.
            unsafe { count_block(head, run_id, counters) };
            std::sync::atomic::fence(Ordering::Release);
            // SAFETY: gives the block back; nothing of it is referenced any more.
            unsafe {
                (&raw mut (*head).hdr.bh1.block_status).write_volatile(libc::TP_STATUS_KERNEL);
            }
            block = (block + 1) % BLOCKS;
        }
        self.take_statistics(counters);
        Ok(())
    }

    fn wait(&self) {
        let mut poll =
            libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, as said.
        unsafe { libc::poll(&mut poll, 1, 5) };
    }

    fn take_statistics(&self, counters: &Counters) {
        let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of_val(&stats) as u32;
        // SAFETY: the buffer and its length belong together. Reading resets the counters.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &mut length,
            )
        };
        if result == 0 {
            counters.dropped.fetch_add(u64::from(stats.tp_drops), Ordering::Relaxed);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `open` mapped; no reference into it survives a call.
        unsafe { libc::munmap(self.base.cast(), BLOCKS * BLOCK_BYTES) };
    }
}

/// Keeps the first [`SNAP`] bytes of incoming packets and none of outgoing ones
/// (a classic BPF filter of two paths; no CAP_BPF needed).
fn snap(socket: &OwnedFd) -> io::Result<()> {
    const SKF_AD_PKTTYPE: u32 = (-0x1000i32 + 4) as u32;
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let program = [
        op(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, SKF_AD_PKTTYPE),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from(libc::PACKET_OUTGOING)),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, SNAP as u32),
    ];
    let filter =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Counts the packets of one block.
///
/// # Safety
/// `head` must be a block that the kernel handed over.
unsafe fn count_block(head: *const libc::tpacket_block_desc, run_id: u32, counters: &Counters) {
    let mut sum = Received::default();
    // SAFETY: the caller's promise; offsets are the kernel's own and stay inside the block.
    unsafe {
        let header = &(*head).hdr.bh1;
        let mut packet = head.cast::<u8>().add(header.offset_to_first_pkt as usize);
        for _ in 0..header.num_pkts {
            let info = &*packet.cast::<libc::tpacket3_hdr>();
            let frame = std::slice::from_raw_parts(
                packet.add(usize::from(info.tp_mac)),
                info.tp_snaplen as usize,
            );
            match Stamp::parse_frame(frame) {
                Some(stamp) if stamp.run_id == run_id => {
                    sum.packets[usize::from(stamp.phase) % PHASES] += 1;
                    sum.bytes += u64::from(info.tp_len);
                    if let Some(flow) = counters.flows.get(stamp.flow as usize) {
                        flow.store(true, Ordering::Relaxed);
                    }
                }
                Some(_) => sum.foreign += 1,
                None => sum.unstamped += 1,
            }
            packet = packet.add(info.tp_next_offset as usize);
        }
    }
    for (counter, packets) in counters.packets.iter().zip(sum.packets) {
        counter.fetch_add(packets, Ordering::AcqRel);
    }
    counters.bytes.fetch_add(sum.bytes, Ordering::Relaxed);
    counters.foreign.fetch_add(sum.foreign, Ordering::Relaxed);
    counters.unstamped.fetch_add(sum.unstamped, Ordering::Relaxed);
}
