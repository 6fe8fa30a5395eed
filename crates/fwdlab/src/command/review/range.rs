//! Commits of Linux as builds: a range of a repository, or a mailed series of patches.
//!
//! All commits are built one after the other in the same worktree, so that each build only compiles
//! what its commit touches. Their kernels are kept by commit.

use super::Arguments;
use super::steps::BuildName;
use crate::error::CliError;
use crate::git::{self, git, git_free, short};
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::words;
use fwdlab_netio::process::die_with_us;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Configuration of the forwarding path.
const SMALL: &str = include_str!("forwarding.config");
/// Image that a build of Linux for x86-64 makes.
const IMAGE: &str = "arch/x86/boot/bzImage";
/// Lines of a failed build that are shown.
const LAST: usize = 3;
/// Bytes of kept kernels, beyond which the oldest are deleted.
const KEPT: u64 = 4 << 30;
/// Environment that makes builds of equal sources equal.
const REPRODUCIBLE: [(&str, &str); 5] = [
    ("KBUILD_BUILD_TIMESTAMP", "1970-01-01"),
    ("KBUILD_BUILD_USER", "fwdlab"),
    ("KBUILD_BUILD_HOST", "fwdlab"),
    ("KBUILD_BUILD_VERSION", "1"),
    ("LOCALVERSION", ""),
];

/// Commits in order, and the directory in which they are built.
pub(super) struct Range {
    /// Contains the clone, the worktree, the log and the kernels.
    directory: PathBuf,
    /// Commits with their subjects; the first is the base.
    commits: Vec<(String, String)>,
    /// Configuration (`.config`) of the builds; `None` for the small one.
    config: Option<String>,
    /// Command that builds; `None` for Linux's own.
    command: Option<Vec<String>>,
    /// The commit in the worktree, if it is configured.
    checked_out: Option<String>,
    /// Keeps other processes out of the worktree.
    _lock: File,
}

impl Range {
    /// Finds the commits that the arguments name; `None` if they name kernels.
    ///
    /// # Errors
    /// If git is missing or does not know the commits, patches don't apply, or files can't be
    /// written.
    pub(super) fn find(arguments: &Arguments, cache: &Path) -> Result<Option<Range>> {
        let [only] = arguments.builds.as_slice() else { return Ok(None) };
        let text = only.to_string_lossy().into_owned();
        let is_series = is_mailbox(only);
        let ends = text.split_once("..").filter(|_| !only.exists());
        if !is_series && ends.is_none() {
            return Ok(None);
        }
        let repository = arguments.repo.canonicalize().map_err(|error| {
            CliError::Mistake(format!("--repo {}: {error}", arguments.repo.display()))
        })?;
        let repository = match git(&repository, &["rev-parse", "--show-toplevel"]) {
            Ok(root) => PathBuf::from(root),
            // A bare one.
            Err(_) => repository,
        };
        if let Some((first, last)) = ends
            && (first.is_empty() || last.starts_with('.'))
        {
            let why = format!("{text}: not a range of commits\n  next step: write BASE..HEAD");
            return Err(CliError::Mistake(why).into());
        }
        let base = ends.map_or(arguments.base.as_str(), |(base, _)| base);
        let base = git::commit(&repository, base)
            .map_err(|why| CliError::Mistake(format!("{base}: {why}")))?;
        let command = arguments.build.as_deref().map(words::split).transpose();
        let command = command.map_err(|why| CliError::Mistake(format!("--build: {why}")))?;
        let read = |path: &PathBuf| {
            fs::read_to_string(path)
                .map_err(|error| CliError::Mistake(format!("{}: {error}", path.display())))
        };
        let config = arguments.config.as_ref().map(read).transpose()?;
        let parent = match &arguments.builds_in {
            Some(directory) => git::absolute(directory)?,
            None => cache.join("review"),
        };
        let words = arguments.build.as_deref().unwrap_or_default();
        let build = format!("{words}\0{}\0{}", config.as_deref().unwrap_or(SMALL), compiler());
        let directory = git::directory(&parent, &repository, &build);
        fs::create_dir_all(directory.join("kernels"))
            .with_context(|| directory.display().to_string())?;
        let lock = lock(&directory)?;
        let (commits, checked_out) = (Vec::new(), None);
        let mut range = Range { directory, commits, config, command, checked_out, _lock: lock };
        let clone = git::borrow(&repository, &range.directory).map_err(CliError::Environment)?;
        let last = match ends {
            Some((_, last)) => {
                let last = if last.is_empty() { "HEAD" } else { last };
                git::commit(&repository, last)
                    .map_err(|why| CliError::Mistake(format!("{last}: {why}")))?
            }
            None => range.apply(&clone, &base, only)?,
        };
        range.check_out(&clone, &base)?;
        range.commits = list(&range.tree(), &base, &last)?;
        if let Some((first, _)) = range.commits.first().filter(|(first, _)| *first != base) {
            terminal::warn(&format!(
                "a merge in the range contains {}: the first commit is compared with its own parent {}",
                short(&base),
                short(first)
            ));
        }
        if range.commits.len() < 2 {
            let why = format!("{text}: no commits\n  next step: name the older commit first");
            return Err(CliError::Mistake(why).into());
        }
        if range.command.is_none() && !range.tree().join("arch/x86/configs").is_dir() {
            let why = format!(
                "{}: not a source tree of Linux\n  next step: name one with --repo, or give \
                 --build",
                repository.display()
            );
            return Err(CliError::Mistake(why).into());
        }
        Ok(Some(range))
    }

    fn tree(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// Names of the commits, with their subjects.
    pub(super) fn names(&self) -> Vec<BuildName> {
        let name = |(commit, subject): &(String, String)| BuildName {
            name: short(commit),
            subject: Some(subject.clone()),
            file: None,
        };
        self.commits.iter().map(name).collect()
    }

    /// Applies a series to `base` in the worktree; returns the last commit.
    fn apply(&self, clone: &Path, base: &str, series: &Path) -> Result<String> {
        self.check_out(clone, base)?;
        let series = series.canonicalize().with_context(|| series.display().to_string())?;
        let path = series.display().to_string();
        let who = ["-c", "user.name=fwdlab", "-c", "user.email=fwdlab@localhost"];
        let tree = self.tree();
        // Fixed dates, so that a series results in the same commits each time.
        let apply = ["am", "--quiet", "--3way", "--committer-date-is-author-date"];
        let attempt = |more: &[&str]| {
            let result = git(&tree, &[&who[..], &apply, more, &["--", &path]].concat());
            result.inspect_err(|_| drop(git(&tree, &["am", "--abort"])))
        };
        // Cover letters and replies contain no patch. Git before 2.35 can't leave them out.
        let applied =
            attempt(&["--empty=drop"]).or_else(|why| match why.contains("unknown option") {
                true => attempt(&[]),
                false => Err(why),
            });
        if let Err(why) = applied {
            return Err(CliError::Mistake(format!(
                "{path}: the series does not apply to {}: {why}\n  next step: give another --base",
                short(base)
            ))
            .into());
        }
        Ok(git(&tree, &["rev-parse", "HEAD"]).map_err(CliError::Environment)?)
    }

    /// Checks a commit out in the worktree; products of builds stay.
    fn check_out(&self, clone: &Path, commit: &str) -> Result<()> {
        let tree = self.tree();
        let failed = |why| CliError::Environment(format!("checking out {commit}: {why}"));
        if !tree.join(".git").exists() {
            git::add_worktree(clone, &tree, commit).map_err(failed)?;
        }
        // Of a series that was being applied when fwdlab ended.
        let _ = git(&tree, &["am", "--abort"]);
        let check_out = ["checkout", "--quiet", "--force", "--detach", commit];
        git(&tree, &check_out).map_err(failed)?;
        Ok(())
    }

    /// Returns the kernel of a commit, which is built unless it was built before; the reason if it
    /// does not build.
    ///
    /// # Errors
    /// If files can't be written, or git or the command is missing.
    pub(super) fn kernel(&mut self, number: usize) -> Result<Result<PathBuf, String>> {
        let commit = self.commits[number].0.clone();
        let kept = self.directory.join("kernels").join(format!("{}.bzImage", short(&commit)));
        if kept.exists() {
            return Ok(Ok(kept));
        }
        let clone = self.directory.join("source");
        self.check_out(&clone, &commit)?;
        if let Err(why) = self.build(&commit)? {
            self.checked_out = None;
            return Ok(Err(why));
        }
        self.checked_out = Some(commit);
        let part = kept.with_extension("part");
        let fault = || kept.display().to_string();
        fs::copy(self.tree().join(IMAGE), &part).with_context(fault)?;
        fs::rename(&part, &kept).with_context(fault)?;
        delete_oldest(&self.directory.join("kernels"), &kept)?;
        Ok(Ok(kept))
    }

    /// Builds the commit in the worktree; the reason if it does not build.
    fn build(&self, commit: &str) -> Result<Result<(), String>> {
        let tree = self.tree();
        let log = self.directory.join(format!("{}.log", short(commit)));
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        let run = |words: &[&str]| -> Result<bool> {
            let mut command = git_free(Command::new(words[0]));
            command.args(&words[1..]).current_dir(&tree).envs(REPRODUCIBLE).stdin(Stdio::null());
            let (out, err) = (file.try_clone()?, file.try_clone()?);
            let status = die_with_us(command.stdout(out).stderr(err)).status();
            let status = status.map_err(|error| {
                CliError::Environment(format!("`{}` can't be started: {error}", words[0]))
            })?;
            Ok(status.success())
        };
        let _ = fs::remove_file(tree.join(IMAGE));
        let jobs = std::thread::available_parallelism().map_or(1, |jobs| jobs.get());
        let jobs = format!("-j{jobs}");
        let is_built = match &self.command {
            Some(words) => {
                let config = tree.join(".config");
                // Not rewritten: make would build everything again.
                let is_there =
                    |text: &String| fs::read_to_string(&config).is_ok_and(|old| old == *text);
                if self.config.as_ref().is_some_and(|text| !is_there(text)) {
                    self.configure(&config)?;
                }
                run(&words.iter().map(String::as_str).collect::<Vec<_>>())?
            }
            None => {
                let is_ready = !self.needs_configuration(commit)
                    || (run(&["make", "-s", "tinyconfig"])?
                        && self.configure(&tree.join(".config"))?
                        && run(&["make", "-s", "olddefconfig"])?);
                is_ready && run(&["make", "-s", &jobs, "bzImage"])?
            }
        };
        if is_built && tree.join(IMAGE).is_file() {
            return Ok(Ok(()));
        }
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST)..].join(" | ");
        let none = if is_built { format!("it makes no {IMAGE} | ") } else { String::new() };
        Ok(Err(format!("it does not build: {none}{last}; see {}", log.display())))
    }

    /// Replaces or extends the smallest configuration.
    fn configure(&self, file: &Path) -> Result<bool> {
        let content = match &self.config {
            Some(config) => config.clone(),
            None => fs::read_to_string(file).unwrap_or_default() + SMALL,
        };
        fs::write(file, content).with_context(|| file.display().to_string())?;
        Ok(true)
    }

    /// True unless the worktree is configured and no rule of the configuration changed since.
    fn needs_configuration(&self, commit: &str) -> bool {
        let Some(before) = &self.checked_out else { return true };
        let changed = git(&self.tree(), &["diff", "--name-only", before, commit]);
        changed.map_or(true, |files| {
            files.lines().any(|file| file.contains("Kconfig") || file.starts_with("scripts/"))
        })
    }
}

/// Versions of the compilers and linkers that a build of Linux may use, and settings of the
/// environment that change it.
fn compiler() -> String {
    let of = |name: &str| std::env::var(name).ok();
    let prefix = of("CROSS_COMPILE").unwrap_or_default();
    let tools = ["gcc", "ld", "as"].map(|name| format!("{prefix}{name}"));
    let llvm = ["clang", "ld.lld"].map(str::to_owned);
    let cc = of("CC").unwrap_or_else(|| "cc".to_owned());
    let version = |name: &String| {
        let output = Command::new(name).arg("--version").stdin(Stdio::null()).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().lines().next().map(str::to_owned)
    };
    let versions: Vec<_> = tools.iter().chain(&llvm).chain([&cc]).map(version).collect();
    let settings = ["LLVM", "KCFLAGS", "KCPPFLAGS", "CROSS_COMPILE", "CC"].map(of);
    format!("{versions:?} {settings:?}")
}

/// Locks a directory of builds.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    file.try_lock().map_err(|error| {
        CliError::Environment(format!(
            "{}: {error}: another review builds there\n  next step: wait for its end, or give \
             another directory with --builds-in",
            directory.display()
        ))
    })?;
    Ok(file)
}

/// True if the file is a mailbox: its first line is a message's.
fn is_mailbox(path: &Path) -> bool {
    fs::read(path).is_ok_and(|content| content.starts_with(b"From "))
}

/// Lists the commits after `base` up to `last`, with their subjects, and before them the commit
/// with which the first is compared: its parent, which is `base` unless a merge contains `base`.
fn list(tree: &Path, base: &str, last: &str) -> Result<Vec<(String, String)>> {
    if git(tree, &["merge-base", "--is-ancestor", base, last]).is_err() {
        let why = format!(
            "{} does not come before {}: there are no commits between them\n  next step: name an \
             ancestor (`git merge-base {} {}`)",
            short(base),
            short(last),
            short(base),
            short(last)
        );
        return Err(CliError::Mistake(why).into());
    }
    let between = format!("{base}..{last}");
    let format = "--format=%H %s";
    let list = ["log", "--first-parent", "--reverse", format, &between];
    let commits = git(tree, &list).map_err(CliError::Environment)?;
    let first = commits.split(' ').next().filter(|first| !first.is_empty());
    let parent = first.map(|first| git(tree, &["rev-parse", "--verify", &format!("{first}^1")]));
    let base = parent.transpose().map_err(CliError::Environment)?.unwrap_or(base.to_owned());
    let base = git(tree, &["log", "-1", format, &base]).map_err(CliError::Environment)?;
    let log = format!("{base}\n{commits}");
    // A subject can be empty.
    let line = |line: &str| {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        (commit.to_owned(), subject.to_owned())
    };
    Ok(log.lines().filter(|line| !line.is_empty()).map(line).collect())
}

/// Deletes the oldest kernels while there are too many; never `last`.
fn delete_oldest(directory: &Path, last: &Path) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let file = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        Some((meta.modified().ok()?, meta.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.filter_map(|entry| file(entry.ok()?)).collect();
    files.sort();
    let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, bytes, path) in files.iter().filter(|(.., path)| path != last) {
        if size <= KEPT {
            break;
        }
        fs::remove_file(path).with_context(|| path.display().to_string())?;
        size -= bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(directory: &Path, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=x", "-c", "user.email=x@x"];
        git(directory, &[&who[..], arguments].concat()).expect("git")
    }

    /// Writes a file and commits it; returns the commit.
    fn commit(directory: &Path, file: &str, text: &str) -> String {
        fs::write(directory.join(file), text).expect("a file");
        run(directory, &["add", file]);
        run(directory, &["commit", "-q", "-m", &format!("{file}: {text}")]);
        run(directory, &["rev-parse", "HEAD"])
    }

    fn repository() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        run(directory.path(), &["init", "-q", "-b", "main"]);
        directory
    }

    fn subjects(commits: &[(String, String)]) -> Vec<&str> {
        commits.iter().map(|(_, subject)| subject.as_str()).collect()
    }

    #[test]
    fn commits_of_a_branch_that_merged_its_base_are_compared_with_their_parents() {
        let repository = repository();
        let root = repository.path();
        commit(root, "a", "1");
        run(root, &["checkout", "-q", "-b", "topic"]);
        commit(root, "t", "1");
        run(root, &["checkout", "-q", "main"]);
        let base = commit(root, "a", "2");
        run(root, &["checkout", "-q", "topic"]);
        run(root, &["merge", "-q", "-m", "merge", "main"]);
        let last = commit(root, "t", "2");
        let commits = list(root, &base, &last).expect("commits");
        assert_eq!(subjects(&commits), ["a: 1", "t: 1", "merge", "t: 2"]);
        let commits = list(root, &format!("{last}^"), &last).expect("commits");
        assert_eq!(subjects(&commits), ["merge", "t: 2"]);
    }

    #[test]
    fn series_with_a_cover_letter_and_a_reply_applies_to_a_shallow_clone() {
        let repository = repository();
        let root = repository.path();
        commit(root, "a", "0");
        let base = commit(root, "a", "1");
        commit(root, "a", "2");
        commit(root, "b", "1");
        let format = ["format-patch", "--stdout", "--cover-letter", &base];
        let reply = "\n\nFrom 0 Mon Sep 17 00:00:00 2001\nFrom: x <x@x>\nDate: Mon, 1 Jan 2024 \
                     00:00:00 +0000\nSubject: Re: [PATCH 1/2]\n\nOn Monday x wrote:\n> diff --git \
                     a/a b/a\n> +2\n\nWhy?\n";
        let directory = tempfile::tempdir().expect("a directory");
        let series = directory.path().join("series.mbox");
        fs::write(&series, run(root, &format) + reply).expect("a file");
        run(root, &["reset", "-q", "--hard", &base]);
        let shallow = directory.path().join("shallow");
        let from = format!("file://{}", root.display());
        run(root, &["clone", "-q", "--depth", "1", &from, &shallow.display().to_string()]);
        let lock = lock(directory.path()).expect("a lock");
        let range = Range {
            directory: directory.path().to_owned(),
            commits: Vec::new(),
            config: None,
            command: None,
            checked_out: None,
            _lock: lock,
        };
        let clone = git::borrow(&shallow, directory.path()).expect("a clone");
        let last = range.apply(&clone, &base, &series).expect("a series");
        let commits = list(&range.tree(), &base, &last).expect("commits");
        assert_eq!(subjects(&commits), ["a: 1", "a: 2", "b: 1"]);
        assert_eq!(git::borrow(&shallow, directory.path()), Ok(clone));
    }
}
