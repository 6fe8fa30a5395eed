//! Results of the receiver's checks: damaged, duplicate and reordered packets.

use super::quality::groups;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::record::Checked;
use fwdlab_model::warning::faults_in_words;
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of the receiver's checks of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalResult {
    /// What was checked, and whether nothing was found.
    pub sentence: String,
    /// By variant (set of variants in an alternation), those of which something was found.
    pub found: Vec<ArrivalsFound>,
}

/// What arrived otherwise than it was sent in the runs of one variant, whole trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrivalsFound {
    /// Label.
    pub label: String,
    /// Packets that arrived intact, each once.
    pub intact: u64,
    /// Packets that arrived damaged; part of those lost.
    pub damaged: u64,
    /// The damaged ones by what is wrong with them.
    pub faults: BTreeMap<String, u64>,
    /// The same in words.
    pub faults_in_words: String,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Reordered packets: arrived after a later packet of their flow.
    pub reordered: u64,
    /// The same as a share of those that arrived, 0 to 1.
    pub reordered_ratio: f64,
    /// Runs in which flows did not arrive that chance does not explain.
    pub runs_without_flows: usize,
}

/// What the runs' receivers found; none where no run's packets were checked.
pub(super) fn arrivals(contents: &Contents) -> Option<ArrivalResult> {
    let checked: Vec<Checked> =
        contents.runs.iter().map(|run| run.trial.arrivals.checked).collect();
    let payload = checked.iter().filter_map(|checked| match checked {
        Checked::Packets { payload_one_in } => Some(*payload_one_in),
        _ => None,
    });
    let payload = payload.max()?;
    let others =
        checked.iter().filter(|checked| !matches!(checked, Checked::Packets { .. })).count();
    let mut sentence = String::from(
        "Every packet was checked on arrival (lengths, MACs, TTL, addresses of its flow, \
         checksums, stamp, order",
    );
    sentence += &match payload {
        1 => ")".to_owned(),
        n => format!("; the payload after the stamp of the first thousand and of one in {n})"),
    };
    if others > 0 {
        sentence += &format!(", but in {others} of {} runs", checked.len());
    }
    let found: Vec<ArrivalsFound> =
        groups(contents).into_iter().map(|(label, runs)| of_runs(label, &runs)).collect();
    let found: Vec<ArrivalsFound> = found.into_iter().filter(ArrivalsFound::is_any).collect();
    sentence += match found.is_empty() {
        true => ": none damaged, none twice, none out of order.",
        false => ". What was found, warm-up included:",
    };
    Some(ArrivalResult { sentence, found })
}

fn of_runs(label: String, runs: &[&RunRecord]) -> ArrivalsFound {
    let mut found = ArrivalsFound { label, ..ArrivalsFound::default() };
    for run in runs {
        let arrivals = &run.trial.arrivals;
        found.intact += run.trial.total.forwarded;
        found.damaged += arrivals.damaged;
        found.duplicates += arrivals.duplicates;
        found.reordered += arrivals.reordered;
        found.runs_without_flows += usize::from(arrivals.flows.is_some_and(|flows| flows.lacking));
        for (fault, packets) in &arrivals.faults {
            *found.faults.entry(fault.clone()).or_default() += packets;
        }
    }
    found.faults_in_words = faults_in_words(&found.faults);
    found.reordered_ratio = found.reordered as f64 / (found.intact as f64).max(1.0);
    found
}

impl ArrivalsFound {
    fn is_any(&self) -> bool {
        self.damaged + self.duplicates + self.reordered > 0 || self.runs_without_flows > 0
    }
}
