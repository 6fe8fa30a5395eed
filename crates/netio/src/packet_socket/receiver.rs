//! Counts the lab's own packets in a ring (TPACKET_V3).

use super::socket::{
    Mapping, attach_filter, bind_to, instruction, open_socket, set_option, take_drops,
};
use crate::poll::wait_readable;
use crate::sender::{Received, Receiver, Watch};
use crate::xdp::interface_index;
use crate::{NetNs, NetioError, affinity, clock};
use fwdlab_packet::arrivals::{Arrivals, Delays, FIRST_IN_FULL, FlowSummary, PAYLOAD_ONE_IN};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Blocks of the receive ring: 64 of 1 MiB hold some 10 ms of the fastest traffic.
const BLOCKS: usize = 64;
const BLOCK_BYTES: usize = 1 << 20;
/// Bytes kept of every packet: headers and stamp of both families. The first packets, and one
/// random packet in [`PAYLOAD_ONE_IN`], are kept whole.
const SNAP: u32 = 96;

#[derive(Debug)]
struct Shared {
    /// Counts, updated after each block.
    counts: Mutex<Received>,
    /// Locked by the thread for one block at a time.
    arrivals: Mutex<Arrivals>,
    dropped: AtomicU64,
    stop: AtomicBool,
}

/// Locks a counter. It is always consistent, because nothing panics while the lock is held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receiver that reads a TPACKET_V3 ring on its own thread.
#[derive(Debug)]
pub struct PacketReceiver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), NetioError>>>,
}

impl PacketReceiver {
    /// Opens the ring on `interface` and starts the thread on `cpus`.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or if the kernel refuses the ring's memory.
    pub fn new(
        namespace: &NetNs,
        interface: &str,
        watch: &Watch,
        cpus: &[u16],
    ) -> Result<PacketReceiver, NetioError> {
        let shared = Arc::new(Shared {
            counts: Mutex::default(),
            arrivals: Mutex::new(watch.arrivals().looking_at_all()),
            dropped: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let interface = interface.to_owned();
        let mut ring = namespace.run(move || Ring::open(&interface))?;
        let thread_shared = shared.clone();
        let (cpus, has_times) = (cpus.to_vec(), watch.has_times());
        let thread = namespace.spawn("receiver", &[], move || {
            if !cpus.is_empty() {
                affinity::pin_thread(&cpus)?;
            }
            ring.count_until_stopped(&thread_shared, has_times)
        })?;
        Ok(PacketReceiver { shared, thread: Some(thread) })
    }
}

impl Receiver for PacketReceiver {
    fn received(&self) -> Received {
        *locked(&self.shared.counts)
    }

    fn flows(&self) -> Option<FlowSummary> {
        locked(&self.shared.arrivals).flows()
    }

    fn delays(&self) -> Option<Delays> {
        locked(&self.shared.arrivals).delays()
    }

    fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for PacketReceiver {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Ring {
    socket: OwnedFd,
    index: u32,
    memory: Mapping,
}

impl Ring {
    fn open(interface: &str) -> Result<Ring, NetioError> {
        // Set up before binding to a protocol, so that the first packet already goes to the ring.
        let socket = open_socket(interface)?;
        let failed = |what: &str| {
            let what = format!("{what} of a packet ring");
            move |e: io::Error| NetioError::system(what, e)
        };
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as i32))
            .map_err(failed("version"))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK_BYTES / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: 5, // ms: maximum time before a block is handed over
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request).map_err(failed("memory"))?;
        attach_filter(&socket, &all_incoming()).map_err(failed("filter"))?;
        let memory = Mapping::new(&socket, BLOCKS * BLOCK_BYTES).map_err(failed("mapping"))?;
        let ring = Ring { socket, index: interface_index(interface)?, memory };
        bind_to(&ring.socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    fn count_until_stopped(&mut self, shared: &Shared, has_times: bool) -> Result<(), NetioError> {
        let (mut block, mut all_bytes) = (0, true);
        while !shared.stop.load(Ordering::Acquire) {
            let head = self.memory.at(block * BLOCK_BYTES).cast::<libc::tpacket_block_desc>();
            // SAFETY: the status word is shared with the kernel: read as volatile,
            // then ordered before the packets' reads by the fence below.
            let status = unsafe { (&raw const (*head).hdr.bh1.block_status).read_volatile() };
            if status & libc::TP_STATUS_USER == 0 {
                wait_readable(&self.socket, self.index, Duration::from_millis(5))?;
                self.take_statistics(shared);
                continue;
            }
            std::sync::atomic::fence(Ordering::Acquire);
            let mut arrivals = locked(&shared.arrivals);
            // SAFETY: the kernel handed the block over (status) and no longer writes to it.
            unsafe { count_block(head, &mut arrivals, has_times) };
            *locked(&shared.counts) = *arrivals.counts();
            drop(arrivals);
            std::sync::atomic::fence(Ordering::Release);
            // SAFETY: returns the block; nothing references it any more.
            unsafe {
                (&raw mut (*head).hdr.bh1.block_status).write_volatile(libc::TP_STATUS_KERNEL);
            }
            block = (block + 1) % BLOCKS;
            if all_bytes && locked(&shared.counts).in_full >= FIRST_IN_FULL {
                all_bytes = false;
                attach_filter(&self.socket, &few_bytes())
                    .map_err(|e| NetioError::system("filter of a packet ring", e))?;
            }
        }
        self.take_statistics(shared);
        Ok(())
    }

    fn take_statistics(&self, shared: &Shared) {
        shared.dropped.fetch_add(take_drops(&self.socket), Ordering::Relaxed);
    }
}

const SKF_AD: i32 = -0x1000;
const SKF_AD_PKTTYPE: u32 = (SKF_AD + 4) as u32;
const SKF_AD_RANDOM: u32 = (SKF_AD + 56) as u32;
const ALL: u32 = 0xffff;

/// Returns a classic BPF program that keeps incoming packets and drops outgoing ones.
fn all_incoming() -> [libc::sock_filter; 4] {
    [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, SKF_AD_PKTTYPE),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            u32::from(libc::PACKET_OUTGOING),
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, ALL),
    ]
}

/// Like [`all_incoming`], but keeps only the first [`SNAP`] bytes of most packets.
fn few_bytes() -> [libc::sock_filter; 7] {
    let [load, is_outgoing, none, all] = all_incoming();
    [
        load,
        is_outgoing,
        none,
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, SKF_AD_RANDOM),
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, PAYLOAD_ONE_IN as u32 - 1),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, SNAP),
        all,
    ]
}

/// Counts the packets of one block.
///
/// # Safety
/// `head` must be a block that the kernel handed over.
unsafe fn count_block(
    head: *const libc::tpacket_block_desc,
    arrivals: &mut Arrivals,
    has_times: bool,
) {
    // The kernel timestamps packets with the wall clock.
    let offset_ns = if has_times { clock::realtime_minus_monotonic_ns() } else { 0 };
    // SAFETY: guaranteed by the caller; offsets are the kernel's and stay inside the block.
    unsafe {
        let header = &(*head).hdr.bh1;
        let mut packet = head.cast::<u8>().add(header.offset_to_first_pkt as usize);
        for _ in 0..header.num_pkts {
            let info = &*packet.cast::<libc::tpacket3_hdr>();
            let frame = std::slice::from_raw_parts(
                packet.add(usize::from(info.tp_mac)),
                info.tp_snaplen as usize,
            );
            let at_ns = i64::from(info.tp_sec) * 1_000_000_000 + i64::from(info.tp_nsec);
            let at_ns = if has_times { (at_ns - offset_ns) as u32 } else { 0 };
            arrivals.take(frame, info.tp_len as usize, at_ns);
            packet = packet.add(info.tp_next_offset as usize);
        }
    }
}
