//! What a comparison of two variants says, and the only way it is printed.
//!
//! A comparison is a ratio of rates, candidate over baseline: above 1 the
//! candidate forwards more. It is always shown with its interval, its p-value,
//! the number of runs and blocks, the smallest effect it would have found and
//! a verdict: "no difference was found" without "what would have been found"
//! can't be printed, because there is one function that prints.

use super::power::{MDE_POWER, detectable_multiple};
use super::summary::t_quantile;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::fmt;

/// Two variants compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rate of the candidate over the rate of the baseline.
    pub ratio: f64,
    /// Lower end of the ratio's interval at [`Comparison::confidence`].
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Lower end of the interval that decides equivalence: 90 % for a
    /// confidence of 95 % (two one-sided tests at 5 %; Schuirmann, 1987).
    pub equivalence_low: f64,
    /// Upper end of it.
    pub equivalence_high: f64,
    /// Two-sided p-value of "the ratio is 1".
    pub p: f64,
    /// The same after Holm's adjustment for everything asked together; equal
    /// to `p` for a comparison that stands alone.
    pub p_adjusted: f64,
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
    /// this size would be found in nine of ten such experiments. From the
    /// standard error of this experiment, by the exact power of the t test.
    pub mde: f64,
    /// Confidence in percent.
    pub confidence: f64,
    /// Margin of equivalence that was stated before, as a ratio (0.02 = 2 %).
    pub margin: f64,
    /// How it was computed.
    pub method: &'static str,
    /// What the claim holds for.
    pub scope: Scope,
}

/// What a claim holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The start (or the two starts) of the DUT that was measured, nothing more.
    ThisStart,
    /// Starts of the DUT like those measured: the run was the unit.
    AcrossStarts,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::ThisStart => "this start",
            Scope::AcrossStarts => "across starts",
        })
    }
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

/// What is asked of a comparison, stated before the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Confidence in percent (above 50, below 100).
    pub confidence: f64,
    /// Margin of equivalence as a ratio: 0.02 takes 1/1.02 to 1.02 for equal.
    pub margin: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        Criteria { confidence: 95.0, margin: 0.02 }
    }
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The candidate forwards more.
    Better,
    /// The candidate forwards less.
    Worse,
    /// No difference was found, and any that exists lies within the margin.
    Equivalent,
    /// Neither a difference nor its absence was shown.
    Inconclusive,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        })
    }
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
    /// A rate that has no logarithm.
    #[error("a rate of {rate} pps has no ratio to another: every run must have forwarded packets")]
    NotPositive {
        /// The rate in packets per second.
        rate: f64,
    },
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

impl Comparison {
    /// The decision. A difference counts when the interval excludes 1 and, in
    /// a family, the adjusted p-value is below the level; only where no
    /// difference counts may the verdict be equivalent.
    pub fn verdict(&self) -> Verdict {
        let level = 1.0 - self.confidence / 100.0;
        let survives_family = self.family <= 1 || self.p_adjusted < level;
        if self.low > 1.0 && survives_family {
            Verdict::Better
        } else if self.high < 1.0 && survives_family {
            Verdict::Worse
        } else if self.is_within_margin() {
            Verdict::Equivalent
        } else {
            Verdict::Inconclusive
        }
    }

    /// True when both one-sided tests say that the ratio lies within the
    /// margin. May hold beside a difference: small, but there.
    pub fn is_within_margin(&self) -> bool {
        let bound = 1.0 + self.margin;
        self.equivalence_low > 1.0 / bound && self.equivalence_high < bound
    }

    /// Builds a comparison from an estimate on the scale of natural logarithms.
    pub(crate) fn from_estimate(
        estimate: LogEstimate,
        criteria: Criteria,
        sizes: Sizes,
        method: &'static str,
        scope: Scope,
    ) -> Result<Comparison, Unanswerable> {
        let Criteria { confidence, margin } = criteria;
        let LogEstimate { effect, se, df } = estimate;
        let refused = Unanswerable::Criteria { confidence, margin };
        if !(confidence > 50.0 && confidence < 100.0 && margin > 0.0) {
            return Err(refused);
        }
        let (Some(wide), Some(narrow), Some(multiple)) = (
            t_quantile(confidence, df),
            t_quantile(2.0 * confidence - 100.0, df),
            detectable_multiple(confidence, df, MDE_POWER),
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
            family: 1,
            n_a: sizes.n_a,
            n_b: sizes.n_b,
            blocks: sizes.blocks,
            layout: sizes.layout,
            left_out: sizes.left_out,
            mde: (multiple * se).exp_m1(),
            confidence,
            margin,
            method,
            scope,
        })
    }
}

/// An effect on the scale of natural logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEstimate {
    pub(crate) effect: f64,
    pub(crate) se: f64,
    /// Degrees of freedom of `se`.
    pub(crate) df: f64,
}

/// What went into an estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) n_a: usize,
    pub(crate) n_b: usize,
    pub(crate) blocks: usize,
    pub(crate) left_out: usize,
    pub(crate) layout: Layout,
}

/// p-value of "the effect is 0" by Student's t; runs without any scatter
/// differ for certain or not at all.
pub(crate) fn two_sided_p(effect: f64, se: f64, df: f64) -> f64 {
    if se == 0.0 {
        return if effect == 0.0 { 1.0 } else { 0.0 };
    }
    match StudentsT::new(0.0, 1.0, df) {
        Ok(t) => (2.0 * t.sf((effect / se).abs())).min(1.0),
        Err(_) => 1.0,
    }
}

/// The natural logarithm of a rate, or why there is none.
pub(crate) fn log_rate(rate: f64) -> Result<f64, Unanswerable> {
    if rate.is_finite() && rate > 0.0 {
        Ok(rate.ln())
    } else {
        Err(Unanswerable::NotPositive { rate })
    }
}

/// One line: effect, interval, p, sizes, minimum detectable effect, verdict.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.high - self.low {
            width if width < 0.002 => 3,
            width if width < 0.2 => 2,
            _ => 1,
        };
        let percent = |ratio: f64| signed_percent(ratio - 1.0, digits);
        write!(
            f,
            "{} [{}, {}] at {} %, {}",
            percent(self.ratio),
            percent(self.low),
            percent(self.high),
            self.confidence,
            p_value("p", self.p)
        )?;
        if self.family > 1 {
            let adjusted = p_value("adjusted", self.p_adjusted);
            write!(f, " ({adjusted} for {} comparisons)", self.family)?;
        }
        let (what, blocks) = match self.layout {
            Layout::Unblocked => ("runs", "without blocks".to_owned()),
            Layout::Blocks => ("runs", format!("in {} blocks", self.blocks)),
            Layout::Pairs => ("slices", format!("in {} pairs", self.blocks)),
            Layout::Streams => ("slices", format!("in {} streams", self.blocks)),
        };
        write!(f, ", n = {} + {} {what} {blocks}", self.n_a, self.n_b)?;
        if self.left_out > 0 {
            write!(f, " ({} without partner left out)", self.left_out)?;
        }
        let mde = signed_percent(self.mde, digits);
        write!(
            f,
            ", MDE {} at {:.0} % power, {}, {}: {}",
            mde.trim_start_matches('+'),
            100.0 * MDE_POWER,
            self.method,
            self.scope,
            self.verdict()
        )?;
        let margin = signed_percent(self.margin, 1);
        let margin = margin.trim_start_matches('+');
        match self.verdict() {
            Verdict::Equivalent => write!(f, " within {margin}"),
            Verdict::Better | Verdict::Worse if self.is_within_margin() => {
                write!(f, ", but within {margin}")
            }
            _ => Ok(()),
        }
    }
}

/// A relative change as signed percent. Figures beyond four digits say no more
/// than that they are huge, which happens to intervals of two noisy blocks.
fn signed_percent(change: f64, digits: usize) -> String {
    let percent = 100.0 * change;
    if percent >= 9999.5 || percent.is_nan() {
        return "+>9999 %".into();
    }
    let text = format!("{percent:+.digits$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'+' | b'-' | b'0' | b'.'));
    if is_zero { format!("{} %", &text[1..]) } else { format!("{text} %") }
}

fn p_value(name: &str, p: f64) -> String {
    match p {
        p if p < 0.0001 => format!("{name} < 0.0001"),
        p if p < 0.01 => format!("{name} = {p:.4}"),
        p => format!("{name} = {p:.3}"),
    }
}
