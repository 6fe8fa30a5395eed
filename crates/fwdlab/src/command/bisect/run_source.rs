//! The runs that a bisection asks for, measured or replayed from the store.

use super::builds::Builds;
use crate::session::{GivenUp, RunSource};
use crate::terminal;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::units::format_pps;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::report::analysis::figures_of_runs;
use fwdlab_search::bisect::{Bisection, Step};
use std::collections::{BTreeMap, HashMap};

/// Runs without a figure after which a candidate is skipped.
pub(super) const FAILURES: usize = 3;
/// Candidates given up one after the other after which the laboratory is suspected.
const GIVEN_UP: usize = 3;

/// A search over the variants of a plan, each of which is a candidate.
///
/// The nth run of a candidate is its run in block n of the plan, so that what the store holds
/// answers the same questions in the same order when the search is resumed.
pub(super) struct Search<'a> {
    plan: &'a Plan,
    pub(super) engine: Bisection,
    /// Stored runs that were not asked for yet, by index.
    stored: HashMap<u32, RunRecord>,
    /// Counted runs: each new one may change the figures of all.
    counted: Vec<RunRecord>,
    /// Index of the run of a block and a variant.
    runs: HashMap<(u32, usize), u32>,
    /// Runs of each candidate so far, with a figure or without.
    pub(super) asked: Vec<u32>,
    failures: Vec<usize>,
    /// Candidates that can't be measured, and why.
    pub(super) skipped: BTreeMap<usize, String>,
    given_up_in_a_row: usize,
    /// Why the laboratory and not a candidate is to blame.
    pub(super) broken: Option<String>,
    /// Where candidates are built before they are measured, if they are.
    builds: Option<&'a Builds>,
    /// What ended the search from outside.
    pub(super) halted: Option<anyhow::Error>,
    says: bool,
    measured: usize,
}

impl<'a> Search<'a> {
    /// Replays what `records` hold, as far as the search asks for it.
    pub(super) fn new(
        plan: &'a Plan,
        engine: Bisection,
        records: Vec<RunRecord>,
        builds: Option<&'a Builds>,
        says: bool,
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
            asked: vec![0; count],
            failures: vec![0; count],
            skipped: BTreeMap::new(),
            given_up_in_a_row: 0,
            broken: None,
            builds,
            halted: None,
            says: false,
            measured: 0,
        };
        search.pending();
        search.says = says;
        search
    }

    /// Runs that this invocation measured.
    pub(super) fn measured(&self) -> usize {
        self.measured
    }

    /// The next run that has to be measured, and its candidate: what is stored is absorbed, and
    /// what is known not to build is skipped.
    fn pending(&mut self) -> Option<(u32, usize)> {
        while self.broken.is_none() && self.halted.is_none() {
            let Step::Measure(candidate) = self.engine.next() else { return None };
            let index = *self.runs.get(&(self.asked[candidate], candidate))?;
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

    /// True when nothing is left to measure.
    pub(super) fn is_done(&mut self) -> bool {
        self.pending().is_none()
    }

    /// Skips a candidate.
    pub(super) fn skip(&mut self, candidate: usize, why: String) {
        if self.says {
            let label = &self.plan.variants[candidate].label;
            terminal::note(&format!("{label} is skipped: {why}"));
        }
        self.engine.skip(candidate);
        self.skipped.insert(candidate, why);
    }

    /// What stands for a run. A count is told to the search with all before it.
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
        self.asked[candidate] += 1;
        match self.figure(candidate, run) {
            Ok(figure) if self.says => terminal::note(&self.line(candidate, figure)),
            Ok(_) => {}
            Err(why) => {
                self.failures[candidate] += 1;
                if self.failures[candidate] >= FAILURES {
                    self.skip(candidate, format!("{FAILURES} of its runs have no figure: {why}"));
                }
            }
        }
    }

    /// What a run made of it.
    fn line(&self, candidate: usize, figure: f64) -> String {
        let verdict = self.engine.verdict();
        let label = |index: usize| self.plan.variants[index].label.as_str();
        let said =
            format!("run {}  {}  {}", verdict.runs, label(candidate), in_words(self.plan, figure));
        if verdict.half_width.is_infinite() {
            return format!("{said}  are the ends apart?");
        }
        let probabilities = self.engine.probabilities();
        let most = (1..probabilities.len())
            .max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
            .unwrap_or(1);
        let possible = verdict.set.len() + verdict.second.len();
        format!(
            "{said}  most probable: {} ({:.0} %), {possible} possible",
            label(most),
            100.0 * probabilities[most],
        )
    }
}

/// A figure with its unit.
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
            match builds.ready(candidate, self.says) {
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
