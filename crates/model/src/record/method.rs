//! Trials of a method: measurements of a run in addition to its own trial.

use super::{Connections, Counts, FloodTrial, Floor, LatencyTrial, is_zero};
use fwdlab_search::{Ending, Goal, Outcome, Output, Trial};
use serde::{Deserialize, Serialize};

/// Measurements of a method in one run: all trials in order, and nothing derived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// Minimum load, in packets per second.
    pub min_load: u64,
    /// Maximum load, in packets per second.
    pub max_load: u64,
    /// Capacity of the links in all directions together, in packets per second; `None` if no line
    /// rate is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// The trials.
    pub trials: Vec<MethodTrial>,
    /// Reason for the end of a search before its goals were reached; `None` if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// Latency of the instrument itself, at each load of the trials; empty if not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<Floor>,
    /// Tests of a suite, in its order; empty for a single method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MethodRecord>,
}

/// One trial at a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodTrial {
    /// Intended load, packets per second.
    pub load: u64,
    /// Intended duration in nanoseconds.
    pub duration_ns: u64,
    /// Start, in nanoseconds after the start of the first one.
    pub at_ns: u64,
    /// Measured length of the window in nanoseconds.
    pub window_ns: u64,
    /// Packets that left the sender in the window.
    pub offered: u64,
    /// Those of these packets that arrived intact, each counted once.
    pub forwarded: u64,
    /// Packets of the whole trial that arrived damaged.
    pub damaged: u64,
    /// Packets of the whole trial that arrived more than once.
    pub duplicates: u64,
    /// CPU time provably taken from the device in the window, in nanoseconds: stolen by the
    /// hypervisor, or used by other programs.
    pub taken_ns: u64,
    /// Maximum of that time within one sample, in nanoseconds.
    pub stalled_ns: u64,
    /// Packets of the whole trial that found the receiver's ring full, as far as reported: the
    /// device had forwarded them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receiver_lost: u64,
    /// A burst: frames to send as fast as possible; `load` is then the rate that the sender reached
    /// in the run's own trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Load before the window, if different, in packets per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Sending time of the last packet that the device lost in the window, in nanoseconds after the
    /// window opened, to the nearest sample; `None` if it lost none, or if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// Reset of the device in the window; `None` if it was not reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// Connections opened by its packets, one each; `None` if they opened none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Flood in addition to its packets; `None` if none was intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<FloodTrial>,
    /// Delays of its packets; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyTrial>,
    /// The part of `offered` and `forwarded` from the receiver to the sender, for traffic in both
    /// directions; `None` for one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Counts>,
    /// Fault of the receiver or the machine, because of which the trial does not measure the
    /// device; `None` without a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// A reset of the device under traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// Method of the reset.
    pub how: String,
    /// Start, in nanoseconds after the window opened, to the nearest sample.
    pub at_ns: u64,
    /// Time until the command that performed it had returned, in nanoseconds.
    pub took_ns: u64,
    /// Packets lost from then on until the device forwarded all packets again.
    pub lost: u64,
}

/// Capacity in packets of the smallest ring on the path, a veth's: further packets that arrive
/// while the device does not run are lost.
const RING: f64 = 256.0;
/// Maximum time that other programs may have the device's CPU within one sample, in nanoseconds:
/// beyond it the device then finds more packets at a time than at a paced load, whatever the rings
/// hold.
const STALL_NS: u64 = 5_000_000;
/// Maximum number of packets of a burst that may arrive while other programs have the device's CPU,
/// for a loss that counts as the device's: one batch of a driver.
const BATCH: f64 = 64.0;
/// Share of a trial's intended packets that its sender may leave unsent.
const UNSENT: f64 = 0.005;

impl MethodTrial {
    /// Returns packets lost over packets offered, or connections that were not opened over packets
    /// that should have opened one; `None` if nothing was offered or more arrived.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.offered.checked_sub(self.forwarded)?;
        let lost = self.offered - self.done();
        (self.offered > 0).then(|| lost as f64 / self.offered as f64)
    }

    /// Returns the minimum and maximum share of the offered packets that the device lost: the
    /// difference covers possible losses while other programs had its CPU for longer than its rings
    /// can bridge.
    ///
    /// # Errors
    /// Reason why the trial does not measure the device.
    pub fn loss_bounds(&self) -> Result<(f64, f64), String> {
        if let Some(why) = &self.invalid {
            return Err(why.clone());
        }
        let most = self.loss_ratio().ok_or_else(|| self.too_many())?;
        let had = if self.is_stalled() { self.had() } else { 1.0 };
        let (expected, passed) = (self.offered as f64 * had, self.passed_at_most() as f64);
        Ok((((expected - passed) / expected.max(1.0)).clamp(0.0, most), most))
    }

    /// Returns true if a burst arrived completely, false if the device lost some of it.
    ///
    /// # Errors
    /// Reason why the trial does not measure the device: loss while other programs have its CPU is
    /// independent of its buffers, unless it exceeds the packets that arrived in that time. A burst
    /// that arrives in spite of it is even stronger evidence.
    pub fn is_whole(&self) -> Result<bool, String> {
        if let Some(why) = &self.invalid {
            return Err(why.clone());
        }
        let connections = self.connections.as_ref().map(|opened| opened.wanted);
        let frames = self.burst.or(connections).unwrap_or(self.offered);
        if self.offered != frames || self.forwarded > frames {
            return Err(format!("{} of {frames} frames were sent", self.offered));
        }
        let missing = (frames - self.done()) as f64;
        let arrived_in = |ns: u64| self.load as f64 * ns as f64 / 1e9;
        match missing {
            0.0 => Ok(true),
            // Its packets arrived, but their connections were not kept.
            _ if self.gained() < self.forwarded => Ok(false),
            // More than the receiver lost, plus all packets that arrived while other programs had
            // the CPU.
            _ if missing > self.receiver_lost as f64 + arrived_in(self.taken_ns) + BATCH => {
                Ok(false)
            }
            _ if self.receiver_lost > 0 => Err(self.receiver_full()),
            _ if arrived_in(self.stalled_ns) > BATCH => {
                let us = self.stalled_ns as f64 / 1e3;
                Err(format!("others had the device's CPU for {us:.0} us during the trial"))
            }
            _ => Ok(false),
        }
    }

    /// Returns the maximum number of packets that the device forwarded: those that the receiver
    /// lost may all belong to the window. If packets open connections, only those whose state is in
    /// its table count.
    fn passed_at_most(&self) -> u64 {
        let passed = self.forwarded.saturating_add(self.receiver_lost).min(self.offered);
        passed.min(self.gained())
    }

    /// Returns the states that its packets created, if they open connections and the device reports
    /// states.
    fn gained(&self) -> u64 {
        self.connections.as_ref().and_then(Connections::gained).unwrap_or(u64::MAX)
    }

    /// Returns the number of packets that fulfilled their purpose: they arrived, and the connection
    /// that they should open is in the device's table.
    pub fn done(&self) -> u64 {
        self.forwarded.min(self.gained())
    }

    fn receiver_full(&self) -> String {
        format!("{} packets found the receiver's ring full", self.receiver_lost)
    }

    /// Returns the share of the window in which the device had its CPU.
    fn had(&self) -> f64 {
        1.0 - (self.taken_ns as f64 / self.window_ns.max(1) as f64).min(1.0)
    }

    fn too_many(&self) -> String {
        format!("{} of {} packets arrived", self.forwarded, self.offered)
    }

    /// Returns the intended packets in the window. Counted ones are all sent, but a late sender
    /// would have sent more by then.
    pub fn intended(&self) -> u64 {
        if let Some(opened) = &self.connections {
            return opened.wanted.saturating_add(opened.missed);
        }
        (self.load as f64 * self.window_ns as f64 / 1e9).round() as u64
    }

    /// Returns the trial's outcome for the device, with at most the loss ratio `tolerated` by its
    /// goals.
    ///
    /// A sender that fell short did not apply the load to the device. If the device lost more than
    /// any goal tolerates even so, it would lose more at the full load: unsent packets then count
    /// as lost (RFC 9971, Trial Loss Ratio). Otherwise the trial gives no result for the load.
    ///
    /// If other programs had the device's CPU for longer than its rings can bridge, the loss is not
    /// the device's, and counting only the trials without loss would be biased. Such a trial counts
    /// only if the device lost more than any goal tolerates of the packets that arrived in the time
    /// that it had.
    ///
    /// Packets that the receiver's full ring refused were forwarded. If the origin of a loss
    /// matters, the trial gives no result.
    pub fn outcome(&self, tolerated: f64) -> Outcome {
        if let Some(why) = &self.invalid {
            return Outcome::Invalid(why.clone());
        }
        let request = Trial { load: self.load, duration_ns: self.duration_ns };
        let (intended, offered) = (self.intended(), self.offered);
        // Packets lost by the receiver count as forwarded where a loss must be the device's own.
        let passed = self.passed_at_most();
        let exceeds = |passed: u64, expected: u64| {
            expected.saturating_sub(passed) as f64 > tolerated * expected as f64
        };
        let is_beyond = |expected: u64| self.forwarded <= offered && exceeds(passed, expected);
        let (mut expected, mut doubt) = (offered, None);
        let mut forwarded = if self.forwarded > offered { self.forwarded } else { self.done() };
        if passed > forwarded {
            // Within the tolerated loss the receiver's share does not matter.
            doubt =
                (exceeds(forwarded, offered) && !is_beyond(offered)).then(|| self.receiver_full());
            forwarded = if is_beyond(offered) { passed } else { forwarded };
        }
        if self.is_short() {
            doubt = (!is_beyond(offered)).then(|| self.unsent());
            expected = intended;
        }
        if self.is_stalled() {
            expected = (expected as f64 * self.had()).round() as u64;
            doubt = doubt.or_else(|| {
                (!is_beyond(expected)).then(|| {
                    format!(
                        "others had the device's CPU for {:.1} ms within one sample",
                        self.stalled_ns as f64 / 1e6
                    )
                })
            });
        }
        match (doubt, Output::of_counts(request, expected, forwarded)) {
            (Some(why), _) => Outcome::Invalid(why),
            (None, Some(output)) => Outcome::Valid(output),
            (None, None) => Outcome::Invalid(self.too_many()),
        }
    }

    /// True if the sender left more unsent than a trial permits. A packet may be due as the window
    /// opens or closes: of a hundred packets it is a hundredth. Connections are opened by number.
    pub fn is_short(&self) -> bool {
        let sent = |offered| offered + u64::from(self.connections.is_none());
        let is_less = |offered, most: f64| sent(offered) as f64 <= most * (1.0 - UNSENT);
        let intended = self.intended() as f64;
        let Some(reverse) = self.reverse else { return is_less(self.offered, intended) };
        // One direction does not compensate for a shortfall of the other.
        let shortfalls = [self.offered.saturating_sub(reverse.offered), reverse.offered];
        shortfalls.into_iter().any(|one| is_less(one, intended / 2.0))
    }

    /// Returns why the delays of its packets are not the device's; `None` if they are. A packet
    /// that was due and not sent would have shown a delay.
    pub fn timing_fault(&self) -> Option<String> {
        self.invalid.clone().or_else(|| self.is_short().then(|| self.unsent()))
    }

    fn unsent(&self) -> String {
        let intended = self.intended();
        let unsent = intended.saturating_sub(self.offered);
        format!("the sender left {unsent} of {intended} packets unsent")
    }

    /// Returns the remedy for an invalid trial, in the imperative; empty if none is known.
    pub fn remedy(&self) -> &'static str {
        if self.is_stalled() {
            "end the other programs on the device's CPU, or search when the machine is idle"
        } else if self.receiver_lost > 0 {
            "give the receiver a CPU of its own"
        } else if self.is_short() {
            "write a lower max_load in [method]"
        } else {
            ""
        }
    }

    /// True if other programs had the device's CPU for longer than its rings can bridge at this
    /// load.
    fn is_stalled(&self) -> bool {
        let load = self.load + self.flood.as_ref().map_or(0, |flood| flood.load);
        let arrived = load as f64 * self.stalled_ns as f64 / 1e9;
        arrived > RING || self.stalled_ns > STALL_NS
    }
}

impl MethodRecord {
    /// Returns its parts, or itself.
    pub fn parts(&self) -> &[MethodRecord] {
        match self.parts.as_slice() {
            [] => std::slice::from_ref(self),
            parts => parts,
        }
    }

    /// Returns the number of trials of all parts.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.trials.len()).sum()
    }

    /// True without any trial.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the trials with their outcomes for the device; see [`MethodTrial::outcome`].
    pub fn outcomes(&self, goals: &[Goal]) -> Vec<(Trial, Outcome)> {
        let tolerated = tolerated(goals);
        let of = |trial: &MethodTrial| {
            let request = Trial { load: trial.load, duration_ns: trial.duration_ns };
            (request, trial.outcome(tolerated))
        };
        self.trials.iter().map(of).collect()
    }
}

/// Returns the largest loss ratio that any goal tolerates.
pub fn tolerated(goals: &[Goal]) -> f64 {
    goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(offered: u64, forwarded: u64) -> MethodTrial {
        MethodTrial {
            load: 1000,
            duration_ns: 1_000_000_000,
            window_ns: 1_000_000_000,
            offered,
            forwarded,
            ..MethodTrial::default()
        }
    }

    fn lost(trial: MethodTrial) -> Option<f64> {
        match trial.outcome(0.005) {
            Outcome::Valid(output) => Some(output.loss_ratio),
            Outcome::Invalid(_) => None,
        }
    }

    #[test]
    fn short_sender_counts_only_with_excessive_loss() {
        assert_eq!(lost(trial(1000, 1000)), Some(0.0));
        assert_eq!(lost(trial(996, 996)), Some(0.0), "within half a percent");
        assert_eq!(lost(trial(990, 990)), None, "nothing is known of the load");
        assert_eq!(lost(trial(990, 986)), None, "a goal tolerates as much");
        assert_eq!(lost(trial(900, 500)), Some(0.5), "it would of more");
        assert_eq!(lost(trial(1000, 1001)), None, "more arrived than were sent");
        assert_eq!(lost(trial(900, 1001)), None, "more arrived than were sent");
        let spoiled = MethodTrial { invalid: Some("dropped".into()), ..trial(1000, 1000) };
        assert_eq!(lost(spoiled.clone()), None);
        // Delays are those of the sent packets, however many were lost.
        let is_timed = |trial: &MethodTrial| trial.timing_fault().is_none();
        assert!(is_timed(&trial(996, 500)) && !is_timed(&trial(990, 990)) && !is_timed(&spoiled));
    }

    #[test]
    fn externally_stalled_trial_counts_only_with_clear_loss() {
        let stalled = |offered, forwarded, stalled_ns| MethodTrial {
            taken_ns: 200_000_000,
            stalled_ns,
            ..trial(offered, forwarded)
        };
        assert_eq!(lost(stalled(1000, 800, 6_000_000)), None, "what arrived meanwhile");
        assert_eq!(lost(stalled(1000, 1000, 6_000_000)), None, "lucky");
        assert_eq!(lost(stalled(1000, 400, 6_000_000)), Some(0.5), "of the time that it had");
        assert_eq!(lost(stalled(1000, 800, 4_000_000)), Some(0.2), "rings bridge as much");
        let fast = MethodTrial { load: 1_000_000, ..stalled(1_000_000, 900_000, 300_000) };
        assert_eq!(lost(fast), None, "300 packets arrive meanwhile");
        let flood = Some(FloodTrial { load: 999_000, ..FloodTrial::default() });
        let flooded = MethodTrial { flood, ..stalled(1000, 900, 300_000) };
        assert_eq!(flooded.loss_bounds(), Ok((0.0, 0.1)), "as many, most of them of a flood");
        assert_eq!(stalled(1000, 900, 300_000).loss_bounds(), Ok((0.1, 0.1)));
    }

    #[test]
    fn receiver_loss_is_not_device_loss() {
        let refused =
            |forwarded, receiver_lost| MethodTrial { receiver_lost, ..trial(1000, forwarded) };
        assert_eq!(lost(refused(1000, 0)), Some(0.0));
        assert_eq!(lost(refused(1000, 7)), Some(0.0), "of the warm-up");
        assert_eq!(lost(refused(998, 2)), Some(0.002), "a goal tolerates as much");
        assert_eq!(lost(refused(990, 10)), None, "all of it may be the receiver's");
        assert_eq!(lost(refused(980, 16)), None, "the device's part may be tolerated");
        assert_eq!(lost(refused(900, 50)), Some(0.05), "the device's part, at least");
        assert_eq!(refused(900, 50).loss_bounds(), Ok((0.05, 0.1)));
        let burst = |forwarded, lost| MethodTrial { burst: Some(1000), ..refused(forwarded, lost) };
        assert!(burst(990, 10).is_whole().is_err());
        assert!(burst(930, 10).is_whole().is_err(), "the device's part is small");
        assert_eq!(burst(920, 10).is_whole(), Ok(false), "the device's part is not");
    }

    #[test]
    fn burst_at_a_stalled_device_counts_only_if_it_arrived() {
        let burst = |offered, forwarded, stalled_ns| MethodTrial {
            load: 1_000_000,
            burst: Some(300),
            stalled_ns,
            ..trial(offered, forwarded)
        };
        assert_eq!(burst(300, 300, 0).is_whole(), Ok(true));
        assert_eq!(burst(300, 299, 0).is_whole(), Ok(false));
        assert_eq!(burst(300, 299, 64_000).is_whole(), Ok(false), "64 frames are bridged");
        assert!(burst(300, 299, 65_000).is_whole().is_err());
        assert_eq!(burst(300, 300, 900_000).is_whole(), Ok(true));
        assert!(burst(299, 299, 0).is_whole().is_err(), "one was never sent");
        assert!(burst(300, 301, 0).is_whole().is_err());
        let taken = |forwarded| MethodTrial { taken_ns: 90_000, ..burst(300, forwarded, 65_000) };
        assert!(taken(150).is_whole().is_err());
        assert_eq!(taken(140).is_whole(), Ok(false), "more than came meanwhile");
    }

    #[test]
    fn connection_needs_its_packet_and_its_state() {
        let opened = |forwarded, states: Option<u64>, missed| MethodTrial {
            connections: Some(Connections {
                wanted: 1000,
                states_before: states.map(|_| 7),
                states,
                missed,
                ..Connections::default()
            }),
            ..trial(1000, forwarded)
        };
        assert_eq!(opened(1000, Some(1007), 0).is_whole(), Ok(true));
        assert_eq!(opened(1000, None, 0).is_whole(), Ok(true), "the device doesn't tell");
        assert_eq!(opened(1000, Some(507), 0).is_whole(), Ok(false), "states took others' places");
        assert_eq!(opened(900, Some(1007), 0).is_whole(), Ok(false));
        assert_eq!(lost(opened(1000, Some(507), 0)), Some(0.5));
        assert_eq!(lost(opened(800, Some(1007), 0)), Some(0.2));
        assert_eq!(lost(opened(1000, Some(1007), 5)), Some(0.0));
        assert_eq!(lost(opened(1000, Some(1007), 6)), None, "a late sender says nothing");
        assert_eq!(opened(1000, Some(507), 0).loss_ratio(), Some(0.5));
        let busy = MethodTrial { stalled_ns: 900_000_000, ..opened(1000, Some(1006), 0) };
        assert_eq!(busy.is_whole(), Ok(false), "its packet came through");
        let spoiled = MethodTrial { receiver_lost: 100, ..opened(900, Some(1007), 0) };
        assert!(spoiled.is_whole().is_err(), "the receiver's");
    }

    #[test]
    fn loss_bounds_separate_possible_stall_loss_from_certain_loss() {
        let stalled = |forwarded| MethodTrial {
            taken_ns: 200_000_000,
            stalled_ns: 6_000_000,
            ..trial(1000, forwarded)
        };
        assert_eq!(trial(1000, 800).loss_bounds(), Ok((0.2, 0.2)));
        assert_eq!(stalled(400).loss_bounds(), Ok((0.5, 0.6)));
        assert_eq!(stalled(900).loss_bounds(), Ok((0.0, 0.1)), "all of it may be");
        assert_eq!(stalled(1000).loss_bounds(), Ok((0.0, 0.0)));
        assert_eq!(trial(900, 450).loss_bounds(), Ok((0.5, 0.5)), "of what was offered");
        assert!(trial(1000, 1001).loss_bounds().is_err());
        assert!(trial(0, 0).loss_bounds().is_err());
    }
}
