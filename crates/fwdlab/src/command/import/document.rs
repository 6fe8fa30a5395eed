//! Summary of an import as a document.

use super::Report;
use crate::experiment::quoted;
use crate::terminal::duration;
use fwdlab_archive::assemble::Tally;
use fwdlab_archive::import::{Finished, Job, Known, Outcome, parents};
use fwdlab_archive::scan::ScannedSet;
use fwdlab_results::document::table::{Cell, Digits, Table};
use fwdlab_results::document::{Block, Data, Document, List};
use fwdlab_results::text::Tone;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Version of the JSON output.
const VERSION: u32 = 1;
/// Maximum number of sets that are all listed; of more sets, only those with remarks are listed.
const FEW: usize = 12;
/// Maximum number of refused files, and of other problems, to list without `--list`.
const SHOWN: usize = 20;

/// The summary; with `all`, every set and every refused file.
pub(super) fn document<'a>(report: &Report<'_>, all: bool, data: &'a dyn Data) -> Document<'a> {
    let mut blocks = vec![table(report, all)];
    blocks.extend(listed("refused", refusals(report), all));
    blocks.extend(listed("left out", problems(report), all));
    blocks.extend(patches(report));
    Document {
        title: "Imported results".to_owned(),
        conclusion: totals(report).into_iter().map(Block::text).collect(),
        blocks,
        data,
        version: VERSION,
    }
}

/// A set with its outcome.
struct Set<'a> {
    job: &'a Job,
    scanned: &'a ScannedSet,
    finished: &'a Finished,
}

impl Set<'_> {
    /// Its path below the directory on the command line.
    fn path(&self) -> String {
        self.scanned.below.display().to_string()
    }

    fn label(&self) -> &str {
        &self.job.set.place.label
    }

    fn tone(&self) -> Tone {
        match &self.finished.outcome {
            Outcome::Refused(_) | Outcome::Failed(_) => Tone::Worse,
            _ if self.is_odd() => Tone::Doubt,
            _ => Tone::Plain,
        }
    }

    /// True if the user must see this set even among hundreds.
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

fn table(report: &Report<'_>, all: bool) -> Block {
    let everything = all || report.jobs.len() <= FEW;
    let shown = sets(report).filter(|set| everything || set.is_odd());
    let shown: Vec<Set<'_>> = shown.collect();
    let labels: BTreeSet<&str> = shown.iter().map(|set| set.label()).collect();
    // Labels are short, and sufficient if they are distinct.
    let name = |set: &Set<'_>| match labels.len() == shown.len() {
        true => set.label().to_owned(),
        false => set.path(),
    };
    let known = |set: &Set<'_>, of: &dyn Fn(&Tally) -> Cell| {
        set.finished.outcome.known().map_or(Cell::None, |known| of(&known.tally))
    };
    let some = |text: String| if text.is_empty() { Cell::None } else { Cell::text(text) };
    Table::of(&shown)
        .words("set", |set| Cell::text(name(set)))
        .words("outcome", |set| Cell::text(word(&set.finished.outcome)))
        .numbers("logs", |set| known(set, &|tally| Cell::count(tally.logs)))
        .numbers("MB", |set| {
            known(set, &|tally| Cell::number(tally.bytes as f64 / 1e6, Digits::Decimals(1)))
        })
        .numbers("time", |set| known(set, &|_| Cell::text(time(set.finished.duration))))
        .words("lists", |set| known(set, &|tally| some(lists(tally))))
        .words("README", |set| known(set, &|tally| some(blocks(tally))))
        .set(|table| {
            table.name = Some("sets");
            for (row, set) in table.rows.iter_mut().zip(&shown) {
                row.tone = set.tone();
            }
        })
        .block()
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
    let different = plain(lists_different, "different");
    counts(&[plain(lists_equal, "equal"), different, plain(lists_absent, "absent")])
}

fn blocks(tally: &Tally) -> String {
    let Tally { blocks_equal, blocks_different, blocks_unmatched, .. } = *tally;
    let different = plain(blocks_different, "different");
    counts(&[plain(blocks_equal, "equal"), different, plain(blocks_unmatched, "unmatched")])
}

fn counts(parts: &[Option<String>]) -> String {
    parts.iter().flatten().cloned().collect::<Vec<_>>().join(", ")
}

fn plain(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

fn totals(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let tally = &summary.tally;
    let with =
        |expected: &str| sets(report).filter(|set| word(&set.finished.outcome) == expected).count();
    let parts = ["imported", "updated", "unchanged", "refused", "failed", "not begun"]
        .map(|expected| plain(with(expected), expected));
    let total = report.jobs.len();
    let noun = if total == 1 { "set" } else { "sets" };
    let mut lines = vec![format!("{total} {noun}: {}", counts(&parts))];
    if tally.logs > 0 {
        lines.push(format!(
            "{} logs, {} MB in {} ({} logs/s); {} runs, {} of them failed",
            tally.logs,
            megabytes(tally.bytes),
            time(summary.duration),
            per_second(tally.logs, summary.duration),
            tally.runs,
            tally.failed
        ));
        let table = [plain(tally.rows_equal, "equal"), plain(tally.rows_different, "different")];
        for (what, counts_text) in [
            ("published lists made again", lists(tally)),
            ("ministat blocks of README files", blocks(tally)),
            ("rows of published tables", counts(&table)),
        ] {
            if !counts_text.is_empty() {
                lines.push(format!("{what}: {counts_text}"));
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

/// The patched sets, each with the command that compares it with the unpatched set.
fn patches(report: &Report<'_>) -> Option<Block> {
    let sets: Vec<Set<'_>> = sets(report).collect();
    let stored = |set: &Set<'_>| set.finished.outcome.known().is_some();
    let directory =
        |set: &Set<'_>| quoted(&set.job.store.parent().unwrap_or(Path::new(".")).to_string_lossy());
    let parents = parents(report.jobs).into_iter();
    let pairs = sets.iter().zip(parents).filter_map(|(set, parent)| Some((set, &sets[parent?])));
    let mut blocks = Vec::new();
    for (set, parent) in pairs.filter(|(set, parent)| stored(set) && stored(parent)) {
        let (label, topic) = (set.label(), &set.job.set.place.topic);
        blocks.push(Block::text(format!(
            "{label} ({topic}) is {} with a patch. To see what the patch changed:",
            parent.label()
        )));
        let command = format!("fwdlab compare {} {}", directory(parent), directory(set));
        blocks.push(Block::Preformatted(command));
    }
    (!blocks.is_empty()).then(|| Block::section("patched sets", blocks))
}

/// The store, or the common directory of all stores.
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

/// Sets without a store, and refused files.
fn refusals(report: &Report<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for set in sets(report) {
        match &set.finished.outcome {
            Outcome::Refused(refused) => lines.push(format!("{}: {refused}", set.path())),
            Outcome::Failed(error) => lines.push(format!("{}: {error}", set.path())),
            _ => {}
        }
        lines.extend(refused_files(&set).map(|(file, why)| placed(&file, why)));
    }
    lines
}

fn problems(report: &Report<'_>) -> Vec<String> {
    let problems = report.scan.problems.iter();
    problems.map(|(path, why)| format!("{}: {why}", path.display())).collect()
}

fn listed(heading: &str, lines: Vec<String>, all: bool) -> Option<Block> {
    let brief = (!all).then_some((SHOWN, "and {} more: --list shows all"));
    let list = Block::List(List { brief, ..List::of(&lines) });
    (!lines.is_empty()).then(|| Block::section(heading, vec![list]))
}

/// The refused files of a set, with path and reason.
fn refused_files<'a>(set: &Set<'a>) -> impl Iterator<Item = (String, &'a str)> {
    let files: &[(String, String)] = match &set.finished.outcome {
        Outcome::Refused(refused) => &refused.files,
        outcome => outcome.known().map_or(&[], |known| &known.refused),
    };
    let origin = set.job.set.origin.clone();
    files.iter().map(move |(name, why)| (origin.join(name).display().to_string(), why.as_str()))
}

/// Formats a fault as `FILE:LINE: why` if the reason contains a line, otherwise as `FILE: why`.
fn placed(file: &str, why: &str) -> String {
    let line = why.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match line.filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit())) {
        Some((number, why)) => format!("{file}:{number}: {why}"),
        None => format!("{file}: {why}"),
    }
}

/// All results as JSON.
pub(super) fn data(report: &Report<'_>) -> Value {
    let sets: Vec<Value> = sets(report).map(|set| set_json(&set)).collect();
    let problems = report.scan.problems.iter();
    let problems: Vec<Value> = problems
        .map(|(path, why)| json!({ "path": path.display().to_string(), "why": why }))
        .collect();
    json!({
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

fn time(time: Duration) -> String {
    duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn per_second(logs: usize, time: Duration) -> String {
    format!("{:.0}", logs as f64 / time.as_secs_f64().max(1e-6))
}

#[cfg(test)]
mod tests {
    use super::placed;

    #[test]
    fn placed_moves_a_line_number_to_the_path() {
        assert_eq!(placed("a/b", "line 3: a NUL byte"), "a/b:3: a NUL byte");
        assert_eq!(placed("a/b", "the log is empty"), "a/b: the log is empty");
        assert_eq!(placed("a/b", "line of sight: none"), "a/b: line of sight: none");
    }
}
