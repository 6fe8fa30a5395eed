//! `fwdlab history`: stores found in folders, ordered and divided.

use crate::support::{Lab, plan, simulated};
use fwdlab_model::record::Environment;
use fwdlab_results::facts;
use fwdlab_results::store::{Invocation, Store};
use std::collections::BTreeMap;

/// A simulated device with two firewalls and the given capacity.
fn experiment(capacity: &str, seed: usize) -> String {
    format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\nnoise = 0.005\n\
         capacity = \"{capacity}\"\neffect = {{ \"firewall=stateful\" = 0.8 }}\n\
         [[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n\
         [trial]\nduration = \"300ms\"\n[design]\nblocks = 4\nseed = {seed}\n"
    )
}

/// Runs the experiment on a revision and stores it in `folder`.
fn keep(lab: &Lab, folder: &str, capacity: &str, revision: &str, day: usize) {
    let plan = plan(&experiment(capacity, day));
    let folder = lab.path(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut store = Store::open(&folder.join("run.sqlite")).expect("a store");
    store.adopt_plan(&plan, "").expect("adopted");
    let section = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let mut environment = Environment(BTreeMap::from([
        ("cpu".to_owned(), section("model", "Example CPU")),
        // The host's kernel, which forwards nothing here.
        ("kernel".to_owned(), section("release", "6.18.44")),
    ]));
    facts::set_revision(&mut environment, revision);
    let invocation = Invocation {
        started_at: format!("2026-01-{day:02}T00:00:00Z"),
        fwdlab_version: "test".into(),
        testbed: fwdlab_model::settings::TestbedKind::Sim,
        testbed_reason: "a test".into(),
        simulated: true,
        bed: None,
        environment,
    };
    store.begin_invocation(&invocation).expect("begun");
    for run in &plan.runs {
        store.insert_run(&simulated(&plan, run)).expect("stored");
    }
}

/// Twelve revisions, 6 % slower from 6.7 on, in folders of different depth and in no order.
fn lab() -> Lab {
    let lab = Lab::new("");
    for i in 0..12 {
        let minor = (i * 5) % 12;
        let capacity = if minor >= 7 { "940kpps" } else { "1Mpps" };
        let folder = if i % 2 == 0 { format!("all/{i}") } else { format!("all/deep/er/{i}") };
        keep(&lab, &folder, capacity, &format!("6.{minor}.0"), i + 1);
    }
    lab
}

#[test]
fn history_finds_a_step_at_its_revision() {
    let lab = lab();
    let history = lab.fwdlab(&["history", "all", "--json"]).expect(0).json();
    assert_eq!((&history["stores"], &history["version"]), (&12.into(), &1.into()));
    let series = history["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    for one in series {
        let revisions: Vec<&str> = one["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["revision"].as_str().unwrap())
            .collect();
        let expected: Vec<String> = (0..12).map(|minor| format!("6.{minor}.0")).collect();
        assert_eq!(revisions, expected);
        let change = &one["changes"][0];
        assert_eq!(one["changes"].as_array().unwrap().len(), 1, "{one:#}");
        assert_eq!((&change["before"], &change["after"]), (&"6.6.0".into(), &"6.7.0".into()));
        assert_eq!(change["confirmation_needed"], true);
        assert_eq!(change["run_again"], serde_json::json!(["6.6.0", "6.7.0"]));
        let (low, high) = (change["low"].as_f64().unwrap(), change["high"].as_f64().unwrap());
        assert!(low < 0.94 && 0.94 < high, "{change}");
        assert!(one["caption"].as_str().unwrap().starts_with("SIMULATED"));
    }
}

#[test]
fn history_reads_text_files_and_sets_exit_codes() {
    let lab = lab();
    let stateful = ["history", "all", "--series", "stateful"];
    let shown = lab.fwdlab(&stateful).expect(0).stdout;
    for expected in [
        "Example CPU, x, firewall = stateful\n",
        "SIMULATED",
        "12 points, 6.0.0 to 6.11.0",
        "6.6.0 -> 6.7.0: -",
        "to be confirmed: run 6.6.0 and 6.7.0 again",
        "12 stores; 1 series; 1 change (0 better, 1 worse)",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in\n{shown}");
    }
    let fails = [&stateful[..], &["--fail-on", "worse", "--format", "ktap"]].concat();
    let ktap = lab.fwdlab(&fails).expect(1).stdout;
    assert!(ktap.contains("\nnot ok 1 ") && ktap.contains("pass:0 fail:1"), "{ktap}");
    lab.fwdlab(&[&stateful[..], &["--out", "page"]].concat()).expect(0);
    let files = lab.files("page");
    assert_eq!(files.keys().collect::<Vec<_>>(), ["history.md", "history.svg", "index.html"]);
    let page = String::from_utf8(files["history.md"].clone()).unwrap();
    assert!(page.contains("](history.svg)") && page.contains("| 6.6.0 | 6.7.0 | -"), "{page}");
    // The faster half alone contains no change.
    let before = ["all/0", "all/2", "all/deep/er/1", "all/deep/er/5", "all/10"];
    let steady = [&["history", "--fail-on", "different"], &before[..]].concat();
    assert!(lab.fwdlab(&steady).expect(0).stdout.contains("no change: "));
    let ktap = lab.fwdlab(&[&steady[..], &["--format", "ktap"]].concat()).expect(0).stdout;
    assert!(!ktap.contains("not ok") && ktap.contains("fail:0"), "{ktap}");
}

#[test]
fn history_refuses_filters_without_a_match() {
    let lab = Lab::new("");
    std::fs::create_dir_all(lab.path("empty/deeper")).unwrap();
    lab.write("notes.txt", "no store");
    for (arguments, expected) in [
        (&["empty"][..], "neither this directory nor one below it holds a store"),
        (&["nowhere"], "nowhere doesn't exist"),
        (&["notes.txt"], "notes.txt:1: no column is called `value_pps`"),
    ] {
        let ended = lab.fwdlab(&[&["history"], arguments].concat()).expect(2);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    // A damaged store in a tree is reported and does not affect the others.
    keep(&lab, "tree/good", "1Mpps", "6.1", 1);
    std::fs::create_dir_all(lab.path("tree/bad")).unwrap();
    lab.write("tree/bad/run.sqlite", "no store");
    let output = lab.fwdlab(&["history", "tree"]).expect(0).stdout;
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("left out: tree/bad/run.sqlite is not a store of fwdlab"), "{output}");
    assert!(output.contains("1 store; 2 series"), "{output}");
    keep(&lab, "one", "1Mpps", "6.1", 1);
    let ended = lab.fwdlab(&["history", "one", "--series", "nothing"]).expect(2);
    assert!(ended.stderr.contains("no series' title holds `nothing`"), "{}", ended.stderr);
    let short = lab.fwdlab(&["history", "one"]).expect(0).stdout;
    assert!(
        short.contains("Series of one point") && short.contains(" kpps at 6.1, 2026-01-01"),
        "{short}"
    );
}

#[test]
fn store_keeps_the_given_revision() {
    let lab = Lab::new(&experiment("1Mpps", 1));
    let run = |revision| lab.fwdlab(&["run", "x.toml", "--quiet", "--revision", revision]);
    run("f3b1c0de9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d").expect(0);
    let shown = lab.fwdlab(&["history", "results"]).expect(0).stdout;
    assert!(shown.contains(" at f3b1c0de9a8b, "), "{shown}");
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    assert!(report.contains("Revision: f3b1c0de9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"), "{report}");
    // One store cannot contain runs of two revisions.
    let refused = run("another").expect(2).stderr;
    assert!(refused.contains("its runs are of revision f3b1c0de") && refused.contains("--fresh"));
}
