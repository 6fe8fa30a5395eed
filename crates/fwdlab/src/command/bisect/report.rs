//! Result of a bisection as text, as JSON and as a plot.

use super::confirm::Confirmed;
use super::run_source::Search;
use crate::error::CliError;
use anyhow::Result;
use fwdlab_model::Plan;
use fwdlab_model::plan::RunMetric;
use fwdlab_results::plot::{Draw, Posterior};
use fwdlab_results::short_names;
use fwdlab_results::stats::Verdict;
use fwdlab_search::bisect::{self, Ending};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// File name of the plot.
const PICTURE: &str = "bisect.svg";
/// Maximum number of candidates that are named one by one.
const NAMED: usize = 8;

/// Result of a bisection.
#[derive(Default)]
pub(super) struct BisectReport {
    pub(super) title: String,
    pub(super) testbed: String,
    /// True if less is better: instructions.
    pub(super) is_count: bool,
    pub(super) labels: Vec<String>,
    pub(super) verdict: bisect::Verdict,
    pub(super) probabilities: Vec<f64>,
    pub(super) runs: Vec<usize>,
    /// Description of each candidate; empty if there is none.
    pub(super) about: Vec<String>,
    pub(super) skipped: Vec<(usize, String)>,
    pub(super) measured: usize,
    /// Path of the plot; `None` if none is drawn.
    pub(super) picture: Option<PathBuf>,
    /// Lines after the answer.
    pub(super) remarks: Vec<String>,
    pub(super) confirmed: Vec<Confirmed>,
}

impl BisectReport {
    pub(super) fn new(
        plan: &Plan,
        search: &Search<'_>,
        verdict: bisect::Verdict,
        about: Vec<String>,
        out: &Path,
    ) -> Self {
        Self {
            title: plan.title.clone(),
            testbed: plan.base.testbed.kind.name().to_owned(),
            is_count: plan.metric() == RunMetric::Instructions,
            labels: plan.variants.iter().map(|variant| variant.label.clone()).collect(),
            verdict,
            probabilities: search.engine.probabilities(),
            runs: search.attempts.iter().map(|&runs| runs as usize).collect(),
            about,
            skipped: search.skipped.iter().map(|(&index, why)| (index, why.clone())).collect(),
            measured: search.measured(),
            picture: Some(out.join(PICTURE)),
            remarks: Vec::new(),
            confirmed: Vec::new(),
        }
    }

    fn label(&self, index: usize) -> &str {
        &self.labels[index]
    }

    /// Pairs of candidates to confirm.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        let pair = |set: &[usize]| Some((set.first()?.checked_sub(1)?, *set.last()?));
        match self.verdict.ending {
            Some(Ending::Found) => self.verdict.pair().into_iter().collect(),
            Some(Ending::Two) => [&self.verdict.set, &self.verdict.second]
                .into_iter()
                .filter_map(|s| pair(s))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Writes the plot.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn draw(&self) -> Result<()> {
        let Some(picture) = &self.picture else { return Ok(()) };
        let figure = Posterior {
            title: format!("Where it changed: {}", self.title),
            labels: short_names(&self.labels),
            probabilities: self.probabilities.clone(),
            runs: self.runs.clone(),
            footnote: Some(format!("After {} runs. {}", self.verdict.runs, self.found())),
        };
        fs::write(picture, figure.render()).map_err(|error| {
            let why = format!("can't write {}: {error}", picture.display());
            CliError::Environment(why).into()
        })
    }

    /// True if the comparison confirms the result of the search.
    fn is_convicted(&self, confirmed: &Confirmed, change: f64) -> bool {
        let expected =
            if (change < 0.0) == self.is_count { Verdict::Better } else { Verdict::Worse };
        confirmed.verdict == Some(expected)
    }

    /// The changes in the order of [`BisectReport::pairs`].
    fn changes(&self) -> [f64; 2] {
        [self.verdict.change, self.verdict.second_change]
    }

    fn is_confirmed(&self) -> bool {
        let pairs = self.confirmed.iter().zip(self.changes());
        !self.confirmed.is_empty()
            && pairs.into_iter().all(|(confirmed, change)| self.is_convicted(confirmed, change))
    }

    /// The outcome as a word, for programs.
    fn outcome(&self) -> &'static str {
        match self.verdict.ending {
            Some(Ending::Found | Ending::Two) if self.is_confirmed() => "convicted",
            Some(Ending::Found | Ending::Two) if self.confirmed.is_empty() => "suspected",
            Some(Ending::Found | Ending::Two) => "not-confirmed",
            Some(Ending::NoStep) => "ends-alike",
            Some(Ending::Cap) => "set",
            Some(Ending::EndLacks) => "end-lacks",
            None => "unfinished",
        }
    }

    fn names(&self, set: &[usize]) -> String {
        let is_row = set.windows(2).all(|two| two[1] == two[0] + 1);
        match set {
            [] => "nothing".to_owned(),
            [one] => self.label(*one).to_owned(),
            [first, .., last] if is_row => {
                format!("{} to {} ({})", self.label(*first), self.label(*last), set.len())
            }
            _ => {
                let named: Vec<&str> = set.iter().take(NAMED).map(|&k| self.label(k)).collect();
                let more = set.len().saturating_sub(NAMED);
                let and = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("{}{and}", named.join(", "))
            }
        }
    }

    /// The result of the search in a sentence or two.
    fn found(&self) -> String {
        let verdict = &self.verdict;
        let percent = |share: f64| format!("{:+.2} %", 100.0 * share);
        let sure = format!("{:.1} %", 100.0 * verdict.probability);
        let scatter = match verdict.half_width > 0.0 && verdict.half_width.is_finite() {
            true => format!(" ± {:.2}", 100.0 * verdict.half_width),
            false => String::new(),
        };
        let change = |share: f64| {
            let text = percent(share);
            text.replace(" %", &format!("{scatter} %"))
        };
        match verdict.ending {
            Some(Ending::Found) => {
                let what = match verdict.half_width {
                    0.0 => String::new(),
                    _ => format!(" (probability {sure})"),
                };
                let more = match verdict.two > 0.05 {
                    true if verdict.half_width == 0.0 => format!(
                        " The ends differ by {}: something else changed as well.",
                        percent(verdict.ends)
                    ),
                    true => format!(
                        " With probability {:.0} % there is a second change.",
                        100.0 * verdict.two
                    ),
                    false => String::new(),
                };
                format!(
                    "{} came with {}{what}.{more}",
                    change(verdict.change),
                    self.names(&verdict.set)
                )
            }
            Some(Ending::Two) => format!(
                "Two changes: {} came with {}, {} with {} (probability at least {sure} each).",
                percent(verdict.change),
                self.names(&verdict.set),
                percent(verdict.second_change),
                self.names(&verdict.second)
            ),
            Some(Ending::NoStep) if verdict.half_width == 0.0 => {
                format!(
                    "The ends differ by {}; their runs vary too much to show a change below {:.2} \
                     %: there is none to find.",
                    percent(verdict.ends),
                    100.0 * verdict.detectable
                )
            }
            Some(Ending::NoStep) => format!(
                "The ends can't be told apart: they differ by {} at a scatter of {:.2} % a run. A \
                 step of {:.2} % would have been seen nine times of ten.",
                percent(verdict.ends),
                100.0 * verdict.scatter,
                100.0 * verdict.detectable
            ),
            Some(Ending::Cap) => {
                let or = match verdict.second.is_empty() {
                    true => String::new(),
                    false => format!(", and a second one with {}", self.names(&verdict.second)),
                };
                format!(
                    "Not sure after all runs that were allowed: the change ({}) came with {}{or} \
                     (probability {sure}).",
                    change(verdict.change),
                    self.names(&verdict.set)
                )
            }
            Some(Ending::EndLacks) => {
                "An end can't be measured, so that there is nothing to compare with.".to_owned()
            }
            None => "The search is not finished.".to_owned(),
        }
    }

    /// The report as text.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{} runs", self.found(), self.verdict.runs);
        if self.verdict.scatter > 0.0 {
            text += &format!(", scatter of a run {:.2} %", 100.0 * self.verdict.scatter);
        }
        for (index, why) in &self.skipped {
            text += &format!("\nskipped: {}: {why}", self.label(*index));
        }
        for (confirmed, change) in self.confirmed.iter().zip(self.changes()) {
            let (before, suspect) = (self.label(confirmed.pair.0), self.label(confirmed.pair.1));
            let verdict = match self.is_convicted(confirmed, change) {
                true if confirmed.pair.1 == confirmed.pair.0 + 1 => format!("convicted: {suspect}"),
                true => format!("convicted: what came after {before} and not after {suspect}"),
                false => format!("not confirmed, nobody is convicted: {suspect}"),
            };
            let about = self.about.get(confirmed.pair.1);
            let about = about.map_or_else(String::new, |about| format!("\n  {about}"));
            text += &format!(
                "\n{verdict}{about}\n  {suspect} against {before}: {}\n  report: {}",
                confirmed.sentence,
                confirmed.report.display()
            );
        }
        if self.confirmed.is_empty() {
            text += "\nnobody is convicted: nothing was confirmed";
        }
        for remark in &self.remarks {
            text += &format!("\n{remark}");
        }
        match &self.picture {
            Some(picture) => format!("{text}\npicture: {}", picture.display()),
            None => text,
        }
    }

    /// The report as JSON.
    pub(super) fn json(&self) -> Value {
        let verdict = &self.verdict;
        let names = |set: &[usize]| -> Vec<&str> { set.iter().map(|&k| self.label(k)).collect() };
        let finite = |value: f64| value.is_finite().then_some(value);
        let candidates: Vec<Value> = (0..self.labels.len())
            .map(|index| {
                let why = self.skipped.iter().find(|skipped| skipped.0 == index);
                json!({
                    "label": self.label(index),
                    "about": self.about.get(index),
                    "probability": self.probabilities[index],
                    "runs": self.runs[index],
                    "skipped": why.map(|why| &why.1),
                })
            })
            .collect();
        let confirmed: Vec<Value> = (self.confirmed.iter().zip(self.changes()))
            .map(|(confirmed, change)| {
                json!({
                    "before": self.label(confirmed.pair.0),
                    "suspect": self.label(confirmed.pair.1),
                    "convicted": self.is_convicted(confirmed, change),
                    "sentence": confirmed.sentence,
                    "report": confirmed.report,
                })
            })
            .collect();
        json!({
            "version": 1,
            "title": self.title,
            "testbed": self.testbed,
            "outcome": self.outcome(),
            "set": names(&verdict.set),
            "second_set": names(&verdict.second),
            "probability": verdict.probability,
            "change": finite(verdict.change),
            "change_half_width": finite(verdict.half_width),
            "second_change": verdict.second_change,
            "ends_change": finite(verdict.ends),
            "detectable": finite(verdict.detectable),
            "scatter": finite(verdict.scatter),
            "two_changes_probability": verdict.two,
            "runs": verdict.runs,
            "measured_now": self.measured,
            "candidates": candidates,
            "confirmed": confirmed,
            "remarks": self.remarks,
            "picture": self.picture,
        })
    }
}
