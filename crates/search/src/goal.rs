//! Search goals: conditions for a load to count as throughput (RFC 9971, "Goal Terms").

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;

/// One search goal: the required attributes of RFC 9971 and its two optional ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Name in reports.
    pub name: String,
    /// Goal Loss Ratio: a trial with a higher loss ratio is a high-loss trial. At least 0, below 1.
    pub loss_ratio: f64,
    /// Goal Exceed Ratio: the share of the duration sum that high-loss trials may have at a lower
    /// bound. At least 0, below 1.
    pub exceed_ratio: f64,
    /// Goal Initial Trial Duration: the duration of the shortest trials.
    pub initial_ns: u64,
    /// Goal Final Trial Duration: shorter trials are short trials.
    pub final_ns: u64,
    /// Goal Duration Sum: total duration of full-length trials that decides a load.
    pub sum_ns: u64,
    /// Goal Width: maximum distance of the relevant bounds, as a share of the upper one.
    pub width: f64,
}

/// The names that [`Goal::preset`] accepts.
pub const PRESETS: [&str; 4] = ["ndr", "pdr", "rfc2544", "tst009"];

impl Goal {
    /// Returns a preset goal: `ndr` (no loss) and `pdr` (0.5 %) in at most 21 trials of 1 s, half
    /// of which may exceed; `rfc2544` (throughput of RFC 2544, 60 s) and `tst009` (ETSI GS NFV-TST
    /// 009, binary search with loss verification, 2 x 60 s), both as RFC 9971 maps them. The latter
    /// two begin with trials of 1 s, which can refute a load but never confirm it.
    pub fn preset(name: &str) -> Option<Goal> {
        let (loss_ratio, exceed_ratio, final_s, sum_s) = match name {
            "ndr" => (0.0, 0.5, 1, 21),
            "pdr" => (0.005, 0.5, 1, 21),
            "rfc2544" => (0.0, 0.0, 60, 60),
            "tst009" => (0.0, 0.5, 60, 120),
            _ => return None,
        };
        Some(Goal {
            name: name.to_owned(),
            loss_ratio,
            exceed_ratio,
            initial_ns: SECOND_NS,
            final_ns: final_s * SECOND_NS,
            sum_ns: sum_s * SECOND_NS,
            width: 0.005,
        })
    }

    /// True if the bounds are as close together as the goal requires.
    pub fn is_reached(&self, lower: u64, upper: u64) -> bool {
        lower < upper && distance(lower, upper) <= self.width
    }

    /// Returns the lowest load in frames per second at which the width is a whole frame and the
    /// shortest trial sends one.
    pub fn least_load(&self) -> u64 {
        let of_width = (1.0 / self.width).ceil();
        let of_trial = (SECOND_NS as f64 / self.initial_ns.max(1) as f64).ceil();
        of_width.max(of_trial) as u64
    }

    /// Returns the faults that make the goal impossible to search for.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut hold = |holds: bool, what: String| {
            if !holds {
                faults.push(Fault::Goal { goal: self.name.clone(), what });
            }
        };
        let share = |value: f64| (0.0..1.0).contains(&value);
        let loss = self.loss_ratio;
        hold(share(loss), format!("a loss ratio of {loss}: at least 0 and below 1"));
        let exceed = self.exceed_ratio;
        hold(share(exceed), format!("an exceed ratio of {exceed}: at least 0 and below 1"));
        let width = self.width;
        let is_width = (WIDTH_MIN..1.0).contains(&width);
        hold(is_width, format!("a width of {width}: at least {WIDTH_MIN} and below 1"));
        let initial = self.initial_ns;
        hold(initial > 0, "an initial trial duration of 0: use a second, for example".into());
        let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
        let [first, last, sum] = [initial, self.final_ns, self.sum_ns].map(seconds);
        hold(
            first <= last,
            format!("an initial trial duration of {first} s above the final one of {last} s"),
        );
        hold(
            last <= sum,
            format!("a duration sum of {sum} s below the final trial duration of {last} s"),
        );
        faults
    }
}

/// Minimum width: a grid of loads this fine is still small.
const WIDTH_MIN: f64 = 1e-5;

/// Returns the distance of two loads, as a share of the upper one.
pub fn distance(lower: u64, upper: u64) -> f64 {
    (upper - lower) as f64 / upper as f64
}
