//! `fwdlab compare`, from the command line.

use crate::support::{Ended, INSTANT, Lab, plan, store};

const BEFORE: &str = "# packets per second\n1000000\n1010000\n990000\n1005000\n1000500\n995000\n";
const AFTER: &str = "900000\n905000\n895000\n902000\n899000\n901000\n";

fn lab() -> Lab {
    let lab = Lab::new(INSTANT);
    lab.write("before.pps", BEFORE);
    lab.write("after.pps", AFTER);
    lab
}

fn compare(lab: &Lab, arguments: &[&str]) -> Ended {
    let all: Vec<&str> = ["compare"].iter().chain(arguments).copied().collect();
    lab.fwdlab(&all)
}

/// Asserts that the arguments are refused as a mistake, with all of `expected`.
#[track_caller]
fn refused(lab: &Lab, arguments: &[&str], expected: &[&str]) {
    let ended = compare(lab, arguments).expect(2);
    assert_eq!(ended.stdout, "");
    // clap breaks its messages into lines.
    for expected in expected {
        assert!(
            ended.stderr.contains(expected),
            "{arguments:?}: no {expected:?} in\n{}",
            ended.stderr
        );
    }
}

#[test]
fn compare_prints_two_files_in_every_format() {
    let lab = lab();
    let brief = compare(&lab, &["before.pps", "after.pps"]).expect(0).stdout;
    assert!(brief.contains("\nAgainst before. Medians; 95 % intervals;"), "{brief}");
    let rows: Vec<&str> = brief.lines().skip_while(|l| !l.starts_with("variant  old")).collect();
    let words: Vec<&str> = rows[1].split_whitespace().collect();
    assert_eq!((words[0], words[1], *words.last().expect("words")), ("after", "1.00", "worse"));
    assert!(!brief.contains("Hodges-Lehmann"), "{brief}");
    let text = compare(&lab, &["before.pps", "after.pps", "-v"]).expect(0).stdout;
    for expected in [
        "after against before\n",
        "Confidence 95 %, margin of equivalence 2.0 %, 1 comparison.",
        "MDE",
        "worse by more than 2.0 %",
        "beside it: Hodges-Lehmann (rank sum)",
    ] {
        let flat = text.replace("\n  ", " ").replace("\n    ", " ");
        assert!(flat.contains(expected) || text.contains(expected), "no {expected:?} in\n{text}");
    }
    let json = compare(&lab, &["before.pps", "after.pps", "--json"]).expect(0).json();
    assert_eq!((&json["version"], &json["unit"]), (&1.into(), &"pps".into()));
    assert_eq!(json["comparisons"][0]["outcome"]["compared"]["verdict"], "worse");
    assert_eq!(json["variants"][0]["values"].as_array().map(Vec::len), Some(6));
    let csv = compare(&lab, &["before.pps", "after.pps", "--csv"]).expect(0).stdout;
    assert!(csv.lines().nth(1).is_some_and(|line| line.starts_with("before,after,0.9")), "{csv}");
    let markdown = compare(&lab, &["before.pps", "after.pps", "--markdown"]).expect(0).stdout;
    assert!(markdown.contains("| after | **worse by more than 2.0 %** | -9.9"), "{markdown}");
    let page = compare(&lab, &["before.pps", "after.pps", "--format", "html"]).expect(0).stdout;
    assert!(page.contains("<h1>after against before</h1>"), "{page}");
    let same = compare(&lab, &["before.pps", "after.pps", "--format", "csv"]).expect(0).stdout;
    assert_eq!(same, csv);
    refused(&lab, &["before.pps", "after.pps", "--csv", "--json"], &["cannot be used with"]);
    let forms = "[possible values: text, markdown, html, csv, mail, ktap, junit, json, bencher, github-action-benchmark, openmetrics]";
    refused(&lab, &["before.pps", "after.pps", "--format", "pdf"], &[forms]);
}

#[test]
fn compare_exits_with_the_verdict_if_requested() {
    let lab = lab();
    let with = |arguments: &[&str], code: i32| drop(compare(&lab, arguments).expect(code));
    with(&["before.pps", "after.pps", "--fail-on", "worse"], 1);
    with(&["before.pps", "after.pps", "--fail-on", "worse", "--margin", "20%"], 0);
    with(&["after.pps", "before.pps", "--fail-on", "worse"], 0);
    with(&["after.pps", "before.pps", "--fail-on", "different"], 1);
    with(&["after.pps", "before.pps", "--fail-on", "not-equivalent"], 1);
    with(&["before.pps", "after.pps"], 0);
}

#[test]
fn compare_accepts_stores_and_their_variants() {
    let lab = lab();
    lab.fwdlab(&["run", "x.toml", "--blocks", "8"]).expect(0);
    let whole = compare(&lab, &["results/x"]).expect(0).stdout;
    assert!(whole.contains("against none") && whole.contains("\nstateful "), "{whole}");
    assert!(whole.contains("SIMULATED"), "{whole}");
    let single = compare(&lab, &["results/x:none", "results/x:stateful", "--json"]);
    let answer = &single.expect(0).json()["comparisons"][0]["outcome"]["compared"];
    assert_eq!(answer["comparison"]["blocks"], 8);
    assert_eq!(answer["verdict"], "worse");
    let table = compare(&lab, &["results/x/runs.csv", "--json"]).expect(0).json();
    assert_eq!(table["comparisons"][0]["outcome"]["compared"]["comparison"]["blocks"], 8);
    lab.write(
        "z.toml",
        &INSTANT.replace(
            "[design]",
            "[[factor]]\nname = \"family\"\nlevels = [\"inet\", \"inet6\"]\n[design]",
        ),
    );
    lab.fwdlab(&["run", "z.toml"]).expect(0);
    let level = compare(&lab, &["results/z", "--baseline", "stateful", "-v"]).expect(0).stdout;
    for pair in ["none, inet against stateful, inet:", "none, inet6 against stateful, inet6:"] {
        assert!(level.contains(pair), "{level}");
    }
    assert_eq!(level.matches(" against stateful, ").count(), 2, "{level}");
    refused(&lab, &["results/x:statful", "results/x:none"], &["did you mean `stateful`?"]);
    refused(&lab, &["results"], &["holds no store", "name the directory of an experiment"]);
    refused(&lab, &["results/x:none", "results/x"], &["2 variants", "run.sqlite:LABEL"]);
    let other = plan(
        &INSTANT
            .replace("sim\"", "netns\"")
            .replace("[testbed.sim]\n", "")
            .replace("noise = 0.01\neffect = { \"firewall=stateful\" = 0.8 }\n", ""),
    );
    store(&lab.path("netns.sqlite"), &other, "netns");
    refused(&lab, &["results/x:none", "netns.sqlite:none"], &["different testbeds", "simulated"]);
    lab.write("y.toml", &INSTANT.replace("[design]", "[dut]\nqueues = 4\n[design]"));
    lab.fwdlab(&["run", "y.toml"]).expect(0);
    let differs = ["results/x", "results/y"];
    refused(&lab, &differs, &["asked for different things", "queues: 1 and 4", "single variants"]);
}

#[test]
fn compare_refuses_bad_files_with_place_and_next_step() {
    let lab = lab();
    for (text, expected) in [
        ("", &["bad.pps: this file holds no figures", "one per line"][..]),
        ("1000000\n", &["bad.pps: one run", "at least twice"]),
        ("1000000\n\nfast\n", &["bad.pps:3: `fast` is not a number", "packets per second"]),
        ("1000000\nNaN\n", &["bad.pps:2: `NaN`", "finite rate above 0"]),
        ("1000000\n-inf\n", &["bad.pps:2: `-inf`"]),
        ("1000000\n0\n", &["bad.pps:2: `0`", "leave out runs that failed"]),
        ("1000000\n-5\n", &["bad.pps:2: `-5`"]),
        ("1.0\n1.1\n", &["bad.pps (median 1.05)", "packets per second in both"]),
        ("1,5\n", &["bad.pps:1: 2 fields", "`run,pps`"]),
        ("second,pps\n0,1000000\n", &["no replicates", "add a column `run`"]),
    ] {
        lab.write("bad.pps", text);
        refused(&lab, &["before.pps", "bad.pps"], expected);
    }
    lab.write("short.pps", "1000000\n1010000\n");
    let lines = ["before.pps", "short.pps", "--blocked"];
    refused(&lab, &lines, &["before.pps has 6, short.pps has 2", "leave --blocked out"]);
    refused(
        &lab,
        &["before.pps", "nowhere:x:y"],
        &["neither `nowhere:x:y`, `nowhere` nor `nowhere:x`"],
    );
    refused(&lab, &["before.pps"], &["names one variant", "name another one"]);
    refused(&lab, &[], &["required"]);
    refused(&lab, &["before.pps", "after.pps", "--margin", "2"], &["written such as 2%"]);
    refused(&lab, &["before.pps", "after.pps", "--confidence", "5"], &["between 50 and 100"]);
}

#[test]
fn compare_reports_aggregated_samples() {
    let lab = lab();
    let mut text = String::from("run,second,pps\n");
    for run in 0..5 {
        for second in 0..3 {
            text += &format!("{run},{second},{}\n", 900_000 + 1000 * run + second);
        }
    }
    lab.write("seconds.csv", &text);
    let output = compare(&lab, &["before.pps", "seconds.csv", "-v"]).expect(0).stdout;
    assert!(output.contains("15 samples of seconds.csv aggregated to 5 runs"), "{output}");
    assert!(output.replace("\n  ", " ").contains("n = 6 + 5 runs"), "{output}");
}

#[test]
fn compare_fits_forty_columns_in_colour() {
    let lab = lab().with("COLUMNS", "40");
    for line in compare(&lab, &["before.pps", "after.pps"]).expect(0).stdout.lines() {
        assert!(line.chars().count() <= 40 || line.split_whitespace().count() <= 1, "{line:?}");
    }
    let coloured =
        compare(&lab, &["before.pps", "after.pps", "--color", "always"]).expect(0).stdout;
    assert!(coloured.contains('\u{1b}'), "{coloured}");
}

#[test]
fn compare_of_several_builds_uses_builds_as_units() {
    let builds = "{ label = \"before 1\", build_of = \"before\", routes = 2 }, \
                  { label = \"before 2\", build_of = \"before\", routes = 3 }, \
                  { label = \"before 3\", build_of = \"before\", routes = 4 }, \
                  { label = \"after 1\", build_of = \"after\", routes = 5 }, \
                  { label = \"after 2\", build_of = \"after\", routes = 6 }, \
                  { label = \"after 3\", build_of = \"after\", routes = 7 }";
    // By chance one build has faster layouts: by 1 % on average, and runs scatter by 0.1 %.
    let effects = [
        ("before 1", 1.01),
        ("before 2", 0.99),
        ("before 3", 0.98),
        ("after 1", 1.0),
        ("after 2", 1.015),
        ("after 3", 0.995),
    ];
    let effects = effects.map(|(label, effect)| format!("\"revision={label}\" = {effect}"));
    let text = format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\nnoise = 0.001\n\
         effect = {{ {} }}\n[design]\nblocks = 6\n[compare]\nbaseline = {{ revision = \"before\" }}\n\
         [[factor]]\nname = \"revision\"\nlevels = [{builds}]\n",
        effects.join(", ")
    );
    let lab = Lab::new(&text);
    let plan = lab.fwdlab(&["plan", "x.toml"]).expect(0);
    assert!(plan.stdout.contains("a build of before"), "{}", plan.stdout);
    let (results, page) = lab.results(&[]);
    let compared = results["comparisons"].as_array().expect("comparisons");
    assert_eq!(compared.len(), 1, "{compared:#?}");
    assert_eq!(compared[0]["label"], "after");
    assert_eq!(compared[0]["baseline_label"], "before");
    let answer = &compared[0]["outcome"]["compared"];
    assert_eq!(answer["verdict"], "inconclusive", "{answer:#}");
    // The certain result of six runs of each build, for these builds only.
    let these = &answer["comparison"]["builds"]["these"];
    assert!(these["p"].as_f64().unwrap() < 0.01, "{these:#}");
    assert!((these["ratio"].as_f64().unwrap() - 1.01).abs() < 0.003, "{these:#}");
    let scatter = answer["comparison"]["builds"]["scatter"].as_f64().unwrap();
    assert!((0.008..0.02).contains(&scatter), "{scatter}");
    assert!(page.contains("builds of one revision scatter by"), "{page}");
    // The store alone gives the same answer.
    let again = compare(&lab, &["results/x/run.sqlite", "--json"]).expect(0).json();
    let again = &again["comparisons"][0];
    assert_eq!(again["label"], "after", "{again:#}");
    assert_eq!(again["outcome"]["compared"]["comparison"]["ratio"], answer["comparison"]["ratio"]);
}

/// Results of hyperfine for each command with its times.
fn hyperfine(commands: &[(&str, [f64; 4])]) -> String {
    let results = commands.iter().map(|(command, times)| {
        serde_json::json!({ "command": command, "times": times, "exit_codes": [0, 0, 0, 0] })
    });
    serde_json::json!({ "results": results.collect::<Vec<_>>() }).to_string()
}

#[test]
fn compare_judges_times_of_other_tools_by_their_direction() {
    let lab = Lab::new(INSTANT);
    let (slow, fast) = ([2.0, 2.02, 1.98, 2.01], [1.0, 1.01, 0.99, 1.005]);
    lab.write("slow.json", &hyperfine(&[("a", slow)]));
    lab.write("fast.json", &hyperfine(&[("b", fast)]));
    lab.write("both.json", &hyperfine(&[("a", slow), ("b", fast)]));
    let better = compare(&lab, &["slow.json", "fast.json", "--fail-on", "worse"]).expect(0).stdout;
    assert!(better.contains("note: fast.json: hyperfine, 4 runs of `b`, seconds"), "{better}");
    assert!(better.contains("One figure per run. All in seconds."), "{better}");
    assert!(better.contains("better"), "{better}");
    compare(&lab, &["fast.json", "slow.json", "--fail-on", "worse"]).expect(1);
    compare(&lab, &["both.json", "--baseline", "b", "--fail-on", "worse"]).expect(1);
    compare(&lab, &["both.json:a", "both.json:b", "--fail-on", "worse"]).expect(0);
    compare(&lab, &["slow.json", "both.json", "--only", "a"]).expect(0);
    let json = compare(&lab, &["slow.json", "fast.json", "--json"]).expect(0).json();
    assert_eq!(json["unit"], "s");
    assert_eq!(json["inputs"][0]["tool"], "hyperfine");
    assert_eq!(json["comparisons"][0]["outcome"]["compared"]["verdict"], "better");
    refused(
        &lab,
        &["slow.json", "both.json"],
        &["it has 2 benchmarks; give --only with one of `a`, `b`"],
    );
    refused(&lab, &["slow.json", "both.json", "--only", "c"], &["no benchmark `c`"]);
    lab.write("list.pps", BEFORE);
    refused(
        &lab,
        &["slow.json", "list.pps"],
        &["slow.json is of hyperfine, and not all files are"],
    );
    lab.write("cut.json", &hyperfine(&[("a", slow)])[..40]);
    refused(&lab, &["slow.json", "cut.json"], &["the file ends within JSON value 1"]);
}
