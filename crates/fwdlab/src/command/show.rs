//! `fwdlab show`: results of stored runs.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::VerboseFormArguments;
use crate::peer_arguments::{PeerArguments, refuse_selection};
use crate::store_filter::FilterArguments;
use crate::stores::{self, stores_at};
use crate::terminal::{self, HEADING, styled};
use crate::verdict::{self, FailOn};
use crate::{metric_arg, value_enum};
use fwdlab_model::plan::Rule;
use fwdlab_results::compare;
use fwdlab_results::report::{self, Analysis};
use std::path::{Path, PathBuf};

/// Show the results of stored runs, also while they are being measured.
///
/// Also shows a result of another tool (as `compare` reads them), in its unit.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab show results/demo
  fwdlab show results/demo --json | jq '.verdicts[] | {candidate, verdict}'
  fwdlab show results/demo --format mail       for a mailing list or a code review
  fwdlab show results/demo --fail-on worse || echo slower
  fwdlab show iperf3.json                      a result of another tool
  fwdlab show results/archive                  a table of all stores below it, the newest first
  fwdlab show results/archive --firewall pf    which machine forwards how much behind pf
  fwdlab show results/archive --format html >archive.html
  fwdlab show results/archive --filter 'xeon firewall'
  fwdlab show results/archive --filter xeon --full
  fwdlab show results/archive --json           the figures of all of them, as an array")]
pub(crate) struct Arguments {
    /// An experiment's directory, its store, a directory of several, or a file of another tool
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// For several stores: only those whose path, title or machine contains all of these words
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
    #[command(flatten)]
    selected: FilterArguments,
    /// For several stores: the results of each, instead of a table of the stores
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    form: VerboseFormArguments,
    /// Exit with 1 if a comparison has this verdict
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Rule for the value of an imported run [default: as imported]
    #[arg(long, value_name = "RULE", value_parser = value_enum::any::<Rule>())]
    rule: Option<Rule>,
    #[command(flatten)]
    peers: PeerArguments,
}

/// Prints the results.
///
/// # Errors
/// If there is no store, or it can't be read.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let filter = arguments.selected.filter();
    let is_all = arguments.filter.is_none() && filter.is_empty();
    let selection = arguments.peers.selection();
    if let Some(contents) = compare::contents(&arguments.path, selection)? {
        if !is_all || arguments.full || arguments.fail_on.is_some() || arguments.rule.is_some() {
            let what = "a file of another tool has no variants to select, judge or compute again\n  \
                        next step: leave out --filter, --full, --fail-on and --rule, or run fwdlab \
                        compare";
            return Err(CliError::Mistake(what.to_owned()).into());
        }
        arguments.form.print(&contents.document())?;
        return Ok(Exit::Done);
    }
    refuse_selection(selection)?;
    let paths = stores_at(&arguments.path);
    let shows_each_store = arguments.full
        || arguments.form.is_json()
        || arguments.fail_on.is_some()
        || arguments.rule.is_some();
    let is_table = paths.len() > 1 && !shows_each_store;
    if let Some(form) = arguments.form.single().filter(|_| !arguments.form.is_json()) {
        ensure_one(&paths, form, &arguments.path)?;
    }
    if !is_table && is_all {
        return print_each(arguments, &paths, true);
    }
    let words = arguments.filter.as_deref().unwrap_or_default();
    let catalogue = stores::catalogue(&paths, &arguments.path, &filter, words);
    if is_table {
        let title = arguments.path.display().to_string();
        arguments.form.print(&catalogue.document(&title, &|_| None))?;
        return Ok(Exit::Done);
    }
    for why in &catalogue.unreadable {
        terminal::warn(why);
    }
    let chosen: Vec<PathBuf> = catalogue.entries.into_iter().map(|entry| entry.path).collect();
    let exit = match (arguments.fail_on, chosen.is_empty(), catalogue.unreadable.is_empty()) {
        // A gate that judges nothing is no pass.
        (Some(_), true, _) => {
            return Err(CliError::Mistake(
                "--fail-on: no store is selected\n  next step: change the words or filters"
                    .to_owned(),
            )
            .into());
        }
        (Some(_), false, false) => Some(Exit::Untrustworthy),
        _ => None,
    };
    let judged = print_each(arguments, &chosen, false)?;
    Ok(exit.filter(|_| judged == Exit::Done).unwrap_or(judged))
}

/// Rejects several stores for a form whose files contain one document.
fn ensure_one(paths: &[PathBuf], form: &str, given: &Path) -> anyhow::Result<()> {
    if paths.len() > 1 {
        let what = format!(
            "{} contains {} stores; a file of --format {form} contains one\n  next step: name one \
             of them, e.g. {}",
            given.display(),
            paths.len(),
            paths[0].display()
        );
        return Err(CliError::Mistake(what).into());
    }
    Ok(())
}

/// Prints the results of each of the stores.
fn print_each(arguments: &Arguments, paths: &[PathBuf], is_all: bool) -> anyhow::Result<Exit> {
    let mut exits = Vec::new();
    let mut shown = Vec::new();
    let is_json = arguments.form.is_json();
    // A path of one store prints one object, a path of several an array.
    let is_one = is_all && paths.len() == 1;
    for (i, path) in paths.iter().enumerate() {
        let analysis = Analysis::of(&metric_arg::contents(path, arguments.rule)?);
        if is_json {
            shown.push(report::show_json(&analysis)?);
        } else {
            if paths.len() > 1 && arguments.form.is_of_terminal() {
                let gap = if i > 0 { "\n" } else { "" };
                terminal::print(&format!("{gap}{}", heading(path)))?;
            }
            arguments.form.print(&report::summary(&analysis, &report::shown(&analysis)?))?;
        }
        exits.push(verdict::exit(&analysis, arguments.fail_on));
    }
    match shown.as_slice() {
        [] if !is_json => {}
        [one] if is_one => terminal::print_json(one)?,
        _ => terminal::print_json(&shown.into())?,
    }
    Ok(verdict::exit_of_several(exits.into_iter()))
}

fn heading(path: &Path) -> String {
    styled(&path.display().to_string(), HEADING)
}
