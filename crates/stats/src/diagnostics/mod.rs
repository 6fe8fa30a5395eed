//! Diagnoses of runs: trends, outliers, modes, correlation, censoring.
//!
//! Looking is not deleting: no figure is left out because of what is found here
//! (a slow start of the DUT is a finding), and no comparison changes. Looked for
//! are a trend and a likeness of neighbours over the order of the runs, a run
//! far from the others, more than one mode, and rates that the
//! measuring equipment bounded.
//!
//! - [`order`]: run-order trend, lag-1 autocorrelation.
//! - [`outlier`](mod@outlier): Grubbs' test.
//! - [`modality`]: Hartigan's dip test.
//! - [`censoring`](mod@censoring): line rate and generator.
//!
//! Left out: tests of normality. A dozen runs can't fail them, and what is
//! compared is means.

pub mod censoring;
mod chance;
pub mod modality;
pub mod order;
pub mod outlier;
mod residuals;

pub use censoring::{Censored, Limit, RunRate, censoring};
pub use modality::{Bimodality, bimodality, dip};
pub use order::{
    RunOrder, Trend, lag1_autocorrelation, run_order, run_order_trend, trend_within_variants,
};
pub use outlier::{Grubbs, Outlier, grubbs, outlier};

use serde::Serialize;

/// Below this p-value something is a finding. Strict, because several things
/// are looked for in every experiment.
pub const LEVEL: f64 = 0.01;

/// The level where things are looked for in so many beds, each by itself: together as strict as
/// in one, as far as p-values by simulation reach.
pub fn level_of_beds(beds: usize) -> f64 {
    const LEAST: f64 = 0.001;
    (LEVEL / beds.max(1) as f64).max(LEAST)
}

/// The figure of one run, or of one variant's part of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigure {
    /// Index of the run.
    pub run: u32,
    /// Index of the variant.
    pub variant: usize,
    /// Block of the run.
    pub block: u32,
    /// Natural logarithm of the rate in packets per second.
    pub log_rate: f64,
}

/// A finding with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Diagnosis {
    /// Later runs are faster, or slower.
    Trend {
        /// Change from one run to the next (0.01 = 1 %).
        slope: f64,
        /// p-value of "there is no trend".
        p: f64,
    },
    /// Neighbouring runs are more alike, or less, than others.
    Autocorrelation {
        /// Correlation of neighbours.
        lag1: f64,
        /// p-value of "the order does not matter".
        p: f64,
    },
    /// A run far from where its variant and its block put it.
    Outlier(Outlier),
    /// More than one heap of runs.
    Bimodal(Bimodality),
    /// Rates that something other than the DUT bounded.
    Censored(Censored),
}

/// Looks for trend, autocorrelation, an outlier and several modes, each at
/// `level` ([`LEVEL`] in one experiment), in figures in the order of their runs. Variants' own differences
/// are taken out of all, blocks' when an outlier is looked for (in the others, what
/// happens to whole blocks is part of what is looked for). Censoring needs to know the
/// bounds: [`censoring`](fn@censoring).
pub fn diagnose(figures: &[RunFigure], level: f64) -> Vec<Diagnosis> {
    let order = run_order(figures);
    let trend = order
        .filter(|order| order.p < level)
        .map(|order| Diagnosis::Trend { slope: order.slope, p: order.p });
    let neighbours = order
        .and_then(|order| Some(Diagnosis::Autocorrelation { lag1: order.lag1?, p: order.lag1_p? }))
        .filter(|found| matches!(found, Diagnosis::Autocorrelation { p, .. } if *p < level));
    let outlier = outlier(figures).filter(|found| found.p < level).map(Diagnosis::Outlier);
    let bimodal = bimodality(figures).filter(|found| found.p < level).map(Diagnosis::Bimodal);
    [trend, neighbours, outlier, bimodal].into_iter().flatten().collect()
}

impl Diagnosis {
    /// One sentence for a person.
    pub fn sentence(&self) -> String {
        match self {
            Diagnosis::Trend { slope, p } => format!(
                "the rates drifted by {:+.3} % from run to run ({}); comparisons within blocks \
                 are not affected, the medians in the table are",
                100.0 * slope,
                p_value(*p)
            ),
            Diagnosis::Autocorrelation { lag1, p } => format!(
                "neighbouring runs are {} alike than others (correlation {lag1:.2}, {}); runs in an \
                 order without blocks would not be independent",
                if *lag1 > 0.0 { "more" } else { "less" },
                p_value(*p)
            ),
            Diagnosis::Outlier(found) => {
                let runs: Vec<String> = found.runs.iter().map(u32::to_string).collect();
                let (which, rest) = match runs.as_slice() {
                    [one] => (format!("run {one}"), "it counts like every other run"),
                    _ => (
                        format!(
                            "one of the runs {} (which of them can't be told)",
                            runs.join(", ")
                        ),
                        "all count like every other run",
                    ),
                };
                format!(
                    "{which} in block {} lies {:.1} % {} its variant and its block put it (Grubbs {:.2}, \
                     {}); {rest}",
                    found.block,
                    100.0 * found.deviation.abs(),
                    if found.deviation < 0.0 { "below where" } else { "above where" },
                    found.statistic,
                    p_value(found.p)
                )
            }
            Diagnosis::Bimodal(found) => format!(
                "the {} runs have more than one mode (dip {:.3}, {}): the DUT starts in \
                 different states, or something changed on the way; a mean describes neither",
                found.n,
                found.dip,
                p_value(found.p)
            ),
            Diagnosis::Censored(found) => found.sentence(),
        }
    }
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}
