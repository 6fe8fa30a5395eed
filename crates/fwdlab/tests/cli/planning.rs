//! Predictions of an experiment's power before it runs.

use crate::support::{INSTANT, Lab};
use fwdlab_model::record::TrialRecord;
use fwdlab_results::store::Store;

/// One rule that is added and removed within streams.
const ALTERNATING: &str = "\
version = 1
[testbed]
kind = \"sim\"
[[factor]]
name = \"firewall\"
levels = [\"rules:0\", \"rules:1\"]
[trial]
duration = \"4s\"
slice = \"10ms\"
[design]
blocks = 4
alternate = \"170ms\"
settle = \"40ms\"
";

/// Hash of the plan, and the record of each run.
fn contents(lab: &Lab, directory: &str) -> (String, Vec<(u32, TrialRecord)>) {
    let store = Store::open_read_only(&lab.path(directory).join("run.sqlite")).expect("a store");
    let contents = store.contents().expect("contents");
    let observed = contents.runs.into_iter().map(|run| (run.run, run.trial)).collect();
    (contents.plan.hash, observed)
}

/// The text as one line, since the terminal wraps it.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn pilot_runs_are_part_of_the_experiment() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--out", "whole"]).expect(0);

    let planned = lab.fwdlab(&["plan", "x.toml", "--pilot"]).expect(0);
    let output = unwrapped(&planned.stdout);
    assert!(output.contains("2 blocks in results/x/run.sqlite"), "{output}");
    assert!(
        output.contains("the upper 80 % limit") && output.contains("nine times in ten"),
        "{output}"
    );
    assert_eq!(contents(&lab, "results/x").1.len(), 4);
    let again = lab.fwdlab(&["plan", "x.toml", "--pilot"]).expect(0);
    assert_eq!(again.stdout, planned.stdout);
    assert_eq!(again.stderr, "", "nothing is left to measure");

    let run = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(run.stderr.contains("4 of 8 runs are stored already, 4 are left"), "{}", run.stderr);
    assert_eq!(contents(&lab, "results/x"), contents(&lab, "whole"));
}

#[test]
fn plan_without_runs_suggests_a_pilot() {
    let lab = Lab::new(INSTANT);
    let output = unwrapped(&lab.fwdlab(&["plan", "x.toml"]).expect(0).stdout);
    assert!(output.contains("where runs scatter by 2 %") && output.contains("--pilot"), "{output}");
    let outlook = &lab.fwdlab(&["plan", "x.toml", "--json"]).expect(0).json()["outlook"];
    assert_eq!(outlook["stores"].as_array().map(Vec::len), Some(0));
    assert_eq!(outlook["generic"].as_array().map(Vec::len), Some(3));
    assert!(outlook["sd"].is_null(), "{outlook}");
    assert!(!lab.path("results").exists(), "planning leaves nothing");
}

#[test]
fn plan_json_contains_the_power_analysis() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--blocks", "12"]).expect(0);
    // Another plan, since it has another number of blocks.
    let json = lab.fwdlab(&["plan", "x.toml", "--json"]).expect(0).json();
    let outlook = &json["outlook"];
    assert_eq!(outlook["stores"][0]["blocks"], 12);
    assert_eq!(outlook["stores"][0]["same_plan"], false);
    assert_eq!(outlook["scatter"]["df"], 11.0);
    assert_eq!(outlook["is_upper"], false);
    assert_eq!(outlook["sd"], outlook["scatter"]["sd"]);
    let outcomes = outlook["design"]["outcomes"].as_array().expect("outcomes");
    let changes: Vec<f64> = outcomes.iter().filter_map(|o| o["change"].as_f64()).collect();
    assert_eq!(changes, [0.0, 0.01, 0.02, 0.03, 0.05]);
    assert!(outlook["design"]["mde_90"].as_f64() > outlook["design"]["mde_80"].as_f64());
    assert!(outlook["blocks_for_margin"].as_u64().is_some_and(|blocks| blocks >= 2), "{outlook}");
}

#[test]
fn plan_uses_other_stores_of_the_same_device_only() {
    let lab = Lab::new(INSTANT);
    lab.write("quieter.toml", &INSTANT.replace("noise = 0.01", "noise = 0.001"));
    lab.write("other.toml", &INSTANT.replace("0.8 }", "0.9 }"));
    lab.fwdlab(&["run", "quieter.toml", "--quiet"]).expect(0);
    lab.fwdlab(&["run", "other.toml", "--quiet"]).expect(0);
    let arguments =
        ["plan", "x.toml", "--history", "results/quieter", "--history", "results/other/run.sqlite"];
    let output = unwrapped(&lab.fwdlab(&arguments).expect(0).stdout);
    assert!(output.contains("4 blocks in results/other/run.sqlite; another plan"), "{output}");
    assert!(
        output.contains("not used: results/quieter/run.sqlite: it is of another device"),
        "{output}"
    );
    let missing = lab.fwdlab(&["plan", "x.toml", "--history", "nowhere"]);
    assert!(missing.code != Some(0) && missing.stderr.contains("nowhere"), "{}", missing.stderr);
}

#[test]
fn plan_reports_mean_blocks_of_a_stopping_rule() {
    let text = INSTANT.replace("blocks = 4", "stop = \"planned\"\nmax_blocks = 8");
    let lab = Lab::new(&text);
    let output = unwrapped(&lab.fwdlab(&["plan", "x.toml", "--pilot"]).expect(0).stdout);
    assert!(output.contains("mean blocks") && output.contains("at most"), "{output}");
}

#[test]
fn alternation_needs_three_streams_for_its_power() {
    let lab = Lab::new(ALTERNATING);
    lab.fwdlab(&["run", "x.toml", "--blocks", "2", "--out", "two"]).expect(0);
    let output = unwrapped(&lab.fwdlab(&["plan", "x.toml", "--history", "two"]).expect(0).stdout);
    assert!(output.contains("no comparison there has 3 streams"), "{output}");
    let output = unwrapped(&lab.fwdlab(&["plan", "x.toml", "--pilot"]).expect(0).stdout);
    assert!(output.contains("3 streams in results/x/run.sqlite"), "{output}");
    assert!(output.contains("a stream's log ratio"), "{output}");
}
