//! `fwdlab report`.

use super::stores::stores_at;
use crate::exit::Exit;
use crate::terminal;
use crate::{names, rule};
use fwdlab_model::plan::Rule;
use fwdlab_results::report;
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
    /// The figure that stands for an imported run [default: as imported]
    #[arg(long, value_name = "RULE", value_parser = names::any::<Rule>())]
    rule: Option<Rule>,
}

/// Writes it.
///
/// # Errors
/// When there is no store, or the report can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    for path in stores_at(&arguments.path) {
        let contents = rule::contents(&path, arguments.rule)?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let below = beside.strip_prefix(&arguments.path).unwrap_or(Path::new(""));
        let directory = match &arguments.out {
            Some(out) if below != Path::new("") => out.join(below),
            Some(out) => out.clone(),
            None => beside.to_path_buf(),
        };
        report::write_contents(&contents, &directory)?;
        terminal::print(&directory.join("README.md").display().to_string())?;
    }
    Ok(Exit::Done)
}
