//! `fwdlab prices`: what features of the forwarding path cost, in instructions per packet.
//!
//! A catalogue declares the features ([`catalogue`]). Each kernel boots as a guest of QEMU, which
//! sets up one feature after the other and counts ([`mod@measure`]); counts are stored per kernel
//! ([`store`]), and evaluated together ([`findings`], [`history`], [`mod@interactions`],
//! [`document`]).

mod catalogue;
mod document;
mod findings;
mod history;
mod history_document;
#[cfg(test)]
mod history_tests;
mod interactions;
mod measure;
mod parquet;
mod store;
#[cfg(test)]
mod tests;

use super::counted_guest::{
    self, Failed, GuestOptions, JudgementArguments, Subject, TrafficArguments,
};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::verdict;
use anyhow::Result;
pub(super) use catalogue::Feature;
use document::FeatureList;
use findings::{Findings, RepeatArguments};
use fwdlab_model::words::quote;
use fwdlab_packet::Family;
use fwdlab_vm::guest::{CountOptions, System};
pub(super) use measure::{Progress, measure};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use store::PriceList;
pub(super) use store::{Outcome, Stored};

/// Count what features of the forwarding path cost: firewall rules, NAT, tunnels, queueing
/// disciplines, in instructions per packet.
///
/// Each kernel boots in QEMU and sets up one feature after the other. A price is the difference from
/// plain forwarding in the same boot, over the functions that differ. After each feature, plain
/// forwarding is counted again. Results are stored per kernel as they come in: the same command
/// continues after an interruption, and counts only new or changed features.
///
/// Three or more kernels, in the order given, have a history: the steps of each price between
/// adjacent kernels, with the functions that made them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab prices running                               all features in the running kernel
  fwdlab prices old.deb new.deb --only nftables       a group, in two kernels
  fwdlab prices new.deb --only 'nft-rules 100' --only vxlan
  fwdlab prices kernels --format html > prices.html   all packages in a directory
  fwdlab prices new.deb --only conntrack --only vlan --only qdisc --pairs
  fwdlab prices old.deb mine --fail-on worse          in a CI
  fwdlab prices --list                                the features
  fwdlab prices mine --catalogue mine.toml            own features

A catalogue is a TOML file; prices/linux.toml and prices/freebsd.toml of fwdlab's sources are built
in, and explain the format.")]
pub(crate) struct Arguments {
    /// Kernels of Linux or disks of FreeBSD, as for `fwdlab count`; the first one is the baseline
    #[arg(required_unless_present = "list", value_name = "KERNEL")]
    kernels: Vec<PathBuf>,
    /// A kernel to boot the disks of FreeBSD with as well, as for `fwdlab count`; may be given
    /// several times
    #[arg(long, value_name = "PATH")]
    kernel: Vec<PathBuf>,
    /// List the features
    #[arg(long)]
    list: bool,
    /// Count only this feature (`nft-rules`, `nft-rules 100`) or group; may be given several times
    #[arg(long, value_name = "FEATURE")]
    only: Vec<String>,
    /// Also count each pair of the selected features: which are not additive
    #[arg(long, requires = "only", conflicts_with = "list")]
    pairs: bool,
    /// File with the features, in place of the built-in catalogue
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Directory of the stored counts
    #[arg(long, value_name = "DIRECTORY", default_value = "results/prices")]
    out: PathBuf,
    /// Directory for the counts, functions and steps as Parquet files
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "list")]
    parquet: Option<PathBuf>,
    /// Number of kernels to count at the same time [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    traffic: TrafficArguments,
    #[command(flatten)]
    judgement: JudgementArguments,
    #[command(flatten)]
    form: FormArguments,
}

/// Counts features, and prints their prices.
///
/// # Errors
/// If a path is not a kernel, the catalogue is not valid, or a kernel could not be counted.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    if arguments.list {
        return list(arguments);
    }
    let cache = counted_guest::prepare()?;
    let subjects = counted_guest::subjects(&arguments.kernels, &arguments.kernel, &cache)?;
    let features = features(arguments, system(&subjects)?)?;
    let pairs = if arguments.pairs { catalogue::pairs(&features) } else { Vec::new() };
    if arguments.pairs && pairs.is_empty() {
        return Err(CliError::Mistake(
            "--pairs: no two of the selected features can be set up together\n  next step: select \
             more with --only; encrypted packets can't be answered"
                .to_owned(),
        )
        .into());
    }
    if arguments.judgement.fail_on.is_some() && subjects.len() < 2 {
        return Err(CliError::Mistake(
            "--fail-on compares kernels, and only one is given\n  next step: give the baseline \
             before it"
                .to_owned(),
        )
        .into());
    }
    let open = |subject| Stored::open(&arguments.out, subject, &arguments.traffic);
    let mut stored = subjects.iter().map(open).collect::<Result<Vec<Stored>>>()?;
    let paths: BTreeSet<&Path> = stored.iter().map(|stored| stored.path.as_path()).collect();
    if paths.len() < stored.len() {
        return Err(CliError::Mistake(
            "a kernel is given twice\n  next step: give each kernel once".to_owned(),
        )
        .into());
    }
    let also = CountOptions::default();
    let options = GuestOptions { nic: arguments.traffic.nic, also, features: true, cache: &cache };
    let all = [features.clone(), pairs.iter().map(|pair| pair.both.clone()).collect()].concat();
    let failed = measure_all(arguments, &subjects, options, &all, &mut stored);
    let lists: Vec<PriceList> = stored.into_iter().map(|stored| stored.list).collect();
    let margin = arguments.judgement.margin();
    let findings = Findings {
        failed,
        repeat: repeat_arguments(arguments),
        ..Findings::new(&lists, &features, &pairs, margin)
    };
    if let (true, Some(first)) = (lists.iter().all(|l| l.boots.is_empty()), findings.failed.first())
    {
        return Err(CliError::Environment(format!("{}: {}", first.kernel, first.why)).into());
    }
    if let Some(directory) = &arguments.parquet {
        parquet::write(directory, &findings)?;
    }
    arguments.form.print(&document::document(&findings))?;
    let exit = verdict::exit_of(findings.comparisons.iter(), arguments.judgement.fail_on);
    Ok(match findings.failed.is_empty() {
        false if exit == Exit::Done => Exit::Environment,
        _ => exit,
    })
}

/// Arguments that are necessary to count one of the features again.
fn repeat_arguments(arguments: &Arguments) -> RepeatArguments {
    let quoted = |path: &PathBuf| quote(&path.to_string_lossy());
    let option = |name: &str, path: &PathBuf| format!(" {name} {}", quoted(path));
    let disks: Vec<String> = arguments.kernels.iter().map(quoted).collect();
    let kernels = arguments.kernel.iter().map(|path| option("--kernel", path)).collect::<String>();
    let catalogue = arguments.catalogue.as_ref().map(|path| option("--catalogue", path));
    RepeatArguments {
        kernels: (!kernels.is_empty()).then(|| disks.join(" ") + &kernels),
        options: catalogue.unwrap_or_default(),
    }
}

/// The system of all kernels.
fn system(subjects: &[Subject]) -> Result<System> {
    let system = subjects.first().map_or(System::Linux, Subject::system);
    match subjects.iter().find(|subject| subject.system() != system) {
        None => Ok(system),
        Some(other) => Err(CliError::Mistake(format!(
            "{}: of another system than {}\n  next step: count Linux and FreeBSD with two commands",
            other.name, subjects[0].name
        ))
        .into()),
    }
}

/// Features of the built-in catalogue that the words select; all without words.
///
/// # Errors
/// If a word selects nothing.
pub(super) fn features_of(
    system: System,
    family: Family,
    words: &[String],
) -> Result<Vec<Feature>> {
    let all = catalogue::read(catalogue::built_in(system), "built-in catalogue")?;
    catalogue::select(all, family, words)
}

/// The features to count.
fn features(arguments: &Arguments, system: System) -> Result<Vec<Feature>> {
    let (family, words) = (arguments.traffic.family, &arguments.only);
    let Some(path) = &arguments.catalogue else { return features_of(system, family, words) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Mistake(format!("{}: {error}", path.display())))?;
    catalogue::select(catalogue::read(&text, &path.display().to_string())?, family, words)
}

/// Prints the features: of the given catalogue, or of all systems.
fn list(arguments: &Arguments) -> Result<Exit> {
    let of = |system: System| features(arguments, system).map(|found| (system.name(), found));
    let listed = match arguments.catalogue {
        Some(_) => vec![("", features(arguments, System::Linux)?)],
        None => {
            // A word may name a feature of one system only.
            let (linux, freebsd) = (of(System::Linux), of(System::FreeBsd));
            let found: Vec<_> = [&linux, &freebsd].into_iter().flatten().cloned().collect();
            if found.is_empty() { vec![linux?] } else { found }
        }
    };
    arguments.form.print(&FeatureList::new(&listed).document())?;
    Ok(Exit::Done)
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
    if total == 0 && stored.iter().all(|stored| !stored.list.boots.is_empty()) {
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
                measure(subject, options, &arguments.traffic, features, stored, &progress);
            let uncounted = stored.failures.iter().map(|(name, (_, why))| format!("{name}: {why}"));
            let reasons = measured.err().map(|error| format!("{error:#}")).into_iter();
            let kernel = || subject.name.clone();
            failed.extend(reasons.chain(uncounted).map(|why| Failed { kernel: kernel(), why }));
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
