//! The project's chores: `cargo xtask COMMAND`.
//!
//! What `cargo` does by itself (build, test, lint, document) is left to it; the
//! `Makefile` and `.ci/run` put the pieces together.

mod bpf;
mod deny;
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

/// Arguments, what they do, and how.
const COMMANDS: &[(&[&str], &str, Chore)] = &[
    (&["bpf"], "compile the BPF programs of crates/netio/bpf", bpf::build),
    (&["bpf", "--check"], "compare the committed BPF objects with their sources", bpf::check),
    (&["check"], "hold the tree against the house rules", rules::check),
    (&["deny"], "hold what is depended on against deny.toml: licences, bans, sources", deny::check),
    (&["dist"], "make everything that a release consists of, in target/dist", package::dist),
    (&["package"], "make the static program's archive and Debian package", package::make),
    (&["package", "--arm64"], "make both for arm64, by a compiler for it", package::make_for_arm),
    (
        &["package", "--debug"],
        "make the Debian package around the program of `cargo build`, to be tried",
        package::make_of_debug,
    ),
    (
        &["package", "--again"],
        "make those of the last commit twice: the same bytes",
        package::make_again,
    ),
    (
        &["package", "--try"],
        "install and use the Debian package in a bare root",
        package::try_in_bare_root,
    ),
    (&["test"], "run the tests of all levels, or of one: test LEVEL [WORD...]", test::run_all),
    (&["fuzz"], "fuzz one target or all: fuzz TARGET|all [SECONDS]", fuzz::usage),
    (
        &["systems"],
        "try the program in roots of Debian 13 and sid, and count under their QEMUs",
        systems::try_in_all,
    ),
    (
        &["style"],
        "compare the counts of what docs/STYLE.md avoids with docs/style.csv",
        style::check,
    ),
    (&["style", "list"], "print each place that docs/STYLE.md avoids", style::list),
    (&["schema"], "refresh the schema and the reference of experiment files", schema::refresh),
];

/// A chore gets the root of the repository.
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
        Some((name, arguments)) if name == "fuzz" => return fuzz::run(&root(), arguments),
        _ => {}
    }
    match COMMANDS.iter().find(|(arguments, ..)| words == *arguments) {
        Some((_, _, chore)) => chore(&root()),
        None => bail!("no such chore\n\n{}", usage()),
    }
}

fn usage() -> String {
    let lines = COMMANDS.iter().map(|(arguments, meaning, _)| {
        format!("  cargo xtask {:<16} {meaning}\n", arguments.join(" "))
    });
    lines.collect()
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// True in continuous integration, where a test that can't run has failed.
fn must_not_skip() -> bool {
    std::env::var_os("FWDLAB_CI").is_some_and(|value| value == "1")
}
