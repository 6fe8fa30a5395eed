//! `fwdlab show`.

use super::store_at;
use crate::exit::Exit;
use crate::terminal;
use crate::verdict::{self, FailOn};
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::store::Store;
use std::path::PathBuf;

/// Show the figures of stored runs, also while they are being measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab show results/demo
  fwdlab show results/demo --json | jq '.variants[] | {label, median}'
  fwdlab show results/demo --fail-on worse || echo slower")]
pub(crate) struct Arguments {
    /// An experiment's directory, or its store
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a comparison says so
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
}

/// Shows them.
///
/// # Errors
/// When there is no store, or it can't be read.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let store = Store::open_read_only(&store_at(&arguments.path))?;
    let analysis = Analysis::of_store(&store)?;
    if arguments.json {
        terminal::print_json(&report::show_json(&analysis))?;
    } else {
        terminal::print(&report::summary_text(&analysis, terminal::width()))?;
    }
    Ok(verdict::exit(&analysis, arguments.fail_on))
}
