//! Devices with known behaviour, for testing searches.

use crate::normal;
use crate::trial::{Outcome, Output, Trial};

/// Share of packets that a trial at the border loses.
const BORDER_LOSS: f64 = 0.002;

/// Behaviour of a device. Rates are in frames per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// Maximum forwarding rate at the beginning.
    pub capacity: f64,
    /// Standard deviation of the capacity from trial to trial, as a share.
    pub sigma: f64,
    /// Probability that a trial loses some packets at any load.
    pub lossy: f64,
    /// Width of the border as a share of the capacity: the probability that a trial loses 0.2 %
    /// more rises from 0 at half of it below the middle to 1 at half of it above.
    pub border: f64,
    /// Middle of the border as a share of the capacity, at most 1.
    pub border_middle: f64,
    /// Share of the time in which the device stalls and loses all packets, at any load.
    pub still: f64,
    /// Growth of the capacity per second of traffic, as a share.
    pub drift: f64,
    /// Share of the capacity that is lost per share of overload.
    pub livelock: f64,
    /// Seconds of excess traffic that a buffer holds.
    pub buffer_s: f64,
    /// Seconds in addition to the traffic that each trial counts for.
    pub overhead_s: f64,
}

impl Law {
    /// Creates a device that always forwards at most `capacity`.
    pub fn exact(capacity: f64) -> Law {
        Law {
            capacity,
            sigma: 0.0,
            lossy: 0.0,
            border: 0.0,
            border_middle: 1.0,
            still: 0.0,
            drift: 0.0,
            livelock: 0.0,
            buffer_s: 0.0,
            overhead_s: 0.0,
        }
    }

    /// Returns the load at which half of all trials of 1 s lose more than a ratio; `None` if half
    /// of them do so at every load.
    pub fn truth(&self, loss_ratio: f64) -> Option<f64> {
        let nowhere = (loss_ratio == 0.0 && self.lossy >= 0.5) || self.still > loss_ratio;
        // Share of the trials without random loss that must have enough capacity.
        (!nowhere).then(|| {
            let share = if loss_ratio == 0.0 { 0.5 / (1.0 - self.lossy) } else { 0.5 };
            let below = self.capacity * (1.0 - self.sigma * normal::quantile(share));
            match self.border > 0.0 {
                true if loss_ratio < BORDER_LOSS => below * self.border_middle,
                true => below / (1.0 - loss_ratio + BORDER_LOSS),
                false => below / (1.0 - loss_ratio),
            }
        })
    }
}

/// A simulated device, with its own random generator.
#[derive(Clone, Debug)]
pub struct Device {
    law: Law,
    random: Random,
    /// Seconds of traffic so far.
    now_s: f64,
    /// Trials so far.
    pub trials: usize,
}

impl Device {
    /// Creates a device; each seed gives a different one.
    pub fn new(law: Law, seed: u64) -> Device {
        Device { law, random: Random::new(seed), now_s: 0.0, trials: 0 }
    }

    /// Runs a trial.
    pub fn measure(&mut self, trial: Trial) -> Outcome {
        let law = self.law;
        let seconds = trial.duration_ns as f64 / 1e9;
        self.trials += 1;
        self.now_s += seconds;
        let expected = (trial.load as f64 * seconds).round();
        let noise = if law.sigma > 0.0 { law.sigma * self.random.normal() } else { 0.0 };
        let drifted = law.capacity * (1.0 + law.drift * self.now_s) * (1.0 + noise);
        let overload = (trial.load as f64 / drifted.max(1.0) - 1.0).max(0.0);
        let capacity = drifted * (1.0 - (law.livelock * overload).min(0.9));
        let room = if overload > 0.0 { law.buffer_s * capacity } else { 0.0 };
        let mut forwarded = expected.min((capacity.max(0.0) * seconds + room).floor());
        if law.still > 0.0 {
            forwarded = forwarded.min((expected * (1.0 - law.still)).round());
        }
        if law.lossy > 0.0 && self.random.uniform() < law.lossy {
            let lost = (1.0 + 50.0 * self.random.uniform()).floor();
            forwarded = (forwarded - lost).max(0.0);
        }
        if law.border > 0.0 {
            let above = trial.load as f64 / law.capacity - law.border_middle;
            let share = above / law.border + 0.5;
            let is_lossy = self.random.uniform() < share;
            forwarded =
                if is_lossy { (forwarded - BORDER_LOSS * expected).max(0.0) } else { forwarded };
        }
        match Output::of_counts(trial, expected as u64, forwarded as u64) {
            Some(output) => {
                let overhead_ns = (law.overhead_s * 1e9) as u64;
                let effective_ns = output.effective_ns + overhead_ns;
                Outcome::Valid(Output { effective_ns, ..output })
            }
            None => Outcome::Invalid(format!("{forwarded} of {expected} frames forwarded")),
        }
    }
}

/// A random generator: Splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d))
    }

    /// Draws a uniform deviate between 0 and 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a standard normal deviate (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
