//! A directory for an experiment, and the program in it.

#[path = "../support/ended.rs"]
mod ended;

pub(crate) use ended::Ended;

use fwdlab_bench::testbed::sim::Sim;
use fwdlab_bench::{NoopObserver, Runner, Task};
use fwdlab_model::record::Environment;
use fwdlab_model::{Plan, PlannedRun, RunRecord};
use fwdlab_results::store::{Invocation, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

static MACHINE: Mutex<()> = Mutex::new(());

/// Held by tests that measure on this machine: the program refuses to start alongside another
/// measurement that lasts longer than it waits.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True for root; otherwise records that the test is skipped, with the reason.
pub(crate) fn is_root(why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        fwdlab_testdata::skip(why);
    }
    is_root
}

/// A simulated device that answers immediately: two variants, four blocks.
pub(crate) const INSTANT: &str = "\
version = 1
title = \"A simulated firewall\"
[testbed]
kind = \"sim\"
[testbed.sim]
noise = 0.01
effect = { \"firewall=stateful\" = 0.8 }
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[design]
blocks = 4
";

/// A separate directory for each test.
pub(crate) struct Lab {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Lab {
    /// Creates a directory that contains `x.toml`.
    pub(crate) fn new(experiment: &str) -> Lab {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let lab = Lab { directory, variables: Vec::new() };
        lab.write("x.toml", experiment);
        lab
    }

    /// Adds an environment variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Lab {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file that can be written");
    }

    /// Runs `x.toml` with `more` arguments; returns its `results.json` and the report.
    #[track_caller]
    pub(crate) fn results(&self, more: &[&str]) -> (Value, String) {
        self.fwdlab(&[&["run", "x.toml", "--quiet"], more].concat()).carried_out();
        let read = |name: &str| std::fs::read_to_string(self.path(name)).expect("written");
        let json = serde_json::from_str(&read("results/x/results.json")).expect("JSON");
        (json, read("results/x/README.md"))
    }

    /// The program with arguments, in an environment without preferences.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"] {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn fwdlab(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().expect("the program starts");
        Ended::from(output)
    }

    /// Contents of the files in a directory, without the store and the events of its session.
    pub(crate) fn files(&self, directory: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(self.path(directory)).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| !name_of(path).starts_with("run.sqlite"))
            .filter(|path| name_of(path) != "live.jsonl")
            .map(|path| (name_of(&path), std::fs::read(&path).expect("a file")))
            .collect()
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}:\n{}", self.stdout))
    }
}

/// Results as JSON without the versions of the programs that recorded them.
pub(crate) fn without_version(mut results: Value) -> Value {
    if let Some(object) = results.as_object_mut() {
        object.remove("fwdlab_version");
    }
    results
}

/// Creates a store as another invocation, on `testbed`, might have left it.
pub(crate) fn store(path: &Path, plan: &Plan, testbed: &str) -> Store {
    begun(Store::open(path).expect("a store"), plan, testbed)
}

/// The store with a plan and an invocation, ready for runs.
pub(crate) fn begun(mut store: Store, plan: &Plan, testbed: &str) -> Store {
    store.adopt_plan(plan, "").expect("adopted");
    let invocation = Invocation {
        started_at: "2026-01-01T00:00:00.000Z".into(),
        fwdlab_version: "test".into(),
        testbed: testbed.parse().expect("a testbed"),
        testbed_reason: "a test".into(),
        simulated: testbed == "sim",
        bed: None,
        environment: Environment::default(),
    };
    store.begin_invocation(&invocation).expect("begun");
    store
}

/// The plan of an experiment called `x.toml`.
pub(crate) fn plan(experiment: &str) -> Plan {
    fwdlab_model::load("x.toml", experiment, &|_| Ok(Vec::new())).expect("a plan")
}

/// Executes one run on a simulated device.
pub(crate) fn simulated(plan: &Plan, run: &PlannedRun) -> RunRecord {
    let task = Task { plan, run, ceiling_pps: None };
    Runner::new(Box::new(Sim::new(Vec::new()))).run(task, &mut NoopObserver).expect("a record")
}

/// Number of values of each variant in the output of `show --json` or `run --json`.
pub(crate) fn values_per_variant(shown: &Value) -> Vec<usize> {
    let variants = shown["variants"].as_array().expect("a list of variants");
    variants.iter().map(|variant| variant["values"].as_array().expect("values").len()).collect()
}
