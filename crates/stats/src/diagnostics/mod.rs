//! Diagnostics of runs: trends, outliers, modes, correlation, censoring.
//!
//! Diagnostics delete nothing: no figure is excluded because of a finding (a slow start of the DUT
//! is a finding), and no comparison changes. The module looks for a trend and a similarity of
//! neighbours over the order of the runs, a run far from the others, several modes, and rates that
//! the measuring equipment bounded.
//!
//! - [`order`]: run-order trend, lag-1 autocorrelation.
//! - [`outlier`](mod@outlier): Grubbs' test.
//! - [`modality`]: Hartigan's dip test.
//! - [`censoring`](mod@censoring): line rate and generator.
//!
//! Out of scope: tests of normality. A dozen runs cannot fail them, and comparisons are of means.

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

/// Maximum p-value of a finding. Strict, because every experiment is tested for several of them.
pub const LEVEL: f64 = 0.01;

/// Returns the level for tests in each of several beds: jointly as strict as in one, as far as
/// simulated p-values permit.
pub fn level_of_beds(beds: usize) -> f64 {
    const LEAST: f64 = 0.001;
    (LEVEL / beds.max(1) as f64).max(LEAST)
}

/// Figure of one run, or of one variant's part of a stream.
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
    /// Neighbouring runs are more similar, or less, than others.
    Autocorrelation {
        /// Correlation of neighbours.
        lag1: f64,
        /// p-value of "the order does not matter".
        p: f64,
    },
    /// A run far from its expected place by variant and block.
    Outlier(Outlier),
    /// More than one cluster of runs.
    Bimodal(Bimodality),
    /// Rates that a limit other than the DUT bounded.
    Censored(Censored),
}

/// Looks for trend, autocorrelation, an outlier and several modes, each at `level` ([`LEVEL`] in
/// one experiment), in figures in the order of their runs. Differences between variants are always
/// removed, differences between blocks only when looking for an outlier (the other tests look for
/// effects on whole blocks). Censoring requires the bounds: [`censoring`](fn@censoring).
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
    /// Returns one sentence for the user.
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
