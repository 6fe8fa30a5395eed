//! fwdlab: a laboratory for packet-forwarding performance.
//!
//! The binary joins the crates and holds what only a command line needs:
//! arguments, one file per command, progress, signals, exit codes. Nothing
//! depends on it.

mod command;
mod error;
mod events;
mod exit;
mod experiment;
mod filter;
mod form;
mod names;
mod notify;
mod profiling;
mod progress;
mod router;
mod rule;
mod selftest;
mod serve;
mod session;
mod signal;
mod state;
mod stores;
mod terminal;
mod verdict;

use clap::Parser;
use command::{Arguments, ministat};
use std::process::ExitCode;

/// Version, with the revision when it is known: `0.1.0 (73212c1-dirty)`.
pub(crate) const VERSION: &str = env!("FWDLAB_VERSION");

fn main() -> ExitCode {
    if let Some(arguments) = ministat::Arguments::of_command_line(std::env::args_os()) {
        return exit::guarded(|| ministat::execute(&arguments)).into();
    }
    let arguments = Arguments::parse();
    arguments.color.apply();
    exit::guarded(|| command::execute(arguments.command)).into()
}
