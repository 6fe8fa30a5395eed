//! The script of the GitHub Action that counts two kernels, with a stand-in for fwdlab.

use crate::support::Lab;
use std::path::Path;
use std::process::{Command, Stdio};

/// Counts of two kernels, in the format of `fwdlab count --json`.
fn counts(difference: f64) -> String {
    let (verdict, within_margin) = match difference {
        d if d.abs() <= 80.0 => ("more", true),
        d if d < 0.0 => ("fewer", false),
        _ => ("more", false),
    };
    format!(
        r#"{{
  "kernels": [
    {{ "kernel": "6.1.0-55", "instructions": 4000.0, "least": 3999.0, "most": 4001.0,
      "packets": 8000, "lost": 0 }},
    {{ "kernel": "6.1.0-56", "instructions": {}, "least": 3999.0, "most": 4001.0,
      "packets": 8000, "lost": 0 }}
  ],
  "comparisons": [{{ "outcome": {{ "counted": {{
    "difference": {difference}, "change": {}, "verdict": "{verdict}",
    "within_margin": {within_margin}, "shown": "as it is",
    "functions": {{ "differing": [
      {{ "name": "ip_forward", "before": 100.0, "after": {}, "difference": {difference} }}
    ] }}
  }} }} }}]
}}"#,
        4000.0 + difference,
        difference / 4000.0,
        100.0 + difference
    )
}

/// Runs the step; returns its exit code, summary and outputs.
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

/// A directory with a program that prints these counts. `None` without jq, which the script needs.
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
fn action_exit_code_is_the_exit_code_of_count() {
    for (difference, verdict) in [(200.0, "worse"), (-200.0, "better"), (40.0, "equivalent")] {
        for code in [0, 1, 4] {
            let Some(lab) = lab(difference, code) else { return };
            let (ended, summary, output) = step(&lab, &[]);
            assert_eq!(ended, Some(code), "{difference}: {summary}");
            assert!(summary.starts_with(&format!("## Forwarding: {verdict}\n")), "{summary}");
            assert!(output.starts_with(&format!("verdict={verdict}\n")), "{output}");
        }
    }
}

#[test]
fn action_summary_contains_kernels_and_functions() {
    let Some(lab) = lab(200.0, 0) else { return };
    let (_, summary, output) = step(&lab, &[("ARGUMENTS", "--flows 100")]);
    let first = "+200 instructions per packet (+5 %), margin 2 %: as it is.";
    assert!(summary.contains(first), "{summary}");
    assert!(summary.contains("| 6.1.0-56 | 4200 | 3999 to 4001 | 8000 | 0 |"), "{summary}");
    assert!(summary.contains("| `ip_forward` | 100 | 300 | +200 |"), "{summary}");
    assert!(output.contains("\ndifference=200"), "{output}");
    let arguments = std::fs::read_to_string(lab.path("arguments")).expect("a file");
    let expected = "count a.deb b.deb --flows 100 --margin 2% --fail-on worse --json\n";
    assert_eq!(arguments, expected);
    let Some(lab) = self::lab(200.0, 0) else { return };
    step(&lab, &[("FAIL_ON", "never")]);
    let arguments = std::fs::read_to_string(lab.path("arguments")).expect("a file");
    assert_eq!(arguments, "count a.deb b.deb --margin 2% --json\n");
}

#[test]
fn action_reports_what_was_not_counted() {
    let Some(lab) = lab(0.0, 3) else { return };
    lab.write("counts.json", "");
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
