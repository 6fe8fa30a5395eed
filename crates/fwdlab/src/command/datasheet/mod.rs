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
use fwdlab_model::Diagnostics;
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
/// stores without measuring again. If a part can't be measured, the sheet names it with the reason,
/// and the exit code is not 0.
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
/// An interruption. If a part can't be measured, the sheet contains the reason instead.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let cpus = std::thread::available_parallelism().map_or(2, |cpus| cpus.get() as u32);
    let queues = arguments.queues.unwrap_or(cpus.clamp(2, 64));
    let is_requested =
        |part: &Part| arguments.only.is_empty() || arguments.only.iter().any(|o| o == part.name);
    let mut sheet = Sheet { parts: Vec::new(), missing: Vec::new() };
    let mut exits = Vec::new();
    for part in parts::parts(queues).into_iter().filter(is_requested) {
        let directory = arguments.out.join(part.name);
        if !arguments.quiet {
            terminal::note(&format!("{}: {}", part.name, part.title));
        }
        match measure(arguments, &part, &directory) {
            Ok(measured) => {
                let (exit, analysis) = measured;
                exits.push(exit);
                sheet.parts.push(MeasuredPart { part: part.name, directory, analysis });
            }
            Err(error) if exit::of(&error) == Exit::Interrupted => return Err(error),
            Err(error) => {
                exits.push(exit::of(&error));
                let why = reason(&error);
                sheet.missing.push(MissingPart { part: part.name, title: part.title, why });
            }
        }
    }
    arguments.form.print(&sheet::document(&sheet))?;
    Ok(exit_of(&exits))
}

/// Exit code of the sheet. As for a single experiment, untrustworthy results take precedence over
/// missing ones.
fn exit_of(exits: &[Exit]) -> Exit {
    let order = [Exit::Bug, Exit::Untrustworthy, Exit::Mistake, Exit::Environment];
    order.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Done)
}

/// Reason and next step of an error, in one line.
fn reason(error: &anyhow::Error) -> String {
    if let Some(fault) = error.downcast_ref::<Diagnostics>().and_then(|faults| faults.list.first())
    {
        let help = fault.help.as_ref().map(|help| format!("; next step: {help}"));
        return fault.message.clone() + &help.unwrap_or_default();
    }
    let text = format!("{error:#}");
    let mut lines = text.lines().map(str::trim);
    let first = lines.next().unwrap_or_default().to_owned();
    let step = lines.find(|line| line.starts_with("next step: "));
    first + &step.map_or(String::new(), |step| format!("; {step}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_bench::BenchError;

    #[test]
    fn exit_is_0_only_for_complete_and_trusted_sheets() {
        let (done, doubt, lacking) = (Exit::Done, Exit::Untrustworthy, Exit::Environment);
        assert_eq!(exit_of(&[done, done]), done);
        assert_eq!(exit_of(&[done, lacking, done]), lacking);
        assert_eq!(exit_of(&[lacking, doubt]), doubt);
        assert_eq!(exit_of(&[lacking, Exit::Mistake]), Exit::Mistake);
        assert_eq!(exit_of(&[doubt, Exit::Bug]), Exit::Bug);
    }

    #[test]
    fn reason_is_one_line_with_the_next_step() {
        let error = BenchError::environment("no nft\nat all", "install nftables");
        assert_eq!(reason(&error.into()), "no nft; next step: install nftables");
        assert_eq!(reason(&anyhow::anyhow!("disk on fire")), "disk on fire");
    }
}
