//! `experiments/viewer.toml`: a viewer comes and goes as levels ask, and nobody stays behind.

use crate::support::{Lab, machine, values_per_variant};
use std::process::{Command, Stdio};

const EXPERIMENT: &str = include_str!("../../../../experiments/viewer.toml");
const SCRIPT: &str = include_str!("../../../../experiments/viewer.sh");
/// Short runs, without what a test does not ask.
const SHORT: [&str; 7] = [
    "--no-calibration",
    "--blocks",
    "1",
    "--set",
    "trial.duration=300ms",
    "--set",
    "trial.warmup=50ms",
];

/// A directory with the experiment, changed, and its script; none where this machine lacks
/// something.
fn lab(change: impl Fn(&str) -> String) -> Option<Lab> {
    let is_there = |program: &&str| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let needed = ["curl", "nsenter", "setsid", "taskset"];
    let missing: Vec<&str> = needed.into_iter().filter(|program| !is_there(program)).collect();
    if !rustix::process::geteuid().is_root() || !missing.is_empty() {
        fwdlab_testdata::skip("viewers outside of the namespaces need root, curl, util-linux");
        return None;
    }
    let lab = Lab::new("");
    let state = lab.path("viewers").display().to_string();
    let lab = lab.with("FWDLAB_VIEWER", &state);
    lab.write("viewer.toml", &change(EXPERIMENT));
    std::fs::create_dir(lab.path("experiments")).expect("a directory");
    lab.write("experiments/viewer.sh", SCRIPT);
    Some(lab)
}

#[test]
fn viewers_are_levels_that_leave_nothing_behind() {
    let Some(lab) = lab(str::to_owned) else { return };
    let _alone = machine();
    let arguments = [&["run", "viewer.toml", "--json"], &SHORT[..]].concat();
    let ended = lab.fwdlab(&arguments).carried_out();
    assert_eq!(values_per_variant(&ended.json()), [1, 1, 1], "{}", ended.stderr);
    assert!(!lab.path("viewers").exists(), "the last viewer has been ended");
    let said = std::fs::read_to_string(lab.path("results/viewer/results.json")).expect("results");
    for who in ["nobody", "watches", "clicks"] {
        let read_back = format!("`sh experiments/viewer.sh says` says {who}");
        assert!(said.contains(&read_back), "{who} is read back: {said}");
    }
}

#[test]
fn a_viewer_that_left_is_no_viewer() {
    let start = "\"sh experiments/viewer.sh watches viewer\"";
    let leaves = format!("{start}, \"sh -c 'kill $(cat $FWDLAB_VIEWER/page.pid); sleep 0.2'\"");
    let Some(lab) = lab(|text| text.replace(start, &leaves)) else { return };
    let _alone = machine();
    let arguments = [&["run", "viewer.toml"], &SHORT[..]].concat();
    let ended = lab.fwdlab(&arguments);
    let said = ended.stdout + &ended.stderr;
    assert!(said.contains("says `page has ended` after `setup`, and not `watches`"), "{said}");
    assert!(!lab.path("viewers").exists(), "what was left of it is gone");
}
