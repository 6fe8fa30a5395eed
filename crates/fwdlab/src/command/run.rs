//! `fwdlab run`: load, plan, open the store, open the testbed, carry out every
//! run that the store lacks, report.

use super::plan::overhead_guess_ns;
use super::{STORE, store_at};
use crate::arguments::VERSION;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{self, Loaded, Overrides};
use crate::progress::Progress;
use crate::signal::Stop;
use crate::state;
use crate::terminal::{self, duration, wrap};
use crate::verdict::{self, FailOn};
use anyhow::{Context, Result};
use fwdlab_bench::probe::Privilege;
use fwdlab_bench::testbed::{self, Choice, Paths};
use fwdlab_bench::{BenchError, Task, Testbed, environment};
use fwdlab_model::settings::{Settings, TestbedKind};
use fwdlab_model::{Calibration, Plan};
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::store::{self, Invocation, Store};
use std::path::{Path, PathBuf};

/// Carry out an experiment and write its report.
///
/// What was measured is kept after each run: run the same command again and it
/// goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab run experiments/demo.toml
  fwdlab run experiments/demo.toml --testbed sim --out /tmp/demo
  fwdlab run experiments/demo.toml --blocks 20 --fresh
  fwdlab run experiments/aa.toml --quiet --fail-on worse")]
pub(crate) struct Arguments {
    /// The experiment file
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    /// Directory of store and report [default: results/NAME, after the experiment file]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin anew; the old store is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    overrides: Overrides,
    /// Don't measure what sender and receiver reach without a DUT
    #[arg(long)]
    no_calibration: bool,
    /// Write no report, only the store
    #[arg(long)]
    no_report: bool,
    /// Exit with 1 when a comparison says so
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Show no progress, only the results
    #[arg(long, short)]
    quiet: bool,
    /// Print the results as JSON (as `show --json`)
    #[arg(long)]
    json: bool,
}

/// Carries it out.
///
/// # Errors
/// Faults of the file, a store that belongs to another plan, whatever the
/// testbed lacks or meets, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let Loaded { plan, text } = experiment::load(&arguments.experiment, &arguments.overrides)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => Path::new("results").join(&plan.name),
    };
    let mut store = open_store(arguments, &out)?;
    store.adopt_plan(&plan, &text)?;
    let missing = store.missing_runs(&plan)?;
    arguments.say(&introduction(&plan, missing.len()));
    if !missing.is_empty() {
        measure(arguments, &plan, &mut store, &missing)?;
    }
    let analysis = if arguments.no_report {
        Analysis::of_store(&store)?
    } else {
        report::write(&store, &out)?
    };
    show(arguments, &analysis, &out)?;
    Ok(exit(&analysis, arguments.fail_on))
}

fn open_store(arguments: &Arguments, out: &Path) -> Result<Store> {
    if out.exists() && !out.is_dir() {
        let why = format!("{} is not a directory; give another one with --out", out.display());
        return Err(CliError::Environment(why).into());
    }
    let path = out.join(STORE);
    if arguments.fresh && path.exists() {
        let aside = store::set_aside(&path)?;
        arguments.say(&format!("the old store is kept as {}", aside.display()));
    }
    Ok(Store::open(&path)?)
}

/// Opens the testbed and carries out the missing runs, each stored at once.
fn measure(arguments: &Arguments, plan: &Plan, store: &mut Store, missing: &[u32]) -> Result<()> {
    let stop = Stop::on_signals().context("listening to signals")?;
    let mut testbed = open_testbed(plan)?;
    arguments.say(&description(testbed.choice(), terminal::width_of_stderr()));
    store.begin_invocation(&invocation(testbed.choice()))?;
    let done = plan.runs.len() - missing.len();
    let guess_ns = plan.estimate(overhead_guess_ns(plan)).run_ns;
    let mut progress = Progress::new(plan, &stop, done, guess_ns, arguments.quiet);
    let result = calibrate(arguments, plan, store, testbed.as_mut(), &mut progress)
        .and_then(|()| carry_out(plan, store, missing, testbed.as_mut(), &mut progress));
    progress.end();
    match result {
        // Ctrl-C reaches the programs that the testbed runs as well, so that
        // their failing may be seen before our own flag.
        Err(_) if stop.requested() => {
            let stored = store.recorded_runs()?.len();
            Err(CliError::Interrupted(arguments.how_to_resume(stored, plan.runs.len())).into())
        }
        other => other,
    }
}

fn open_testbed(plan: &Plan) -> Result<Box<dyn Testbed>> {
    // A simulation needs no rights, no lock and no journal.
    let (paths, privilege) = match plan.base.testbed.kind {
        TestbedKind::Sim => (
            Paths { state: PathBuf::new() },
            Privilege::None { why: "not asked for, since the device is simulated".into() },
        ),
        // The paths first: in a user namespace they can't be told any more.
        TestbedKind::Auto | TestbedKind::Netns => (state::paths()?, Privilege::obtain()),
    };
    Ok(testbed::open(plan, &privilege, &paths)?)
}

fn invocation(choice: &Choice) -> Invocation {
    Invocation {
        started_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        environment: environment::capture(VERSION),
        fwdlab_version: VERSION.to_owned(),
        testbed: choice.kind.to_owned(),
        testbed_reason: choice.reasons.join("; "),
        simulated: choice.simulated,
    }
}

/// Measures every ceiling that the plan needs and the store lacks.
fn calibrate(
    arguments: &Arguments,
    plan: &Plan,
    store: &mut Store,
    testbed: &mut dyn Testbed,
    progress: &mut Progress<'_>,
) -> Result<()> {
    if arguments.no_calibration {
        return Ok(());
    }
    for variant in &plan.variants {
        let settings = &variant.settings;
        if ceiling(&store.calibrations()?, testbed, settings).is_some() {
            continue;
        }
        let traffic = &settings.traffic;
        progress.begin_calibration(&format!("{}, {}", traffic.family.name(), traffic.frame_size));
        let calibration = testbed.calibrate(plan, settings, progress)?;
        progress.finish_calibration(calibration.median_pps());
        store.insert_calibration(&calibration)?;
    }
    Ok(())
}

/// What sender and receiver reach without a DUT under these settings, in packets
/// per second, if it was measured.
fn ceiling(stored: &[Calibration], testbed: &dyn Testbed, settings: &Settings) -> Option<f64> {
    let key = testbed.calibration_key(settings);
    let traffic = &settings.traffic;
    let holds = |calibration: &&Calibration| {
        calibration.testbed == key
            && calibration.family == traffic.family.name()
            && calibration.frame_size == traffic.frame_size.0
    };
    stored.iter().rfind(holds).map(Calibration::median_pps)
}

fn carry_out(
    plan: &Plan,
    store: &mut Store,
    missing: &[u32],
    testbed: &mut dyn Testbed,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let calibrations = store.calibrations()?;
    for run in plan.runs.iter().filter(|run| missing.contains(&run.index)) {
        if fwdlab_bench::Observer::cancelled(progress) {
            return Err(BenchError::Interrupted.into());
        }
        let settings = &plan.variants[run.variants[0]].settings;
        let ceiling_pps = ceiling(&calibrations, testbed, settings);
        progress.begin_run(run);
        let record = testbed
            .run(Task { plan, run, ceiling_pps }, progress)
            .with_context(|| format!("run {} of {}", run.index + 1, plan.runs.len()))?;
        store.insert_run(&record)?;
        progress.finish_run(&record);
    }
    Ok(())
}

fn introduction(plan: &Plan, missing: usize) -> String {
    let (name, title, runs) = (&plan.name, &plan.title, plan.runs.len());
    let run_ns = plan.estimate(overhead_guess_ns(plan)).run_ns;
    let time = match run_ns.saturating_mul(missing as u64) {
        0 => String::new(),
        ns => format!(", about {}", duration(ns)),
    };
    let left = match runs - missing {
        0 => format!("{runs} runs{time}"),
        stored if missing == 0 => format!("all of its {stored} runs are stored already"),
        stored => format!("{stored} of {runs} runs are stored already, {missing} are left{time}"),
    };
    format!("{name}: {title}\n{left}")
}

fn description(choice: &Choice, width: usize) -> String {
    let mut text = format!("testbed: {}\n", choice.kind);
    for line in choice.reasons.iter().flat_map(|reason| reason.lines()) {
        text += &wrap(&format!("  {}", line.trim_start()), width, "    ");
    }
    text.trim_end().to_owned()
}

/// Prints the results, and where more of them are.
fn show(arguments: &Arguments, analysis: &Analysis, out: &Path) -> Result<()> {
    if arguments.json {
        terminal::print_json(&report::show_json(analysis))?;
    } else {
        terminal::print(&report::summary_text(analysis, terminal::width()))?;
    }
    let place = if arguments.no_report {
        format!("store: {}", store_at(out).display())
    } else {
        format!("report: {}", out.join("README.md").display())
    };
    if arguments.json {
        arguments.say(&place)
    } else {
        terminal::print(&place)?
    }
    Ok(())
}

fn exit(analysis: &Analysis, fail_on: Option<FailOn>) -> Exit {
    if analysis.warnings.iter().any(|group| group.fatal) {
        terminal::warn("some of these figures can't be trusted: see the warnings above");
        return Exit::Untrustworthy;
    }
    verdict::exit(analysis, fail_on)
}

impl Arguments {
    /// Says something unless asked to be quiet.
    fn say(&self, text: &str) {
        if !self.quiet {
            terminal::note(text);
        }
    }

    fn how_to_resume(&self, stored: usize, runs: usize) -> String {
        format!(
            "interrupted: {stored} of {runs} runs are stored; go on with\n  {}",
            self.command_line()
        )
    }

    /// The command that goes on with this experiment: everything that is part of
    /// the plan, and the directory.
    fn command_line(&self) -> String {
        let mut words = vec!["fwdlab run".to_owned(), quoted(&self.experiment.to_string_lossy())];
        let Overrides { testbed, blocks, seed } = &self.overrides;
        let options = [
            ("--out", self.out.as_ref().map(|out| quoted(&out.to_string_lossy()))),
            ("--testbed", testbed.map(|testbed| testbed.name().to_owned())),
            ("--blocks", blocks.map(|blocks| blocks.to_string())),
            ("--seed", seed.map(|seed| seed.to_string())),
            ("--no-calibration", self.no_calibration.then(String::new)),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                words.push(format!("{option} {value}").trim_end().to_owned());
            }
        }
        words.join(" ")
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;
    use clap::Parser;

    #[test]
    fn the_command_to_go_on_says_what_is_part_of_the_plan() {
        let line = "fwdlab run my/x.toml --fresh --out it's --seed 3 --testbed sim --quiet";
        let parsed = arguments::Arguments::parse_from(line.split(' '));
        let arguments::Command::Run(run) = parsed.command else { panic!("another command") };
        let again = r"fwdlab run my/x.toml --out 'it'\''s' --testbed sim --seed 3";
        assert_eq!(run.command_line(), again);
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split() {
        assert_eq!(quoted("results/demo"), "results/demo");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$HOME"), "'$HOME'");
    }
}
