//! Exit code, KTAP, JUnit and JSON of every command that compares report the same.

use crate::support::{INSTANT, Lab, plan, simulated, store};
use fwdlab_model::Warning;

/// A laboratory with a finished store in `results/x`, and its exit code with `--fail-on worse`.
struct Case {
    name: &'static str,
    lab: Lab,
    /// True if the store contains what the experiment measures.
    is_measured: bool,
    code: i32,
    /// Numbers of tests that pass, fail and are skipped.
    counts: [usize; 3],
}

fn with_effect(effect: &str, noise: &str) -> String {
    let text = INSTANT.replace("= 0.8 }", &format!("= {effect} }}"));
    text.replace("noise = 0.01", &format!("noise = {noise}")).replace("blocks = 4", "blocks = 8")
}

fn cases() -> Vec<Case> {
    let measured = |name, effect, noise, code, counts| {
        let lab = Lab::new(&with_effect(effect, noise));
        lab.fwdlab(&["run", "x.toml", "--quiet"]).expect(0);
        Case { name, lab, is_measured: true, code, counts }
    };
    let prepared = |name, lab| Case { name, lab, is_measured: false, code: 4, counts: [0, 0, 1] };
    vec![
        measured("worse", "0.8", "0.005", 1, [0, 1, 0]),
        measured("worse, within the margin", "0.99", "0.001", 0, [1, 0, 0]),
        measured("equivalent", "1.0", "0.001", 0, [1, 0, 0]),
        measured("better", "1.25", "0.005", 0, [1, 0, 0]),
        measured("inconclusive", "0.999", "0.3", 0, [0, 0, 1]),
        prepared("distrusted", distrusted()),
        prepared("one block", one_block()),
    ]
}

/// A store in which one run found another number of routes than planned.
fn distrusted() -> Lab {
    let text = with_effect("0.8", "0.005");
    let lab = Lab::new(&text);
    let plan = plan(&text);
    let mut store = store(&lab.path("results/x/run.sqlite"), &plan, "sim");
    for run in &plan.runs {
        let mut record = simulated(&plan, run);
        if run.index == 1 {
            let (setting, wanted, found) = ("routes".into(), "2".into(), "3".into());
            record.warnings.push(Warning::NotVerified { setting, wanted, found });
        }
        store.insert_run(&record).expect("stored");
    }
    lab
}

/// A store whose comparison has no answer: a single block has no scatter.
fn one_block() -> Lab {
    let lab = Lab::new(&with_effect("0.8", "0.005"));
    lab.fwdlab(&["run", "x.toml", "--blocks", "1", "--quiet"]).expect(0);
    lab
}

/// Numbers of passed, failed and skipped tests in KTAP.
fn of_ktap(text: &str) -> [usize; 3] {
    let starts =
        |start: &str| text.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    let (ok, not_ok) = (starts("ok "), starts("not ok "));
    let skipped = ok.iter().filter(|line| line.contains(" # SKIP")).count();
    [ok.len() - skipped, not_ok.len(), skipped]
}

/// Numbers of passed, failed and skipped tests in JUnit XML, by its elements; the attributes contain
/// the same numbers.
fn of_junit(text: &str) -> [usize; 3] {
    let count = |what: &str| text.matches(what).count();
    let (tests, failed, skipped) = (count("<testcase"), count("<failure"), count("<skipped"));
    let start = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ";
    assert!(text.starts_with(start), "{text}");
    let attributes = format!(" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\"");
    assert!(text.contains(&attributes), "{attributes} in\n{text}");
    assert_eq!(count("name=\"stateful against none\">\n<failure type=\"worse\""), failed, "{text}");
    [tests - failed - skipped, failed, skipped]
}

#[test]
fn commands_and_formats_agree_on_the_verdict() {
    for Case { name, lab, is_measured, code, counts } in cases() {
        let run: &[&str] = match name {
            "one block" => &["run", "x.toml", "--quiet", "--blocks", "1"],
            _ => &["run", "x.toml", "--quiet"],
        };
        let mut commands = vec![run, &["show", "results/x"], &["compare", "results/x"]];
        if is_measured {
            commands.push(&["run", "x.toml", "--fresh"]);
        }
        for command in commands {
            // A comparison of the runs of one block is refused.
            if name == "one block" && command[0] == "compare" {
                let refused = lab.fwdlab(&[command, &["--fail-on", "worse"]].concat()).expect(2);
                assert!(refused.stderr.contains("nothing can be compared"), "{}", refused.stderr);
                continue;
            }
            let with = |form| {
                let arguments = [command, &["--fail-on", "worse", "--format", form]].concat();
                lab.fwdlab(&arguments).expect(code).stdout
            };
            assert_eq!(of_ktap(&with("ktap")), counts, "{name}: {command:?}");
            assert_eq!(of_junit(&with("junit")), counts, "{name}: {command:?}");
            for form in ["text", "json", "mail", "csv", "markdown", "html"] {
                with(form);
            }
        }
        // Without `--fail-on` only untrusted results have an exit code.
        let shown = if name == "distrusted" { 4 } else { 0 };
        lab.fwdlab(&["show", "results/x"]).expect(shown);
    }
}

#[test]
fn exit_of_several_stores_is_the_worst() {
    let lab = distrusted();
    lab.write("y.toml", &with_effect("0.8", "0.005"));
    lab.fwdlab(&["run", "y.toml", "--quiet"]).expect(0);
    lab.fwdlab(&["show", "results", "--fail-on", "worse"]).expect(1);
    // A gate that judges nothing is no pass.
    let nothing = ["show", "results", "--machine", "no such machine"];
    lab.fwdlab(&nothing).expect(0);
    let refused = lab.fwdlab(&[&nothing[..], &["--fail-on", "worse"]].concat()).expect(2);
    assert!(refused.stderr.contains("no store is selected"), "{}", refused.stderr);
    lab.fwdlab(&["show", "results", "--full"]).expect(4);
}
