//! Whole experiments.

use crate::rack::Rack;
use serde_json::Value;

pub(crate) const FIREWALL: &str = r#"
version = 1
title = "What a firewall costs in a laboratory"
[testbed]
kind = "ssh"
lab = "lab.toml"
[[factor]]
name = "firewall"
levels = ["none", "stateful"]
[traffic]
rate = "20kpps"
flows = { sources = 4, destinations = 5 }
[trial]
warmup = "100ms"
duration = "400ms"
drain = "400ms"
[design]
blocks = 2
[compare]
baseline = { firewall = "none" }
"#;

/// Values of each variant that `show --json` printed.
pub(crate) fn values(shown: &str) -> Vec<usize> {
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    let variants = shown["variants"].as_array().expect("variants");
    variants.iter().map(|v| v["values"].as_array().expect("values").len()).collect()
}

#[test]
fn an_experiment_runs_over_ssh_and_leaves_the_dut_as_it_was() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", FIREWALL);
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration"]).expect(0);
    assert_eq!(values(&ended.stdout), [2, 2], "{}", ended.stderr);
    assert!(rack.path("results/x/README.md").exists());
    let report = std::fs::read_to_string(rack.path("results/x/README.md")).expect("a report");
    assert!(!report.contains("can't be trusted"), "{report}");
    rack.expect_state_of_the_dut(&before);
    assert!(!report.contains("packets arrived of"), "{report}");
    for host in crate::rack::HOSTS {
        let left = rack.inside(host, "ls -A /run");
        assert!(!left.contains("fwdlab"), "{host}: {left}");
    }
}
