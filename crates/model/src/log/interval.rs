//! The line that pkt-gen's `main_thread` prints for every interval.
//!
//! One grammar holds for all versions (see `pkt-gen.c`, netmap's and FreeBSD's):
//!
//! ```text
//! 883.717579 main_thread [1550] 85735 pps (85897 pkts in 1001892 usec)
//! 119.922939 main_thread [2277] 157971 pps (158106 pkts 75890880 bps in 1000856 usec) 1.48 avg_batch 0 min_space
//! 119.922939 main_thread [2786] 1.490 Mpps [avg/std 1.488 M/12  pps](1.492 Mpkts 716.365 Mbps in 1001747 usec) 3.10 avg_batch 99999 min_space
//! ```

use super::cursor::Cursor;

/// One interval, usually a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Number of its line, from 1.
    pub line: usize,
    /// When it was printed: microseconds of a clock that starts anew every 1000 seconds.
    pub clock_us: u64,
    /// Line of pkt-gen's source that printed it: tells versions apart.
    pub version: u32,
    /// Packets a second, as printed.
    pub pps: u64,
    /// Packets in the interval.
    pub packets: u64,
    /// The figure before `bps`: older versions print the bits of the interval
    /// there, newer ones bits a second.
    pub bits: Option<u64>,
    /// Length of the interval in microseconds.
    pub duration_us: u64,
    /// Packets that were handed over at a time, on average.
    pub average_batch: Option<f64>,
    /// Fewest free slots that were seen (99999 when none were looked at).
    pub min_space: Option<u64>,
    /// False when a count was printed with a unit (K, M, G, T), so rounded.
    pub exact: bool,
    /// Mean and standard deviation of the last rates in packets a second, with `-A`;
    /// none as long as there was nothing to average.
    pub averaged: Option<(f64, f64)>,
}

/// Which parts a log's interval lines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The figures of its first interval.
    pub layout: Layout,
    /// Some interval has a unit (K, M, G, T).
    pub units: bool,
    /// Some interval has mean and deviation.
    pub averaged: bool,
}

/// Which figures an interval line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Packets and duration: 2015 to 2017.
    F1,
    /// Bits, average batch and smallest space too: since 2017.
    F2,
    /// As [`Layout::F2`] without the smallest space.
    WithoutSpace,
    /// As [`Layout::F2`] with neither average batch nor smallest space.
    WithoutBatch,
}

impl Layout {
    /// Its short name: `F1`, `F2`, or what F2 lacks.
    pub fn name(self) -> &'static str {
        match self {
            Self::F1 => "F1",
            Self::F2 => "F2",
            Self::WithoutSpace => "F2 without min_space",
            Self::WithoutBatch => "F2 without avg_batch",
        }
    }
}

impl Interval {
    /// The rest of a line after `main_thread [version] `.
    pub(super) fn parse(line: usize, clock_us: u64, version: u32, rest: Cursor) -> Option<Self> {
        let mut at = rest;
        let (pps, mut exact) = at.count(b"pps")?;
        at.eat(b" ")?;
        let averaged = if at.0.first() == Some(&b'[') { averaged(&mut at)? } else { None };
        at.eat(b"(")?;
        let (packets, whole) = at.count(b"pkts")?;
        exact &= whole;
        at.eat(b" ")?;
        let bits = if at.0.first() == Some(&b'i') {
            None
        } else {
            let (bits, whole) = at.count(b"bps")?;
            exact &= whole;
            at.eat(b" ")?;
            Some(bits)
        };
        at.eat(b"in ")?;
        let duration_us = at.number()?;
        at.eat(b" usec)")?;
        let (mut average_batch, mut min_space) = (None, None);
        if at.eat(b" ").is_some() {
            average_batch = Some(at.decimal()?);
            at.eat(b" avg_batch")?;
            if at.eat(b" ").is_some() {
                min_space = Some(at.number()?);
                at.eat(b" min_space")?;
            }
        }
        at.end()?;
        Some(Self {
            line,
            clock_us,
            version,
            pps,
            packets,
            bits,
            duration_us,
            average_batch,
            min_space,
            exact,
            averaged,
        })
    }

    /// Which figures its line has.
    pub fn layout(&self) -> Layout {
        match (self.bits, self.average_batch, self.min_space) {
            (None, ..) => Layout::F1,
            (Some(_), None, _) => Layout::WithoutBatch,
            (Some(_), Some(_), None) => Layout::WithoutSpace,
            (Some(_), Some(_), Some(_)) => Layout::F2,
        }
    }

    /// The rate that packets and duration give, rounded as pkt-gen rounds it;
    /// none for an interval of no length.
    pub fn computed_pps(&self) -> Option<u64> {
        let (packets, usec) = (u128::from(self.packets), u128::from(self.duration_us));
        let pps = (packets * 1_000_000 + usec / 2).checked_div(usec)?;
        u64::try_from(pps).ok()
    }
}

/// `[avg/std 1.488 M/12  pps]`, perhaps with a blank after it. Before the first
/// packet there is nothing to average: `-nan`.
fn averaged(at: &mut Cursor) -> Option<Option<(f64, f64)>> {
    at.eat(b"[avg/std ")?;
    let mean = at.quantity()?;
    at.blanks();
    at.eat(b"/")?;
    let deviation = at.quantity()?;
    at.blanks();
    at.eat(b"pps]")?;
    at.blanks();
    Some(mean.zip(deviation))
}
