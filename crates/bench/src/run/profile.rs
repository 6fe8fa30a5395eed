//! Profile runs: a trial with a sampling profiler on the DUT's CPUs. Never a measurement.

use super::hooks::SetupGuard;
use super::measure::dut_queries;
use super::rate;
use crate::cpu::Placement;
use crate::dut::Loss;
use crate::dut::drop_accounting::Readings;
use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::profiler::{Census, RawProfile, Sampling};
use crate::testbed::{Parts, RigLocation, TrafficRequest};
use crate::trial::{self, Moment, Observed, SystemClock, TrialSpec};
use crate::{Observer, Task};
use fwdlab_model::plan::Trial;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{DropPlace, ProfileCounter, ProfileRecord, ProfileWindow, Sample};
use fwdlab_model::settings::{Arrangement, DutKind};
use fwdlab_model::warning::Warning;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Outcome of a profiled trial.
struct Sampled {
    observed: Observed,
    started_at: String,
    raw: RawProfile,
    window_ns: (u64, u64),
    counters: Vec<ProfileCounter>,
}

/// Runs a profiled trial of a variant on a rig that is up.
///
/// # Errors
/// As for a run; a failure of the profiler becomes a remark.
pub(super) fn take(
    parts: Parts<'_>,
    task: Task<'_>,
    plan: &ProfilePlan,
    observer: &mut dyn Observer,
) -> Result<(ProfileRecord, RawProfile), BenchError> {
    let Parts { host, dut, links, placement, ends, clock: trial_clock, reach, perf_file, .. } =
        parts;
    let variant = task.run.variants[0];
    let settings = &task.plan.variants[variant].settings;
    let simulated = reach == RigLocation::Here { simulated: true };
    let mut findings = Findings::default();
    observer.step("configuring the DUT");
    dut.configure(host, settings, placement, &mut findings)?;
    let around = SetupGuard::begin(host, settings, reach, &mut findings)?;

    observer.step("arming the profiler");
    let task = Task { ceiling_pps: ends.known_ceiling_pps(settings).or(task.ceiling_pps), ..task };
    let rate_pps = rate::pps(plan.rate.unwrap_or(settings.traffic.rate), &task, settings)?;
    let phases = trial(&task.plan.trial, plan);
    let (run_id, threads) = (task.plan.run_id(task.run.index), dut.threads());
    let request = TrafficRequest {
        rate_pps,
        threads: &threads,
        ..TrafficRequest::of(settings, run_id, &phases)
    };
    let (mut armed, _) = ends.arm(&request, &mut findings)?;
    let mut before = dut.read(host)?;
    ends.complete(&mut before, dut);

    let started_at = SystemClock.wall_text();
    let clock = || reach.dut_ns(trial_clock.now_ns());
    let cpus = &placement.dut;
    let sampling = Sampling::from(plan);
    let mut profiler = ends.profiler(host, &clock, &sampling, cpus, perf_file, settings);
    observer.step(if simulated { "traffic (simulated profile)" } else { "traffic (profile)" });
    let mut readings: Vec<Readings> = Vec::new();
    let mut window_ns = (0, 0);
    // These readings exist on Linux only: queries to another system would load it for nothing.
    let is_read = !simulated && settings.dut.kind != DutKind::Freebsd;
    let mut read = || {
        if is_read {
            readings.push(Readings::take(host, links, cpus));
        }
    };
    let mut at_window = |moment| match moment {
        Moment::Opening => {
            read();
            profiler.start();
        }
        Moment::Open(now_ns) => window_ns.0 = reach.dut_ns(now_ns),
        Moment::Closed(now_ns) => {
            window_ns.1 = reach.dut_ns(now_ns);
            profiler.stop();
            read();
        }
    };
    let shared = RefCell::new(&mut *dut);
    let mut queries = dut_queries(&shared, host, ends, &before, settings);
    let spec = TrialSpec {
        trial: &phases,
        rate_pps,
        variant,
        alternation: None,
        at_window: &mut at_window,
        awaited: ends.awaited(settings),
        account: &mut queries,
    };
    let observed = trial::run(armed.traffic(), trial_clock, spec, observer);
    drop(queries);
    // Also after a failed or interrupted run: stops perf and removes its file.
    observer.step("reading the samples");
    let raw = profiler.finish();
    let observed = observed?;
    let mut counters = raw.counters.clone();
    if let [open, close] = readings.as_slice() {
        counters.extend(open.until(close));
    }
    let mut after = dut.read(host)?;
    ends.complete(&mut after, dut);
    let (total, receiver) = (observed.total, observed.receiver_dropped);
    let loss = Loss { before: &before, after: &after, total, receiver, settings };
    let drops = dut.drops(&loss);
    let mut facts = findings.facts;
    facts.extend(armed.facts());
    armed.end()?;
    around.end()?;
    dut.stop(host)?;
    facts.extend(ends.facts(settings));

    let mut remarks: Vec<String> = shared_cpus(placement).into_iter().collect();
    if !dut.is_program() && !simulated {
        // A program on the DUT's CPUs is either the DUT or an unrelated one.
        remarks.extend(other_programs(Census::of(&raw.text), placement));
    }
    let sampled = Sampled { observed, started_at, raw, window_ns, counters };
    Ok(record(sampled, variant, plan, placement, drops, facts, remarks))
}

/// Returns the record of a profile run.
fn record(
    sampled: Sampled,
    variant: usize,
    plan: &ProfilePlan,
    placement: &Placement,
    drops: Vec<DropPlace>,
    facts: BTreeMap<String, String>,
    more: Vec<String>,
) -> (ProfileRecord, RawProfile) {
    let Sampled { observed, started_at, raw, window_ns, counters } = sampled;
    let mut remarks = raw.remarks.clone();
    remarks.extend(more);
    remarks.extend(observed.warnings.iter().map(Warning::sentence));
    let record = ProfileRecord {
        variant,
        run: None,
        // The caller numbers the starts.
        start: 0,
        started_at,
        source: raw.source.clone(),
        event: raw.event.clone(),
        frequency_hz: plan.frequency_hz,
        call_graph: raw.call_graph.clone(),
        cpus: placement.dut.clone(),
        rate: plan.rate,
        window_ns,
        windows: windows(&observed.samples, window_ns.0, plan),
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

/// Share of samples in other programs above which the record gets a remark.
const OTHERS: f64 = 0.05;

/// Returns a remark about unrelated programs on CPUs dedicated to a DUT whose kernel forwards.
fn other_programs(census: Census, placement: &Placement) -> Option<String> {
    let share = census.in_programs as f64 / census.samples.max(1) as f64;
    (placement.arrangement == Arrangement::Open && share > OTHERS).then(|| {
        format!(
            "{:.0} % of the samples are in programs, not in the kernel: something else ran on the \
             DUT's CPUs: next step: end it and profile again",
            100.0 * share
        )
    })
}

/// Returns a remark about samples of CPUs that sender or receiver share with the DUT.
fn shared_cpus(placement: &Placement) -> Option<String> {
    let alone = placement.arrangement == Arrangement::Open;
    (!alone).then(|| {
        "the DUT has no CPUs of its own: the sender's work is among the samples: next step: \
         arrangement = \"open\" on a machine with two CPUs or more"
            .into()
    })
}

/// Phases of a profile run: the plan's phases with the window of the profile, whose parts are whole
/// numbers of slices.
fn trial(plan: &Trial, profile: &ProfilePlan) -> Trial {
    let part_ns = profile.duration_ns / u64::from(profile.windows.max(1));
    let slice_ns = part_ns / part_ns.div_ceil(plan.slice_ns.max(1)).max(1);
    Trial { duration_ns: profile.duration_ns, slice_ns, ..*plan }
}

/// Splits a window that opened at `start_ns` into parts: each sample belongs to the part that
/// contains its midpoint.
fn windows(samples: &[Sample], start_ns: u64, profile: &ProfilePlan) -> Vec<ProfileWindow> {
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
    fn window_parts_are_equal_adjacent_and_complete() {
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
    fn short_window_parts_get_shorter_slices() {
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
