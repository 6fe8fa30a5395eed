//! Tests the program in current systems: Debian 13 and sid, each in its own root file system, with
//! their versions of `ip`, `nft`, `ethtool`, `perf`, OpenSSH and QEMU.
//!
//! In each root, `scripts/deps.sh` installs missing programs, `fwdlab doctor` runs, the
//! demonstration forwards real packets, and the tests that parse the output of other programs pass.
//! In sid, the documents are built as a book. One kernel is counted in each root; every function must have the same instructions as under this
//! system's QEMU.

mod counts;
mod root;

use crate::{must_not_skip, tool};
use anyhow::{Context, Result, bail};
use counts::Counts;
use root::Root;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::ScopedJoinHandle;

/// The releases.
const RELEASES: [&str; 2] = ["trixie", "sid"];
/// Test levels whose programs are installed in the roots.
const LEVELS: &str = "demo vm";
/// Checks in a root: shell commands that must succeed.
const USED: &[&str] = &[
    "target/debug/fwdlab doctor",
    // Exit code 4: the machine is too busy for a verdict, but packets were forwarded.
    "target/debug/fwdlab run experiments/demo.toml --blocks 2 --fresh --out /tmp/demo || test $? -eq 4",
    "test -s /tmp/demo/index.html && test -s /tmp/demo/run.sqlite",
];
/// The first release with a package of mdBook, and the command that builds the documents with it.
const BOOK: (&str, &str) = (
    "sid",
    "apt-get install --yes --quiet mdbook && mdbook build docs && test -s target/book/EXPERIMENTS.html",
);
/// Test programs that parse the output of other programs: package, name.
const TESTS: &[(&str, &str)] = &[("fwdlab-bench", "profile")];

/// Tests the program in all releases.
///
/// # Errors
/// Fails if a check fails in one of them.
pub(crate) fn try_in_all(repository: &Path) -> Result<()> {
    if let Err(why) = possible() {
        if must_not_skip() {
            bail!(why);
        }
        eprintln!("SKIPPED: {why}");
        return Ok(());
    }
    // This build also builds the program.
    let tests = test_programs(repository)?;
    let kernel = kernel(repository)?;
    let folder = repository.join("target/systems");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    // Installing packages takes most of the time, one CPU for each root.
    let (roots, counts) = std::thread::scope(|scope| {
        let roots = RELEASES.map(|release| scope.spawn(|| prepare(repository, release)));
        let counts = here(repository, &kernel, &folder);
        let join =
            |root: ScopedJoinHandle<'_, _>| root.join().unwrap_or_else(|it| resume_unwind(it));
        (roots.into_iter().map(join).collect::<Result<Vec<Root>>>(), counts)
    });
    let (roots, mut counted) = (roots?, vec![counts?]);
    for root in &roots {
        USED.iter().try_for_each(|command| root.run(command))?;
        if root.name() == BOOK.0 {
            root.run(BOOK.1)?;
        }
        tests.iter().try_for_each(|test| root.run(test))?;
        counted.push(inside(root, &kernel)?);
    }
    if counts::differ(&counted) {
        // A second boot shows whether the function scatters under one QEMU.
        counted[0].add(&here(repository, &kernel, &folder)?);
        for (counts, root) in counted[1..].iter_mut().zip(&roots) {
            counts.add(&inside(root, &kernel)?);
        }
    }
    counts::compare(&counted)
}

/// Returns the root of a release with the programs that the checks need.
fn prepare(repository: &Path, release: &str) -> Result<Root> {
    let root = Root::new(repository, release)?;
    // deps.sh reports cargo as missing, which the root does not need.
    root.run(&format!("scripts/deps.sh {LEVELS} || true"))?;
    Ok(root)
}

/// Checks that roots can be created here; the error is the reason.
fn possible() -> Result<()> {
    let id = tool::run(Command::new("id").arg("-u"), "apt-get install coreutils")?;
    if id.trim() != "0" {
        bail!("creating a root file system of another release requires root");
    }
    tool::run(Command::new("mmdebstrap").arg("--version"), "apt-get install mmdebstrap")?;
    Ok(())
}

/// Returns commands that run the test programs, one at a time.
fn test_programs(repository: &Path) -> Result<Vec<String>> {
    let programs = crate::test::build(repository, None)?;
    let commands = TESTS.iter().map(|(package, name)| {
        let name = format!("{package}::{name}");
        let program = programs.iter().find(|program| program.name == name);
        let program = program.with_context(|| format!("no test program {name}"))?;
        let (directory, file) = (program.directory.display(), program.file.display());
        Ok(format!("cd {directory} && {file} --test-threads 1 --quiet"))
    });
    commands.collect()
}

/// Returns a kernel of `make kernels`.
fn kernel(repository: &Path) -> Result<PathBuf> {
    let folder = repository.join("target/kernels");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut packages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    packages.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    packages.sort();
    let first = packages.into_iter().next();
    first.with_context(|| format!("{}: no kernel\nnext step: make kernels", folder.display()))
}

/// Returns the command that counts one kernel, into two files of `folder`.
fn count(kernel: &Path, folder: &str) -> String {
    format!(
        "target/debug/fwdlab count {} --bursts 9 --calls {folder}/calls --json > {folder}/counts.json",
        kernel.display()
    )
}

/// Counts the kernel in this system.
fn here(repository: &Path, kernel: &Path, folder: &Path) -> Result<Counts> {
    let command = count(kernel, &folder.display().to_string());
    println!("+ {command}");
    let mut shell = Command::new("sh");
    tool::run(shell.args(["-c", &command]).current_dir(repository), "scripts/deps.sh vm")?;
    read("here", |name| folder.join(name))
}

/// Counts the kernel in a root.
fn inside(root: &Root, kernel: &Path) -> Result<Counts> {
    root.run(&count(kernel, "/tmp"))?;
    read(&root.name(), |name| root.file(&format!("tmp/{name}")))
}

fn read(system: &str, file: impl Fn(&str) -> PathBuf) -> Result<Counts> {
    let calls = file("calls");
    let entries = fs::read_dir(&calls).with_context(|| calls.display().to_string())?;
    let mut stacks = entries.flatten().map(|entry| entry.path());
    let folded = stacks.find(|path| path.extension().is_some_and(|end| end == "folded"));
    let folded = folded.with_context(|| format!("{}: no stacks", calls.display()))?;
    Counts::read(system, &file("counts.json"), &folded)
}
