//! What an import says when it is done: for a person, and for programs.

use super::Report;
use crate::terminal::{BAD, DOUBT, HEADING, columns, duration, styled, wrap};
use fwdlab_archive::assemble::Tally;
use fwdlab_archive::import::{Finished, Job, Known, Outcome};
use fwdlab_archive::scan::Scanned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// With more sets, only those that something is to be said of are listed.
const FEW: usize = 12;
/// Refused files, and other problems, that are listed unless all are asked for.
const SHOWN: usize = 20;

/// The summary, laid out for `width` columns where it can be; with `all` every set
/// and every refused file.
pub(super) fn text(report: &Report<'_>, width: usize, all: bool) -> String {
    let mut text = table(report, width, all);
    for line in totals(report) {
        text += &wrap(&line, width, "  ");
    }
    text += &refusals(report, width, all);
    text += &problems(report, width, all);
    text
}

/// The sets with their outcome.
struct Set<'a> {
    job: &'a Job,
    scanned: &'a Scanned,
    finished: &'a Finished,
}

impl Set<'_> {
    /// Its path below the directory that was named.
    fn path(&self) -> String {
        self.scanned.below.display().to_string()
    }

    fn label(&self) -> &str {
        &self.job.set.place.label
    }

    /// True when a person has to know of it even among hundreds.
    fn is_odd(&self) -> bool {
        match &self.finished.outcome {
            Outcome::Imported(Known { tally, .. }) | Outcome::Updated(Known { tally, .. }) => {
                let differ = [tally.lists_different, tally.blocks_different, tally.rows_different];
                differ.iter().any(|count| *count > 0)
            }
            Outcome::Unchanged(_) => false,
            Outcome::Refused(_) | Outcome::Failed(_) | Outcome::NotReached => true,
        }
    }
}

fn sets<'a>(report: &Report<'a>) -> impl Iterator<Item = Set<'a>> {
    let Report { jobs, scan, summary } = *report;
    jobs.iter().zip(&scan.sets).zip(&summary.sets).map(|((job, scanned), finished)| Set {
        job,
        scanned,
        finished,
    })
}

fn table(report: &Report<'_>, width: usize, all: bool) -> String {
    let everything = all || report.jobs.len() <= FEW;
    let shown = sets(report).filter(|set| everything || set.is_odd());
    let shown: Vec<Set<'_>> = shown.collect();
    let labels: BTreeSet<&str> = shown.iter().map(|set| set.label()).collect();
    // Labels are short, and enough where they tell the sets apart.
    let name = |set: &Set<'_>| match labels.len() == shown.len() {
        true => set.label().to_owned(),
        false => set.path(),
    };
    let mut rows: Vec<[String; 7]> = shown.iter().map(|set| row(name(set), set)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["set", "outcome", "logs", "MB", "time", "lists", "README"];
    rows.insert(0, head.map(str::to_owned));
    let widths: Vec<usize> =
        (0..7).map(|i| rows.iter().map(|row| columns(&row[i])).max().unwrap_or(0)).collect();
    let is_number = |column: usize| (2..5).contains(&column);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
            let space = " ".repeat(width - columns(cell));
            if is_number(i) { space + cell } else { cell.clone() + &space }
        });
        let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned();
        // Too wide for its terminal, a row is told in sentences.
        let line = match widths.iter().sum::<usize>() + 2 * (widths.len() - 1) > width {
            true if number == 0 => continue,
            true => wrap(&sentence(row), width, "  "),
            false if number == 0 => styled(&line, HEADING) + "\n",
            false => line + "\n",
        };
        text += &line;
    }
    text + "\n"
}

fn sentence(row: &[String; 7]) -> String {
    let [name, outcome, logs, mb, time, lists, readme] = row;
    let mut text = format!("{name}: {outcome}");
    if !logs.is_empty() {
        text += &format!(", {logs} logs, {mb} MB, {time}");
    }
    for (what, said) in [("lists", lists), ("README", readme)] {
        if !said.is_empty() {
            text += &format!("; {what} {said}");
        }
    }
    text
}

fn row(name: String, set: &Set<'_>) -> [String; 7] {
    let Finished { outcome, duration: time } = set.finished;
    let none = Tally::default();
    let tally = outcome.known().map_or(&none, |known| &known.tally);
    let word = word(outcome);
    let word = match outcome {
        Outcome::Imported(_) | Outcome::Updated(_) | Outcome::Unchanged(_) => word.to_owned(),
        Outcome::Refused(_) | Outcome::Failed(_) => styled(word, BAD),
        Outcome::NotReached => styled(word, DOUBT),
    };
    if outcome.known().is_none() {
        let [logs, mb, spent, lists, readme] = Default::default();
        return [name, word, logs, mb, spent, lists, readme];
    }
    let (logs, mb, spent) = (tally.logs.to_string(), megabytes(tally.bytes), shown(*time));
    [name, word, logs, mb, spent, lists(tally), blocks(tally)]
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Imported(_) => "imported",
        Outcome::Updated(_) => "updated",
        Outcome::Unchanged(_) => "unchanged",
        Outcome::Refused(_) => "refused",
        Outcome::Failed(_) => "failed",
        Outcome::NotReached => "not begun",
    }
}

fn lists(tally: &Tally) -> String {
    let Tally { lists_equal, lists_different, lists_absent, .. } = *tally;
    let different = doubtful(lists_different, "different");
    counts(&[plain(lists_equal, "equal"), different, plain(lists_absent, "absent")])
}

fn blocks(tally: &Tally) -> String {
    let Tally { blocks_equal, blocks_different, blocks_unmatched, .. } = *tally;
    let different = doubtful(blocks_different, "different");
    counts(&[plain(blocks_equal, "equal"), different, plain(blocks_unmatched, "unmatched")])
}

fn counts(parts: &[Option<String>]) -> String {
    parts.iter().flatten().cloned().collect::<Vec<_>>().join(", ")
}

fn plain(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

fn doubtful(count: usize, what: &str) -> Option<String> {
    plain(count, what).map(|text| styled(&text, DOUBT))
}

fn totals(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let tally = &summary.tally;
    let with =
        |wanted: &str| sets(report).filter(|set| word(&set.finished.outcome) == wanted).count();
    let parts = ["imported", "updated", "unchanged", "refused", "failed", "not begun"]
        .map(|wanted| plain(with(wanted), wanted));
    let total = report.jobs.len();
    let noun = if total == 1 { "set" } else { "sets" };
    let mut lines = vec![format!("{total} {noun}: {}", counts(&parts))];
    if tally.logs > 0 {
        lines.push(format!(
            "{} logs, {} MB in {} ({} logs/s); {} runs, {} of them failed",
            tally.logs,
            megabytes(tally.bytes),
            shown(summary.duration),
            per_second(tally.logs, summary.duration),
            tally.runs,
            tally.failed
        ));
        let table = [plain(tally.rows_equal, "equal"), doubtful(tally.rows_different, "different")];
        for (what, said) in [
            ("published lists made again", lists(tally)),
            ("ministat blocks of README files", blocks(tally)),
            ("rows of published tables", counts(&table)),
        ] {
            if !said.is_empty() {
                lines.push(format!("{what}: {said}"));
            }
        }
    }
    let other = report.scan.other;
    if other.files > 0 {
        let mb = megabytes(other.bytes);
        lines.push(format!("{} files ({mb} MB) belong to no set", other.files));
    }
    if let Some(stores) = common(report) {
        lines.push(format!("stores: {stores}; see them with `fwdlab show {stores}`"));
    }
    lines
}

/// The store, or the directory that holds all of them.
fn common(report: &Report<'_>) -> Option<String> {
    let mut stored = sets(report).filter(|set| set.finished.outcome.known().is_some());
    let first = stored.next()?.job.store.as_path();
    let mut above = first;
    for set in stored {
        above = above.ancestors().find(|above| set.job.store.starts_with(above))?;
    }
    let above = if above == Path::new("") { Path::new(".") } else { above };
    Some(above.display().to_string())
}

/// Sets of which nothing is stored, and refused files.
fn refusals(report: &Report<'_>, width: usize, all: bool) -> String {
    let mut lines = Vec::new();
    for set in sets(report) {
        match &set.finished.outcome {
            Outcome::Refused(refused) => lines.push(format!("{}: {refused}", set.path())),
            Outcome::Failed(error) => lines.push(format!("{}: {error}", set.path())),
            _ => {}
        }
        lines.extend(refused_files(&set).map(|(file, why)| placed(&file, why)));
    }
    listed("refused", &lines, width, all)
}

fn problems(report: &Report<'_>, width: usize, all: bool) -> String {
    let problems = report.scan.problems.iter();
    let lines: Vec<String> =
        problems.map(|(path, why)| format!("{}: {why}", path.display())).collect();
    listed("left out", &lines, width, all)
}

fn listed(heading: &str, lines: &[String], width: usize, all: bool) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = if all { lines.len() } else { lines.len().min(SHOWN) };
    let mut text = format!("\n{}\n", styled(&format!("{heading}:"), HEADING));
    for line in &lines[..shown] {
        text += &wrap(&format!("  {line}"), width, "    ");
    }
    if shown < lines.len() {
        text += &format!("  and {} more: --list shows all\n", lines.len() - shown);
    }
    text
}

/// The refused files of a set, where they are, and why.
fn refused_files<'a>(set: &Set<'a>) -> impl Iterator<Item = (String, &'a str)> {
    let files: &[(String, String)] = match &set.finished.outcome {
        Outcome::Refused(refused) => &refused.files,
        outcome => outcome.known().map_or(&[], |known| &known.refused),
    };
    let origin = set.job.set.origin.clone();
    files.iter().map(move |(name, why)| (origin.join(name).display().to_string(), why.as_str()))
}

/// `FILE:LINE: why`, where the reason names a line.
fn placed(file: &str, why: &str) -> String {
    let line = why.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match line.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
        Some((number, why)) => format!("{file}:{number}: {why}"),
        None => format!("{file}: {why}"),
    }
}

/// Everything, for programs.
pub(super) fn json(report: &Report<'_>) -> Value {
    let sets: Vec<Value> = sets(report).map(|set| set_json(&set)).collect();
    let problems = report.scan.problems.iter();
    let problems: Vec<Value> = problems
        .map(|(path, why)| json!({ "path": path.display().to_string(), "why": why }))
        .collect();
    json!({
        "version": 1,
        "sets": sets,
        "totals": tally_json(&report.summary.tally),
        "seconds": report.summary.duration.as_secs_f64(),
        "other": { "files": report.scan.other.files, "bytes": report.scan.other.bytes },
        "problems": problems,
    })
}

fn set_json(set: &Set<'_>) -> Value {
    let place = &set.job.set.place;
    let outcome = &set.finished.outcome;
    let why = match outcome {
        Outcome::Refused(refused) => Some(refused.to_string()),
        Outcome::Failed(error) => Some(error.to_string()),
        _ => None,
    };
    let refused: Vec<Value> =
        refused_files(set).map(|(file, why)| json!({ "file": file, "why": why })).collect();
    json!({
        "machine": place.machine,
        "interface": place.interface,
        "topic": place.topic,
        "label": place.label,
        "origin": set.job.set.origin.display().to_string(),
        "store": set.job.store.display().to_string(),
        "outcome": word(outcome).replace(' ', "-"),
        "why": why,
        "tally": outcome.known().map(|known| tally_json(&known.tally)),
        "notes": outcome.known().map(|known| &known.notes),
        "refused": refused,
        "seconds": set.finished.duration.as_secs_f64(),
    })
}

fn tally_json(tally: &Tally) -> Value {
    json!({
        "logs": tally.logs,
        "bytes": tally.bytes,
        "refused": tally.refused,
        "runs": tally.runs,
        "failed": tally.failed,
        "lists": {
            "equal": tally.lists_equal,
            "different": tally.lists_different,
            "absent": tally.lists_absent,
        },
        "blocks": {
            "equal": tally.blocks_equal,
            "different": tally.blocks_different,
            "unmatched": tally.blocks_unmatched,
        },
        "rows": { "equal": tally.rows_equal, "different": tally.rows_different },
    })
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn shown(time: Duration) -> String {
    duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn per_second(logs: usize, time: Duration) -> String {
    format!("{:.0}", logs as f64 / time.as_secs_f64().max(1e-6))
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn a_reason_with_a_line_stands_at_that_line() {
        assert_eq!(placed("a/b", "line 3: a NUL byte"), "a/b:3: a NUL byte");
        assert_eq!(placed("a/b", "the log is empty"), "a/b: the log is empty");
        assert_eq!(placed("a/b", "line of sight: none"), "a/b: line of sight: none");
    }
}
