//! Tests the Debian package in a minimal system: installs, uses and removes it.

use super::{FOLDER, run};
use crate::must_not_skip;
use crate::tool::Scratch;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that creates the system.
const MAKER: &str = "mmdebstrap";

/// Checks after the installation: shell commands that must succeed.
const USED: &[&str] = &[
    "fwdlab --version",
    // doctor must name missing programs; a system without them is no failure of fwdlab.
    "fwdlab doctor > /tmp/doctor; grep -q nft /tmp/doctor",
    "cd /tmp && fwdlab run /usr/share/doc/fwdlab/experiments/sim.toml --out /tmp/sim",
    "test -s /tmp/sim/README.md && test -s /tmp/sim/index.html && test -s /tmp/sim/run.sqlite",
    "fwdlab show /tmp/sim/run.sqlite",
    "printf '1\\n2\\n3\\n' > /tmp/a; printf '4\\n5\\n6\\n' > /tmp/b; fwdlab ministat /tmp/a /tmp/b",
    "gzip --test /usr/share/man/man1/fwdlab.1.gz /usr/share/man/man1/fwdlab-run.1.gz",
    "bash -n /usr/share/bash-completion/completions/fwdlab",
    "test -s /usr/share/zsh/vendor-completions/_fwdlab",
    "test -s /usr/share/fish/vendor_completions.d/fwdlab.fish",
    "dpkg --verify fwdlab",
    "dpkg --remove fwdlab && ! test -e /usr/bin/fwdlab",
];

/// Installs the package of `target/package` in a new root, uses it and removes it.
pub(crate) fn try_in_bare_root(root: &Path) -> Result<()> {
    let package = package(&root.join(FOLDER))?;
    if let Err(why) = possible() {
        if must_not_skip() {
            bail!(why);
        }
        eprintln!("SKIPPED: {why}");
        return Ok(());
    }
    let scratch = Scratch::new()?;
    let system = scratch.0.join("system");
    // The release that runs here.
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("/etc/os-release names no VERSION_CODENAME")?;
    run(Command::new(MAKER)
        .args(["--variant=essential", "--mode=root", codename])
        .arg(&system)
        .args(sources()))?;
    fs::copy(&package, system.join("tmp/fwdlab.deb"))?;
    let install = ["dpkg --install /tmp/fwdlab.deb"];
    for command in install.iter().chain(USED) {
        println!("+ {command}");
        let status = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--mount-proc"])
            .arg(format!("--root={}", system.display()))
            .args(["/bin/sh", "-c", command])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .status()
            .context("cannot run unshare")?;
        ensure!(status.success(), "in the bare root: `{command}`: {status}");
    }
    println!("{}: installed, used and removed in a bare root", package.display());
    Ok(())
}

/// Returns the package made before.
fn package(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut packages = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages
        .next()
        .with_context(|| format!("no package in {FOLDER}\n  next step: cargo xtask package"))
}

/// Checks that the test can run here; the error is the reason.
fn possible() -> Result<()> {
    let id = run(Command::new("id").arg("-u"))?;
    ensure!(id.trim() == "0", "creating a Debian system requires root");
    let maker = Command::new(MAKER).arg("--version").output();
    ensure!(maker.is_ok(), "{MAKER} is missing\n  next step: apt-get install {MAKER}");
    Ok(())
}

/// Returns files with apt's sources.
fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.push("/etc/apt/sources.list".into());
    let of_apt = |path: &PathBuf| {
        let known = path.extension().is_some_and(|end| end == "list" || end == "sources");
        known && fs::metadata(path).is_ok_and(|file| file.len() > 0)
    };
    files.retain(of_apt);
    files.sort();
    files
}
