//! Confirmation of a suspect: an ordinary blocked experiment, which knows nothing of the search,
//! compares it with its predecessor.

use super::Arguments;
use crate::experiment;
use crate::session::{self, Session};
use anyhow::Result;
use fwdlab_model::Plan;
use fwdlab_results::report::analysis::{Outcome, StoppingWatch};
use fwdlab_results::report::{self};
use fwdlab_results::stats::Verdict;
use std::path::{Path, PathBuf};

/// Result of the comparison.
pub(super) struct Confirmed {
    /// The predecessor and the suspect.
    pub(super) pair: (usize, usize),
    /// better, worse, equivalent or inconclusive; `None` if there is no verdict.
    pub(super) verdict: Option<Verdict>,
    /// The result in one line.
    pub(super) sentence: String,
    /// Path of the report.
    pub(super) report: PathBuf,
}

/// Measures the runs that are missing from the pair's store, and compares.
///
/// # Errors
/// A failing or unsuitable testbed, a store of another plan, an interruption.
pub(super) fn confirm(
    arguments: &Arguments,
    text: &str,
    factor: usize,
    pair: (usize, usize),
    out: &Path,
    resume: &str,
) -> Result<Confirmed> {
    let levels = [pair.0, pair.1];
    let overrides = &arguments.overrides;
    let plan = experiment::of_pair(arguments.file(), text, overrides, factor, levels)?;
    let out = out.join(format!("confirm-{}-{}", pair.0, pair.1));
    let (mut store, notice) = session::open_store(&out, arguments.fresh)?;
    notice.into_iter().for_each(|notice| arguments.note(&notice));
    store.adopt_plan(&plan, text)?;
    let missing = store.missing_runs(&plan)?;
    let of = |index: usize| plan.variants[index].label.as_str();
    arguments.note(&format!(
        "confirming: {} against {}, {} runs in blocks",
        of(1),
        of(0),
        plan.runs.len()
    ));
    let watch = StoppingWatch::begin(&plan, &store)?;
    let is_done = watch.as_ref().is_some_and(StoppingWatch::is_done);
    if !missing.is_empty() && !is_done {
        measure(arguments, &plan, &mut store, &missing, watch, resume)?;
    }
    let analysis = report::write(&store, &out)?;
    let compared = analysis.core.comparisons.first().map(|compared| &compared.outcome);
    let (verdict, sentence) = match compared {
        Some(Outcome::Compared(answer)) if answer.comparison.doubtful.is_some() => {
            (None, format!("{}: most runs were disturbed", answer.sentence))
        }
        Some(Outcome::Compared(answer)) => (Some(answer.verdict), answer.sentence.clone()),
        Some(Outcome::Counted(exact)) => (Some(exact.verdict.into()), exact.shown.clone()),
        Some(Outcome::Unanswerable { reason }) => (None, reason.clone()),
        None => (None, "nothing was compared".to_owned()),
    };
    let verdict = verdict.filter(|_| !analysis.has_fatal_warning());
    Ok(Confirmed { pair, verdict, sentence, report: out.join("README.md") })
}

fn measure(
    arguments: &Arguments,
    plan: &Plan,
    store: &mut fwdlab_results::store::Store,
    missing: &[u32],
    watch: Option<StoppingWatch>,
    resume: &str,
) -> Result<()> {
    let session = Session {
        bed: None,
        revision: None,
        plan,
        directory: experiment::beside(arguments.file()),
        calibrates: !arguments.no_calibration,
        quiet: arguments.quiet,
        resume: resume.to_owned(),
        runs: plan.runs.len().to_string(),
        takes_profiles: false,
        wait: std::time::Duration::ZERO,
    };
    session.measure(store, missing, watch).map(drop)
}
