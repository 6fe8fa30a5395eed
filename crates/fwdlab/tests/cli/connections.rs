//! Connections established, torn down and held (RFC 9693), by a simulated device of known rates.

use crate::support::Lab;
use serde_json::Value;

/// Establishes 300,000 connections per second, tears down two million, holds 60,000.
const DEVICE: &str = "\
version = 1
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"1Mpps\"
ceiling = \"4Mpps\"
establishment = \"300kpps\"
tear_down = \"2Mpps\"
states = 60000
noise = 0.0
jitter = 0.0
effect = { \"firewall=stateful\" = 1 }
[dut]
firewall = \"stateful\"
[design]
blocks = 2
";

fn lab(flows: &str, method: &str) -> Lab {
    Lab::new(&format!("{DEVICE}[traffic]\nflows = {{ {flows} }}\n[method]\n{method}"))
}

#[test]
fn suite_finds_connection_rates_and_table_size() {
    let lab = lab("sources = 500, destinations = 100", "kind = \"rfc9693\"\nrepeats = 3\n");
    let (json, report) = lab.results(&[]);
    let parts = &json["method"]["parts"];
    let found = &parts[0]["searched"][0];
    let rate = found["throughput"]["median"].as_f64().expect("a rate");
    assert!((rate / 300e3 - 1.0).abs() < 0.01, "{found}");
    assert_eq!(found["bits"], Value::Null, "connections have no size on the link");
    let removed = &parts[1]["torn_down"][0];
    let rate = removed["rate"]["median"].as_f64().expect("a rate");
    assert!((rate / 2e6 - 1.0).abs() < 1e-3, "without what an empty table takes: {removed}");
    assert_eq!(removed["rate"]["n"], 6, "{removed}");
    assert_eq!(removed["empty_s"], 0.002, "{removed}");
    let held = &parts[2]["held"][0];
    assert_eq!((&held["connections"]["min"], &held["at_least"]), (&50_000.0.into(), &6.into()));
    for expected in [
        "299 k connections a second are set up, ndr (n = 2",
        "2.00 M connections a second are removed, of a table of 50000 (median of 6)",
        "the table holds at least 50000 connections",
        "## RFC 9693",
        "establishment-all.svg",
        "filled-all.svg",
        "connections-all.svg",
    ] {
        assert!(report.contains(expected), "no {expected:?} in {report}");
    }
}

#[test]
fn capacity_test_measures_a_small_table() {
    let lab = lab("sources = 1000, destinations = 100", "kind = \"table-capacity\"\nrepeats = 2\n");
    let (json, report) = lab.results(&[]);
    let held = &json["method"]["held"][0];
    let median = held["connections"]["median"].as_f64().expect("a number");
    assert!((59_940.0..=60_000.0).contains(&median), "within a thousandth: {held}");
    assert_eq!((&held["at_least"], &held["most_states"]), (&0.into(), &60_000.into()));
    assert!(report.contains("connections-all.svg"), "{report}");
}

#[test]
fn rate_tests_report_no_rate_for_a_small_table() {
    let method = "kind = \"establishment-rate\"\n";
    let lab = lab("sources = 1000, destinations = 100", method);
    let (json, report) = lab.results(&[]);
    assert_eq!(json["method"]["searched"][0]["throughput"], Value::Null);
    assert!(report.contains("no regular result"), "{report}");
}

#[test]
fn connection_tests_refuse_stateless_devices_and_few_flows() {
    let refused = |lab: &Lab, what: &str| {
        let output = lab.fwdlab(&["plan", "x.toml"]).expect(2).stderr;
        assert!(output.contains(what), "no {what:?} in {output}");
    };
    let few = lab("sources = 9, destinations = 100", "kind = \"rfc9693\"\n");
    refused(&few, "900 flows: a trial that opens as many connections is over in a moment");
    let text = DEVICE.replace("firewall = \"stateful\"\n", "firewall = \"stateless\"\n");
    let without = Lab::new(&format!("{text}[method]\nkind = \"tear-down-rate\"\n"));
    refused(&without, "firewall \"stateless\" keeps no connections");
    let mixed =
        lab("sources = 500, destinations = 100", "kind = \"rfc9693\"\ntests = [\"throughput\"]\n");
    refused(&mixed, "`throughput` is a test of the suite `rfc2544`");
}
