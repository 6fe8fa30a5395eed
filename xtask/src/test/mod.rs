//! The test runner: `cargo xtask test [LEVEL [WORD...]]`.
//!
//! libtest has no skipped tests, so `cargo test` counts a test that could not run as passed. This
//! runner builds the test programs once, runs them, and counts skips separately (`skips.rs`). It
//! reports the time per program, and as its last line `N passed, N failed, N skipped`.

mod build;
mod environment;
mod levels;
mod libtest;
mod program;
mod skips;
mod summary;
mod tally;

use crate::tool::Scratch;
use anyhow::{Result, bail};
use build::Program;
pub(crate) use build::build;
use levels::Lane;
use program::Setting;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tally::Run;

/// Runs all tests.
pub(crate) fn run_all(root: &Path) -> Result<()> {
    run(root, &[])
}

/// Runs the tests of the level given by the first word, or of all levels. The other words are
/// passed to each program: filters and options of libtest.
///
/// # Errors
/// Fails if the build or a test fails.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<()> {
    let (level, arguments) = match words.split_first() {
        None => (None, words),
        Some((all, arguments)) if all == "all" => (None, arguments),
        Some((name, arguments)) => (Some(levels::level(name)?), arguments),
    };
    let programs = build(root, level)?;
    let scratch = Scratch::new()?;
    let setting = Setting {
        arguments: arguments.to_vec(),
        environment: environment::defaults(root),
        scratch: scratch.0.clone(),
    };
    let runs = execute(&programs, &setting)?;
    print!("{}", summary::summary(&runs));
    match runs.iter().all(|run| run.tally().failed.is_empty()) {
        true => Ok(()),
        false => bail!("tests failed"),
    }
}

/// Runs the lanes of each group at the same time, and the programs of a lane one after the other.
fn execute(programs: &[Program], setting: &Setting) -> Result<Vec<Run>> {
    let runs = Mutex::new(Vec::new());
    let runs_of = &runs;
    let run_lane = |lane: Lane| -> Result<()> {
        for program in programs.iter().filter(|program| program.lane == lane) {
            let run = program::run(program, setting)?;
            runs_of.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        }
        Ok(())
    };
    for group in levels::LANES {
        std::thread::scope(|scope| {
            let spawn = |&lane| scope.spawn(move || run_lane(lane));
            let lanes: Vec<_> = group.iter().map(spawn).collect();
            lanes.into_iter().try_for_each(|lane| {
                lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
    }
    Ok(runs.into_inner().unwrap_or_else(PoisonError::into_inner))
}
