//! Catalogue of many experiments: results of each, newest first, and rates of machines by firewall.
//!
//! [`Entry`] summarises one store, [`Catalogue`] contains all of them, and [`Catalogue::document`]
//! renders it in every form. Comparisons between experiments are in [`crate::compare`] and
//! [`crate::history`].

mod document;
mod machines;

pub use machines::{MachineRates, MachineTable};

use crate::facts::{ARCHIVE, Facts, Filter, firewall, named, revision};
use crate::history::{SoftwareDate, made, rfc3339};
use crate::label::MeasuredOn;
use crate::report::analysis::{Compared, Figures, Outcome, RunResult, SummaryResult, compared};
use crate::stats::Verdict;
use crate::store::{Contents, Store, StoreError};
use fwdlab_model::Warning;
use fwdlab_model::record::Environment;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All stores below a directory, the newest first.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Catalogue {
    /// The stores.
    pub entries: Vec<Entry>,
    /// Number of stores that were read, including those that were not selected.
    pub of: usize,
    /// Stores that could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// The selected firewall.
    #[serde(skip)]
    firewall: Option<String>,
}

/// Summary of one store.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The store's file.
    pub path: PathBuf,
    /// Its directory, relative to the root.
    pub place: String,
    /// Title of the experiment.
    pub title: String,
    /// Revision of the software under test, as given; `None` if it was not given.
    pub revision: Option<String>,
    /// Start time, RFC 3339; `None` if unknown.
    pub date: Option<String>,
    /// Approximate date of the measured software, RFC 3339; `None` if unknown.
    pub made: Option<String>,
    /// Date of the newest software in the catalogue with a lower commit count, RFC 3339; `None` if
    /// the date itself is known or there is no such software.
    pub newer_than: Option<String>,
    /// Sort key: date, then commit count.
    #[serde(skip)]
    sorted: (String, u64),
    /// The testbed.
    pub testbed: String,
    /// Caveat to print with its numbers; empty for hardware.
    pub caption: String,
    /// Machine facts, which filters select by.
    #[serde(flatten)]
    pub facts: Facts,
    /// Number of runs in the plan.
    pub runs_planned: usize,
    /// Number of recorded runs.
    pub runs_recorded: usize,
    /// Number of recorded runs with a warning.
    pub runs_in_doubt: usize,
    /// True if a warning makes its numbers untrustworthy.
    pub is_distrusted: bool,
    /// Number of variants in the plan.
    pub variants: usize,
    /// Number of comparisons by verdict.
    pub verdicts: Tally,
    /// The largest effect; `None` if no effect was found.
    pub largest: Option<LargestEffect>,
    /// Rates of the variants.
    pub rates: Vec<VariantRate>,
}

/// Number of comparisons by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The candidate forwards more, or needs fewer instructions.
    pub better: usize,
    /// The candidate forwards less, or needs more instructions.
    pub worse: usize,
    /// The difference is negligible.
    pub equivalent: usize,
    /// The data are inconclusive.
    pub inconclusive: usize,
    /// There is no result yet.
    pub unanswered: usize,
}

/// An effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LargestEffect {
    /// The candidate.
    pub variant: String,
    /// Its baseline.
    pub baseline: String,
    /// Ratio of the candidate's rate to the baseline's.
    pub ratio: f64,
}

/// The rate of a variant, packets per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantRate {
    /// Label.
    pub label: String,
    /// Address family.
    pub family: String,
    /// Firewall; `None` if the labels don't contain it.
    pub firewall: Option<String>,
    /// Median over the runs.
    pub median: f64,
    /// Number of runs.
    pub n: usize,
}

impl Entry {
    /// Summarises the store at `path`, below `root`. Reads only the necessary tables.
    ///
    /// # Errors
    /// If the store can't be read or has no plan.
    pub fn of_store(path: &Path, root: &Path) -> Result<Entry, StoreError> {
        let store = Store::open_read_only(path)?;
        let (contents, figures) = Figures::of_store(&store)?;
        let contents = Contents { invocations: store.invocations()?, ..contents };
        Ok(Entry::new(path, root, &contents, &figures))
    }

    /// Summarises contents that are already read.
    pub fn of(path: &Path, root: &Path, contents: &Contents) -> Entry {
        Entry::new(path, root, contents, &Figures::of(contents))
    }

    fn new(path: &Path, root: &Path, contents: &Contents, figures: &Figures) -> Entry {
        let plan = &contents.plan;
        let directory = path.parent().unwrap_or(path);
        let place = directory.strip_prefix(root).unwrap_or(directory).display().to_string();
        // The invocation of the first run: others may have recorded no run.
        let used = contents.run_invocations.first();
        let stored = contents.invocations.iter().find(|stored| Some(&stored.id) == used);
        let stored = stored.or(contents.invocations.first()).map(|stored| &stored.invocation);
        let nothing = Environment::default();
        let environment = stored.map_or(&nothing, |invocation| &invocation.environment);
        let is_archive = environment.0.contains_key(ARCHIVE);
        let date = match is_archive {
            true => named(environment, ARCHIVE, "started").map(rfc3339),
            false => stored.map(|i| i.started_at.clone()).filter(|date| !date.is_empty()),
        };
        let started_at = stored.map_or("", |invocation| invocation.started_at.as_str());
        let SoftwareDate { made, sorted, commits } = match is_archive {
            true => made(environment, started_at),
            false => SoftwareDate::default(),
        };
        let day = date.as_deref().and_then(|date| date.get(..10)).map(str::to_owned);
        let sorted = (day.or(sorted).unwrap_or_default(), commits.unwrap_or(0));
        let variants: Vec<_> = plan.variants.iter().collect();
        let comparisons = compared(contents, &figures.runs);
        let rates = plan.variants.iter().filter_map(|variant| {
            let is_included =
                |run: &&RunResult| run.variant == variant.index && run.left_out.is_none();
            let runs = figures.runs.iter().filter(is_included);
            let values: Vec<f64> = runs.filter_map(|run| run.value_pps).collect();
            let summary = SummaryResult::of(&values)?;
            Some(VariantRate {
                label: variant.label.clone(),
                family: variant.settings.traffic.family.name().to_owned(),
                firewall: firewall(plan, variant, is_archive),
                median: summary.median,
                n: summary.n,
            })
        });
        Entry {
            path: path.to_path_buf(),
            place,
            title: plan.title.clone(),
            revision: revision(environment).map(str::to_owned),
            date,
            made,
            newer_than: None,
            sorted,
            testbed: MeasuredOn::of(figures.testbed.kind, &figures.testbed.caption).to_string(),
            caption: figures.testbed.caption.clone(),
            facts: Facts::of(environment, plan, &variants),
            runs_planned: plan.runs.len(),
            runs_recorded: contents.runs.len(),
            runs_in_doubt: contents.runs.iter().filter(|run| !run.warnings.is_empty()).count(),
            is_distrusted: {
                let mut warnings = contents.runs.iter().flat_map(|run| &run.warnings);
                warnings.any(Warning::is_fatal)
            },
            variants: plan.variants.len(),
            verdicts: Tally::of(&comparisons),
            largest: largest(&comparisons),
            rates: rates.collect(),
        }
    }

    /// Returns true if place, title, machine, interface and topic together contain every word.
    pub fn holds(&self, words: &str) -> bool {
        let Facts { machine, interface, topic, .. } = &self.facts;
        let text = [&self.place, &self.title, machine, interface, topic];
        let text = text.map(|part| part.to_lowercase()).join(" ");
        words.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }
}

impl Catalogue {
    /// Builds the catalogue of the entries that match `filter` and contain all words, newest first;
    /// entries without a date are last.
    pub fn of(read: Vec<Result<Entry, StoreError>>, filter: &Filter, words: &str) -> Catalogue {
        let firewall = filter.firewall.clone();
        let mut catalogue = Catalogue { of: read.len(), firewall, ..Catalogue::default() };
        for entry in estimate_dates(read) {
            match entry {
                Ok(entry) if filter.admits(&entry.facts) && entry.holds(words) => {
                    catalogue.entries.push(entry);
                }
                Ok(_) => {}
                Err(why) => catalogue.unreadable.push(why.to_string()),
            }
        }
        catalogue.entries.sort_by(|a, b| {
            let day = b.sorted.cmp(&a.sorted).then_with(|| b.date.cmp(&a.date));
            day.then_with(|| a.place.cmp(&b.place))
        });
        catalogue
    }
}

/// Dates entries without a date by the newest dated entry with fewer commits.
fn estimate_dates(mut read: Vec<Result<Entry, StoreError>>) -> Vec<Result<Entry, StoreError>> {
    let dated = read.iter().flatten().filter(|entry| entry.sorted.1 > 0);
    let dated = dated.filter_map(|entry| Some((entry.sorted.1, entry.made.clone()?)));
    let dated: Vec<(u64, String)> = dated.collect();
    let is_estimated =
        |entry: &&mut Entry| entry.sorted.1 > 0 && entry.made.is_none() && entry.date.is_none();
    for entry in read.iter_mut().flatten().filter(is_estimated) {
        let older = dated.iter().filter(|(commits, _)| *commits <= entry.sorted.1);
        entry.newer_than = older.map(|(_, day)| day.clone()).max();
        if let Some(day) = &entry.newer_than {
            entry.sorted.0.clone_from(day);
        }
    }
    read
}

impl Tally {
    fn of(comparisons: &[Compared]) -> Tally {
        let mut tally = Tally::default();
        for compared in comparisons {
            let count = match &compared.outcome {
                Outcome::Compared(answer) => match answer.verdict {
                    Verdict::Better => &mut tally.better,
                    Verdict::Worse => &mut tally.worse,
                    Verdict::Equivalent => &mut tally.equivalent,
                    Verdict::Inconclusive | Verdict::NotJudged => &mut tally.inconclusive,
                },
                Outcome::Counted(exact) => match exact.verdict.name() {
                    "fewer" => &mut tally.better,
                    "more" => &mut tally.worse,
                    "equivalent" => &mut tally.equivalent,
                    _ => &mut tally.inconclusive,
                },
                Outcome::Unanswerable { .. } => &mut tally.unanswered,
            };
            *count += 1;
        }
        tally
    }

    /// Short form: `+2 -1 =3 ?4` for better, worse, equivalent, and neither.
    pub fn signs(&self) -> String {
        let neither = self.inconclusive + self.unanswered;
        let all = [(self.better, '+'), (self.worse, '-'), (self.equivalent, '='), (neither, '?')];
        let counts = all.iter().filter(|(n, _)| *n > 0).map(|(n, sign)| format!("{sign}{n}"));
        counts.collect::<Vec<String>>().join(" ")
    }

    /// Long form: `2 better, 1 worse`; empty if there are no comparisons.
    pub fn words(&self) -> String {
        let all = [
            (self.better, "better"),
            (self.worse, "worse"),
            (self.equivalent, "equivalent"),
            (self.inconclusive, "inconclusive"),
            (self.unanswered, "unanswered"),
        ];
        let counts = all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
        counts.collect::<Vec<String>>().join(", ")
    }
}

fn largest(comparisons: &[Compared]) -> Option<LargestEffect> {
    let found = comparisons.iter().filter_map(|compared| match &compared.outcome {
        Outcome::Compared(answer) if matches!(answer.verdict, Verdict::Better | Verdict::Worse) => {
            Some(LargestEffect {
                variant: compared.candidate(),
                baseline: compared.baseline_label.clone(),
                ratio: answer.comparison.ratio,
            })
        }
        _ => None,
    });
    found.max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
}
