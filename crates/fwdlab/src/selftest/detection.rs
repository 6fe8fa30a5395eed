//! Time that this machine needs to find a change of a given size.

use fwdlab_results::report::analysis::RunResult;
use fwdlab_results::stats::Criteria;
use fwdlab_results::stats::planning::Design;
use fwdlab_results::stats::power::MDE_POWER;
use fwdlab_results::stats::summary::median;
use serde::Serialize;

/// Blocks of one experiment.
pub(crate) const BLOCKS: u32 = 8;
/// Changes whose time to detection is reported, as ratios.
pub(super) const CHANGES: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

/// The effort of finding a change.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Detection {
    /// The change as a ratio (0.01 = 1 %).
    pub(crate) change: f64,
    /// Number of blocks, with one run of each of two variants, or of streams; `None` if more than a
    /// thousand are needed.
    pub(crate) blocks: Option<u32>,
    /// Wall time of those runs in seconds.
    pub(crate) seconds: Option<f64>,
}

/// Median time from the start of one run to the start of the next, seconds.
pub(super) fn seconds_between(runs: &[RunResult]) -> Option<f64> {
    let starts: Vec<jiff::Timestamp> =
        runs.iter().filter_map(|run| run.started_at.parse().ok()).collect();
    let gaps: Vec<f64> = starts
        .windows(2)
        .map(|pair| pair[1].duration_since(pair[0]).as_secs_f64())
        .filter(|gap| *gap > 0.0)
        .collect();
    median(&gaps)
}

/// Number of blocks (or streams), each of the given length in seconds, that find each of
/// [`CHANGES`] with the power of every MDE.
pub(super) fn detections(scatter: f64, seconds_each: Option<f64>) -> Vec<Detection> {
    let design = Design { blocks: BLOCKS, stopping: None, criteria: Criteria::default() };
    CHANGES
        .into_iter()
        .map(|change| {
            let blocks = design.blocks_for_change(scatter, change, MDE_POWER);
            let seconds = seconds_each.zip(blocks).map(|(each, n)| each * f64::from(n));
            Detection { change, blocks, seconds }
        })
        .collect()
}
