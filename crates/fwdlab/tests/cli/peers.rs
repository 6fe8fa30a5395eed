//! Results of other tools in `fwdlab show` and `fwdlab history`.

use crate::support::{INSTANT, Lab};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file of hyperfine with two commands of these median times in seconds.
fn hyperfine(times: [f64; 2]) -> String {
    let result = |(command, median): (&str, f64)| json!({ "command": command, "times": [0.99 * median, median, 1.01 * median] });
    let results: Vec<Value> = ["lookup", "insert"].into_iter().zip(times).map(result).collect();
    json!({ "results": results }).to_string()
}

/// A test of iperf3 that received so many bits per second, in seconds that are parts of it.
fn iperf3(bits: f64) -> String {
    let sum = json!({ "seconds": 10.0, "bytes": bits, "bits_per_second": bits });
    json!({
        "start": { "test_start": { "protocol": "UDP", "num_streams": 1 } },
        "intervals": [{ "sum": { "bits_per_second": 1.0 } }, { "sum": { "bits_per_second": 2.0 } }],
        "end": { "sum_received": sum, "sum_sent": sum },
    })
    .to_string()
}

#[test]
fn show_prints_the_runs_of_another_tool_in_its_unit() {
    let lab = Lab::new(INSTANT);
    lab.write("times.json", &hyperfine([0.25, 0.002]));
    let shown = lab.fwdlab(&["show", "times.json"]).expect(0).stdout;
    for expected in ["times.json (hyperfine)", "lookup", "250 ms", "2.00 ms", "6 runs"] {
        assert!(shown.contains(expected), "no {expected:?} in\n{shown}");
    }
    let only = ["show", "times.json", "--only", "insert", "--json"];
    let json = lab.fwdlab(&only).expect(0).json();
    assert_eq!(json["benchmarks"][0]["values"], json!([0.00198, 0.002, 0.00202]));
    assert_eq!((&json["benchmarks"][0]["unit"], &json["tool"]), (&"s".into(), &"hyperfine".into()));
    assert!(json["notes"].to_string().contains("left out: 3 runs of 1 other benchmarks"), "{json}");
    // One run has no scatter, but a value; seconds are no runs.
    lab.write("one.json", &iperf3(9.4e9));
    let one = lab.fwdlab(&["show", "one.json", "--json"]).expect(0).json();
    assert_eq!(one["benchmarks"][0]["values"], json!([9.4e9]));
    assert!(one["notes"][0].as_str().unwrap().contains("1 runs of `UDP` (2 intervals)"), "{one}");
}

#[test]
fn show_and_history_refuse_files_and_options_without_a_meaning() {
    let lab = Lab::new(INSTANT);
    lab.write("times.json", &hyperfine([1.0, 2.0]));
    lab.write("list.pps", "1\n2\n3\n");
    lab.write("cut.json", &hyperfine([1.0, 2.0])[..40]);
    lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
    for (arguments, expected) in [
        (&["show", "list.pps"][..], "neither a store nor a result of another tool"),
        (&["history", "list.pps"], "neither a store nor a result of another tool"),
        (&["show", "cut.json"], "ends within JSON value 1"),
        (&["history", "times.json", "cut.json"], "ends within JSON value 1"),
        (&["show", "times.json", "--fail-on", "worse"], "leave out --filter, --full, --fail-on"),
        (&["show", "times.json", "--only", "lookpu"], "did you mean `lookup`?"),
        (&["show", "results/x", "--only", "lookup"], "--only and --column select from files"),
        (&["history", "results/x", "--column", "b"], "--only and --column select from files"),
    ] {
        let ended = lab.fwdlab(arguments).expect(2);
        let text = ended.stderr.replace("\n ", " ");
        assert!(text.contains(expected), "{arguments:?}: no {expected:?} in\n{}", ended.stderr);
    }
}

#[test]
fn history_orders_files_by_the_revision_in_their_names() {
    let lab = Lab::new(INSTANT);
    let mut names = Vec::new();
    for minor in 0..12 {
        // One command becomes slower with 6.8, the other one does not change.
        let wobble = 1.0 + f64::from(minor % 3) / 1000.0;
        let slow = if minor < 8 { 1.0 } else { 1.1 };
        let name = format!("v6.{minor}.0.json");
        lab.write(&name, &hyperfine([slow * wobble, 0.5 * wobble]));
        names.push(name);
    }
    // A shell sorts 6.10 before 6.2.
    names.sort();
    let arguments: Vec<&str> =
        ["history"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let json = lab.fwdlab(&[&arguments[..], &["--json"]].concat()).expect(0).json();
    assert_eq!((&json["files"], &json["stores"]), (&12.into(), &0.into()));
    let series = json["series"].as_array().expect("series");
    let titles: Vec<&str> = series.iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["hyperfine, insert, seconds", "hyperfine, lookup, seconds"]);
    assert_eq!(series[0]["changes"], json!([]), "{}", series[0]);
    let points = series[1]["points"].as_array().unwrap();
    assert_eq!((&points[2]["revision"], &points[10]["n"]), (&"v6.2.0".into(), &3.into()));
    let change = &series[1]["changes"][0];
    assert_eq!((&change["before"], &change["after"]), (&"v6.7.0".into(), &"v6.8.0".into()));
    // More seconds are worse.
    assert_eq!((&change["direction"], &series[1]["unit"]), (&"worse".into(), &"s".into()));
    let text = lab.fwdlab(&[&arguments[..], &["--fail-on", "worse"]].concat()).expect(1).stdout;
    assert!(text.contains("12 files of other tools; 2 series; 1 change"), "{text}");
    assert!(text.contains("1.10 s") && !text.contains("pps"), "{text}");
    lab.fwdlab(&[&arguments[..], &["--out", "page"]].concat()).expect(0);
    let figure =
        lab.files("page").remove("history-hyperfine-lookup-seconds.svg").expect("a figure");
    let figure = String::from_utf8(figure).unwrap();
    assert!(figure.contains("time") && !figure.contains("pps"), "{figure}");
}

#[test]
fn history_separates_tools_and_quantities() {
    let lab = Lab::new(INSTANT);
    lab.write("a.json", &hyperfine([1.0, 2.0]));
    lab.write("b.json", &iperf3(9.4e9));
    lab.write("c.json", &format!("{}{}", iperf3(9.4e9), iperf3(9.2e9)));
    let json = lab.fwdlab(&["history", "a.json", "b.json", "c.json", "--json"]).expect(0).json();
    let series: Vec<(&str, usize)> = json["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["title"].as_str().unwrap(), one["points"].as_array().unwrap().len()))
        .collect();
    let expected = [
        ("hyperfine, insert, seconds", 1),
        ("hyperfine, lookup, seconds", 1),
        ("iperf3, UDP, bits per second received", 2),
    ];
    assert_eq!(series, expected);
}

/// The required members of a test case (`test_case.schema.yaml` of FDio/csit, model 1.5.1).
const TEST_CASE: [&str; 19] = [
    "duration",
    "dut_type",
    "dut_version",
    "end_time",
    "hosts",
    "telemetry",
    "message",
    "passed",
    "result",
    "start_time",
    "tags",
    "test_documentation",
    "test_id",
    "test_name_long",
    "test_name_short",
    "test_type",
    "tg_type",
    "tg_version",
    "version",
];

/// Runs the experiment; returns its results, and its test cases, which are also in `cases.json`.
fn run_and_export(lab: &Lab) -> (Value, Vec<Value>) {
    lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
    let shown = lab.fwdlab(&["show", "results/x", "--json"]).expect(0).json();
    let cases = lab.fwdlab(&["export", "results/x", "--format", "csit"]).expect(0);
    lab.write("cases.json", &cases.stdout);
    (shown, cases.json().as_array().expect("a list").clone())
}

#[test]
fn export_writes_test_cases_of_csit() {
    let lab = Lab::new(INSTANT);
    let (shown, cases) = run_and_export(&lab);
    assert_eq!(cases.len(), 2);
    for (case, variant) in cases.iter().zip(shown["variants"].as_array().expect("variants")) {
        let members: Vec<&str> = case.as_object().expect("a case").keys().map(|k| &**k).collect();
        let mut required = TEST_CASE;
        required.sort_unstable();
        assert_eq!(members, required, "no other member is allowed");
        let rate = &case["result"]["receive_rate"]["rate"];
        assert_eq!(rate["values"], variant["values"]);
        let values: Vec<f64> =
            rate["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let mean = values.iter().sum::<f64>() / 4.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let [avg, stdev] = ["avg", "stdev"].map(|name| rate[name].as_f64().unwrap());
        assert!((avg / mean - 1.0).abs() < 1e-9, "{rate}");
        assert!((stdev / (squares / 4.0).sqrt() - 1.0).abs() < 1e-9, "{rate}");
        assert_eq!((&rate["unit"], &case["result"]["type"]), (&"pps".into(), &"mrr".into()));
        assert!(case["test_documentation"].as_str().unwrap().contains("SIMULATED"), "{case}");
        assert!(case["duration"].as_f64().unwrap() >= 0.0);
        for name in ["test_id", "test_name_long", "test_name_short"] {
            assert!(case[name].as_str().unwrap().len() >= 3, "{case}");
        }
    }
    // The way back: fwdlab reads them as CSIT's.
    let arguments = ["compare", "cases.json", "--baseline", "x__.none", "--json"];
    let compared = lab.fwdlab(&arguments).expect(0).json();
    assert_eq!(compared["variants"][0]["values"], shown["variants"][0]["values"]);
    assert_eq!(compared["comparisons"][0]["outcome"]["compared"]["verdict"], "worse");
}

/// A search for both rates of CSIT on a device of 1 Mpps, or 0.8 Mpps with a firewall.
fn search() -> String {
    let method = "[method]\nkind = \"mlrsearch\"\n[[factor]]";
    let simulated = "[testbed.sim]\ncapacity = \"1Mpps\"\njitter = 0.0";
    INSTANT.replace("[[factor]]", method).replace("[testbed.sim]", simulated)
}

#[test]
fn export_writes_searches_as_ndrpdr_test_cases() {
    let lab = Lab::new(&search());
    let (shown, cases) = run_and_export(&lab);
    assert_eq!(cases.len(), 8, "one per run");
    let mut found = BTreeMap::<(bool, &str), Vec<f64>>::new();
    for case in &cases {
        let types = [&case["test_type"], &case["result"]["type"]];
        assert_eq!(types, ["ndrpdr"; 2], "{case}");
        assert_eq!(case["tags"][1], "64B");
        // Trials of a second each.
        assert!(case["duration"].as_f64().unwrap() > 20.0, "{case}");
        let is_stateful = case["test_id"].as_str().unwrap().ends_with("stateful");
        for goal in ["ndr", "pdr"] {
            let rate = &case["result"][goal]["lower"]["rate"];
            assert_eq!(rate["unit"], "pps");
            found.entry((is_stateful, goal)).or_default().push(rate["value"].as_f64().unwrap());
        }
    }
    for row in shown["throughput"].as_array().expect("goals") {
        let values = &found[&(row["variant"] == "stateful", row["goal"].as_str().unwrap())];
        let ends = [f64::min, f64::max].map(|end| values.iter().copied().reduce(end).unwrap());
        let expected = ["minimum", "maximum"].map(|name| row[name].as_f64().unwrap());
        let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 0.01;
        assert!(ends.iter().zip(&expected).all(is_near), "{row} {values:?}");
        assert_eq!(values.len(), 4);
    }
    // The way back: the searches of a variant are the runs of a test case.
    let read = ["show", "cases.json", "--column", "pdr", "--json"];
    let read = lab.fwdlab(&read).expect(0).json();
    let benchmarks = read["benchmarks"].as_array().expect("benchmarks");
    let numbers: Vec<usize> =
        benchmarks.iter().map(|one| one["values"].as_array().unwrap().len()).collect();
    assert_eq!(numbers, [4, 4], "{read}");
}

#[test]
fn export_writes_flow_metrics() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
    let metrics = lab.fwdlab(&["export", "results/x", "--format", "otg"]).expect(0).json();
    assert_eq!(metrics["choice"], "flow_metrics");
    let flows = metrics["flow_metrics"].as_array().expect("flows");
    assert_eq!(flows.len(), 8);
    for flow in flows {
        let count = |name: &str| flow[name].as_str().unwrap().parse::<u64>().unwrap();
        let (sent, received) = (count("frames_tx"), count("frames_rx"));
        let loss = 100.0 * (sent - received) as f64 / sent as f64;
        assert!((flow["loss"].as_f64().unwrap() - loss).abs() < 1e-6 && loss > 0.0, "{flow}");
        assert_eq!(count("bytes_tx"), 64 * sent);
    }
}

#[test]
fn export_refuses_results_that_a_form_lacks() {
    let lab = Lab::new(&INSTANT.replace("[design]", "[traffic]\nrate = \"10kpps\"\n[design]"));
    lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
    let error = lab.fwdlab(&["export", "results/x", "--format", "csit"]).expect(2).stderr;
    assert!(error.contains("MRR is the rate at the maximum load"), "{error}");
    lab.fwdlab(&["export", "results/x", "--format", "otg"]).expect(0);
    lab.write(
        "one-goal.toml",
        &search().replace("\"mlrsearch\"", "\"mlrsearch\"\ngoals = [\"ndr\"]"),
    );
    lab.fwdlab(&["run", "one-goal.toml", "--quiet"]).expect(0);
    let one_goal = ["export", "results/one-goal", "--format", "csit"];
    let error = lab.fwdlab(&one_goal).expect(2).stderr;
    assert!(error.contains("search with goals = [\"ndr\", \"pdr\"]"), "{error}");
    lab.fwdlab(&["export", "results/x"]).expect(2);
    lab.fwdlab(&["export", "results/x", "--format", "otg", "--parquet", "t"]).expect(2);
}
