//! Complete experiments.

use crate::rack::Rack;
use fwdlab_results::store::Store;

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

/// Number of recorded runs of each variant of the experiment `x`. A run whose sender fell short, as
/// happens on a busy machine, is recorded and has no value.
pub(crate) fn recorded(rack: &Rack) -> Vec<usize> {
    let store = Store::open_read_only(&rack.path("results/x/run.sqlite")).expect("a store");
    let (plan, runs) = (store.plan().expect("a plan"), rack.runs());
    let of = |variant: usize| runs.iter().filter(|run| run.variants.contains(&variant)).count();
    (0..plan.variants.len()).map(of).collect()
}

#[test]
fn experiment_over_ssh_restores_the_dut() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", FIREWALL);
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration"]).carried_out();
    assert_eq!(recorded(&rack), [2, 2], "{}", ended.stderr);
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

#[test]
fn revision_and_overlay_are_installed_booted_and_verified() {
    let Some(rack) = Rack::build() else { return };
    std::fs::create_dir_all(rack.path("overlay/srv")).expect("a directory");
    rack.write("overlay/srv/setting", "of the experiment\n");
    rack.write("dut.srv/setting", "of the machine\n");
    rack.write(
        "x.toml",
        r#"
version = 1
title = "Two revisions"
[testbed]
kind = "ssh"
lab = "lab.toml"
[dut]
overlay = "overlay"
verify = "cat /srv/revision"
[[factor]]
name = "revision"
levels = [
  { label = "old", install = ["sh -c 'echo r1 >/srv/revision'"], expect = "r1" },
  { label = "new", install = ["sh -c 'echo r2 >/srv/revision'"], expect = "r2" },
]
[traffic]
rate = "5kpps"
flows = { sources = 2, destinations = 2 }
[trial]
warmup = "100ms"
duration = "300ms"
[design]
blocks = 2
"#,
    );
    rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration"]).carried_out();
    assert_eq!(recorded(&rack), [2, 2]);
    let boots = rack.boots().lines().count();
    assert!((2..=4).contains(&boots), "{boots} boots for two revisions in four runs");
    let setting = std::fs::read_to_string(rack.path("dut.srv/setting")).expect("a file");
    assert_eq!(setting, "of the machine\n", "the overlay is lifted at the end");
    let revision = std::fs::read_to_string(rack.path("dut.srv/revision")).expect("a file");
    assert!(["r1\n", "r2\n"].contains(&revision.as_str()), "revisions stay: {revision}");
}

#[test]
fn ceiling_is_counted_by_the_interface_of_the_dut() {
    let Some(rack) = Rack::build() else { return };
    let text = FIREWALL.replace("\"20kpps\"", "\"1%\"");
    let text = text.replace("[traffic]", "[traffic]\nfamily = \"inet6\"\nframe_size = 84");
    rack.write("x.toml", &text.replace("blocks = 2", "blocks = 1"));
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--json"]).carried_out();
    assert!(ended.stderr.contains("ceiling"), "{}", ended.stderr);
    assert_eq!(recorded(&rack), [1, 1]);
    rack.expect_state_of_the_dut(&before);
}
