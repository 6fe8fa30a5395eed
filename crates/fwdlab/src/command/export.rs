//! `fwdlab export`.

use crate::error::CliError;
use crate::exit::Exit;
use crate::signal::Stop;
use crate::stores::{in_parallel, stores_at};
use crate::terminal;
use anyhow::Context;
use fwdlab_export::{ExportError, Exported};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write stores as Parquet files, for questions in SQL over many of them.
///
/// Tables of experiments, runs, samples, trials, counters, settings, verdicts and warnings,
/// in folders by bed and day that DuckDB and other readers take for one table each.
/// docs/QUERIES.md has their columns and examples. Stores are read, never changed; what was
/// exported before is replaced.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab export results --parquet tables
  fwdlab export results --parquet tables --since 2026-01-31
  duckdb -c \"SELECT bed, label, median(value_pps) FROM 'tables/runs/**/*.parquet' GROUP BY ALL\"")]
pub(crate) struct Arguments {
    /// A store, a directory with one, or a directory tree with many
    #[arg(value_name = "DIR")]
    stores: PathBuf,
    /// Directory for the tables
    #[arg(long, value_name = "DIR")]
    parquet: PathBuf,
    /// Only stores with a run of this day or later (2026-01-31)
    #[arg(long, value_name = "DATE", value_parser = super::history::date)]
    since: Option<String>,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// Writes them.
///
/// # Errors
/// When there is no store, one can't be read, or a file can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let stop = Stop::on_signals()?;
    let root = match arguments.stores.is_dir() {
        true => arguments.stores.as_path(),
        false => arguments.stores.parent().unwrap_or(Path::new(".")),
    };
    let stores = stores_at(&arguments.stores);
    let (target, since) = (&arguments.parquet, arguments.since.as_deref());
    let made = in_parallel(&stores, |store| match stop.requested() {
        true => None,
        false => Some(fwdlab_export::export(store, root, target, since)),
    });
    let mut sum = Exported::default();
    let (mut exported, mut older, mut unreadable) = (0, 0, Vec::new());
    for (made, store) in made.into_iter().zip(&stores) {
        match made {
            None => {}
            Some(Ok(None)) => older += 1,
            Some(Ok(Some(one))) => {
                exported += 1;
                sum.runs += one.runs;
                sum.files += one.files;
                sum.bytes += one.bytes;
            }
            // One store of a tree doesn't spoil the others; a full disk does.
            Some(Err(ExportError::Store(why))) if stores.len() > 1 => {
                unreadable.push(why.to_string());
            }
            Some(Err(why)) => return Err(why).context(store.display().to_string()),
        }
    }
    for why in &unreadable {
        terminal::warn(&format!("left out: {why}"));
    }
    if stop.requested() {
        let next = "the same command begins anew";
        return Err(
            CliError::Interrupted(format!("{exported} stores were exported; {next}")).into()
        );
    }
    if exported + older == 0 {
        let why = unreadable.first().map_or("no store", String::as_str);
        let place = arguments.stores.display();
        return Err(CliError::Mistake(format!("nothing to export from {place}: {why}")).into());
    }
    if arguments.json {
        let value = json!({
            "version": fwdlab_export::VERSION,
            "directory": target,
            "stores": exported,
            "older": older,
            "unreadable": unreadable,
            "runs": sum.runs,
            "files": sum.files,
            "bytes": sum.bytes,
        });
        terminal::print_json(&value)?;
        return Ok(Exit::Done);
    }
    let older = if older == 0 { String::new() } else { format!(", {older} older left alone") };
    terminal::print(&format!(
        "{exported} stores{older}: {} runs, {} files, {:.1} MB in {}\n",
        sum.runs,
        sum.files,
        sum.bytes as f64 / 1e6,
        target.display()
    ))?;
    Ok(Exit::Done)
}
