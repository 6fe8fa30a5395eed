//! Maps shared with the BPF programs: `bpf/stamp.h` in Rust.

use fwdlab_packet::Template;
use fwdlab_packet::arrivals::{FAULTS, Received};
use fwdlab_packet::size::{FCS_BYTES, SEQUENCE_MAX};
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
    /// Due time of the next packet after the start, 1/65536 ns.
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

/// A mix of frame sizes in the programs' constants `MIX`, `MIX_PASS` and `MIX_LENGTHS`.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Frames in the sequence; 0 if all frames have one size.
    pub count: u32,
    /// Positions skipped after each round of the flows.
    pub pass: u32,
    /// Bytes of each frame without FCS.
    pub lengths: [u32; SEQUENCE_MAX],
}

impl Mix {
    /// Returns the mix of a run's frames.
    pub fn of(template: &Template) -> Mix {
        let size = template.size();
        let sizes = if size.is_mix() { size.sizes() } else { &[] };
        let mut lengths = [0; SEQUENCE_MAX];
        for (length, size) in lengths.iter_mut().zip(sizes) {
            *length = u32::from(size - FCS_BYTES);
        }
        Mix { count: sizes.len() as u32, pass: template.size_turns().pass(), lengths }
    }
}

impl Default for Mix {
    fn default() -> Mix {
        Mix { count: 0, pass: 0, lengths: [0; SEQUENCE_MAX] }
    }
}

/// Senders that a stamp can distinguish.
pub const SENDERS_MAX: usize = 16;

/// `struct walk`: the position of a sender, as one CPU knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WalkState {
    base: u64,
    round: u32,
    sequence: u32,
    time: u32,
    seen: u32,
    suspect: u64,
    began: u64,
}

/// `struct receiver_state`, one per CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverState {
    /// Intact packets of this run by phase.
    pub packets: [u64; PHASES],
    frames: u64,
    chosen: u64,
    phase: u64,
    /// Packets whose whole payload was checked.
    pub in_full: u64,
    pad0: u64,
    /// Packets stamped by another run.
    pub foreign: u64,
    /// UDP packets between the benchmark's addresses without stamp.
    pub unstamped: u64,
    /// All other packets.
    pub others: u64,
    /// Damaged packets by phase.
    pub damaged: [u64; PHASES],
    /// Duplicates by phase.
    pub duplicates: [u64; PHASES],
    /// Late packets by phase.
    pub reordered: [u64; PHASES],
    /// Damaged packets by fault.
    pub faults: [u64; FAULTS],
    checked: u64,
    evident: u64,
    /// Sum of the delays in the map of delays, nanoseconds.
    pub delay_sum: u64,
    /// Smallest delay plus 1; 0 before the first.
    pub delay_min: u64,
    /// Greatest delay.
    pub delay_max: u64,
    /// Bytes of packets by phase if their lengths differ; not counted for the last phase, in which
    /// no packets are sent.
    bytes: [u64; PHASES - 1],
    /// Like `delay_sum`, for the map of differences.
    pub difference_sum: u64,
    /// Smallest difference plus 1; 0 before the first.
    pub difference_min: u64,
    /// Greatest difference.
    pub difference_max: u64,
    mapping: u64,
    unused: [u64; 4],
    walks: [WalkState; SENDERS_MAX],
}

impl From<ReceiverState> for Received {
    fn from(state: ReceiverState) -> Received {
        Received {
            packets: state.packets,
            bytes: std::array::from_fn(|phase| state.bytes.get(phase).copied().unwrap_or(0)),
            foreign: state.foreign,
            unstamped: state.unstamped,
            others: state.others,
            damaged: state.damaged,
            faults: std::array::from_fn(|fault| state.faults[fault]),
            duplicates: state.duplicates,
            reordered: state.reordered,
            in_full: state.in_full,
            checked: state.checked,
            evident: state.evident,
        }
    }
}

// The C compiler's layout: sizes are checked here, offsets by the counters in the tests.
const _: () = assert!(size_of::<SenderState>() == 128);
const _: () = assert!(size_of::<ReceiverState>() == 1088);
