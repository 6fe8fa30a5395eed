//! The maps shared with the BPF programs: `bpf/stamp.h` in Rust.

use fwdlab_packet::stamp::PHASES;

/// `struct sender_state`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderState {
    /// Phase to stamp. Written by user space.
    pub phase: u64,
    /// Time between packets in 1/65536 ns; 0: no pacing. Written by user space.
    pub interval_q: u64,
    /// CLOCK_MONOTONIC at which the schedule begins. Written by user space.
    pub start_ns: u64,
    pad: [u64; 5],
    /// When the next packet is due, after the start, 1/65536 ns.
    pub next_q: u64,
    /// Packets given up because the sender was late.
    pub missed: u64,
    /// Position in the source range.
    pub source: u32,
    /// Position in the destination range.
    pub destination: u32,
    /// Sequence number of the next packet.
    pub sequence: u32,
    /// Flow of the next packet.
    pub flow: u32,
    /// Packets sent by phase.
    pub sent: [u64; PHASES],
}

/// `struct receiver_state`, one per CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverState {
    /// Packets of this run by phase.
    pub packets: [u64; PHASES],
    /// Bytes of this run's packets.
    pub bytes: u64,
    /// Packets stamped by another run.
    pub foreign: u64,
    /// Packets without stamp.
    pub unstamped: u64,
    pad: [u64; 9],
}

// The C compiler's layout: sizes checked here, offsets by what the tests count.
const _: () = assert!(size_of::<SenderState>() == 128);
const _: () = assert!(size_of::<ReceiverState>() == 128);
