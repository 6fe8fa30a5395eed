//! The project's development tasks: `cargo xtask COMMAND`.
//!
//! Plain `cargo` commands (build, test, lint, doc) are not repeated here; the `Makefile` and
//! `.ci/run` combine both.

mod bpf;
mod deny;
mod experiments;
mod fuzz;
mod package;
mod rules;
mod schema;
mod style;
mod systems;
mod test;
mod tool;
mod tree;

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments, description and function of each command.
const COMMANDS: &[(&[&str], &str, Chore)] = &[
    (&["bpf"], "compile the BPF programs of crates/netio/bpf", bpf::build),
    (&["bpf", "--check"], "compare the committed BPF objects with their sources", bpf::check),
    (&["check"], "check the tree against the house rules", rules::check),
    (&["deny"], "check dependencies against deny.toml: licences, bans, sources", deny::check),
    (&["dist"], "make the files of a release in target/dist", package::dist),
    (&["package"], "make the archive and the Debian package of the static program", package::make),
    (&["package", "--arm64"], "cross-compile both for arm64", package::make_for_arm),
    (
        &["package", "--debug"],
        "make a Debian package of the program of `cargo build`, for tests",
        package::make_of_debug,
    ),
    (
        &["package", "--again"],
        "make the packages of the last commit twice and compare the bytes",
        package::make_again,
    ),
    (
        &["package", "--try"],
        "install and use the Debian package in a bare root file system",
        package::try_in_bare_root,
    ),
    (&["test"], "run the tests of one level or all: test LEVEL|all [WORD...]", test::run_all),
    (
        &["experiments"],
        "run shipped experiments for real and check their expectations: experiments [NAME...]",
        experiments::run_all,
    ),
    (&["fuzz"], "fuzz one target or all: fuzz TARGET|all [SECONDS]", fuzz::usage),
    (
        &["systems"],
        "test the program in Debian 13 and sid, and count under their QEMUs",
        systems::try_in_all,
    ),
    (&["style"], "compare the number of style violations with docs/style.csv", style::check),
    (&["style", "list"], "print every style violation", style::list),
    (&["schema"], "update the schema and the reference of experiment files", schema::refresh),
];

/// A command's function; receives the root of the repository.
type Chore = fn(&Path) -> Result<()>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match execute(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(words: &[String]) -> Result<()> {
    match words.split_first() {
        Some((name, arguments)) if name == "test" => return test::run(&root(), arguments),
        Some((name, arguments)) if name == "experiments" => {
            return experiments::run(&root(), arguments);
        }
        Some((name, arguments)) if name == "fuzz" => return fuzz::run(&root(), arguments),
        _ => {}
    }
    match COMMANDS.iter().find(|(arguments, ..)| words == *arguments) {
        Some((_, _, chore)) => chore(&root()),
        None => bail!("unknown command\n\n{}", usage()),
    }
}

fn usage() -> String {
    let lines = COMMANDS.iter().map(|(arguments, meaning, _)| {
        format!("  cargo xtask {:<16} {meaning}\n", arguments.join(" "))
    });
    lines.collect()
}

/// Returns the root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns true in continuous integration, where a test that cannot run counts as failed.
fn must_not_skip() -> bool {
    std::env::var_os("FWDLAB_CI").is_some_and(|value| value == "1")
}
