//! `fwdlab man`: manual pages, for packagers.

use crate::error::CliError;
use crate::exit::Exit;
use clap::CommandFactory;
use std::path::PathBuf;

/// Write a manual page for the program and one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  fwdlab man /usr/local/share/man/man1")]
pub(crate) struct Arguments {
    /// Directory for the pages
    directory: PathBuf,
}

/// Writes the manual pages.
///
/// # Errors
/// If the directory can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let directory = &arguments.directory;
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(super::Arguments::command(), directory))
        .map_err(|error| {
            CliError::Environment(format!("can't write to {}: {error}", directory.display()))
        })?;
    Ok(Exit::Done)
}
