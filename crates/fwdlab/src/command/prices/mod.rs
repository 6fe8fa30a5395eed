//! `fwdlab prices`: what features of the forwarding path cost, in instructions per packet.
//!
//! A catalogue declares the features ([`catalogue`]). Each kernel boots as a guest of QEMU, which
//! sets up one feature after the other and counts ([`measure`]); counts are stored per kernel
//! ([`store`]), and evaluated together ([`findings`], [`document`]).

mod catalogue;
mod document;
mod findings;
mod measure;
mod store;
#[cfg(test)]
mod tests;

use super::compare::margin;
use super::counted_guest::{self, GuestOptions, Subject, TrafficArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::verdict::{self, FailOn};
use anyhow::{Context, Result};
use catalogue::Feature;
use document::FeatureList;
use findings::{Failed, Findings};
use fwdlab_vm::guest::{CountOptions, System};
use measure::Progress;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{PriceList, Stored};

/// Margin of equivalence without `--margin`, as a ratio.
const MARGIN: f64 = 0.02;

/// Count what features of the forwarding path cost: firewall rules, NAT, tunnels, queueing
/// disciplines, in instructions per packet.
///
/// Each kernel boots in QEMU and sets up one feature after the other. A price is the difference from
/// plain forwarding in the same boot, over the functions that differ. After each feature, plain
/// forwarding is counted again. Results are stored per kernel as they come in: the same command
/// continues after an interruption, and counts only new or changed features.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab prices running                               all features in the running kernel
  fwdlab prices old.deb new.deb --only nftables       a group, in two kernels
  fwdlab prices new.deb --only 'nft-rules 100' --only vxlan
  fwdlab prices kernels --format html > prices.html   all packages in a directory
  fwdlab prices old.deb mine --fail-on worse          in a CI
  fwdlab prices --list                                the features
  fwdlab prices mine --catalogue mine.toml            features of one's own

A catalogue is a TOML file; prices/linux.toml of fwdlab's sources is the one that is built in, and
explains the format.")]
pub(crate) struct Arguments {
    /// Kernels of Linux, as for `fwdlab count`; the first one is the baseline
    #[arg(required_unless_present = "list", value_name = "KERNEL")]
    kernels: Vec<PathBuf>,
    /// List the features
    #[arg(long)]
    list: bool,
    /// Count only this feature (`nft-rules`, `nft-rules 100`) or group; may be given several times
    #[arg(long, value_name = "FEATURE")]
    only: Vec<String>,
    /// File with the features, in place of the built-in catalogue
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Directory of the stored counts
    #[arg(long, value_name = "DIRECTORY", default_value = "results/prices")]
    out: PathBuf,
    /// Number of kernels to count at the same time [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    traffic: TrafficArguments,
    /// Difference between kernels that counts as equivalent, in per cent of the baseline's
    /// instructions [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Exit with code 1 if plain forwarding or a feature of a kernel is worse than in the first
    /// kernel, that is, executes more instructions per packet than the margin allows
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    #[command(flatten)]
    form: FormArguments,
}

/// Counts features, and prints their prices.
///
/// # Errors
/// If a path is not a kernel, the catalogue is not valid, or a kernel could not be counted.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let features = features(arguments)?;
    if arguments.list {
        arguments.form.print(&FeatureList::new(&features).document())?;
        return Ok(Exit::Done);
    }
    let cache = counted_guest::prepare()?;
    let subjects = counted_guest::subjects(&arguments.kernels, &[], &cache)?;
    if let Some(other) = subjects.iter().find(|subject| subject.system() != System::Linux) {
        return Err(CliError::Mistake(format!(
            "{}: the catalogue's features are of Linux\n  next step: count commands of FreeBSD with \
             `fwdlab count {} --change`",
            other.name, other.name
        ))
        .into());
    }
    let open = |subject| Stored::open(&arguments.out, subject, &arguments.traffic);
    let mut stored = subjects.iter().map(open).collect::<Result<Vec<Stored>>>()?;
    let also = CountOptions::default();
    let options = GuestOptions { nic: arguments.traffic.nic, also, features: true, cache: &cache };
    let failed = measure_all(arguments, &subjects, options, &features, &mut stored);
    let lists: Vec<PriceList> = stored.into_iter().map(|stored| stored.list).collect();
    let margin = arguments.margin.unwrap_or(MARGIN);
    let findings = Findings { failed, ..Findings::new(&lists, &features, margin) };
    if let (true, Some(first)) = (lists.iter().all(|l| l.boots.is_empty()), findings.failed.first())
    {
        return Err(CliError::Environment(format!("{}: {}", first.kernel, first.why)).into());
    }
    arguments.form.print(&document::document(&findings))?;
    let exit = verdict::exit_of(findings.comparisons.iter(), arguments.fail_on);
    Ok(match findings.failed.is_empty() {
        false if exit == Exit::Done => Exit::Environment,
        _ => exit,
    })
}

/// The features to count.
fn features(arguments: &Arguments) -> Result<Vec<Feature>> {
    let family = arguments.traffic.family;
    let all = match &arguments.catalogue {
        None => catalogue::read(catalogue::LINUX, "built-in catalogue", family)?,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CliError::Mistake(format!("{}: {error}", path.display())))?;
            catalogue::read(&text, &path.display().to_string(), family)?
        }
    };
    catalogue::select(all, &arguments.only)
}

/// Counts all kernels, several at the same time; returns those that failed.
fn measure_all(
    arguments: &Arguments,
    subjects: &[Subject],
    options: GuestOptions<'_>,
    features: &[Feature],
    stored: &mut [Stored],
) -> Vec<Failed> {
    let total = stored.iter().map(|stored| stored.missing(features).len()).sum();
    if total == 0 {
        return Vec::new();
    }
    let jobs = arguments.jobs.or_else(|| std::thread::available_parallelism().ok());
    let progress = Progress::new(total);
    let work: Vec<_> = subjects.iter().zip(stored).map(std::sync::Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut failed = Vec::new();
        while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut item = item.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (subject, stored) = &mut *item;
            let measured =
                measure::measure(subject, options, &arguments.traffic, features, stored, &progress);
            if let Err(error) = measured.with_context(|| subject.name.clone()) {
                failed.push(Failed { kernel: subject.name.clone(), why: format!("{error:#}") });
            }
        }
        failed
    };
    std::thread::scope(|scope| {
        let jobs = jobs.map_or(1, NonZeroUsize::get).min(subjects.len());
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(failed) => failed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    })
}
