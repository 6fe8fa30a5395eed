//! `fwdlab report`.

use super::store_at;
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
  fwdlab report results/demo/run.sqlite --out /tmp/demo")]
pub(crate) struct Arguments {
    /// An experiment's directory, or its store
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// Directory of the report [default: the store's]
    #[arg(long, short, value_name = "DIR", visible_alias = "output")]
    out: Option<PathBuf>,
}

/// Writes it.
///
/// # Errors
/// When there is no store, or the report can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let path = store_at(&arguments.path);
    let store = Store::open_read_only(&path)?;
    let beside = path.parent().unwrap_or(Path::new("."));
    let directory = arguments.out.as_deref().unwrap_or(beside);
    report::write(&store, directory)?;
    terminal::print(&directory.join("README.md").display().to_string())?;
    Ok(Exit::Done)
}
