//! `fwdlab history`: results over revisions, and the changes in them.

use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::STORE;
use crate::output_format::FormArguments;
use crate::peer_arguments::{PeerArguments, refuse_selection};
use crate::store_filter::FilterArguments;
use crate::stores::{in_parallel, store_at};
use clap::ValueEnum;
use fwdlab_results::compare::{self, Selection};
use fwdlab_results::history::{Collector, Direction, History, HistoryInput};
use fwdlab_results::report;
use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// Follow a machine and configuration over revisions, and find where it changed.
///
/// Each argument is a store (run.sqlite), a directory with one, or a directory tree with such
/// directories at any depth. Runs of one machine and configuration form a series in the order of
/// revisions: the levels of a factor named revision, else the kernel's release, else the time.
/// Changes are the result of a search, so new runs of both revisions have to confirm them.
///
/// An argument may also be a result of another tool (as `compare` reads them): each file is one
/// revision, which its name contains (iperf3-6.12.json), and each benchmark is a series.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab history results                              everything below a directory
  fwdlab history archive --series \"queues = 4\"        some of it
  fwdlab history results --out history                pages and figures
  fwdlab history results --since 2024-01-01 --machine xeon
  fwdlab history results --all                        every series, not only what changed
  fwdlab history iperf3/*.json                        results of another tool, one per revision
  fwdlab history results --json | jq '.series[].changes[].run_again'
  fwdlab history results --fail-on worse || echo slower than before")]
pub(crate) struct Arguments {
    /// Stores, directories with one, directory trees, or files of other tools
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Directory for history.md, index.html and the plots
    #[arg(long, short, value_name = "DIR", visible_alias = "output")]
    out: Option<PathBuf>,
    #[command(flatten)]
    form: FormArguments,
    /// Only series whose title contains TEXT
    #[arg(long, value_name = "TEXT")]
    series: Option<String>,
    #[command(flatten)]
    selected: FilterArguments,
    /// Only changes and points measured on this day or later (2024-01-31)
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<String>,
    /// Show every series with its points, not only series that changed
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    peers: PeerArguments,
    /// Exit with 1 if the latest change of a series is of this kind
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

/// Changes to fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// For the worse
    Worse,
    /// For better or worse
    Different,
}

/// Prints the history, and writes files with `--out`.
///
/// # Errors
/// If none of the paths contains a store, a store can't be read, or the files can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let selection = arguments.peers.selection();
    let mut collector = Collector::new();
    let others = add_files(&mut collector, &arguments.paths, selection)?;
    collect(&mut collector, &others, arguments.series.as_deref())?;
    let filter = arguments.selected.filter();
    if !filter.is_empty() {
        collector.keep_admitted(&filter);
    }
    let mut history = collector.finish();
    if let Some(since) = &arguments.since {
        history.keep_since(since);
    }
    if let Some(directory) = &arguments.out {
        report::write_files(directory, history.files(arguments.all))?;
    }
    // Machine-readable output contains every point.
    let all = arguments.all || arguments.form.is_for_programs();
    arguments.form.print(&history.document(arguments.form.has_pictures(), all))?;
    Ok(exit(&history, arguments.fail_on))
}

/// Reads files of other tools among `paths`, each once; returns the other paths.
fn add_files(
    collector: &mut Collector,
    paths: &[PathBuf],
    selection: Selection<'_>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut others = Vec::new();
    let mut files = BTreeSet::new();
    for path in paths {
        match compare::contents(path, selection)? {
            Some(contents) if files.insert(canonical(path)) => collector.add_file(&contents),
            Some(_) => {}
            None => others.push(path.clone()),
        }
    }
    if files.is_empty() {
        refuse_selection(selection)?;
    }
    Ok(others)
}

/// Reads the stores below `paths`; keeps only series whose title contains `text`.
fn collect(collector: &mut Collector, paths: &[PathBuf], text: Option<&str>) -> anyhow::Result<()> {
    let found = stores(paths)?;
    let read = in_parallel(&found, |found| HistoryInput::of(&found.path));
    for (Found { path, named }, read) in found.into_iter().zip(read) {
        match collector.add_read(&path, read) {
            // One unreadable store of a tree doesn't affect the others.
            Err(why) if !named => collector.leave_out(&why),
            added => added?,
        }
    }
    if let Some(text) = text {
        let titles = collector.titles();
        collector.keep_titles_with(text);
        if collector.titles().is_empty() && !titles.is_empty() {
            let what =
                format!("no series' title holds `{text}`; there is `{}`", titles.join("`, `"));
            return Err(CliError::Mistake(what).into());
        }
    }
    Ok(())
}

/// The history below `paths`, for other commands.
///
/// # Errors
/// The errors of [`execute`].
pub(super) fn of(paths: &[PathBuf], text: Option<&str>) -> anyhow::Result<History> {
    let mut collector = Collector::new();
    collect(&mut collector, paths, text)?;
    Ok(collector.finish())
}

/// Parses a day in the format of RFC 3339.
pub(super) fn date(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number = |part: &&str, digits| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    match parts.as_slice() {
        [year, month, day] if is_number(year, 4) && is_number(month, 2) && is_number(day, 2) => {
            Ok(text.to_owned())
        }
        _ => Err("a day is written 2024-01-31".to_owned()),
    }
}

fn exit(history: &History, fail_on: Option<FailOn>) -> Exit {
    let fails = history.latest_changes().any(|change| match fail_on {
        None => false,
        Some(FailOn::Worse) => change.direction == Direction::Worse,
        Some(FailOn::Different) => true,
    });
    if fails { Exit::Difference } else { Exit::Done }
}

/// The requested stores, each once, in the order of their paths below each argument.
fn stores(paths: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut walk = Walk::default();
    for path in paths {
        let before = walk.stores.len() + walk.again;
        if path.is_dir() && !store_at(path).exists() {
            walk.below(path);
        } else {
            // A missing store is added as well: reading it reports the error.
            walk.add(store_at(path), true);
        }
        if walk.stores.len() + walk.again == before {
            let what = format!(
                "{}: neither this directory nor one below it holds a store ({STORE})",
                path.display()
            );
            return Err(CliError::Mistake(what).into());
        }
    }
    Ok(walk.stores)
}

/// A store to read.
struct Found {
    path: PathBuf,
    /// True if the user named it, false if it was found in a tree.
    named: bool,
}

/// A walk through directory trees. Each directory is entered once, even if links form cycles or it
/// has several names.
#[derive(Default)]
struct Walk {
    stores: Vec<Found>,
    /// Number of stores found again under another name.
    again: usize,
    seen: BTreeSet<PathBuf>,
}

impl Walk {
    /// Adds every store below `directory`.
    fn below(&mut self, directory: &Path) {
        // On the heap, not the thread's stack: trees may be deep.
        let mut waiting = vec![directory.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            let store = directory.join(STORE);
            if store.is_file() {
                self.add(store, false);
            }
            if !self.seen.insert(canonical(&directory)) {
                continue;
            }
            // Unreadable directories are skipped: a tree may contain anything.
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            // Hidden directories have the shares of a store.
            let is_hidden =
                |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
            let shown = entries.filter(|entry| !is_hidden(entry)).map(|entry| entry.path());
            let mut inner: Vec<PathBuf> = shown.filter(|path| path.is_dir()).collect();
            // The last one is taken first.
            inner.sort_by(|a, b| b.cmp(a));
            waiting.extend(inner);
        }
    }

    fn add(&mut self, path: PathBuf, named: bool) {
        if self.seen.insert(canonical(&path)) {
            self.stores.push(Found { path, named });
        } else {
            self.again += 1;
        }
    }
}

/// Resolves links, since a path may have several names.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_walks_cyclic_trees_once() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("b/c/d");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(root.path().join("a")).unwrap();
        std::fs::create_dir_all(root.path().join("a/.shares/1of2")).unwrap();
        for folder in ["a", "b", "b/c/d", "a/.shares/1of2"] {
            std::fs::write(root.path().join(folder).join(STORE), "").unwrap();
        }
        std::os::unix::fs::symlink(root.path(), deep.join("up")).unwrap();
        std::os::unix::fs::symlink(root.path().join("b"), root.path().join("again")).unwrap();
        let found = stores(&[root.path().to_path_buf(), root.path().join("a")]).unwrap();
        let names: Vec<PathBuf> =
            found.iter().map(|one| one.path.strip_prefix(root.path()).unwrap().into()).collect();
        assert_eq!(names, ["a", "again", "again/c/d"].map(|f| Path::new(f).join(STORE)));
        let empty = tempfile::tempdir().unwrap();
        let error = stores(&[empty.path().to_path_buf()]).err().unwrap().to_string();
        assert!(error.contains("holds a store (run.sqlite)"), "{error}");
    }
}
