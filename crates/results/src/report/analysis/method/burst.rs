//! The longest bursts that lost nothing, and how long the device can buffer (RFC 9004).

use super::MethodRun;
use crate::report::analysis::variants::SummaryResult;
use crate::stats::summary::median;
use fwdlab_model::record::MethodRecord;
use fwdlab_search::{Burst, Longest};
use serde::Serialize;

/// The longest bursts that lost nothing in a variant, over all searches of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Bursts {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Their lengths in frames, of which the mean is the back-to-back frame value of RFC 9004;
    /// none if no search came to its end.
    pub frames: Option<SummaryResult>,
    /// Searches in which the longest allowed burst lost nothing: the device may take more.
    pub at_least: usize,
    /// Frames a second of the bursts: what the sender reached at the maximum offered load.
    pub burst_pps: Option<f64>,
    /// Frames a second that the device forwarded then.
    pub forwarded_pps: Option<f64>,
    /// Time that the mean burst takes at that rate, seconds (RFC 9004, implied buffer time).
    pub implied_s: Option<f64>,
    /// The same without the frames that the device forwards meanwhile, seconds (RFC 9004,
    /// corrected buffer time).
    pub corrected_s: Option<f64>,
    /// Bursts that say nothing of the device.
    pub invalid: usize,
}

/// The longest burst, or the most connections, of each search that a run's trials carried out.
pub(super) fn longest(record: &MethodRecord) -> Vec<Burst> {
    let (mut found, mut search): (Vec<Burst>, Option<Longest>) = (Vec::new(), None);
    for trial in &record.trials {
        let opened = trial.connections.as_ref().map(|opened| opened.wanted);
        let (Some(frames), Ok(is_whole)) = (trial.burst.or(opened), trial.is_whole()) else {
            continue;
        };
        // A search begins with the first burst after the one before it was over.
        let current = search.get_or_insert_with(|| Longest::new(frames, record.max_load));
        current.record(frames, is_whole);
        if let Some(burst) = current.found() {
            found.push(burst);
            search = None;
        }
    }
    found
}

/// A variant over its runs; none without one.
pub(super) fn bursts((variant, label): (usize, &str), runs: &[MethodRun]) -> Option<Bursts> {
    let own: Vec<&MethodRun> = runs.iter().filter(|run| run.variant == variant).collect();
    let found: Vec<Burst> = own.iter().flat_map(|run| run.bursts.iter().copied()).collect();
    let lengths: Vec<f64> = found.iter().map(|burst| burst.frames as f64).collect();
    let of = |get: fn((f64, f64)) -> f64| -> Vec<f64> {
        own.iter().filter_map(|run| run.own.map(get)).collect()
    };
    let burst_pps = median(&of(|own| own.0));
    let forwarded_pps = median(&of(|own| own.1));
    let frames = SummaryResult::of(&lengths);
    let implied_s = frames.zip(burst_pps).map(|(frames, pps)| frames.mean / pps);
    let corrected = |implied: f64| Some(implied * (1.0 - forwarded_pps? / burst_pps?).max(0.0));
    own.first()?;
    Some(Bursts {
        variant,
        label: label.to_owned(),
        frames,
        at_least: found.iter().filter(|burst| burst.is_most).count(),
        burst_pps,
        forwarded_pps,
        implied_s,
        corrected_s: implied_s.and_then(corrected),
        invalid: own.iter().flat_map(|run| &run.points).filter(|p| p.invalid.is_some()).count(),
    })
}
