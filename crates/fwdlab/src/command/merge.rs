//! `fwdlab merge`.

use crate::exit::Exit;
use crate::experiment::STORE;
use crate::stores::stores_at;
use crate::terminal;
use anyhow::Result;
use fwdlab_results::store::{self, Merged};
use serde_json::json;
use std::path::PathBuf;

/// Put stores of shares of one plan together.
///
/// `fwdlab run --share 1/4` measures a part of a plan into a store of its own, on whatever
/// machine. Here the parts become one store: of one plan, every run once, none missing. What
/// keeps them from that is named, and nothing is written then. The parts stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab merge results/demo/.shares --out results/demo
  fwdlab merge rack1/demo rack2/demo --out results/demo
  fwdlab merge results/demo/.shares --out /tmp/so-far --partial")]
pub(crate) struct Arguments {
    /// A store, a directory with one, or a directory tree with many
    #[arg(value_name = "DIR", required = true)]
    stores: Vec<PathBuf>,
    /// Directory for the store of the whole
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Runs may be missing: what is there so far
    #[arg(long)]
    partial: bool,
    /// In place of a store that is there; the old one is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// Print what was merged as JSON
    #[arg(long)]
    json: bool,
}

/// Merges them.
///
/// # Errors
/// When they are not parts of one plan, a run lacks or is there twice, or a store can't be read
/// or written.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let mut stores: Vec<PathBuf> =
        arguments.stores.iter().flat_map(|path| stores_at(path)).collect();
    stores.sort();
    stores.dedup();
    let target = arguments.out.join(STORE);
    let merged = match arguments.fresh {
        false => store::merge(&stores, &target, arguments.partial)?,
        true => {
            let (merged, aside) = store::merge_anew(&stores, &target, arguments.partial)?;
            let told = aside.map(|aside| format!("the old store is kept as {}", aside.display()));
            told.iter().for_each(|told| terminal::note(told));
            merged
        }
    };
    let Merged { stores, runs, planned, beds } = &merged;
    if arguments.json {
        let beds: Vec<_> =
            beds.iter().map(|(bed, runs)| json!({ "bed": bed, "runs": runs })).collect();
        let value = json!({
            "store": target, "stores": stores, "runs": runs, "planned": planned, "beds": beds,
        });
        terminal::print_json(&value)?;
        return Ok(Exit::Done);
    }
    terminal::print(&said(&merged, &target.display().to_string()))?;
    Ok(Exit::Done)
}

fn said(merged: &Merged, target: &str) -> String {
    let Merged { stores, runs, planned, beds } = merged;
    let whole = match runs == planned {
        true => format!("all {runs} runs"),
        false => format!("{runs} of {planned} runs"),
    };
    let named = beds.iter().filter(|(bed, _)| !bed.is_empty());
    let named: Vec<String> = named.map(|(bed, runs)| format!("{bed} {runs}")).collect();
    let beds = match named.len() {
        0 => String::new(),
        1 => format!("\nbed, with its runs: {}", named[0]),
        n => format!("\n{n} beds, with their runs: {}", named.join(", ")),
    };
    format!("{whole} of {stores} stores are in {target}{beds}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_merged_is_said_with_its_beds() {
        let beds = [("a".to_owned(), 2), (String::new(), 1)].into_iter().collect();
        let merged = Merged { stores: 2, runs: 3, planned: 4, beds };
        assert_eq!(
            said(&merged, "x/run.sqlite"),
            "3 of 4 runs of 2 stores are in x/run.sqlite\nbed, with its runs: a 2\n"
        );
    }
}
