//! Scripts of the jobs: one for a share, one for the merge of all shares.

use super::{Arguments, ExperimentDirectory};
use crate::experiment::{STORE, quoted};
use crate::shard::SHARES;
use anyhow::{Context, Result};
use fwdlab_model::settings::TestbedKind;
use std::fs;
use std::path::{Path, PathBuf};

/// The scripts of an experiment.
pub(super) struct Scripts {
    pub(super) share: PathBuf,
    pub(super) merge: PathBuf,
}

/// Writes the scripts next to the shares.
///
/// # Errors
/// If they can't be written, or the path of this program is unknown.
pub(super) fn write(
    arguments: &Arguments,
    place: &ExperimentDirectory<'_>,
    shares: u32,
) -> Result<Scripts> {
    let program = std::env::current_exe().context("finding this program")?;
    let directory = place.shares();
    let scripts = Scripts { share: directory.join("share.sh"), merge: directory.join("merge.sh") };
    let write = |path: &Path, text: String| {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    };
    write(&scripts.share, share(arguments, place, &program, shares))?;
    write(&scripts.merge, merge(place.out, &program))?;
    Ok(scripts)
}

fn word(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// The script of a share. It replaces the shell with the program, so that Slurm's signals reach the
/// program.
fn share(
    arguments: &Arguments,
    place: &ExperimentDirectory<'_>,
    program: &Path,
    shares: u32,
) -> String {
    let experiment =
        std::path::absolute(&arguments.experiment).unwrap_or_else(|_| arguments.experiment.clone());
    let line = arguments.overrides.command_line("run", &experiment, Some(place.out));
    let rest = line.strip_prefix("fwdlab ").unwrap_or(&line);
    let calibration = if arguments.no_calibration { " --no-calibration" } else { "" };
    // A controller that was lost with its node keeps its leases for some time.
    let is_lab = place.plan.base.testbed.kind == TestbedKind::Ssh;
    let wait = if is_lab { " --wait 15min" } else { "" };
    format!(
        "#!/bin/sh\n# Written by `fwdlab submit`: a share of the experiment.\nexec {} {rest}{calibration}{wait} \
         --share \"$SLURM_ARRAY_TASK_ID/{shares}\" --bed \"$SLURMD_NODENAME\"\n",
        word(program)
    )
}

/// The script that merges the shares. After the merge, it only writes the report.
fn merge(out: &Path, program: &Path) -> String {
    let (program, store) = (word(program), word(&out.join(STORE)));
    let (shares, out) = (word(&out.join(SHARES)), word(out));
    format!(
        "#!/bin/sh\n# Written by `fwdlab submit`: the shares become one store.\n\
         [ -e {store} ] || {program} merge {shares} --out {out} || exit\n\
         exec {program} report {out}\n"
    )
}

/// Indices of an array's jobs in sbatch's syntax: `1-3,7%4`, at most four at the same time.
pub(super) fn array(numbers: &[u32], at_once: Option<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let list = written.collect::<Vec<String>>().join(",");
    at_once.map_or(list.clone(), |most| format!("{list}%{most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_writes_numbers_as_ranges() {
        assert_eq!(array(&[1, 2, 3, 7, 9, 10], None), "1-3,7,9-10");
        assert_eq!(array(&[4], Some(2)), "4%2");
    }
}
