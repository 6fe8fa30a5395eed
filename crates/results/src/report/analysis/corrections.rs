//! Corrections of rates for the time taken from the device, and reasons to omit them.
//!
//! A correction requires a consistent CPU time account from the kernel, and a device limited by its
//! CPU. All compared variants follow one rule: if one can't be corrected, none is.

use crate::stats::contention::{CpuBound, is_account_contradicted};
use crate::stats::stolen_time::{Roles, StolenTime};
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::{Ring, Sample};
use fwdlab_model::{Plan, RunRecord};
use std::collections::BTreeMap;

/// Minimum number of a variant's runs for detecting a contradicting one.
const FEWEST: usize = 3;

/// Corrections of an experiment's rates.
#[derive(Clone, Debug, Default)]
pub(in crate::report) struct Corrections {
    /// By run: reason why the kernel's CPU time account is not used.
    contradicted: BTreeMap<u32, String>,
    /// By variant: true if its mean rate is not corrected.
    uncorrected: Vec<bool>,
    /// Highest rate without a device by variant, packets per second.
    ceilings: Vec<Option<f64>>,
    /// Remarks for the report.
    pub(super) notes: Vec<String>,
}

impl Corrections {
    /// Determines the corrections of the runs in a store.
    pub(in crate::report) fn of(contents: &Contents) -> Corrections {
        let plan = &contents.plan;
        let contradicted = contradicted(contents);
        let ceilings = plan.variants.iter().map(|v| ceiling_pps(contents, v.index)).collect();
        let mut found = Corrections { contradicted, ceilings, ..Corrections::default() };
        if plan.metric() != RunMetric::Corrected {
            return found;
        }
        let knows: Vec<Option<bool>> =
            plan.variants.iter().map(|v| found.knows_waiting(&contents.runs, v.index)).collect();
        let is_mixed = knows.contains(&Some(true)) && knows.contains(&Some(false));
        let unfit = |(variant, knows): (usize, &Option<bool>)| match knows {
            Some(false) if is_mixed => Some("the kernel does not report how long it waited"),
            // Steal is booked in steps of 10 ms, which can't be compared with samples of 20 ms.
            Some(true) if !found.is_cpu_bound(&contents.runs, variant) => {
                Some("its CPU does not limit it")
            }
            _ => None,
        };
        let unfit: Vec<Option<&str>> = knows.iter().enumerate().map(unfit).collect();
        found.uncorrected = uncorrected(plan, &unfit);
        for (variant, why) in plan.variants.iter().zip(&unfit) {
            found.notes.extend(why.map(|why| {
                format!(
                    "{}: {why}, so its rate, and that of the variants compared with it, is the \
                     mean of the whole window",
                    variant.label
                )
            }));
        }
        found
    }

    /// Returns the reason why a run's account is not used; `None` if it is used.
    pub(in crate::report) fn contradiction(&self, run: u32) -> Option<&str> {
        self.contradicted.get(&run).map(String::as_str)
    }

    /// Returns true if the rate of a variant is the mean of the window.
    pub(super) fn is_uncorrected(&self, variant: usize) -> bool {
        self.uncorrected.get(variant).copied().unwrap_or(false)
    }

    /// Limits a corrected rate to the ceiling (rate without a device), or to the mean if that is
    /// higher.
    pub(super) fn below_ceiling(&self, variant: usize, corrected: f64, mean: f64) -> f64 {
        let ceiling = self.ceilings.get(variant).copied().flatten();
        ceiling.map_or(corrected, |ceiling| corrected.min(ceiling.max(mean)))
    }

    /// Returns true if a rate is within 10 % of the ceiling.
    pub(super) fn is_at_ceiling(&self, variant: usize, pps: f64) -> bool {
        let ceiling = self.ceilings.get(variant).copied().flatten();
        ceiling.is_some_and(|ceiling| pps > 0.9 * ceiling)
    }

    /// Returns the runs of a variant at full load whose account is used.
    fn runs<'a>(
        &'a self,
        runs: &'a [RunRecord],
        variant: usize,
    ) -> impl Iterator<Item = &'a RunRecord> {
        runs.iter().filter(move |run| {
            run.variants == [variant]
                && run.trial.intended.is_none()
                && self.contradiction(run.run).is_none()
        })
    }

    /// Returns true if the kernel reports its threads' waiting time in all runs of a variant;
    /// `None` without runs.
    fn knows_waiting(&self, runs: &[RunRecord], variant: usize) -> Option<bool> {
        let knows = |run: &RunRecord| {
            let samples = run.trial.samples.iter().filter(|sample| sample.valid);
            StolenTime::of(samples, Roles::of(&run.trial.cpus)).knows_threads
        };
        self.runs(runs, variant).next()?;
        Some(self.runs(runs, variant).all(knows))
    }

    fn is_cpu_bound(&self, runs: &[RunRecord], variant: usize) -> bool {
        let mut evidence = CpuBound::default();
        for run in self.runs(runs, variant) {
            evidence.add_run(&run.trial.samples, Roles::of(&run.trial.cpus));
            evidence.add_packets(taken_in(run));
        }
        evidence.is_cpu_bound()
    }
}

/// Marks all variants that are compared, directly or indirectly, with an uncorrectable one.
fn uncorrected(plan: &Plan, unfit: &[Option<&str>]) -> Vec<bool> {
    // A paced rate is never corrected.
    let is_full = |variant: usize| !plan.variants[variant].settings.is_paced();
    let groups: Vec<Vec<usize>> = plan
        .pairs()
        .into_iter()
        .filter(|(variant, baseline)| is_full(*variant) && is_full(*baseline))
        .map(|(variant, baseline)| [plan.builds_of(variant), plan.builds_of(baseline)].concat())
        .collect();
    let mut uncorrected: Vec<bool> = unfit.iter().map(Option::is_some).collect();
    loop {
        let before = uncorrected.clone();
        for group in &groups {
            if group.iter().any(|&variant| uncorrected[variant]) {
                group.iter().for_each(|&variant| uncorrected[variant] = true);
            }
        }
        if uncorrected == before {
            return uncorrected;
        }
    }
}

/// CPU time per forwarded packet of a run.
#[derive(Clone, Copy, Debug)]
struct Cost {
    run: u32,
    /// Nanoseconds per packet.
    ns: f64,
    /// Median of the runs of the same variant.
    usual_ns: f64,
    /// Share of the time taken from the device.
    taken: f64,
}

/// Finds runs whose CPU time per packet is far below that of their variant's other runs, although
/// the neighbouring runs show no period in which the whole machine was that fast.
fn contradicted(contents: &Contents) -> BTreeMap<u32, String> {
    let mut by_variant: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut costs = Vec::new();
    for run in &contents.runs {
        if let ([variant], Some((ns, taken))) = (run.variants.as_slice(), cost(run)) {
            by_variant.entry(*variant).or_default().push(ns);
            costs.push((*variant, Cost { run: run.run, ns, usual_ns: 0.0, taken }));
        }
    }
    let usual = |(variant, cost): &(usize, Cost)| {
        let costs = by_variant.get(variant).filter(|costs| costs.len() >= FEWEST)?;
        Some(Cost { usual_ns: median(costs)?, ..*cost })
    };
    let costs: Vec<Cost> = costs.iter().filter_map(usual).collect();
    let is_contradicted = |(at, cost): &(usize, &Cost)| {
        let usual = cost.usual_ns * relative_cost(&costs, *at);
        is_account_contradicted(cost.ns, usual, cost.taken)
    };
    let reason = |(_, Cost { run, ns, usual_ns, .. }): (usize, &Cost)| {
        let why = format!(
            "the kernel's account of CPU time contradicts itself: {ns:.0} ns per packet, \
             {usual_ns:.0} ns in the variant's other runs"
        );
        (*run, why)
    };
    costs.iter().enumerate().filter(is_contradicted).map(reason).collect()
}

/// Returns the relative cost at a run, from the three runs before and the three after it: their
/// cost over the usual cost of their variants, at most 1, of the faster side. Uses only runs from
/// which little time was taken, if there are any, because their account is reliable.
fn relative_cost(costs: &[Cost], at: usize) -> f64 {
    let side = |runs: &[Cost]| {
        let ratios = |most: f64| -> Vec<f64> {
            let reliable = runs.iter().filter(|cost| cost.taken <= most);
            reliable.map(|cost| cost.ns / cost.usual_ns).collect()
        };
        median(&ratios(0.15)).or_else(|| median(&ratios(1.0))).unwrap_or(1.0)
    };
    let before = side(&costs[at.saturating_sub(FEWEST)..at]);
    let after = side(&costs[at + 1..costs.len().min(at + 1 + FEWEST)]);
    before.min(after).min(1.0)
}

/// Returns the number of packets that the device took from its receive ring in a trial, and how
/// many of them it did not forward; `None` without a counter of packets taken in and dropped.
fn taken_in(run: &RunRecord) -> Option<(u64, u64)> {
    let taken_in = Ring::of(&run.trial.counters)?.taken_in;
    Some((taken_in, taken_in.saturating_sub(run.trial.total.forwarded)))
}

/// Returns the CPU time per forwarded packet of a run at full load, in nanoseconds, and the share
/// of time taken from the device; `None` if the kernel does not report it.
fn cost(run: &RunRecord) -> Option<(f64, f64)> {
    let trial = &run.trial;
    let valid: Vec<Sample> = trial.samples.iter().copied().filter(|sample| sample.valid).collect();
    let forwarded: u64 = valid.iter().map(|sample| sample.forwarded).sum();
    let ran: Option<u64> = valid.iter().map(|sample| sample.ran_ns).sum();
    let taken = StolenTime::of(&valid, Roles::of(&trial.cpus)).share();
    let ran = ran.filter(|_| trial.intended.is_none() && forwarded > 0)?;
    Some((ran as f64 / forwarded as f64, taken))
}

/// Returns the newest ceiling for a variant; `None` if there are several beds.
fn ceiling_pps(contents: &Contents, variant: usize) -> Option<f64> {
    let traffic = &contents.plan.variants.get(variant)?.settings.traffic;
    let of = |c: &&fwdlab_model::record::Calibration| {
        c.family == traffic.family.name() && c.frame_size == traffic.frame_size
    };
    let newest = contents.calibrations.iter().rev().find(of);
    let pps = newest.map(fwdlab_model::record::Calibration::median_pps)?;
    (contents.beds().len() < 2 && pps.is_finite()).then_some(pps)
}
