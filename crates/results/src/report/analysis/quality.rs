//! Quality of the data: warnings, packet conservation, steal.

use super::figures::distinct;
use crate::stats::summary::median;
use crate::store::{Contents, kind_of};
use fwdlab_model::record::Counts;
use fwdlab_model::record::queues::parse_name;
use fwdlab_model::units::FrameSize;
use fwdlab_model::{RunRecord, Warning};
use serde::Serialize;
use std::collections::BTreeMap;

/// A warning about one run.
#[derive(Clone, Debug, Serialize)]
pub struct RunWarning {
    /// Index of the run.
    pub run: u32,
    /// Kind, e.g. `generator-limited`.
    pub kind: String,
    /// One sentence with the evidence.
    pub sentence: String,
    /// The recorded warning.
    pub evidence: Warning,
}

/// All warnings of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct WarningGroup {
    /// Kind.
    pub kind: String,
    /// Number of warnings.
    pub count: usize,
    /// Number of runs with a warning.
    pub runs: usize,
    /// True if the number itself can't be trusted.
    pub fatal: bool,
    /// The warnings, by run.
    pub warnings: Vec<RunWarning>,
}

/// Packets of all runs of one variant (in an alternation, of one set of variants), over whole
/// trials including the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct Conservation {
    /// Label.
    pub label: String,
    /// Number of runs.
    pub runs: usize,
    /// Packets that left the sender.
    pub offered: u64,
    /// Packets that arrived.
    pub forwarded: u64,
    /// Offered minus forwarded.
    pub lost: i64,
    /// Ratio of lost to offered packets.
    pub loss_ratio: f64,
    /// Packets of other runs.
    pub foreign: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
    /// Unsent packets of the windows; `None` at the maximum rate.
    pub unsent: Option<u64>,
}

/// A counter of the DUT over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct CounterCheck {
    /// Name.
    pub name: String,
    /// Its increase over all trials.
    pub counted: u64,
    /// Expected increase by the testbed's counts: packets offered for a receive counter, packets
    /// forwarded for a transmit counter, otherwise `None`.
    pub expected: Option<u64>,
    /// Counted minus expected.
    pub difference: Option<i64>,
    /// The largest absolute difference in a single run.
    pub largest_in_a_run: Option<u64>,
}

/// The ceiling: rates that sender and receiver reach without a DUT.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationResult {
    /// Calibration key of the ceiling.
    pub testbed: String,
    /// Address family.
    pub family: String,
    /// Frame size with FCS, bytes.
    pub frame_size: FrameSize,
    /// Median of the trials, packets per second.
    pub median_pps: f64,
    /// Rates of the trials.
    pub rates_pps: Vec<f64>,
    /// Wall-clock time.
    pub measured_at: String,
}

/// Time of a step of a run outside the traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Overhead {
    /// Step, e.g. `namespaces`; `all together` for the sum of a run.
    pub step: String,
    /// Median over the runs, milliseconds.
    pub median_ms: f64,
    /// The longest, milliseconds.
    pub max_ms: f64,
}

/// Steal of measured CPUs in the runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Steal {
    /// Label.
    pub label: String,
    /// Number of runs.
    pub runs: usize,
    /// Mean share of the window, 0 to 1, over runs and measured CPUs.
    pub mean_share: f64,
    /// The largest share of one CPU in one run.
    pub max_share: f64,
}

/// Returns all warnings by kind, fatal kinds first, then by name.
pub(super) fn warnings(contents: &Contents) -> Vec<WarningGroup> {
    let mut kinds: BTreeMap<(bool, String), Vec<RunWarning>> = BTreeMap::new();
    for run in &contents.runs {
        for warning in &run.warnings {
            let key = (!warning.is_fatal(), kind_of(warning));
            kinds.entry(key).or_default().push(run_warning(run, warning));
        }
    }
    kinds
        .into_iter()
        .map(|((harmless, kind), warnings)| {
            let mut runs: Vec<u32> = warnings.iter().map(|warning| warning.run).collect();
            runs.dedup();
            WarningGroup {
                kind,
                count: warnings.len(),
                runs: runs.len(),
                fatal: !harmless,
                warnings,
            }
        })
        .collect()
}

/// Returns the warnings of the runs in which `variant` was measured.
pub(super) fn warnings_of(contents: &Contents, variant: usize) -> Vec<RunWarning> {
    contents
        .runs
        .iter()
        .filter(|run| run.variants.contains(&variant))
        .flat_map(|run| run.warnings.iter().map(|warning| run_warning(run, warning)))
        .collect()
}

fn run_warning(run: &RunRecord, warning: &Warning) -> RunWarning {
    RunWarning {
        run: run.run,
        kind: kind_of(warning),
        sentence: warning.sentence(),
        evidence: warning.clone(),
    }
}

/// Returns packet counts by variant (or set of variants that share streams).
pub(super) fn conservation(contents: &Contents) -> Vec<Conservation> {
    groups(contents)
        .into_iter()
        .map(|(label, runs)| {
            let sum = |of: fn(&RunRecord) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
            let total = Counts {
                offered: sum(|run| run.trial.total.offered),
                forwarded: sum(|run| run.trial.total.forwarded),
            };
            let unsent: Option<Vec<u64>> = runs
                .iter()
                .map(|run| Some(run.trial.intended?.saturating_sub(run.trial.window.offered)))
                .collect();
            Conservation {
                label,
                runs: runs.len(),
                offered: total.offered,
                forwarded: total.forwarded,
                lost: total.lost(),
                loss_ratio: total.loss_ratio(),
                foreign: sum(|run| run.trial.foreign),
                unstamped: sum(|run| run.trial.unstamped),
                unsent: unsent.map(|unsent| unsent.iter().sum()),
            }
        })
        .collect()
}

/// Returns the DUT's counters over all runs, by name.
pub(super) fn counters(contents: &Contents) -> Vec<CounterCheck> {
    let mut checks: BTreeMap<&str, CounterCheck> = BTreeMap::new();
    for run in &contents.runs {
        // Queue counters are reported by variant.
        let by_queue = |name: &str| parse_name(name).is_some();
        for counter in run.trial.counters.iter().filter(|counter| !by_queue(&counter.name)) {
            let expected = counter.expected;
            let check = checks.entry(&counter.name).or_insert_with(|| CounterCheck {
                name: counter.name.clone(),
                counted: 0,
                expected: expected.map(|_| 0),
                difference: expected.map(|_| 0),
                largest_in_a_run: expected.map(|_| 0),
            });
            check.counted = check.counted.wrapping_add(counter.delta());
            if let Some(expected) = expected {
                let difference = counter.delta().wrapping_sub(expected).cast_signed();
                check.expected = check.expected.map(|sum| sum.wrapping_add(expected));
                check.difference = check.difference.map(|sum| sum.wrapping_add(difference));
                check.largest_in_a_run =
                    check.largest_in_a_run.map(|largest| largest.max(difference.unsigned_abs()));
            }
        }
    }
    checks.into_values().collect()
}

/// Returns the time outside the traffic by step, in the order of a run, followed by the sum.
pub(super) fn overhead(contents: &Contents) -> Vec<Overhead> {
    let mut steps: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add = |step: &str, ns: u64| {
        let ms = ns as f64 / 1e6;
        match steps.iter_mut().find(|(name, _)| name == step) {
            Some((_, times)) => times.push(ms),
            None => steps.push((step.to_owned(), vec![ms])),
        }
    };
    for run in contents.runs.iter().filter(|run| !run.overhead_ns.is_empty()) {
        run.overhead_ns.iter().for_each(|(step, ns)| add(step, *ns));
        // Added after the steps of the first run, so that it is last.
        add("all together", run.overhead_ns.iter().map(|(_, ns)| ns).sum());
    }
    let row = |(step, times): (String, Vec<f64>)| Overhead {
        step,
        median_ms: median(&times).unwrap_or(0.0),
        max_ms: times.iter().copied().fold(0.0, f64::max),
    };
    steps.into_iter().map(row).collect()
}

/// Returns the calibrations, with their medians.
pub(super) fn calibrations(contents: &Contents) -> Vec<CalibrationResult> {
    contents
        .calibrations
        .iter()
        .map(|calibration| CalibrationResult {
            testbed: calibration.testbed.clone(),
            family: calibration.family.clone(),
            frame_size: calibration.frame_size,
            median_pps: calibration.median_pps(),
            rates_pps: calibration.rates_pps.clone(),
            measured_at: calibration.measured_at.clone(),
        })
        .collect()
}

/// Returns the frame size with FCS in bytes; `None` if it differs between variants.
pub(super) fn common_frame_size(contents: &Contents) -> Option<FrameSize> {
    common(contents).map(|(_, frame_size)| frame_size)
}

/// Returns the newest ceiling, packets per second; `None` if it differs between variants.
pub(super) fn common_ceiling_pps(contents: &Contents) -> Option<f64> {
    // Each bed has its own ceiling.
    if contents.beds().len() > 1 {
        return None;
    }
    let (family, frame_size) = common(contents)?;
    contents
        .calibrations
        .iter()
        .rev()
        .find(|c| c.family == family && c.frame_size == frame_size)
        .map(|calibration| calibration.median_pps())
        .filter(|pps| pps.is_finite())
}

/// Returns address family and frame size; `None` if they differ between variants.
fn common(contents: &Contents) -> Option<(&'static str, FrameSize)> {
    let mut kinds = contents.plan.variants.iter().map(|variant| {
        let traffic = &variant.settings.traffic;
        (traffic.family.name(), traffic.frame_size)
    });
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(first)
}

/// Returns the steal; empty if no CPU was observed.
pub(super) fn steal(contents: &Contents) -> Vec<Steal> {
    groups(contents)
        .into_iter()
        .filter_map(|(label, runs)| {
            let shares: Vec<f64> = runs
                .iter()
                .filter(|run| run.trial.window_ns > 0)
                .flat_map(|run| {
                    let window_ns = run.trial.window_ns as f64;
                    let measured = run.trial.cpus.iter().filter(|cpu| cpu.role != "other");
                    measured.map(move |cpu| cpu.stolen_ns as f64 / window_ns)
                })
                .collect();
            (!shares.is_empty()).then(|| Steal {
                label,
                runs: runs.len(),
                mean_share: shares.iter().sum::<f64>() / shares.len() as f64,
                max_share: shares.iter().copied().fold(0.0, f64::max),
            })
        })
        .collect()
}

/// Groups runs by their variants, in the order of the variants.
pub(super) fn groups(contents: &Contents) -> Vec<(String, Vec<&RunRecord>)> {
    let mut groups: BTreeMap<Vec<usize>, Vec<&RunRecord>> = BTreeMap::new();
    for run in &contents.runs {
        let mut variants = distinct(&run.variants);
        variants.sort_unstable();
        groups.entry(variants).or_default().push(run);
    }
    groups
        .into_iter()
        .map(|(variants, runs)| {
            let labels: Vec<&str> =
                variants.iter().map(|&v| contents.plan.variants[v].label.as_str()).collect();
            (labels.join(" / "), runs)
        })
        .collect()
}
