//! `fwdlab report`.

use super::stores::stores_at;
use crate::exit::Exit;
use crate::terminal;
use fwdlab_results::report;
use fwdlab_results::store::Store;
use std::path::{Path, PathBuf};

/// Rebuild the report from the store alone: the same store gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab report results/demo
  fwdlab report results/demo/run.sqlite --out /tmp/demo
  fwdlab report results/archive                beside each of the stores below it")]
pub(crate) struct Arguments {
    /// An experiment's directory, its store, or a directory of several
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// Directory of the report; of several, each keeps its place below it
    /// [default: the store's]
    #[arg(long, short, value_name = "DIR", visible_alias = "output")]
    out: Option<PathBuf>,
}

/// Writes it.
///
/// # Errors
/// When there is no store, or the report can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    for path in stores_at(&arguments.path) {
        let store = Store::open_read_only(&path)?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let below = beside.strip_prefix(&arguments.path).unwrap_or(Path::new(""));
        let directory = match &arguments.out {
            Some(out) if below != Path::new("") => out.join(below),
            Some(out) => out.clone(),
            None => beside.to_path_buf(),
        };
        report::write(&store, &directory)?;
        terminal::print(&directory.join("README.md").display().to_string())?;
    }
    Ok(Exit::Done)
}
