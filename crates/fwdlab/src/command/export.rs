//! `fwdlab export`: stores as Parquet files, or in the forms of other tools.

use crate::error::CliError;
use crate::exit::Exit;
use crate::metric_arg;
use crate::peer_forms::PeerForm;
use crate::signal::Stop;
use crate::stores::{in_parallel, stores_at};
use crate::terminal;
use anyhow::Context;
use fwdlab_export::{CURRENT, Export, ExportError, Limits};
use fwdlab_results::report::Analysis;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Export stores as Parquet files, for SQL queries over many of them.
///
/// Writes tables of experiments, runs, samples, trials, counters, settings, verdicts and warnings,
/// in folders by bed and period, each of which DuckDB and other readers treat as one table.
/// docs/QUERIES.md lists their columns and has examples. Stores are read, never changed. Only new
/// and changed stores are read. The tables in DIR/current are replaced atomically: a reader sees
/// either the old ones or the new ones.
///
/// With --format, prints the results as JSON of another tool: test cases of FD.io CSIT, or flow
/// metrics of an Open Traffic Generator.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab export results --parquet tables
  fwdlab export results --parquet tables --since 2026-01-31
  fwdlab export results/demo --format csit >cases.json
  duckdb -c \"SELECT bed, label, median(value_pps) FROM 'tables/current/runs/**/*.parquet' GROUP BY ALL\"")]
pub(crate) struct Arguments {
    /// A store, a directory with one, or a directory tree with many
    #[arg(value_name = "DIR")]
    stores: PathBuf,
    /// Directory for the tables
    #[arg(long, value_name = "DIR", required_unless_present = "format")]
    parquet: Option<PathBuf>,
    /// Print the results as JSON of another tool instead
    #[arg(long, value_name = "FORM", conflicts_with_all = ["parquet", "since", "json"])]
    format: Option<PeerForm>,
    /// Only stores with a run on this day or later (2026-01-31)
    #[arg(long, value_name = "DATE", value_parser = super::history::date)]
    since: Option<String>,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Number of stores to read before their rows are distributed to the tables.
const CHUNK: usize = 32;

/// Exports the stores.
///
/// # Errors
/// If there is no store, a store can't be read, or a file can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let directory = match (arguments.format, &arguments.parquet) {
        (Some(form), _) => return print(form, &arguments.stores),
        (None, Some(directory)) => directory,
        (None, None) => return Err(CliError::Mistake("--parquet is missing".to_owned()).into()),
    };
    let stop = Stop::on_signals()?;
    // A bare name has an empty parent, of which it is no part.
    let given = Path::new(".").join(&arguments.stores);
    let root = match given.is_dir() {
        true => given.as_path(),
        false => given.parent().unwrap_or(Path::new(".")),
    };
    let stores = stores_at(&given);
    let mut export = Export::open(directory, Limits::default()).map_err(mistaken)?;
    let tasks = export.tasks(&stores, root, arguments.since.as_deref()).map_err(mistaken)?;
    let mut unreadable = Vec::new();
    for tasks in tasks.chunks(CHUNK) {
        let read = in_parallel(tasks, |task| match stop.requested() {
            true => None,
            false => Some(task.read()),
        });
        for (read, task) in read.into_iter().zip(tasks) {
            match read {
                None => {}
                Some(Ok(read)) => export.add(read)?,
                // One unreadable store of a tree doesn't affect the others; a full disk does.
                Some(Err(ExportError::Store(why))) if stores.len() > 1 => {
                    unreadable.push(why.to_string());
                }
                Some(Err(why)) => return Err(why).context(task.path.display().to_string()),
            }
        }
    }
    for why in &unreadable {
        terminal::warn(&format!("left out: {why}"));
    }
    if stop.requested() {
        let why = "nothing was exported: the tables are unchanged";
        return Err(CliError::Interrupted(why.to_owned()).into());
    }
    if unreadable.len() == stores.len() {
        let why = unreadable.first().map_or("no store", String::as_str);
        let place = arguments.stores.display();
        return Err(CliError::Mistake(format!("nothing to export from {place}: {why}")).into());
    }
    let exported = export.finish()?;
    let directory = directory.join(CURRENT);
    if arguments.json {
        let value = json!({
            "version": fwdlab_export::VERSION,
            "directory": directory,
            "stores": exported.stores,
            "read": exported.read,
            "unchanged": exported.unchanged,
            "older": exported.older,
            "gone": exported.gone,
            "unreadable": unreadable,
            "runs": exported.runs,
            "files": exported.files,
            "bytes": exported.bytes,
        });
        terminal::print_json(&value)?;
        return Ok(Exit::Done);
    }
    let words = [
        (exported.read, "read"),
        (exported.unchanged, "unchanged"),
        (exported.older, "older left alone"),
        (exported.gone, "gone"),
    ];
    let words = words.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    let words = words.collect::<Vec<_>>().join(", ");
    let words = if words.is_empty() { words } else { format!(" ({words})") };
    terminal::print(&format!(
        "{} stores{words}: {} runs, {} files, {:.1} MB in {}\n",
        exported.stores,
        exported.runs,
        exported.files,
        exported.bytes as f64 / 1e6,
        directory.display()
    ))?;
    Ok(Exit::Done)
}

/// Prints the results of stores in the form of another tool.
fn print(form: PeerForm, stores: &Path) -> anyhow::Result<Exit> {
    let paths = stores_at(stores);
    let mut read = Vec::new();
    for path in &paths {
        let contents = metric_arg::contents(path, None)?;
        let analysis = Analysis::of(&contents);
        read.push((path.as_path(), contents, analysis));
    }
    terminal::print_json(&form.write(&read)?)?;
    Ok(Exit::Done)
}

/// Converts errors that the user can correct.
fn mistaken(why: ExportError) -> anyhow::Error {
    match why {
        ExportError::Busy { .. } | ExportError::Taken { .. } => {
            CliError::Mistake(why.to_string()).into()
        }
        why => why.into(),
    }
}
