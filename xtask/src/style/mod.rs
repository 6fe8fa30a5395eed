//! Counts violations of docs/STYLE.md per part of the tree: words by `typos` with the list
//! `_typos.toml`, phrases and question clauses by rules in this module, and subjects of commits.
//!
//! `docs/style.csv` records the counts. A count may fall, which `UPDATE=1` records; a count that
//! rises is an error.

mod phrases;

use crate::rules::lines;
use crate::tool;
use crate::tree::{File, SourceTree};
use anyhow::{Context, Result, bail};
use phrases::{PHRASES, QUESTIONS};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The record; a line per part: `part,hits`.
const RECORD: &str = "docs/style.csv";
/// Part for the subjects of commits.
const COMMITS: &str = "commits";
/// Maximum length of a subject, in characters.
const SUBJECT_MAX: usize = 72;

/// A style violation in a file.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    path: String,
    line: usize,
    found: String,
    better: String,
}

/// Compares the counts with the record.
///
/// # Errors
/// Fails if a count has risen, or `typos` is missing in continuous integration.
pub(crate) fn check(root: &Path) -> Result<()> {
    let Some(typos) = program(root) else {
        if crate::must_not_skip() {
            bail!("typos is missing\n  next step: pip install typos");
        }
        println!("style: skipped: typos is missing\n  next step: pip install typos");
        return Ok(());
    };
    let hits = all_hits(root, &typos)?;
    let mut now = BTreeMap::new();
    for hit in &hits {
        *now.entry(part(&hit.path)).or_insert(0) += 1;
    }
    now.insert(COMMITS.to_owned(), subjects(root)?.len());
    let recorded = parse(&fs::read_to_string(root.join(RECORD)).unwrap_or_default())?;
    let names: std::collections::BTreeSet<&String> = now.keys().chain(recorded.keys()).collect();
    let mut risen = Vec::new();
    println!("{:<18} {:>8} {:>8}", "style", "recorded", "now");
    for name in names {
        let [before, after] = [&recorded, &now].map(|map| map.get(name).copied().unwrap_or(0));
        println!("{name:<18} {before:>8} {after:>8}");
        if after > before {
            risen.push(name.as_str());
        }
    }
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        let text: String = now.iter().map(|(part, n)| format!("{part},{n}\n")).collect();
        return fs::write(root.join(RECORD), text).with_context(|| format!("write {RECORD}"));
    }
    if risen.is_empty() {
        return Ok(());
    }
    bail!(
        "more hits than {RECORD} records in {}\n  next step: list them with `cargo xtask style \
         list` and reword those that the change added",
        risen.join(", ")
    )
}

/// Prints every hit with its replacement.
///
/// # Errors
/// Fails if `typos` is missing or fails.
pub(crate) fn list(root: &Path) -> Result<()> {
    let typos = program(root).context("typos is missing\n  next step: pip install typos")?;
    for hit in all_hits(root, &typos)? {
        println!("{}:{}: {} -> {}", hit.path, hit.line, hit.found, hit.better);
    }
    for subject in subjects(root)? {
        println!("commit: {subject}");
    }
    Ok(())
}

/// Returns `typos` from the search path, or from the environment created by `scripts/deps.sh`.
fn program(root: &Path) -> Option<PathBuf> {
    let installed = root.join("target/typos/bin/typos");
    [PathBuf::from("typos"), installed]
        .into_iter()
        .find(|path| Command::new(path).arg("--version").output().is_ok())
}

fn all_hits(root: &Path, typos: &Path) -> Result<Vec<Hit>> {
    let tree = SourceTree::read(root)?;
    let mut hits = words(root, typos)?;
    hits.extend(tree.files.iter().filter(is_prose).flat_map(phrases_of));
    hits.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(hits)
}

/// Returns the hits of `typos`, whose exit code is 2 if there are any.
fn words(root: &Path, typos: &Path) -> Result<Vec<Hit>> {
    let output = Command::new(typos)
        .args(["--format", "json"])
        .current_dir(root)
        .output()
        .context("cannot run typos")?;
    let text = String::from_utf8(output.stdout).context("output of typos")?;
    if text.is_empty() && !output.status.success() {
        bail!("typos failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let mut hits = Vec::new();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).context("output of typos")?;
        if value["type"] != "typo" {
            continue;
        }
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        hits.push(Hit {
            path: text("path").trim_start_matches("./").to_owned(),
            line: value["line_num"].as_u64().unwrap_or_default() as usize,
            found: text("typo"),
            better: value["corrections"][0].as_str().unwrap_or_default().to_owned(),
        });
    }
    Ok(hits)
}

/// Returns true for hand-written sources and documents.
fn is_prose(file: &&File) -> bool {
    let endings = [".rs", ".md", ".sh", ".c", ".h", ".toml"];
    let not = ["/tests/golden/", "/fixtures/", "docs/STYLE.md", "xtask/src/style/", "_typos.toml"];
    endings.iter().any(|ending| file.path.ends_with(ending))
        && !not.iter().any(|part| file.path.contains(part))
}

fn phrases_of(file: &File) -> Vec<Hit> {
    let is_rust = file.path.ends_with(".rs");
    let mut hits = Vec::new();
    let mut was_doc = false;
    for (line, text) in lines(&file.text) {
        let mut add = |found: &str, better: &str| {
            let (found, better) = (found.to_owned(), better.to_owned());
            hits.push(Hit { path: file.path.clone(), line, found, better });
        };
        let lower = text.to_lowercase();
        for (phrase, better) in PHRASES {
            for _ in 0..whole_phrases(&lower, phrase) {
                add(phrase, better);
            }
        }
        let text = text.trim_start();
        let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        if let Some(doc) = doc.filter(|_| is_rust && !was_doc) {
            let first = doc.split_whitespace().next().unwrap_or_default();
            if let Some(question) = QUESTIONS.iter().find(|question| **question == first) {
                add(question, "a noun phrase");
            }
        }
        was_doc = doc.is_some();
    }
    hits
}

/// Returns the number of times that `phrase` occurs in `text` between word boundaries.
fn whole_phrases(text: &str, phrase: &str) -> usize {
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(phrase)
        .filter(|(at, _)| {
            edge(text[..*at].chars().next_back()) && edge(text[at + phrase.len()..].chars().next())
        })
        .count()
}

/// Returns subjects of commits that are too long or are not of the form `area: verb object`.
fn subjects(root: &Path) -> Result<Vec<String>> {
    let git = ["-c", "safe.directory=*", "log", "--no-merges", "--format=%s"];
    let log = tool::run(Command::new("git").args(git).current_dir(root), "apt-get install git")?;
    Ok(log.lines().filter(|subject| !is_subject(subject)).map(str::to_owned).collect())
}

fn is_subject(subject: &str) -> bool {
    let Some((area, rest)) = subject.split_once(": ") else { return false };
    subject.chars().count() <= SUBJECT_MAX
        && !subject.ends_with('.')
        && area.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/.".contains(c))
        && rest.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns the crate, or the folder or file at the root.
fn part(path: &str) -> String {
    let mut names = path.split('/');
    match (names.next().unwrap_or_default(), names.next()) {
        ("crates", Some(name)) => format!("crates/{name}"),
        (folder, Some(_)) => folder.to_owned(),
        (_, None) => "root".to_owned(),
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, usize>> {
    lines(text)
        .map(|(number, line)| {
            let (part, count) =
                line.split_once(',').with_context(|| format!("{RECORD}:{number}: no comma"))?;
            let count = count.parse().with_context(|| format!("{RECORD}:{number}: no number"))?;
            Ok((part.to_owned(), count))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let tree = SourceTree::of(&[(path, text)]);
        tree.files.iter().filter(is_prose).flat_map(phrases_of).map(|hit| hit.found).collect()
    }

    #[test]
    fn phrases_match_at_word_boundaries() {
        assert_eq!(
            found("docs/A.md", "Held against it, at once.\nfat once"),
            ["held against", "at once"]
        );
        assert!(found("crates/a/tests/golden/a.md", "at once").is_empty());
    }

    #[test]
    fn questions_match_at_the_start_of_a_doc_comment() {
        let text =
            "/// What a run left.\n/// What else.\nfn a() {}\n//! Whether.\n// What is this?\n";
        assert_eq!(found("crates/a/src/a.rs", text), ["What"]);
    }

    #[test]
    fn is_subject_requires_area_and_verb() {
        for (subject, expected) in [
            ("bench: add a setting", true),
            ("ci: run typos", true),
            ("What a run lacks, tested", false),
            ("bench: Add a setting", false),
            ("bench: add a setting.", false),
        ] {
            assert_eq!(is_subject(subject), expected, "{subject}");
        }
        assert!(!is_subject(&format!("a: {}", "b".repeat(70))));
    }

    #[test]
    fn part_is_crate_folder_or_root() {
        let parts = ["crates/netio/src/a.rs", "docs/A.md", "README.md"].map(part);
        assert_eq!(parts, ["crates/netio", "docs", "root"]);
    }

    #[test]
    fn parse_rejects_a_record_without_a_number() {
        assert_eq!(parse("docs,3\n").unwrap()["docs"], 3);
        assert!(parse("docs,three\n").is_err());
    }
}
