//! The fuzz runner: `cargo xtask fuzz TARGET|all [SECONDS]`.
//!
//! `cargo fuzz` does the work. This runner adds a target's corpus, seeds and dictionary, which it
//! finds by the target's name in `fuzz/`. Without a nightly compiler it uses the stable one,
//! without the address sanitizer.

use crate::tool;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Default time per target, seconds.
const SECONDS: u32 = 60;
/// Inputs found by earlier runs, a folder per target.
const CORPUS: &str = "fuzz/corpus";
/// Initial inputs, a folder per target.
const SEEDS: &str = "fuzz/seeds";

/// Runs one target, or all in turn.
///
/// # Errors
/// Fails if there is no such target, `cargo-fuzz` is missing, or an input fails.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<()> {
    let all = targets(root)?;
    let (requested, seconds) = match words {
        [target] => (target, SECONDS),
        [target, seconds] => (target, seconds.parse().context("SECONDS must be a whole number")?),
        _ => bail!("usage: cargo xtask fuzz TARGET|all [SECONDS]\ntargets: {}", all.join(", ")),
    };
    let chosen: Vec<&String> =
        all.iter().filter(|name| requested == "all" || *name == requested).collect();
    ensure!(
        !chosen.is_empty(),
        "no fuzz target `{requested}`\n  next step: use one of {}",
        all.join(", ")
    );
    require("cargo", &["fuzz", "--version"], "cargo-fuzz", "cargo install cargo-fuzz")?;
    require(
        "c++",
        &["--version"],
        "a C++ compiler, which builds libFuzzer,",
        "apt-get install g++",
    )?;
    let has_nightly = tool::run(Command::new("rustup").args(["toolchain", "list"]), "rustup")
        .is_ok_and(|list| list.contains("nightly"));
    for target in chosen {
        let corpus = root.join(CORPUS).join(target);
        std::fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        let words = arguments(root, target, seconds, has_nightly);
        println!("+ cargo {}", words.join(" "));
        let mut cargo = Command::new("cargo");
        // The toolchain that runs this program must not be inherited.
        cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        if !has_nightly {
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        let status = cargo.args(&words).current_dir(root).status().context("cannot run cargo")?;
        ensure!(
            status.success(),
            "{target} failed\n  next step: if fuzz/artifacts/{target} has a new input, fix its cause \
             and make a test of it"
        );
    }
    Ok(())
}

/// Returns an error with the next step if a program cannot be run.
fn require(program: &str, arguments: &[&str], name: &str, next_step: &str) -> Result<()> {
    let output = Command::new(program).args(arguments).output();
    let is_here = output.is_ok_and(|output| output.status.success());
    ensure!(is_here, "{name} is missing\n  next step: {next_step}");
    Ok(())
}

/// Prints the targets.
///
/// # Errors
/// Always fails, because no target is given.
pub(crate) fn usage(root: &Path) -> Result<()> {
    run(root, &[])
}

/// Returns the names of the targets, sorted.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn arguments(root: &Path, target: &str, seconds: u32, has_nightly: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if has_nightly {
        words.push("+nightly".into());
    }
    words.extend(["fuzz", "run"].map(str::to_owned));
    if !has_nightly {
        words.extend(["--sanitizer", "none"].map(str::to_owned));
    }
    words.push(target.to_owned());
    let corpus = format!("{CORPUS}/{target}");
    let seeds = match target {
        "experiment_file" => "experiments".to_owned(),
        target => format!("{SEEDS}/{target}"),
    };
    // libFuzzer adds inputs to the first folder, which must not be the committed seeds.
    if root.join(&seeds).is_dir() {
        words.extend([corpus, seeds]);
    }
    words.push("--".into());
    words.push(format!("-max_total_time={seconds}"));
    let dictionary = format!("fuzz/dictionaries/{target}.dict");
    if root.join(&dictionary).is_file() {
        words.push(format!("-dict={dictionary}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_include_corpus_seeds_and_dictionary() {
        let root = crate::root();
        let line = |target: &str| arguments(&root, target, 5, true).join(" ");
        assert_eq!(
            line("lab_file"),
            "+nightly fuzz run lab_file fuzz/corpus/lab_file fuzz/seeds/lab_file -- \
             -max_total_time=5 -dict=fuzz/dictionaries/lab_file.dict"
        );
        assert_eq!(line("stamp"), "+nightly fuzz run stamp -- -max_total_time=5");
        assert!(line("experiment_file").contains("fuzz/corpus/experiment_file experiments --"));
    }

    #[test]
    fn missing_tool_is_reported_with_its_next_step() {
        let error = require("/no/such/tool", &[], "the tool", "apt-get install tool");
        let text = error.expect_err("no such program").to_string();
        assert_eq!(text, "the tool is missing\n  next step: apt-get install tool");
        assert!(require("true", &[], "true", "").is_ok());
    }

    #[test]
    fn arguments_disable_the_sanitizer_without_nightly() {
        let line = arguments(&crate::root(), "stamp", 5, false).join(" ");
        assert_eq!(line, "fuzz run --sanitizer none stamp -- -max_total_time=5");
    }

    #[test]
    fn fuzz_manifest_lists_every_target() {
        let manifest = std::fs::read_to_string(crate::root().join("fuzz/Cargo.toml")).unwrap();
        for target in targets(&crate::root()).unwrap() {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
    }
}
