//! Tells the program its version, with the revision that it is built from when it
//! is known: `FWDLAB_VERSION`, e.g. `0.1.0 (73212c1-dirty)` (`git describe
//! --always --dirty`). Without git, or outside the project's own repository, the
//! version stands alone.
//!
//! And asks the linker to keep functions that are the same only once, where the linker is
//! known to be able to: a sixth of the program is generic code made again for types that
//! look alike.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let version = match revision() {
        Some(revision) => format!("{version} ({revision})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=FWDLAB_VERSION={version}");
    if links_by_lld() == Some(true) {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// True when this target's programs are linked by the lld that came with the compiler, and
/// nobody said otherwise.
fn links_by_lld() -> Option<bool> {
    let chosen = std::env::var_os("RUSTC_LINKER").is_some()
        || std::env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    let by_default = std::env::var("TARGET").ok()? == "x86_64-unknown-linux-gnu";
    let rustc = std::env::var_os("RUSTC")?;
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output().ok()?;
    let libraries = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let came = libraries.parent()?.join("bin/gcc-ld/ld.lld").exists();
    Some(by_default && came && !chosen)
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
    git(root, &["describe", "--always", "--dirty"])
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
