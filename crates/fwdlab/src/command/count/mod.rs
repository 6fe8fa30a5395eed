//! `fwdlab count`: counts the instructions that a kernel executes per packet.
//!
//! Each kernel boots as a guest of QEMU, without privileges, and forwards batches in
//! lockstep while a plugin counts what it executes ([`boot`]). Every kernel is compared with the
//! first one in the same state, and every change with the same kernel before it
//! ([`findings`]), by the rules of experiments that count.

mod boot;
mod document;
mod findings;
mod graphs;
mod labels;
mod many;
mod misses;
mod state;

use super::counted_guest::{self, Failed, GuestOptions, JudgementArguments, TrafficArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::verdict::{self, FailOn};
use anyhow::{Context, Result};
use findings::Findings;
use fwdlab_vm::guest::CountOptions;
pub(super) use labels::short_names;
use state::State;
use std::path::PathBuf;

/// Count what forwarding a packet costs in a kernel of Linux or FreeBSD: instructions, by function.
///
/// The kernel boots in QEMU, emulated, and forwards packets in lockstep; a plugin counts what it
/// executes. That needs no privileges and does not depend on other work of this machine; totals
/// repeat within 0.5 %, most functions to the instruction. Instructions are not time: they do not
/// include the effects of caches, branches and contention between CPUs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab count linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb
  fwdlab count old.deb new.deb
  fwdlab count kernels                             packages in a directory, the oldest first
  fwdlab count running 6.12.43+deb12-cloud-amd64   installed kernels
  fwdlab count ~/linux --change 'sysctl -w net.ipv4.ip_early_demux=0'
  fwdlab count kernel.deb --change 'nft -f -' --input rules.nft --format markdown
  fwdlab count old.deb new.deb --under 'nft -f -' --input rules.nft
  fwdlab count old.deb new.deb --fail-on worse --margin 1% --format ktap
  fwdlab count kernel.deb --calls graphs
  fwdlab count kernel.deb --caches --change 'sh routes' --input routes.sh
  fwdlab count freebsd.qcow2 --change 'sysctl net.route.algo.inet.algo=radix4_lockless'
  fwdlab count freebsd.qcow2 --kernel /usr/obj/boot/kernel.mine
  fwdlab count kernel.deb --boots 3 --bursts 3 --functions 10
  fwdlab count kernels/*.deb --plot totals.svg --csv > totals.csv

A disk of FreeBSD (.raw, .img, .qcow2; also .zst) is never written; root must be let in on
its serial console without a password.

A kernel of Linux is a package (.deb of Debian and Ubuntu, .rpm of Fedora and openSUSE,
.pkg.tar.zst of Arch Linux, or what `make bindeb-pkg` and the like build), an installed kernel by
its release or `running`, a directory with /boot and /lib/modules, a build tree, or an image.
Packages that a kernel is divided into are found next to the one that is given; files that lie
elsewhere are given with commas between them (image.deb,modules.deb). `fwdlab kernels` lists and
fetches Debian's. A build tree has been built with `make bzImage modules`, and its modules are
looked for where `make modules_install INSTALL_MOD_PATH=modules` puts them.")]
pub(crate) struct Arguments {
    /// Kernels of Linux (packages, directories, releases of installed ones, `running`, build
    /// trees, images), or disks of FreeBSD; the first one is the baseline
    #[arg(required = true, value_name = "KERNEL")]
    kernels: Vec<PathBuf>,
    /// A kernel to boot the disks of FreeBSD with as well: a directory as below /boot, or
    /// one as .tar.zst; may be given several times
    #[arg(long, value_name = "PATH")]
    kernel: Vec<PathBuf>,
    /// Count again after this command of the guest's shell, in the same boot; may be given
    /// several times, one change after the other
    #[arg(long, value_name = "COMMAND")]
    change: Vec<String>,
    /// Count under this command's effect: executed in each guest before anything is counted;
    /// may be given several times
    #[arg(long, value_name = "COMMAND")]
    under: Vec<String>,
    /// Standard input of the commands
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    traffic: TrafficArguments,
    /// Number of boots of each kernel; several show how well counts repeat
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    boots: u32,
    /// Follow calls, and draw flame graphs into this directory, next to their folded stacks
    #[arg(long, value_name = "DIRECTORY")]
    calls: Option<PathBuf>,
    /// Model caches and count their misses: how often code and data would not have been cached. The
    /// model is not of any real machine
    #[arg(long)]
    caches: bool,
    /// Draw the totals of the kernels into this file (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Number of functions to show
    #[arg(long, default_value_t = 25, value_name = "N")]
    functions: usize,
    #[command(flatten)]
    judgement: JudgementArguments,
    #[command(flatten)]
    form: FormArguments,
}

impl Arguments {
    fn question(&self, kernels: usize, has_baseline: bool) -> findings::Question {
        findings::Question {
            family: self.traffic.family,
            batch: self.traffic.batch,
            boots: self.boots,
            under: self.under.clone(),
            margin: self.judgement.margin(),
            kernels,
            has_baseline,
        }
    }
}

/// Boots, counts and compares.
///
/// # Errors
/// If a path is not a kernel, a program is missing, or a guest does not forward.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let input = input(arguments)?;
    let cache = counted_guest::prepare()?;
    let (mut states, mut failed, mut has_baseline) = (Vec::new(), Vec::new(), true);
    let mut first_error = None;
    let subjects = counted_guest::subjects(&arguments.kernels, &arguments.kernel, &cache)?;
    let is_compared = subjects.len() > 1 || !arguments.change.is_empty();
    if arguments.judgement.fail_on.is_some() && !is_compared {
        return Err(CliError::Mistake(
            "--fail-on compares kernels or changes, and only one kernel is given\n  next step: give \
             the baseline before it"
                .to_owned(),
        )
        .into());
    }
    let features = !(arguments.change.is_empty() && arguments.under.is_empty());
    let also = CountOptions { calls: arguments.calls.is_some(), caches: arguments.caches };
    let options = GuestOptions { nic: arguments.traffic.nic, also, features, cache: &cache };
    for subject in &subjects {
        let before = states.len();
        for boot in 1..=arguments.boots {
            match boot::count(arguments, subject, options, &input) {
                Ok(found) if boot == 1 => states.extend(found),
                Ok(found) => state::add_boot(&mut states, found),
                // The other kernels are still counted.
                Err(error) if subjects.len() > 2 => {
                    // Fewer boots than of the others can't be compared with them.
                    states.truncate(before);
                    has_baseline &= before > 0 || !failed.is_empty();
                    failed.push(Failed { kernel: subject.name.clone(), why: format!("{error:#}") });
                    first_error.get_or_insert(error.context(subject.name.clone()));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    if let (true, Some(error)) = (states.is_empty(), first_error) {
        return Err(error);
    }
    let drawn = match &arguments.calls {
        Some(directory) => graphs::write(states.iter().flat_map(State::stacks), directory)?,
        None => Vec::new(),
    };
    let question = arguments.question(subjects.len(), has_baseline);
    let findings = Findings { failed, calls: drawn, ..Findings::new(&states, question) };
    if let Some(file) = &arguments.plot {
        let fail = || format!("{}: the plot can't be written there", file.display());
        std::fs::write(file, many::plot(&findings).wide).with_context(fail)?;
    }
    arguments.form.print(&document::document(&findings, arguments.functions))?;
    Ok(exit(&findings, arguments.judgement.fail_on))
}

/// Standard input of the commands; empty without `--input`.
fn input(arguments: &Arguments) -> Result<String> {
    let Some(path) = &arguments.input else { return Ok(String::new()) };
    let mistake = |text: String| Err(CliError::Mistake(text).into());
    if arguments.change.is_empty() && arguments.under.is_empty() {
        return mistake(
            "--input is read by commands, and none is given\n  next step: add --under or --change"
                .to_owned(),
        );
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) => mistake(format!("{}: {error}", path.display())),
    }
}

/// Exit code: from comparisons with the first kernel or, for a single kernel, from its changes.
fn exit(findings: &Findings, fail_on: Option<FailOn>) -> Exit {
    let exit = verdict::exit_of(findings.decisive(), fail_on);
    match findings.failed.is_empty() {
        false if exit == Exit::Done => Exit::Environment,
        _ => exit,
    }
}
