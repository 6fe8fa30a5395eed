//! Smallest detectable difference on this machine when settings are switched live.
//!
//! Two identical variants and one with an additional firewall rule alternate within streams of
//! traffic. The scatter of the effects between the identical variants determines how many streams
//! find a change of a given size. The result of such a comparison holds for the starts that were
//! measured.

use super::detection::{Detection, detections, seconds_between};
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::slices_of_run;
use fwdlab_results::stats::alternation::{Slice, compare_alternation};
use fwdlab_results::stats::summary::Summary;
use fwdlab_results::stats::{Comparison, Criteria};
use fwdlab_results::store::Contents;
use serde::Serialize;

/// Streams of the plan.
const STREAMS: u32 = 24;

/// The plan of streams.
///
/// # Errors
/// Never, unless the text below is broken.
pub(crate) fn plan(testbed: TestbedKind) -> Result<(Plan, String), fwdlab_model::Diagnostics> {
    let kind = if testbed == TestbedKind::Sim { "sim" } else { "netns" };
    let text = format!(
        "version = 1\n\
         title = \"The laboratory against itself, switched live\"\n\n\
         [testbed]\nkind = \"{kind}\"\n\n\
         [dut]\nfirewall = \"rules:0\"\n\n\
         [[factor]]\nname = \"variant\"\nlevels = [\n  \
         {{ label = \"same 1\" }},\n  \
         {{ label = \"same 2\" }},\n  \
         {{ label = \"1 rule\", firewall = \"rules:1\" }},\n]\n\n\
         [trial]\nwarmup = \"300ms\"\nduration = \"6s\"\ninterval = \"100ms\"\nslice = \"10ms\"\n\n\
         [design]\nblocks = {STREAMS}\nalternate = \"200ms\"\nsettle = \"40ms\"\n\n\
         [compare]\nbaseline = {{ variant = \"same 1\" }}\n"
    );
    let loader = |name: &str| Err(format!("no file {name} belongs to the self-test"));
    Ok((fwdlab_model::load("selftest-live.toml", &text, &loader)?, text))
}

/// Results of the streams.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Live {
    /// The identical variants, and the rule: label and comparison in one line.
    pub(crate) effects: Vec<(String, String)>,
    /// Scatter of a stream's effect (0.01 = 1 %).
    pub(crate) scatter: f64,
    /// Total duration of a stream in seconds; `None` if it is unknown.
    pub(crate) seconds_per_stream: Option<f64>,
    /// Number of streams, and time, that find a change.
    pub(crate) times: Vec<Detection>,
}

/// Evaluates the streams of [`plan`].
pub(crate) fn evaluate(contents: &Contents, analysis: &Analysis) -> Live {
    let streams: Vec<Vec<Slice>> = contents.runs.iter().map(slices_of_run).collect();
    let effect_of = |variant: usize| -> Vec<f64> {
        streams
            .iter()
            .filter_map(|stream| compare(std::slice::from_ref(stream), variant))
            .map(|comparison| comparison.ratio.ln())
            .collect()
    };
    let scatter = Summary::of(&effect_of(1)).and_then(|s| s.sd).unwrap_or(f64::NAN);
    let seconds_per_stream = seconds_between(&analysis.core.runs);
    let effects = [1, 2]
        .into_iter()
        .filter_map(|variant| {
            let label = contents.plan.variants[variant].label.clone();
            Some((label, compare(&streams, variant)?.to_string()))
        })
        .collect();
    let times = detections(scatter, seconds_per_stream);
    Live { effects, scatter, seconds_per_stream, times }
}

fn compare(streams: &[Vec<Slice>], variant: usize) -> Option<Comparison> {
    compare_alternation(streams, 0, variant, Criteria::default()).ok()
}
