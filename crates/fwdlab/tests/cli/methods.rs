//! Bursts, overloads, resets and the suite of RFC 2544, on simulated devices.

use crate::support::Lab;
use serde_json::Value;

/// A device that forwards at most a quarter of its sender's maximum load, and buffers 512 packets.
const DEVICE: &str = "\
version = 1
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"1Mpps\"
ceiling = \"4Mpps\"
buffer = 512
noise = 0.0
jitter = 0.0
[design]
blocks = 2
";

#[test]
fn longest_burst_is_limited_by_the_buffer() {
    let lab = Lab::new(&format!("{DEVICE}[method]\nkind = \"back-to-back\"\nrepeats = 5\n"));
    let (json, _) = lab.results(&[]);
    let found = &json["method"]["bursts"][0];
    // A quarter of the burst leaves while it arrives: 512 / (1 - 1/4) frames.
    assert_eq!(found["frames"]["min"], 682.0, "{found}");
    assert_eq!((&found["frames"]["max"], &found["frames"]["n"]), (&682.0.into(), &10.into()));
    // RFC 9004: 682 frames at 4 Mpps, less the quarter that leaves during that time.
    let corrected = found["corrected_s"].as_f64().expect("a time");
    assert!((corrected - 128e-6).abs() < 1e-6, "{found}");
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    assert!(report.contains("all: bursts of 682 frames lose nothing"), "{report}");
    assert!(report.contains("bursts-all.svg"), "{report}");
}

#[test]
fn burst_test_reports_a_device_without_a_limit() {
    let fast = DEVICE.replace("capacity = \"1Mpps\"", "capacity = \"5Mpps\"");
    let method = "[method]\nkind = \"back-to-back\"\nrepeats = 2\nmax_frames = 1000\n";
    let lab = Lab::new(&format!("{fast}{method}"));
    let (json, _) = lab.results(&[]);
    let found = &json["method"]["bursts"][0];
    assert_eq!((&found["frames"]["max"], &found["at_least"]), (&1000.0.into(), &4.into()));
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    assert!(report.contains("bursts of at least 1000 frames"), "{report}");
}

#[test]
fn suite_measures_every_frame_size_and_names_deviations() {
    let method = "[method]\nkind = \"rfc2544\"\nrepeats = 3\n";
    let sizes = "[[factor]]\nname = \"frame_size\"\nlevels = [64, 1518]\n";
    let lab = Lab::new(&format!("{DEVICE}{method}{sizes}"));
    let (json, _) = lab.results(&[]);
    let rows = json["method"]["suite"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for (row, size) in rows.iter().zip([64.0, 1518.0]) {
        let pps = row["throughput"].as_f64().expect("a rate");
        assert!((pps / 1e6 - 1.0).abs() < 0.01, "{row}");
        // Numbers have eight digits.
        for (bits, bytes) in [(&row["bits"][0], size + 20.0), (&row["bits"][1], size)] {
            let ratio = bits.as_f64().expect("a rate") / (pps * bytes * 8.0);
            assert!((ratio - 1.0).abs() < 1e-7, "{row}");
        }
        assert_eq!((&row["burst"], &row["recovery_s"]), (&682.0.into(), &0.0.into()), "{row}");
        assert_eq!(row["loss"], 0.75, "at the maximum offered load: {row}");
        assert_eq!(row["reset_s"], Value::Null, "a law can't be reset: {row}");
    }
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    for expected in [
        "## RFC 2544",
        "Deviations from RFC 2544",
        "without 128, 256, 512, 1024, 1280 bytes",
        "searched 3 times instead of 50",
        "can't be reset while it meets traffic",
        "64: throughput",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    assert!(!report.contains("Throughput (24"), "trials of 60 s are the RFC's: {report}");
}

#[test]
fn unsupported_methods_are_refused_with_a_next_step() {
    let refused = |text: &str| {
        let ended = Lab::new(text).fwdlab(&["plan", "x.toml"]).expect(2);
        ended.stderr
    };
    let memory = "version = 1\n[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n";
    let message = refused(&format!("{memory}[method]\nkind = \"back-to-back\"\n"));
    assert!(message.contains("waits for free slots") && message.contains("netns"), "{message}");
    let message = refused("version = 1\n[method]\nkind = \"rfc2544\"\ntests = []\n");
    assert!(message.contains("a suite without a test"), "{message}");
    let message = refused("version = 1\n[method]\nkind = \"reset\"\nstep = \"5%\"\n");
    assert!(message.contains("`step` has no effect"), "{message}");
}

#[test]
fn latency_at_shares_of_the_rate_follows_the_queue() {
    let levels = "[[factor]]\nname = \"family\"\nlevels = [\"inet\", \"inet6\"]\n";
    let method = "[method]\nkind = \"latency\"\nshares = [\"10%\", \"80%\"]\nrepeats = 2\n";
    let three = DEVICE.replace("blocks = 2", "blocks = 3");
    let lab = Lab::new(&format!("{three}{method}{levels}"));
    let (json, _) = lab.results(&[]);
    let [search, delays] = json["method"]["parts"].as_array().expect("parts").as_slice() else {
        panic!("{}", json["method"]);
    };
    assert_eq!(search["kind"], "mlrsearch");
    let rows = delays["timed"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for (row, capacity) in rows.iter().zip([1e6, 1e6, 0.9e6, 0.9e6]) {
        let load = row["load"].as_f64().expect("a load");
        let share = row["share"].as_f64().expect("a share");
        assert!((load / (share * capacity) - 1.0).abs() < 0.02, "{row}");
        let mean_s = 1.0 / (capacity - load);
        for figure in row["figures"].as_array().expect("figures") {
            let name = figure["name"].as_str().expect("a name");
            let seconds = figure["seconds"].as_f64().expect("a time");
            // Packets of a flow are far apart: the differences of their delays follow the same law.
            let percentile = name.trim_start_matches("IPDV ").strip_prefix('p');
            let percentile = percentile.and_then(|name| name.parse::<f64>().ok());
            let truth = match (name, percentile) {
                ("mean", _) => mean_s,
                (_, Some(percentile)) => -mean_s * (1.0 - percentile / 100.0).ln(),
                _ => continue,
            };
            assert!((seconds / truth - 1.0).abs() < 0.03, "{name} of {row}");
            // The instrument alone is a queue of 4 Mpps.
            let floor = figure["floor"].as_f64().expect("a floor");
            assert!((floor / seconds / ((capacity - load) / (4e6 - load)) - 1.0).abs() < 0.04);
            let (low, high) = (&figure["interval"][0], &figure["interval"][1]);
            assert!(low.as_f64() <= Some(seconds) && high.as_f64() >= Some(seconds), "{figure}");
        }
    }
    // The slower device takes longer by its factor, at the same share of its rate.
    let effects = delays["delay_effects"].as_array().expect("effects");
    assert_eq!(effects.len(), 4, "two shares, p50 and p99");
    for effect in effects {
        let (low, high) = (&effect["interval"][0], &effect["interval"][1]);
        let found = effect["effect"].as_f64().expect("a ratio");
        assert!((found - (1.0 / 0.9 - 1.0)).abs() < 0.03, "{effect}");
        assert!(low.as_f64() <= Some(found) && high.as_f64() >= Some(found), "{effect}");
    }
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    for text in [
        "#### Delays compared",
        "at 80 % of the rate found, p50",
        "latency-inet.svg",
        "#### Delays with intervals",
    ] {
        assert!(report.contains(text), "{text}: {report}");
    }
}

#[test]
fn latency_without_a_rate_is_reported_as_not_measured() {
    let lossy = DEVICE.replace("noise = 0.0", "noise = 0.0\nloss = 0.1");
    let lab = Lab::new(&format!("{lossy}[method]\nkind = \"latency\"\n"));
    let (json, _) = lab.results(&[]);
    assert_eq!(json["method"]["parts"][1]["timed"].as_array().map_or(0, Vec::len), 0);
    let report = std::fs::read_to_string(lab.path("results/x/README.md")).expect("a report");
    assert!(report.contains("no packet was timed"), "{report}");
}
