//! `fwdlab submit`: runs an experiment through the queue of a cluster.
//!
//! It runs the queue's own programs (`sbatch`, `squeue`, `scancel`): access to machines, priorities
//! and restarts after the loss of a machine are the queue's responsibility. Progress is derived
//! from the stores alone, so it does not depend on how long a queue remembers its jobs.

mod queue;
mod record;
mod script;
mod status;

use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{self, Loaded, Overrides, STORE};
use crate::profiling;
use crate::shard::{self, SHARES, Shard};
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use queue::{Job, Slurm};
use record::Record;
use serde_json::json;
use status::Status;
use std::fs;
use std::path::{Path, PathBuf};

/// Default maximum number of shares: Slurm's default configuration accepts arrays of 1000 jobs.
const SHARES_MOST: u32 = 1000;

/// Submit an experiment to the queue of a cluster (Slurm), share by share.
///
/// The experiment's blocks are divided into shares; each share is a job of an array, which measures
/// on one machine (its bed) into its own store. A last job merges the shares and writes the report.
/// A job that is killed and restarted measures the runs that its store lacks: only the run in
/// progress is lost. Repeat the same command to submit the remaining shares.
///
/// Jobs that measure time request whole machines (--exclusive); simulations and guests whose
/// instructions are counted do not. The experiment, this program and the directory must have the
/// same paths on all machines.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab submit experiments/demo.toml
  fwdlab submit experiments/demo.toml --status
  fwdlab submit experiments/demo.toml --cancel
  fwdlab submit experiments/aa.toml --lab /etc/fwdlab/lab.toml --shares 40 --sbatch=--partition=racks
  fwdlab submit experiments/demo.toml --testbed sim --at-once 4 --sbatch=--time=10")]
pub(crate) struct Arguments {
    /// The experiment file
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    /// Directory of store and report [default: results/NAME, after the experiment file]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of shares, each a job [default: one per block, at most 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(shard::MOST)))]
    shares: Option<u32>,
    /// Maximum number of shares to measure at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Option for sbatch: --sbatch=--partition=racks. May be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sbatch: Vec<String>,
    /// Don't measure the rates of sender and receiver without a DUT
    #[arg(long)]
    no_calibration: bool,
    /// Show progress, and change nothing
    #[arg(long, conflicts_with = "cancel")]
    status: bool,
    /// Cancel its jobs; stored runs are kept
    #[arg(long)]
    cancel: bool,
    /// Start again; the old store and shares are kept under names that end in .1
    #[arg(long, conflicts_with_all = ["status", "cancel"])]
    fresh: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    overrides: Overrides,
}

/// An experiment and its directory.
struct ExperimentDirectory<'a> {
    plan: &'a Plan,
    out: &'a Path,
}

impl ExperimentDirectory<'_> {
    fn shares(&self) -> PathBuf {
        self.out.join(SHARES)
    }

    fn store(&self) -> PathBuf {
        self.out.join(STORE)
    }
}

/// Submits the experiment, shows its progress, or cancels its jobs.
///
/// # Errors
/// Errors in the experiment, a plan that can't be divided, a queue that refuses.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    if arguments.experiment == Path::new("-") {
        let why = "submit: a job can't read your standard input\n  next step: name a file";
        return Err(CliError::Mistake(why.into()).into());
    }
    let Loaded { plan, .. } = experiment::load(&arguments.experiment, &arguments.overrides)?;
    shard::check(&plan)?;
    let out = experiment::directory(&plan, arguments.out.as_deref());
    let out = std::path::absolute(&out).unwrap_or(out);
    let place = ExperimentDirectory { plan: &plan, out: &out };
    if arguments.fresh {
        set_aside(&place)?;
    }
    let found = Record::read(&place.shares())?;
    if let Some(record) = found.as_ref().filter(|record| record.plan != plan.hash) {
        let why = format!(
            "{} holds the shares of another plan (hash {}, not {})\n  next step: choose another \
             directory (--out), or give --fresh, which keeps the old ones aside",
            out.display(),
            record.plan,
            plan.hash
        );
        return Err(CliError::Mistake(why).into());
    }
    match (arguments.status, arguments.cancel) {
        (true, _) => show_status(arguments, &place, found.as_ref()),
        (_, true) => cancel(arguments, &place, found.as_ref()),
        _ => submit(arguments, &place, found),
    }
}

/// Submits the incomplete shares, and a job that merges all shares after them.
fn submit(
    arguments: &Arguments,
    place: &ExperimentDirectory<'_>,
    found: Option<Record>,
) -> Result<Exit> {
    let plan = place.plan;
    if place.store().exists() {
        let why = format!(
            "{} is there already\n  next step: `fwdlab report {}` shows it; to begin anew, give \
             --fresh or another --out",
            place.store().display(),
            experiment::quoted(&place.out.to_string_lossy())
        );
        return Err(CliError::Mistake(why).into());
    }
    let requested = arguments.shares.unwrap_or(plan.design.blocks.min(SHARES_MOST));
    let requested = requested.min(plan.design.blocks);
    let shares = found.as_ref().map_or(requested, |record| record.shares);
    if arguments.shares.is_some() && shares != requested {
        let why = format!(
            "{} was divided into {shares} shares, and what is stored is of these\n  next step: leave \
             out --shares, or begin anew with --fresh",
            place.shares().display()
        );
        return Err(CliError::Mistake(why).into());
    }
    Shard { number: 1, of: shares }.fits(place.out)?;
    if plan.profile.as_ref().is_some_and(|profile| profile.starts > 0) {
        terminal::note(profiling::NOT_IN_SHARES);
    }
    let slurm = Slurm;
    let mut record = found.unwrap_or_else(|| Record::new(plan, shares));
    let before = Status::of(place, &record, &slurm)?;
    if let Some(job) = before.jobs.first() {
        let why = format!(
            "{} is on its way already: job {} is {}\n  next step: give --status to see how far it is, \
             or --cancel first",
            plan.name, job.id, job.state
        );
        return Err(CliError::Mistake(why).into());
    }
    let directory = place.shares();
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let scripts = script::write(arguments, place, shares)?;
    let lacking = before.lacking();
    let is_exclusive = measures_time(plan);
    let mut ids = Vec::new();
    if !lacking.is_empty() {
        let array = script::array(&lacking, arguments.at_once);
        let id = slurm.submit(&Job {
            name: format!("fwdlab-{}", plan.name),
            array: Some(array),
            after: None,
            log: directory.join("%a.log"),
            script: scripts.share,
            is_exclusive,
            options: &arguments.sbatch,
        })?;
        ids.push(id);
    }
    // Recorded before anything else can fail: --cancel must find the job.
    record.jobs.clone_from(&ids);
    record.write(&directory)?;
    let merge = slurm.submit(&Job {
        name: format!("fwdlab-{}-merge", plan.name),
        array: None,
        after: ids.first().cloned(),
        log: directory.join("merge.log"),
        script: scripts.merge,
        is_exclusive: false,
        options: &arguments.sbatch,
    })?;
    ids.push(merge);
    record.jobs.clone_from(&ids);
    record.write(&directory)?;
    if arguments.json {
        terminal::print_json(&json!({
            "plan": plan.hash, "directory": place.out, "shares": shares,
            "submitted": lacking.len(), "jobs": ids, "exclusive": is_exclusive,
        }))?;
        return Ok(Exit::Done);
    }
    let whole = if is_exclusive { ", each on a whole machine" } else { "" };
    terminal::print(&format!(
        "{}: {} of {shares} shares handed in{whole}, then their merge: jobs {}\n{} of {} runs are \
         stored already\nhow far it is: {} --status\n",
        plan.name,
        lacking.len(),
        ids.join(" and "),
        before.stored,
        plan.runs.len(),
        again(arguments)
    ))?;
    Ok(Exit::Done)
}

fn show_status(
    arguments: &Arguments,
    place: &ExperimentDirectory<'_>,
    found: Option<&Record>,
) -> Result<Exit> {
    let record = found.ok_or_else(|| never_submitted(place))?;
    let status = Status::of(place, record, &Slurm)?;
    if arguments.json {
        terminal::print_json(&status.json(place, record))?;
    } else {
        terminal::print(&status.text(place, record, &again(arguments)))?;
    }
    Ok(Exit::Done)
}

fn cancel(
    arguments: &Arguments,
    place: &ExperimentDirectory<'_>,
    found: Option<&Record>,
) -> Result<Exit> {
    let record = found.ok_or_else(|| never_submitted(place))?;
    let slurm = Slurm;
    let jobs = slurm.queued(&record.jobs)?;
    // Slurm may have forgotten jobs that have ended, and scancel would fail for them.
    let is_queued = |id: &&String| jobs.iter().any(|job| job.array() == id.as_str());
    let ended: Vec<String> = record.jobs.iter().filter(is_queued).cloned().collect();
    if !ended.is_empty() {
        slurm.cancel(&ended)?;
    }
    if arguments.json {
        terminal::print_json(&json!({ "cancelled": ended }))?;
        return Ok(Exit::Done);
    }
    terminal::print(&match ended.is_empty() {
        true => format!("{}: none of its jobs is in the queue\n", place.plan.name),
        false => format!(
            "{}: cancelled jobs {}; what was measured is kept\ngo on with: {}\n",
            place.plan.name,
            ended.join(" and "),
            again(arguments)
        ),
    })?;
    Ok(Exit::Done)
}

/// Moves the store and the shares of an experiment to free names. An unreadable record names no
/// jobs.
fn set_aside(place: &ExperimentDirectory<'_>) -> Result<()> {
    if let Ok(Some(record)) = Record::read(&place.shares())
        && let Some(job) = Status::of(place, &record, &Slurm)?.jobs.first()
    {
        let why = format!(
            "--fresh: job {} of {} is {}\n  next step: give --cancel first",
            job.id,
            place.out.display(),
            job.state
        );
        return Err(CliError::Mistake(why).into());
    }
    if place.store().exists() {
        fwdlab_results::store::set_aside(&place.store())?;
    }
    let shares = place.shares();
    if shares.exists() {
        let numbered = |n: u32| place.out.join(format!("{SHARES}.{n}"));
        let free = (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0));
        fs::rename(&shares, &free)
            .with_context(|| format!("setting {} aside", shares.display()))?;
    }
    Ok(())
}

/// True if the results depend on execution time: no other job may then run on the same machine.
fn measures_time(plan: &Plan) -> bool {
    match plan.base.testbed.kind {
        TestbedKind::Sim | TestbedKind::Archive => false,
        TestbedKind::Vm => plan.base.testbed.vm.is_timed,
        TestbedKind::Auto | TestbedKind::Netns | TestbedKind::Memory | TestbedKind::Ssh => true,
    }
}

fn never_submitted(place: &ExperimentDirectory<'_>) -> CliError {
    CliError::Mistake(format!(
        "no share of {} was handed in yet (there is no {})\n  next step: the same command without \
         --status or --cancel hands it in",
        place.plan.name,
        Record::path(&place.shares()).display()
    ))
}

/// The command that continues this experiment, with the user's options for its jobs.
fn again(arguments: &Arguments) -> String {
    let Arguments { overrides, experiment, out, at_once, sbatch, no_calibration, .. } = arguments;
    let mut line = overrides.command_line("submit", experiment, out.as_deref());
    line.extend(at_once.iter().map(|most| format!(" --at-once {most}")));
    line.extend(sbatch.iter().map(|option| format!(" --sbatch={}", experiment::quoted(option))));
    line + if *no_calibration { " --no-calibration" } else { "" }
}

/// Path of the share's store, which may not exist yet.
fn store_of(place: &ExperimentDirectory<'_>, share: Shard) -> PathBuf {
    share.directory(place.out).join(STORE)
}
