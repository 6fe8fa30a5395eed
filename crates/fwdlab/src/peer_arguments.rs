//! Arguments that select from files of other tools.

use crate::error::CliError;
use fwdlab_results::compare::Selection;

/// Selection from files of other tools.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeerArguments {
    /// In results of other tools: the benchmark to read
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// In results of other tools: the value to read, e.g. sent, B/op [default: the usual one]
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
}

impl PeerArguments {
    pub(crate) fn selection(&self) -> Selection<'_> {
        Selection { only: self.only.as_deref(), column: self.column.as_deref() }
    }
}

/// Refuses a selection if no argument is a file of another tool.
///
/// # Errors
/// A mistake if something is selected.
pub(crate) fn refuse_selection(selection: Selection<'_>) -> Result<(), CliError> {
    if selection.only.is_none() && selection.column.is_none() {
        return Ok(());
    }
    let what = "--only and --column select from files of other tools: give such a file\n  next \
                step: leave both options out";
    Err(CliError::Mistake(what.to_owned()))
}
