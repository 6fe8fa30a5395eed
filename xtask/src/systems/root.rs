//! A Debian system in a directory: created by `mmdebstrap`, entered by `chroot` in a separate mount
//! namespace, so that no mount remains.

use crate::tool;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that makes roots.
const MAKER: &str = "mmdebstrap";

/// Shell script that enters a root. Arguments: its path, the repository's path, a shell command.
/// The root is mounted onto itself, because `ip netns` needs a mount point above `/run/netns`.
const ENTER: &str = "\
set -e
mount --bind \"$1\" \"$1\"
mount -t proc proc \"$1/proc\"
mount --rbind /sys \"$1/sys\"
mount --rbind /dev \"$1/dev\"
mkdir -p \"$1$2\"
mount --bind \"$2\" \"$1$2\"
exec chroot \"$1\" /bin/sh -c \"cd '$2' && $3\"
";

/// A root file system of a release.
pub(crate) struct Root {
    path: PathBuf,
    repository: PathBuf,
}

impl Root {
    /// Returns the root of a release in `target/systems`; creates it if absent.
    ///
    /// # Errors
    /// Fails if the root cannot be created.
    pub(crate) fn new(repository: &Path, codename: &str) -> Result<Root> {
        let path = repository.join("target/systems").join(codename);
        let complete = path.join("etc/fwdlab-root");
        if !complete.exists() {
            // Remains of an interrupted attempt.
            if path.exists() {
                fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
            }
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
            let mut maker = Command::new(MAKER);
            maker.args(["--variant=apt", "--mode=root"]);
            // Snapshots of a release in development are valid for a week.
            maker.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
            maker.arg(codename).arg(&path);
            tool::run(&mut maker, "apt-get install mmdebstrap")?;
            fs::write(&complete, "").with_context(|| complete.display().to_string())?;
        }
        Ok(Root { path, repository: repository.to_owned() })
    }

    /// Returns the path of a file in the root.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// Runs a shell command in the root, in the repository's directory. The command must not
    /// contain double quotes.
    ///
    /// # Errors
    /// Fails if the command fails.
    pub(crate) fn run(&self, command: &str) -> Result<()> {
        println!("+ {}: {command}", self.name());
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "/bin/sh", "-c", ENTER, "enter"])
            .args([&self.path, &self.repository])
            .arg(command)
            .env_clear()
            .envs(environment())
            .status()
            .context("cannot run unshare")?;
        ensure!(status.success(), "in a root of {}: `{command}`: {status}", self.name());
        Ok(())
    }

    /// Returns the name of its release.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn environment() -> [(&'static str, &'static str); 3] {
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/root"),
        ("TERM", "dumb"),
    ]
}
