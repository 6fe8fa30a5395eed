//! `fwdlab show`.

use super::stores::stores_at;
use crate::exit::Exit;
use crate::terminal::{self, HEADING, styled};
use crate::verdict::{self, FailOn};
use crate::{names, rule};
use fwdlab_model::plan::Rule;
use fwdlab_results::report::{self, Analysis};
use std::path::{Path, PathBuf};

/// Show the figures of stored runs, also while they are being measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab show results/demo
  fwdlab show results/demo --json | jq '.variants[] | {label, median}'
  fwdlab show results/demo --fail-on worse || echo slower
  fwdlab show results/archive --json           all stores below it, as an array")]
pub(crate) struct Arguments {
    /// An experiment's directory, its store, or a directory of several
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 1 when a comparison says so
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// The figure that stands for an imported run [default: as imported]
    #[arg(long, value_name = "RULE", value_parser = names::any::<Rule>())]
    rule: Option<Rule>,
}

/// Shows them.
///
/// # Errors
/// When there is no store, or it can't be read.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let paths = stores_at(&arguments.path);
    let mut exit = Exit::Done;
    let mut shown = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        let analysis = Analysis::of(&rule::contents(path, arguments.rule)?);
        if arguments.json {
            shown.push(report::show_json(&analysis));
        } else {
            if paths.len() > 1 {
                let gap = if i > 0 { "\n" } else { "" };
                terminal::print(&format!("{gap}{}", heading(path)))?;
            }
            terminal::print(&report::summary_text(&analysis, terminal::width()))?;
        }
        exit = match verdict::exit(&analysis, arguments.fail_on) {
            Exit::Done => exit,
            other => other,
        };
    }
    match shown.as_slice() {
        [] => {}
        [one] if paths.len() == 1 => terminal::print_json(one)?,
        _ => terminal::print_json(&shown.into())?,
    }
    Ok(exit)
}

fn heading(path: &Path) -> String {
    styled(&path.display().to_string(), HEADING)
}
