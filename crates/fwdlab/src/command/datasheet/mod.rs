//! `fwdlab datasheet`: measures how fast a device forwards, on one page.
//!
//! Runs several experiments ([`parts`]), each with its own store and report, and combines their
//! results ([`sheet`]). It computes no results itself: every number of the sheet is in one of the
//! stores.

mod parts;
mod sheet;

use super::run;
use crate::exit::{self, Exit};
use crate::experiment::Overrides;
use crate::output_format::FormArguments;
use crate::terminal;
use anyhow::{Context, Result};
use clap::{Args as _, FromArgMatches as _};
use fwdlab_results::report::Analysis;
use parts::Part;
use sheet::{MeasuredPart, MissingPart, Sheet};
use std::fs;
use std::path::{Path, PathBuf};

/// Measure a device and print its data sheet: rates at 64 bytes and IMIX, throughput without loss,
/// latency, and the cost of firewall rules, connection states, NAT and queues.
///
/// The device is this machine's kernel in namespaces, or the one that --testbed or --lab selects.
/// Six experiments take about ten minutes together; each is written to DIR with its store and
/// report. The same command continues after an interruption, and prints the sheet of finished
/// stores without measuring again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab datasheet
  fwdlab datasheet --lab rack.toml --out results/box --format markdown
  fwdlab datasheet --set traffic.family=inet6 --only rates,firewall
  fwdlab datasheet --testbed sim --out results/sim --json")]
pub(crate) struct Arguments {
    /// Directory of experiments, stores and reports
    #[arg(long, short, value_name = "DIR", default_value = "results/datasheet")]
    out: PathBuf,
    /// Measure only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["rates", "firewall", "nat", "queues", "throughput", "latency"])]
    only: Vec<String>,
    /// Queues of the device, compared with one [default: one per CPU of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    queues: Option<u32>,
    /// Measure again; old stores are kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// Show no progress, only the sheet
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    form: FormArguments,
}

/// Measures what has not been measured yet, and prints the sheet.
///
/// # Errors
/// An interruption; a directory that can't be written. If this testbed can't measure a part, the
/// sheet contains the reason instead.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let cpus = std::thread::available_parallelism().map_or(2, |cpus| cpus.get() as u32);
    let queues = arguments.queues.unwrap_or(cpus.clamp(2, 64));
    let is_requested =
        |part: &Part| arguments.only.is_empty() || arguments.only.iter().any(|o| o == part.name);
    let mut sheet = Sheet { parts: Vec::new(), missing: Vec::new() };
    let mut exit = Exit::Done;
    for part in parts::parts(queues).into_iter().filter(is_requested) {
        let directory = arguments.out.join(part.name);
        if !arguments.quiet {
            terminal::note(&format!("{}: {}", part.name, part.title));
        }
        match measure(arguments, &part, &directory) {
            Ok(measured) => {
                let (ended, analysis) = measured;
                if ended != Exit::Done {
                    exit = Exit::Untrustworthy;
                }
                sheet.parts.push(MeasuredPart { part: part.name, directory, analysis });
            }
            Err(error) if exit::of(&error) == Exit::Interrupted => return Err(error),
            Err(error) => {
                let why = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
                sheet.missing.push(MissingPart { part: part.name, title: part.title, why });
            }
        }
    }
    arguments.form.print(&sheet::document(&sheet))?;
    // A sheet needs at least one result.
    Ok(if sheet.parts.is_empty() { Exit::Environment } else { exit })
}

/// Measures a part; returns its exit code and results.
fn measure(arguments: &Arguments, part: &Part, directory: &Path) -> Result<(Exit, Analysis)> {
    let file = arguments.out.join(format!("{}.toml", part.name));
    let (ruleset, text) = parts::MASQUERADE;
    fs::create_dir_all(&arguments.out)
        .and_then(|()| fs::write(arguments.out.join(ruleset), text))
        .and_then(|()| fs::write(&file, part.experiment()))
        .with_context(|| format!("writing {}", file.display()))?;
    let mut line = vec!["run".into(), file.clone().into_os_string()];
    line.extend(["--out".into(), directory.as_os_str().to_owned()]);
    line.extend(arguments.quiet.then(|| "--quiet".into()));
    let command = run::Arguments::augment_args(clap::Command::new("run"));
    let mut run = run::Arguments::from_arg_matches(&command.try_get_matches_from(line)?)?;
    run.set_overrides(arguments.fresh, arguments.overrides.clone());
    let measured = run::measure(&run)?;
    Ok((measured.exit(&run)?, measured.analysis))
}
