//! Traffic with a flood of new flows: a simulated device of known truth, the software router in
//! memory, the kernel's connection tracking.

use crate::netns::results_as_root;
use crate::support::Lab;
use serde_json::Value;

/// Forwards a million packets per second of known flows; a packet of a new flow takes two and a
/// half times as long. Its table has room for 30,000.
const DEVICE: &str = "\
version = 1
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"1Mpps\"
ceiling = \"4Mpps\"
establishment = \"400kpps\"
states = 30000
noise = 0.0
jitter = 0.0
effect = { \"firewall=stateful\" = 1 }
[dut]
firewall = \"stateful\"
[traffic]
rate = \"100kpps\"
flows = { sources = 20, destinations = 100 }
[trial]
warmup = \"50ms\"
duration = \"100ms\"
[method]
kind = \"flood\"
max_load = \"800kpps\"
step = \"25%\"
[design]
blocks = 2
";

#[test]
fn flood_reduces_traffic_by_the_cost_of_new_flows() {
    let (json, report) = Lab::new(DEVICE).results(&["--no-calibration"]);
    let rows = json["method"]["flooded"].as_array().expect("rows");
    let floods: Vec<u64> = rows.iter().map(|row| row["flood"].as_u64().expect("a load")).collect();
    assert_eq!(floods, [0, 200_000, 400_000, 600_000, 800_000]);
    for (row, &flood) in rows.iter().zip(&floods) {
        let served = (1e6 / (1e5 + 2.5 * flood as f64)).min(1.0);
        let loss = row["loss"]["median"].as_f64().expect("a loss");
        assert!((loss - (1.0 - served)).abs() < 1e-3, "{row}");
        assert_eq!((&row["loss"]["n"], &row["load"]), (&2.into(), &100_000.into()), "{row}");
        // The traffic owns two thousand states; new flows that do not fit are dropped.
        let new = (served * flood as f64 / 10.0).min(28_000.0);
        let states = row["states"].as_f64().expect("states");
        assert!((states - 2000.0 - new).abs() < 20.0, "{row}");
        match row["passed"].as_f64() {
            Some(passed) => assert!((passed - 10.0 * new / flood as f64).abs() < 1e-3, "{row}"),
            None => assert_eq!(flood, 0, "{row}"),
        }
    }
    for expected in [
        "traffic at 100 kpps loses nothing during floods of up to 200 k new flows a second",
        "52.4 % (52.4 % to 52.4 %, n = 2) during 800 k new flows a second",
        "of which 35.0 % get through",
        "flood-all.svg",
        "## Floods of new flows",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
}

#[test]
fn new_flows_cost_no_more_without_states() {
    let plain = DEVICE.replace("effect = { \"firewall=stateful\" = 1 }\n", "");
    let (json, report) = Lab::new(&plain.replace("firewall = \"stateful\"", "firewall = \"none\""))
        .results(&["--no-calibration"]);
    let last = &json["method"]["flooded"][4];
    assert_eq!(last["loss"]["max"], 0.0, "900,000 of a million: {last}");
    assert_eq!((&last["passed"], &last["states"]), (&1.0.into(), &Value::Null), "{last}");
    assert!(report.contains("loses nothing during floods of up to 800 k new flows"), "{report}");
}

#[test]
fn set_ups_without_floods_are_refused_with_a_next_step() {
    let refused = |from: &str, to: &str, expected: &[&str]| {
        let output =
            Lab::new(&DEVICE.replace(from, to)).fwdlab(&["plan", "x.toml"]).expect(2).stderr;
        assert!(
            expected.iter().all(|expected| output.contains(expected)),
            "{expected:?} in {output}"
        );
    };
    refused("rate = \"100kpps\"\n", "", &["`flood` needs a load", "rate ="]);
    refused("max_load = \"800kpps\"\n", "", &["greatest load", "max_load ="]);
    refused("max_load", "max_trials = 3\nmax_load", &["`max_trials` has no effect"]);
    refused("800kpps", "200Mpps", &["more flows than can be told apart", "lower `max_load`"]);
    refused("[testbed]\n", "[testbed]\nengine = \"xdp\"\n", &["live frames", "\"xsk\""]);
    let lab = "kind = \"ssh\"\nlab = \"lab.toml\"\n";
    refused("kind = \"sim\"\n", lab, &["hosts of a laboratory", "\"netns\""]);
}

/// Counts of the traffic, and of the flood during it, trial by trial.
fn points(json: &Value) -> impl Iterator<Item = (&Value, [u64; 4])> {
    let runs = json["method"]["runs"].as_array().expect("runs").iter();
    runs.flat_map(|run| run["points"].as_array().expect("points")).map(|point| {
        let of = |value: &Value| value.as_u64().expect("a number");
        let packets = &point["flood"]["packets"];
        let counts = [&point["offered"], &point["forwarded"], &packets[0], &packets[1]];
        (point, counts.map(of))
    })
}

/// The router's table has room for two hundred: a hundred more than the traffic needs.
#[test]
fn memory_flood_is_counted_separately_from_the_traffic() {
    let experiment = "\
version = 1
[testbed]
kind = \"memory\"
[dut]
kind = \"router\"
firewall = \"stateful\"
state_limit = 200
[traffic]
rate = \"5kpps\"
flows = { sources = 10, destinations = 10 }
[trial]
warmup = \"100ms\"
duration = \"200ms\"
[method]
kind = \"flood\"
max_load = \"20kpps\"
step = \"50%\"
[design]
blocks = 1
";
    let lab = Lab::new(experiment);
    let (json, _) = lab.results(&["--no-calibration"]);
    let shown = lab.fwdlab(&["show", "results/x"]).carried_out().stdout;
    let answer = shown.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let has_answer = answer.contains("new flows") && answer.contains("get through.");
    assert!(has_answer && !answer.contains(".."), "{shown}");
    let mut trials = 0;
    for (point, [offered, forwarded, flood, passed]) in points(&json) {
        trials += 1;
        let load = point["flood"]["load"].as_u64().expect("a load");
        assert!(offered > 0 && forwarded <= offered, "{point}");
        assert_eq!(flood > 0, load > 0, "{point}");
        let rate = point["flood"]["pps"][0].as_f64().expect("a rate");
        assert!(rate <= load as f64 * 1.1, "no more than asked for: {point}");
        assert_eq!(passed > 0, load > 0, "{point}");
        // New and known flows compete for the places; all others are dropped.
        let states = point["flood"]["states"].as_u64().expect("the router tells");
        assert!(states <= 201 && passed <= states, "{point}");
    }
    assert_eq!(trials, 3);
}

/// In a full table of the kernel new flows replace others or find no place.
#[test]
fn full_kernel_table_costs_the_traffic_its_states() {
    let experiment = "\
version = 1
[testbed]
kind = \"netns\"
[dut]
firewall = \"stateful\"
[traffic]
rate = \"2kpps\"
flows = { sources = 10, destinations = 10 }
[trial]
warmup = \"100ms\"
duration = \"500ms\"
[method]
kind = \"flood\"
max_load = \"20kpps\"
step = \"50%\"
[design]
blocks = 1
[[factor]]
name = \"table\"
levels = [
  { label = \"small\", sysctl = { \"net.netfilter.nf_conntrack_max\" = \"500\" } },
  { label = \"large\", sysctl = { \"net.netfilter.nf_conntrack_max\" = \"100000\" } },
]
";
    let why = "a flood through a namespace needs root";
    let Some(json) = results_as_root(experiment, why) else { return };
    for (point, [offered, forwarded, flood, passed]) in points(&json) {
        assert!(offered > 0 && forwarded <= offered && passed <= flood, "{point}");
        let states = point["flood"]["states"].as_u64().expect("the kernel tells");
        let load = point["flood"]["load"].as_u64().expect("a load");
        assert_eq!(flood > 0, load > 0, "{point}");
        // New flows get a state or, without room, are mostly dropped.
        assert!(passed <= states + flood / 2, "{point}");
    }
    let row = |label: &str, flood: u64| {
        let rows = json["method"]["flooded"].as_array().expect("rows");
        let of_it = |row: &&Value| row["label"] == label && row["flood"] == flood;
        rows.iter().find(of_it).cloned().unwrap_or_else(|| panic!("{label} {flood} in {json}"))
    };
    let (small, large) = (row("small", 20_000), row("large", 20_000));
    assert!(small["states"].as_f64() < Some(600.0), "{small}");
    // Even the few flows of a busy machine exceed the other table.
    assert!(large["states"].as_f64() > Some(600.0), "{large}");
    let lost = |row: &Value| row["loss_at_most"].as_f64();
    match (lost(&small), lost(&large)) {
        (Some(small_lost), Some(large_lost)) => {
            assert!(small_lost > 0.02 && small_lost > large_lost, "{small} {large}");
            assert!(small["passed"].as_f64() < large["passed"].as_f64(), "{small} {large}");
        }
        _ => eprintln!("the machine was too busy: {small} {large}"),
    }
}
