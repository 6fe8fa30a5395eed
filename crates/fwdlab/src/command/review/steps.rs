//! Compares each build with the one before it, by code and, unless that is equal, by counts.

use super::counts::{Counts, Found};
use crate::command::counted_guest::exact;
use crate::error::CliError;
use crate::progress::Stage;
use anyhow::Result;
use fwdlab_codediff::Comparison;
use fwdlab_results::counts::{Repetition, compare_executed};
use fwdlab_results::report::analysis::{Compared, Outcome as Answer};
use fwdlab_results::stats::Unanswerable;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Largest difference in instructions per packet between the sum of all steps and the ends that
/// repetitions explain.
const SUM: f64 = 5.0;

/// Builds to review, in order.
pub(super) trait Source {
    /// Machine code of a build.
    type Code;
    /// Names of the builds.
    fn names(&self) -> Vec<BuildName>;
    /// Names of the profiles.
    fn profiles(&self) -> Vec<String>;
    /// Loads the machine code of a build; the reason if it can't be built.
    ///
    /// # Errors
    /// On an interruption, or if files can't be read or written.
    fn code(&mut self, build: usize) -> Result<Result<Self::Code, String>>;
    /// Compares functions of two builds.
    fn compare(old: &Self::Code, new: &Self::Code, functions: &[&str]) -> Comparison;
    /// Returns for each function the others that call it directly.
    fn callers<'n>(
        code: &Self::Code,
        functions: &[&'n str],
    ) -> BTreeMap<&'n str, BTreeSet<&'n str>>;
    /// Counts a build by profile.
    ///
    /// # Errors
    /// If it doesn't boot or forward.
    fn count(&mut self, build: usize) -> Result<Counts>;
}

/// Name of a build.
#[derive(Clone, Serialize)]
pub(super) struct BuildName {
    /// Release of a kernel, or short name of a commit.
    pub(super) name: String,
    /// Subject of a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    /// Name of a kernel's file, which distinguishes packages of one release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
}

/// The result.
#[derive(Serialize)]
pub(super) struct Review {
    pub(super) builds: Vec<BuildName>,
    pub(super) profiles: Vec<String>,
    /// The first build that could be built.
    #[serde(skip)]
    pub(super) first: usize,
    /// Number of functions that packets execute in the first build, over all profiles.
    pub(super) functions: usize,
    /// Each build after the first.
    pub(super) steps: Vec<Step>,
    /// The last counted build with the first, by profile; empty if only one was counted.
    pub(super) ends: Vec<Option<Compared>>,
    /// Profiles in which the steps do not add up to the difference of the ends: the sum of the
    /// steps, and that difference.
    pub(super) gaps: Vec<(String, f64, f64)>,
    /// Profiles that counted builds lack: code that only their packets execute is not compared there.
    pub(super) absent: Vec<Absent>,
    /// Losses of packets while counting.
    pub(super) losses: Vec<Loss>,
}

/// A profile that a build lacks.
#[derive(Serialize)]
pub(super) struct Absent {
    pub(super) build: usize,
    pub(super) profile: usize,
    pub(super) why: String,
}

/// Packets that a build lost while it was counted.
#[derive(Serialize)]
pub(super) struct Loss {
    pub(super) build: usize,
    pub(super) profile: usize,
    pub(super) sent: u64,
    pub(super) lost: u64,
}

/// A build, compared with the last one before it that could be built and, if necessary, counted.
#[derive(Serialize)]
pub(super) struct Step {
    pub(super) build: usize,
    pub(super) before: usize,
    pub(super) outcome: Outcome,
}

/// Result of a step.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Outcome {
    /// Everything that the packets execute is equal.
    Equal {
        /// Number of compared functions, and of those at another address.
        functions: usize,
        moved: usize,
        /// Comparisons by counts, if they were requested all the same.
        counted: Vec<Option<Compared>>,
        /// The reason if it could not be counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// Some functions differ.
    Changed {
        /// Functions that differ, with the reason.
        functions: Vec<ChangedFunction>,
        /// Comparisons by counts, by profile; empty if the build could not be counted.
        counted: Vec<Option<Compared>>,
        /// The reason if it could not be counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// It could not be built.
    NotBuilt { why: String },
}

/// A function whose machine code differs.
#[derive(Serialize)]
pub(super) struct ChangedFunction {
    pub(super) name: String,
    pub(super) reason: String,
    /// Profiles that execute it.
    pub(super) profiles: Vec<usize>,
    /// Executed functions that call it directly.
    pub(super) callers: Vec<String>,
}

impl Review {
    /// All comparisons by counts.
    pub(super) fn comparisons(&self) -> impl Iterator<Item = &Compared> {
        self.steps.iter().flat_map(|step| step.counted()).chain(&self.ends).flatten()
    }

    /// True if each build was built, and counted where that was necessary.
    pub(super) fn is_complete(&self) -> bool {
        self.steps.iter().all(Step::is_complete)
    }

    /// True if the first build lacks the profile: nothing that its packets execute is known there.
    pub(super) fn lacks_from_the_start(&self, profile: usize) -> bool {
        self.absent.iter().any(|one| one.build == self.first && one.profile == profile)
    }

    /// Losses of builds after the first, in profiles in which the first loses nothing.
    pub(super) fn new_losses(&self) -> impl Iterator<Item = &Loss> {
        let of_first = |profile: usize| {
            self.losses.iter().any(|loss| loss.build == self.first && loss.profile == profile)
        };
        self.losses.iter().filter(move |loss| !of_first(loss.profile))
    }

    /// Records what a counted build lacks and loses.
    fn note(&mut self, counted: &Counted) {
        let build = counted.build;
        for (profile, found) in counted.counts.iter().enumerate() {
            match found {
                Err(why) => self.absent.push(Absent { build, profile, why: why.clone() }),
                Ok(Found { sent, lost, .. }) if *lost > 0 => {
                    self.losses.push(Loss { build, profile, sent: *sent, lost: *lost });
                }
                Ok(_) => {}
            }
        }
    }
}

impl Step {
    /// True if the build was built, and counted where that was necessary.
    pub(super) fn is_complete(&self) -> bool {
        match &self.outcome {
            Outcome::Equal { failure, .. } | Outcome::Changed { failure, .. } => failure.is_none(),
            Outcome::NotBuilt { .. } => false,
        }
    }

    /// Comparisons by counts, by profile (`None` if both builds lack its feature); empty if it was
    /// not counted.
    pub(super) fn counted(&self) -> &[Option<Compared>] {
        match &self.outcome {
            Outcome::Equal { counted, .. } | Outcome::Changed { counted, .. } => counted,
            Outcome::NotBuilt { .. } => &[],
        }
    }
}

/// Names of the functions that packets execute, with the profiles that execute them.
fn executed(counts: &Counts) -> BTreeMap<String, Vec<usize>> {
    let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (profile, executed) in counts.iter().enumerate() {
        for function in executed.iter().flat_map(|found| &found.executed.functions) {
            let is_executed = function.bursts.iter().any(|burst| *burst > 0.0);
            if is_executed && !function.is_background {
                names.entry(function.name.clone()).or_default().push(profile);
            }
        }
    }
    names
}

/// A build that was counted.
struct Counted {
    build: usize,
    counts: Counts,
}

/// Reviews all builds. With `verify`, counts builds with equal code as well.
///
/// # Errors
/// If the first build can't be built or counted, or files can't be read or written.
pub(super) fn review<S: Source>(source: &mut S, margin: f64, verify: bool) -> Result<Review> {
    let (builds, profiles) = (source.names(), source.profiles());
    let mut steps = Vec::new();
    let mut before = loop {
        let build = steps.len();
        let Some(name) = builds.get(build) else {
            let why = "no build can be loaded\n  next step: correct the first one";
            return Err(CliError::Environment(why.to_owned()).into());
        };
        match source.code(build)? {
            Ok(code) => break (build, code),
            // Without another build it is the whole result.
            Err(why) if builds.len() == 1 => {
                return Err(CliError::Environment(format!("{}: {why}", name.name)).into());
            }
            Err(why) => {
                steps.push(Step { build, before: build, outcome: Outcome::NotBuilt { why } });
            }
        }
    };
    let first = Counted { build: before.0, counts: source.count(before.0)? };
    let mut names = executed(&first.counts);
    let functions = names.len();
    let mut last: Option<Counted> = None;
    let mut found_in = Review {
        builds: builds.clone(),
        profiles: profiles.clone(),
        first: first.build,
        functions,
        steps: Vec::new(),
        ends: Vec::new(),
        gaps: Vec::new(),
        absent: Vec::new(),
        losses: Vec::new(),
    };
    found_in.note(&first);
    // After a build that could not be counted, or lacks a profile, it is unknown which functions
    // packets execute.
    let mut is_unknown = first.counts.iter().any(Result::is_err);
    let compared = |a: &Counted, b: &Counted| comparisons(a, b, &builds, &profiles, margin);
    for build in before.0 + 1..builds.len() {
        let mut stage = Stage::new();
        stage.begin(&format!("{} ({build} of {})", builds[build].name, builds.len() - 1));
        let code = match source.code(build)? {
            Ok(code) => code,
            Err(why) => {
                let outcome = Outcome::NotBuilt { why };
                steps.push(Step { build, before: before.0, outcome });
                continue;
            }
        };
        let functions: Vec<&str> = names.keys().map(String::as_str).collect();
        let found = S::compare(&before.1, &code, &functions);
        let mut changed = changed(&found, &names);
        if !changed.is_empty() {
            let callers = S::callers(&code, &functions);
            for function in &mut changed {
                let found = callers.get(function.name.as_str()).into_iter().flatten();
                function.callers = found.map(|caller| (*caller).to_owned()).collect();
            }
        }
        let is_equal = changed.is_empty();
        let mut counted = Vec::new();
        let mut failure = None;
        if !is_equal || verify || is_unknown {
            // Counts show their own progress.
            drop(stage);
            match source.count(build) {
                Ok(counts) => {
                    let now = Counted { build, counts };
                    counted = compared(last.as_ref().unwrap_or(&first), &now);
                    // A build without a feature executes none of its functions.
                    is_unknown = now.counts.iter().any(Result::is_err);
                    let of_now = executed(&now.counts);
                    match is_unknown {
                        false => names = of_now,
                        true => names.extend(of_now),
                    }
                    found_in.note(&now);
                    last = Some(now);
                }
                Err(error) => {
                    is_unknown = true;
                    failure = Some(format!("{error:#}"));
                }
            }
        }
        let is_counted = failure.is_none();
        let outcome = match is_equal {
            true => {
                let (functions, moved) = (found.equal.len(), found.moved);
                Outcome::Equal { functions, moved, counted, failure }
            }
            false => Outcome::Changed { functions: changed, counted, failure },
        };
        steps.push(Step { build, before: before.0, outcome });
        // The next build is compared, by code and counts, with one whose functions are known.
        if is_counted {
            before = (build, code);
        }
    }
    let ends = last.as_ref().map(|last| compared(&first, last)).unwrap_or_default();
    let gaps = gaps(&steps, &ends, &profiles);
    Ok(Review { steps, ends, gaps, ..found_in })
}

fn changed(found: &Comparison, names: &BTreeMap<String, Vec<usize>>) -> Vec<ChangedFunction> {
    let one = |name: &str, reason: String| ChangedFunction {
        name: name.to_owned(),
        reason,
        profiles: names.get(name).cloned().unwrap_or_default(),
        callers: Vec::new(),
    };
    let known = found.changed.iter().map(|change| one(&change.function, change.reason.to_string()));
    let unknown = found.unknown.iter().map(|name| one(name, "in neither build's files".to_owned()));
    known.chain(unknown).collect()
}

/// Compares two counted builds by profile.
fn comparisons(
    a: &Counted,
    b: &Counted,
    builds: &[BuildName],
    profiles: &[String],
    margin: f64,
) -> Vec<Option<Compared>> {
    let compare = |profile: usize| {
        let label = |build: usize| match profiles.len() {
            1 => builds[build].name.clone(),
            _ => format!("{}, {}", builds[build].name, profiles[profile]),
        };
        let [old, new] = [a, b].map(|counted| (counted.build, label(counted.build)));
        let (lacking, why) = match (&a.counts[profile], &b.counts[profile]) {
            (Ok(of_a), Ok(of_b)) => {
                let (of_a, of_b) = (&[&of_a.executed], &[&of_b.executed]);
                let outcome = compare_executed(of_a, of_b, margin, Repetition::Bursts);
                return Some(Compared::counted(old, new, outcome));
            }
            (Err(_), Err(_)) => return None,
            (Err(why), Ok(_)) => (a.build, why),
            (Ok(_), Err(why)) => (b.build, why),
        };
        let reason = format!("{} lacks the feature: {why}", builds[lacking].name);
        let unanswerable = Unanswerable::NoValidRun { why: why.clone() };
        let mut compared = Compared::counted(old, new, Err(unanswerable));
        compared.outcome = Answer::Unanswerable { reason };
        Some(compared)
    };
    (0..profiles.len()).map(compare).collect()
}

/// Profiles in which the steps do not add up to the difference of the ends.
fn gaps(steps: &[Step], ends: &[Option<Compared>], profiles: &[String]) -> Vec<(String, f64, f64)> {
    let gap = |(at, end): (usize, &Option<Compared>)| {
        let difference = exact(end.as_ref()?)?.difference;
        let counted = steps.iter().filter(|step| !step.counted().is_empty());
        // A profile can be absent from some builds: then there is no sum.
        let of_steps: Option<Vec<f64>> = counted
            .map(|step| Some(exact(step.counted().get(at)?.as_ref()?)?.difference))
            .collect();
        let sum: f64 = of_steps?.iter().sum();
        ((sum - difference).abs() > SUM).then(|| (profiles[at].clone(), sum, difference))
    };
    ends.iter().enumerate().filter_map(gap).collect()
}

/// Functions that differ in any step.
pub(super) fn all_changed(steps: &[Step]) -> BTreeSet<&str> {
    let functions = steps.iter().flat_map(|step| match &step.outcome {
        Outcome::Changed { functions, .. } => functions.as_slice(),
        _ => &[],
    });
    functions.map(|function| function.name.as_str()).collect()
}
