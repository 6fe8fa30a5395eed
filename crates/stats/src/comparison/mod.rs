//! Result of comparing two variants, and its printed form.
//!
//! A comparison is a ratio of rates, candidate over baseline: above 1 the candidate forwards more.
//! It is always shown with its interval, its p-value, the number of runs and blocks, the smallest
//! effect that it would have detected, and a verdict. A report of "no difference" without the
//! detectable effect is impossible, because a single function prints comparisons.

mod secondary;
mod words;

pub use secondary::{Capacity, Cause, DoubtEvidence};

use super::family::Adjustment;
use super::power::{MDE_POWER, detectable_multiple, largest_scatter};
use super::rank::Shift;
use super::student;
use super::summary::t_quantile;
use serde::Serialize;

/// Result of comparing two variants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rate of the candidate over the rate of the baseline.
    pub ratio: f64,
    /// Lower end of the ratio's interval. The intervals of all comparisons made together hold
    /// jointly at [`Comparison::confidence`], so each has [`Comparison::joint_confidence`].
    pub low: f64,
    /// Upper end of the ratio's interval.
    pub high: f64,
    /// Lower end of the interval that decides equivalence: 90 % for a joint confidence of 95 % (two
    /// one-sided tests at 5 %; Schuirmann, 1987).
    pub equivalence_low: f64,
    /// Upper end of the equivalence interval.
    pub equivalence_high: f64,
    /// Two-sided p-value of "the ratio is 1".
    pub p: f64,
    /// The p-value adjusted for all comparisons made together; equal to `p` for a single
    /// comparison.
    pub p_adjusted: f64,
    /// Method of the adjustment.
    pub adjustment: Adjustment,
    /// Number of comparisons made together, including this one.
    pub family: usize,
    /// Used runs (slices in an alternation) of the baseline.
    pub n_a: usize,
    /// Used runs (slices) of the candidate.
    pub n_b: usize,
    /// Blocks (streams or pairs of slices in an alternation); 0 without blocks.
    pub blocks: usize,
    /// Unit of `n_a`, `n_b` and `blocks`.
    pub layout: Layout,
    /// Runs (or slices) that are not used because they have no partner.
    pub left_out: usize,
    /// Minimum detectable effect as a ratio (0.02 = 2 %): a true change of this size would be
    /// detected in nine of ten such experiments. Computed from the exact power of the t test, for
    /// the largest scatter that these runs permit (upper 90 % limit): with the observed scatter,
    /// fewer than nine of ten would detect it.
    pub mde: f64,
    /// Joint confidence in percent of all comparisons made together.
    pub confidence: f64,
    /// Confidence of this comparison's own interval in percent: Bonferroni's share of the level.
    pub joint_confidence: f64,
    /// Margin of equivalence stated in advance, as a ratio (0.02 = 2 %).
    pub margin: f64,
    /// Method that computed interval and p-value.
    pub method: Method,
    /// Scope of the claim.
    pub scope: Scope,
    /// The other one of exact test and t test, if both were computed.
    pub beside: Option<Estimate>,
    /// Robust secondary result (Hodges and Lehmann), if there are enough runs.
    pub robust: Option<Estimate>,
    /// The same comparison by capacity (rate in the best tenth). `None` if paced or imported.
    pub capacity: Option<Capacity>,
    /// Reason why most of the runs do not permit a verdict; `None` if they do.
    pub doubtful: Option<DoubtEvidence>,
    /// Scatter of builds, if the builds of a revision are its replicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<Builds>,
    /// True if a smaller value is a better one, as of times. False for rates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_smaller_better: bool,
}

/// Builds of two revisions, and the effect of their code layout.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Builds {
    /// Builds of the baseline.
    pub a: usize,
    /// Builds of the candidate.
    pub b: usize,
    /// Standard deviation between builds of one revision as a ratio (0.01 = 1 %).
    pub scatter: f64,
    /// Scatter that runs alone would cause, as a ratio.
    pub scatter_of_runs: f64,
    /// Comparison of exactly these builds by their runs, which does not generalise to others.
    pub these: Estimate,
}

/// A secondary result, which does not decide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Rate of the candidate over the rate of the baseline.
    pub ratio: f64,
    /// Interval of the ratio; `None` with too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p-value of "the ratio is 1".
    pub p: f64,
    /// Method of the computation.
    pub method: Method,
}

impl Estimate {
    pub(crate) fn of_shift(shift: Shift, method: Method) -> Estimate {
        Estimate {
            ratio: shift.estimate.exp(),
            interval: Some((shift.low.exp(), shift.high.exp())),
            p: shift.p,
            method,
        }
    }
}

/// Scope of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The measured start (or two starts) of the DUT, nothing more.
    ThisStart,
    /// Starts of the DUT like the measured ones: the run was the unit.
    AcrossStarts,
    /// Figures of a list of unknown origin: starts, or parts of one.
    Listed,
}

/// Structure of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Runs without blocks.
    Unblocked,
    /// Runs in blocks.
    Blocks,
    /// Slices in pairs of neighbours.
    Pairs,
    /// Slices in streams.
    Streams,
}

/// Method of an interval and its p-value, on log rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Within-block randomisation test over all assignments.
    Exact {
        /// Number of assignments.
        assignments: u64,
    },
    /// The same over random assignments.
    MonteCarlo {
        /// Drawn assignments, including the observed one.
        draws: u64,
        /// Seed of the draws.
        seed: u64,
    },
    /// Permutation test over all assignments within blocks, of figures whose order was not drawn at
    /// random.
    Permutation {
        /// Number of assignments.
        assignments: u64,
    },
    /// The same over random assignments.
    SampledPermutation {
        /// Drawn assignments, including the observed one.
        draws: u64,
        /// Seed of the draws.
        seed: u64,
    },
    /// t test with block effects.
    BlockedT,
    /// Welch's t test.
    Welch,
    /// Welch's t test and the rank-sum test combined.
    BothTests,
    /// Paired slices of streams.
    Alternation,
    /// A planned look of a group-sequential experiment.
    PlannedLooks {
        /// Looks so far.
        look: u32,
        /// Looks planned.
        of: u32,
        /// Comparisons that share the level, and so the interval.
        shared: usize,
    },
    /// An e-process with a look after every block.
    OpenEnded {
        /// Looks so far.
        looks: u32,
        /// Comparisons that share the level, and so the interval.
        shared: usize,
    },
    /// t test between builds of revisions.
    Builds,
    /// Hodges and Lehmann's estimate, signed-rank interval.
    SignedRank,
    /// Hodges and Lehmann's estimate, rank-sum interval.
    RankSum,
}

impl Serialize for Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parameters of a comparison, stated before the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Confidence in percent (above 50, below 100).
    pub confidence: f64,
    /// Margin of equivalence as a ratio: 0.02 takes 1/1.02 to 1.02 for equal.
    pub margin: f64,
    /// Number of comparisons made together.
    pub family: usize,
    /// Adjustment for their number.
    pub adjustment: Adjustment,
}

impl Criteria {
    /// Returns the confidence in percent of each comparison's interval such that all of them hold
    /// jointly (Bonferroni). If a share of false claims is accepted (Benjamini and Hochberg), each
    /// comparison keeps its own confidence.
    pub fn joint_confidence(&self) -> f64 {
        match self.adjustment {
            Adjustment::Holm => 100.0 - (100.0 - self.confidence) / self.family.max(1) as f64,
            Adjustment::BenjaminiHochberg => self.confidence,
        }
    }
}

impl Default for Criteria {
    fn default() -> Self {
        Criteria { confidence: 95.0, margin: 0.02, family: 1, adjustment: Adjustment::default() }
    }
}

/// Verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate forwards more, or takes less time.
    Better,
    /// The candidate forwards less, or takes more time.
    Worse,
    /// No difference was found, and any existing one is within the margin.
    Equivalent,
    /// Neither a difference nor its absence was shown.
    Inconclusive,
    /// Most runs are doubtful: their result need not be the device's.
    NotJudged,
}

/// Reason why there is no comparison, and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unanswerable {
    /// Too few measurements.
    #[error("too few {what}: {have} of at least {need}")]
    TooFew {
        /// The missing items, in the plural.
        what: &'static str,
        /// Available number.
        have: usize,
        /// Required number.
        need: usize,
    },
    /// Every run of one of the two was left out.
    #[error("no run of one of them has a valid result, so nothing can be compared: {why}")]
    NoValidRun {
        /// Reason why the first of them was left out.
        why: String,
    },
    /// Nothing was lost at a paced rate, in any run of either.
    #[error("not loaded: no loss at {load}{}", of_runs(*counted, *left_out))]
    NotLoaded {
        /// The intended load, e.g. `1 kpps`.
        load: String,
        /// Used runs.
        counted: usize,
        /// Excluded runs.
        left_out: usize,
    },
    /// A rate without a logarithm.
    #[error(
        "no packet counted as forwarded in at least one run ({rate} pps), so there is nothing to \
         compare"
    )]
    NotPositive {
        /// The rate in packets per second.
        rate: f64,
    },
    /// Neither list has any scatter.
    #[error(
        "the figures of each list are all equal, so nothing is known of their scatter\n  next \
         step: compare single runs, not figures that were averaged or rounded"
    )]
    NoScatter,
    /// Confidence or margin out of range.
    #[error(
        "confidence must lie between 50 and 100 percent and the margin above 0: {confidence}, {margin}"
    )]
    Criteria {
        /// Confidence in percent.
        confidence: f64,
        /// Margin as a ratio.
        margin: f64,
    },
}

/// Describes the runs that a statement covers, if others are left out.
fn of_runs(counted: usize, left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        1 => format!(" in the {counted} runs that count, 1 is left out"),
        n => format!(" in the {counted} runs that count, {n} are left out"),
    }
}

impl Comparison {
    /// Returns the decision. Doubtful runs decide nothing. In a single comparison, a difference is
    /// shown if the interval excludes 1; in a family, if the adjusted p-value is below the level
    /// (under a stopping rule, both are required). The verdict is `Equivalent` only without a
    /// difference, and only if capacity is equivalent.
    pub fn verdict(&self) -> Verdict {
        if self.doubtful.is_some() {
            return Verdict::NotJudged;
        }
        let survives = self.p_adjusted < 1.0 - self.confidence / 100.0;
        let stops = matches!(self.method, Method::PlannedLooks { .. } | Method::OpenEnded { .. });
        let is_there = match self.family {
            0 | 1 => self.excludes_no_change(),
            _ if stops => self.excludes_no_change() && survives,
            _ => survives,
        };
        let has_capacity_within = self.capacity.is_none_or(|capacity| capacity.is_within_margin);
        if is_there && (self.ratio - 1.0).abs() > 0.0 {
            let is_gain = (self.ratio > 1.0) != self.is_smaller_better;
            if is_gain { Verdict::Better } else { Verdict::Worse }
        } else if self.is_within_margin() && has_capacity_within {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }

    /// True if the interval excludes "no change". In a family, Holm's order may show a difference
    /// although this joint interval includes 1: then its direction is known, but its size is not.
    pub fn excludes_no_change(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// True if both one-sided tests show the ratio to be within the margin. Possible together with
    /// a difference: small, but real.
    pub fn is_within_margin(&self) -> bool {
        let bound = 1.0 + self.margin;
        self.equivalence_low > 1.0 / bound && self.equivalence_high < bound
    }

    /// True if the whole interval is beyond the margin: the difference is not only real, but large
    /// enough to matter.
    pub fn is_beyond_margin(&self) -> bool {
        let bound = 1.0 + self.margin;
        self.low > bound || self.high < 1.0 / bound
    }

    /// Returns the deciding answer as an [`Estimate`].
    pub fn estimate(&self) -> Estimate {
        Estimate {
            ratio: self.ratio,
            interval: Some((self.low, self.high)),
            p: self.p,
            method: self.method,
        }
    }

    /// Builds a comparison from an estimate on the scale of natural logarithms.
    ///
    /// # Errors
    /// If confidence or margin is out of range.
    pub fn from_estimate(
        estimate: LogEstimate,
        criteria: Criteria,
        sizes: Sizes,
        method: Method,
        scope: Scope,
    ) -> Result<Comparison, Unanswerable> {
        let Criteria { confidence, margin, .. } = criteria;
        let LogEstimate { effect, se, df } = estimate;
        let refused = Unanswerable::Criteria { confidence, margin };
        if !(confidence > 50.0 && confidence < 100.0 && margin > 0.0) {
            return Err(refused);
        }
        let joint = criteria.joint_confidence();
        let (Some(wide), Some(narrow), Some(multiple)) = (
            t_quantile(joint, df),
            t_quantile(2.0 * joint - 100.0, df),
            detectable_multiple(joint, df, MDE_POWER),
        ) else {
            return Err(refused);
        };
        let p = two_sided_p(effect, se, df);
        Ok(Comparison {
            ratio: effect.exp(),
            low: (effect - wide * se).exp(),
            high: (effect + wide * se).exp(),
            equivalence_low: (effect - narrow * se).exp(),
            equivalence_high: (effect + narrow * se).exp(),
            p,
            p_adjusted: p,
            adjustment: Adjustment::default(),
            family: 1,
            n_a: sizes.n_a,
            n_b: sizes.n_b,
            blocks: sizes.blocks,
            layout: sizes.layout,
            left_out: sizes.left_out,
            mde: (multiple * se * largest_scatter(df)).exp_m1(),
            confidence,
            joint_confidence: joint,
            margin,
            method,
            scope,
            beside: None,
            robust: None,
            capacity: None,
            doubtful: None,
            builds: None,
            is_smaller_better: false,
        })
    }
}

/// An effect on the scale of natural logarithms.
#[derive(Clone, Copy, Debug)]
pub struct LogEstimate {
    /// Natural logarithm of the ratio of rates.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// Degrees of freedom of `se`.
    pub df: f64,
}

/// Sizes behind an estimate.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Runs of the baseline.
    pub n_a: usize,
    /// Runs of the candidate.
    pub n_b: usize,
    /// Blocks that contain both.
    pub blocks: usize,
    /// Runs of blocks in which one of them is missing.
    pub left_out: usize,
    /// Design of the runs.
    pub layout: Layout,
}

/// Returns the p-value of "the effect is 0" by Student's t; runs without any scatter differ
/// certainly or not at all.
pub(crate) fn two_sided_p(effect: f64, se: f64, df: f64) -> f64 {
    if se == 0.0 {
        return if effect == 0.0 { 1.0 } else { 0.0 };
    }
    let t = (effect / se).abs();
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return 1.0;
    }
    (2.0 * student::upper_tail(t, df)).min(1.0)
}

/// Returns the natural logarithm of a rate, or the reason why there is none.
pub(crate) fn log_rate(rate: f64) -> Result<f64, Unanswerable> {
    if rate.is_finite() && rate > 0.0 {
        Ok(rate.ln())
    } else {
        Err(Unanswerable::NotPositive { rate })
    }
}

/// Sets [`Comparison::p_adjusted`] of all comparisons made together.
pub fn adjust_family(family: &mut [Comparison], adjustment: Adjustment) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    let size = family.len();
    for (comparison, adjusted) in family.iter_mut().zip(adjustment.adjust(&p)) {
        comparison.p_adjusted = adjusted;
        comparison.adjustment = adjustment;
        comparison.family = size;
    }
}
