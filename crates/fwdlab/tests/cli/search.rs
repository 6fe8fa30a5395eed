//! Searches, loss curves and soaks, on simulated devices and with programs.

use crate::support::Lab;
use std::os::unix::fs::PermissionsExt;

/// A device of 1 Mpps, and one of 0.8 Mpps, that vary by half a percent from run to run.
const SEARCH: &str = "\
version = 1
title = \"A search\"
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"1Mpps\"
noise = 0.005
jitter = 0.0
effect = { \"firewall=stateful\" = 0.8 }
[method]
kind = \"mlrsearch\"
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[design]
blocks = 6
";

/// A program as the trial of a device that forwards 20,000 packets per second.
const TRIAL: &str = "\
#!/bin/sh
offered=$(($1 * ${2%.*})) most=$((20000 * ${2%.*}))
echo a trial
if [ $offered -gt $most ]; then echo $offered $most; else echo $offered $offered; fi
";

fn program(lab: &Lab, text: &str) -> String {
    lab.write("trial.sh", text);
    let path = lab.path("trial.sh");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("an executable");
    path.to_string_lossy().into_owned()
}

/// The row of a table of `results.json` by variant and goal.
fn found(json: &serde_json::Value, label: &str, goal: &str) -> serde_json::Value {
    let rows = json["method"]["searched"].as_array().expect("rows").iter();
    let row = rows.clone().find(|row| row["label"] == label && row["goal"] == goal);
    row.cloned().unwrap_or_else(|| panic!("no {label}, {goal} in {json}"))
}

#[test]
fn searches_of_two_variants_are_compared_by_their_rates() {
    let lab = Lab::new(SEARCH);
    let ended = lab.fwdlab(&["run", "x.toml", "-v"]).expect(0);
    assert!(ended.stdout.contains("stateful, ndr against none: -2"), "{}", ended.stdout);
    assert!(ended.stdout.contains("worse by more than"), "{}", ended.stdout);
    // Each goal is compared, and all comparisons are one family.
    assert!(ended.stdout.contains("stateful, pdr against none: -2"), "{}", ended.stdout);
    // Without a terminal there is no line for each trial; the events contain all of them.
    assert!(!ended.stderr.contains("  trial "), "{}", ended.stderr);
    let events = std::fs::read_to_string(lab.path("results/x/live.jsonl")).expect("events");
    let trials = events.lines().filter(|line| line.contains(r#""event":"trial""#)).count();
    assert!(trials > 100 && events.contains(" lost"), "{trials} in {events}");
    let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let compared = json["comparisons"].as_array().expect("comparisons");
    assert_eq!((compared.len(), &compared[1]["goal"]), (2, &serde_json::json!("pdr")));
    for one in compared {
        let comparison = &one["outcome"]["compared"]["comparison"];
        assert_eq!(comparison["family"], 2, "{one}");
        let ratio = comparison["ratio"].as_f64().expect("a ratio");
        assert!((ratio / 0.8 - 1.0).abs() < 0.012, "{one}");
    }
    for (label, capacity) in [("none", 1e6), ("stateful", 0.8e6)] {
        for (goal, rate) in [("ndr", capacity), ("pdr", capacity)] {
            let row = found(&json, label, goal);
            let median = row["throughput"]["median"].as_f64().expect("a rate");
            assert!((median / rate - 1.0).abs() < 0.012, "{label}, {goal}: {median}");
            assert_eq!(row["regular"], serde_json::json!([6, 6]), "{label}, {goal}");
            let frmol = row["frmol"].as_f64().expect("a rate at the maximum load");
            assert!(frmol >= median * 0.99, "{label}: {frmol} against {median}");
        }
    }
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    for expected in ["## Throughput", "search-none.svg", "RFC 9971", "lower bound"] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    // Measured values do not change: the report is made from the store alone.
    lab.fwdlab(&["report", "results/x", "--out", "again"]).expect(0);
    let again = std::fs::read_to_string(lab.path("again/results.json")).expect("results");
    assert_eq!(again, text);
}

#[test]
fn search_option_searches_any_experiment() {
    let lab = Lab::new(&SEARCH.replace("[method]\nkind = \"mlrsearch\"\n", ""));
    let planned = lab.fwdlab(&["plan", "x.toml", "--search", "pdr"]).expect(0).stdout;
    let planned = planned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(planned.contains("then a search for pdr (RFC 9971)"), "{planned}");
    lab.fwdlab(&["search", "x.toml", "--goal", "pdr", "--blocks", "2", "--quiet"]).expect(0);
    let text = std::fs::read_to_string(lab.path("results/x-search/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["method"]["searched"].as_array().map(Vec::len), Some(2));
    assert_eq!(found(&json, "none", "pdr")["regular"], serde_json::json!([2, 2]));
}

#[test]
fn search_of_an_experiment_prints_the_requested_form() {
    let lab = Lab::new(&SEARCH.replace("[method]\nkind = \"mlrsearch\"\n", ""));
    let line = ["search", "x.toml", "--goal", "pdr", "--blocks", "2", "--quiet", "--csv"];
    let csv = lab.fwdlab(&line).expect(0).stdout;
    let header = csv.lines().next().unwrap_or_default();
    assert!(header.matches(',').count() > 3, "{csv}");
}

/// The program's output has no counts after the trials of the first search.
#[test]
fn search_prints_finished_searches_before_an_error() {
    let lab = Lab::new(SEARCH);
    let count = lab.path("count").to_string_lossy().into_owned();
    let most = lab.path("most").to_string_lossy().into_owned();
    let counting = format!(
        "#!/bin/sh\nn=$(($(cat {count} 2>/dev/null || echo 0) + 1)); echo $n >{count}\n\
         [ ! -e {most} ] || [ $n -le \"$(cat {most})\" ] || {{ echo hello; exit 0; }}\n"
    );
    let trial = program(&lab, &TRIAL.replace("#!/bin/sh\n", &counting));
    let line = |repeats: &'static str| {
        let words = ["search", "--max-load", "100kpps", "--json", "--repeats", repeats, "--"];
        [&words[..], &[trial.as_str(), "{load}", "{seconds}"]].concat()
    };
    lab.fwdlab(&line("1")).expect(0);
    std::fs::rename(lab.path("count"), lab.path("most")).expect("a file");
    let ended = lab.fwdlab(&line("3")).expect(2);
    assert!(ended.stderr.contains("printed no counts: `hello`"), "{}", ended.stderr);
    assert!(ended.json()["searched"][0]["lower"].is_number(), "{}", ended.stdout);
}

#[test]
fn search_outside_its_loads_is_irregular() {
    let lab = Lab::new(&SEARCH.replace("capacity = \"1Mpps\"", "capacity = \"20Mpps\""));
    let ended = lab.fwdlab(&["run", "x.toml", "--blocks", "2"]).expect(4);
    assert!(ended.stderr.contains("none has no result: "), "{}", ended.stderr);
    lab.fwdlab(&["show", "results/x", "--fail-on", "worse"]).expect(4);
    let output = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("the greatest load is a lower bound"), "{output}");
    assert!(!output.contains("worse by"), "no verdict on what was not found: {output}");
}

/// Devices without a result: each has its reason, and none a rate.
#[test]
fn search_reports_a_nearly_dead_device() {
    let one = SEARCH.replace("capacity = \"1Mpps\"", "capacity = \"1pps\"");
    let effect = "effect = { \"firewall=stateful\" = 0.8 }\n";
    let factor = "[[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n";
    let lab = Lab::new(&one.replace(effect, "").replace(factor, ""));
    let ended = lab.fwdlab(&["run", "x.toml", "--blocks", "1"]).expect(4);
    let output = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("the least load is an upper bound: there may be nothing"), "{output}");
    assert!(
        output.contains("No run produced a result. all: no regular result for ndr: "),
        "{output}"
    );
    assert!(
        !output.contains("Nothing is measured") && !output.contains("no valid sample"),
        "{output}"
    );
    let dead = program(&lab, "#!/bin/sh\necho $1 0\n");
    let command = ["search", "--max-load", "10kpps", "--", &dead, "{load}"];
    let output = lab.fwdlab(&command).expect(4).stdout;
    let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("none arrived"), "{output}");
    let impossible = "kind = \"mlrsearch\"\nmin_load = \"2Mpps\"\nmax_load = \"1Mpps\"\n";
    let lab = Lab::new(&SEARCH.replace("kind = \"mlrsearch\"\n", impossible));
    let output = lab.fwdlab(&["plan", "x.toml"]).expect(2).stderr;
    assert!(output.contains("min_load") && output.contains("max_load"), "{output}");
}

/// A device that becomes slower with every trial: the report gives the drift, at most 100 %, and
/// notes that the bounds hold for no single moment.
#[test]
fn search_reports_a_drifting_device() {
    let lab = Lab::new(SEARCH);
    let slower = "#!/bin/sh\nn=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n\n\
                  most=$((20000 - 400 * n)); [ $most -lt 1000 ] && most=1000\n\
                  if [ $1 -gt $most ]; then echo $1 $most; else echo $1 $1; fi\n";
    let trial = program(&lab, slower);
    let command = ["search", "--max-load", "100kpps", "--json", "--", &trial, "{load}"];
    let json = lab.fwdlab(&command).expect(0).json();
    let drift = json["runs"][0]["drift"].as_f64().expect("a drift");
    assert!((-1.0..-0.2).contains(&drift), "{drift}");
    let searched = json["searched"].as_array().expect("rows");
    // The search ends below its start: the result holds for that time only.
    assert!(searched.iter().all(|row| row["upper"].as_f64() <= Some(20_000.0)), "{json}");
}

#[test]
fn search_runs_a_program_for_each_trial() {
    let lab = Lab::new(SEARCH);
    let trial = program(&lab, TRIAL);
    let command =
        ["search", "--max-load", "100kpps", "--json", "--", &trial, "{load}", "{seconds}"];
    let ended = lab.fwdlab(&command).expect(0);
    let json = ended.json();
    let ndr = &json["searched"][0];
    let (lower, upper) = (ndr["lower"].as_f64(), ndr["upper"].as_f64());
    assert!(lower <= Some(20_000.0) && upper > Some(20_000.0), "{ndr}");
    assert!(upper.zip(lower).is_some_and(|(upper, lower)| upper - lower <= 0.005 * upper), "{ndr}");
    assert!(!ended.stderr.contains("trial "), "{}", ended.stderr);
}

/// 10 Mbit/s take 14,880 frames of 64 bytes per second: less than the device forwards.
#[test]
fn search_with_a_program_ends_at_line_rate() {
    let lab = Lab::new(SEARCH);
    let trial = program(&lab, TRIAL);
    let link = |speed: &'static str, more: &[&'static str]| {
        let mut command = vec!["search", "--link-speed", speed, "--frame-size", "64"];
        command.extend(more);
        let program = [trial.as_str(), "{load}", "{seconds}"];
        lab.fwdlab(&[&command[..], &["--"], &program].concat())
    };
    let json = link("10Mbit/s", &["--json"]).expect(0).json();
    for row in json["searched"].as_array().expect("rows") {
        assert_eq!(row["throughput"]["median"].as_f64(), Some(14_880.0), "{row}");
        assert_eq!((&row["at_line"], &row["regular"][0]), (&1.into(), &0.into()), "{row}");
        assert!(row["of_line"].as_f64() > Some(0.999), "{row}");
        assert!(row["bits"][0].as_f64() > Some(9.99e6), "{row}");
    }
    let shown = link("10Mbit/s", &["--max-load", "1Mpps"]).expect(0).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "100.0 % of line rate: the device is as fast as its link, or faster",
        "the 1.00 Mpps that max_load asks for are above it",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    // A faster link: the device is the limit, and its rate a share of it.
    let json = link("1Gbit/s", &["--max-load", "100kpps", "--json"]).expect(0).json();
    let ndr = &json["searched"][0];
    assert_eq!((&ndr["regular"][0], &ndr["at_line"]), (&1.into(), &serde_json::Value::Null));
    assert!(ndr["of_line"].as_f64().is_some_and(|share| (share - 0.01344).abs() < 1e-4), "{ndr}");
    for wrong in [["--link-speed", "10"], ["--frame-size", "60"], ["--frame-size", "huge"]] {
        let command = ["search", wrong[0], wrong[1], "--max-load", "1Mpps", "--", "true"];
        lab.fwdlab(&command).expect(2);
    }
    lab.fwdlab(&["search", "--link-speed", "1Gbit/s", "--", "true"]).expect(2);
    let output = lab.fwdlab(&["search", "--", "true"]).expect(2).stderr;
    assert!(output.contains("--max-load") && output.contains("--link-speed"), "{output}");
}

#[test]
fn search_reports_a_failing_or_silent_program() {
    let lab = Lab::new(SEARCH);
    let silent = program(&lab, "#!/bin/sh\necho hello\n");
    let search =
        |trial: &str| lab.fwdlab(&["search", "--max-load", "1Mpps", "--", trial, "{load}"]);
    let ended = search(&silent).expect(2);
    assert!(ended.stderr.contains("printed no counts: `hello`"), "{}", ended.stderr);
    let failing = program(&lab, "#!/bin/sh\necho the rack is on fire >&2\nexit 3\n");
    let ended = search(&failing).expect(4);
    assert!(ended.stdout.contains("the rack is on fire"), "{}", ended.stdout);
    let invalid =
        "trial 1  1.00 Mpps: invalid, exit status: 3: the rack is on fire  1 of 1 invalid";
    assert!(ended.stderr.contains(invalid), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("the rack is on fire").count(), 1, "{}", ended.stderr);
    let ended = search("/nowhere/at/all").expect(2);
    assert!(ended.stderr.contains("name a program after `--`"), "{}", ended.stderr);
}

#[test]
fn search_takes_whole_numbers_written_as_floats() {
    let lab = Lab::new(SEARCH);
    let half = program(&lab, "#!/bin/sh\necho '{\"offered\": 2000.0, \"forwarded\": 1e3}'\n");
    let search = |trial: &str| {
        let goal = ["search", "--goal", "ndr", "--max-load", "1Mpps", "--seconds", "0.01"];
        lab.fwdlab(&[&goal[..], &["--", trial]].concat())
    };
    let ended = search(&half);
    assert!(!ended.stderr.contains("no counts"), "{}", ended.stderr);
    let part = program(&lab, "#!/bin/sh\necho '{\"offered\": 0.5, \"forwarded\": 0}'\n");
    let ended = search(&part).expect(2);
    assert!(ended.stderr.contains("a value of `offered` that is no count"), "{}", ended.stderr);
}

#[test]
fn loss_curve_ends_at_zero_loss() {
    let curve = SEARCH.replace("mlrsearch", "loss-curve").replace("noise = 0.005", "noise = 0.0");
    let lab = Lab::new(&curve);
    lab.fwdlab(&["run", "x.toml", "--blocks", "1"]).expect(0);
    let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let points = json["method"]["runs"][0]["points"].as_array().expect("points").clone();
    let share: Vec<f64> = points
        .iter()
        .map(|point| (1000.0 * point["loss_ratio"].as_f64().expect("a ratio")).round())
        .collect();
    // From twice the capacity down by tenths.
    assert_eq!(share, [500.0, 444.0, 375.0, 286.0, 167.0, 0.0, 0.0]);
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    assert!(report.contains("## Frame loss rate") && report.contains("curve.svg"), "{report}");
}

#[test]
fn soak_counts_the_trials_with_loss() {
    let soak = SEARCH
        .replace("kind = \"mlrsearch\"", "kind = \"soak\"\nmax_trials = 7")
        .replace("[[factor]]", "[traffic]\nrate = \"900kpps\"\n[[factor]]");
    let lab = Lab::new(&soak);
    lab.fwdlab(&["run", "x.toml", "--blocks", "1"]).expect(0);
    let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = json["method"]["soaked"].as_array().expect("rows");
    let lossy: Vec<(&str, Option<u64>)> = rows
        .iter()
        .map(|row| (row["label"].as_str().unwrap_or_default(), row["lossy"].as_u64()))
        .collect();
    assert_eq!(lossy, [("none", Some(0)), ("stateful", Some(7))]);
}
