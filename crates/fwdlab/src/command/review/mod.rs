//! `fwdlab review`: which of several builds of a kernel changed forwarding.
//!
//! The first build is counted, which names the functions that packets execute ([`counts`]). Each
//! further build is compared with the one before it by the machine code of these functions
//! ([`steps`]): if it is equal, nothing that the packets execute has changed, and the build is not
//! booted. Otherwise it is counted. Builds are kernels or commits of a repository ([`sources`],
//! [`range`]).

mod counts;
mod document;
mod follow;
mod range;
mod sources;
mod steps;
#[cfg(test)]
mod tests;

use super::counted_guest::{self, JudgementArguments};
use super::kernels::SourceArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::verdict::{self, FailOn};
use anyhow::Result;
use counts::Counter;
use follow::Follow;
use fwdlab_packet::Family;
use fwdlab_vm::guest::System;
use fwdlab_vm::kernel;
use range::Range;
use sources::Kernel;
use std::path::{Path, PathBuf};
use steps::Review;

/// Find which builds of a kernel changed forwarding, and by how many instructions per packet.
///
/// The first build boots in QEMU and forwards packets, which shows the functions that they execute.
/// In each further build the machine code of these functions is compared with the build before,
/// after addresses are replaced with what they refer to: functions, variables, strings. If all are
/// equal, the packets execute what they executed before, and the build needs no boot. All others
/// are counted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab review old.deb new.deb
  fwdlab review kernels                            packages in a directory, the oldest first
  fwdlab review old.deb new.deb --only nft-rules --only conntrack-established
  fwdlab review v6.1.1..v6.1.2 --repo ~/linux      each commit of a range
  fwdlab review series.mbox --repo ~/linux --base net-next/main
  fwdlab review HEAD~5..HEAD --repo ~/linux --config ~/config
  fwdlab review old.deb new.deb --fail-on worse --format ktap
  fwdlab review kernels --follow --series 6.1      each new kernel of Debian's series, daily

Commits are built one after the other in a worktree outside the repository, with a small
configuration of the forwarding path unless --config or --build is given. Builds are kept, and so
are counts: repeat the command to continue.

Equal code means equal instructions, not equal time: code at other addresses can be faster or
slower. Not compared are data that only code outside of these functions writes: values that the boot
computes, settings, and tables that drivers register.")]
pub(crate) struct Arguments {
    /// Kernels of Linux, as for `fwdlab count`, the oldest first; or a range of commits (BASE..HEAD);
    /// or a series of patches in a mailbox
    #[arg(required = true, value_name = "BUILD")]
    builds: Vec<PathBuf>,
    /// Repository of the commits; nothing is written into it
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Commit to which the patches of a mailbox apply
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    base: String,
    /// Configuration of Linux (`.config`) for the builds [default: a small one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Command that builds a commit in a worktree of it [default: make olddefconfig bzImage]
    #[arg(long, value_name = "COMMAND")]
    build: Option<String>,
    /// Directory in which commits are built and kernels are kept [default: ~/.cache/fwdlab/review]
    #[arg(long, value_name = "DIR")]
    builds_in: Option<PathBuf>,
    /// Address family of the packets; may be given several times [default: inet and inet6]
    #[arg(long, value_name = "FAMILY", value_parser = crate::value_enum::any::<Family>())]
    family: Vec<Family>,
    /// Review also what packets execute with this feature of `fwdlab prices --list`, or a group of
    /// features; may be given several times
    #[arg(long, value_name = "FEATURE")]
    only: Vec<String>,
    /// Count builds whose code is equal as well, and report differences
    #[arg(long)]
    verify: bool,
    /// Fetch new kernels of Debian into the directory BUILD first, and report only builds that no
    /// earlier call has reported for these packets; a page in --out has all
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    source: SourceArguments,
    /// Directory of the stored counts, which `fwdlab prices` shares
    #[arg(long, value_name = "DIRECTORY", default_value = "results/prices")]
    out: PathBuf,
    #[command(flatten)]
    judgement: JudgementArguments,
    #[command(flatten)]
    form: FormArguments,
}

/// Reviews the builds, and prints the result.
///
/// # Errors
/// If a path is not a kernel, a range or a mailbox, or the first build could not be counted.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let cache = counted_guest::prepare()?;
    let families = match arguments.family.as_slice() {
        [] => vec![Family::Inet, Family::Inet6],
        given => given.to_vec(),
    };
    let counter = Counter::new(&families, &arguments.only, &arguments.out, &cache)?;
    let margin = arguments.judgement.margin();
    let follow = Follow::begin(arguments)?;
    let range = match follow {
        Some(_) => None,
        None => Range::find(arguments, &cache)?,
    };
    let mut review = match range {
        Some(range) => {
            let mut source = sources::Commits { range, counter, cache: &cache, code: None };
            steps::review(&mut source, margin, arguments.verify)?
        }
        None => {
            let kernels = kernels(&arguments.builds, follow.is_some(), &cache)?;
            let mut source = sources::Kernels { kernels, counter };
            steps::review(&mut source, margin, arguments.verify)?
        }
    };
    if let Some(follow) = &follow {
        follow.keep_new(&mut review, document::document)?;
        eprintln!("all builds: {}", follow.page(&review).display());
    }
    arguments.form.print(&document::document(&review))?;
    if let Some(follow) = &follow {
        follow.record(&review)?;
    }
    Ok(exit(&review, arguments.judgement.fail_on))
}

/// Finds kernels to review: at least two of Linux, unless the directory grows. A package in a directory that is no complete
/// kernel counts as not built.
fn kernels(builds: &[PathBuf], is_growing: bool, cache: &Path) -> Result<Vec<Kernel>> {
    let find = |path: PathBuf| {
        let subject = match counted_guest::subjects(std::slice::from_ref(&path), &[], cache) {
            Ok(mut found) => found.pop().ok_or_else(|| "no kernel".to_owned()),
            Err(error) if builds.contains(&path) => return Err(error),
            Err(error) => Err(format!("{error:#}")),
        };
        let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Kernel { file, subject })
    };
    let paths = kernel::expand(builds);
    let mut kernels = paths.iter().cloned().map(find).collect::<Result<Vec<_>>>()?;
    for at in 0..kernels.len() {
        // As of two build trees.
        if kernels.iter().filter(|other| other.file == kernels[at].file).count() > 1 {
            kernels[at].file = paths[at].display().to_string();
        }
    }
    let mut found = kernels.iter().filter_map(|kernel| kernel.subject.as_ref().ok());
    if let Some(other) = found.find(|subject| subject.system() != System::Linux) {
        return Err(CliError::Mistake(format!(
            "{}: the machine code of FreeBSD can't be compared\n  next step: compare counts with \
             `fwdlab count`",
            other.name
        ))
        .into());
    }
    if kernels.len() < 2 && !is_growing {
        return Err(CliError::Mistake(
            "only one kernel is given\n  next step: give the kernel before it as the first one, or \
             a range of commits (BASE..HEAD)"
                .to_owned(),
        )
        .into());
    }
    Ok(kernels)
}

/// Exit code: from the comparisons, unless a build could not be counted.
fn exit(review: &Review, fail_on: Option<FailOn>) -> Exit {
    let exit = verdict::exit_of(review.comparisons(), fail_on);
    let is_known = (0..review.profiles.len()).all(|at| !review.lacks_from_the_start(at));
    match exit {
        Exit::Done if !review.is_complete() => Exit::Environment,
        Exit::Done if !is_known || review.new_losses().next().is_some() => Exit::Untrustworthy,
        _ => exit,
    }
}
