//! Tells the program its version, with the revision that it is built from when it
//! is known: `FWDLAB_VERSION`, e.g. `0.1.0 (73212c1-dirty)` (`git describe
//! --always --dirty`). Without git, or outside the project's own repository, the
//! version stands alone.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let version = match revision() {
        Some(revision) => format!("{version} ({revision})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=FWDLAB_VERSION={version}");
}

/// The revision, after saying what to watch for a change of it.
fn revision() -> Option<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    // Sources decide whether the tree is dirty; a change in any of them builds
    // this crate again anyway, so watching them costs no build.
    for source in sources(crates) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let root = crates.parent()?;
    if !git(root, &["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    // HEAD changes with the branch, its log with every commit.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    // Of the commit alone: a tag names the version, which is already there.
    git(root, &["describe", "--always", "--dirty", "--exclude=*"])
}

/// The folders of sources of all crates.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(crates).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("src")).filter(|source| source.is_dir()).collect()
}

/// What git prints, or nothing when it fails or isn't there.
fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
