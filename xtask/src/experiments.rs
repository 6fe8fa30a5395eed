//! Runs shipped experiments for real: `cargo xtask experiments [NAME...]`.
//!
//! Compares the time of each experiment with the estimate of `fwdlab plan`, and its results with the
//! expectations in the file's comments (`fwdlab_testdata::expectations`). Names are stems of files
//! in `experiments/`; without names all run, which takes hours. Stores and reports remain in
//! `target/experiments`.

use anyhow::{Context, Result, anyhow, bail, ensure};
use fwdlab_testdata::{Expectation, expectations};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Exit codes of a complete measurement: 0, and 4 if the machine was too busy for a verdict.
const MEASURED: [i32; 2] = [0, 4];
/// Estimates from 0.7 to 1.3 times the measured time count as right.
const TOLERANCE: f64 = 0.3;

/// Runs experiments in turn and prints a row for each.
///
/// # Errors
/// Fails if an experiment does not run, or contradicts its expectations.
pub(crate) fn run(root: &Path, names: &[String]) -> Result<()> {
    let files = files(root, names)?;
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", "fwdlab"])
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cargo build failed");
    let mut failed = Vec::new();
    println!("{:<34} {:>8} {:>8}  expectations", "experiment", "plan s", "took s");
    for file in &files {
        let name = stem(file);
        match try_file(root, file) {
            Ok(row) => {
                println!("{name:<34} {row}");
                if row.contains("OUTSIDE") {
                    failed.push(name);
                }
            }
            Err(error) => {
                println!("{name:<34} FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    ensure!(failed.is_empty(), "not as expected: {}", failed.join(", "));
    Ok(())
}

/// Runs all experiments.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_all(root: &Path) -> Result<()> {
    run(root, &[])
}

/// Returns the experiment files with these names, or all, sorted.
fn files(root: &Path, names: &[String]) -> Result<Vec<PathBuf>> {
    let folder = root.join("experiments");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<PathBuf> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    all.sort();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|file| stem(file) == **name)) {
        bail!("no experiment `{unknown}` in {}", folder.display());
    }
    all.retain(|file| names.is_empty() || names.contains(&stem(file)));
    Ok(all)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs one experiment and returns its row after the name.
fn try_file(root: &Path, file: &Path) -> Result<String> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let expected = expectations(&text).map_err(|error| anyhow!(error))?;
    let plan = fwdlab(root, &["plan", &file.to_string_lossy(), "--json"])?.json()?;
    if plan["base"]["testbed"]["kind"] == "ssh" {
        return Ok(format!("{:>8} {:>8}  not run: its hosts are a laboratory's", "-", "-"));
    }
    let planned = plan["estimate"]["total_ns"].as_f64().map(|time| time / 1e9);
    let store = root.join("target/experiments").join(stem(file));
    let store = store.to_string_lossy();
    let path = file.to_string_lossy();
    let mut words = command(&text).unwrap_or_else(|| vec!["run", path.as_ref()]);
    words.extend(["--fresh", "--quiet", "--out", store.as_ref()]);
    let is_text = expected.iter().any(|one| matches!(one, Expectation::Prints(_)));
    if !is_text {
        words.push("--json");
    }
    let began = Instant::now();
    let output = fwdlab(root, &words)?;
    let took = began.elapsed().as_secs_f64();
    ensure!(MEASURED.contains(&output.code), "exit code {}\n{}", output.code, output.errors.trim());
    let found = match is_text {
        true => vec![in_text(&expected, &output.text)],
        false => in_results(&expected, &output.json()?),
    };
    let plan = planned.map_or("-".to_owned(), |time| format!("{time:.0}"));
    let is_near = planned.is_none_or(|time| (time / took - 1.0).abs() <= TOLERANCE);
    let mark = if is_near { ' ' } else { '!' };
    let found = if found.is_empty() { "none".to_owned() } else { found.join("; ") };
    Ok(format!("{plan:>8} {took:>8.0}{mark} {found}"))
}

/// Returns the arguments of the command in the file's head, `#   fwdlab WORD...`, without remarks in
/// parentheses; `None` if it has none.
fn command(text: &str) -> Option<Vec<&str>> {
    let line = text.lines().find_map(|line| line.strip_prefix("#   fwdlab "))?;
    line.split('(').next().map(|words| words.split_whitespace().collect())
}

/// Compares the intervals of comparisons with ranges: one entry per comparison, also of comparisons
/// without a range.
fn in_results(expected: &[Expectation], results: &Value) -> Vec<String> {
    let empty = Vec::new();
    let compared = results["comparisons"].as_array().unwrap_or(&empty);
    let percent = |value: &Value| value.as_f64().map(|ratio| 100.0 * (ratio - 1.0));
    let mut rows: Vec<String> = compared
        .iter()
        .map(|one| {
            let label = one["label"].as_str().unwrap_or_default();
            let found = &one["outcome"]["compared"]["comparison"];
            let range = expected.iter().find_map(|one| match one {
                Expectation::Range { label: of, low, high } if of == label => Some((*low, *high)),
                _ => None,
            });
            let figures = [&found["ratio"], &found["low"], &found["high"]].map(percent);
            let [Some(ratio), Some(low), Some(high)] = figures else {
                let judged = if range.is_some() { "OUTSIDE: " } else { "" };
                return format!("{judged}{label} has no figure");
            };
            let judged = match range {
                None => String::new(),
                Some((least, most)) if low <= most && high >= least => " as expected".to_owned(),
                Some((least, most)) => format!(" OUTSIDE {least} % to {most} %"),
            };
            format!("{label} {ratio:+.1} % [{low:+.1}, {high:+.1}]{judged}")
        })
        .collect();
    let has = |label: &str| compared.iter().any(|one| one["label"] == label);
    rows.extend(expected.iter().filter_map(|one| match one {
        Expectation::Range { label, .. } if !has(label) => Some(format!("OUTSIDE: no `{label}`")),
        _ => None,
    }));
    rows
}

/// Searches the output for the expected parts.
fn in_text(expected: &[Expectation], text: &str) -> String {
    let missing = expected.iter().find_map(|one| match one {
        Expectation::Prints(part) if !text.contains(part.as_str()) => Some(part),
        _ => None,
    });
    missing.map_or("as expected".to_owned(), |part| format!("OUTSIDE: does not print `{part}`"))
}

/// Output of a command.
struct Output {
    code: i32,
    text: String,
    errors: String,
}

impl Output {
    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("no results: {}", self.errors))
    }
}

fn fwdlab(root: &Path, words: &[&str]) -> Result<Output> {
    let output = Command::new(root.join("target/release/fwdlab"))
        .args(words)
        .current_dir(root)
        .output()
        .context("cannot run fwdlab")?;
    Ok(Output {
        code: output.status.code().unwrap_or(-1),
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interval_outside_its_range_is_marked() {
        let one = json!({"label": "on", "outcome": {"compared": {"comparison":
            {"ratio": 0.9, "low": 0.88, "high": 0.92}}}});
        let results = json!({"comparisons": [one]});
        let range = |low, high| [Expectation::Range { label: "on".to_owned(), low, high }];
        let row = |low, high| in_results(&range(low, high), &results).join("; ");
        assert_eq!(row(-9.0, 0.0), "on -10.0 % [-12.0, -8.0] as expected");
        assert_eq!(row(-5.0, 0.0), "on -10.0 % [-12.0, -8.0] OUTSIDE -5 % to 0 %");
        let unanswered = json!({"comparisons": [{"label": "on", "outcome": {}}]});
        let unanswered = in_results(&range(0.0, 1.0), &unanswered);
        assert_eq!(unanswered, ["OUTSIDE: on has no figure"]);
        let absent = in_results(&range(0.0, 1.0), &json!({"comparisons": []}));
        assert_eq!(absent, ["OUTSIDE: no `on`"]);
    }

    #[test]
    fn command_is_read_from_the_head() {
        let text = "# Q?\n#\n#   fwdlab bisect a.toml --along x       (as root)\nversion = 1\n";
        assert_eq!(command(text), Some(vec!["bisect", "a.toml", "--along", "x"]));
        let expected = [Expectation::Prints("r19".to_owned())];
        assert_eq!(in_text(&expected, "r1"), "OUTSIDE: does not print `r19`");
    }
}
