//! `fwdlab bisect`, with devices of known truth.

use crate::support::{Ended, Lab, plan, simulated, store};
use fwdlab_model::record::{Counts, Executed, ExecutedFunction, TrialRecord};
use fwdlab_model::{PlannedRun, RunRecord};
use fwdlab_results::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Revisions r0, r1 ...; each revision from the given one on forwards `factor` times as much.
fn history(count: usize, changes: &[(usize, f64)], more: &str) -> String {
    let rate = |k: usize| -> f64 {
        changes.iter().filter(|change| k >= change.0).map(|change| change.1).product()
    };
    let effects: Vec<String> = (0..count)
        .filter(|&k| rate(k) != 1.0)
        .map(|k| format!("\"revision=r{k}\" = {}", rate(k)))
        .collect();
    let levels: Vec<String> = (0..count).map(|k| format!("{{ label = \"r{k}\" }}")).collect();
    format!(
        "version = 1\ntitle = \"A history\"\n[testbed]\nkind = \"sim\"\n[testbed.sim]\n\
         noise = 0.005\njitter = 0.0\n{more}effect = {{ {} }}\n[[factor]]\nname = \"revision\"\n\
         levels = [{}]\n[design]\nblocks = 12\n",
        effects.join(", "),
        levels.join(", ")
    )
}

fn bisect(lab: &Lab, more: &[&str]) -> Ended {
    lab.fwdlab(&[&["bisect", "x.toml", "--along", "revision"], more].concat())
}

#[test]
fn bisect_convicts_the_slower_revision_and_resumes() {
    let lab = Lab::new(&history(16, &[(11, 0.97)], ""));
    let found = bisect(&lab, &["--json"]).expect(0);
    let json = found.json();
    assert_eq!(json["outcome"], "convicted", "{json}");
    assert_eq!(json["set"], serde_json::json!(["r11"]));
    assert_eq!(json["confirmed"][0]["before"], "r10");
    assert!(found.stderr.contains("most probable: r11 ("), "{}", found.stderr);
    let runs = json["runs"].as_u64().expect("a number");
    assert_eq!(json["measured_now"].as_u64(), Some(runs));
    let picture = std::fs::read_to_string(lab.path("results/x-bisect/bisect.svg"));
    assert!(picture.expect("a picture").contains("came with r11"));

    // Nothing is measured again, and the answer is the same.
    let again = bisect(&lab, &["--json", "--quiet"]).expect(0).json();
    assert_eq!((again["runs"].as_u64(), again["measured_now"].as_u64()), (Some(runs), Some(0)));
    assert_eq!(again["candidates"], json["candidates"]);
    let summary = bisect(&lab, &["--quiet"]).expect(0).stdout;
    assert!(summary.contains("convicted: r11") && summary.contains("r11 against r10"), "{summary}");
    // Without a comparison no revision is convicted.
    let suspected = bisect(&lab, &["--quiet", "--no-confirm"]).expect(0).stdout;
    assert!(suspected.contains("nobody is convicted"), "{suspected}");
}

#[test]
fn bisect_without_a_change_convicts_no_revision() {
    let lab = Lab::new(&history(16, &[], "").replace("effect = {  }\n", ""));
    let json = bisect(&lab, &["--json", "--cap", "40"]).expect(0).json();
    assert_eq!(json["outcome"], "ends-alike", "{json}");
    assert_eq!(json["confirmed"], serde_json::json!([]));
    assert!(json["detectable"].as_f64().expect("a number") > 0.0);
    let summary = bisect(&lab, &["--quiet", "--cap", "40"]).expect(0).stdout;
    assert!(
        summary.contains("can't be told apart") && summary.contains("nine times of ten"),
        "{summary}"
    );
}

#[test]
fn bisect_finds_two_changes() {
    let lab = Lab::new(&history(16, &[(5, 0.96), (12, 0.95)], ""));
    let json = bisect(&lab, &["--json"]).expect(0).json();
    assert_eq!(json["outcome"], "convicted", "{json}");
    assert_eq!((&json["set"][0], &json["second_set"][0]), (&"r5".into(), &"r12".into()));
    assert_eq!(json["confirmed"].as_array().map(Vec::len), Some(2));
}

#[test]
fn bisect_of_counts_halves_the_range() {
    let levels: Vec<String> = (0..16).map(|k| format!("{{ label = \"r{k}\" }}")).collect();
    let text = format!(
        "version = 1\n[testbed]\nkind = \"vm\"\n[vm]\nkernel = \"k.deb\"\n[[factor]]\nname = \"revision\"\n\
         levels = [{}]\n[design]\nblocks = 153\n",
        levels.join(", ")
    );
    let plan = plan(&text);
    // A store that already contains a run of each candidate: nothing has to be executed here.
    let counted = |last: f64| {
        let lab = Lab::new(&text);
        let mut store = store(&lab.path("results/x-bisect/run.sqlite"), &plan, "vm");
        for run in plan.runs.iter().filter(|run| run.block < 2) {
            let candidate = run.variants[0];
            let cost = if candidate >= 6 { 1020.0 } else { 1000.0 };
            let cost = if candidate == 15 { last } else { cost };
            store.insert_run(&executed(run, cost)).expect("stored");
        }
        drop(store);
        bisect(&lab, &["--json", "--no-confirm", "--quiet"]).expect(0).json()
    };
    let json = counted(1020.0);
    assert_eq!((&json["outcome"], &json["set"]), (&"suspected".into(), &serde_json::json!(["r6"])));
    assert!(json["runs"].as_u64().is_some_and(|runs| runs <= 8), "{json}");
    assert_eq!(json["measured_now"], 0);
    let change = json["change"].as_f64().expect("a number");
    assert!((change - 0.02).abs() < 1e-9, "{change}");
    assert_eq!(counted(1000.5)["outcome"], "ends-alike");
}

/// A run of an emulated machine that executed `cost` instructions per packet.
fn executed(run: &PlannedRun, cost: f64) -> RunRecord {
    let function = ExecutedFunction {
        name: "forward".into(),
        bursts: vec![cost; 3],
        atomics: 0.0,
        bytes: 0.0,
        idle: 0.0,
        is_background: false,
        misses: None,
    };
    // A function that is background in some runs counts in none, whatever remains of it here.
    let idle = ExecutedFunction {
        name: "idle".into(),
        bursts: vec![f64::from(run.index % 7) * 100.0 - 900.0; 3],
        is_background: run.variants[0].is_multiple_of(2),
        ..function.clone()
    };
    let executed = Executed {
        packets: vec![100; 3],
        batch: 32,
        functions: vec![function, idle],
        ..Executed::default()
    };
    let total = Counts { offered: 300, forwarded: 300 };
    let trial = TrialRecord {
        window_ns: 1_000_000_000,
        window: total,
        total,
        executed: Some(executed),
        ..TrialRecord::default()
    };
    let plan = plan("version = 1\n[testbed]\nkind = \"sim\"\n[design]\nblocks = 1\n");
    let template = simulated(&plan, &plan.runs[0]);
    let (index, block, variants) = (run.index, run.block, run.variants.clone());
    RunRecord { run: index, block, variants, trial, ..template }
}

#[test]
fn interrupted_bisect_continues() {
    let slow = "realtime = true\n";
    let trial = "[trial]\nwarmup = \"10ms\"\nduration = \"60ms\"\ndrain = \"20ms\"\n\
                 interval = \"20ms\"\nslice = \"5ms\"\n";
    let text = history(8, &[(3, 0.95)], slow).replace("blocks = 12", "blocks = 6") + trial;
    let lab = Lab::new(&text);
    let mut command = lab.command(&["bisect", "x.toml", "--along", "revision"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let path = lab.path("results/x-bisect/run.sqlite");
    let stored =
        || Store::open_read_only(&path).and_then(|s| s.runs()).map_or(0, |runs| runs.len());
    let deadline = Instant::now() + Duration::from_secs(60);
    while stored() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a living child");
    let ended = Ended::from(child.wait_with_output().expect("its end")).expect(130);
    assert!(ended.stderr.contains("at most 150 runs are stored"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("fwdlab bisect x.toml --along revision --cap 150"),
        "{}",
        ended.stderr
    );
    let store = Store::open_read_only(&lab.path("results/x-bisect/run.sqlite")).expect("a store");
    let before = store.runs().expect("runs").len() as u64;
    drop(store);
    let json = bisect(&lab, &["--json"]).expect(0).json();
    assert_eq!(json["outcome"], "convicted", "{json}");
    let runs = json["runs"].as_u64().expect("a number");
    assert_eq!(json["measured_now"].as_u64(), Some(runs - before));
}

#[test]
fn bisect_of_stores_measures_nothing() {
    let search = |changes: &[(usize, f64)]| {
        let text = history(12, changes, "").replace("effect = {  }\n", "");
        let lab = Lab::new(&text.replace("blocks = 12", "blocks = 4"));
        lab.fwdlab(&["run", "x.toml", "--quiet", "--no-report"]).expect(0);
        let ended = lab.fwdlab(&["bisect", "--stores", "results", "--out", "where"]).expect(0);
        let json = lab.fwdlab(&["bisect", "--stores", "results", "--json"]).expect(0).json();
        assert!(lab.path("where/bisect-1.svg").exists());
        (ended.stdout, json["series"][0].clone())
    };
    let (text, json) = search(&[(7, 0.97)]);
    assert_eq!((&json["outcome"], &json["set"]), (&"suspected".into(), &serde_json::json!(["r7"])));
    assert!(text.contains("came with r7") && text.contains("nobody is convicted"), "{text}");
    assert!(text.contains("next step: measure r6 and r7 in one experiment"), "{text}");
    let (text, json) = search(&[]);
    assert_eq!(json["outcome"], "ends-alike", "{json}");
    assert!(text.contains("would have been seen nine times of ten"), "{text}");
    let refused = Lab::new("").fwdlab(&["bisect", "--stores", "nowhere"]).expect(2).stderr;
    assert!(refused.contains("nowhere"), "{refused}");
}

#[test]
fn invalid_bisections_are_refused() {
    let lab = Lab::new(&history(3, &[(1, 0.9)], ""));
    let refused = lab.fwdlab(&["bisect", "x.toml", "--along", "kernel"]).expect(2);
    assert!(refused.stderr.contains("no such factor") && refused.stderr.contains("revision"));
    lab.write("two.toml", &history(2, &[(1, 0.9)], ""));
    let refused = lab.fwdlab(&["bisect", "two.toml", "--along", "revision"]).expect(2);
    assert!(refused.stderr.contains("nothing to search"), "{}", refused.stderr);
    let text = history(3, &[(1, 0.9)], "")
        .replace("[design]", "[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[design]");
    lab.write("both.toml", &text);
    let refused = lab.fwdlab(&["bisect", "both.toml", "--along", "revision"]).expect(2);
    assert!(refused.stderr.contains("queues has 2 levels too"), "{}", refused.stderr);
}
