//! `fwdlab plan`: shows what an experiment would do and detect.

mod document;
mod history;
mod lacking;
mod power;

use crate::exit::Exit;
use crate::experiment::{self, Loaded, Overrides};
use crate::missing;
use crate::output_format::FormArguments;
use anyhow::Result;
use fwdlab_model::Plan;
use fwdlab_model::record::Environment;
use history::History;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Blocks of a pilot.
const PILOT_BLOCKS: u32 = 2;
/// Streams of an alternation's pilot: with fewer, the stream isn't the unit.
const PILOT_STREAMS: u32 = 3;

/// Show what an experiment would do and detect: settings, factors, time, the chance to detect a
/// change, the order of runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab plan experiments/demo.toml
  fwdlab plan experiments/demo.toml --blocks 20
  fwdlab plan experiments/demo.toml --pilot
  fwdlab plan experiments/queues.toml --history results/demo
  fwdlab plan experiments/demo.toml --json | jq .hash")]
pub(crate) struct Arguments {
    /// The experiment file; - is standard input
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    #[command(flatten)]
    overrides: Overrides,
    /// Directory of this experiment's store, whose runs provide the scatter [default: results/NAME,
    /// after the experiment file]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Another store of the same device that provides the scatter (repeatable)
    #[arg(long, value_name = "STORE")]
    history: Vec<PathBuf>,
    /// Run the first two blocks (three streams of an alternation) and plan from them; `fwdlab run`
    /// continues from there
    #[arg(long)]
    pilot: bool,
    /// Show the order of runs
    #[arg(long)]
    order: bool,
    #[command(flatten)]
    form: FormArguments,
}

/// Shows the plan.
///
/// # Errors
/// Errors in the file, a store of `--history` that can't be read, and, with `--pilot`, errors of
/// the measurement.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let loaded = experiment::load(&arguments.experiment, &arguments.overrides)?;
    if arguments.pilot {
        arguments.run_pilot(&loaded)?;
    }
    let plan = &loaded.plan;
    let out = experiment::directory(plan, arguments.out.as_deref());
    let here = environment();
    let history = History::of(plan, &out, &arguments.history, &here, arguments.pilot)?;
    let missing = missing::files(plan, &experiment::beside(&arguments.experiment));
    let lacking = lacking::lacking(plan);
    let data = as_json(plan, &history, (&missing, &lacking))?;
    let document = document::document(plan, &history, (&missing, &lacking), arguments.order, &data);
    arguments.form.print(&document)?;
    Ok(Exit::Done)
}

/// Environment of a testbed on this machine; the default on systems without testbeds.
fn environment() -> Environment {
    #[cfg(target_os = "linux")]
    return fwdlab_bench::environment::capture(crate::VERSION);
    #[cfg(not(target_os = "linux"))]
    return Environment::default();
}

/// The plan itself, with the additional keys `estimate`, `missing` (files that do not exist),
/// `lacking` (other unmet requirements of this machine) and `outlook`.
fn as_json(
    plan: &Plan,
    history: &History,
    (missing, lacking): (&[String], &[String]),
) -> serde_json::Result<Value> {
    let estimate = history.estimate(plan);
    let mut value = serde_json::to_value(plan)?;
    value["estimate"] = json!({
        "runs": estimate.runs,
        "run_ns": estimate.run_ns,
        "once_ns": estimate.once_ns,
        "total_ns": estimate.total_ns,
    });
    value["missing"] = json!(missing);
    value["lacking"] = json!(lacking);
    value["outlook"] = power::json(plan, history)?;
    Ok(value)
}

#[cfg(target_os = "linux")]
impl Arguments {
    /// Measures the missing runs of the plan's first blocks.
    fn run_pilot(&self, loaded: &Loaded) -> Result<()> {
        let Loaded { plan, text } = loaded;
        let out = experiment::directory(plan, self.out.as_deref());
        let (mut store, _) = crate::session::open_store(&out, false)?;
        store.adopt_plan(plan, text)?;
        let missing = store.missing_runs(plan)?;
        let blocks = match plan.design.alternate_ns {
            None => PILOT_BLOCKS,
            Some(_) => PILOT_STREAMS,
        };
        let pilot: Vec<u32> = plan
            .runs
            .iter()
            .filter(|run| run.block < blocks && missing.contains(&run.index))
            .map(|run| run.index)
            .collect();
        if pilot.is_empty() {
            return Ok(());
        }
        let session = crate::session::Session {
            bed: None,
            revision: None,
            plan,
            directory: experiment::beside(&self.experiment),
            calibrates: true,
            quiet: false,
            resume: self.overrides.command_line("plan", &self.experiment, self.out.as_deref())
                + " --pilot",
            runs: plan.runs.len().to_string(),
            takes_profiles: false,
            wait: std::time::Duration::ZERO,
        };
        session.say(&format!("{}: a pilot of {} runs", plan.name, pilot.len()));
        session.measure(&mut store, &pilot, None).map(drop)
    }
}

#[cfg(not(target_os = "linux"))]
impl Arguments {
    /// Refuses to measure on this system.
    fn run_pilot(&self, _: &Loaded) -> Result<()> {
        let why = "--pilot measures, which needs Linux\n  next step: plan without it, or on a Linux \
                   machine";
        Err(crate::error::CliError::Mistake(why.into()).into())
    }
}
