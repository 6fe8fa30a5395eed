//! `fwdlab run`: loads and plans an experiment, opens store and testbed, measures the missing runs
//! and writes the report.

use crate::error::CliError;
use crate::exit::{self, Exit};
use crate::experiment::{self, Loaded, Overrides};
use crate::link_types;
use crate::missing;
use crate::notify::{self, Message, Outcome};
use crate::output_format::VerboseFormArguments;
use crate::profiling;
use crate::session::{self, GivenUp, Session};
use crate::shard::{self, Shard};
use crate::stores::store_at;
use crate::terminal::{self, duration};
use crate::verdict::{self, FailOn};
use anyhow::Result;
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::facts;
use fwdlab_results::report::analysis::{Stopping, StoppingWatch};
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::store::Store;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options for the whole experiment, its results and its report: invalid for a share.
const NOT_OF_SHARES: [&str; 11] = [
    "fresh",
    "bisect",
    "fail_on",
    "profile",
    "no_report",
    "notify_command",
    "form",
    "json",
    "csv",
    "markdown",
    "verbose",
];

/// Run an experiment and write its report.
///
/// Each run is stored as soon as it finishes: repeat the same command to continue an interrupted
/// experiment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab run experiments/demo.toml
  fwdlab run experiments/demo.toml --testbed sim --out /tmp/demo
  fwdlab run experiments/demo.toml --blocks 20 --fresh
  fwdlab run experiments/firewalls.toml --profile
  fwdlab run experiments/aa.toml --quiet --fail-on worse
  fwdlab run experiments/lab-linux-queues.toml --wait 60min
  fwdlab run experiments/demo.toml --share 2/4 --bed rack2
  fwdlab run experiments/demo.toml --out results/nightly-7 --revision $GITHUB_SHA
  git bisect run sh -c 'make router || exit 125; fwdlab run my.toml --bisect -q'
  fwdlab run experiments/aa.toml --notify-command 'mail -s \"fwdlab: {title} {outcome}\" root'")]
pub(crate) struct Arguments {
    /// The experiment file; - is standard input
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    /// Directory of store and report [default: results/NAME, after the experiment file]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Start again; the old store is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// Exit as `git bisect run` expects: 0 good, 1 bad (worse), 125 undecided, 128 stop; starts
    /// again as --fresh does, since stored runs belong to another commit
    #[arg(long, conflicts_with = "fail_on")]
    bisect: bool,
    /// Measure only this share of the blocks (2/4: the second of four), into its own store below
    /// the directory; `fwdlab merge` combines the stores of all shares
    #[arg(long, value_name = "I/N", conflicts_with_all = NOT_OF_SHARES)]
    share: Option<Shard>,
    /// Name of the bed that measures, stored with its runs [default: the laboratory's, if any]
    #[arg(long, value_name = "NAME", value_parser = shard::bed)]
    bed: Option<String>,
    /// Revision of the software under test, such as a commit, stored with its runs;
    /// `fwdlab history` uses it as the name of the store
    #[arg(long, value_name = "NAME", value_parser = revision)]
    revision: Option<String>,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    common: Common,
}

/// Options of every command that measures an experiment.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Don't measure the rates of sender and receiver without a DUT
    #[arg(long)]
    no_calibration: bool,
    /// Sample the DUT's CPUs in the measured runs, even if the file requests no profiles
    #[arg(long, conflicts_with = "no_profile")]
    profile: bool,
    /// Take no profiles, even if the file requests them
    #[arg(long)]
    no_profile: bool,
    /// Write no report, only the store
    #[arg(long)]
    no_report: bool,
    /// Exit with 1 if a comparison has this verdict
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Maximum time to wait for laboratory hosts that another controller uses, such as 60min
    #[arg(long, value_name = "DURATION", value_parser = crate::lease_wait::time)]
    wait: Option<Duration>,
    /// Show no progress, only the results
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    form: VerboseFormArguments,
    /// Run this program at the end, with the summary on its standard input; {title}, {outcome} and
    /// {report} are replaced with the title, `finished` or `failed`, and the path of the report
    #[arg(long, value_name = "COMMAND")]
    notify_command: Option<String>,
}

impl Arguments {
    /// Replaces the options that another command shares with this one.
    pub(crate) fn set(&mut self, fresh: bool, overrides: Overrides, common: Common) {
        (self.fresh, self.overrides, self.common) = (fresh, overrides, common);
    }

    /// Replaces the options that change the plan.
    pub(crate) fn set_overrides(&mut self, fresh: bool, overrides: Overrides) {
        (self.fresh, self.overrides) = (fresh, overrides);
    }
}

/// Runs the experiment.
///
/// # Errors
/// Errors in the file, a store of another plan, a failing or unsuitable testbed, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let mut loaded = experiment::load(&arguments.experiment, &arguments.overrides)?;
    if let Some(is_enabled) = arguments.profile_option() {
        if is_enabled && loaded.plan.base.testbed.kind == TestbedKind::Vm {
            return Err(CliError::Mistake(
                "--profile: no profiler samples a virtual machine\n  next step: leave it out: without \
                 `figure` in [compare] all instructions are counted by function"
                    .into(),
            )
            .into());
        }
        loaded.plan.profile = experiment::profile(&arguments.experiment, &loaded.text, is_enabled);
    }
    let base = experiment::beside(&arguments.experiment);
    let command = arguments.common.notify_command.as_deref();
    let recipients = notify::recipients(&loaded.plan, &base, command)?;
    let out = experiment::directory(&loaded.plan, arguments.out.as_deref());
    // Correcting a path changes the plan, which then would not match a store of this plan.
    let missing = missing::files(&loaded.plan, &base);
    if !missing.is_empty() && !store_at(&out).exists() {
        let why = format!(
            "the experiment names files that do not exist: {}\n  next step: {}",
            missing.join(", "),
            missing::next_step(&loaded.plan)
        );
        return Err(CliError::Environment(why).into());
    }
    let lacking = link_types::lacking(&loaded.plan);
    if !lacking.is_empty() && !store_at(&out).exists() {
        let (what, next) = (lacking.join("; "), link_types::NEXT_STEP);
        let why =
            format!("the experiment creates unsupported interfaces: {what}\n  next step: {next}");
        return Err(CliError::Environment(why).into());
    }
    if let Some(share) = arguments.share {
        return measure_share(arguments, &loaded.plan, &loaded.text, share, &out);
    }
    let result = run_and_report(arguments, &loaded, &out);
    let (outcome, summary) = match &result {
        Ok((_, summary)) => (Outcome::Finished, summary.clone()),
        // The user who interrupted it needs no message.
        Err(error) if exit::of(error) == Exit::Interrupted => return result.map(|(exit, _)| exit),
        Err(error) => (Outcome::Failed, format!("{error:#}\n")),
    };
    let report = if arguments.common.no_report { out } else { out.join("README.md") };
    let title = &loaded.plan.title;
    notify::tell(&recipients, &Message { title, outcome, report: &report, summary: &summary });
    result.map(|(exit, _)| exit)
}

/// Results of an experiment, and the variants that were given up.
pub(crate) struct ExperimentResult {
    pub(crate) analysis: Analysis,
    given_up: Vec<GivenUp>,
}

impl ExperimentResult {
    /// Exit code: untrustworthy results take precedence over missing ones.
    pub(crate) fn exit(&self, arguments: &Arguments) -> Result<Exit> {
        let exit = exit_of(&self.analysis, arguments)?;
        let is_doubtful =
            self.analysis.has_fatal_warning() || self.analysis.without_result().is_empty();
        match exit {
            _ if self.given_up.is_empty() => Ok(exit),
            Exit::Untrustworthy if is_doubtful => Ok(exit),
            _ => Ok(Exit::Environment),
        }
    }
}

/// Measures the runs that are missing from the store and writes the report, without printing
/// results.
///
/// # Errors
/// The errors of [`execute`].
pub(crate) fn measure(arguments: &Arguments) -> Result<ExperimentResult> {
    let loaded = experiment::load(&arguments.experiment, &arguments.overrides)?;
    let out = experiment::directory(&loaded.plan, arguments.out.as_deref());
    measure_loaded(arguments, &loaded, &out)
}

fn measure_loaded(
    arguments: &Arguments,
    Loaded { plan, text }: &Loaded,
    out: &Path,
) -> Result<ExperimentResult> {
    let (mut store, notice) = session::open_store(out, arguments.is_fresh())?;
    notice.into_iter().for_each(|notice| arguments.note(&notice));
    store.adopt_plan(plan, text)?;
    arguments.check_revision(&store)?;
    let missing = store.missing_runs(plan)?;
    let watch = StoppingWatch::begin(plan, &store)?;
    let stopping = watch.as_ref().map(StoppingWatch::stopping).cloned();
    let profiles = profiling::missing(plan, &store)?;
    arguments.note(&introduction(plan, missing.len(), stopping.as_ref()));
    arguments.note_unless_empty(&profiling::announcement(plan, profiles.len()));
    let missing = match stopping {
        Some(stopping) if stopping.done => Vec::new(),
        _ => missing,
    };
    let mut given_up = Vec::new();
    if !missing.is_empty() || !profiles.is_empty() {
        let session = arguments.session(plan, plan.runs.len(), true);
        given_up = session.measure(&mut store, &missing, watch)?;
    }
    let analysis = if arguments.common.no_report {
        Analysis::of_store(&store)?
    } else {
        report::write(&store, out)?
    };
    Ok(ExperimentResult { analysis, given_up })
}

/// Measures, reports and prints; returns the exit code and a short summary of the results.
fn run_and_report(arguments: &Arguments, loaded: &Loaded, out: &Path) -> Result<(Exit, String)> {
    let measured = measure_loaded(arguments, loaded, out)?;
    let analysis = &measured.analysis;
    show(arguments, analysis, out)?;
    let mut summary = anstream::adapter::strip_str(&report::summary_text(analysis, 80)).to_string();
    for GivenUp { variant, why } in &measured.given_up {
        let label = &loaded.plan.variants[*variant].label;
        let remark = format!("{label} was given up: {why}");
        terminal::warn(&remark);
        summary.push_str(&format!("{remark}\n"));
    }
    if !measured.given_up.is_empty() {
        let again = arguments.command_line();
        terminal::note(&format!("to retry the remaining runs:\n  {again}"));
    }
    Ok((measured.exit(arguments)?, summary))
}

/// Measures the missing runs of a share. A share has no report, verdict or profiles: they belong to
/// the whole experiment.
fn measure_share(
    arguments: &Arguments,
    plan: &Plan,
    text: &str,
    share: Shard,
    out: &Path,
) -> Result<Exit> {
    shard::check(plan)?;
    if plan.profile.as_ref().is_some_and(|profile| profile.starts > 0) {
        arguments.note(profiling::NOT_IN_SHARES);
    }
    let mut store = share.open(out)?;
    store.adopt_plan(plan, text)?;
    arguments.check_revision(&store)?;
    let missing = share.part_of(plan, &store.missing_runs(plan)?);
    let runs = share.runs(plan);
    let (name, left) = (&plan.name, missing.len());
    arguments.note(&format!("{name}, {share}: {left} of its {runs} runs are left"));
    let mut given_up = Vec::new();
    if !missing.is_empty() {
        let session = arguments.session(plan, runs, false);
        given_up = session.measure(&mut store, &missing, None)?;
    }
    for GivenUp { variant, why } in &given_up {
        let label = &plan.variants[*variant].label;
        terminal::warn(&format!("{share}: {label} was given up: {why}"));
    }
    if !given_up.is_empty() {
        let again = arguments.command_line();
        terminal::note(&format!("what is left is tried again by\n  {again}"));
        return Ok(Exit::Environment);
    }
    arguments.note(&format!("{share} is complete: {}", store.path().display()));
    Ok(Exit::Done)
}

fn introduction(plan: &Plan, missing: usize, stopping: Option<&Stopping>) -> String {
    let (name, title, runs) = (&plan.name, &plan.title, plan.runs.len());
    if let Some(stopping) = stopping.filter(|stopping| stopping.done && stopping.blocks > 0) {
        return format!("{name}: {title}\n{}", stopping.sentence);
    }
    let estimate = plan.estimate();
    let time = match estimate.of_runs(missing) {
        0 => String::new(),
        ns => format!(", about {}{}", duration(ns), estimate.or_more()),
    };
    let left = match runs - missing {
        0 if stopping.is_some() => format!("at most {runs} runs{time}"),
        0 => format!("{runs} runs{time}"),
        stored if missing == 0 => format!("all of its {stored} runs are stored already"),
        stored => format!("{stored} of {runs} runs are stored already, {missing} are left{time}"),
    };
    format!("{name}: {title}\n{left}")
}

/// Prints the results and the path of the report or the store.
fn show(arguments: &Arguments, analysis: &Analysis, out: &Path) -> Result<()> {
    let data = report::shown(analysis)?;
    arguments.common.form.print(&report::summary(analysis, &data))?;
    let place = if arguments.common.no_report {
        format!("store: {}", store_at(out).display())
    } else {
        format!("report: {}", out.join("README.md").display())
    };
    // Machine-readable output ends with the document.
    if arguments.common.form.is_of_terminal() {
        terminal::print(&place)?;
    } else {
        arguments.note(&place);
    }
    Ok(())
}

fn exit_of(analysis: &Analysis, arguments: &Arguments) -> Result<Exit> {
    if arguments.bisect && !analysis.has_fatal_warning() {
        return verdict::exit_for_git(&analysis.core.comparisons);
    }
    Ok(verdict::exit(analysis, arguments.common.fail_on))
}

impl Arguments {
    /// True if `git bisect run` reads the exit code.
    pub(crate) fn is_for_git(&self) -> bool {
        self.bisect
    }

    /// True if old runs are set aside: with `--bisect` they belong to another commit with the same
    /// plan.
    fn is_fresh(&self) -> bool {
        self.fresh || self.bisect
    }

    /// Checks that the store's runs belong to the measured revision.
    fn check_revision(&self, store: &Store) -> Result<()> {
        let invocations = store.invocations()?;
        let stored = invocations
            .iter()
            .find_map(|stored| facts::revision(&stored.invocation.environment).map(str::to_owned));
        match (&self.revision, stored) {
            (Some(expected), Some(stored)) if *expected != stored => {
                Err(CliError::Mistake(format!(
                    "{}: its runs are of revision {stored}, not of {expected}\n  next step: start \
                 over with --fresh, or choose another directory with --out",
                    store.path().display()
                ))
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Prints a note unless `--quiet` is set.
    fn note(&self, text: &str) {
        if !self.common.quiet {
            terminal::note(text);
        }
    }

    fn note_unless_empty(&self, text: &str) {
        if !text.is_empty() {
            self.note(text);
        }
    }

    /// The command that continues this experiment, with the directory and all options that affect
    /// the plan.
    fn command_line(&self) -> String {
        let mut line = self.overrides.command_line("run", &self.experiment, self.out.as_deref());
        if let Some(Shard { number, of }) = self.share {
            line += &format!(" --share {number}/{of}");
        }
        line.extend(self.bed.iter().map(|bed| format!(" --bed {bed}")));
        line.extend(self.revision.iter().map(|name| format!(" --revision {name}")));
        let options = [
            ("--no-calibration", self.common.no_calibration),
            ("--profile", self.common.profile),
            ("--no-profile", self.common.no_profile),
        ];
        let given = options.iter().filter(|(_, given)| *given);
        given.fold(line, |line, (option, _)| format!("{line} {option}"))
    }

    /// Session that measures a plan; `runs` is the number of runs that its store should contain.
    fn session<'a>(&self, plan: &'a Plan, runs: usize, takes_profiles: bool) -> Session<'a> {
        Session {
            plan,
            directory: experiment::beside(&self.experiment),
            calibrates: !self.common.no_calibration,
            quiet: self.common.quiet,
            resume: self.command_line(),
            runs: runs.to_string(),
            bed: self.bed.clone(),
            revision: self.revision.clone(),
            takes_profiles,
            wait: self.common.wait.unwrap_or_default(),
        }
    }

    /// The profile option of the command line; `None` if there is none.
    fn profile_option(&self) -> Option<bool> {
        match (self.common.profile, self.common.no_profile) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// Parses the name of a revision: only characters that are safe in shells and tables.
fn revision(name: &str) -> std::result::Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || ".-_+~:/@".contains(c);
    match (1..=128).contains(&name.len()) && name.chars().all(is_fit) {
        true => Ok(name.to_owned()),
        false => Err("a revision is 1 to 128 letters, digits and `.-_+~:/@`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    #[test]
    fn command_line_keeps_options_of_the_plan() {
        let line =
            "fwdlab run my/x.toml --fresh --out it's --seed 3 --testbed sim --quiet --profile";
        let parsed = crate::command::Arguments::parse_from(line.split(' '));
        let crate::command::Command::Run(run) = parsed.command else { panic!("another command") };
        let again = r"fwdlab run my/x.toml --out 'it'\''s' --testbed sim --seed 3 --profile";
        assert_eq!(run.command_line(), again);
    }
}
