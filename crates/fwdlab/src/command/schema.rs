//! `fwdlab schema`: JSON Schemas of experiment and laboratory files.

use crate::exit::Exit;
use crate::terminal;

/// Print the JSON Schema of experiment files, for completion and checks in editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  fwdlab schema > experiment.schema.json")]
pub(crate) struct Arguments {}

/// Print the JSON Schema of laboratory files, for completion and checks in editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  fwdlab lab schema > lab.schema.json")]
pub(crate) struct OfLab {}

/// Prints the schema of laboratory files.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn of_lab() -> anyhow::Result<Exit> {
    terminal::print_json(&fwdlab_model::lab::schema())?;
    Ok(Exit::Done)
}

/// Prints the schema of experiment files.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn execute() -> anyhow::Result<Exit> {
    terminal::print_json(&fwdlab_model::schema::schema())?;
    Ok(Exit::Done)
}
