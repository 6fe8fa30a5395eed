//! Verdicts on counts, which need no p-value if they repeat.
//!
//! The difference of two variants is the sum over the functions that differ, which repeats to a
//! fraction of an instruction. The difference of the totals is over all functions that are in the
//! foreground of both variants; its range is over all pairs of runs. Two variants differ if every
//! run's total of one is on the same side of every run's total of the other, the gap between them
//! is larger than the scatter of the runs of either, and a function differs. The rule is not a test
//! and has no error rate; it rests on the number of runs and bursts and on their agreement, which
//! is printed next to it.

use super::total::{Foreground, range};
use super::{Differences, Total, costs};
use crate::format::signed_percent;
use crate::profile::Subsystems;
use crate::stats::summary::median;
use crate::stats::{Unanswerable, Verdict};
use fwdlab_model::record::Executed;
use serde::Serialize;
use std::fmt;

/// Comparison of two variants by executed instructions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exact {
    /// Instructions per packet of the baseline: median over its runs.
    pub baseline: f64,
    /// Instructions per packet of the candidate: median over its runs.
    pub candidate: f64,
    /// Candidate minus baseline in the functions that differ, instructions per packet; difference
    /// of the totals if functions are unknown.
    pub difference: f64,
    /// The difference as a ratio of the baseline: -0.02 for 2 % fewer.
    pub change: f64,
    /// Candidate minus baseline, totals of all functions.
    pub total_difference: f64,
    /// Difference in the functions that are background in only one of the two variants: they count
    /// in the other variant's own total, but in no difference.
    pub half_background: f64,
    /// The smallest difference between the totals of any pair of runs.
    pub low: f64,
    /// The largest difference between the totals of any pair of runs.
    pub high: f64,
    /// Number of runs of the baseline.
    pub n_a: usize,
    /// Number of runs of the candidate.
    pub n_b: usize,
    /// Fewest bursts in any run; 0 if unknown.
    pub bursts: usize,
    /// Largest scatter of the runs of one variant, as a ratio; `None` for single runs.
    pub runs_within: Option<f64>,
    /// Largest scatter of the bursts of one variant, as a ratio; `None` if unknown.
    pub bursts_within: Option<f64>,
    /// Margin of equivalence as a ratio.
    pub margin: f64,
    /// True if there is a range and it is entirely within the margin.
    pub within_margin: bool,
    /// True if the range is over the bursts of single runs, not over runs.
    #[serde(skip)]
    bursts_decide: bool,
    /// Verdict.
    pub verdict: CountVerdict,
    /// Verdict with its qualification.
    pub shown: String,
    /// Summary in one line.
    pub sentence: String,
    /// Differences by function; `None` if only totals are known.
    pub functions: Option<Differences>,
}

/// Verdict of a comparison of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CountVerdict {
    /// The candidate executes fewer instructions per packet.
    Fewer,
    /// The candidate executes more.
    More,
    /// Any difference is within the margin.
    Equivalent,
    /// Runs scatter, or there is no evidence of their scatter.
    Inconclusive,
}

impl CountVerdict {
    /// Returns the verdict's name.
    pub fn name(self) -> &'static str {
        match self {
            CountVerdict::Fewer => "fewer",
            CountVerdict::More => "more",
            CountVerdict::Equivalent => "equivalent",
            CountVerdict::Inconclusive => "inconclusive",
        }
    }
}

impl From<CountVerdict> for Verdict {
    /// More instructions are worse.
    fn from(verdict: CountVerdict) -> Verdict {
        match verdict {
            CountVerdict::Fewer => Verdict::Better,
            CountVerdict::More => Verdict::Worse,
            CountVerdict::Equivalent => Verdict::Equivalent,
            CountVerdict::Inconclusive => Verdict::Inconclusive,
        }
    }
}

/// One run's instructions per packet, and each burst's if they are known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Repeated {
    pub(crate) instructions: f64,
    pub(crate) bursts: Vec<f64>,
}

impl From<&Total> for Repeated {
    fn from(total: &Total) -> Repeated {
        Repeated { instructions: total.instructions, bursts: total.bursts.clone() }
    }
}

/// Evidence of how well a count repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The runs of a variant, each with its own boot or configuration.
    Runs,
    /// The bursts of a single run of each variant.
    Bursts,
}

/// Compares the instructions that the runs of a baseline and of a candidate executed, over the
/// functions that are in the foreground of both.
///
/// # Errors
/// A side without runs, or a baseline without instructions.
pub fn compare_executed(
    a: &[&Executed],
    b: &[&Executed],
    margin: f64,
    repetition: Repetition,
) -> Result<Exact, Unanswerable> {
    let foreground = Foreground::of(a.iter().chain(b).copied());
    let table = Subsystems::default();
    let [of_a, of_b] = [a, b].map(|runs| costs(runs, &foreground, &table));
    let repeated = |runs: &[&Executed]| -> Vec<Repeated> {
        runs.iter().filter_map(|run| foreground.total(run)).map(|t| Repeated::from(&t)).collect()
    };
    let functions = Some(Differences::of(&of_a, &of_b));
    let exact = compare_by(&repeated(a), &repeated(b), margin, functions, repetition)?;
    let own_total = |runs: &[&Executed]| {
        let foreground = Foreground::of(runs.iter().copied());
        let totals =
            runs.iter().filter_map(|run| foreground.total(run)).map(|total| total.instructions);
        median(&totals.collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    Ok(Exact { half_background: own_total(b) - own_total(a) - exact.total_difference, ..exact })
}

/// Compares the runs of a baseline with the runs of a candidate.
///
/// # Errors
/// A side without runs, or a baseline without instructions.
pub(crate) fn compare(
    a: &[Repeated],
    b: &[Repeated],
    margin: f64,
    functions: Option<Differences>,
) -> Result<Exact, Unanswerable> {
    compare_by(a, b, margin, functions, Repetition::Runs)
}

fn compare_by(
    a: &[Repeated],
    b: &[Repeated],
    margin: f64,
    functions: Option<Differences>,
    repetition: Repetition,
) -> Result<Exact, Unanswerable> {
    let values = |runs: &[Repeated]| -> Vec<f64> { runs.iter().map(|r| r.instructions).collect() };
    let bursts_of = |runs: &[Repeated]| -> Vec<f64> {
        runs.iter().flat_map(|run| run.bursts.iter().copied()).collect()
    };
    let (of_a, of_b) = (values(a), values(b));
    let repetitions = match repetition {
        Repetition::Runs => [of_a.clone(), of_b.clone()],
        Repetition::Bursts => [bursts_of(a), bursts_of(b)],
    };
    let (Some(baseline), Some(candidate)) = (median(&of_a), median(&of_b)) else {
        return Err(Unanswerable::TooFew { what: "counted runs of each", have: 0, need: 1 });
    };
    if !(baseline > 0.0 && candidate.is_finite()) {
        return Err(Unanswerable::NotPositive { rate: baseline });
    }
    let [(least_a, most_a), (least_b, most_b)] = repetitions.each_ref().map(|all| range(all));
    let (low, high) = (least_b - most_a, most_b - least_a);
    let repeats = repetitions.iter().all(|all| all.len() > 1);
    let spread = (most_a - least_a).max(most_b - least_b);
    // The distance between the nearest runs of the two; 0 if they overlap.
    let gap = low.max(-high).max(0.0);
    let total_difference = candidate - baseline;
    // The printed difference is of the named functions.
    let difference = functions.as_ref().map_or(total_difference, Differences::named);
    let function_differs = functions.as_ref().is_none_or(|found| !found.differing.is_empty())
        && difference * total_difference > 0.0;
    let within_margin = repeats && low.abs().max(high.abs()) <= margin * baseline;
    let verdict = match candidate < baseline {
        is_less if repeats && gap > spread && function_differs => {
            if is_less {
                CountVerdict::Fewer
            } else {
                CountVerdict::More
            }
        }
        _ if within_margin => CountVerdict::Equivalent,
        _ => CountVerdict::Inconclusive,
    };
    let within = |lists: [Vec<f64>; 2]| -> f64 {
        let ratio = |list: &Vec<f64>| {
            let (least, most) = range(list);
            (most - least) / median(list).unwrap_or(1.0)
        };
        lists.iter().map(ratio).fold(0.0, f64::max)
    };
    let bursts = a.iter().chain(b).map(|run| run.bursts.len()).min().unwrap_or(0);
    let mut exact = Exact {
        baseline,
        candidate,
        difference,
        change: difference / baseline,
        total_difference,
        half_background: 0.0,
        low,
        high,
        n_a: of_a.len(),
        n_b: of_b.len(),
        bursts,
        runs_within: (of_a.len() > 1 && of_b.len() > 1).then(|| within([of_a, of_b])),
        bursts_within: (bursts > 1).then(|| within([bursts_of(a), bursts_of(b)])),
        margin,
        within_margin,
        bursts_decide: repetition == Repetition::Bursts,
        verdict,
        shown: String::new(),
        sentence: String::new(),
        functions,
    };
    exact.shown = exact.qualified();
    exact.sentence = exact.to_string();
    Ok(exact)
}

impl Exact {
    /// Describes the agreement of runs and bursts.
    pub fn agreement(&self) -> String {
        let mut text = match self.bursts {
            0 => format!("{} + {} runs", self.n_a, self.n_b),
            1 => format!("{} + {} runs x 1 burst", self.n_a, self.n_b),
            bursts => format!("{} + {} runs x {bursts} bursts", self.n_a, self.n_b),
        };
        if let Some(runs) = self.runs_within {
            text += &format!("; runs of one variant agree within {}", share(runs));
        }
        if let Some(bursts) = self.bursts_within {
            let and = if self.runs_within.is_some() { ", its bursts" } else { "; bursts agree" };
            text += &format!("{and} within {}", share(bursts));
        }
        text
    }

    /// The verdict with its qualification.
    fn qualified(&self) -> String {
        let margin = signed_percent(self.margin, 1);
        let margin = margin.trim_start_matches('+');
        let nearest = self.low.abs().min(self.high.abs());
        match self.verdict {
            CountVerdict::Equivalent => format!("equivalent within {margin}"),
            CountVerdict::Inconclusive => format!("inconclusive: {}", self.reason()),
            found => {
                let text = format!("{} instructions per packet", found.name());
                match () {
                    () if self.within_margin => format!("{text}, but within {margin}"),
                    () if nearest > self.margin * self.baseline => {
                        format!("{text} by more than {margin}")
                    }
                    () => text,
                }
            }
        }
    }

    /// Returns true if the total differs in all pairs of runs, and the functions that differ sum
    /// to no difference in this direction.
    fn is_contradicted(&self) -> bool {
        let differs = self.low > 0.0 || self.high < 0.0;
        let is_named = |found: &Differences| !found.differing.is_empty();
        let named = self.functions.as_ref().is_some_and(is_named);
        differs && named && self.difference * self.total_difference <= 0.0
    }

    /// Reason for an inconclusive verdict.
    fn reason(&self) -> String {
        match (self.n_a, self.n_b) {
            (a, b) if self.is_contradicted() && (self.bursts_decide || a.min(b) > 1) => {
                "the functions that differ and the total differ in opposite directions".to_owned()
            }
            (1, 1) if self.bursts_decide => "bursts scatter".to_owned(),
            (1, 1) => "one run each: nothing says how well it repeats".to_owned(),
            (1, _) | (_, 1) => {
                "one run of one of them: nothing says how well it repeats".to_owned()
            }
            _ => match self.functions.as_ref().and_then(|found| found.scatters.as_ref()) {
                Some((name, by)) => {
                    format!("{name} scatters by {by:.1} instructions per packet between runs")
                }
                None => "runs of one variant scatter".to_owned(),
            },
        }
    }
}

/// One line: difference, totals with their range, sizes, agreement and verdict.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.differences(), self.agreement(), self.shown)
    }
}

impl Exact {
    /// Describes the difference in the functions that differ, and of all functions with its range.
    pub fn differences(&self) -> String {
        let named = |number: usize| {
            let functions = if number == 1 { "function" } else { "functions" };
            let (difference, of) = (signed(self.difference), signed_percent(self.change, 2));
            format!("{difference} instructions per packet ({of}) in {number} {functions}, ")
        };
        let text = match self.functions.as_ref().map(|found| found.differing.len()) {
            None => String::new(),
            Some(0) => "no function differs, ".to_owned(),
            Some(number) => named(number),
        };
        let total = signed(self.total_difference);
        let range = match self.n_a * self.n_b > 1 || self.bursts_decide {
            true => format!(" [{}, {}]", signed(self.low), signed(self.high)),
            false => String::new(),
        };
        match text.is_empty() {
            true => {
                let of = signed_percent(self.change, 2);
                format!("{total} instructions per packet{range} ({of})")
            }
            false => format!("{text}{total}{range} in all"),
        }
    }
}

/// Formats instructions with a sign; differences that round to zero have none.
pub(crate) fn signed(number: f64) -> String {
    let text = format!("{number:+.1}");
    if matches!(text.as_str(), "+0.0" | "-0.0") { "0.0".to_owned() } else { text }
}

/// Formats a small share in percent, never rounded to zero.
fn share(ratio: f64) -> String {
    match 100.0 * ratio {
        zero if zero <= 0.0 => "0 %".to_owned(),
        little if little < 0.001 => "0.001 %".to_owned(),
        little if little < 0.095 => format!("{little:.3} %"),
        percent => format!("{percent:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::ExecutedFunction;

    fn runs(values: &[f64]) -> Vec<Repeated> {
        let run = |&v: &f64| Repeated { instructions: v, bursts: vec![v - 1.0, v, v + 1.0] };
        values.iter().map(run).collect()
    }

    fn verdict(a: &[f64], b: &[f64]) -> CountVerdict {
        compare(&runs(a), &runs(b), 0.02, None).expect("a comparison").verdict
    }

    #[test]
    fn verdict_requires_repeated_runs() {
        assert_eq!(verdict(&[5000.0; 3], &[4888.0; 3]), CountVerdict::Fewer);
        assert_eq!(verdict(&[5000.0; 2], &[5001.0; 2]), CountVerdict::More);
        assert_eq!(verdict(&[5000.0; 2], &[5000.0; 2]), CountVerdict::Equivalent);
        // Apart, but by no more than the scatter of one variant's runs.
        assert_eq!(verdict(&[5000.0, 5004.0], &[5007.0, 5008.0]), CountVerdict::Equivalent);
        assert_eq!(verdict(&[5000.0, 5004.0], &[5009.0, 5010.0]), CountVerdict::More);
        // Overlapping, and beyond the margin.
        assert_eq!(verdict(&[5000.0, 5600.0], &[5100.0, 5200.0]), CountVerdict::Inconclusive);
        // A single run is no repetition.
        assert_eq!(verdict(&[5000.0], &[4000.0]), CountVerdict::Inconclusive);
        assert_eq!(verdict(&[5000.0; 3], &[4000.0]), CountVerdict::Inconclusive);
        assert!(compare(&[], &runs(&[1.0]), 0.02, None).is_err());
    }

    #[test]
    fn sentence_reports_agreement_of_runs_and_bursts() {
        let sentence = |a: &[f64], b: &[f64]| {
            compare(&runs(a), &runs(b), 0.02, None).expect("a comparison").sentence
        };
        assert_eq!(
            sentence(&[5000.0, 5001.0, 5000.0], &[4888.0; 3]),
            "-112.0 instructions per packet [-113.0, -112.0] (-2.24 %), 3 + 3 runs x 3 bursts; runs \
             of one variant agree within 0.020 %, its bursts within 0.060 %: fewer instructions per \
             packet by more than 2.0 %"
        );
        assert_eq!(
            sentence(&[5000.0], &[4990.0]),
            "-10.0 instructions per packet (-0.20 %), 1 + 1 runs x 3 bursts; bursts agree within \
             0.040 %: inconclusive: one run each: nothing says how well it repeats"
        );
        let same = sentence(&[5000.0; 2], &[5000.0; 2]);
        assert!(same.starts_with("0.0 instructions per packet [0.0, 0.0] (0.00 %)"), "{same}");
        assert!(same.ends_with("equivalent within 2.0 %"), "{same}");
        assert!(sentence(&[5000.0; 2], &[5001.0; 2]).ends_with("per packet, but within 2.0 %"));
    }

    #[test]
    fn bursts_decide_for_single_runs() {
        let by = |a: f64, b: f64, repetition| {
            compare_by(&runs(&[a]), &runs(&[b]), 0.02, None, repetition).expect("a comparison")
        };
        assert_eq!(by(5000.0, 5200.0, Repetition::Runs).verdict, CountVerdict::Inconclusive);
        let more = by(5000.0, 5200.0, Repetition::Bursts);
        assert_eq!((more.verdict, more.within_margin), (CountVerdict::More, false));
        assert_eq!((more.low, more.high), (198.0, 202.0));
        assert_eq!(by(5000.0, 5003.0, Repetition::Bursts).verdict, CountVerdict::Equivalent);
    }

    #[test]
    fn difference_sums_differing_functions() {
        let function = |name: &str, bursts: [f64; 3]| ExecutedFunction {
            name: name.into(),
            bursts: bursts.to_vec(),
            ..ExecutedFunction::default()
        };
        let run = |named: f64, loud: f64| Executed {
            packets: vec![32; 3],
            functions: vec![
                function("ip_forward", [named; 3]),
                function("slab", [loud, loud - 40.0, loud + 40.0]),
            ],
            ..Executed::default()
        };
        let (before, after) = (run(126.0, 200.0), run(130.0, 207.0));
        let found = compare_executed(&[&before], &[&after], 0.02, Repetition::Bursts);
        let found = found.expect("a comparison");
        assert_eq!((found.difference, found.total_difference), (4.0, 11.0));
        assert_eq!((found.low, found.high), (-69.0, 91.0));
        let text =
            "+4.0 instructions per packet (+1.23 %) in 1 function, +11.0 [-69.0, +91.0] in all";
        assert_eq!(found.differences(), text);
        let same = compare_executed(&[&before], &[&before], 0.02, Repetition::Bursts);
        let same = same.expect("a comparison");
        assert_eq!((same.difference, same.verdict), (0.0, CountVerdict::Inconclusive));
        assert!(same.differences().starts_with("no function differs, 0.0 ["), "{same}");
    }

    #[test]
    fn verdict_has_the_sign_of_the_named_difference() {
        let function = |name: &str, instructions: f64| ExecutedFunction {
            name: name.into(),
            bursts: vec![instructions],
            ..ExecutedFunction::default()
        };
        // Two functions scatter, but not their sum, which is larger by `more`.
        let run = |named: f64, scatter: f64, more: f64| Executed {
            packets: vec![32],
            functions: vec![
                function("ip_forward", named),
                function("slab", 220.0 + scatter + more / 2.0),
                function("kfree", 220.0 - scatter + more / 2.0),
            ],
            ..Executed::default()
        };
        let of = |named: f64, more: f64| [run(named, -20.0, more), run(named, 20.0, more)];
        let found = |after: &[Executed; 2], margin: f64| {
            let before = of(126.0, 0.0);
            let [a, b] = [&before, after].map(|runs| [&runs[0], &runs[1]]);
            compare_executed(&a, &b, margin, Repetition::Runs).expect("a comparison")
        };
        assert_eq!(found(&of(130.0, 10.0), 0.001).verdict, CountVerdict::More);
        let opposite = found(&of(122.0, 10.0), 0.001);
        assert_eq!((opposite.difference, opposite.total_difference), (-4.0, 6.0));
        assert_eq!(opposite.verdict, CountVerdict::Inconclusive);
        assert!(opposite.shown.contains("in opposite directions"), "{opposite}");
        assert_eq!(found(&of(122.0, 10.0), 0.1).verdict, CountVerdict::Equivalent);
    }

    #[test]
    fn unexplained_total_is_equivalent() {
        let nothing = Some(Differences::default());
        let found = compare(&runs(&[5000.0; 2]), &runs(&[5001.0; 2]), 0.02, nothing);
        assert_eq!(found.map(|found| found.verdict), Ok(CountVerdict::Equivalent));
    }
}
