//! Results of the receiver's checks: damaged, duplicate and reordered packets.

use crate::document::table::Cell;
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::groups::groups;
use crate::stats::binomial::{Rate, interval_over_groups};
use crate::stats::summary::Interval;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::record::Checked;
use fwdlab_model::warning::{CheckedSample, faults_in_words};
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of the receiver's checks over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalResult {
    /// Number of checked packets, e.g. `every packet was checked`.
    pub checked: String,
    /// The checks, with a statement if they found no fault.
    pub sentence: String,
    /// Faults by variant (set of variants in an alternation); variants without faults are omitted.
    pub found: Vec<ArrivalsFound>,
}

/// Faults of packets in the runs of one variant, over whole trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrivalsFound {
    /// Label.
    pub label: String,
    /// Packets that arrived intact, without duplicates.
    pub intact: u64,
    /// Packets that arrived damaged, which count as lost.
    pub damaged: u64,
    /// Damaged packets by fault.
    pub faults: BTreeMap<String, u64>,
    /// The faults in words.
    pub faults_in_words: String,
    /// Damage in the checked sample; `None` if every packet was checked. Damaged packets outside
    /// the sample count as forwarded unless the stamp reveals the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledDamage>,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Reordered packets: arrived after a later packet of their flow.
    pub reordered: u64,
    /// Reordered packets as a share of arrived ones, 0 to 1.
    pub reordered_ratio: f64,
    /// Runs with missing flows that chance does not explain.
    pub runs_without_flows: usize,
}

/// Damage among the checked packets, over all runs with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampledDamage {
    /// The sample.
    pub sample: CheckedSample,
    /// Damaged share of it, 0 to 1.
    pub share: f64,
    /// Its 95 % interval over the runs; `None` for a single run, or if all runs have the same
    /// share.
    pub interval: Option<Interval>,
}

/// Summarises the receivers' checks; `None` if no run checked packets.
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
    let samples: Vec<CheckedSample> =
        contents.runs.iter().filter_map(|run| run.trial.arrivals.sample).collect();
    let sample = sum_samples(&samples);
    let mut how_many = sample.map_or_else(|| EVERY.to_owned(), |sample| sample.sentence());
    if samples.len() < checked.len() - others && sample.is_some() {
        how_many += &format!(" in {} runs; in the others every packet was", samples.len());
    }
    if others > 0 {
        how_many += &format!(", but in {others} of {} runs", checked.len());
    }
    let mut sentence = String::from(match sample {
        None => {
            "Every packet was checked on arrival (lengths, MACs, TTL, addresses of its flow, \
             checksums, stamp, order"
        }
        Some(_) => {
            "Stamp and order of every packet were checked on arrival, and of a sample the rest \
             (lengths, MACs, TTL, addresses of its flow, checksums"
        }
    });
    sentence += &match payload {
        1 => ")".to_owned(),
        n => format!(
            "; the payload after the stamp of the first thousand and of one in {n}{})",
            if sample.is_some() { " of these" } else { "" }
        ),
    };
    sentence += &match sample {
        Some(_) => format!(": {how_many}"),
        None => how_many.trim_start_matches(EVERY).to_owned(),
    };
    let found: Vec<ArrivalsFound> =
        groups(contents).into_iter().map(|(label, runs)| of_runs(label, &runs)).collect();
    let found: Vec<ArrivalsFound> = found.into_iter().filter(ArrivalsFound::is_any).collect();
    sentence += match found.is_empty() {
        true => ": none damaged, none twice, none out of order.",
        false => ". What was found, warm-up included:",
    };
    let checked = match payload {
        n if n > 1 && sample.is_none() => {
            let with_payload = format!("{EVERY}, the payload after the stamp in one of {n}");
            how_many.replacen(EVERY, &with_payload, 1)
        }
        _ => how_many,
    };
    Some(ArrivalResult { checked, sentence, found })
}

const EVERY: &str = "every packet was checked";

/// Sums the samples of several runs; `None` if there are none.
fn sum_samples(samples: &[CheckedSample]) -> Option<CheckedSample> {
    let mut sum = *samples.first()?;
    for sample in &samples[1..] {
        sum.checked += sample.checked;
        sum.of += sample.of;
        sum.damaged += sample.damaged;
    }
    Some(sum)
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
    let samples: Vec<CheckedSample> =
        runs.iter().filter_map(|run| run.trial.arrivals.sample).collect();
    found.sampled = sum_samples(&samples).map(|sample| {
        let rate = |sample: &CheckedSample| Rate { hits: sample.damaged, of: sample.checked };
        let rates: Vec<Rate> = samples.iter().map(rate).collect();
        let interval = interval_over_groups(&rates, 95.0);
        SampledDamage { sample, share: rate(&sample).share(), interval }
    });
    found
}

impl ArrivalsFound {
    fn is_any(&self) -> bool {
        self.damaged + self.duplicates + self.reordered > 0 || self.runs_without_flows > 0
    }
}

/// Returns the sentence on the checks, and a table of the faults.
pub(super) fn blocks(arrivals: &ArrivalResult) -> Vec<Block> {
    let mut blocks = vec![Block::text(&arrivals.sentence)];
    if !arrivals.found.is_empty() {
        let table = Table::of(&arrivals.found)
            .words("variant", |f| Cell::text(&f.label))
            .numbers("intact", |f| Cell::count(f.intact))
            .numbers("damaged", |f| Cell::count(f.damaged))
            .words("what is wrong with them", |f| Cell::text(&f.faults_in_words))
            .numbers("twice", |f| Cell::count(f.duplicates))
            .numbers("out of order in their flow", |f| {
                Cell::text(format!("{} ({})", f.reordered, percent(f.reordered_ratio, 3)))
            })
            .numbers("runs that lack flows", |f| Cell::count(f.runs_without_flows));
        blocks.push(table.block());
    }
    for found in arrivals.found.iter().filter(|found| found.damaged > 0 && found.intact > 0) {
        if let Some(SampledDamage { sample, share, interval }) = found.sampled {
            let interval = interval.map_or(String::new(), |ends| {
                format!(" [{}, {}]", percent(ends.low, 3), percent(ends.high, 3))
            });
            blocks.push(Block::text(format!(
                "{}: {} of the {} packets checked arrived damaged{interval}; of the {} others, what \
                 is damaged counts as forwarded unless its stamp shows it.",
                found.label,
                percent(share, 3),
                sample.checked,
                sample.of - sample.checked,
            )));
        }
    }
    blocks
}
