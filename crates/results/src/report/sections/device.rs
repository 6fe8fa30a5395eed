//! The device alone: its CPU time per forwarded packet, without the receiver's.
//!
//! On a single-machine testbed the rate is the device's only if nothing else uses its CPUs. The
//! scheduler's account of the forwarding threads gives the CPU time per packet, independent of
//! other load on the CPU.

use super::{Context, Input, Section};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::{signed, signed_percent};
use crate::report::analysis::RunResult;
use crate::report::analysis::comparisons::{compare_figures, criteria};
use crate::report::analysis::corrections::Corrections;
use crate::stats::BlockedRun;
use crate::stats::blocked::{Difference, difference_of_blocks};
use crate::stats::randomisation::BlockLogs;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::record::ReceiverPlace;
use fwdlab_model::{Plan, RunRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// CPU time of the device alone, for runs with the necessary data.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceAlone {
    /// Description of the CPU that receiver and frame pool used.
    pub receiver: String,
    /// Results of each variant that ran.
    pub variants: Vec<DeviceRow>,
    /// Comparison of each variant with its baseline.
    pub effects: Vec<DeviceEffect>,
}

/// Results of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceRow {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// CPU time of the device per forwarded packet, nanoseconds: median of the runs.
    pub per_packet_ns: Option<f64>,
    /// The largest share of the device's CPU time that the receiver used; `None` if it can't be
    /// determined.
    pub receiver_share: Option<f64>,
    /// Offered over forwarded: median of the runs.
    pub overload: Option<f64>,
}

/// Additional CPU time per packet of a variant compared with its baseline.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceEffect {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Label of the baseline.
    pub baseline_label: String,
    /// Packets per second of the device's CPU time, as a ratio to the baseline's, minus one.
    pub effect: f64,
    /// Interval of the effect, at the experiment's confidence, unadjusted.
    pub interval: (f64, f64),
    /// Time per packet, candidate minus baseline, nanoseconds.
    pub difference_ns: f64,
    /// Its interval.
    pub interval_ns: (f64, f64),
}

impl Section for Option<DeviceAlone> {
    fn analyse(input: &Input<'_>) -> Option<DeviceAlone> {
        device(input.contents, &input.core.runs).filter(|_| input.core.figure.is_rate())
    }

    fn document(&self, _: &Context<'_>) -> Vec<Block> {
        self.iter().map(section).collect()
    }

    fn summary(&self) -> Vec<Block> {
        let of = |device: &DeviceAlone| {
            let receiver = Block::text(format!("{}.", device.receiver));
            let effects = device.effects.iter().map(|effect| Block::text(effect.sentence()));
            std::iter::once(receiver).chain(effects).collect::<Vec<Block>>()
        };
        self.as_ref().map_or(Vec::new(), of)
    }
}

/// Computes the device's CPU time from the runs of a store; `results` contain the block of each
/// run. `None` if no run has the data.
fn device(contents: &Contents, results: &[RunResult]) -> Option<DeviceAlone> {
    let plan = &contents.plan;
    let blocks: BTreeMap<u32, u32> = results.iter().map(|run| (run.run, run.block)).collect();
    let runs = with_account(contents);
    let first = runs.first()?;
    let rows: Vec<DeviceRow> = plan
        .variants
        .iter()
        .filter_map(|variant| row(&runs, &blocks, variant.index, &variant.label))
        .collect();
    let is_blocked = plan.design.alternate_ns.is_none() && !plan.design.sequential;
    let effects =
        plan.pairs().into_iter().filter(|_| is_blocked).filter_map(|(variant, baseline)| {
            let of = |variant| rows.iter().find(|row| row.variant == variant);
            let base_ns = of(baseline)?.per_packet_ns?;
            let of = |variant| figures(&runs, &blocks, variant);
            let found = compare_figures(plan, (variant, baseline), &of, criteria(plan)).ok()?;
            let (difference_ns, interval_ns) = match difference_ns(plan, (variant, baseline), &of) {
                Some(found) => (found.difference, (found.low, found.high)),
                None => {
                    // More packets per second of CPU time mean less time per packet.
                    let more_ns = |ratio: f64| base_ns * (1.0 / ratio - 1.0);
                    (more_ns(found.ratio), (more_ns(found.high), more_ns(found.low)))
                }
            };
            Some(DeviceEffect {
                variant,
                label: plan.revision_label(variant),
                baseline_label: plan.revision_label(baseline),
                effect: found.ratio - 1.0,
                interval: (found.low - 1.0, found.high - 1.0),
                difference_ns,
                interval_ns,
            })
        });
    let effects = effects.collect();
    let receiver = sentence(first, &rows);
    Some(DeviceAlone { receiver, variants: rows, effects })
}

/// Returns the difference in nanoseconds per packet over the blocks of both variants, which
/// profiles break down by function; `None` for variants of several builds.
fn difference_ns(
    plan: &Plan,
    (variant, baseline): (usize, usize),
    figures: &dyn Fn(usize) -> Vec<BlockedRun>,
) -> Option<Difference> {
    if plan.builds_of(variant).len() + plan.builds_of(baseline).len() > 2 {
        return None;
    }
    let mut blocks: BTreeMap<u32, BlockLogs> = BTreeMap::new();
    for run in figures(baseline) {
        blocks.entry(run.block).or_default().a.push(1e9 / run.pps);
    }
    for run in figures(variant) {
        blocks.entry(run.block).or_default().b.push(1e9 / run.pps);
    }
    blocks.retain(|_, block| !block.a.is_empty() && !block.b.is_empty());
    let blocks: Vec<BlockLogs> = blocks.into_values().collect();
    difference_of_blocks(&blocks, criteria(plan))
}

/// Returns the runs whose CPU time account is used.
fn with_account(contents: &Contents) -> Vec<&RunRecord> {
    let corrections = Corrections::of(contents);
    let has_account = |run: &&RunRecord| {
        run.trial.device.receiver != ReceiverPlace::Unknown
            && corrections.contradiction(run.run).is_none()
    };
    contents.runs.iter().filter(has_account).collect()
}

/// Returns the CPU time of the device alone by run, in nanoseconds; for runs of one variant whose
/// account is used.
pub(super) fn alone_ns_of_runs(contents: &Contents) -> BTreeMap<u32, u64> {
    let of_run = |run: &RunRecord| {
        let is_of_one = run.variants.len() == 1 && run.trial.window.forwarded > 0;
        Some((run.run, run.trial.device.alone_ns().filter(|_| is_of_one)?))
    };
    with_account(contents).into_iter().filter_map(of_run).collect()
}

impl DeviceEffect {
    /// Formats the effect in one line.
    pub fn sentence(&self) -> String {
        let percent = |change: f64| signed_percent(change, 1);
        format!(
            "{} against {}, the device alone: {} [{}, {}], {:+.0} ns [{:+.0}, {:+.0}] per packet",
            self.label,
            self.baseline_label,
            percent(self.effect),
            percent(self.interval.0),
            percent(self.interval.1),
            self.difference_ns,
            self.interval_ns.0,
            self.interval_ns.1
        )
    }
}

fn row(
    runs: &[&RunRecord],
    blocks: &BTreeMap<u32, u32>,
    variant: usize,
    label: &str,
) -> Option<DeviceRow> {
    let variant_runs: Vec<&&RunRecord> =
        runs.iter().filter(|run| run.variants.contains(&variant)).collect();
    if variant_runs.is_empty() {
        return None;
    }
    let shares: Option<Vec<f64>> =
        variant_runs.iter().map(|run| run.trial.device.receiver_share()).collect();
    let overloads: Vec<f64> = variant_runs
        .iter()
        .map(|run| run.trial.window)
        .filter(|window| window.forwarded > 0)
        .map(|window| window.offered as f64 / window.forwarded as f64)
        .collect();
    let rates = figures(runs, blocks, variant);
    let times: Vec<f64> = rates.iter().map(|figure| 1e9 / figure.pps).collect();
    Some(DeviceRow {
        variant,
        label: label.to_owned(),
        per_packet_ns: median(&times),
        receiver_share: shares.map(|shares| shares.into_iter().fold(0.0, f64::max)),
        overload: median(&overloads),
    })
}

/// Returns packets per second of the device's CPU time, for runs of this variant alone.
fn figures(runs: &[&RunRecord], blocks: &BTreeMap<u32, u32>, variant: usize) -> Vec<BlockedRun> {
    let figure = |run: &&RunRecord| {
        let forwarded = Some(run.trial.window.forwarded).filter(|&forwarded| forwarded > 0)?;
        let alone_ns = run.trial.device.alone_ns()?;
        let block = *blocks.get(&run.run)?;
        Some(BlockedRun { block, pps: forwarded as f64 * 1e9 / alone_ns as f64 })
    };
    runs.iter().filter(|run| run.variants == [variant]).filter_map(figure).collect()
}

fn sentence(run: &RunRecord, rows: &[DeviceRow]) -> String {
    let shares: Option<Vec<f64>> = rows.iter().map(|row| row.receiver_share).collect();
    let share = match shares {
        Some(shares) => {
            let most = shares.into_iter().fold(0.0, f64::max);
            format!("Receiver and frame pool: {:.0} % of the DUT's CPU", 100.0 * most)
        }
        None => "Receiver and frame pool: on the DUT's CPU, how much of it can't be told".into(),
    };
    let place = match run.trial.device.receiver {
        ReceiverPlace::Own => " (they have a CPU of their own)",
        ReceiverPlace::Sender => " (they work on the sender's)",
        _ => "",
    };
    format!("{share}{place}")
}

/// Returns the CPU time of the device's own threads.
fn section(device: &DeviceAlone) -> Block {
    let text = format!(
        "CPU time of the threads that forward, per forwarded packet: median of the runs. {}.",
        device.receiver
    );
    let table = Table::of(&device.variants)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("per packet", |row| {
            let ns = row.per_packet_ns;
            ns.map_or(Cell::None, |ns| Cell::Number(ns, Digits::Significant, "ns"))
        })
        .numbers("offered over forwarded", |row| Cell::number(row.overload, Digits::Decimals(1)));
    let mut blocks = vec![Block::text(text), table.block()];
    blocks.extend(device.effects.iter().map(|effect| {
        let percent = |change: f64| signed_percent(change, 1);
        Block::text(format!(
            "{} against {}: {} [{}, {}] packets per second of the device's CPU, {} ns [{}, {}] \
             per packet.",
            effect.label,
            effect.baseline_label,
            percent(effect.effect),
            percent(effect.interval.0),
            percent(effect.interval.1),
            signed(effect.difference_ns),
            signed(effect.interval_ns.0),
            signed(effect.interval_ns.1)
        ))
    }));
    Block::section("The device alone", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::plan::RunMetric;
    use fwdlab_model::record::{Counts, DeviceTime, TrialRecord};

    /// Runs of two variants in five blocks: 400 and 500 ns of CPU time per packet, slightly more in
    /// each later block.
    fn contents(receiver: ReceiverPlace, receiver_ns: u64) -> Contents {
        let text = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n\
                    [design]\nblocks = 5\n[compare]\nbaseline = { queues = 1 }\n";
        let plan = fwdlab_model::load("x.toml", text, &|_| Ok(Vec::new()))
            .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        let run = |planned: &fwdlab_model::PlannedRun| {
            let variant = planned.variants[0];
            let cost_ns = 400 + 100 * variant as u64 + u64::from(planned.block);
            RunRecord {
                run: planned.index,
                block: planned.block,
                variants: vec![variant],
                trial: TrialRecord {
                    window_ns: 2_000_000_000,
                    window: Counts { offered: 3_000_000, forwarded: 1_000_000 },
                    device: DeviceTime {
                        ran_ns: Some(cost_ns * 1_000_000),
                        receiver_ns: Some(receiver_ns),
                        receiver_cpus: vec![0],
                        receiver,
                    },
                    ..TrialRecord::default()
                },
                ..RunRecord::default()
            }
        };
        Contents {
            runs: plan.runs.iter().map(run).collect(),
            run_invocations: vec![1; plan.runs.len()],
            plan,
            experiment: String::new(),
            invocations: Vec::new(),
            calibrations: Vec::new(),
            import: None,
            profiles: Vec::new(),
        }
    }

    fn device(contents: &Contents) -> Option<DeviceAlone> {
        let (runs, _) = crate::report::analysis::figures::run_results(contents, RunMetric::Mean);
        super::device(contents, &runs)
    }

    #[test]
    fn device_time_per_packet_excludes_the_receiver() {
        for (place, words) in [
            (ReceiverPlace::Sender, "0 % of the DUT's CPU (they work on the sender's)"),
            (ReceiverPlace::Own, "0 % of the DUT's CPU (they have a CPU of their own)"),
        ] {
            let found = device(&contents(place, 700_000_000)).expect("told");
            assert!(found.receiver.contains(words), "{}", found.receiver);
            for (row, expected) in found.variants.iter().zip([402.0, 502.0]) {
                let cost = row.per_packet_ns.expect("a cost");
                assert!((cost - expected).abs() < 1e-6, "{row:?}");
            }
            assert_eq!(found.variants[0].overload, Some(3.0));
            let [effect] = found.effects.as_slice() else { panic!("{:?}", found.effects) };
            assert!((effect.effect + 0.2).abs() < 0.002, "{effect:?}");
            assert!((effect.difference_ns - 100.0).abs() < 1.0, "{effect:?}");
            assert!(effect.interval_ns.0 < 100.0 && effect.interval_ns.1 > 99.0, "{effect:?}");
        }
        let shared = device(&contents(ReceiverPlace::Device, 100_000_000)).expect("told");
        assert!(shared.receiver.contains("20 % of the DUT's CPU"), "{}", shared.receiver);
        assert!(shared.variants[0].receiver_share > Some(0.19));
        assert!((shared.variants[0].per_packet_ns.expect("a cost") - 402.0).abs() < 1e-6);
    }

    #[test]
    fn indistinguishable_device_time_is_reported_without_effects() {
        let within = device(&contents(ReceiverPlace::Within, 0)).expect("said");
        assert!(within.receiver.contains("can't be told"), "{}", within.receiver);
        assert!(within.effects.is_empty());
        assert!(within.variants.iter().all(|row| row.per_packet_ns.is_none()));
        assert!(device(&contents(ReceiverPlace::Unknown, 0)).is_none());
    }
}
