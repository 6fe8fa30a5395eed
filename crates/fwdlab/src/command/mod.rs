//! One file per command.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod flamegraph;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod import_lab;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod ministat;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod receive;
pub(crate) mod report;
pub(crate) mod route;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod selftest;
pub(crate) mod send;
pub(crate) mod show;
mod stored_profile;
mod stores;

use crate::arguments::Command;
use crate::exit::Exit;
use std::path::{Path, PathBuf};

/// Name of the store within an experiment's directory.
pub(crate) const STORE: &str = "run.sqlite";

/// Does what the user asks.
///
/// # Errors
/// Whatever the command meets; [`crate::exit`] says which exit code it means.
pub(crate) fn execute(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Run(arguments) => run::execute(&arguments),
        Command::Plan(arguments) => plan::execute(&arguments),
        Command::Report(arguments) => report::execute(&arguments),
        Command::Show(arguments) => show::execute(&arguments),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::History(arguments) => history::execute(&arguments),
        Command::Import(arguments) => import::execute(&arguments),
        Command::ImportLab(arguments) => import_lab::execute(&arguments),
        Command::Profile(arguments) => profile::execute(&arguments),
        Command::Flamegraph(arguments) => flamegraph::execute(&arguments),
        Command::Route(arguments) => route::execute(&arguments),
        Command::Send(arguments) => send::execute(&arguments),
        Command::Receive(arguments) => receive::execute(&arguments),
        Command::Lab(command) => lab::execute(&command),
        Command::Doctor(arguments) => doctor::execute(&arguments),
        Command::Bench(bench::Command::Sender(arguments)) => bench::execute(&arguments),
        Command::Bench(bench::Command::Fib(arguments)) => bench::fib::execute(&arguments),
        Command::Bench(bench::Command::Route(arguments)) => bench::route::execute(&arguments),
        Command::Ministat(arguments) => ministat::execute(&arguments),
        Command::Completions(arguments) => completions::execute(&arguments),
        Command::Selftest(arguments) => selftest::execute(&arguments),
        Command::Schema(_) => schema::execute(),
        Command::Man(arguments) => man::execute(&arguments),
    }
}

/// The store that the user means: the file, or the one in the directory.
fn store_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(STORE) } else { path.to_path_buf() }
}
