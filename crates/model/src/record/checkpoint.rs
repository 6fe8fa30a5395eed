//! Checkpoints of a run: finished trials of an unfinished method.

use super::MethodTrial;
use serde::{Deserialize, Serialize};

/// A finished trial of a method, kept until its run is stored. An interrupted run continues from
/// its checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Wall clock at the start of the attempt that measured the trial, RFC 3339, UTC.
    pub started_at: String,
    /// The run's own trial in the first attempt, from which the loads of the method follow.
    pub own: OwnTrial,
    /// Complete request of the trial. The trial is used again only for an equal request.
    pub request: String,
    /// End of the trial, in nanoseconds after the method began. Time between attempts is not
    /// counted.
    pub done_ns: u64,
    /// The trial.
    pub trial: MethodTrial,
}

/// The part of a run's own trial from which loads of a method follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTrial {
    /// Measured length of the window in nanoseconds.
    pub window_ns: u64,
    /// Intended packets in the window; `None` at the maximum rate.
    pub intended: Option<u64>,
    /// Packets that left the sender in the window.
    pub offered: u64,
    /// Those of these packets that arrived intact, each counted once.
    pub forwarded: u64,
    /// CPU time provably taken from the device in the window, in nanoseconds.
    pub taken_ns: u64,
}

impl OwnTrial {
    /// Returns the offered load in packets per second.
    pub fn offered_pps(&self) -> f64 {
        per_second(self.offered, self.window_ns)
    }

    /// Returns the forwarding rate in the time that the device had its CPU, in packets per second.
    pub fn forwarded_pps(&self) -> f64 {
        let had_ns = self.window_ns.saturating_sub(self.taken_ns).max(self.window_ns / 10);
        per_second(self.forwarded, had_ns)
    }

    /// Returns the intended load, or the offered load at the maximum rate, in packets per second.
    pub fn load(&self) -> u64 {
        per_second(self.intended.unwrap_or(self.offered), self.window_ns).round() as u64
    }
}

fn per_second(packets: u64, ns: u64) -> f64 {
    packets as f64 * 1e9 / ns.max(1) as f64
}
