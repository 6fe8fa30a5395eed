//! What every testbed's profile runs share: their phases, their parts, and the sampling
//! beside real traffic.

use super::netns::now_text;
use crate::cpu::Placement;
use crate::dut::path::Readings;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use crate::profiler::{Perf, Profiler, RawProfile};
use crate::testbed::asked::awaited;
use crate::trial::{self, Account, Clock, Moment, Observed, Order, SystemClock, Traffic};
use crate::{Observer, Task};
use fwdlab_model::plan::Trial;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{DropPlace, ProfileCounter, ProfileRecord, ProfileWindow, Sample};
use fwdlab_model::settings::{Arrangement, Settings};
use fwdlab_model::warning::Warning;
use std::collections::BTreeMap;
use std::path::Path;

/// What is sampled, and where.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The run.
    pub(super) task: Task<'a>,
    /// How.
    pub(super) plan: &'a ProfilePlan,
    /// Where perf runs.
    pub(super) host: &'a dyn Host,
    /// What is beside the DUT.
    pub(super) links: &'a Links,
    /// Whose CPUs.
    pub(super) placement: &'a Placement,
    /// Perf's own file.
    pub(super) file: &'a Path,
    /// How far that machine's CLOCK_MONOTONIC is ahead of this one's, nanoseconds.
    pub(super) ahead_ns: i64,
}

/// What came of it.
pub(super) struct Sampled {
    pub(super) observed: Observed,
    started_at: String,
    raw: RawProfile,
    window_ns: (u64, u64),
    counters: Vec<ProfileCounter>,
}

impl Subject<'_> {
    fn settings(&self) -> &Settings {
        &self.task.plan.variants[self.task.run.variants[0]].settings
    }

    /// Runs a trial with perf beside it.
    ///
    /// # Errors
    /// As [`trial::run`]; perf's troubles are remarks.
    pub(super) fn sample(
        &self,
        traffic: &mut dyn Traffic,
        rate_pps: Option<f64>,
        account: &mut dyn Account,
        observer: &mut dyn Observer,
    ) -> Result<Sampled, BenchError> {
        let started_at = now_text();
        let (host, cpus) = (self.host, &self.placement.dut);
        let theirs = |ours: u64| ours.saturating_add_signed(self.ahead_ns);
        let clock = || theirs(SystemClock.now_ns());
        let mut perf = Perf::prepare(host, &clock, self.plan, cpus, self.file);
        observer.step("traffic (profile)");
        let mut readings: Vec<Readings> = Vec::new();
        let mut window_ns = (0, 0);
        let mut at_window = |moment| match moment {
            Moment::Opening => {
                readings.push(Readings::take(host, self.links, cpus));
                perf.start();
            }
            Moment::Open(now_ns) => window_ns.0 = theirs(now_ns),
            Moment::Closed(now_ns) => {
                window_ns.1 = theirs(now_ns);
                perf.stop();
                readings.push(Readings::take(host, self.links, cpus));
            }
        };
        let trial = trial(&self.task.plan.trial, self.plan);
        let order = Order {
            trial: &trial,
            rate_pps,
            variant: self.task.run.variants[0],
            alternation: None,
            at_window: &mut at_window,
            awaited: awaited(self.settings(), self.placement.senders.len()),
            account,
        };
        let observed = trial::run(traffic, &SystemClock, order, observer);
        // Also of a run that failed or was interrupted: perf ends, its file goes.
        observer.step("reading the samples");
        let raw = perf.finish();
        let mut counters = raw.counters.clone();
        if let [open, close] = readings.as_slice() {
            counters.extend(open.until(close));
        }
        Ok(Sampled { observed: observed?, started_at, raw, window_ns, counters })
    }

    /// The record of what was sampled.
    pub(super) fn record(
        &self,
        sampled: Sampled,
        drops: Vec<DropPlace>,
        facts: BTreeMap<String, String>,
        more_remarks: &dyn Fn(&RawProfile) -> Vec<String>,
    ) -> (ProfileRecord, RawProfile) {
        let Sampled { observed, started_at, raw, window_ns, counters } = sampled;
        let mut remarks = raw.remarks.clone();
        remarks.extend(shared_cpus(self.placement));
        remarks.extend(more_remarks(&raw));
        remarks.extend(observed.warnings.iter().map(Warning::sentence));
        let record = ProfileRecord {
            variant: self.task.run.variants[0],
            // Whoever asks for several runs knows which one this is.
            start: 0,
            repeated: 0,
            started_at,
            source: raw.source.clone(),
            event: raw.event.clone(),
            frequency_hz: self.plan.frequency_hz,
            call_graph: raw.call_graph.clone(),
            cpus: self.placement.dut.clone(),
            window_ns,
            windows: windows(&observed.samples, window_ns.0, self.plan),
            sampled_from_ns: raw.sampled_from_ns,
            sampled_to_ns: raw.sampled_to_ns,
            counters,
            total: observed.total,
            drops,
            remarks,
            facts,
        };
        (record, raw)
    }
}

/// What is to be known of samples of CPUs that do more than the DUT's work.
fn shared_cpus(placement: &Placement) -> Option<String> {
    let alone = placement.arrangement == Arrangement::Open;
    (!alone).then(|| {
        "the DUT has no CPUs of its own: the sender's work is among the samples: next step: \
         arrangement = \"open\" on a machine with two CPUs or more"
            .into()
    })
}

/// The phases of a profile run: those of the plan, with the window of the profile,
/// whose parts are whole numbers of slices.
pub(super) fn trial(plan: &Trial, profile: &ProfilePlan) -> Trial {
    let part_ns = profile.duration_ns / u64::from(profile.windows.max(1));
    let slice_ns = part_ns / part_ns.div_ceil(plan.slice_ns.max(1)).max(1);
    Trial { duration_ns: profile.duration_ns, slice_ns, ..*plan }
}

/// The parts of a window that opened at `start_ns`: each sample counts for the part
/// in which its middle lies.
pub(super) fn windows(
    samples: &[Sample],
    start_ns: u64,
    profile: &ProfilePlan,
) -> Vec<ProfileWindow> {
    let parts = u64::from(profile.windows.max(1));
    let part_of = |sample: &Sample| {
        let middle_ns = u128::from(sample.at_ns) + u128::from(sample.duration_ns) / 2;
        let part = middle_ns * u128::from(parts) / u128::from(profile.duration_ns.max(1));
        part.min(u128::from(parts) - 1)
    };
    let mut windows: Vec<ProfileWindow> = Vec::new();
    for group in samples.chunk_by(|a, b| part_of(a) == part_of(b)) {
        if let (Some(first), Some(last)) = (group.first(), group.last()) {
            windows.push(ProfileWindow {
                from_ns: start_ns + first.at_ns,
                to_ns: start_ns + last.at_ns + last.duration_ns,
                offered: group.iter().map(|sample| sample.offered).sum(),
                forwarded: group.iter().map(|sample| sample.forwarded).sum(),
            });
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_touch_and_hold_every_packet() {
        let sample = |n: u64| Sample {
            at_ns: n * 20,
            duration_ns: 20,
            offered: 10,
            forwarded: n,
            valid: true,
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..50).map(sample).collect();
        let profile = ProfilePlan { duration_ns: 1000, windows: 5, ..ProfilePlan::default() };
        let windows = windows(&samples, 7000, &profile);
        assert_eq!(windows.len(), 5);
        assert_eq!((windows[0].from_ns, windows[4].to_ns), (7000, 8000));
        assert!(windows.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert!(windows.iter().all(|window| window.offered == 100));
        assert_eq!(windows.iter().map(|window| window.forwarded).sum::<u64>(), 49 * 50 / 2);
    }

    #[test]
    fn short_parts_are_cut_finer() {
        let plan = Trial {
            warmup_ns: 1,
            duration_ns: 2,
            drain_ns: 3,
            interval_ns: 100_000_000,
            slice_ns: 20_000_000,
        };
        let profile =
            ProfilePlan { duration_ns: 1_000_000_000, windows: 100, ..ProfilePlan::default() };
        let trial = trial(&plan, &profile);
        assert_eq!((trial.duration_ns, trial.slice_ns), (1_000_000_000, 10_000_000));
        assert_eq!((trial.warmup_ns, trial.drain_ns), (1, 3));
        let odd = super::trial(&plan, &ProfilePlan { windows: 4, ..profile });
        assert_eq!(odd.slice_ns, 250_000_000 / 13);
    }
}
