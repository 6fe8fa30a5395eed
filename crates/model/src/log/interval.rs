//! The line that pkt-gen's `main_thread` prints for every interval.
//!
//! One grammar covers all versions of `pkt-gen.c`, netmap's and FreeBSD's. The oldest form, the
//! common one, and the common one with units and averages:
//!
//! ```text
//! 883.717579 main_thread [1550] 85735 pps (85897 pkts in 1001892 usec)
//! 119.922939 main_thread [2277] 157971 pps (158106 pkts 75890880 bps
//!     in 1000856 usec) 1.48 avg_batch 0 min_space
//! 119.922939 main_thread [2786] 1.490 Mpps [avg/std 1.488 M/12  pps](1.492 Mpkts
//!     716.365 Mbps in 1001747 usec) 3.10 avg_batch 99999 min_space
//! ```

use super::cursor::Cursor;

/// One interval, usually a second.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Line number, from 1.
    pub line: usize,
    /// Time of printing: microseconds of a clock that restarts every 1000 seconds.
    pub clock_us: u64,
    /// Line of pkt-gen's source that printed it; identifies the version.
    pub version: u32,
    /// Packets per second, as printed.
    pub pps: u64,
    /// Packets in the interval.
    pub packets: u64,
    /// The number before `bps`: older versions print the bits of the interval there, newer ones
    /// bits per second; with `-B` both count 24 additional bytes per packet.
    pub bits: Option<u64>,
    /// Length of the interval in microseconds.
    pub duration_us: u64,
    /// Mean number of packets handed over per call.
    pub average_batch: Option<f64>,
    /// Minimum number of free slots (99999 if none were checked).
    pub min_space: Option<u64>,
    /// False if a count was printed with a unit (K, M, G, T) and therefore rounded.
    pub exact: bool,
    /// Mean and standard deviation of the last rates in packets per second, with `-A`; `None` as
    /// long as there is nothing to average.
    pub averaged: Option<(f64, f64)>,
}

/// Parts of a log's interval lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Layout of its first interval.
    pub layout: Layout,
    /// True if some interval has a unit (K, M, G, T).
    pub units: bool,
    /// True if some interval has mean and deviation.
    pub averaged: bool,
}

/// Figures of an interval line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Packets and duration: 2015 to 2017.
    F1,
    /// Also bits, average batch and minimum space: since 2017.
    F2,
    /// As [`Layout::F2`] without the minimum space.
    WithoutSpace,
    /// As [`Layout::F2`] without average batch and minimum space.
    WithoutBatch,
}

impl Layout {
    /// Returns its short name: `F1`, `F2`, or the part that F2 lacks.
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
    /// Parses the rest of a line after `main_thread [version] `.
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

    /// Returns the layout of its line.
    pub fn layout(&self) -> Layout {
        match (self.bits, self.average_batch, self.min_space) {
            (None, ..) => Layout::F1,
            (Some(_), None, _) => Layout::WithoutBatch,
            (Some(_), Some(_), None) => Layout::WithoutSpace,
            (Some(_), Some(_), Some(_)) => Layout::F2,
        }
    }

    /// Returns the rate from packets and duration, rounded as by pkt-gen; `None` for an interval of
    /// zero length.
    pub fn computed_pps(&self) -> Option<u64> {
        let (packets, usec) = (u128::from(self.packets), u128::from(self.duration_us));
        let pps = (packets * 1_000_000 + usec / 2).checked_div(usec)?;
        u64::try_from(pps).ok()
    }
}

/// Parses `[avg/std 1.488 M/12  pps]`, optionally with a blank after it. Before the first packet
/// there is nothing to average: `-nan`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Interval> {
        Interval::parse(5, 1_000_000, 2277, Cursor(text.as_bytes()))
    }

    #[test]
    fn all_layouts_are_parsed() {
        let full =
            "157971 pps (158106 pkts 75890880 bps in 1000856 usec) 1.48 avg_batch 7 min_space";
        let interval = parsed(full).unwrap();
        assert_eq!((interval.line, interval.clock_us, interval.version), (5, 1_000_000, 2277));
        assert_eq!((interval.pps, interval.packets), (157_971, 158_106));
        assert_eq!((interval.bits, interval.duration_us), (Some(75_890_880), 1_000_856));
        assert_eq!((interval.average_batch, interval.min_space), (Some(1.48), Some(7)));
        assert_eq!((interval.exact, interval.averaged), (true, None));
        assert_eq!(interval.computed_pps(), Some(157_971));
        for (text, layout) in [
            (full, Layout::F2),
            ("5 pps (5 pkts in 1000000 usec)", Layout::F1),
            ("5 pps (5 pkts 9 bps in 1000000 usec)", Layout::WithoutBatch),
            ("5 pps (5 pkts 9 bps in 1000000 usec) 1.00 avg_batch", Layout::WithoutSpace),
        ] {
            assert_eq!(parsed(text).map(|interval| interval.layout()), Some(layout), "{text}");
        }
    }

    #[test]
    fn units_are_resolved_and_marked() {
        let text =
            "1.490 Mpps (1.492 Mpkts 716.365 Mbps in 1001747 usec) 3.10 avg_batch 9 min_space";
        let interval = parsed(text).unwrap();
        assert_eq!((interval.pps, interval.packets), (1_490_000, 1_492_000));
        assert_eq!((interval.bits, interval.exact), (Some(716_365_000), false));
        // The rate is below a thousand, the bits are not.
        let text = "892 pps (893 pkts 428.640 Kbps in 1001000 usec) 3.10 avg_batch 9 min_space";
        assert!(!parsed(text).unwrap().exact);
    }

    /// Versions of 2015 and 2016 write rates below a thousand with three decimals.
    #[test]
    fn rates_with_decimals_and_without_unit_are_parsed() {
        let idle = "0.000 pps (0.000 pkts 0.000 bps in 1000545 usec) 0.00 avg_batch 0 min_space";
        let interval = parsed(idle).expect(idle);
        assert_eq!((interval.pps, interval.packets, interval.bits), (0, 0, Some(0)));
        let slow = "41.000 pps (41.000 pkts 19.680 Kbps in 1000021 usec) 2.50 avg_batch";
        let interval = parsed(slow).expect(slow);
        assert_eq!((interval.pps, interval.packets, interval.bits), (41, 41, Some(19_680)));
        assert_eq!((interval.computed_pps(), interval.layout()), (Some(41), Layout::WithoutSpace));
    }

    #[test]
    fn averages_are_parsed_with_and_without_a_trailing_blank() {
        let rest = "(5 pkts 9 bps in 1000000 usec) 1.00 avg_batch 0 min_space";
        for (head, averaged) in [
            ("5 pps [avg/std 1.488 M/12  pps]", Some((1_488_000.0, 12.0))),
            ("5 pps [avg/std 1.488 M/1.5 Kpps] ", Some((1_488_000.0, 1500.0))),
            ("5 pps [avg/std 5 /0  pps]", Some((5.0, 0.0))),
            ("5 pps [avg/std -nan /-nan  pps]", None),
        ] {
            let interval = parsed(&format!("{head}{rest}")).expect(head);
            assert_eq!(interval.averaged, averaged, "{head}");
            assert_eq!(interval.layout(), Layout::F2);
        }
    }

    #[test]
    fn truncated_line_is_not_an_interval() {
        let full = "1 pps (2 pkts 3 bps in 4 usec) 5.00 avg_batch 6 min_space";
        let whole: Vec<usize> =
            (0..full.len()).filter(|&length| parsed(&full[..length]).is_some()).collect();
        // Older versions end the line after `usec)` and after `avg_batch`.
        assert_eq!(whole, [30, 45]);
        for wrong in [
            "-1 pps (2 pkts in 4 usec)",
            "1 pps  (2 pkts in 4 usec)",
            "1. pps (2 pkts in 4 usec)",
            "1 pps (2 pkts in 4 usec) x",
            "1 pps (2 pkts in 4 usec) inf avg_batch 0 min_space",
            "1 pps [avg/std 1 pps](2 pkts in 4 usec)",
            "20000000000000000000 pps (2 pkts in 4 usec)",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn interval_of_zero_length_has_no_rate() {
        assert_eq!(parsed("5 pps (5 pkts in 0 usec)").unwrap().computed_pps(), None);
        let most = "5 pps (9999999999999999999 pkts in 1 usec)";
        assert_eq!(parsed(most).unwrap().computed_pps(), None);
    }
}
