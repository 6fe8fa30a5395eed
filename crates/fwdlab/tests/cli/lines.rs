//! Searches and curves on links of a known line rate: loads end at it, and a device as fast as its
//! link reaches it.

use crate::support::Lab;
use serde_json::Value;

/// Rate of 64-byte frames on a link of 1 Gbit/s, packets per second.
const LINE: f64 = 1e9 / (84.0 * 8.0);

/// A device behind such a link, in two runs.
fn device(capacity: &str, more: &str) -> String {
    format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\ncapacity = \"{capacity}\"\n\
         ceiling = \"9Mpps\"\nlink_speed = \"1Gbit/s\"\nnoise = 0.0\njitter = 0.0\n\
         [design]\nblocks = 2\n{more}"
    )
}

fn near(value: &Value, expected: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value}: {expected} expected"));
    assert!((found / expected - 1.0).abs() < 1e-3, "{found}, {expected} expected");
}

/// Without the limit, thirty trials at a load that no sender can put on the link were inconclusive.
#[test]
fn search_above_line_rate_ends_there_and_reports_it() {
    let method = "[method]\nkind = \"mlrsearch\"\nmax_load = \"5Mpps\"\n";
    let (json, report) = Lab::new(&device("5Mpps", method)).results(&[]);
    for row in json["method"]["searched"].as_array().expect("rows") {
        near(&row["throughput"]["median"], LINE);
        near(&row["of_line"], 1.0);
        assert_eq!((&row["at_line"], &row["regular"][0]), (&2.into(), &0.into()), "{row}");
        // Both goals of the presets at one load: 21 s and the first short trials.
        assert!(row["trials"].as_f64() < Some(25.0), "{row}");
    }
    for run in json["method"]["runs"].as_array().expect("runs") {
        assert_eq!(run["above_line"], 5_000_000, "{run}");
        for point in run["points"].as_array().expect("trials") {
            assert!(point["load"].as_f64() <= Some(LINE) && point["invalid"].is_null(), "{point}");
        }
    }
    near(&json["variants"][0]["values"][0], LINE);
    for expected in [
        "100.0 % of line rate: the device is as fast as its link, or faster",
        "0 of 2, 2 at line rate",
        "loads end at the links' line rate: the 5.00 Mpps that max_load asks for are above it",
        "the true rate may be higher",
    ] {
        assert!(report.contains(expected), "{expected} in {report}");
    }
    // A slower device is found below line rate, whatever the maximum load.
    let (json, report) = Lab::new(&device("800kpps", method)).results(&[]);
    near(&json["method"]["searched"][0]["throughput"]["median"], 0.798e6);
    assert_eq!(json["method"]["searched"][0]["regular"][0], 2, "{json}");
    assert!(report.contains("are above it"), "{report}");
}

#[test]
fn search_starting_above_line_rate_is_refused() {
    let method = "[method]\nkind = \"mlrsearch\"\nmin_load = \"2Mpps\"\nmax_load = \"5Mpps\"\n";
    let ended = Lab::new(&device("5Mpps", method)).fwdlab(&["run", "x.toml", "--quiet"]).expect(2);
    for expected in ["1.49 Mpps, the links' line rate", "next step", "`min_load`"] {
        assert!(ended.stderr.contains(expected), "{expected} in {}", ended.stderr);
    }
}

/// The suite of RFC 2544: throughput is the line rate at each frame size, and the loss curve begins
/// there.
#[test]
fn suite_finds_line_rate_of_a_device_as_fast_as_its_link() {
    let suite = "[method]\nkind = \"rfc2544\"\ngoals = [\"ndr\"]\nrepeats = 1\n\
                 tests = [\"throughput\", \"frame-loss-rate\"]\n\
                 [[factor]]\nname = \"frame_size\"\nlevels = [64, 1518]\n";
    let (json, report) = Lab::new(&device("1Mpps", suite)).results(&[]);
    let rows = json["method"]["suite"]["rows"].as_array().expect("rows");
    let line = 1e9 / (1538.0 * 8.0);
    near(&rows[0]["throughput"], 0.998e6);
    assert!(rows[0]["at_line"].is_null(), "slower than its link: {}", rows[0]);
    near(&rows[1]["throughput"], line);
    near(&rows[1]["of_line"], 1.0);
    assert_eq!(rows[1]["at_line"], 2, "{}", rows[1]);
    let curves = &json["method"]["parts"][1]["curved"];
    near(&curves[1]["greatest"], line);
    near(&curves[1]["lossless"], line);
    assert!(report.contains("1518: throughput 81.3 kpps, the line rate in 2 runs"), "{report}");
    assert!(!report.contains("no throughput found"), "{report}");
}

/// A sender slower than the link: the maximum load is its own, and not a rate of the device.
#[test]
fn slow_sender_yields_a_lower_bound() {
    let suite = "[method]\nkind = \"rfc2544\"\ngoals = [\"ndr\"]\ntests = [\"throughput\"]\n";
    let slow = device("5Mpps", suite).replace("9Mpps", "1Mpps");
    let (json, report) = Lab::new(&slow).results(&[]);
    let row = &json["method"]["suite"]["rows"][0];
    assert!(row["throughput"].is_null(), "{row}");
    near(&row["at_least"], 0.9e6);
    assert!(report.contains("throughput at least 900 kpps, the greatest load tried"), "{report}");
    assert!(report.contains("left out of the comparisons"), "{report}");
    assert!(report.contains("the greatest load is a lower bound"), "{report}");
}
