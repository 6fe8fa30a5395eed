//! State directory for lock and journal of testbeds. It outlives the process. No other user may
//! write to it, since the next process restores settings from the journal. State that outlives a
//! reboot of this machine has another directory.

use crate::error::CliError;
use fwdlab_bench::testbed::Paths;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Finds the directory, and creates it if not root. Call it before entering a user namespace, in
/// which `/run` is another directory and every user is root.
///
/// # Errors
/// Fails if the directory cannot be created, or belongs to another user.
pub(crate) fn paths() -> anyhow::Result<Paths> {
    let user = rustix::process::geteuid();
    if user.is_root() {
        let lasting = PathBuf::from("/var/lib/fwdlab");
        return Ok(Paths { lasting, ..of_state(PathBuf::from("/run/fwdlab"))? });
    }
    let state = lasting_directory().join(format!("fwdlab-{}", user.as_raw()));
    make_private(&state, user.as_raw())
        .map_err(|why| CliError::Environment(format!("{}: {why}", state.display())))?;
    let lasting = kept_directory().unwrap_or_else(|| state.clone());
    Ok(Paths { lasting, ..of_state(state)? })
}

/// The user's directory for state of programs; `None` without a home.
fn kept_directory() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let base = named("XDG_STATE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".local/state")));
    base.map(|base| base.join("fwdlab"))
}

/// Paths of testbeds that keep nothing on the machine.
///
/// # Errors
/// Fails if the file of this program cannot be found.
pub(crate) fn nowhere() -> anyhow::Result<Paths> {
    of_state(PathBuf::new())
}

fn of_state(state: PathBuf) -> anyhow::Result<Paths> {
    Ok(Paths { state, program: program()?, ..Paths::default() })
}

/// The cache directory: unpacked packages and the compiled plugin.
///
/// # Errors
/// Fails if the user has no cache directory: no one else may write to it, since QEMU loads the
/// plugin.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let base = named("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")));
    let base = base.ok_or_else(|| {
        CliError::Environment(
            "neither HOME nor XDG_CACHE_HOME names a directory\n  next step: set one of them"
                .into(),
        )
    })?;
    let cache = base.join("fwdlab");
    fs::create_dir_all(&cache)
        .map_err(|error| CliError::Environment(format!("{}: {error}", cache.display())))?;
    Ok(cache)
}

/// This program, which is started again as a router.
fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe().map_err(|error| {
        CliError::Environment(format!("this program's own file can't be found: {error}"))
    })?)
}

/// The first of the user's runtime directory, the directory for temporary files and `/tmp` that is
/// still reachable in our own user namespace.
fn lasting_directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .into_iter()
        .chain([std::env::temp_dir()])
        .filter_map(|path| path.canonicalize().ok())
        .find(|path| path.is_dir() && !path.starts_with("/run"))
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn make_private(directory: &Path, user: u32) -> Result<(), String> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(format!("{error}; set XDG_RUNTIME_DIR to a directory that can be written"));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err("is not a directory that only you can write to; remove it, or set \
                    XDG_RUNTIME_DIR to one of your own"
            .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn directory_of_another_user_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let mine = parent.path().join("mine");
        make_private(&mine, user).unwrap();
        make_private(&mine, user).unwrap();
        assert!(make_private(&mine, user + 1).is_err());
        fs::set_permissions(&mine, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(make_private(&mine, user).unwrap_err().contains("only you"));
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        assert!(make_private(&link, user).is_err());
        assert!(make_private(&parent.path().join("no/such"), user).is_err());
    }
}
