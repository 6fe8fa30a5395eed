//! Traffic in both directions at once: a simulated device whose directions differ, the software
//! router in memory, and what can't send both ways.

use crate::support::Lab;
use serde_json::Value;

/// Forwards a million packets a second one way, and half of that the other.
const DEVICE: &str = "\
version = 1
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"1Mpps\"
reverse = 0.5
ceiling = \"4Mpps\"
noise = 0.0
jitter = 0.0
[traffic]
directions = \"both\"
[trial]
warmup = \"50ms\"
duration = \"100ms\"
[design]
blocks = 2
";

/// `results.json` of an experiment that was carried out, and its report with details.
fn results(experiment: &str) -> (Value, String) {
    let lab = Lab::new(experiment);
    lab.fwdlab(&["run", "x.toml", "--no-calibration", "--quiet"]).carried_out();
    let read = |name: &str| std::fs::read_to_string(lab.path(name)).expect("written");
    let json = serde_json::from_str(&read("results/x/results.json")).expect("JSON");
    let pages = ["results/x/README.md", "results/x/DETAILS.md"].map(|name| lab.path(name));
    let text = pages.iter().flat_map(std::fs::read_to_string).collect();
    (json, text)
}

#[test]
fn a_report_shows_the_sum_and_each_direction_by_itself() {
    let (json, report) = results(&DEVICE.replace("directions", "rate = \"800kpps\"\ndirections"));
    let rows = json["directions"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["direction"].as_str()).collect();
    assert_eq!(names, ["sender to receiver", "receiver to sender"]);
    let near = |value: &Value, expected: f64| {
        let found = value.as_f64().expect("a number");
        assert!(
            (found - expected).abs() <= expected * 1e-3,
            "{found}, {expected} expected: {json}"
        );
    };
    for (row, forwarded, loss) in [(&rows[0], 800e3, 0.0), (&rows[1], 500e3, 0.375)] {
        near(&row["offered_pps"], 800e3);
        near(&row["forwarded_pps"], forwarded);
        near(&row["loss_ratio"], loss);
    }
    for wanted in [
        "both directions",
        "the sum of both",
        "receiver to sender",
        "37.50 %",
        "in 2 of 2 runs, 18.75 %",
    ] {
        assert!(report.contains(wanted), "{wanted} in {report}");
    }
}

/// What the router forwards arrives at both ends, intact and once.
#[test]
fn both_directions_pass_the_router_in_memory() {
    for (family, firewall, rate) in
        [("inet", "none", "max"), ("inet6", "none", "20kpps"), ("inet", "stateful", "20kpps")]
    {
        let (json, report) = results(&format!(
            "version = 1\n[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n\
             firewall = \"{firewall}\"\n[traffic]\nfamily = \"{family}\"\nrate = \"{rate}\"\n\
             directions = \"both\"\n[trial]\nwarmup = \"100ms\"\nduration = \"200ms\"\n\
             [design]\nblocks = 1\n"
        ));
        let rows = json["directions"].as_array().expect("rows");
        assert_eq!(rows.len(), 2, "{json}");
        for row in rows {
            assert!(row["forwarded_pps"].as_f64() > Some(1000.0), "{family} {firewall}: {row}");
            assert_eq!((&row["damaged"], &row["duplicates"]), (&0.into(), &0.into()), "{row}");
            // How much is lost is the machine's: threads share its CPUs with other tests.
        }
        let offered = rows.iter().filter_map(|row| row["offered_pps"].as_f64());
        let (least, most) = offered.fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(n), b.max(n)));
        assert!(most - least <= 0.01 * most, "each gets as much: {least} and {most}");
        assert!(!report.contains("counters disagree"), "{report}");
    }
}

#[test]
fn what_can_t_send_both_ways_is_refused_with_the_way_out() {
    let refused = |from: &str, to: &str, wanted: &[&str]| {
        let said = Lab::new(&DEVICE.replace(from, to)).fwdlab(&["plan", "x.toml"]).expect(2).stderr;
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{wanted:?} in {said}");
    };
    for kind in ["back-to-back", "system-recovery", "reset", "latency"] {
        let written = format!("[method]\nkind = \"{kind}\"\n[design]\n");
        refused(
            "[design]\n",
            &written,
            &[&format!("`{kind}` sends in one direction"), "`directions`"],
        );
    }
    let suite = "[method]\nkind = \"rfc2544\"\n[design]\n";
    refused("[design]\n", suite, &["tests = [\"throughput\", \"frame-loss-rate\"]"]);
    let some =
        "[method]\nkind = \"rfc2544\"\ntests = [\"throughput\", \"frame-loss-rate\"]\n[design]\n";
    Lab::new(&DEVICE.replace("[design]\n", some)).fwdlab(&["plan", "x.toml"]).expect(0);
    refused("kind = \"sim\"\n", "kind = \"vm\"\n", &["`directions`", "\"netns\" or \"memory\""]);
    refused("[testbed]\n", "[testbed]\nengine = \"xdp\"\n", &["live frames", "\"xsk\""]);
}
