//! A Linux DUT: iptables, alternation, profiles.

use crate::program::run;
use crate::rack::Rack;
use crate::whole::{FIREWALL, recorded};
use fwdlab_results::store::Store;
use std::collections::BTreeMap;

/// Output of iptables-save, without packet counts and dates.
fn rules(rack: &Rack) -> String {
    rack.on(
        "dut",
        "for save in iptables-save ip6tables-save; do $save | sed '/^#/d; s/ *\\[.*//'; done",
    )
}

#[test]
fn iptables_rules_are_loaded_verified_and_restored() {
    let missing = std::process::Command::new("iptables").arg("-V").output().is_err();
    if missing {
        return fwdlab_testdata::skip("iptables is not installed");
    }
    let Some(rack) = Rack::build() else { return };
    // A machine without rules, and one with an administrator's rules.
    assert_eq!(rules(&rack), "");
    rack.write("x.toml", &with_iptables("\"none\", \"stateless\", \"stateful\""));
    expect_rules(&rack, &[None, Some("1"), Some("3")]);
    let own_rules = "iptables -N own && iptables -A own -j RETURN && ip6tables -P OUTPUT ACCEPT
               iptables -A FORWARD -s 192.0.2.1 -j own && iptables -P FORWARD DROP";
    rack.on("dut", own_rules);
    rack.write("x.toml", &with_iptables("\"stateless\""));
    expect_rules(&rack, &[Some("1")]);
}

#[test]
fn masqueraded_packets_count_as_forwarded() {
    let Some(rack) = Rack::build() else { return };
    let ruleset = include_str!("../../../../experiments/rulesets/masquerade.nft");
    rack.write("masquerade.nft", ruleset);
    let levels = "\"none\",
                  { label = \"masquerade\", firewall = \"masquerade.nft\", nat = \"source\" }";
    let text = FIREWALL.replace("\"none\", \"stateful\"", levels);
    rack.write("x.toml", &text.replace("blocks = 2", "blocks = 1"));
    let before = rack.state_of_the_dut();
    rack.fwdlab(&["run", "x.toml", "--no-calibration"]).carried_out();
    rack.expect_state_of_the_dut(&before);
    assert_eq!(recorded(&rack), [1, 1]);
    for run in rack.runs() {
        let total = run.trial.total;
        assert!(total.forwarded > 100 && total.lost() < total.offered as i64 / 2, "{total:?}");
    }
}

fn with_iptables(levels: &str) -> String {
    let text =
        FIREWALL.replace("\"none\", \"stateful\"", levels).replace("blocks = 2", "blocks = 1");
    let text = text.split("[compare]").next().expect("a part").to_owned();
    let lab = "lab = \"lab.toml\"";
    text.replace(lab, &format!("{lab}\n[dut]\nfirewall_program = \"iptables\""))
}

/// Runs the experiment; each variant must have had this number of rules, and none may remain.
fn expect_rules(rack: &Rack, expected: &[Option<&str>]) {
    let (before, state) = (rules(rack), rack.state_of_the_dut());
    rack.fwdlab(&["run", "x.toml", "--no-calibration", "--fresh"]).carried_out();
    assert_eq!(rules(rack), before);
    rack.expect_state_of_the_dut(&state);
    let runs = rack.runs();
    assert_eq!(runs.len(), expected.len());
    for run in &runs {
        let total = run.trial.total;
        assert!(total.forwarded > 100 && total.lost() < total.offered as i64 / 2, "{total:?}");
        for name in ["iptables rules", "ip6tables rules"] {
            let found = run.facts.get(name).map(String::as_str);
            assert_eq!(found, expected[run.variants[0]], "{:?}", run.facts);
        }
    }
}

#[test]
fn alternating_variants_share_one_stream_of_traffic() {
    let Some(rack) = Rack::build() else { return };
    let text = FIREWALL.replace("\"stateful\"", "\"stateless\"");
    let text = text.replace("blocks = 2", "blocks = 1\nalternate = \"1s\"\nsettle = \"600ms\"");
    rack.write("x.toml", &text.replace("duration = \"400ms\"", "duration = \"8s\""));
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--no-calibration"]).carried_out();
    rack.expect_state_of_the_dut(&before);
    let runs = rack.runs();
    assert_eq!(runs.len(), 1, "{}", ended.stderr);
    assert_eq!(runs[0].variants, [0, 1, 1, 0]);
    // Each slice belongs to one variant, and they alternate as A B B A or B A A B.
    let valid = || runs[0].trial.samples.iter().filter(|sample| sample.valid);
    let slices: BTreeMap<u32, usize> = valid().map(|s| (s.slice, s.variant)).collect();
    assert!(valid().all(|sample| slices[&sample.slice] == sample.variant));
    // A busy machine may spend a whole slice on the switch; that slice then has no sample.
    let first = |n: u32| [0, 1, 1, 0][n as usize];
    assert!(slices.range(..4).all(|(&n, &variant)| variant == first(n)), "of {slices:?}");
    let flipped = |n: u32| 1 - first(n);
    let second = || slices.range(4..8).map(|(&n, &variant)| (n - 4, variant));
    let is_one = second().all(|(n, v)| v == first(n)) || second().all(|(n, v)| v == flipped(n));
    assert!(is_one && slices.len() >= 4, "of {slices:?}");
    // A busy machine may leave a sample without packets, but not half of a variant's.
    for variant in 0..2 {
        let of_variant = || valid().filter(|sample| sample.variant == variant);
        let with_packets = of_variant().filter(|sample| sample.forwarded > 0).count();
        assert!(with_packets * 2 > of_variant().count(), "variant {variant}: {with_packets}");
    }
    let report = rack.report();
    assert!(report.contains("switched live within streams"), "{report}");
}

#[test]
fn profile_of_the_dut_is_stored_or_its_absence_remarked() {
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", &FIREWALL.replace("blocks = 2", "blocks = 1"));
    let before = rack.state_of_the_dut();
    let ended =
        rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration", "--profile"]).carried_out();
    rack.expect_state_of_the_dut(&before);
    assert_eq!(recorded(&rack), [1, 1]);
    let store = Store::open_read_only(&rack.path("results/x/run.sqlite")).expect("a store");
    let profiles = store.profiles().expect("profiles");
    eprintln!("{} {}", profiles.len(), ended.stderr);
    let left = run(&["sh", "-c", "ls /var/tmp/fwdlab-perf.data* 2>/dev/null || :"]);
    assert_eq!(left, "", "perf's file stays");
}
