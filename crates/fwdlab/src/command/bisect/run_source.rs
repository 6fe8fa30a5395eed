//! Runs that a bisection requests, measured or replayed from the store.

use super::builds::Builds;
use crate::session::{GivenUp, RunSource};
use crate::terminal;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::format_pps;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::report::analysis::figures_of_runs;
use fwdlab_search::bisect::{Bisection, Step};
use std::collections::{BTreeMap, HashMap};

/// Runs without a result after which a candidate is skipped.
pub(super) const FAILURES: usize = 3;
/// Consecutive candidates given up after which the laboratory is suspected.
const GIVEN_UP: usize = 3;

/// A search over the variants of a plan; each variant is a candidate.
///
/// The nth run of a candidate is its run in block n of the plan. When a search is resumed, the
/// store therefore answers the same requests in the same order.
pub(super) struct Search<'a> {
    plan: &'a Plan,
    pub(super) engine: Bisection,
    /// Stored runs that the search has not requested yet, by index.
    stored: HashMap<u32, RunRecord>,
    /// Runs with counted instructions: each new one may change the results of all.
    counted: Vec<RunRecord>,
    /// Index of the run of a block and a variant.
    runs: HashMap<(u32, usize), u32>,
    /// Number of runs of each candidate so far, with a result or without.
    pub(super) attempts: Vec<u32>,
    failures: Vec<usize>,
    /// Candidates that can't be measured, with the reason.
    pub(super) skipped: BTreeMap<usize, String>,
    given_up_in_a_row: usize,
    /// Reason why the laboratory, not a candidate, is to blame.
    pub(super) broken: Option<String>,
    /// Builds candidates before they are measured; `None` if they need no build.
    builds: Option<&'a Builds>,
    /// Error that ended the search from outside.
    pub(super) halted: Option<anyhow::Error>,
    verbose: bool,
    measured: usize,
}

impl<'a> Search<'a> {
    /// Replays the runs in `records` that the search requests.
    pub(super) fn new(
        plan: &'a Plan,
        engine: Bisection,
        records: Vec<RunRecord>,
        builds: Option<&'a Builds>,
        verbose: bool,
    ) -> Self {
        let stored = records.into_iter().map(|run| (run.run, run)).collect();
        let runs = plan.runs.iter().map(|run| ((run.block, run.variants[0]), run.index)).collect();
        let count = plan.variants.len();
        let mut search = Self {
            plan,
            engine,
            stored,
            counted: Vec::new(),
            runs,
            attempts: vec![0; count],
            failures: vec![0; count],
            skipped: BTreeMap::new(),
            given_up_in_a_row: 0,
            broken: None,
            builds,
            halted: None,
            verbose: false,
            measured: 0,
        };
        search.pending();
        search.verbose = verbose;
        search
    }

    /// Number of runs that this invocation measured.
    pub(super) fn measured(&self) -> usize {
        self.measured
    }

    /// The next run to measure, and its candidate; absorbs stored runs first, and skips candidates
    /// that are known not to build.
    fn pending(&mut self) -> Option<(u32, usize)> {
        while self.broken.is_none() && self.halted.is_none() {
            let Step::Measure(candidate) = self.engine.next() else { return None };
            let index = *self.runs.get(&(self.attempts[candidate], candidate))?;
            if let Some(run) = self.stored.remove(&index) {
                self.absorb(candidate, &run);
            } else if let Some(why) = self.builds.and_then(|builds| builds.failed(candidate)) {
                self.skip(candidate, why);
            } else {
                return Some((index, candidate));
            }
        }
        None
    }

    /// True if nothing is left to measure.
    pub(super) fn is_done(&mut self) -> bool {
        self.pending().is_none()
    }

    /// Excludes a candidate from the search.
    pub(super) fn skip(&mut self, candidate: usize, why: String) {
        if self.verbose {
            let label = &self.plan.variants[candidate].label;
            terminal::note(&format!("{label} is skipped: {why}"));
        }
        self.engine.skip(candidate);
        self.skipped.insert(candidate, why);
    }

    /// Returns the result of a run and passes it to the search; an instruction count is passed with
    /// all earlier ones.
    fn figure(&mut self, candidate: usize, run: &RunRecord) -> Result<f64, String> {
        if let Bisection::Exact(search) = &mut self.engine {
            self.counted.push(run.clone());
            let figures = figures_of_runs(self.plan, self.counted.iter());
            let known: Vec<(usize, f64)> = (self.counted.iter().zip(&figures))
                .filter_map(|(run, figure)| Some((run.variants[0], *figure.as_ref().ok()?)))
                .collect();
            search.retake(&known);
            return figures.last().cloned().unwrap_or_else(|| Err("no run".to_owned()));
        }
        let figure = figures_of_runs(self.plan, std::iter::once(run)).remove(0)?;
        self.engine.take(candidate, figure);
        Ok(figure)
    }

    fn absorb(&mut self, candidate: usize, run: &RunRecord) {
        self.attempts[candidate] += 1;
        match self.figure(candidate, run) {
            Ok(figure) if self.verbose => terminal::note(&self.line(candidate, figure)),
            Ok(_) => {}
            Err(why) => {
                self.failures[candidate] += 1;
                if self.failures[candidate] >= FAILURES {
                    self.skip(candidate, format!("{FAILURES} of its runs have no figure: {why}"));
                }
            }
        }
    }

    /// Progress line after a run.
    fn line(&self, candidate: usize, figure: f64) -> String {
        let verdict = self.engine.verdict();
        let label = |index: usize| self.plan.variants[index].label.as_str();
        let text =
            format!("run {}  {}  {}", verdict.runs, label(candidate), in_words(self.plan, figure));
        if verdict.half_width.is_infinite() {
            return format!("{text}  are the ends apart?");
        }
        let probabilities = self.engine.probabilities();
        let most = (1..probabilities.len())
            .max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
            .unwrap_or(1);
        let possible = verdict.set.len() + verdict.second.len();
        format!(
            "{text}  most probable: {} ({:.0} %), {possible} possible",
            label(most),
            100.0 * probabilities[most],
        )
    }
}

/// Formats a result with its unit.
pub(super) fn in_words(plan: &Plan, figure: f64) -> String {
    match plan.metric() {
        RunMetric::Instructions => format!("{figure:.1} instructions per packet"),
        _ => format_pps(figure),
    }
}

impl RunSource for Search<'_> {
    fn next(&mut self) -> Option<u32> {
        loop {
            let (index, candidate) = self.pending()?;
            let Some(builds) = self.builds else { return Some(index) };
            match builds.ready(candidate, self.verbose) {
                Ok(Ok(())) => return Some(index),
                Ok(Err(why)) => self.skip(candidate, why),
                Err(error) => self.halted = Some(error),
            }
        }
    }

    fn took(&mut self, run: &RunRecord) {
        self.given_up_in_a_row = 0;
        self.measured += 1;
        self.absorb(run.variants[0], run);
    }

    fn gave_up(&mut self, given_up: &GivenUp) {
        self.given_up_in_a_row += 1;
        if self.given_up_in_a_row >= GIVEN_UP {
            self.broken = Some(given_up.why.clone());
        }
        self.skip(given_up.variant, given_up.why.clone());
    }
}
