//! Result of comparing two variants, and its printed form.
//!
//! A comparison is a ratio of rates, candidate over baseline: above 1 the
//! candidate forwards more. It is always shown with its interval, its p-value,
//! the number of runs and blocks, the smallest effect it would have found and
//! a verdict: "no difference was found" without "what would have been found"
//! can't be printed, because there is one function that prints.

mod secondary;
mod words;

pub use secondary::{Capacity, Cause, Doubtful};

use super::family::Adjustment;
use super::power::{MDE_POWER, detectable_multiple, largest_scatter};
use super::rank::Shift;
use super::student;
use super::summary::t_quantile;
use serde::Serialize;

/// Two variants compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rate of the candidate over the rate of the baseline.
    pub ratio: f64,
    /// Lower end of the ratio's interval: that of all comparisons asked together holds
    /// at [`Comparison::confidence`], so each is at [`Comparison::joint_confidence`].
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Lower end of the interval that decides equivalence: 90 % for a joint
    /// confidence of 95 % (two one-sided tests at 5 %; Schuirmann, 1987).
    pub equivalence_low: f64,
    /// Upper end of it.
    pub equivalence_high: f64,
    /// Two-sided p-value of "the ratio is 1".
    pub p: f64,
    /// The same after the adjustment for everything asked together; equal to
    /// `p` for a comparison that stands alone.
    pub p_adjusted: f64,
    /// How it was adjusted.
    pub adjustment: Adjustment,
    /// Comparisons asked together, this one included.
    pub family: usize,
    /// Runs (slices in an alternation) of the baseline that count.
    pub n_a: usize,
    /// Runs (slices) of the candidate that count.
    pub n_b: usize,
    /// Blocks (streams or pairs of slices in an alternation); 0 without blocks.
    pub blocks: usize,
    /// What `n_a`, `n_b` and `blocks` count.
    pub layout: Layout,
    /// Runs (or slices) that don't count because they have no partner.
    pub left_out: usize,
    /// Minimum detectable effect as a ratio (0.02 = 2 %): a true change of
    /// this size would be found in nine of ten such experiments. By the exact power of the t
    /// test, for the largest scatter that these runs leave open (upper 90 % limit): for the
    /// scatter that they show, fewer than nine of ten would find it.
    pub mde: f64,
    /// Confidence in percent, of all comparisons asked together.
    pub confidence: f64,
    /// Confidence of this comparison's own interval in percent: Bonferroni's share of
    /// the level; equal to [`Comparison::confidence`] for one that stands alone.
    pub joint_confidence: f64,
    /// Margin of equivalence that was stated before, as a ratio (0.02 = 2 %).
    pub margin: f64,
    /// How interval and p-value were computed.
    pub method: Method,
    /// Scope of the claim.
    pub scope: Scope,
    /// The other of exact test and t test, where both were computed.
    pub beside: Option<Estimate>,
    /// The robust secondary: Hodges and Lehmann's, where there are enough runs.
    pub robust: Option<Estimate>,
    /// The same comparison by capacity: what the device reaches in its best tenth.
    /// None where capacity means nothing (paced, imported).
    pub capacity: Option<Capacity>,
    /// Why most of the runs don't deserve a verdict; none when they do.
    pub doubtful: Option<Doubtful>,
    /// How builds scatter, where the builds of a revision are its replicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<Builds>,
}

/// Builds of two revisions, and what their code's layout does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Builds {
    /// Builds of the baseline.
    pub a: usize,
    /// Builds of the candidate.
    pub b: usize,
    /// Standard deviation between builds of one revision as a ratio (0.01 = 1 %).
    pub scatter: f64,
    /// What runs alone would make of it, as a ratio.
    pub scatter_of_runs: f64,
    /// These very builds compared by their runs: what says nothing of others.
    pub these: Estimate,
}

/// A secondary result, which does not decide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Rate of the candidate over the rate of the baseline.
    pub ratio: f64,
    /// Its interval; none where there are too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// Two-sided p-value of "the ratio is 1".
    pub p: f64,
    /// How it was computed.
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
    /// The start (or the two starts) of the DUT that was measured, nothing more.
    ThisStart,
    /// Starts of the DUT like those measured: the run was the unit.
    AcrossStarts,
    /// Figures of a list, of which nothing says how they came about: starts, or parts of one.
    Listed,
}

/// How runs stand to each other.
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

/// How an interval and its p-value were computed, on log rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Within-block randomisation test over all assignments.
    Exact {
        /// How many there are.
        assignments: u64,
    },
    /// The same over random assignments.
    MonteCarlo {
        /// Assignments drawn, the observed one included.
        draws: u64,
        /// Seed that draws the same ones again.
        seed: u64,
    },
    /// Permutation test over all assignments within blocks, of figures whose order was not drawn at random.
    Permutation {
        /// Number of assignments.
        assignments: u64,
    },
    /// The same over random assignments.
    SampledPermutation {
        /// Assignments drawn, the observed one included.
        draws: u64,
        /// Seed that draws the same ones again.
        seed: u64,
    },
    /// t test with block effects.
    BlockedT,
    /// Welch's t test.
    Welch,
    /// Welch's t test and the rank-sum test: what both say.
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
    /// Comparisons that are asked together.
    pub family: usize,
    /// How they are protected from one another.
    pub adjustment: Adjustment,
}

impl Criteria {
    /// Confidence in percent of each comparison's interval, such that all of them hold
    /// together (Bonferroni). Where a share of false claims is accepted (Benjamini and
    /// Hochberg), each stands for itself.
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
    /// The candidate forwards more.
    Better,
    /// The candidate forwards less.
    Worse,
    /// No difference was found, and any that exists lies within the margin.
    Equivalent,
    /// Neither a difference nor its absence was shown.
    Inconclusive,
    /// Most runs are doubtful: whatever they show need not be the device's.
    NotJudged,
}

/// Why there is no comparison, and what would make one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unanswerable {
    /// Not enough was measured.
    #[error("too few {what}: {have} of at least {need}")]
    TooFew {
        /// What is lacking, in the plural.
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many are needed.
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
        /// Runs that count.
        counted: usize,
        /// Runs that are left out.
        left_out: usize,
    },
    /// A rate that has no logarithm.
    #[error(
        "no packet counted as forwarded in at least one run ({rate} pps), so there is nothing to \
         compare"
    )]
    NotPositive {
        /// The rate in packets per second.
        rate: f64,
    },
    /// Neither list scatters.
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

/// The runs that a statement is about, if others are left out.
fn of_runs(counted: usize, left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        1 => format!(" in the {counted} runs that count, 1 is left out"),
        n => format!(" in the {counted} runs that count, {n} are left out"),
    }
}

impl Comparison {
    /// The decision. Nothing is decided from runs that are doubtful. Alone, a
    /// difference counts when the interval excludes 1; in a family when the adjusted
    /// p-value is below the level (under a stopping rule both are asked). Only where
    /// no difference counts may the verdict be equivalent, and only if capacity is.
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
        if is_there && self.ratio > 1.0 {
            Verdict::Better
        } else if is_there && self.ratio < 1.0 {
            Verdict::Worse
        } else if self.is_within_margin() && has_capacity_within {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }

    /// True when the interval excludes "no change". In a family a difference may be
    /// shown (by Holm's order) though this interval, which holds jointly, reaches 1:
    /// then its direction is known and its size isn't.
    pub fn excludes_no_change(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// True when both one-sided tests say that the ratio lies within the
    /// margin. May hold beside a difference: small, but there.
    pub fn is_within_margin(&self) -> bool {
        let bound = 1.0 + self.margin;
        self.equivalence_low > 1.0 / bound && self.equivalence_high < bound
    }

    /// True when the whole interval lies beyond the margin: not only there, but
    /// large enough to matter.
    pub fn is_beyond_margin(&self) -> bool {
        let bound = 1.0 + self.margin;
        self.low > bound || self.high < 1.0 / bound
    }

    /// The deciding answer as an [`Estimate`].
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

/// What went into an estimate.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Runs of the baseline.
    pub n_a: usize,
    /// Runs of the candidate.
    pub n_b: usize,
    /// Blocks that contain both.
    pub blocks: usize,
    /// Runs of blocks that lack one of them.
    pub left_out: usize,
    /// Design of the runs.
    pub layout: Layout,
}

/// p-value of "the effect is 0" by Student's t; runs without any scatter
/// differ for certain or not at all.
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

/// The natural logarithm of a rate, or why there is none.
pub(crate) fn log_rate(rate: f64) -> Result<f64, Unanswerable> {
    if rate.is_finite() && rate > 0.0 {
        Ok(rate.ln())
    } else {
        Err(Unanswerable::NotPositive { rate })
    }
}

/// Sets [`Comparison::p_adjusted`] of everything that was asked together.
pub fn adjust_family(family: &mut [Comparison], adjustment: Adjustment) {
    let p: Vec<f64> = family.iter().map(|comparison| comparison.p).collect();
    let size = family.len();
    for (comparison, adjusted) in family.iter_mut().zip(adjustment.adjust(&p)) {
        comparison.p_adjusted = adjusted;
        comparison.adjustment = adjustment;
        comparison.family = size;
    }
}
