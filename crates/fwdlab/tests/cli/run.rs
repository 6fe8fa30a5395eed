//! From the experiment file to the report.

use crate::support::{INSTANT, Lab, plan, simulated, store, values_per_variant};
use fwdlab_model::Warning;
use fwdlab_results::store::Store;

#[test]
fn run_writes_results_and_a_rebuildable_report() {
    let lab = Lab::new(INSTANT);
    let run = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(run.stdout.contains("SIMULATED"), "{}", run.stdout);
    assert!(run.stdout.contains("\nagainst none  old Mpps"), "{}", run.stdout);
    assert!(run.stdout.ends_with("report: results/x/README.md\n"), "{}", run.stdout);
    let lines = run.stderr.lines().filter(|line| line.starts_with("block ")).count();
    assert_eq!(lines, 8, "a line per run:\n{}", run.stderr);

    let shown = lab.fwdlab(&["show", "results/x", "--json"]).expect(0).json();
    assert_eq!(shown["verdicts"][0]["verdict"], "worse", "{shown}");
    assert_eq!((&shown["simulated"], &shown["version"]), (&true.into(), &1.into()));
    let mail = lab.fwdlab(&["show", "results/x", "--format", "mail"]).expect(0).stdout;
    assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    for part in ["SIMULATED", "2000 (20 x 100) flows, inet", "repeat: fwdlab run x.toml", "worse"] {
        assert!(mail.contains(part), "no {part:?} in\n{mail}");
    }
    assert_eq!(values_per_variant(&shown), [4, 4]);
    let median = |variant: usize| shown["variants"][variant]["median"].as_f64().expect("median");
    // The simulated truth is 1.6 Mpps and four fifths of it.
    assert!((median(0) / 1.6e6 - 1.0).abs() < 0.05, "{shown}");
    assert!((median(1) / 1.28e6 - 1.0).abs() < 0.05, "{shown}");

    let written = lab.files("results/x");
    assert!(written.contains_key("README.md") && written.contains_key("graph.svg"));
    lab.fwdlab(&["report", "results/x"]).expect(0);
    assert_eq!(lab.files("results/x"), written);
    lab.fwdlab(&["report", "results/x/run.sqlite", "--out", "again"]).expect(0);
    assert_eq!(lab.files("again"), written);
}

#[test]
fn simulated_run_is_reproducible() {
    let lab = Lab::new(INSTANT);
    let one = lab.fwdlab(&["run", "x.toml", "--out", "one", "--json"]).expect(0).json();
    let two = lab.fwdlab(&["run", "x.toml", "--out", "two", "--json"]).expect(0).json();
    assert_eq!(one, two);
    let other = lab.fwdlab(&["run", "x.toml", "--out", "three", "--seed", "2", "--json"]);
    assert_ne!(other.expect(0).json(), one);
}

#[test]
fn complete_store_stays_unchanged() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    let before = lab.files("results/x");
    let again = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(again.stderr.contains("all of its 8 runs are stored already"), "{}", again.stderr);
    assert_eq!(lab.files("results/x"), before);
}

#[test]
fn quiet_run_prints_results_only() {
    let lab = Lab::new(INSTANT);
    let run = lab.fwdlab(&["run", "x.toml", "--quiet", "--no-report"]).expect(0);
    assert_eq!(run.stderr, "");
    assert!(run.stdout.contains("store: results/x/run.sqlite"), "{}", run.stdout);
    assert!(lab.files("results/x").is_empty());
}

#[test]
fn overrides_change_the_plan() {
    let lab = Lab::new(&INSTANT.replace("\"sim\"", "\"netns\""));
    let run = lab.fwdlab(&["run", "x.toml", "--testbed", "sim", "--blocks", "2", "--json"]);
    assert_eq!(values_per_variant(&run.expect(0).json()), [2, 2]);
    let refused = lab.fwdlab(&["run", "x.toml", "--testbed", "sim", "--blocks", "3"]).expect(2);
    assert!(refused.stderr.contains("holds another plan"), "{}", refused.stderr);
}

#[test]
fn no_calibration_stores_no_ceiling() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--no-calibration"]).expect(0);
    let store = Store::open_read_only(&lab.path("results/x/run.sqlite")).expect("a store");
    assert!(store.calibrations().expect("calibrations").is_empty());
    drop(store);
    lab.fwdlab(&["run", "x.toml", "--out", "with"]).expect(0);
    let store = Store::open_read_only(&lab.path("with/run.sqlite")).expect("a store");
    assert_eq!(store.calibrations().expect("calibrations").len(), 1);
}

#[test]
fn invocation_is_stored_with_its_environment() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    let store = Store::open_read_only(&lab.path("results/x/run.sqlite")).expect("a store");
    let stored = store.invocations().expect("invocations");
    assert_eq!(stored.len(), 1);
    let invocation = &stored[0].invocation;
    assert!(invocation.fwdlab_version.starts_with(env!("CARGO_PKG_VERSION")));
    assert!(invocation.simulated && invocation.testbed == fwdlab_model::settings::TestbedKind::Sim);
    assert!(invocation.environment.0.contains_key("kernel"));
}

#[test]
fn alternating_experiment_runs() {
    let text = INSTANT
        .replace("levels = [\"none\", \"stateful\"]", "levels = [\"rules:0\", \"rules:9\"]")
        .replace("effect = { \"firewall=stateful\" = 0.8 }\n", "")
        .replace("blocks = 4", "blocks = 4\nalternate = \"170ms\"\n[trial]\nduration = \"4s\"");
    let lab = Lab::new(&text);
    let run = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(run.stdout.contains("\nAgainst rules:0. Medians;"), "{}", run.stdout);
    assert!(run.stderr.contains("stream 4/4"), "{}", run.stderr);
}

#[test]
fn fail_on_exits_with_a_difference() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml", "--fail-on", "worse"]).expect(1);
    lab.fwdlab(&["show", "results/x", "--fail-on", "different"]).expect(1);
    lab.fwdlab(&["show", "results/x"]).expect(0);
    let better = Lab::new(&INSTANT.replace("= 0.8 }", "= 1.2 }"));
    better.fwdlab(&["run", "x.toml", "--fail-on", "worse"]).expect(0);
    better.fwdlab(&["run", "x.toml", "--fail-on", "not-equivalent"]).expect(1);
}

#[test]
fn untrusted_results_exit_with_4() {
    let lab = Lab::new(INSTANT);
    let plan = plan(INSTANT);
    let mut store = store(&lab.path("results/x/run.sqlite"), &plan, "sim");
    let mut record = simulated(&plan, &plan.runs[0]);
    record.warnings.push(Warning::NotVerified {
        setting: "routes".into(),
        wanted: "2".into(),
        found: "3".into(),
    });
    store.insert_run(&record).expect("stored");
    drop(store);

    let run = lab.fwdlab(&["run", "x.toml", "--fail-on", "worse"]).expect(4);
    assert!(run.stdout.contains("NOT TO BE TRUSTED"), "{}", run.stdout);
    assert!(lab.path("results/x/README.md").exists(), "the report is written nevertheless");
}

#[test]
fn notify_command_receives_the_outcome() {
    let lab = Lab::new(INSTANT);
    let got = lab.path("got");
    let command = format!(
        "sh -c 'echo \"$1|$2\" > \"$0\"; cat >> \"$0\"' '{}' '{{title}} {{outcome}}' {{report}}",
        got.display()
    );
    lab.fwdlab(&["run", "x.toml", "--notify-command", &command]).expect(0);
    let notice = std::fs::read_to_string(&got).expect("told");
    assert!(notice.starts_with("A simulated firewall finished|results/x/README.md\n"), "{notice}");
    assert!(notice.contains("\nagainst none  old Mpps"), "{notice}");

    // A failed notification is a remark and changes nothing.
    let failed = lab.fwdlab(&["run", "x.toml", "--notify-command", "/no/such/program {title}"]);
    assert!(failed.expect(0).stderr.contains("nobody was told by `/no/such/program"));
    let words = lab.fwdlab(&["run", "x.toml", "--notify-command", "a 'b"]).expect(2).stderr;
    assert!(words.contains("--notify-command: a ' that is never closed"), "{words}");

    // Another plan in the same directory.
    lab.write("y.toml", &INSTANT.replace("blocks = 4", "blocks = 5"));
    let arguments = ["run", "y.toml", "--out", "results/x", "--notify-command", &command];
    assert_ne!(lab.fwdlab(&arguments).code, Some(0));
    let notice = std::fs::read_to_string(&got).expect("told");
    assert!(notice.starts_with("A simulated firewall failed|"), "{notice}");
}
