//! fwdlab: a laboratory for packet-forwarding performance.
//!
//! The binary joins the crates and holds what only a command line needs:
//! arguments, one file per command, progress, signals, exit codes. Nothing
//! depends on it.

mod arguments;
mod command;
mod error;
mod exit;
mod experiment;
mod form;
mod names;
mod notify;
mod profiling;
mod progress;
mod router;
mod rule;
mod selftest;
mod session;
mod signal;
mod state;
mod terminal;
mod verdict;

use arguments::Arguments;
use clap::Parser;
use command::ministat;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(arguments) = ministat::Arguments::of_command_line(std::env::args_os()) {
        return exit::guarded(|| ministat::execute(&arguments)).into();
    }
    let arguments = Arguments::parse();
    arguments.color.apply();
    exit::guarded(|| command::execute(arguments.command)).into()
}
