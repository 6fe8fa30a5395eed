//! `fwdlab schema`.

use crate::exit::Exit;
use crate::terminal;

/// Print the JSON Schema of experiment files, for editors that complete and
/// check TOML by it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  fwdlab schema > experiment.schema.json")]
pub(crate) struct Arguments {}

/// Print the JSON Schema of a lab's file, for editors that complete and check TOML by it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  fwdlab lab schema > lab.schema.json")]
pub(crate) struct OfLab {}

/// Prints that of a lab's file.
///
/// # Errors
/// When standard output can't be written.
pub(crate) fn of_lab() -> anyhow::Result<Exit> {
    terminal::print_json(&fwdlab_model::lab::schema())?;
    Ok(Exit::Done)
}

/// Prints it.
///
/// # Errors
/// When standard output can't be written.
pub(crate) fn execute() -> anyhow::Result<Exit> {
    terminal::print_json(&fwdlab_model::schema::schema())?;
    Ok(Exit::Done)
}
