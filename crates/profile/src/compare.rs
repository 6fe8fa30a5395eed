//! Compares the cost per packet of each part of two profiles.
//!
//! Shares are not comparable: a faster variant spends a larger share on everything that did not
//! change. Costs per packet are. If each variant was profiled in several windows, the difference
//! has an interval (Welch, 1947); with one window each, it has none. Intervals are for single
//! differences: among a hundred functions, some exclude 0 by chance.
//!
//! Samples of measured runs are compared block by block, with the test of the verdict, and their
//! intervals hold for all parts together. Small parts are merged, so that the parts sum to the
//! whole.

use super::functions::{self, SortKey};
use super::stacks::Stacks;
use super::subsystems::Subsystems;
use fwdlab_stats::blocked::difference_of_blocks;
use fwdlab_stats::comparison::Criteria;
use fwdlab_stats::randomisation::BlockLogs;
use fwdlab_stats::summary::{mean, t_quantile, variance};
use serde::Serialize;
use std::collections::BTreeMap;

/// Share of the whole below which a part is not compared separately.
const SMALL: f64 = 0.01;

/// A profile and the packets forwarded during it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Stacks; usually the work of a [`super::Split`].
    pub stacks: Stacks,
    /// Packets forwarded during the profile. Positive.
    pub packets: f64,
    /// Weight of a count: 1 for samples, or the cycles or nanoseconds of CPU per sample. Positive.
    pub per_count: f64,
}

/// Kind of the compared parts.
#[derive(Clone, Copy, Debug)]
pub enum Grouping<'a> {
    /// Functions, by own cost.
    Own,
    /// Functions with their callees.
    Total,
    /// Subsystems, by the own cost of their functions.
    Subsystems(&'a Subsystems),
}

/// A function or subsystem in two variants, in the profile's unit per packet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the part.
    pub name: String,
    /// Cost per packet in the baseline: mean of the windows.
    pub baseline: f64,
    /// Cost per packet in the candidate: mean of the windows.
    pub candidate: f64,
    /// Candidate minus baseline: negative if the part became cheaper.
    pub difference: f64,
    /// Interval of the difference. `None` with a single window.
    pub interval: Option<(f64, f64)>,
}

/// All differences, the largest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// Confidence of the intervals in percent.
    pub confidence: f64,
    /// The whole.
    pub whole: Change,
    /// Parts of the whole.
    pub parts: Vec<Change>,
    /// Caveats to print with the changes.
    pub remarks: Vec<String>,
}

/// Error of a comparison.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// A variant has no windows.
    #[error("the {0} has no profile")]
    NoWindow(&'static str),
    /// The packets or the weight are not positive.
    #[error("{what} must be above 0, not {value}")]
    NotPositive {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: f64,
    },
    /// The confidence is out of range.
    #[error("the confidence must be between 50 and 100 percent, not {0}")]
    Confidence(f64),
}

impl Changes {
    /// Parts with a higher cost than before, the largest difference first.
    pub fn risers(&self) -> impl Iterator<Item = &Change> {
        self.parts.iter().filter(|change| change.difference > 0.0)
    }

    /// Parts with a lower cost than before.
    pub fn fallers(&self) -> impl Iterator<Item = &Change> {
        self.parts.iter().filter(|change| change.difference < 0.0)
    }
}

/// Compares the cost per packet of each part, at `confidence` percent.
///
/// # Errors
/// Fails for variants without windows, for weights that are not positive, and if the confidence is
/// out of range.
pub fn compare(
    baseline: &[Measured],
    candidate: &[Measured],
    grouping: Grouping<'_>,
    confidence: f64,
) -> Result<Changes, CompareError> {
    if !(confidence > 50.0 && confidence < 100.0) {
        return Err(CompareError::Confidence(confidence));
    }
    let before = costs(baseline, "baseline", grouping)?;
    let after = costs(candidate, "candidate", grouping)?;
    let none = (vec![0.0; baseline.len()], vec![0.0; candidate.len()]);
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let mut parts: Vec<Change> = names
        .into_iter()
        .map(|name| {
            let a = before.get(name).unwrap_or(&none.0);
            let b = after.get(name).unwrap_or(&none.1);
            change(name, a, b, confidence)
        })
        .collect();
    sort(&mut parts);
    let mut remarks = Vec::new();
    if baseline.len() < 2 || candidate.len() < 2 {
        remarks.push(
            "one window of a variant has no scatter, so differences have no interval; profile \
             each variant at least twice"
                .to_owned(),
        );
    }
    let whole = change("all", &wholes(baseline), &wholes(candidate), confidence);
    Ok(Changes { confidence, whole, parts, remarks })
}

/// Compares the cost per packet of each part in runs of the same blocks, each given with its block.
/// The interval of the whole holds for all comparisons of the family, the intervals of the parts
/// for all parts of these comparisons.
///
/// # Errors
/// Fails like [`compare`].
pub fn compare_blocks(
    baseline: &[(u32, Measured)],
    candidate: &[(u32, Measured)],
    grouping: Grouping<'_>,
    criteria: Criteria,
) -> Result<Changes, CompareError> {
    let runs = |side: &[(u32, Measured)]| -> Vec<Measured> {
        side.iter().map(|(_, run)| run.clone()).collect()
    };
    let (before, after) = (runs(baseline), runs(candidate));
    let sides = [costs(&before, "baseline", grouping)?, costs(&after, "candidate", grouping)?];
    let wholes = [wholes(&before), wholes(&after)];
    let blocks = [baseline, candidate].map(|side| side.iter().map(|(block, _)| *block).collect());
    let share = |name: &String| {
        let of = |side: usize| {
            sides[side].get(name).map_or(0.0, |costs| mean(costs) / mean(&wholes[side]))
        };
        of(0).max(of(1))
    };
    let mut names: Vec<&String> = sides.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    // Callers without own cost are not parts.
    names.retain(|name| share(name) > 0.0);
    let (large, small): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| share(name) >= SMALL);
    let family = criteria.family.max(1) * (large.len() + usize::from(!small.is_empty())).max(1);
    let of_parts = Criteria { family, ..criteria };
    let sum = |names: &[&String]| {
        [0, 1].map(|side| {
            let mut sums = vec![0.0; wholes[side].len()];
            for costs in names.iter().filter_map(|name| sides[side].get(*name)) {
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            }
            sums
        })
    };
    let mut parts: Vec<Change> = large
        .iter()
        .map(|name| change_of_blocks(name, &sum(&[*name]), &blocks, of_parts))
        .collect();
    sort(&mut parts);
    if !small.is_empty() {
        let others = if small.len() == 1 { "other" } else { "others" };
        let name = format!("{} {others} below 1 %", small.len());
        parts.push(change_of_blocks(&name, &sum(&small), &blocks, of_parts));
    }
    let whole = change_of_blocks("all", &wholes, &blocks, criteria);
    let remarks = match whole.interval {
        Some(_) => Vec::new(),
        None => {
            vec!["fewer than two blocks have samples of both, so nothing has an interval".into()]
        }
    };
    Ok(Changes { confidence: criteria.confidence, whole, parts, remarks })
}

/// Compares the costs of a part, one value per run, over the blocks that have runs of both
/// variants.
fn change_of_blocks(
    name: &str,
    costs: &[Vec<f64>; 2],
    blocks: &[Vec<u32>; 2],
    criteria: Criteria,
) -> Change {
    let mut by_block: BTreeMap<u32, BlockLogs> = BTreeMap::new();
    for (block, cost) in blocks[0].iter().zip(&costs[0]) {
        by_block.entry(*block).or_default().a.push(*cost);
    }
    for (block, cost) in blocks[1].iter().zip(&costs[1]) {
        by_block.entry(*block).or_default().b.push(*cost);
    }
    by_block.retain(|_, block| !block.a.is_empty() && !block.b.is_empty());
    let complete: Vec<BlockLogs> = by_block.into_values().collect();
    let result = difference_of_blocks(&complete, criteria);
    let [baseline, candidate] = [mean(&costs[0]), mean(&costs[1])];
    Change {
        name: name.to_owned(),
        baseline,
        candidate,
        difference: result.map_or(candidate - baseline, |result| result.difference),
        interval: result.map(|result| (result.low, result.high)),
    }
}

/// Sorts by size of the difference, the largest first.
fn sort(parts: &mut [Change]) {
    parts.sort_by(|a, b| {
        let size = |change: &Change| change.difference.abs();
        size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
    });
}

/// Cost per packet of all parts, one value per window.
fn wholes(windows: &[Measured]) -> Vec<f64> {
    windows.iter().map(|window| window.stacks.total() as f64 * scale(window)).collect()
}

/// Cost per packet of each part, one value per window.
fn costs(
    windows: &[Measured],
    variant: &'static str,
    grouping: Grouping<'_>,
) -> Result<BTreeMap<String, Vec<f64>>, CompareError> {
    if windows.is_empty() {
        return Err(CompareError::NoWindow(variant));
    }
    let mut costs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (index, window) in windows.iter().enumerate() {
        for (what, value) in [
            ("the number of packets", window.packets),
            ("the weight of a sample", window.per_count),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(CompareError::NotPositive { what, value });
            }
        }
        for (name, count) in counts(&window.stacks, grouping) {
            let figures = costs.entry(name).or_insert_with(|| vec![0.0; windows.len()]);
            figures[index] = count * scale(window);
        }
    }
    Ok(costs)
}

fn counts(stacks: &Stacks, grouping: Grouping<'_>) -> Vec<(String, f64)> {
    match grouping {
        Grouping::Own => functions::of_stacks(stacks, SortKey::Own)
            .into_iter()
            .map(|function| (function.name, function.own))
            .collect(),
        Grouping::Total => functions::of_stacks(stacks, SortKey::Total)
            .into_iter()
            .map(|function| (function.name, function.total.unwrap_or(function.own)))
            .collect(),
        Grouping::Subsystems(table) => table
            .of_stacks(stacks)
            .into_iter()
            .map(|subsystem| (subsystem.name, subsystem.own as f64))
            .collect(),
    }
}

fn scale(window: &Measured) -> f64 {
    window.per_count / window.packets
}

fn change(name: &str, a: &[f64], b: &[f64], confidence: f64) -> Change {
    let (baseline, candidate) = (mean(a), mean(b));
    // The rounding error of equal values is not a difference.
    let difference = match candidate - baseline {
        rest if rest.abs() <= 1e-12 * baseline.abs() => 0.0,
        difference => difference,
    };
    let half = half_width(a, b, confidence);
    Change {
        name: name.to_owned(),
        baseline,
        candidate,
        difference,
        interval: half.map(|half| (difference - half, difference + half)),
    }
}

/// Half of Welch's interval; 0 if no window has scatter.
fn half_width(a: &[f64], b: &[f64], confidence: f64) -> Option<f64> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let part = |values: &[f64]| variance(values, mean(values)) / values.len() as f64;
    let (part_a, part_b) = (part(a), part(b));
    let sum = part_a + part_b;
    if sum == 0.0 {
        return Some(0.0);
    }
    let (df_a, df_b) = (a.len() as f64 - 1.0, b.len() as f64 - 1.0);
    let df = sum * sum / (part_a * part_a / df_a + part_b * part_b / df_b);
    // The scatter is so small that its square is 0.
    let df = if df.is_finite() { df } else { df_a.min(df_b) };
    t_quantile(confidence, df).map(|t| t * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::super::stacks::stacks;
    use super::*;

    fn window(f: u64, g: u64, packets: f64) -> Measured {
        Measured { stacks: stacks(&[("r;f", f), ("r;f;g", g)]), packets, per_count: 2.0 }
    }

    #[test]
    fn compare_divides_costs_by_packets() {
        let changes =
            compare(&[window(100, 50, 100.0)], &[window(200, 20, 200.0)], Grouping::Own, 95.0)
                .unwrap();
        let names: Vec<&str> = changes.parts.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["g", "f", "r"]);
        let g = &changes.parts[0];
        assert_eq!((g.baseline, g.candidate), (1.0, 0.2));
        assert!((g.difference + 0.8).abs() < 1e-12 && g.interval.is_none());
        assert_eq!((changes.whole.baseline, changes.whole.candidate), (3.0, 2.2));
        assert!(changes.remarks[0].contains("at least twice"));
        assert_eq!((changes.risers().count(), changes.fallers().count()), (0, 1));
        let total = compare(&[window(1, 2, 1.0)], &[window(1, 2, 1.0)], Grouping::Total, 95.0);
        let total = total.unwrap();
        assert_eq!(total.parts.iter().find(|c| c.name == "f").map(|c| c.baseline), Some(6.0));
    }

    #[test]
    fn compare_interval_agrees_with_scipy() {
        // scipy 1.17.1: ttest_ind([2.2, 2.0, 2.3, 1.9], [2.0, 2.2, 2.4], equal_var=False)
        // .confidence_interval(.95), of b minus a, for twice 110, 100, 115, 95 and 100, 110, 120
        // samples over 100 packets.
        let before = [110, 100, 115, 95].map(|f| window(f, 1, 100.0));
        let after = [100, 110, 120].map(|f| window(f, 1, 100.0));
        let changes = compare(&before, &after, Grouping::Own, 95.0).unwrap();
        let f = &changes.parts[0];
        assert_eq!(f.name, "f");
        let (low, high) = f.interval.unwrap();
        assert!(
            (low + 0.301_472_743_198_075_2).abs() < 1e-9
                && (high - 0.501_472_743_198_074_6).abs() < 1e-9,
            "{low} {high}"
        );
        let g = changes.parts.iter().find(|change| change.name == "g").unwrap();
        assert_eq!(g.interval, Some((0.0, 0.0)));
        assert!(changes.remarks.is_empty());
    }

    /// Four blocks that differ by up to 30 samples; the candidate adds 20 to `f` and removes 5 from
    /// `g`.
    #[test]
    fn compare_blocks_parts_sum_to_the_whole() {
        let run = |block: u32, f: u64, g: u64| {
            let stacks =
                stacks(&[("r;f", f), ("r;g", g), ("r;tiny", 1), ("r;small", block.into())]);
            (block, Measured { stacks, packets: 100.0, per_count: 1.0 })
        };
        let drift = [0, 30, 10, 20];
        let side = |more: u64, less: u64| -> Vec<(u32, Measured)> {
            let each = (0_u32..).zip(drift);
            each.map(|(n, drift)| run(n, 200 + drift + more + u64::from(n % 2), 150 - less))
                .collect()
        };
        let criteria = Criteria::default();
        let found = compare_blocks(&side(0, 0), &side(20, 5), Grouping::Own, criteria).unwrap();
        let names: Vec<&str> = found.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["f", "g", "2 others below 1 %"]);
        assert!((found.whole.difference - 0.15).abs() < 1e-12, "{:?}", found.whole);
        let sum: f64 = found.parts.iter().map(|part| part.difference).sum();
        assert!((sum - found.whole.difference).abs() < 1e-12);
        // The differences between blocks cancel.
        let (low, high) = found.parts[0].interval.unwrap();
        assert!(low > 0.19 && high < 0.21, "{low} {high}");
        let one = compare_blocks(&side(0, 0)[..1], &side(1, 0), Grouping::Own, criteria).unwrap();
        assert!(one.whole.interval.is_none() && one.remarks.len() == 1);
    }

    #[test]
    fn compare_rejects_invalid_input() {
        let one = [window(1, 1, 1.0)];
        let none = compare(&[], &one, Grouping::Own, 95.0);
        assert_eq!(none, Err(CompareError::NoWindow("baseline")));
        assert!(compare(&one, &[window(1, 1, 0.0)], Grouping::Own, 95.0).is_err());
        assert!(compare(&one, &one, Grouping::Own, 50.0).is_err());
        let table = Subsystems::default();
        let grouped = compare(&one, &one, Grouping::Subsystems(&table), 95.0).unwrap();
        assert_eq!(grouped.parts[0].name, "other");
    }
}
