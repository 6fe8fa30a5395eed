//! Git as a program: commits of a user's repository, checked out elsewhere.
//!
//! Nothing is written into the user's repository: a bare repository borrows its objects
//! (gitrepository-layout(5), `objects/info/alternates`), and worktrees belong to it.

use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Digits of a commit's name in reports.
const SHORT: usize = 12;

/// A commit's name as reports show it.
pub(crate) fn short(commit: &str) -> String {
    commit.chars().take(SHORT).collect()
}

/// Removes git's own variables from the environment of a program, so that the repository of a hook
/// is not mistaken for the intended one.
pub(crate) fn git_free(mut command: Command) -> Command {
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_"))
    {
        if !name.to_string_lossy().starts_with("GIT_CONFIG") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns git's output, or its complaint as the error.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = git_free(Command::new("git"));
    let plain = ["core.hooksPath=/dev/null", "commit.gpgSign=false", "log.showSignature=false"];
    command.arg("-C").arg(directory).args(plain.iter().flat_map(|one| ["-c", one]));
    command.args(arguments);
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no git\n  next step: install it".to_owned(),
        _ => format!("git can't be started: {error}"),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("git failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Returns the full name of a commit.
///
/// # Errors
/// If the repository does not know it, with git's complaint.
pub(crate) fn commit(repository: &Path, name: &str) -> Result<String, String> {
    let revision = format!("{name}^{{commit}}");
    git(repository, &["rev-parse", "--verify", "--end-of-options", &revision])
}

/// Makes the bare clone `source` below `directory`, which borrows the objects of `repository`, unless
/// it exists; returns its path.
///
/// # Errors
/// With git's complaint.
pub(crate) fn borrow(repository: &Path, directory: &Path) -> Result<PathBuf, String> {
    let clone = directory.join("source");
    let path_in =
        |name: &str| git(repository, &["rev-parse", "--path-format=absolute", "--git-path", name]);
    // Of a shallow clone: its oldest commits, whose parents are missing. A fetch changes them.
    let shallow = PathBuf::from(path_in("shallow")?);
    let follow_shallow = |clone: PathBuf| {
        let own = clone.join("shallow");
        let result = match shallow.exists() {
            true => fs::copy(&shallow, &own).map(drop),
            false if own.exists() => fs::remove_file(&own),
            false => Ok(()),
        };
        result.map(|()| clone).map_err(|error| format!("{}: {error}", own.display()))
    };
    if clone.join("HEAD").exists() {
        return follow_shallow(clone);
    }
    // Created under another name and renamed, so that the clone is complete or absent.
    let new = directory.join(format!("source-{}", std::process::id()));
    let _ = fs::remove_dir_all(&new);
    // `git clone --shared` does not borrow from shallow clones.
    let format = git(repository, &["rev-parse", "--show-object-format"])?;
    let format = format!("--object-format={format}");
    git(directory, &["init", "--quiet", "--bare", &format, "--", &new.display().to_string()])?;
    let alternates = new.join("objects/info/alternates");
    fs::write(&alternates, path_in("objects")? + "\n")
        .map_err(|error| format!("{}: {error}", alternates.display()))?;
    if let Err(error) = fs::rename(&new, &clone) {
        let _ = fs::remove_dir_all(&new);
        if !clone.join("HEAD").exists() {
            return Err(error.to_string());
        }
    }
    follow_shallow(clone)
}

/// Adds a worktree at a commit to a bare clone; earlier remains at that path are removed.
///
/// # Errors
/// With git's complaint.
pub(crate) fn add_worktree(clone: &Path, tree: &Path, commit: &str) -> Result<(), String> {
    let path = tree.display().to_string();
    git(clone, &["worktree", "prune"])?;
    git(clone, &["worktree", "add", "--quiet", "--detach", "--force", &path, commit])?;
    Ok(())
}

/// Directory below `base` for the builds of a repository by one command; each command has its own.
pub(crate) fn directory(base: &Path, repository: &Path, build: &str) -> PathBuf {
    // FNV-1a (Fowler, Noll and Vo 1991).
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in format!("{}\0{build}", repository.display()).bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    base.join(format!("{name}-{hash:016x}"))
}

/// Makes the path of a directory of builds absolute.
///
/// # Errors
/// If the current directory is unknown.
pub(crate) fn absolute(directory: &Path) -> Result<PathBuf> {
    std::path::absolute(directory).context("the directory of builds")
}
