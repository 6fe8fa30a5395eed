//! fwdlab: a laboratory for packet-forwarding performance.
//!
//! The binary joins the crates and contains only what a command line needs: arguments, one file per
//! command, progress, signals, exit codes. Nothing depends on it. Commands that measure exist on
//! Linux only, the others on any Unix.

// Items that only measuring commands use.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod command;
mod error;
#[cfg(target_os = "linux")]
mod events;
mod exit;
mod experiment;
#[cfg(target_os = "linux")]
mod git;
#[cfg(target_os = "linux")]
mod lease_wait;
mod link_types;
mod metric_arg;
mod missing;
#[cfg(target_os = "linux")]
mod notify;
mod output_format;
mod peer_arguments;
mod peer_forms;
mod profiling;
#[cfg(target_os = "linux")]
mod progress;
#[cfg(target_os = "linux")]
mod selftest;
mod serve;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod shard;
mod signal;
#[cfg(target_os = "linux")]
mod state_dir;
mod store_filter;
mod stores;
mod terminal;
mod value_enum;
mod verdict;

use clap::Parser;
use command::{Arguments, ministat};
use std::process::ExitCode;

/// Version, with the revision if it is known: `0.1.0 (73212c1-dirty)`.
pub(crate) const VERSION: &str = env!("FWDLAB_VERSION");

fn main() -> ExitCode {
    if let Some(arguments) = ministat::Arguments::of_command_line(std::env::args_os()) {
        return exit::guarded(|| ministat::execute(&arguments)).into();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // A mistake in the command line does not make a commit bad.
        Err(error) if std::env::args_os().any(|argument| argument == "--bisect") => {
            return exit::guarded_for_git(|| {
                error.print()?;
                Ok(exit::Exit::Mistake)
            })
            .into();
        }
        Err(error) => error.exit(),
    };
    arguments.color.apply();
    let is_for_git = arguments.command.is_for_git();
    let execute = || command::execute(arguments.command);
    if is_for_git { exit::guarded_for_git(execute) } else { exit::guarded(execute) }.into()
}
