//! Interface to Slurm's own programs, as far as shares need them.
//!
//! It does not use Slurm's accounting, which many clusters lack.

use crate::error::CliError;
use anyhow::Result;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Format of squeue's output: id, state, nodes, reason for waiting.
const FORMAT: &str = "%i|%T|%N|%r";

/// The programs `sbatch`, `squeue` and `scancel`.
#[derive(Debug, Default)]
pub(super) struct Slurm;

/// A job to submit.
pub(super) struct Job<'a> {
    pub(super) name: String,
    /// Indices of an array's jobs in sbatch's syntax; `None` for a single job.
    pub(super) array: Option<String>,
    /// The job that must end first, with any result.
    pub(super) after: Option<String>,
    /// Path of its output; `%a` is the index in the array.
    pub(super) log: PathBuf,
    pub(super) script: PathBuf,
    /// True if it needs whole machines.
    pub(super) is_exclusive: bool,
    /// The user's own options.
    pub(super) options: &'a [String],
}

/// A job in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// Its id; `ARRAY_INDEX` for a job of an array.
    pub(super) id: String,
    /// Slurm's name of its state: PENDING, RUNNING ...
    pub(super) state: String,
    /// The machine that runs it; empty while it waits.
    pub(super) node: String,
    /// Reason for waiting.
    pub(super) reason: String,
}

impl Slurm {
    /// Submits a job, and returns its id.
    ///
    /// # Errors
    /// If sbatch is missing or refuses the job.
    pub(super) fn submit(&self, job: &Job<'_>) -> Result<String> {
        let output = run("sbatch", &job.arguments())?;
        let stdout = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() {
            let next = "check that `sinfo` shows the cluster, and give the options it requires \
                        with --sbatch=OPTION";
            return Err(refused("sbatch", &output, next).into());
        }
        // `ID;CLUSTER` if there are several clusters.
        let id = stdout.split(';').next().unwrap_or_default().to_owned();
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            let why = format!("sbatch names no job: it said `{stdout}`\n  next step: see squeue");
            return Err(CliError::Environment(why).into());
        }
        Ok(id)
    }

    /// Returns those of the jobs that are waiting or running; the jobs of an array separately.
    ///
    /// # Errors
    /// If squeue is missing or fails.
    pub(super) fn queued(&self, ids: &[String]) -> Result<Vec<Queued>> {
        let mut found = Vec::new();
        for id in ids {
            let format = format!("--format={FORMAT}");
            let output = run(
                "squeue",
                &["--noheader", "--array", &format, "--jobs", id].map(OsString::from),
            )?;
            if !output.status.success() {
                // Slurm forgets a job some time after its end.
                if String::from_utf8_lossy(&output.stderr).contains("Invalid job id") {
                    continue;
                }
                let next = "see that `squeue` answers here: until it does, nobody knows which \
                            jobs are in the queue";
                return Err(refused("squeue", &output, next).into());
            }
            found.extend(read(&String::from_utf8_lossy(&output.stdout)));
        }
        Ok(found)
    }

    /// Cancels jobs.
    ///
    /// # Errors
    /// If scancel is missing or fails.
    pub(super) fn cancel(&self, ids: &[String]) -> Result<()> {
        let output = run("scancel", &ids.iter().map(OsString::from).collect::<Vec<_>>())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let next = format!(
                    "see with `squeue` which of the jobs {} are left, and whose they are",
                    ids.join(" and ")
                );
                Err(refused("scancel", &output, &next).into())
            }
        }
    }
}

impl Queued {
    /// The id of its array; its own id if it belongs to none.
    pub(super) fn array(&self) -> &str {
        self.id.split('_').next().unwrap_or_default()
    }
}

impl Job<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["--parsable", "--requeue", "--open-mode=append"].map(OsString::from).to_vec();
        arguments.push(format!("--job-name={}", self.name).into());
        let mut log = OsString::from("--output=");
        log.push(&self.log);
        arguments.push(log);
        arguments.extend(self.array.iter().map(|array| format!("--array={array}").into()));
        arguments.extend(self.after.iter().map(|id| format!("--dependency=afterany:{id}").into()));
        arguments.extend(self.is_exclusive.then(|| "--exclusive".into()));
        arguments.extend(self.options.iter().map(OsString::from));
        arguments.push(self.script.as_os_str().to_owned());
        arguments
    }
}

fn run(program: &str, arguments: &[OsString]) -> Result<Output> {
    Command::new(program).args(arguments).output().map_err(|error| {
        CliError::Environment(format!(
            "can't start {program}: {error}\n  next step: install Slurm's programs (Debian: \
             slurm-client) and see that `sinfo` shows the cluster; without a queue each share can be \
             measured by hand: fwdlab run EXPERIMENT.toml --share 1/4"
        ))
        .into()
    })
}

fn refused(program: &str, output: &Output, next: &str) -> CliError {
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let message = if message.is_empty() { output.status.to_string() } else { message };
    CliError::Environment(format!("{program} refused: {message}\n  next step: {next}"))
}

/// Parses squeue's output in [`FORMAT`]. Jobs that have ended but are not forgotten yet are
/// excluded.
fn read(text: &str) -> Vec<Queued> {
    let jobs = text.lines().filter_map(|line| {
        let mut cells = line.trim().splitn(4, '|').map(str::to_owned);
        let id = cells.next().filter(|id| !id.is_empty())?;
        let (state, node) = (cells.next()?, cells.next().unwrap_or_default());
        Some(Queued { id, state, node, reason: cells.next().unwrap_or_default() })
    });
    let ended = [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ];
    jobs.filter(|job| !ended.contains(&job.state.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_returns_waiting_or_running_jobs() {
        let text = "7_4|PENDING||Resources\n7_1|RUNNING|n1|None\n7_2|COMPLETING|n2|None\n\
                    7_3|COMPLETED|n2|None\n\n";
        let ids: Vec<String> = read(text).into_iter().map(|job| job.id).collect();
        assert_eq!(ids, ["7_4", "7_1", "7_2"]);
        assert_eq!((read(text)[1].node.as_str(), read(text)[1].array()), ("n1", "7"));
    }

    #[test]
    fn arguments_request_exclusive_machines_for_timed_jobs() {
        let options = ["--partition=racks".to_owned()];
        let job = |is_exclusive| Job {
            name: "fwdlab-x".into(),
            array: Some("1-3%2".into()),
            after: None,
            log: "/o/.shares/%a.log".into(),
            script: "/o/.shares/share.sh".into(),
            is_exclusive,
            options: &options,
        };
        let words = |job: Job<'_>| -> Vec<String> {
            job.arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(
            words(job(true)),
            [
                "--parsable",
                "--requeue",
                "--open-mode=append",
                "--job-name=fwdlab-x",
                "--output=/o/.shares/%a.log",
                "--array=1-3%2",
                "--exclusive",
                "--partition=racks",
                "/o/.shares/share.sh"
            ]
        );
        assert!(!words(job(false)).contains(&"--exclusive".to_owned()));
    }
}
