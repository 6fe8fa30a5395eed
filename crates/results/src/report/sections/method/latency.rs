//! One-way delays at shares of the throughput, over the runs of a variant.

use super::MethodRun;
use crate::document::measure::{LATENCY, LATENCY_P99};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::{duration, percent, signed_percent};
use crate::report::analysis::RunResult;
use crate::report::analysis::comparisons::{compare_figures, criteria};
use crate::report::sections::cells::seconds;
use crate::stats::BlockedRun;
use crate::stats::summary::{Interval, geometric_mean, median};
use fwdlab_model::Plan;
use fwdlab_model::record::{Latency, MethodRecord};
use serde::Serialize;

/// A statistic of a histogram, in seconds.
type Read = fn(&Latency) -> Option<f64>;

/// The reported statistics of the delays at one share.
const FIGURES: [(&str, Read); 12] = [
    ("minimum", |delays| Some(f64::from(delays.min_ns) / 1e9)),
    ("p50", |delays| quantile(delays, 0.5)),
    ("p90", |delays| quantile(delays, 0.9)),
    ("p99", |delays| quantile(delays, 0.99)),
    ("p99.9", |delays| quantile(delays, 0.999)),
    ("p99.99", |delays| quantile(delays, 0.9999)),
    ("maximum", |delays| Some(f64::from(delays.max_ns) / 1e9)),
    ("mean", |delays| Some(delays.mean_ns() / 1e9)),
    // RFC 8219, section 7.3.1.
    ("PDV", |delays| Some(quantile(delays, 0.999)? - f64::from(delays.min_ns) / 1e9)),
    // RFC 3393, RFC 5481, section 4.1.
    ("IPDV p50", |delays| quantile(delays.differences.as_ref()?, 0.5)),
    ("IPDV p99", |delays| quantile(delays.differences.as_ref()?, 0.99)),
    ("IPDV p99.9", |delays| quantile(delays.differences.as_ref()?, 0.999)),
];

fn quantile(delays: &Latency, share: f64) -> Option<f64> {
    Some(delays.quantile_ns(share)? / 1e9)
}

/// Delays of a variant at one share of the throughput, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyResult {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Ratio of load to throughput.
    pub share: f64,
    /// The load, packets per second: median of the runs.
    pub load: f64,
    /// Number of runs.
    pub runs: usize,
    /// Number of timed packets over all runs.
    pub packets: u64,
    /// Share of the offered packets that was lost, over all runs.
    pub loss: f64,
    /// Share of the time in which other programs used the device's CPU: median of the runs.
    pub taken: f64,
    /// Minimum, percentiles, maximum, mean and delay variation.
    pub figures: Vec<LatencyStatistic>,
    /// Number of invalid trials.
    pub invalid: usize,
    /// Points of the plot: share of the packets, and the delay in seconds that it does not exceed;
    /// all runs.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
    /// The same curve for the instrument alone.
    #[serde(skip)]
    pub floor_curve: Vec<(f64, f64)>,
}

/// One statistic of the delays, over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyStatistic {
    /// Name: `p99`, `maximum`, `PDV` ...
    pub name: &'static str,
    /// Geometric mean of the runs, seconds; `None` if a run has too few packets.
    pub seconds: Option<f64>,
    /// Its interval by Student's t on logarithms; `None` for fewer than three runs.
    pub interval: Option<(f64, f64)>,
    /// The same statistic of the instrument alone at this load, seconds; `None` if not measured.
    pub floor: Option<f64>,
}

/// Comparison of a statistic of a variant's delays with its baseline's, by block, at the same share
/// of each variant's throughput.
#[derive(Clone, Debug, Serialize)]
pub struct DelayEffect {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Label of the baseline.
    pub baseline_label: String,
    /// Ratio of load to throughput.
    pub share: f64,
    /// Name: `p50` or `p99`.
    pub name: &'static str,
    /// Ratio of the delay to the baseline's, minus one.
    pub effect: f64,
    /// Its interval, at the experiment's confidence, unadjusted.
    pub interval: (f64, f64),
}

/// The compared statistics: higher percentiles depend on few packets.
const COMPARED: [(&str, Read); 2] = [FIGURES[1], FIGURES[3]];

/// Compares each variant with its baseline; empty for alternations and sequential designs, which
/// have no blocks. `results` contain the block of each run.
pub(super) fn effects(
    plan: &Plan,
    results: &[RunResult],
    runs: &[MethodRun],
    rows: &[LatencyResult],
) -> Vec<DelayEffect> {
    if plan.design.alternate_ns.is_some() || plan.design.sequential {
        return Vec::new();
    }
    let block = |run: u32| results.iter().find(|result| result.run == run).map(|r| r.block);
    let figures = |variant: usize, share: f64, get: Read| -> Vec<BlockedRun> {
        let variant_runs = runs.iter().filter(|run| run.variant == variant);
        let figure = |run: &MethodRun| {
            let found = run.delays.iter().find(|one| one.share == share)?;
            let seconds = get(&found.delays).filter(|_| found.delays.packets() > 0)?;
            Some(BlockedRun { block: block(run.run)?, pps: seconds.max(1e-9) })
        };
        variant_runs.filter_map(figure).collect()
    };
    let mut found = Vec::new();
    for (variant, baseline) in plan.pairs() {
        for row in rows.iter().filter(|row| row.variant == variant) {
            for (name, get) in COMPARED {
                let of = |variant| figures(variant, row.share, get);
                let pair = (variant, baseline);
                let Ok(compared) = compare_figures(plan, pair, &of, criteria(plan)) else {
                    continue;
                };
                found.push(DelayEffect {
                    variant,
                    label: plan.revision_label(variant),
                    baseline_label: plan.revision_label(baseline),
                    share: row.share,
                    name,
                    effect: compared.ratio - 1.0,
                    interval: (compared.low - 1.0, compared.high - 1.0),
                });
            }
        }
    }
    found
}

/// The valid trials of one run at one share, merged.
#[derive(Clone, Debug)]
pub(super) struct RunDelays {
    share: f64,
    load: u64,
    delays: Latency,
    floor: Option<Latency>,
    offered: u64,
    forwarded: u64,
    taken: f64,
    invalid: usize,
}

/// Returns the delays of a run by share.
pub(super) fn of_run(record: &MethodRecord) -> Vec<RunDelays> {
    let mut found: Vec<RunDelays> = Vec::new();
    for trial in &record.trials {
        let Some(latency) = &trial.latency else { continue };
        let at = found.iter().position(|one| one.share == latency.share);
        let at = at.unwrap_or_else(|| {
            let floor = record.floor.iter().find(|floor| floor.load == trial.load);
            found.push(RunDelays {
                share: latency.share,
                load: trial.load,
                delays: Latency { min_ns: u32::MAX, ..Latency::default() },
                floor: floor.map(|floor| floor.delays.clone()),
                offered: 0,
                forwarded: 0,
                taken: 0.0,
                invalid: 0,
            });
            found.len() - 1
        });
        let one = &mut found[at];
        if trial.timing_fault().is_some() || latency.delays.packets() == 0 {
            one.invalid += 1;
            continue;
        }
        one.delays = one.delays.merged(&latency.delays);
        one.offered += trial.offered;
        one.forwarded += trial.forwarded;
        one.taken += trial.taken_ns as f64 / trial.window_ns.max(1) as f64;
    }
    for one in &mut found {
        let trials = record.trials.iter().filter_map(|trial| trial.latency.as_ref());
        let valid = trials.filter(|latency| latency.share == one.share).count() - one.invalid;
        one.taken /= valid.max(1) as f64;
    }
    found
}

/// Returns a row for each share of a variant.
pub(super) fn timed(
    (variant, label): (usize, &str),
    runs: &[MethodRun],
    confidence: f64,
) -> Vec<LatencyResult> {
    let all = || runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.delays);
    let mut shares: Vec<f64> = all().map(|run| run.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let of = |&share: &f64| {
        let share_runs: Vec<&RunDelays> =
            all().filter(|run| run.share == share && run.delays.packets() > 0).collect();
        let over = |get: fn(&RunDelays) -> f64| -> Vec<f64> {
            share_runs.iter().map(|run| get(run)).collect()
        };
        let sum = |get: fn(&RunDelays) -> u64| share_runs.iter().map(|run| get(run)).sum::<u64>();
        let (offered, forwarded) = (sum(|run| run.offered), sum(|run| run.forwarded));
        let delays = merged(share_runs.iter().map(|run| &run.delays));
        let floor = merged(share_runs.iter().filter_map(|run| run.floor.as_ref()));
        let figure = |(name, get): (&'static str, Read)| {
            let values: Option<Vec<f64>> = share_runs.iter().map(|run| get(&run.delays)).collect();
            let values: Vec<f64> =
                values.iter().flatten().map(|seconds| seconds.max(1e-9)).collect();
            let mean = geometric_mean(&values, confidence);
            let interval = mean.and_then(|(_, interval)| interval);
            LatencyStatistic {
                name,
                seconds: mean.map(|(mean, _)| mean),
                interval: interval.map(|Interval { low, high }| (low, high)),
                floor: floor.as_ref().and_then(get),
            }
        };
        LatencyResult {
            variant,
            label: label.to_owned(),
            share,
            load: median(&over(|run| run.load as f64)).unwrap_or(0.0),
            runs: share_runs.len(),
            packets: delays.as_ref().map_or(0, Latency::packets),
            loss: offered.saturating_sub(forwarded) as f64 / offered.max(1) as f64,
            taken: median(&over(|run| run.taken)).unwrap_or(0.0),
            figures: FIGURES.map(figure).into(),
            invalid: all().filter(|run| run.share == share).map(|run| run.invalid).sum(),
            curve: delays.as_ref().map_or(Vec::new(), curve),
            floor_curve: floor.as_ref().map_or(Vec::new(), curve),
        }
    };
    shares.iter().map(of).collect()
}

fn merged<'a>(mut all: impl Iterator<Item = &'a Latency>) -> Option<Latency> {
    let first = all.next()?.clone();
    Some(all.fold(first, |sum, one| sum.merged(one)))
}

/// Returns the curve with 20 points per decade of the remaining packets, as far as there are enough
/// packets.
fn curve(delays: &Latency) -> Vec<(f64, f64)> {
    let shares = (0..=120).map(|k| 1.0 - 10f64.powf(-f64::from(k) / 20.0));
    shares.map_while(|share| Some((share, quantile(delays, share)?))).collect()
}

impl LatencyResult {
    /// Returns a statistic by name.
    pub fn figure(&self, name: &str) -> Option<&LatencyStatistic> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// Returns a table with one row per variant and share.
pub(super) fn table(rows: &[LatencyResult]) -> Block {
    let figure = |name: &'static str| {
        move |row: &LatencyResult| seconds(row.figure(name).and_then(|found| found.seconds))
    };
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("share", |row| Cell::number(row.share, Digits::Percent(0)))
        .numbers("load", |row| Cell::rate(row.load))
        .numbers("minimum", figure("minimum"))
        .numbers("p50", figure("p50"))
        .numbers("p90", figure("p90"))
        .numbers("p99", figure("p99"))
        .numbers("p99.9", figure("p99.9"))
        .numbers("p99.99", figure("p99.99"))
        .numbers("maximum", figure("maximum"))
        .numbers("mean", figure("mean"))
        .numbers("PDV", figure("PDV"))
        .numbers("IPDV p50", figure("IPDV p50"))
        .numbers("IPDV p99", figure("IPDV p99"))
        .numbers("lost", |row| Cell::number(row.loss, Digits::Percent(3)))
        .numbers("taken", |row| Cell::number(row.taken, Digits::Percent(1)))
        .numbers("packets", |row| Cell::count(row.packets))
        .numbers("runs", |row| Cell::count(row.runs as u64))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| {
            line.name = format!("{}, {}", row.label, percent(row.share, 0));
            line.words.push(sentence(row));
        })
        .set(|table| {
            table.name = Some("latency");
            table.measures = &[LATENCY, LATENCY_P99];
        })
        .block()
}

/// Returns every statistic with its interval, next to the instrument's alone.
pub(super) fn intervals_table(rows: &[LatencyResult], confidence: f64) -> Option<Block> {
    let all: Vec<(&LatencyResult, &LatencyStatistic)> =
        rows.iter().flat_map(|row| row.figures.iter().map(move |figure| (row, figure))).collect();
    let interval = |figure: &LatencyStatistic| match figure.interval {
        Some((low, high)) => Cell::Values(
            format!("{} to {}", duration(low), duration(high)).into(),
            vec![low.into(), high.into()],
        ),
        None => Cell::Values("".into(), vec![serde_json::Value::Null, serde_json::Value::Null]),
    };
    let table = Table::of(&all)
        .words("variant", |(row, _)| Cell::text(&row.label))
        .numbers("share", |(row, _)| Cell::number(row.share, Digits::Percent(0)))
        .words("figure", |(_, figure)| Cell::text(figure.name))
        .numbers("delay", |(_, figure)| seconds(figure.seconds))
        .numbers("interval", move |(_, figure)| interval(figure))
        .keys(&["low", "high"])
        .numbers("instrument alone", |(_, figure)| seconds(figure.floor))
        .set(|table| table.name = Some("latency-intervals"));
    let text = format!(
        "Geometric means over the runs with {confidence} % intervals (Student's t on logarithms; \
         none for fewer than three). Instrument alone: the same sender straight into the same receiver at the \
         same load, once a run and all runs together, where the two can be joined; it is part of \
         each delay and is not subtracted."
    );
    (!all.is_empty())
        .then(|| Block::section("Delays with intervals", vec![Block::text(text), table.block()]))
}

/// Returns the comparisons of each variant with its baseline.
pub(super) fn effects_table(rows: &[DelayEffect], confidence: f64) -> Option<Block> {
    let table = Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .words("against", |row| Cell::text(&row.baseline_label))
        .numbers("share", |row| Cell::number(row.share, Digits::Percent(0)))
        .words("figure", |row| Cell::text(row.name))
        .numbers("difference", |row| {
            Cell::Values(signed_percent(row.effect, 1).into(), vec![row.effect.into()])
        })
        .numbers("interval", |row| {
            let (low, high) = row.interval;
            let text = format!("{} to {}", signed_percent(low, 1), signed_percent(high, 1));
            Cell::Values(text.into(), vec![low.into(), high.into()])
        })
        .keys(&["low", "high"])
        .set(|table| table.name = Some("latency-effects"));
    let text = format!(
        "Delay of a variant relative to its baseline in the same blocks, at the same share of the \
         rate of each, so not at the same load; {confidence} % intervals, not joint. An interval \
         that contains 0 shows no difference."
    );
    (!rows.is_empty())
        .then(|| Block::section("Delays compared", vec![Block::text(text), table.block()]))
}

/// States the delays at a share, without the variant's name.
pub(super) fn sentence(row: &LatencyResult) -> String {
    let of = |name: &str| row.figure(name).and_then(|figure| figure.seconds);
    let share = percent(row.share, 0);
    let Some(p50) = of("p50") else {
        return format!("at {share} of the rate found no packet told its delay");
    };
    let tail = ["p99.9", "p99"].into_iter().find_map(|name| Some((name, of(name)?)));
    let tail = tail.map_or(String::new(), |(name, delay)| format!(", {name} {}", duration(delay)));
    let floor = row.figure("p50").and_then(|figure| figure.floor);
    let floor = floor
        .map_or(String::new(), |floor| format!(" (the instrument alone: p50 {})", duration(floor)));
    format!("at {share} of the rate found, p50 {}{tail}{floor}", duration(p50))
}
