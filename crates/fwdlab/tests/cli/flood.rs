//! Traffic beside a flood of new flows: a simulated device of known truth, the software router in
//! memory, the kernel's connection tracking.

use crate::netns::results_as_root;
use crate::support::Lab;
use serde_json::Value;

/// Forwards a million packets a second of known flows; one of a new flow takes it as long as two
/// and a half of these. Its table has room for 30,000.
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
fn a_flood_takes_as_much_of_the_traffic_as_its_flows_cost_the_device() {
    let (json, report) = Lab::new(DEVICE).results(&["--no-calibration"]);
    let rows = json["method"]["flooded"].as_array().expect("rows");
    let floods: Vec<u64> = rows.iter().map(|row| row["flood"].as_u64().expect("a load")).collect();
    assert_eq!(floods, [0, 200_000, 400_000, 600_000, 800_000]);
    for (row, &flood) in rows.iter().zip(&floods) {
        let served = (1e6 / (1e5 + 2.5 * flood as f64)).min(1.0);
        let loss = row["loss"]["median"].as_f64().expect("a loss");
        assert!((loss - (1.0 - served)).abs() < 1e-3, "{row}");
        assert_eq!((&row["loss"]["n"], &row["load"]), (&2.into(), &100_000.into()), "{row}");
        // Two thousand states are the traffic's, and what doesn't fit is not let through.
        let new = (served * flood as f64 / 10.0).min(28_000.0);
        let states = row["states"].as_f64().expect("states");
        assert!((states - 2000.0 - new).abs() < 20.0, "{row}");
        match row["passed"].as_f64() {
            Some(passed) => assert!((passed - 10.0 * new / flood as f64).abs() < 1e-3, "{row}"),
            None => assert_eq!(flood, 0, "{row}"),
        }
    }
    for wanted in [
        "traffic at 100 kpps loses nothing beside up to 200 k new flows a second",
        "52.4 % (52.4 % to 52.4 %, n = 2) beside 800 k new flows a second",
        "of which 35.0 % get through",
        "flood-all.svg",
        "## New flows beside the traffic",
    ] {
        assert!(report.contains(wanted), "{wanted} in {report}");
    }
}

#[test]
fn without_states_a_new_flow_costs_as_much_as_a_known_one() {
    let plain = DEVICE.replace("effect = { \"firewall=stateful\" = 1 }\n", "");
    let (json, report) = Lab::new(&plain.replace("firewall = \"stateful\"", "firewall = \"none\""))
        .results(&["--no-calibration"]);
    let last = &json["method"]["flooded"][4];
    assert_eq!(last["loss"]["max"], 0.0, "900,000 of a million: {last}");
    assert_eq!((&last["passed"], &last["states"]), (&1.0.into(), &Value::Null), "{last}");
    assert!(report.contains("loses nothing beside up to 800 k new flows"), "{report}");
}

#[test]
fn what_no_flood_can_be_asked_of_is_refused_with_the_way_out() {
    let refused = |from: &str, to: &str, wanted: &[&str]| {
        let said = Lab::new(&DEVICE.replace(from, to)).fwdlab(&["plan", "x.toml"]).expect(2).stderr;
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{wanted:?} in {said}");
    };
    refused("rate = \"100kpps\"\n", "", &["`flood` needs a load", "rate ="]);
    refused("max_load = \"800kpps\"\n", "", &["greatest load", "max_load ="]);
    refused("max_load", "max_trials = 3\nmax_load", &["`max_trials` has no effect"]);
    refused("800kpps", "200Mpps", &["more flows than can be told apart", "lower `max_load`"]);
    refused("[testbed]\n", "[testbed]\nengine = \"xdp\"\n", &["live frames", "\"xsk\""]);
    let lab = "kind = \"ssh\"\nlab = \"lab.toml\"\n";
    refused("kind = \"sim\"\n", lab, &["hosts of a laboratory", "\"netns\""]);
}

/// The traffic's own counts, and those of the flood beside it, trial by trial.
fn points(json: &Value) -> impl Iterator<Item = (&Value, [u64; 4])> {
    let runs = json["method"]["runs"].as_array().expect("runs").iter();
    runs.flat_map(|run| run["points"].as_array().expect("points")).map(|point| {
        let of = |value: &Value| value.as_u64().expect("a number");
        let packets = &point["flood"]["packets"];
        let counts = [&point["offered"], &point["forwarded"], &packets[0], &packets[1]];
        (point, counts.map(of))
    })
}

/// The router's table has room for two hundred: a hundred beside those of the traffic.
#[test]
fn a_flood_in_memory_is_counted_apart_from_the_traffic() {
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
    let (json, _) = Lab::new(experiment).results(&["--no-calibration"]);
    let mut trials = 0;
    for (point, [offered, forwarded, flood, passed]) in points(&json) {
        trials += 1;
        let load = point["flood"]["load"].as_u64().expect("a load");
        assert!(offered > 0 && forwarded <= offered, "{point}");
        assert_eq!(flood > 0, load > 0, "{point}");
        let rate = point["flood"]["pps"][0].as_f64().expect("a rate");
        assert!(rate <= load as f64 * 1.1, "no more than asked for: {point}");
        assert_eq!(passed > 0, load > 0, "{point}");
        // Whoever got a place first, new flow or known one, all others are turned away.
        let states = point["flood"]["states"].as_u64().expect("the router tells");
        assert!(states <= 201 && passed <= states, "{point}");
    }
    assert_eq!(trials, 3);
}

/// In a full table of the kernel new flows take others' places or find none.
#[test]
fn a_full_table_of_the_kernel_costs_the_traffic_its_states() {
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
        // What is new is remembered or, where there is no room, mostly not let through.
        assert!(passed <= states + flood / 2, "{point}");
    }
    let row = |label: &str, flood: u64| {
        let rows = json["method"]["flooded"].as_array().expect("rows");
        let of_it = |row: &&Value| row["label"] == label && row["flood"] == flood;
        rows.iter().find(of_it).cloned().unwrap_or_else(|| panic!("{label} {flood} in {json}"))
    };
    let (small, large) = (row("small", 20_000), row("large", 20_000));
    assert!(small["states"].as_f64() < Some(600.0), "{small}");
    // However few flows a busy machine sends: more than the other table can hold.
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
