//! `fwdlab merge`: merges the stores of a plan's shares.

use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::STORE;
use crate::stores::stores_at;
use crate::terminal;
use anyhow::Result;
use fwdlab_results::facts;
use fwdlab_results::store::{self, Merged, Store, StoredInvocation};
use serde_json::json;
use std::path::PathBuf;

/// Merge the stores of a plan's shares.
///
/// `fwdlab run --share 1/4` measures a part of a plan into its own store, on any machine. This
/// command merges the parts into one store, which contains every run of one plan exactly once. If
/// that is impossible, it reports the reason and writes nothing. The parts stay unchanged.
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
    /// Directory for the merged store
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Allow missing runs: merge those measured so far
    #[arg(long)]
    partial: bool,
    /// Replace an existing store; the old one is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

/// Merges the stores.
///
/// # Errors
/// If they are not parts of one plan, a run is missing or duplicate, or a store can't be read or
/// written.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let mut stores: Vec<PathBuf> =
        arguments.stores.iter().flat_map(|path| stores_at(path)).collect();
    stores.sort();
    stores.dedup();
    check_revisions(&stores)?;
    let target = arguments.out.join(STORE);
    let merged = match arguments.fresh {
        false => store::merge(&stores, &target, arguments.partial)?,
        true => {
            let (merged, aside) = store::merge_anew(&stores, &target, arguments.partial)?;
            let notice = aside.map(|aside| format!("the old store is kept as {}", aside.display()));
            notice.iter().for_each(|notice| terminal::note(notice));
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
    terminal::print(&summary(&merged, &target.display().to_string()))?;
    Ok(Exit::Done)
}

/// Refuses stores of different revisions: a store has one.
fn check_revisions(stores: &[PathBuf]) -> Result<()> {
    let mut first: Option<(&PathBuf, Option<String>)> = None;
    for path in stores {
        // A merge refuses what is no store, with its reason.
        let Ok(invocations) = Store::open_read_only(path).and_then(|store| store.invocations())
        else {
            continue;
        };
        let of = |stored: &StoredInvocation| {
            facts::revision(&stored.invocation.environment).map(str::to_owned)
        };
        let revision = invocations.iter().find_map(of);
        match &first {
            None => first = Some((path, revision)),
            Some((_, known)) if *known == revision => {}
            Some((other, known)) => {
                let name = |of: &Option<String>| match of {
                    Some(revision) => format!("revision {revision}"),
                    None => "no named revision".to_owned(),
                };
                return Err(CliError::Mistake(format!(
                    "{} has runs of {}, {} of {}\n  next step: merge the stores of each revision \
                     separately",
                    other.display(),
                    name(known),
                    path.display(),
                    name(&revision)
                ))
                .into());
            }
        }
    }
    Ok(())
}

fn summary(merged: &Merged, target: &str) -> String {
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
    fn summary_lists_runs_and_beds() {
        let beds = [("a".to_owned(), 2), (String::new(), 1)].into_iter().collect();
        let merged = Merged { stores: 2, runs: 3, planned: 4, beds };
        assert_eq!(
            summary(&merged, "x/run.sqlite"),
            "3 of 4 runs of 2 stores are in x/run.sqlite\nbed, with its runs: a 2\n"
        );
    }
}
