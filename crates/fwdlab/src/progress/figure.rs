//! The result of a run: the number that a report shows for it, and one line.

use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::format_pps;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::counts::Foreground;
use fwdlab_results::report::analysis::{CORRECTED, figures_of_runs, found_in_words};

/// The number that summarises a run in reports, as far as the run alone determines it; `None` if
/// it determines none.
pub(crate) fn value(plan: &Plan, record: &RunRecord) -> Option<f64> {
    figures_of_runs(plan, std::iter::once(record)).pop()?.ok()
}

/// Result of a run: its rate, or its instructions per packet.
pub(crate) fn figure(plan: &Plan, record: &RunRecord) -> String {
    let trial = &record.trial;
    if plan.metric().is_rate() {
        let seconds = trial.window_ns.max(1) as f64 / 1e9;
        let counted_pps = trial.window.forwarded as f64 / seconds;
        let rate = with_corrected(plan, record, counted_pps);
        return match found_in_words(plan, record) {
            Some(found) => format!("{found}, {rate} at the maximum load"),
            None => rate,
        };
    }
    let total = trial.executed.as_ref().and_then(|e| Foreground::of([e]).total(e));
    total.map_or("not counted".to_owned(), |total| {
        format!("{:.1} instructions per packet", total.instructions)
    })
}

/// The counted rate, and the corrected rate if other work took so much of the device's CPU that the
/// two differ.
fn with_corrected(plan: &Plan, record: &RunRecord, counted_pps: f64) -> String {
    let counted = format_pps(counted_pps);
    match value(plan, record).filter(|_| plan.metric() == RunMetric::Corrected) {
        Some(pps) if pps > CORRECTED * counted_pps && counted_pps > 0.0 => {
            let factor = pps / counted_pps;
            format!("{counted} counted, {} of the CPU time it had (x {factor:.2})", format_pps(pps))
        }
        _ => counted,
    }
}
