//! Devices of known truth on this machine: measurement compared with truth.
//!
//! The device is this kernel with a ruleset that makes its behaviour known: a shaper of a given
//! packet rate (its bucket holds 50 ms, which makes up for stolen CPU time), one that drops the
//! first 80 of each 1000 packets (at 10,000 packets per second a stall of 8 of each 100 ms), and
//! one that drops nothing. The truth follows from the ruleset alone; any difference is the
//! laboratory's error.

use fwdlab_model::Plan;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Outcome, RunResult};
use fwdlab_results::stats::summary::median;
use fwdlab_results::stats::{BlockedRun, Criteria, compare_blocked};
use serde::Serialize;

/// Promised maximum error: of rates as ratios, of loss as differences.
const BAR: f64 = 0.01;
const LOSS_BAR: f64 = 0.001;

/// A ruleset, by its name in the plan.
fn ruleset(name: &str) -> Result<Vec<u8>, String> {
    let rule = match name {
        "shaper-10k.nft" => "limit rate over 10000/second burst 500 packets drop",
        "shaper-100k.nft" => "limit rate over 100000/second burst 5000 packets drop",
        "stall.nft" => "numgen inc mod 1000 < 80 drop",
        "steady.nft" => "numgen inc mod 1000 < 80 counter",
        _ => return Err(format!("no file {name} belongs to the self-test")),
    };
    let chain = "type filter hook forward priority 0; policy accept;";
    Ok(format!("table inet truth {{\n\tchain forward {{\n\t\t{chain}\n\t\t{rule}\n\t}}\n}}\n")
        .into_bytes())
}

/// The plan: each device in five runs, and one rule in as many.
///
/// # Errors
/// Never, unless the text below is broken.
pub(crate) fn plan() -> Result<(Plan, String), fwdlab_model::Diagnostics> {
    let text = "version = 1\n\
         title = \"The laboratory against devices of known truth\"\n\n\
         [testbed]\nkind = \"netns\"\n\n\
         [[factor]]\nname = \"device\"\nlevels = [\n  \
         { label = \"steady, paced\", firewall = \"steady.nft\", rate = \"10kpps\" },\n  \
         { label = \"stalls, paced\", firewall = \"stall.nft\", rate = \"10kpps\" },\n  \
         { label = \"shaper 10 kpps\", firewall = \"shaper-10k.nft\" },\n  \
         { label = \"shaper 100 kpps\", firewall = \"shaper-100k.nft\" },\n  \
         { label = \"no rule\", firewall = \"rules:0\" },\n  \
         { label = \"one rule\", firewall = \"rules:1\" },\n]\n\n\
         [trial]\nwarmup = \"200ms\"\nduration = \"1s\"\n\n\
         [design]\nblocks = 5\n\n\
         [compare]\nbaseline = { device = \"steady, paced\" }\n"
        .to_owned();
    Ok((fwdlab_model::load("selftest-truth.toml", &text, &ruleset)?, text))
}

/// One device: truth and measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Truth {
    /// The device.
    pub(crate) device: String,
    /// The measured quantity: `rate`, `mean` or `loss`.
    pub(crate) what: String,
    /// The truth: packets per second, or a share of the packets.
    pub(crate) truth: f64,
    /// The measurements, run by run.
    pub(crate) measured: Vec<f64>,
    /// Median measurement less truth; for rates, relative to the truth.
    pub(crate) error: f64,
    /// The largest error of a run, likewise.
    pub(crate) worst: f64,
    /// Promised maximum error of the median.
    pub(crate) bar: f64,
}

impl Truth {
    fn of(device: &str, what: &str, truth: f64, measured: Vec<f64>) -> Option<Truth> {
        let is_loss = what == "loss";
        let scale = if is_loss { 1.0 } else { truth };
        let error = (median(&measured)? - truth) / scale;
        let worst = measured
            .iter()
            .map(|value| (value - truth) / scale)
            .max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        let bar = if is_loss { LOSS_BAR } else { BAR };
        let (device, what) = (device.to_owned(), what.to_owned());
        Some(Truth { device, what, truth, measured, error, worst, bar })
    }

    /// True if the median keeps the promise.
    pub(crate) fn is_kept(&self) -> bool {
        self.error.abs() <= self.bar
    }

    /// True for a share of lost packets.
    pub(crate) fn is_loss(&self) -> bool {
        self.what == "loss"
    }

    /// The median of the measurements.
    pub(crate) fn median(&self) -> f64 {
        median(&self.measured).unwrap_or(f64::NAN)
    }
}

/// Results of the runs of [`plan`].
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Each device.
    pub(crate) truths: Vec<Truth>,
    /// Runs without a result, because their sender fell short.
    pub(crate) left_out: usize,
    /// The comparisons: the stall against the steady device, and one rule.
    pub(crate) verdicts: Vec<String>,
}

/// Compares the runs with the truth.
pub(crate) fn evaluate(analysis: &Analysis) -> Report {
    let of = |label: &str, figure: &dyn Fn(&RunResult) -> Option<f64>| -> Vec<f64> {
        let runs = analysis.core.runs.iter().filter(|run| run.label == label);
        runs.filter(|run| run.left_out.is_none()).filter_map(figure).collect()
    };
    let mut truths = Vec::new();
    for (label, truth) in [("steady, paced", 0.0), ("stalls, paced", 0.08)] {
        truths.extend(Truth::of(label, "loss", truth, of(label, &RunResult::loss_ratio)));
    }
    for (label, truth) in [("shaper 10 kpps", 1e4), ("shaper 100 kpps", 1e5)] {
        // A shaper gathers its tokens by the clock, also during steal: the report must not correct
        // its rate.
        truths.extend(Truth::of(label, "rate", truth, of(label, &|run| run.value_pps)));
    }
    let blocked = |label: &str| -> Vec<BlockedRun> {
        let runs = analysis.core.runs.iter().filter(|run| run.label == label);
        runs.filter_map(|run| Some(BlockedRun { block: run.block, pps: run.value_pps? })).collect()
    };
    let rule = match compare_blocked(&blocked("no rule"), &blocked("one rule"), Criteria::default())
    {
        Ok(comparison) => comparison.to_string(),
        Err(reason) => reason.to_string(),
    };
    let verdicts = analysis
        .core
        .comparisons
        .iter()
        .filter(|compared| compared.label == "stalls, paced")
        .map(|compared| {
            let sentence = match &compared.outcome {
                Outcome::Compared(answer) => answer.sentence.clone(),
                Outcome::Counted(exact) => exact.sentence.clone(),
                Outcome::Unanswerable { reason } => reason.clone(),
            };
            format!("{} against {}: {sentence}", compared.label, compared.baseline_label)
        })
        .chain([format!("one rule against no rule: {rule}")])
        .collect();
    let left_out = analysis.core.runs.iter().filter(|run| run.left_out.is_some()).count();
    Report { truths, left_out, verdicts }
}

#[cfg(test)]
mod tests {
    use super::super::text::of_truths;
    use super::*;
    use fwdlab_results::document::form;

    #[test]
    fn truth_plan_is_valid() {
        let (plan, _) = plan().unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        assert_eq!(plan.variants.len(), 6);
        assert!(plan.variants[0].settings.is_paced() && !plan.variants[2].settings.is_paced());
    }

    #[test]
    fn errors_are_reported_with_their_sign() {
        let truth = Truth::of("shaper", "mean", 1e4, vec![9_900.0, 10_020.0, 10_030.0]);
        let truth = truth.expect("measured");
        assert!((truth.error - 0.002).abs() < 1e-12 && truth.is_kept(), "{truth:?}");
        assert!((truth.worst + 0.01).abs() < 1e-12, "{truth:?}");
        let report = Report { truths: vec![truth], left_out: 0, verdicts: Vec::new() };
        let markdown = form::markdown::render(&of_truths(&report));
        let row = "| shaper | mean | 10.0 kpps | 10.0 kpps | +0.200 % | -1.000 % | kept |";
        assert!(markdown.contains(row), "{markdown}");
        let lost = Truth::of("stall", "loss", 0.08, vec![0.085]).expect("measured");
        assert!(!lost.is_kept());
        assert_eq!(Truth::of("none", "loss", 0.0, Vec::new()).map(|t| t.error), None);
    }
}
