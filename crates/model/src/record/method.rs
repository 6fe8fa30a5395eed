//! The trials of a method: what a run does beside its own trial.

use super::{Connections, Counts, FloodTrial, Floor, LatencyTrial, is_zero};
use fwdlab_search::{Ending, Goal, Outcome, Output, Trial};
use serde::{Deserialize, Serialize};

/// What a method measured in one run: every trial in its order, and nothing derived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The least load that was allowed, packets per second.
    pub min_load: u64,
    /// The greatest load that was allowed, packets per second.
    pub max_load: u64,
    /// What the links take at most, in all directions together, packets per second; none where
    /// no line rate is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// The trials.
    pub trials: Vec<MethodTrial>,
    /// What ended a search before its goals were reached; none if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ending>,
    /// What the instrument itself adds to the delays of its trials, at each of their loads; empty
    /// where it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<Floor>,
    /// The tests of a suite, in its order; empty for a method that stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MethodRecord>,
}

/// One trial at a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodTrial {
    /// Intended load, packets per second.
    pub load: u64,
    /// How long was to be sent, nanoseconds.
    pub duration_ns: u64,
    /// When it began, nanoseconds after the first one.
    pub at_ns: u64,
    /// Length of the window as measured, nanoseconds.
    pub window_ns: u64,
    /// Packets that left the sender in the window.
    pub offered: u64,
    /// Those of them that arrived intact, each once.
    pub forwarded: u64,
    /// Packets of the whole trial that arrived damaged.
    pub damaged: u64,
    /// Packets of the whole trial that arrived again.
    pub duplicates: u64,
    /// CPU time provably taken from the device in the window, nanoseconds: stolen by the
    /// hypervisor, or used by other programs.
    pub taken_ns: u64,
    /// The most of it that lay within one sample, nanoseconds.
    pub stalled_ns: u64,
    /// Packets of the whole trial that found the receiver's ring full, as far as that is told:
    /// the device had forwarded them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub receiver_lost: u64,
    /// A burst: frames that were to be sent as fast as possible; `load` is then what the sender
    /// reached in the run's own trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// The load before the window, where it was another one, packets per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// When the last packet that the device lost in the window had been sent, nanoseconds after
    /// it opened, to a sample; none if it lost none, or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// How the device was reset in the window; none if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
    /// The connections that its packets opened, one each; none where they opened none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// What came beside its packets; none where nothing was meant to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<FloodTrial>,
    /// How long its packets took; none where that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyTrial>,
    /// The part of `offered` and `forwarded` that went from the receiver to the sender, of
    /// traffic in both directions; none where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Counts>,
    /// What the receiver or the machine did wrong, so that it says nothing of the device; none
    /// when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// A reset of the device while it met traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// What was done.
    pub how: String,
    /// When it began, nanoseconds after the window opened, to a sample.
    pub at_ns: u64,
    /// How long it took until whatever was asked to do it had answered, nanoseconds.
    pub took_ns: u64,
    /// Packets lost from then on until the device forwarded again what it was sent.
    pub lost: u64,
}

/// Packets that the smallest ring on the way holds, a veth's: what arrives while the device
/// does not run is lost beyond it.
const RING: f64 = 256.0;
/// Longest time that others may have the device's CPU within one sample, nanoseconds: what a
/// device then finds at once is no paced load, whatever the rings hold.
const STALL_NS: u64 = 5_000_000;
/// Packets of a burst that may arrive while others have the device's CPU before its loss is no
/// longer the device's: a batch of a driver's.
const MEANWHILE: f64 = 64.0;
/// Share of a trial's intended packets that its sender may leave unsent.
const UNSENT: f64 = 0.005;

impl MethodTrial {
    /// Packets lost over packets offered, or connections that were not opened over packets that
    /// should have; none if nothing was offered or more arrived.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.offered.checked_sub(self.forwarded)?;
        let lost = self.offered - self.done();
        (self.offered > 0).then(|| lost as f64 / self.offered as f64)
    }

    /// Share of the offered packets that the device lost, at least and at most: the difference
    /// is what it may have lost while others had its CPU for longer than its rings can bridge.
    ///
    /// # Errors
    /// Why the trial says nothing of the device.
    pub fn loss_bounds(&self) -> Result<(f64, f64), String> {
        if let Some(why) = &self.invalid {
            return Err(why.clone());
        }
        let most = self.loss_ratio().ok_or_else(|| self.too_many())?;
        let had = if self.is_stalled() { self.had() } else { 1.0 };
        let (expected, passed) = (self.offered as f64 * had, self.passed_at_most() as f64);
        Ok((((expected - passed) / expected.max(1.0)).clamp(0.0, most), most))
    }

    /// True if a burst arrived whole, false if the device lost some of it.
    ///
    /// # Errors
    /// Why the trial says nothing of the device: what is lost while others have its CPU says
    /// nothing of its buffers, unless more is lost than came meanwhile. That a burst arrives in
    /// spite of it says more than without.
    pub fn is_whole(&self) -> Result<bool, String> {
        if let Some(why) = &self.invalid {
            return Err(why.clone());
        }
        let wanted = self.connections.as_ref().map(|opened| opened.wanted);
        let frames = self.burst.or(wanted).unwrap_or(self.offered);
        if self.offered != frames || self.forwarded > frames {
            return Err(format!("{} of {frames} frames were sent", self.offered));
        }
        let missing = (frames - self.done()) as f64;
        let arrived_in = |ns: u64| self.load as f64 * ns as f64 / 1e9;
        match missing {
            0.0 => Ok(true),
            // Its packets came through: their connections were not kept.
            _ if self.gained() < self.forwarded => Ok(false),
            // More than the receiver lost, and than came while others had the CPU at all.
            _ if missing > self.receiver_lost as f64 + arrived_in(self.taken_ns) + MEANWHILE => {
                Ok(false)
            }
            _ if self.receiver_lost > 0 => Err(self.receiver_full()),
            _ if arrived_in(self.stalled_ns) > MEANWHILE => {
                let us = self.stalled_ns as f64 / 1e3;
                Err(format!("others had the device's CPU for {us:.0} us meanwhile"))
            }
            _ => Ok(false),
        }
    }

    /// Packets that the device forwarded at most: those that the receiver lost may all have been
    /// of the window. Where they open connections, only those whose state is in its table.
    fn passed_at_most(&self) -> u64 {
        let passed = self.forwarded.saturating_add(self.receiver_lost).min(self.offered);
        passed.min(self.gained())
    }

    /// States that its packets made, where they open connections and the device tells.
    fn gained(&self) -> u64 {
        self.connections.as_ref().and_then(Connections::gained).unwrap_or(u64::MAX)
    }

    /// Packets that did what they were sent for: they arrived, and the connection that they were
    /// to open is in the device's table.
    pub fn done(&self) -> u64 {
        self.forwarded.min(self.gained())
    }

    fn receiver_full(&self) -> String {
        format!("{} packets found the receiver's ring full", self.receiver_lost)
    }

    /// Share of the window that the device had its CPU.
    fn had(&self) -> f64 {
        1.0 - (self.taken_ns as f64 / self.window_ns.max(1) as f64).min(1.0)
    }

    fn too_many(&self) -> String {
        format!("{} of {} packets arrived", self.forwarded, self.offered)
    }

    /// Intended packets in the window. Counted ones are all sent, but a sender that was late
    /// would have sent more by then.
    pub fn intended(&self) -> u64 {
        if let Some(opened) = &self.connections {
            return opened.wanted.saturating_add(opened.missed);
        }
        (self.load as f64 * self.window_ns as f64 / 1e9).round() as u64
    }

    /// What the trial says of the device, by whose goals no more than `tolerated`, a ratio, may
    /// be lost.
    ///
    /// A sender that fell short did not put the load on the device. If the device lost more
    /// than any goal tolerates even so, it would of more: packets unsent then count as lost
    /// (RFC 9971, Trial Loss Ratio). Otherwise nothing is known of the load.
    ///
    /// Where others had the device's CPU for longer than its rings can bridge, what was lost is
    /// not the device's, nor would it be fair to count only the trials in which nothing was
    /// lost in spite of it. Such a trial counts only if the device lost more than any goal
    /// tolerates of what arrived in the time that it had.
    ///
    /// Packets that the receiver's full ring refused were forwarded. Where it matters whose a
    /// loss was, the trial says nothing.
    pub fn outcome(&self, tolerated: f64) -> Outcome {
        if let Some(why) = &self.invalid {
            return Outcome::Invalid(why.clone());
        }
        let asked = Trial { load: self.load, duration_ns: self.duration_ns };
        let (intended, offered) = (self.intended(), self.offered);
        // What the receiver lost counts as forwarded where a loss must be the device's own.
        let passed = self.passed_at_most();
        let exceeds = |passed: u64, expected: u64| {
            expected.saturating_sub(passed) as f64 > tolerated * expected as f64
        };
        let is_beyond = |expected: u64| self.forwarded <= offered && exceeds(passed, expected);
        let (mut expected, mut doubt) = (offered, None);
        let mut forwarded = if self.forwarded > offered { self.forwarded } else { self.done() };
        if passed > forwarded {
            // Within what is tolerated the receiver's share does not matter.
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
        match (doubt, Output::of_counts(asked, expected, forwarded)) {
            (Some(why), _) => Outcome::Invalid(why),
            (None, Some(output)) => Outcome::Valid(output),
            (None, None) => Outcome::Invalid(self.too_many()),
        }
    }

    /// True if the sender left more unsent than a trial may lack. A packet may be due as the window
    /// opens or closes: of a hundred it is a hundredth. Connections are opened by number.
    pub fn is_short(&self) -> bool {
        let sent = |offered| offered + u64::from(self.connections.is_none());
        let is_less = |offered, most: f64| sent(offered) as f64 <= most * (1.0 - UNSENT);
        let intended = self.intended() as f64;
        let Some(reverse) = self.reverse else { return is_less(self.offered, intended) };
        // What one direction lacks the other one does not make up for.
        let both = [self.offered.saturating_sub(reverse.offered), reverse.offered];
        both.into_iter().any(|one| is_less(one, intended / 2.0))
    }

    /// Reason why the delays of its packets are not the device's; `None` if they are. A packet that
    /// was due and not sent would have shown a delay.
    pub fn timing_fault(&self) -> Option<String> {
        self.invalid.clone().or_else(|| self.is_short().then(|| self.unsent()))
    }

    fn unsent(&self) -> String {
        let intended = self.intended();
        let unsent = intended.saturating_sub(self.offered);
        format!("the sender left {unsent} of {intended} packets unsent")
    }

    /// Remedy for an invalid trial, in the imperative; empty if none is known.
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

    /// True if others had the device's CPU for longer than its rings can bridge at this load.
    fn is_stalled(&self) -> bool {
        let load = self.load + self.flood.as_ref().map_or(0, |flood| flood.load);
        let arrived = load as f64 * self.stalled_ns as f64 / 1e9;
        arrived > RING || self.stalled_ns > STALL_NS
    }
}

impl MethodRecord {
    /// What it consists of: its parts, or itself.
    pub fn parts(&self) -> &[MethodRecord] {
        match self.parts.as_slice() {
            [] => std::slice::from_ref(self),
            parts => parts,
        }
    }

    /// Trials of all parts.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.trials.len()).sum()
    }

    /// True without a trial.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The trials with what they say of the device; see [`MethodTrial::outcome`].
    pub fn outcomes(&self, goals: &[Goal]) -> Vec<(Trial, Outcome)> {
        let tolerated = tolerated(goals);
        let of = |trial: &MethodTrial| {
            let asked = Trial { load: trial.load, duration_ns: trial.duration_ns };
            (asked, trial.outcome(tolerated))
        };
        self.trials.iter().map(of).collect()
    }
}

/// The largest loss ratio that any goal tolerates.
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
    fn what_a_short_sender_means_depends_on_what_was_lost_even_so() {
        assert_eq!(lost(trial(1000, 1000)), Some(0.0));
        assert_eq!(lost(trial(996, 996)), Some(0.0), "within half a percent");
        assert_eq!(lost(trial(990, 990)), None, "nothing is known of the load");
        assert_eq!(lost(trial(990, 986)), None, "a goal tolerates as much");
        assert_eq!(lost(trial(900, 500)), Some(0.5), "it would of more");
        assert_eq!(lost(trial(1000, 1001)), None, "more arrived than were sent");
        assert_eq!(lost(trial(900, 1001)), None, "more arrived than were sent");
        let spoiled = MethodTrial { invalid: Some("dropped".into()), ..trial(1000, 1000) };
        assert_eq!(lost(spoiled.clone()), None);
        // Delays are those of what was sent, however much was lost.
        let is_timed = |trial: &MethodTrial| trial.timing_fault().is_none();
        assert!(is_timed(&trial(996, 500)) && !is_timed(&trial(990, 990)) && !is_timed(&spoiled));
    }

    #[test]
    fn a_trial_whose_device_was_stalled_from_outside_tells_of_clear_losses_only() {
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
    fn what_the_receiver_lost_is_not_the_devices() {
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
    fn a_burst_that_met_a_stalled_device_says_nothing_unless_it_arrived() {
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
    fn a_connection_counts_when_its_packet_arrived_and_its_state_is_there() {
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
    fn what_may_have_been_lost_in_a_stall_is_told_from_what_was_lost_for_sure() {
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
