//! Builds the BPF objects of `crates/netio/bpf`.
//!
//! The objects are committed, so that building fwdlab needs neither clang nor the kernel's headers.
//! After changing a source, run `cargo xtask bpf` and commit both. Sources are compiled by relative
//! paths and stripped of debugging information (BTF stays), so the same compiler produces the same
//! bytes wherever the repository is.

use crate::must_not_skip;
use crate::tool::{Scratch, run};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "crates/netio/bpf";
const PROGRAMS: [&str; 4] = ["sender", "receiver", "redirect", "forward"];
/// File with the version of the clang that compiled the committed objects.
const VERSION_FILE: &str = "CLANG_VERSION";

/// Compiles the programs and overwrites the committed objects.
pub(crate) fn build(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let version = clang_version()?;
    for program in PROGRAMS {
        compile(&folder, program, &folder.join(object(program)))?;
        println!("{FOLDER}/{}: compiled by clang {version}", object(program));
    }
    fs::write(folder.join(VERSION_FILE), format!("{version}\n"))?;
    Ok(())
}

/// Compiles the programs in a scratch folder and compares them with the committed objects.
pub(crate) fn check(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let committed_version = fs::read_to_string(folder.join(VERSION_FILE))
        .with_context(|| format!("cannot read {FOLDER}/{VERSION_FILE}"))?;
    let (committed_version, local_version) = (committed_version.trim(), clang_version()?);
    let scratch = Scratch::new()?;
    let mut differing = Vec::new();
    for program in PROGRAMS {
        let (committed, fresh) = (folder.join(object(program)), scratch.0.join(object(program)));
        compile(&folder, program, &fresh)?;
        let read =
            |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        if read(&committed)? == read(&fresh)? {
            println!("{FOLDER}/{}: unchanged", object(program));
        } else {
            differing.push(object(program));
        }
    }
    match verdict(&differing, committed_version, &local_version) {
        Verdict::Same => Ok(()),
        Verdict::Stale(why) => bail!(why),
        Verdict::Unknown(why) if must_not_skip() => bail!(why),
        Verdict::Unknown(why) => {
            eprintln!("SKIPPED: {why}");
            Ok(())
        }
    }
}

/// Result of a comparison.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    /// The objects were not compiled from the sources.
    Stale(String),
    /// Another compiler: different bytes prove nothing.
    Unknown(String),
}

fn verdict(differing: &[String], committed_version: &str, local_version: &str) -> Verdict {
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    let names = differing.join(", ");
    if differing.is_empty() {
        Verdict::Same
    } else if major(committed_version) == major(local_version) {
        Verdict::Stale(format!(
            "{names} in {FOLDER} are not what clang {local_version} compiles from the sources \
             (the committed ones are by clang {committed_version})\n  next step: cargo xtask bpf"
        ))
    } else {
        Verdict::Unknown(format!(
            "cannot compare {names} in {FOLDER}: compiled by clang {committed_version}, installed \
             is clang {local_version}\n  next step: install clang {}",
            major(committed_version)
        ))
    }
}

fn object(program: &str) -> String {
    format!("{program}.bpf.o")
}

fn compile(folder: &Path, program: &str, output: &Path) -> Result<()> {
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"]);
    // Debian keeps <asm/types.h> in a folder per architecture, which clang does not search for the
    // target bpf.
    let multiarch = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    if Path::new(&multiarch).is_dir() {
        clang.arg(format!("-I{multiarch}"));
    }
    clang.args(["-ffile-compilation-dir=.", "-c", &format!("{program}.bpf.c"), "-o"]).arg(output);
    run(clang.current_dir(folder), "apt-get install clang libbpf-dev linux-libc-dev")?;
    run(Command::new("llvm-strip").arg("-g").arg(output), "apt-get install llvm").map(drop)
}

fn clang_version() -> Result<String> {
    let text = run(Command::new("clang").arg("-dumpversion"), "apt-get install clang")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_is_stale_for_the_same_compiler_only() {
        let differing = ["sender.bpf.o".to_owned()];
        assert_eq!(verdict(&[], "14.0.6", "19.1.7"), Verdict::Same);
        assert!(matches!(verdict(&differing, "14.0.6", "14.0.0"), Verdict::Stale(why)
            if why.contains("sender.bpf.o")));
        assert!(matches!(verdict(&differing, "14.0.6", "19.1.7"), Verdict::Unknown(why)
            if why.contains("14.0.6") && why.contains("19.1.7")));
    }

    #[test]
    fn sources_objects_and_compiler_version_are_committed() {
        let folder = crate::root().join(FOLDER);
        for program in PROGRAMS {
            assert!(folder.join(format!("{program}.bpf.c")).is_file());
            assert!(folder.join(object(program)).is_file());
        }
        let version = fs::read_to_string(folder.join(VERSION_FILE)).expect("the version");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
    }
}
