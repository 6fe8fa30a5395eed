//! Output of the program: colours, widths, machine-readable formats.

use crate::support::{Ended, INSTANT, Lab};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn piped_output_has_no_colours() {
    let lab = Lab::new(INSTANT);
    for arguments in [["run", "x.toml"], ["plan", "x.toml"], ["run", "y.toml"], ["show", "--help"]]
    {
        let ended = lab.fwdlab(&arguments);
        assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
        assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    }
}

#[test]
fn colours_follow_options_and_environment() {
    let plan = |lab: Lab, color: &str| {
        let ended = lab.fwdlab(&["plan", "x.toml", "--color", color]).expect(0);
        ended.stdout.contains('\u{1b}')
    };
    assert!(plan(Lab::new(INSTANT).with("CLICOLOR_FORCE", "1"), "auto"));
    assert!(!plan(Lab::new(INSTANT).with("CLICOLOR_FORCE", "1"), "never"));
    assert!(plan(Lab::new(INSTANT).with("NO_COLOR", "1"), "always"));
    assert!(!plan(Lab::new(INSTANT).with("NO_COLOR", "1"), "auto"));
    let faults = Lab::new("versoin = 1").fwdlab(&["--color", "always", "plan", "x.toml"]);
    assert!(faults.expect(2).stderr.contains('\u{1b}'));
}

#[test]
fn plans_fit_forty_columns() {
    let lab = Lab::new(INSTANT).with("COLUMNS", "40");
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("experiments")).expect("experiments") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        seen += 1;
        let plan = lab.fwdlab(&["plan", &path.to_string_lossy()]).expect(0);
        assert_narrow(&plan.stdout);
    }
    assert!(seen >= 5, "{seen} experiments");
    assert_narrow(&lab.fwdlab(&["run", "x.toml"]).expect(0).stdout);
    assert_narrow(&lab.fwdlab(&["show", "results/x"]).expect(0).stdout);
}

/// Asserts that no line is wider than forty columns, unless it is one word.
#[track_caller]
fn assert_narrow(text: &str) {
    for line in text.lines() {
        // A name stays with its value, and a word stays whole.
        let one_word = line.replace(" = ", "=").split_whitespace().count() <= 1;
        assert!(one_word || line.chars().count() <= 40, "{line:?} in\n{text}");
    }
}

#[test]
fn plan_prints_json() {
    let lab = Lab::new(INSTANT);
    let plan = lab.fwdlab(&["plan", "x.toml", "--json"]).expect(0).json();
    assert_eq!(plan["runs"].as_array().map(Vec::len), Some(8));
    assert_eq!(plan["estimate"]["runs"], 8);
    let loaded = fwdlab_model::load("x.toml", INSTANT, &|_| Ok(Vec::new())).expect("a plan");
    assert_eq!(plan["hash"], loaded.hash);
    let text = lab.fwdlab(&["plan", "x.toml"]).expect(0).stdout;
    assert!(text.contains(&loaded.hash) && text.contains("  stateful  none\n"), "{text}");
    assert!(text.contains("--order shows it") && !text.contains("order of runs\n"), "{text}");
}

#[test]
fn plan_shows_the_order_of_runs_if_requested() {
    let lab = Lab::new(INSTANT);
    let text = lab.fwdlab(&["plan", "x.toml", "--blocks", "50", "--order"]).expect(0).stdout;
    let (_, order) = text.split_once("order of runs\n").expect("the order");
    let last = order.lines().filter(|line| line.trim_start().starts_with("100 ")).count();
    assert_eq!((order.lines().count(), last), (102, 1), "{order}");
    let csv = lab.fwdlab(&["plan", "x.toml", "--csv"]).expect(0).stdout;
    assert!(csv.contains("run,block,variant\n1,1,"), "{csv}");
}

#[test]
fn completions_contain_the_commands() {
    let lab = Lab::new("");
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let script = lab.fwdlab(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("doctor") && script.contains("fail-on"), "{shell}: {script}");
    }
}

#[test]
fn man_writes_manual_pages() {
    let lab = Lab::new("");
    lab.fwdlab(&["man", "man1"]).expect(0);
    let pages = lab.files("man1");
    for name in ["fwdlab.1", "fwdlab-run.1", "fwdlab-bench-sender.1"] {
        assert!(pages.get(name).is_some_and(|page| page.starts_with(b".ie")), "{name}");
    }
}

#[test]
fn schema_matches_the_documented_one() {
    let printed = Lab::new("").fwdlab(&["schema"]).expect(0).stdout;
    let stored = std::fs::read_to_string(root().join("docs/experiment.schema.json"));
    assert_eq!(printed, stored.expect("docs/experiment.schema.json"));
}

#[test]
fn doctor_prints_json() {
    let lab = Lab::new("");
    let ended = lab.fwdlab(&["doctor", "--json"]);
    let found = ended.json();
    let probes = found["probes"].as_array().expect("probes");
    assert!(probes.iter().any(|probe| probe["name"] == "program ip"), "{found}");
    for probe in probes {
        let has_next_step = !probe["next"].as_str().expect("text").is_empty();
        assert!(probe["works"] == true || has_next_step, "what fails has a next step: {probe}");
    }
    let simulated = found["testbed"]["simulated"].as_bool().expect("a truth value");
    assert_eq!(ended.code, Some(if simulated { 3 } else { 0 }), "{found}");
    assert_eq!(found["testbed"]["kind"], if simulated { "sim" } else { "netns" });
}

#[test]
fn bench_fib_measures_tables_and_prints_json() {
    let lab = Lab::new("");
    let small = ["--routes", "100", "--family", "inet", "--seconds", "0.1"];
    let json: Vec<&str> = ["bench", "fib", "--json"].into_iter().chain(small).collect();
    let found = lab.fwdlab(&json).expect(0).json();
    let figures = found.as_array().expect("a list");
    let named = |name: &str| figures.iter().filter(|figure| figure["algorithm"] == name).count();
    assert_eq!((named("poptrie"), named("dir24_8"), named("multibit")), (3, 3, 0), "{found}");
    for figure in figures {
        assert!(figure["median_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{figure}");
        assert_eq!(figure["routes"], 100);
    }
    let text: Vec<&str> = ["bench", "fib", "--fib", "bsearch"].into_iter().chain(small).collect();
    let output = lab.fwdlab(&text).expect(0).stdout;
    assert!(output.contains("100 routes, inet") && output.contains("bsearch"), "{output}");
    assert!(!output.contains("poptrie"), "{output}");
    let other = ["bench", "fib", "--fib", "multibit", "--family", "inet"];
    let output = lab.fwdlab(&other).expect(2).stderr;
    assert!(output.contains("multibit"), "{output}");
}

#[test]
fn bench_route_measures_the_router_and_prints_json() {
    let lab = Lab::new("");
    let small = ["--routes", "2", "--fib", "poptrie", "--seconds", "0.1", "--rounds", "2"];
    let json: Vec<&str> = ["bench", "route", "--json", "--firewall", "none,stateful"]
        .into_iter()
        .chain(small)
        .collect();
    let found = lab.fwdlab(&json).expect(0).json();
    let variants = found["variants"].as_array().expect("a list");
    let states: Vec<_> = variants.iter().map(|variant| variant["state"].as_str()).collect();
    assert_eq!(states, [None, Some("sharded")], "{found}");
    for variant in variants {
        for kind in ["whole", "router"] {
            let rates = variant[kind]["rates_pps"].as_array().expect("rates");
            assert_eq!(rates.len(), 2, "{variant}");
            assert!(variant[kind]["median_pps"].as_f64().is_some_and(|rate| rate > 0.0));
        }
        assert!(variant["packets"].as_u64().is_some_and(|packets| packets >= 2000), "{variant}");
    }
    assert_eq!(variants[0]["router"]["median_ratio"], 1.0);
    let text: Vec<&str> = ["bench", "route", "--path", "full"].into_iter().chain(small).collect();
    let output = lab.fwdlab(&text).expect(0).stdout;
    assert!(output.contains("inet, 2 routes, poptrie, full path"), "{output}");
    assert!(output.contains("load average") && output.contains("router  median"), "{output}");
    let wrong = [["--path", "slow"], ["--fib", "multibit"], ["--routes", "1"]];
    for words in wrong.iter().chain(&[["--frame-size", "70000"]]) {
        let arguments: Vec<&str> = ["bench", "route"].iter().chain(words).copied().collect();
        lab.fwdlab(&arguments).expect(2);
    }
    let small = ["bench", "route", "--family", "inet6", "--frame-size", "64"];
    let output = lab.fwdlab(&small).expect(2).stderr;
    assert!(output.contains("--frame-size") && output.contains("84"), "{output}");
}

#[test]
fn closed_pipe_is_not_an_error() {
    let lab = Lab::new("");
    let mut command = lab.command(&["schema"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn every_command_has_help_with_an_example() {
    let lab = Lab::new("").with("COLUMNS", "40");
    let commands: [&[&str]; 12] = [
        &["run"],
        &["plan"],
        &["report"],
        &["show"],
        &["compare"],
        &["doctor"],
        &["bench", "sender"],
        &["bench", "fib"],
        &["bench", "route"],
        &["completions"],
        &["schema"],
        &["man"],
    ];
    for command in commands {
        let arguments: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let help = lab.fwdlab(&arguments).expect(0).stdout;
        assert!(help.contains(&format!("  fwdlab {}", command.join(" "))), "{help}");
    }
    let help = lab.fwdlab(&["--help"]).expect(0).stdout;
    assert!(help.contains("Exit codes") && help.contains("can't be trusted"), "{help}");
    let version = lab.fwdlab(&["--version"]).expect(0).stdout;
    assert!(version.starts_with(concat!("fwdlab ", env!("CARGO_PKG_VERSION"))), "{version}");
}

/// Runs the script that is one of the kernel's driver tests, with these variables.
fn driver_test(lab: &Lab, variables: &[(&str, &str)]) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_fwdlab")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let script = root().join("experiments/ci/forwarding.sh");
    let mut command = Command::new("sh");
    command.arg(script).current_dir(lab.path(".")).stdin(Stdio::null());
    command.env("PATH", format!("{}:{path}", program.display())).env_remove("NETIF");
    command.envs(variables.iter().copied());
    Ended::from(command.output().expect("sh starts"))
}

#[test]
fn script_runs_as_a_kernel_driver_test() {
    let lab = Lab::new(INSTANT);
    let experiment = ("FWDLAB_EXPERIMENT", "x.toml");
    let worse = driver_test(&lab, &[experiment]).expect(1).stdout;
    assert!(worse.starts_with("KTAP version 1\n1..1\n"), "{worse}");
    assert!(worse.contains("\nnot ok 1 stateful against none\n"), "{worse}");
    lab.write("x.toml", &INSTANT.replace("0.8", "1.25"));
    assert!(driver_test(&lab, &[experiment]).expect(0).stdout.contains("\nok 1 "));
    // One link does not lead through a device: reported, and nothing is measured.
    let netif = [experiment, ("NETIF", "eth7"), ("REMOTE_V4", "192.0.2.2")];
    let skipped = driver_test(&lab, &netif).expect(4).stdout;
    assert!(skipped.contains("ok 1 forwarding # SKIP eth7 has one link to 192.0.2.2"), "{skipped}");
    lab.write("lab.toml", "[[host.interface]]\nname = \"eth8\"\n");
    let other = [&netif[..], &[("FWDLAB_LAB", "lab.toml")]].concat();
    assert!(driver_test(&lab, &other).expect(4).stdout.contains("has no interface eth7"));
    // A fault of the file is not a property of the device, nor a reason to skip.
    lab.write("x.toml", "version = 9\n");
    assert!(driver_test(&lab, &[experiment]).expect(1).stdout.contains("Bail out!"));
}
