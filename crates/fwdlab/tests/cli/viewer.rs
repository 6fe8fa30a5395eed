//! `experiments/viewer.toml`: a viewer comes and goes with the levels, and none remains.

use crate::support::{Lab, machine, values_per_variant};
use std::process::{Command, Stdio};

const EXPERIMENT: &str = include_str!("../../../../experiments/viewer.toml");
const SCRIPT: &str = include_str!("../../../../experiments/viewer.sh");
/// Short runs, without anything that the test does not need.
const SHORT: [&str; 7] = [
    "--no-calibration",
    "--blocks",
    "1",
    "--set",
    "trial.duration=300ms",
    "--set",
    "trial.warmup=50ms",
];

/// A directory with the changed experiment and its script; `None` if this machine does not meet its
/// requirements.
fn lab(change: impl Fn(&str) -> String) -> Option<Lab> {
    let is_there = |program: &&str| {
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
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
fn viewer_levels_leave_no_viewer_behind() {
    let Some(lab) = lab(str::to_owned) else { return };
    let _alone = machine();
    let arguments = [&["run", "viewer.toml", "--json"], &SHORT[..]].concat();
    let ended = lab.fwdlab(&arguments).carried_out();
    assert_eq!(values_per_variant(&ended.json()), [1, 1, 1], "{}", ended.stderr);
    assert!(!lab.path("viewers").exists(), "the last viewer has been ended");
    let results =
        std::fs::read_to_string(lab.path("results/viewer/results.json")).expect("results");
    for who in ["nobody", "watches", "clicks"] {
        let read_back = format!("`sh experiments/viewer.sh says` says {who}");
        assert!(results.contains(&read_back), "{who} is read back: {results}");
    }
}

#[test]
fn departed_viewer_is_reported() {
    let start = "\"sh experiments/viewer.sh watches viewer\"";
    let leaves = format!("{start}, \"sh -c 'kill $(cat $FWDLAB_VIEWER/page.pid); sleep 0.2'\"");
    let Some(lab) = lab(|text| text.replace(start, &leaves)) else { return };
    let _alone = machine();
    let arguments = [&["run", "viewer.toml"], &SHORT[..]].concat();
    let ended = lab.fwdlab(&arguments);
    let output = ended.stdout + &ended.stderr;
    assert!(output.contains("prints `page has ended` after `setup`, not `watches`"), "{output}");
    assert!(!lab.path("viewers").exists(), "what was left of it is gone");
}
