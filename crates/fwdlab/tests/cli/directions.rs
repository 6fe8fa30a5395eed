//! Bidirectional traffic: a simulated device whose directions differ, the software router in
//! memory, and set-ups that cannot send both ways.

use crate::support::{Lab, is_root, machine};
use serde_json::Value;

/// Forwards a million packets per second one way, and half as many the other.
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

/// Runs an experiment; returns its `results.json`, and its report with details.
fn results(experiment: &str) -> (Value, String) {
    let lab = Lab::new(experiment);
    let (json, page) = lab.results(&["--no-calibration"]);
    // There are no details if everything fits on one page.
    let details = std::fs::read_to_string(lab.path("results/x/DETAILS.md"));
    (json, page + &details.unwrap_or_default())
}

#[test]
fn report_shows_the_sum_and_each_direction() {
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
    for expected in [
        "both directions",
        "the sum of both",
        "receiver to sender",
        "37.50 %",
        "in 2 of 2 runs, 18.75 %",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
}

/// Forwarded packets arrive at both ends, intact and once.
#[test]
fn memory_router_forwards_both_directions() {
    for (family, firewall, rate) in
        [("inet", "none", "max"), ("inet6", "none", "20kpps"), ("inet", "stateful", "20kpps")]
    {
        let (json, report) = results(&format!(
            "version = 1\n[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n\
             firewall = \"{firewall}\"\n[traffic]\nfamily = \"{family}\"\nrate = \"{rate}\"\n\
             directions = \"both\"\n[trial]\nwarmup = \"100ms\"\nduration = \"1s\"\n\
             [design]\nblocks = 1\n"
        ));
        let rows = json["directions"].as_array().expect("rows");
        assert_eq!(rows.len(), 2, "{json}");
        for row in rows {
            assert!(row["forwarded_pps"].as_f64() > Some(1000.0), "{family} {firewall}: {row}");
            assert_eq!((&row["damaged"], &row["duplicates"]), (&0.into(), &0.into()), "{row}");
            // The loss depends on the machine: threads share its CPUs with other tests.
        }
        let offered = rows.iter().filter_map(|row| row["offered_pps"].as_f64());
        let (lowest, highest) = offered.fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(n), b.max(n)));
        assert!(highest - lowest <= 0.01 * highest, "each gets as much: {lowest} and {highest}");
        assert!(!report.contains("counters disagree"), "{report}");
    }
}

/// Results of each direction in the trials of a method, as (place, direction, loss).
fn in_trials(json: &Value) -> Vec<(String, String, f64)> {
    let rows = json["method"]["directions"].as_array().expect("rows").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    rows.map(|row| {
        // Without a valid trial there is no loss, and no comparison with it holds.
        let loss = row["loss_ratio"].as_f64().unwrap_or(f64::NAN);
        (text(&row["at"]), text(&row["direction"]), loss)
    })
    .collect()
}

/// A device that forwards half as much the other way: that direction limits a method, and the
/// report names it.
#[test]
fn methods_report_each_direction_and_the_sum() {
    let method = |written: &str| {
        let text = DEVICE.replace("[design]\n", &format!("[method]\n{written}\n[design]\n"));
        results(&text.replace("reverse = 0.5", "reverse = 0.5\nlink_speed = \"1Gbit/s\""))
    };
    let (json, report) = method("kind = \"mlrsearch\"\ngoals = [\"ndr\"]");
    let found = &json["method"]["searched"][0];
    let median = found["throughput"]["median"].as_f64().expect("a rate");
    assert!((median / 1e6 - 1.0).abs() < 0.01, "half of it each way: {found}");
    // 1 Gbit/s takes 1.488 Mpps of 64 bytes each way.
    let share = found["of_line"].as_f64().expect("a share");
    assert!((share / (1e6 / 2.976_190e6) - 1.0).abs() < 0.01, "{found}");
    let rows = in_trials(&json);
    for (at, direction, loss) in &rows {
        let loses = at == "ndr, upper bound" && direction == "receiver to sender";
        assert_eq!(*loss > 0.0, loses, "{rows:?}");
    }
    assert_eq!(rows.len(), 4, "{rows:?}");
    let of_line = format!("{:.1} % of line rate", 100.0 * share);
    for expected in ["### Each direction", &of_line, "line rate 1 Gbit/s"] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    let (json, _) = method("kind = \"loss-curve\"\nstep = \"20%\"\nmax_load = \"1Mpps\"");
    let rows = in_trials(&json);
    let of =
        |at: &str| -> Vec<f64> { rows.iter().filter(|row| row.0 == at).map(|row| row.2).collect() };
    assert_eq!(of("lossless up to"), [0.0, 0.0], "{rows:?}");
    assert!(of("greatest load")[0] == 0.0 && (of("greatest load")[1] - 0.5).abs() < 1e-3);
    let soak = DEVICE.replace("directions =", "rate = \"800kpps\"\ndirections =");
    let soak = soak.replace("[design]\n", "[method]\nkind = \"soak\"\nmax_trials = 3\n[design]\n");
    let rows = in_trials(&results(&soak).0);
    assert!(rows[0].2 == 0.0 && (rows[1].2 - 0.375).abs() < 1e-3 && rows.len() == 2, "{rows:?}");
}

/// A link limits the load, and a device that forwards all of it is reported as limited by the link.
#[test]
fn report_names_runs_at_line_rate() {
    let link = "reverse = 1.0\nlink_speed = \"1Gbit/s\"";
    let fast = DEVICE.replace("capacity = \"1Mpps\"", "capacity = \"3Mpps\"");
    let (json, report) = results(&fast.replace("reverse = 0.5", link));
    let value = json["variants"][0]["values"][0].as_f64().expect("a rate");
    assert!((value / 2.976_190e6 - 1.0).abs() < 1e-3, "{value}");
    for expected in ["of line rate", "100.00 %", "at line rate (2.98 Mpps)"] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
}

/// The kernel's forwarding, and a shaper that lets less through from the receiver's side: in curve
/// and soak the reverse direction loses, by a known share.
#[test]
fn every_method_attributes_loss_to_its_direction() {
    if !is_root("namespaces of this machine need root") {
        return;
    }
    let _alone = machine();
    let shaper = "table inet shaper {\n chain forward {\n  type filter hook forward priority 0; \
                  policy accept;\n  iifname \"d1\" limit rate over 2000/second burst 100 packets \
                  drop\n }\n}\n";
    let base = "version = 1\n[testbed]\nkind = \"netns\"\n[dut]\nfirewall = \"x.nft\"\n[traffic]\n\
                directions = \"both\"\nflows = { sources = 2, destinations = 2 }\nrate = \"RATE\"\n\
                [trial]\nwarmup = \"200ms\"\nduration = \"500ms\"\n[design]\nblocks = 1\n[method]\n";
    let measured = |rate: &str, method: &str| {
        let lab = Lab::new(&format!("{}{method}", base.replace("RATE", rate)));
        lab.write("x.nft", shaper);
        lab.fwdlab(&["run", "x.toml", "--no-calibration", "--quiet"]).carried_out();
        let text = std::fs::read_to_string(lab.path("results/x/results.json")).expect("results");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let json = measured("4kpps", "kind = \"soak\"\nmax_trials = 3\n");
    let rows = in_trials(&json);
    let [(_, _, forth), (_, _, back)] = rows.as_slice() else { panic!("{json}") };
    // A busy machine also loses packets, in both directions.
    let is_unknown = back.is_nan() || forth.is_nan();
    assert!(is_unknown || (*back > 0.25 && back > forth && *back < 0.75), "{rows:?}");
    let json = measured("max", "kind = \"loss-curve\"\nstep = \"50%\"\nmax_load = \"8kpps\"\n");
    let rows = in_trials(&json);
    let [(at, _, forth), (_, _, back), ..] = rows.as_slice() else { panic!("{json}") };
    assert_eq!(at, "greatest load");
    // A sender short of CPU time offers the same packets in more time, so the shaper lets more of
    // them through.
    let is_unknown = back.is_nan() || forth.is_nan();
    assert!(is_unknown || (*back > 0.1 && back > forth), "{rows:?}");
    let goal = "kind = \"mlrsearch\"\nmin_load = \"500pps\"\nmax_load = \"8kpps\"\nmax_trials = 40\n\
                [[method.goal]]\nname = \"tenth\"\nloss_ratio = 0.1\nexceed_ratio = 0.5\ninitial_trial \
                = \"500ms\"\nfinal_trial = \"500ms\"\nduration_sum = \"1s\"\nwidth = \"10%\"\n";
    let json = measured("max", goal);
    let found = &json["method"]["searched"][0];
    for point in json["method"]["runs"][0]["points"].as_array().expect("trials") {
        let reverse = point["reverse"]["offered"].as_u64().expect("the reverse direction's");
        let all = point["offered"].as_u64().expect("packets");
        assert!(reverse > 0 && reverse < all, "{point}");
    }
    match found["throughput"]["median"].as_f64() {
        // A fifth of the reverse direction's load is a tenth of both: 2500 each way, less that.
        Some(median) => assert!((median / 4500.0 - 1.0).abs() < 0.25, "{found}"),
        // On a busy machine no trial may be valid: the report gives the reason.
        None => assert!(found["irregular"][0].as_str().is_some_and(|why| !why.is_empty())),
    }
}

#[test]
fn unidirectional_set_ups_refuse_both_directions_with_a_next_step() {
    let refused = |from: &str, to: &str, expected: &[&str]| {
        let output =
            Lab::new(&DEVICE.replace(from, to)).fwdlab(&["plan", "x.toml"]).expect(2).stderr;
        assert!(
            expected.iter().all(|expected| output.contains(expected)),
            "{expected:?} in {output}"
        );
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
    // One variant is enough: packets that it cannot send would be missing silently.
    let levels = "[[factor]]\nname = \"engine\"\nlevels = [\"xsk\", \"xdp\"]\n[design]\n";
    refused("[design]\n", levels, &["`directions`", "live frames"]);
    refused(
        "kind = \"sim\"\n",
        "kind = \"ssh\"\nlab = \"lab.toml\"\n",
        &["`directions`", "\"netns\" or \"memory\""],
    );
}
