//! `fwdlab bisect`: finds the revision that changed the rate.

mod builds;
mod confirm;
mod files;
mod report;
mod run_source;
mod stores;

use crate::command::compare::margin;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{self, Loaded, Overrides};
use crate::session::{self, Session};
use crate::terminal;
use anyhow::Result;
use builds::{Builds, Range};
use fwdlab_model::Plan;
use fwdlab_model::candidates::{self, Candidate};
use fwdlab_model::experiment::VARIANTS_MAX;
use fwdlab_model::plan::{Factor, RunMetric};
use fwdlab_search::bisect::{Bisection, Ending, Exact, Noisy, Options, Step};
use report::BisectReport;
use run_source::Search;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Resolution of instruction counts. They repeat within a few tenths of a percent at best: ends
/// that differ by less than this share count as equal, however well their own runs agree.
const RESOLUTION: f64 = 0.001;

/// Find the revision that changed the rate: a commit, a kernel, a level of a factor.
///
/// The candidates are, from good to bad, the levels of a factor in their order, the commits of a
/// repository (--repo), each built when the search needs it, or files (--candidates). For commits
/// and files one level of the experiment is the template for all: {name}, {build} (the file, or the
/// directory in which the commit was built) and {commit} in it are replaced.
///
/// Each step is one ordinary run of one level. All runs together give each level's probability of
/// being the first with the change. When one level is probable enough, an ordinary experiment
/// compares it with its predecessor, and only a change that this experiment confirms is called
/// convicted. Runs are stored: repeat the same command to continue.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab bisect experiments/bisect-sim.toml --along revision
  fwdlab bisect kernels.toml --along kernel --change=-2% --cap 400
  fwdlab bisect router.toml --repo ~/router --good v1.4 --bad HEAD --build './build.sh'
  fwdlab bisect linux.toml --repo ~/linux --good v6.17 --bad v6.18 \\
      --build \"sh -c 'cp ~/config .config && make -j8 olddefconfig bzImage modules'\"
  fwdlab bisect kernels.toml --candidates kernels/
  fwdlab bisect --stores archive --series 'PC Engines' --out where
  fwdlab bisect builds.toml --along build --layout 0.5% --json")]
pub(crate) struct Arguments {
    /// The experiment file; - is standard input
    #[arg(value_name = "EXPERIMENT.toml", required_unless_present = "stores")]
    experiment: Option<PathBuf>,
    /// Measure nothing, and search the stored results of a history: stores, directories with one,
    /// or directory trees, as `fwdlab history` reads them; --out is for the plots
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["experiment", "repo", "candidates", "along", "cap", "fresh"])]
    stores: Vec<PathBuf>,
    /// Only series whose title contains TEXT
    #[arg(long, value_name = "TEXT", requires = "stores")]
    series: Option<String>,
    /// Factor whose levels are the candidates, from good to bad
    /// [default: the one with several levels]
    #[arg(long, value_name = "FACTOR")]
    along: Option<String>,
    /// Repository whose commits are the candidates; nothing is written into it
    #[arg(long, value_name = "DIR", requires_all = ["good", "build"], conflicts_with = "along")]
    repo: Option<PathBuf>,
    /// First commit, before the change
    #[arg(long, value_name = "REV", requires = "repo", allow_hyphen_values = true)]
    good: Option<String>,
    /// Last commit, after the change; the search follows the first parents of merges
    #[arg(
        long,
        value_name = "REV",
        requires = "repo",
        default_value_if("repo", clap::builder::ArgPredicate::IsPresent, "HEAD")
    )]
    bad: Option<String>,
    /// Command that builds a commit, in a worktree of it, split into words as by a shell (sh -c
    /// '...' for shell syntax). Commits that fail to build are skipped
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    build: Option<String>,
    /// Directory in which commits are built and builds are kept [default: ~/.cache/fwdlab/builds]
    #[arg(long, value_name = "DIR", requires = "repo")]
    builds: Option<PathBuf>,
    /// Files that are the candidates, from good to bad; or a directory of them, in natural order
    /// (r9 before r10)
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ["along", "repo"])]
    candidates: Vec<PathBuf>,
    /// Directory of the store, the plot and the confirming experiment
    /// [default: results/NAME-bisect]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Start again; the old stores are kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// --blocks is the number of blocks of the confirming experiment
    #[command(flatten)]
    overrides: Overrides,
    /// Maximum number of runs of the search
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(8..=5000))]
    cap: u32,
    /// Probability that the answer must reach before it is confirmed
    #[arg(long, value_name = "PERCENT", default_value = "96", value_parser = super::compare::confidence)]
    confidence: f64,
    /// Expected change, if it is known from elsewhere (--change=-2%): the ends then need not show
    /// first that they differ, which saves runs
    #[arg(long, value_name = "PERCENT", value_parser = change)]
    change: Option<f64>,
    /// Effect of memory layout on a build's rate (standard deviation)
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    layout: Option<f64>,
    /// Don't measure the rates of sender and receiver without a DUT
    #[arg(long)]
    no_calibration: bool,
    /// Skip the confirming experiment
    #[arg(long)]
    no_confirm: bool,
    /// Show no progress, only the answer
    #[arg(long, short)]
    quiet: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the search and, unless disabled, the confirming experiment.
///
/// # Errors
/// Errors in the file, a store of another search, a failing or unsuitable testbed, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    if !arguments.stores.is_empty() {
        return stores::execute(arguments);
    }
    let cap = arguments.cap as usize;
    let of_search = Overrides {
        blocks: Some(arguments.cap + run_source::FAILURES as u32),
        ..arguments.overrides.clone()
    };
    let CandidateSource { builds, candidates, about } = arguments.among()?;
    let of_factor = RefCell::new(None);
    let Loaded { plan, text } = experiment::load_changed(arguments.file(), &of_search, &|text| {
        if candidates.is_empty() {
            return Ok(text);
        }
        let expanded = candidates::expand(&text, &candidates);
        let (text, factor) = expanded.map_err(|error| {
            CliError::Mistake(format!("{}: {error}", arguments.file().display()))
        })?;
        of_factor.replace(Some(factor));
        Ok(text)
    })?;
    let along = of_factor.take().or_else(|| arguments.along.clone());
    let factor = factor(&plan, along.as_deref())?;
    let count = plan.variants.len();
    let resume = arguments.command_line(&plan.factors[factor].name, builds.as_ref());
    let name = format!("{}-bisect", plan.name);
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(name));
    let (mut store, notice) = session::open_store(&out, arguments.fresh)?;
    notice.into_iter().for_each(|notice| arguments.note(&notice));
    store.adopt_plan(&plan, &text)?;
    let engine = match plan.metric() {
        RunMetric::Instructions => Bisection::Exact(Exact::new(count, RESOLUTION)),
        _ => Bisection::Noisy(Box::new(Noisy::new(Options {
            cap,
            confidence: arguments.confidence / 100.0,
            known: arguments.change,
            layout: arguments.layout.unwrap_or(0.0),
            seed: plan.design.seed,
            ..Options::new(count)
        }))),
    };
    let mut search = Search::new(&plan, engine, store.runs()?, builds.as_ref(), !arguments.quiet);
    let of = |index: usize| plan.variants[index].label.as_str();
    arguments.note(&format!(
        "{}: {}\n{count} candidates from {} to {}, at most {cap} runs{}",
        plan.name,
        plan.title,
        of(0),
        of(count - 1),
        match search.engine.runs() {
            0 => String::new(),
            runs => format!("; {runs} are stored already"),
        }
    ));
    if !search.is_done() {
        let session = Session {
            bed: None,
            revision: None,
            plan: &plan,
            directory: experiment::beside(arguments.file()),
            calibrates: !arguments.no_calibration,
            quiet: true,
            resume: resume.clone(),
            runs: format!("at most {cap}"),
            takes_profiles: false,
            wait: std::time::Duration::ZERO,
        };
        session.follow(&mut store, &mut search)?;
    }
    let stored = store.recorded_runs()?.len();
    drop(store);
    match search.halted.take() {
        Some(error) if matches!(error.downcast_ref(), Some(CliError::Interrupted(_))) => {
            let what = format!(
                "interrupted: {stored} of at most {cap} runs are stored; continue with\n  \
                 {resume}"
            );
            return Err(CliError::Interrupted(what).into());
        }
        Some(error) => return Err(error),
        None => {}
    }
    if let Some(why) = &search.broken {
        let why = format!(
            "candidates fail one after the other, so that it is the laboratory that is to blame \
             and none of them: {why}\n  next step: look after it, then go on with\n  {resume}"
        );
        return Err(CliError::Environment(why).into());
    }
    let verdict = search.engine.verdict();
    let mut report = BisectReport::new(&plan, &search, verdict, about, &out);
    report.draw()?;
    if !arguments.no_confirm {
        for pair in report.pairs() {
            // Builds are repeated if the cache was emptied.
            for candidate in [pair.0, pair.1] {
                let Some(builds) = &builds else { break };
                if let Err(why) = builds.ready(candidate, !arguments.quiet)? {
                    let label = of(candidate);
                    return Err(
                        CliError::Environment(format!("{label} was measured: {why}")).into()
                    );
                }
            }
            let confirmed = confirm::confirm(arguments, &text, factor, pair, &out, &resume)?;
            report.confirmed.push(confirmed);
        }
    }
    match arguments.json {
        true => terminal::print_json(&report.json())?,
        false => terminal::print(&report.text())?,
    }
    Ok(match search.engine.next() {
        Step::Done(Ending::EndLacks) => Exit::Environment,
        _ => Exit::Done,
    })
}

/// Returns the index of the factor `name`, or of the only factor with several levels if `name` is
/// `None`. No other factor may have several levels.
fn factor(plan: &Plan, name: Option<&str>) -> Result<usize> {
    let named: Vec<&str> = plan.factors.iter().map(|factor| factor.name.as_str()).collect();
    let known = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    let has_several = |factor: &&Factor| factor.levels.len() > 1;
    let several = || plan.factors.iter().filter(has_several).map(|factor| factor.name.as_str());
    let Some(name) = name.or_else(|| several().next().or(named.first().copied())) else {
        return mistake(
            "the experiment has no factor, so that there are no candidates\n  next step: write \
             one with a level for each, or see --repo and --candidates"
                .to_owned(),
        );
    };
    let Some(place) = named.iter().position(|factor| *factor == name) else {
        return mistake(format!(
            "--along {name}: no such factor in the experiment; it has {known}"
        ));
    };
    let others = plan.factors.iter().filter(|factor| factor.name != name);
    if let Some(other) = others.into_iter().find(|factor| factor.levels.len() > 1) {
        return mistake(format!(
            "--along {name}: {} has {} levels too\n  next step: leave one of them, the one in \
             which the change was seen",
            other.name,
            other.levels.len()
        ));
    }
    if plan.factors[place].levels.len() < 3 {
        return mistake(format!(
            "--along {name}: between two levels there is nothing to search\n  next step: compare \
             them with `fwdlab run`"
        ));
    }
    if plan.design.alternate_ns.is_some() {
        return mistake(
            "a bisection measures one level a run: leave `alternate` out of [design]".to_owned(),
        );
    }
    Ok(place)
}

fn mistake<T>(why: String) -> Result<T> {
    Err(CliError::Mistake(why).into())
}

/// Parses a change, a percentage with its sign, and returns it as a ratio.
fn change(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    number
        .filter(|percent: &f64| *percent > -100.0 && *percent < 1000.0 && *percent != 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a change is a percentage with its sign, written such as -2%".to_owned())
}

/// Candidates from the command line; empty if the experiment contains them.
#[derive(Default)]
struct CandidateSource {
    builds: Option<Builds>,
    candidates: Vec<Candidate>,
    /// Description of each candidate; empty if there is none.
    about: Vec<String>,
}

impl Arguments {
    fn among(&self) -> Result<CandidateSource> {
        let mut among = CandidateSource::default();
        if let (Some(repository), Some(good), Some(bad), Some(build)) =
            (&self.repo, &self.good, &self.bad, &self.build)
        {
            let directory = self.builds.as_deref();
            let (builds, candidates, about) =
                Builds::of(&Range { repository, good, bad, build, directory })?;
            among = CandidateSource { builds: Some(builds), candidates, about };
        } else if !self.candidates.is_empty() {
            among.candidates = files::candidates(&self.candidates)?;
        } else {
            return Ok(among);
        }
        let count = among.candidates.len();
        if !(3..=VARIANTS_MAX).contains(&count) {
            return mistake(format!(
                "there are {count} candidates: a search is among at least 3, and at most \
                 {VARIANTS_MAX} can be planned\n  next step: compare two with `fwdlab run`, or \
                 name ends that are less far apart"
            ));
        }
        Ok(among)
    }

    /// The experiment file; `-` if only stores are given.
    fn file(&self) -> &Path {
        self.experiment.as_deref().unwrap_or(Path::new("-"))
    }

    /// Prints a note unless `--quiet` is set.
    fn note(&self, text: &str) {
        if !self.quiet {
            terminal::note(text);
        }
    }

    /// The command that continues the search.
    fn command_line(&self, along: &str, builds: Option<&Builds>) -> String {
        let mut line = self.overrides.command_line("bisect", self.file(), self.out.as_deref());
        let path = |path: &PathBuf| experiment::quoted(&path.to_string_lossy());
        if let (Some(builds), Some(repository), Some(build)) = (builds, &self.repo, &self.build) {
            let [good, bad] = builds.ends();
            let build = experiment::quoted(build);
            line +=
                &format!(" --repo {} --good {good} --bad {bad} --build {build}", path(repository));
            if let Some(directory) = &self.builds {
                line += &format!(" --builds {}", path(directory));
            }
        } else if self.candidates.is_empty() {
            line += &format!(" --along {}", experiment::quoted(along));
        } else {
            let paths: Vec<String> = self.candidates.iter().map(path).collect();
            line += &format!(" --candidates {}", paths.join(" "));
        }
        line += &format!(" --cap {}", self.cap);
        line += &format!(" --confidence {}", self.confidence);
        for (name, value) in [("change", self.change), ("layout", self.layout)] {
            if let Some(value) = value {
                line += &format!(" --{name}={}%", 100.0 * value);
            }
        }
        let options =
            [(" --no-calibration", self.no_calibration), (" --no-confirm", self.no_confirm)];
        let given = options.iter().filter(|(_, given)| *given);
        given.fold(line, |line, (option, _)| line + option)
    }
}
