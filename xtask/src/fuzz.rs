//! The fuzz runner: `cargo xtask fuzz TARGET|all [SECONDS]`.
//!
//! `cargo fuzz` does the work; this adds a target's corpus, seeds and dictionary, which are
//! found by its name below `fuzz/`. Without a nightly compiler the stable one is used, without
//! the address sanitizer.

use crate::tool;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Time per target unless the command line has one, seconds.
const SECONDS: u32 = 60;
/// Inputs that a run found, a folder per target.
const CORPUS: &str = "fuzz/corpus";
/// Inputs to begin with, a folder per target.
const SEEDS: &str = "fuzz/seeds";

/// Runs one target, or each in turn.
///
/// # Errors
/// If there is no such target, `cargo-fuzz` is missing, or an input fails.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<()> {
    let all = targets(root)?;
    let (wanted, seconds) = match words {
        [target] => (target, SECONDS),
        [target, seconds] => (target, seconds.parse().context("seconds are a whole number")?),
        _ => bail!("fuzz TARGET|all [SECONDS]; targets: {}", all.join(", ")),
    };
    let chosen: Vec<&String> =
        all.iter().filter(|name| wanted == "all" || *name == wanted).collect();
    ensure!(!chosen.is_empty(), "no target {wanted}; targets: {}", all.join(", "));
    let help = Command::new("cargo").args(["fuzz", "--version"]).output();
    ensure!(
        help.is_ok_and(|output| output.status.success()),
        "cargo-fuzz is missing; try `cargo install cargo-fuzz`"
    );
    let has_nightly = tool::run(Command::new("rustup").args(["toolchain", "list"]), "rustup")
        .is_ok_and(|list| list.contains("nightly"));
    for target in chosen {
        let corpus = root.join(CORPUS).join(target);
        std::fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        let words = arguments(root, target, seconds, has_nightly);
        println!("+ cargo {}", words.join(" "));
        let mut cargo = Command::new("cargo");
        // The toolchain of this program must not decide.
        cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        if !has_nightly {
            cargo.env("RUSTC_BOOTSTRAP", "1");
        }
        let status = cargo.args(&words).current_dir(root).status().context("cargo can't be run")?;
        ensure!(status.success(), "{target} failed");
    }
    Ok(())
}

/// Prints the targets.
///
/// # Errors
/// Always: no target is named.
pub(crate) fn usage(root: &Path) -> Result<()> {
    run(root, &[])
}

/// Names of the targets, sorted.
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
    fn targets_get_their_corpus_seeds_and_dictionary() {
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
    fn stable_compiler_has_no_sanitizer() {
        let line = arguments(&crate::root(), "stamp", 5, false).join(" ");
        assert_eq!(line, "fuzz run --sanitizer none stamp -- -max_total_time=5");
    }

    #[test]
    fn every_target_is_a_program_of_the_fuzz_package() {
        let manifest = std::fs::read_to_string(crate::root().join("fuzz/Cargo.toml")).unwrap();
        for target in targets(&crate::root()).unwrap() {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
    }
}
