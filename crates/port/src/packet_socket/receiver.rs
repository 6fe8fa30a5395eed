//! Counting the lab's own packets in a ring (TPACKET_V3).

use super::socket::{
    Mapping, attach_filter, bind_to, instruction, open_socket, set_option, take_drops,
};
use crate::poll::wait_readable;
use crate::sender::{Received, Receiver};
use crate::xdp::interface_index;
use crate::{NetNs, PortError, affinity};
use fwdlab_packet::stamp::{PHASES, Stamp};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

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
    index: u32,
    memory: Mapping,
}

impl Ring {
    fn open(interface: &str) -> Result<Ring, PortError> {
        // Set up before binding to a protocol, so that the first packet already
        // goes to the ring.
        let socket = open_socket(interface)?;
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
        let memory = Mapping::new(&socket, BLOCKS * BLOCK_BYTES).map_err(failed("mapping"))?;
        let ring = Ring { socket, index: interface_index(interface)?, memory };
        bind_to(&ring.socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    fn count_until_stopped(&mut self, run_id: u32, counters: &Counters) -> Result<(), PortError> {
        let mut block = 0;
        while !counters.stop.load(Ordering::Acquire) {
            let head = self.memory.at(block * BLOCK_BYTES).cast::<libc::tpacket_block_desc>();
            // SAFETY: the status word is shared with the kernel: read as volatile,
            // then ordered before the packets' reads by the fence below.
            let status = unsafe { (&raw const (*head).hdr.bh1.block_status).read_volatile() };
            if status & libc::TP_STATUS_USER == 0 {
                wait_readable(&self.socket, self.index, Duration::from_millis(5))?;
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

    fn take_statistics(&self, counters: &Counters) {
        counters.dropped.fetch_add(take_drops(&self.socket), Ordering::Relaxed);
    }
}

/// Keeps the first [`SNAP`] bytes of incoming packets and none of outgoing ones
/// (a classic BPF filter of two paths).
fn snap(socket: &OwnedFd) -> io::Result<()> {
    const SKF_AD_PKTTYPE: u32 = (-0x1000i32 + 4) as u32;
    let outgoing = u32::from(libc::PACKET_OUTGOING);
    let program = [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, SKF_AD_PKTTYPE),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, outgoing),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, SNAP as u32),
    ];
    attach_filter(socket, &program)
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
