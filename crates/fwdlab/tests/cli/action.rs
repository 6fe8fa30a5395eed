//! The script of the GitHub Action that counts two kernels, with a program in place of fwdlab.

use crate::support::Lab;
use std::path::Path;
use std::process::{Command, Stdio};

/// Counts of two kernels, in the shape of `fwdlab count --json`. Of two functions that differ,
/// one is the clock of the idle guest.
fn counts(difference: f64) -> String {
    format!(
        r#"{{
  "kernels": [
    {{ "kernel": "6.1.0-55", "instructions": 4000.0, "least": 3999.0, "most": 4001.0,
      "difference": null, "packets": 8000, "lost": 0 }},
    {{ "kernel": "6.1.0-56", "instructions": {}, "least": 3999.0, "most": 4001.0,
      "difference": {difference}, "packets": 8000, "lost": 0 }}
  ],
  "functions": [
    {{ "name": "ip_forward", "instructions": [100.0, {}], "differs": [false, true],
      "background": false }},
    {{ "name": "tick", "instructions": [1.0, 9.0], "differs": [false, true], "background": true }}
  ]
}}"#,
        4000.0 + difference,
        100.0 + difference
    )
}

/// The step's exit code, its summary and its outputs.
fn step(lab: &Lab, variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/action/count.sh");
    let path = std::env::var("PATH").unwrap_or_default();
    let [summary, output] = ["summary.md", "output"].map(|name| lab.path(name));
    lab.write("summary.md", "");
    lab.write("output", "");
    let mut command = Command::new("bash");
    command.arg(script).current_dir(lab.path(".")).stdin(Stdio::null());
    command.env("PATH", format!("{}:{path}", lab.path("bin").display()));
    command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_OUTPUT", &output);
    command.env("RUNNER_TEMP", lab.path("."));
    let inputs = [
        ("BASE", "a.deb"),
        ("PATCH", "b.deb"),
        ("FAIL_ON", "worse"),
        ("MARGIN", "2"),
        ("ARGUMENTS", ""),
    ];
    command.envs(inputs).envs(variables.iter().copied());
    let ended = command.output().expect("bash starts");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    (ended.status.code(), read(&summary), read(&output))
}

/// A directory with a program that prints these counts. `None` without jq, which the script runs.
fn lab(difference: f64, code: i32) -> Option<Lab> {
    if Command::new("jq").arg("--version").output().is_err() {
        fwdlab_testdata::skip("jq is not installed");
        return None;
    }
    let lab = Lab::new("");
    std::fs::create_dir(lab.path("bin")).expect("a directory");
    lab.write("counts.json", &counts(difference));
    let program = format!("#!/bin/sh\necho \"$@\" >arguments\ncat counts.json\nexit {code}\n");
    lab.write("bin/fwdlab", &program);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(lab.path("bin/fwdlab"), executable).expect("a mode");
    for kernel in ["a.deb", "b.deb"] {
        lab.write(kernel, "");
    }
    Some(lab)
}

#[test]
fn action_exit_code_follows_fail_on() {
    for (difference, verdict, [worse, different]) in
        [(200.0, "worse", [1, 1]), (-200.0, "better", [0, 1]), (40.0, "equivalent", [0, 0])]
    {
        let Some(lab) = lab(difference, 0) else { return };
        for (fail_on, code) in [("worse", worse), ("different", different), ("never", 0)] {
            let (ended, summary, output) = step(&lab, &[("FAIL_ON", fail_on)]);
            assert_eq!(ended, Some(code), "{fail_on} {difference}: {summary}");
            assert!(summary.starts_with(&format!("## Forwarding: {verdict}\n")), "{summary}");
            assert!(output.starts_with(&format!("verdict={verdict}\n")), "{output}");
        }
    }
}

#[test]
fn action_summary_contains_kernels_and_functions() {
    let Some(lab) = lab(200.0, 0) else { return };
    let (_, summary, output) = step(&lab, &[("ARGUMENTS", "--flows 100")]);
    assert!(summary.contains("+200 instructions a packet (+5 %), margin 2 %"), "{summary}");
    assert!(summary.contains("| 6.1.0-56 | 4200 | 3999 to 4001 | 8000 | 0 |"), "{summary}");
    assert!(summary.contains("| `ip_forward` | 100 | 300 | +200 |"), "{summary}");
    assert!(!summary.contains("tick"), "{summary}");
    assert!(output.contains("\ndifference=200"), "{output}");
    let arguments = std::fs::read_to_string(lab.path("arguments")).expect("a file");
    assert_eq!(arguments, "count a.deb b.deb --flows 100 --json\n");
}

#[test]
fn action_reports_what_was_not_counted() {
    let Some(lab) = lab(0.0, 3) else { return };
    let (code, summary, _) = step(&lab, &[]);
    assert_eq!(code, Some(3), "{summary}");
    assert!(summary.contains("Nothing was counted: fwdlab ended with exit code 3."), "{summary}");
    for mistake in [("FAIL_ON", "bad"), ("MARGIN", "2%"), ("PATCH", "missing.deb")] {
        assert_eq!(step(&lab, &[mistake]).0, Some(2), "{mistake:?}");
    }
}

#[test]
fn action_inputs_reach_the_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
    let (action, script) = (read("action.yml"), read("scripts/action/count.sh"));
    assert!(action.contains("scripts/action/count.sh"));
    for variable in ["BASE", "PATCH", "FAIL_ON", "MARGIN", "ARGUMENTS"] {
        let input = variable.to_lowercase().replace('_', "-");
        let passed = format!("{variable}: ${{{{ inputs.{input} }}}}");
        assert!(action.contains(&passed), "{passed}");
        assert!(script.contains(&format!("${variable}")), "{variable}");
    }
}
