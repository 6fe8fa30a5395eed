//! Instructions by function, and the functions that differ between two variants.

use super::SHOWN;
use super::total::{Foreground, range};
use crate::profile::{OTHER, Subsystems};
use crate::stats::summary::median;
use fwdlab_model::record::Executed;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Cost of one function or subsystem in a variant, per packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FunctionCount {
    /// Its name.
    pub name: String,
    /// The subsystem of the kernel that it belongs to.
    pub subsystem: String,
    /// Instructions: median over the runs of the median over the bursts.
    pub instructions: f64,
    /// Number of atomic instructions among them.
    pub atomics: f64,
    /// Bytes moved by repeated string instructions.
    pub bytes: f64,
    /// Minimum and maximum of the runs; of the bursts if there is only one run.
    #[serde(skip)]
    pub range: (f64, f64),
}

/// One function, or one subsystem, in two variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// Its name.
    pub name: String,
    /// The subsystem of the kernel that it belongs to.
    pub subsystem: String,
    /// Instructions per packet in the baseline.
    pub before: f64,
    /// Instructions per packet in the candidate.
    pub after: f64,
    /// After minus before.
    pub difference: f64,
    /// Atomic instructions per packet, after minus before.
    pub atomics: f64,
}

/// Differences of two variants by function, largest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Functions that differ by at least half an instruction, with a gap larger than the scatter of
    /// both variants together.
    pub differing: Vec<FunctionDifference>,
    /// Functions that differ as much, but by no more than their scatter.
    pub scattering: Vec<FunctionDifference>,
    /// Number of other functions that differ at all.
    pub others: usize,
    /// Sum of their differences.
    pub others_sum: f64,
    /// Differences by subsystem, over all functions.
    pub subsystems: Vec<FunctionDifference>,
    /// The function whose runs scatter most, with its scatter in instructions per packet.
    pub scatters: Option<(String, f64)>,
    /// The differential flame graph, a file of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The differential flame graph of call stacks; `None` if calls were not followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
}

/// Returns the functions of one variant's runs, most expensive first.
pub fn costs(
    runs: &[&Executed],
    foreground: &Foreground,
    table: &Subsystems,
) -> Vec<FunctionCount> {
    let mut by_name: BTreeMap<&str, Vec<Option<[f64; 3]>>> = BTreeMap::new();
    let mut bursts: BTreeMap<&str, &[f64]> = BTreeMap::new();
    for (at, executed) in runs.iter().enumerate() {
        for function in foreground.functions(executed) {
            let counts = by_name.entry(&function.name).or_insert_with(|| vec![None; runs.len()]);
            let instructions = median(&function.bursts).unwrap_or(0.0);
            counts[at] = Some([instructions, function.atomics, function.bytes]);
            bursts.insert(&function.name, &function.bursts);
        }
    }
    let count = |(name, counts): (&str, Vec<Option<[f64; 3]>>)| {
        // A run without the function executes next to nothing in it.
        let of = |figure: usize| -> Vec<f64> {
            counts.iter().map(|run| run.map_or(0.0, |figures| figures[figure])).collect()
        };
        let middle = |figure| median(&of(figure)).unwrap_or(0.0);
        let [instructions, atomics, bytes] = [0, 1, 2].map(middle);
        FunctionCount {
            name: name.to_owned(),
            subsystem: table.of_function(name).unwrap_or(OTHER).to_owned(),
            instructions,
            atomics,
            bytes,
            range: if runs.len() > 1 { range(&of(0)) } else { range(bursts[name]) },
        }
    };
    let mut all: Vec<FunctionCount> = by_name.into_iter().map(count).collect();
    all.sort_by(|a, b| b.instructions.total_cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
    all
}

/// Sums functions by subsystem, most expensive first.
pub(crate) fn by_subsystem(functions: &[FunctionCount]) -> Vec<FunctionCount> {
    let mut sums: BTreeMap<&str, FunctionCount> = BTreeMap::new();
    for function in functions {
        let sum = sums.entry(&function.subsystem).or_default();
        sum.instructions += function.instructions;
        sum.atomics += function.atomics;
        sum.bytes += function.bytes;
    }
    let named = |(name, sum): (&str, FunctionCount)| FunctionCount {
        name: name.to_owned(),
        subsystem: name.to_owned(),
        ..sum
    };
    let mut all: Vec<FunctionCount> = sums.into_iter().map(named).collect();
    all.sort_by(|a, b| b.instructions.total_cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
    all
}

impl Differences {
    /// Returns the sum of the differences of the functions that differ.
    pub fn named(&self) -> f64 {
        // An empty sum is -0.
        self.differing.iter().map(|function| function.difference).sum::<f64>() + 0.0
    }

    /// Computes the differences between two variants' functions.
    pub fn of(baseline: &[FunctionCount], candidate: &[FunctionCount]) -> Differences {
        let mut found = Differences::default();
        for (function, ranges, difference) in pairs(baseline, candidate) {
            let scatters = ranges.map(|(least, most)| most - least);
            let [scatter, sum] = [scatters[0].max(scatters[1]), scatters[0] + scatters[1]];
            let gap = (ranges[1].0 - ranges[0].1).max(ranges[0].0 - ranges[1].1);
            if scatter > found.scatters.as_ref().map_or(0.0, |(_, most)| *most) {
                found.scatters = Some((function.name.clone(), scatter));
            }
            match difference.abs() >= SHOWN {
                true if gap > sum => found.differing.push(function),
                true => found.scattering.push(function),
                false if difference == 0.0 => {}
                false => {
                    found.others += 1;
                    found.others_sum += difference;
                }
            }
        }
        let whole = [baseline, candidate].map(by_subsystem);
        found.subsystems = pairs(&whole[0], &whole[1]).map(|(part, ..)| part).collect();
        for list in [&mut found.differing, &mut found.scattering, &mut found.subsystems] {
            list.sort_by(|a, b| {
                b.difference.abs().total_cmp(&a.difference.abs()).then_with(|| a.name.cmp(&b.name))
            });
        }
        found
    }
}

/// Pairs all functions of either variant, with both ranges and the difference.
fn pairs<'a>(
    baseline: &'a [FunctionCount],
    candidate: &'a [FunctionCount],
) -> impl Iterator<Item = (FunctionDifference, [(f64, f64); 2], f64)> {
    let by_name = |list: &'a [FunctionCount]| -> BTreeMap<&'a str, &'a FunctionCount> {
        list.iter().map(|function| (function.name.as_str(), function)).collect()
    };
    let (before, after) = (by_name(baseline), by_name(candidate));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    names.into_iter().map(move |name| {
        let (of_a, of_b) = (before.get(name), after.get(name));
        let figure = |count: Option<&&FunctionCount>, figure: fn(&FunctionCount) -> f64| {
            count.map_or(0.0, |function| figure(function))
        };
        let values = |get: fn(&FunctionCount) -> f64| [figure(of_a, get), figure(of_b, get)];
        let ([before, after], [less, more]) = (values(|f| f.instructions), values(|f| f.atomics));
        let ranges = [of_a, of_b].map(|count| count.map_or((0.0, 0.0), |function| function.range));
        let subsystem = of_a.or(of_b).map_or("", |function| &function.subsystem);
        let difference = FunctionDifference {
            name: name.to_owned(),
            subsystem: subsystem.to_owned(),
            before,
            after,
            difference: after - before,
            atomics: more - less,
        };
        (difference, ranges, after - before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::ExecutedFunction;

    fn run(functions: &[(&str, f64)]) -> Executed {
        let function = |&(name, count): &(&str, f64)| ExecutedFunction {
            name: name.to_owned(),
            bursts: vec![count, count + 0.1, count],
            atomics: count / 100.0,
            ..ExecutedFunction::default()
        };
        Executed {
            packets: vec![32; 3],
            functions: functions.iter().map(function).collect(),
            ..Executed::default()
        }
    }

    fn differences(a: &[Executed], b: &[Executed]) -> Differences {
        let foreground = Foreground::of(a.iter().chain(b));
        let [a, b] = [a, b].map(|runs| {
            costs(&runs.iter().collect::<Vec<_>>(), &foreground, &Subsystems::default())
        });
        Differences::of(&a, &b)
    }

    #[test]
    fn function_differs_if_gap_exceeds_scatter() {
        let before = [run(&[
            ("ip_rcv", 50.0),
            ("kfree", 40.0),
            ("tiny", 3.0),
            ("udp_v4_early_demux", 92.0),
        ])];
        let after = [run(&[("ip_rcv", 51.0), ("kfree", 40.0), ("tiny", 3.2)])];
        let found = differences(
            &[before[0].clone(), before[0].clone()],
            &[after[0].clone(), after[0].clone()],
        );
        let named = |list: &[FunctionDifference]| -> Vec<(String, f64)> {
            list.iter().map(|f| (f.name.clone(), f.difference)).collect()
        };
        let expected = [("udp_v4_early_demux".to_owned(), -92.0), ("ip_rcv".to_owned(), 1.0)];
        assert_eq!(named(&found.differing), expected);
        assert_eq!(found.differing[0].atomics, -0.92);
        assert_eq!((found.scattering.len(), found.others), (0, 1));
        assert!((found.others_sum - 0.2).abs() < 1e-9, "{}", found.others_sum);
        assert_eq!(found.scatters, None);
        let parts: f64 = found.subsystems.iter().map(|part| part.difference).sum();
        assert!((parts + 90.8).abs() < 1e-9, "{parts}");

        // The same difference, but with as much scatter in one variant.
        let loud = [run(&[("ip_rcv", 50.0)]), run(&[("ip_rcv", 53.0)])];
        let quiet = [run(&[("ip_rcv", 55.0)]), run(&[("ip_rcv", 55.0)])];
        let found = differences(&loud, &quiet);
        assert!(found.differing.is_empty(), "{found:?}");
        assert_eq!(found.scattering.len(), 1);
        assert_eq!(found.scatters, Some(("ip_rcv".to_owned(), 3.0)));
        // The bursts of single runs are used.
        assert_eq!(differences(&before, &after).differing.len(), 2);
    }
}
