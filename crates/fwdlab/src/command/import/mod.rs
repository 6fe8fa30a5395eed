//! `fwdlab import`: results of the netbenches harness as stores.

mod document;
mod progress;
mod target;

use crate::VERSION;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::signal::Stop;
use crate::value_enum;
use anyhow::{Context, Result};
use fwdlab_archive::assemble::Options;
use fwdlab_archive::import::{self, Job, Outcome, Request, Summary};
use fwdlab_archive::scan::{self, Scan};
use fwdlab_model::plan::Rule;
use progress::Bar;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Import results of the FreeBSD netbenches harness into stores, one per result set.
///
/// A result set is a folder of pkt-gen logs (bench.*.receiver, bench.*.sender), with the published
/// results next to it and the configurations of its bench. DIR is a whole archive, a bench, one
/// result, or a folder of logs. Nothing is written into it, and a set that has not changed since
/// the last import is not read again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab import netbenches                       all sets, into results/archive
  fwdlab import netbenches/x/firewalls/results/fbsd13 --out fbsd13.sqlite
  fwdlab import netbenches --out /data/stores --json | jq .totals
  fwdlab import netbenches --rule steady --out results/steady
  fwdlab show results/archive                    the figures of all of them
  fwdlab report results/archive                  a report beside each store")]
pub(crate) struct Arguments {
    /// Directories to search
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Store of a single set, or directory for the stores of several
    /// [default: results/LABEL/run.sqlite, or results/archive]
    #[arg(long, short, value_name = "PATH", alias = "store")]
    out: Option<PathBuf>,
    /// Rule for the value of a run [default: netbenches]
    #[arg(long, value_name = "RULE", value_parser = value_enum::any::<Rule>())]
    rule: Option<Rule>,
    #[command(flatten)]
    form: FormArguments,
    /// Threads [default: one per CPU]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// List every set and every refused file, also for large imports
    #[arg(long)]
    list: bool,
}

/// Directories and their outcomes.
struct Report<'a> {
    jobs: &'a [Job],
    scan: &'a Scan,
    summary: &'a Summary,
}

/// Imports the sets.
///
/// # Errors
/// If nothing could be read, a store can't be created at its path, or the user stops the import.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let stop = Stop::on_signals().context("listening to signals")?;
    let found = target::find(&arguments.directories)?;
    let jobs = target::jobs(&found, arguments.out.as_deref())?;
    let options = Options {
        rule: arguments.rule,
        imported_at: crate::stores::now(),
        fwdlab_version: VERSION.to_owned(),
        named: String::new(),
    };
    let bar = Bar::of(&jobs);
    let summary = import::import(&Request {
        jobs: &jobs,
        options: &options,
        threads: threads(arguments.jobs),
        stop: stop.flag(),
        read: &import::read,
        on_event: &|event| bar.on_event(event),
    });
    bar.end();
    let report = Report { jobs: &jobs, scan: &found.scan, summary: &summary };
    let data = document::data(&report);
    arguments.form.print(&document::document(&report, arguments.list, &data))?;
    exit(&report, &arguments.directories, summary.sets.len())
}

/// Exit code: success if at least one set is stored and none failed.
fn exit(report: &Report<'_>, directories: &[PathBuf], total: usize) -> Result<Exit> {
    let outcomes = || report.summary.sets.iter().map(|set| &set.outcome);
    let stored = outcomes().filter(|outcome| outcome.known().is_some()).count();
    if outcomes().any(|outcome| matches!(outcome, Outcome::NotReached)) {
        let message = format!(
            "stopped: {stored} of {total} sets are stored; the same command goes on with the rest"
        );
        return Err(CliError::Interrupted(message).into());
    }
    if let Some(Outcome::Failed(error)) =
        outcomes().find(|outcome| matches!(outcome, Outcome::Failed(_)))
    {
        return Err(
            CliError::Environment(format!("{stored} of {total} sets are stored: {error}")).into()
        );
    }
    match stored {
        0 => Err(target::nothing(directories, &format!("none of {total} sets could be read"))),
        _ => Ok(Exit::Done),
    }
}

fn threads(requested: Option<NonZeroUsize>) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    requested.unwrap_or_else(all)
}
