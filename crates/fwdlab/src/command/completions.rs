//! `fwdlab completions`: completion scripts for shells.

use crate::exit::Exit;
use crate::terminal;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab completions bash > /etc/bash_completion.d/fwdlab
  fwdlab completions zsh > ~/.zfunc/_fwdlab
  fwdlab completions fish > ~/.config/fish/completions/fwdlab.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the completion script.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let mut command = super::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "fwdlab", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
