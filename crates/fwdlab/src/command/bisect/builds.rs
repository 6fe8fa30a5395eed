//! Commits as candidates: lists them and builds each one once, outside the user's checkout.
//!
//! Nothing is written into the user's repository: a clone in the cache (`git clone --shared`)
//! borrows its objects, and each requested commit gets its own worktree there. The outcome of a
//! build, success or failure, is kept. A killed build leaves no outcome and is repeated. A build
//! holds a lock, which its child processes inherit: a second build waits until no process of the
//! first one can write any more.

use crate::error::CliError;
use crate::git::{self, git, git_free, short};
use crate::signal::Stop;
use crate::{state_dir, terminal};
use anyhow::{Context, Result};
use fwdlab_model::candidates::Candidate;
use fwdlab_model::words;
use fwdlab_netio::process::{die_with_us, keep_open};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Names in a commit's directory: mark of a finished build, reason of a failed one, log, worktree.
const BUILT: &str = "built";
const FAILED: &str = "failed";
const LOG: &str = "log";
const TREE: &str = "tree";
/// Lines of a failed build that are shown.
const LAST: usize = 3;
/// Interval between checks of a build, and time that a build has to end after SIGTERM.
const LOOK: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(5);

/// Commits in order, and the directory in which they are built.
pub(super) struct Builds {
    repository: PathBuf,
    /// Contains the clone and a directory for each commit.
    directory: PathBuf,
    command: Vec<String>,
    commits: Vec<String>,
    stop: Stop,
}

/// Reason why a commit can't be built.
pub(super) type Failure = String;

/// Range of commits to search.
pub(super) struct Range<'a> {
    pub(super) repository: &'a Path,
    pub(super) good: &'a str,
    pub(super) bad: &'a str,
    /// Command, split into words as by a shell.
    pub(super) build: &'a str,
    /// Directory of the builds; `None` for the user's cache.
    pub(super) directory: Option<&'a Path>,
}

impl Builds {
    /// Lists the commits of a range: candidates, and a description of each.
    ///
    /// # Errors
    /// If git is missing or does not know the commits, or `good` doesn't come before `bad`.
    pub(super) fn of(range: &Range<'_>) -> Result<(Builds, Vec<Candidate>, Vec<String>)> {
        let command = words::split(range.build)
            .map_err(|why| CliError::Mistake(format!("--build `{}`: {why}", range.build)))?;
        let repository = range.repository.canonicalize().map_err(|error| {
            CliError::Mistake(format!("--repo {}: {error}", range.repository.display()))
        })?;
        let commit = |option: &str, name: &str| -> Result<String> {
            git::commit(&repository, name)
                .map_err(|why| CliError::Mistake(format!("{option} {name}: {why}")).into())
        };
        let (good, bad) = (commit("--good", range.good)?, commit("--bad", range.bad)?);
        if git(&repository, &["merge-base", "--is-ancestor", &good, &bad]).is_err() {
            let why = format!(
                "--good {} does not come before --bad {}: there are no commits between them\n  \
                 next step: name an ancestor (`git merge-base {} {}`)",
                range.good, range.bad, range.good, range.bad
            );
            return Err(CliError::Mistake(why).into());
        }
        let between = format!("{good}..{bad}");
        let format = "--format=%H %s (%an, %as)";
        let list = ["log", "--first-parent", "--reverse", format, &between];
        let first = ["log", "-1", format, &good];
        let log = [git(&repository, &first), git(&repository, &list)];
        let log = log.into_iter().collect::<Result<Vec<String>, String>>();
        let log = log.map_err(CliError::Environment)?.join("\n");
        let commits: Vec<(&str, &str)> =
            log.lines().filter_map(|line| line.split_once(' ')).collect();
        let directory = directory(range.directory, &repository, range.build)?;
        let candidates = commits.iter().map(|(commit, _)| Candidate {
            name: short(commit),
            build: directory.join(commit).join(TREE).display().to_string(),
            commit: (*commit).to_owned(),
        });
        let candidates = candidates.collect();
        let about = commits.iter().map(|(_, about)| (*about).to_owned()).collect();
        let commits = commits.iter().map(|(commit, _)| (*commit).to_owned()).collect();
        let stop = Stop::on_signals().context("listening to signals")?;
        Ok((Builds { repository, directory, command, commits, stop }, candidates, about))
    }

    /// Reason why a commit could not be built; `None` if it was built or not tried.
    pub(super) fn failed(&self, candidate: usize) -> Option<Failure> {
        fs::read_to_string(self.place(candidate).join(FAILED)).ok()
    }

    /// The first and the last commit, by their full names.
    pub(super) fn ends(&self) -> [&str; 2] {
        [&self.commits[0], &self.commits[self.commits.len() - 1]]
    }

    fn place(&self, candidate: usize) -> PathBuf {
        self.directory.join(&self.commits[candidate])
    }

    /// Builds a commit unless it is built already; with `verbose`, notes that this takes time.
    ///
    /// # Errors
    /// If the cache can't be written, if git or the command's program is missing, or on an
    /// interruption. A commit that can't be built is a result, not an error.
    pub(super) fn ready(&self, candidate: usize, verbose: bool) -> Result<Result<(), Failure>> {
        let place = self.place(candidate);
        let at = |error| CliError::Environment(format!("{}: {error}", place.display()));
        fs::create_dir_all(&self.directory).map_err(at)?;
        let lock = self.lock(&place, verbose)?;
        if place.join(BUILT).exists() {
            return Ok(Ok(()));
        }
        if let Some(why) = self.failed(candidate) {
            return Ok(Err(why));
        }
        let commit = &self.commits[candidate];
        if verbose {
            terminal::note(&format!("building {}", short(commit)));
        }
        self.check_out(&place, commit)?;
        let log = File::create(place.join(LOG)).map_err(at)?;
        let status = self.build(&place, &log, &lock)?;
        if status.success() {
            fs::write(place.join(BUILT), "").map_err(at)?;
            return Ok(Ok(()));
        }
        let text = fs::read(place.join(LOG)).map_err(at)?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST)..].join(" | ");
        let why =
            format!("it does not build ({status}): {last}; see {}", place.join(LOG).display());
        // A build that a signal ended (for example out of memory) may succeed next time.
        if status.code().is_some() {
            fs::write(place.join(FAILED), &why).map_err(at)?;
        }
        Ok(Err(why))
    }

    /// Locks a commit's directory; a build, or a process that it started, may hold the lock.
    fn lock(&self, place: &Path, verbose: bool) -> Result<File> {
        let path = place.with_extension("lock");
        let at = |error| CliError::Environment(format!("{}: {error}", path.display()));
        let file = File::create(&path).map_err(at)?;
        let mut is_noted = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if self.stop.requested() => return interrupted(),
                Err(TryLockError::WouldBlock) => {
                    if verbose && !is_noted {
                        let name = place.file_name().unwrap_or_default().to_string_lossy();
                        terminal::note(&format!(
                            "waiting for another build of {}, or what is left of one",
                            short(&name)
                        ));
                    }
                    is_noted = true;
                    std::thread::sleep(LOOK);
                }
                Err(TryLockError::Error(error)) => return Err(at(error).into()),
            }
        }
    }

    /// Creates a worktree of the clone at a commit, and removes the remains of a killed build.
    fn check_out(&self, place: &Path, commit: &str) -> Result<()> {
        let failed = |why: String| CliError::Environment(format!("checking out {commit}: {why}"));
        let clone = git::borrow(&self.repository, &self.directory).map_err(failed)?;
        if place.exists() {
            fs::remove_dir_all(place).map_err(|error| failed(error.to_string()))?;
        }
        fs::create_dir_all(place).map_err(|error| failed(error.to_string()))?;
        git::add_worktree(&clone, &place.join(TREE), commit).map_err(failed)?;
        Ok(())
    }

    fn build(&self, place: &Path, log: &File, lock: &File) -> Result<ExitStatus> {
        let (program, arguments) = (&self.command[0], &self.command[1..]);
        let log = || log.try_clone().context("the log of the build");
        let mut command = git_free(Command::new(program));
        command.args(arguments).current_dir(place.join(TREE)).process_group(0);
        command.stdin(Stdio::null()).stdout(log()?).stderr(log()?);
        keep_open(&mut command, vec![lock.as_raw_fd()]);
        let started = die_with_us(&mut command).spawn();
        let mut child = match started {
            // A script that is missing from the commit is the commit's own fault.
            Err(error) if error.kind() == ErrorKind::NotFound && program.contains('/') => {
                return Ok(ExitStatus::from_raw(127 << 8));
            }
            Err(error) => {
                let why = format!("--build: `{program}` can't be started: {error}");
                return Err(CliError::Environment(why).into());
            }
            Ok(child) => child,
        };
        while !self.stop.requested() {
            if let Some(status) = child.try_wait().context("waiting for the build")? {
                // The interruption ended it, not the commit.
                match status.signal() {
                    Some(_) if self.stop.requested() => break,
                    _ => return Ok(status),
                }
            }
            std::thread::sleep(LOOK);
        }
        end(&mut child);
        interrupted()
    }
}

/// Ends a build and its child processes: SIGTERM first, then SIGKILL.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    signal(Signal::TERM);
    let start = Instant::now();
    while start.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    signal(Signal::KILL);
    let _ = child.wait();
}

fn interrupted<T>() -> Result<T> {
    Err(CliError::Interrupted("interrupted while a commit was built".into()).into())
}

/// Directory of the builds of a repository by one command.
fn directory(requested: Option<&Path>, repository: &Path, build: &str) -> Result<PathBuf> {
    let base = match requested {
        Some(directory) => git::absolute(directory)?,
        None => state_dir::cache()?.join("builds"),
    };
    Ok(git::directory(&base, repository, build))
}
