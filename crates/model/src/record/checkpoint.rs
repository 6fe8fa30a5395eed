//! Checkpoints of a run: finished trials of a method that is still under way.

use super::MethodTrial;
use serde::{Deserialize, Serialize};

/// A finished trial of a method, kept until its run is stored. A run that was cut short continues
/// from its checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Wall clock at the start of the attempt that measured the trial, RFC 3339, UTC.
    pub started_at: String,
    /// The run's own trial in the first attempt: the loads of the method follow from it.
    pub own: OwnTrial,
    /// Complete request of the trial. The trial is used again only for an equal request.
    pub request: String,
    /// End of the trial, nanoseconds after the method began. Time between attempts is not counted.
    pub done_ns: u64,
    /// The trial.
    pub trial: MethodTrial,
}

/// The run's own trial, as far as loads of a method follow from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTrial {
    /// Length of the window as measured, nanoseconds.
    pub window_ns: u64,
    /// Intended packets in the window; `None` at the maximum rate.
    pub intended: Option<u64>,
    /// Packets that left the sender in the window.
    pub offered: u64,
    /// Packets of these that arrived intact, each once.
    pub forwarded: u64,
    /// CPU time provably taken from the device in the window, nanoseconds.
    pub taken_ns: u64,
}

impl OwnTrial {
    /// Offered load, packets per second.
    pub fn offered_pps(&self) -> f64 {
        per_second(self.offered, self.window_ns)
    }

    /// Forwarding rate in the time that the device had its CPU, packets per second.
    pub fn forwarded_pps(&self) -> f64 {
        let had_ns = self.window_ns.saturating_sub(self.taken_ns).max(self.window_ns / 10);
        per_second(self.forwarded, had_ns)
    }

    /// Intended load, or the offered load at the maximum rate, packets per second.
    pub fn load(&self) -> u64 {
        per_second(self.intended.unwrap_or(self.offered), self.window_ns).round() as u64
    }
}

fn per_second(packets: u64, ns: u64) -> f64 {
    packets as f64 * 1e9 / ns.max(1) as f64
}
