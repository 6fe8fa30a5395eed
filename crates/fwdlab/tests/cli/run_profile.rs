//! Profiles of a simulated device: their time, their place, and their report.

use super::support::{INSTANT, Lab};
use fwdlab_results::store::{Store, StoredProfile};
use serde_json::Value;

fn profiles(lab: &Lab, out: &str) -> Vec<StoredProfile> {
    let store = Store::open_read_only(&lab.path(&format!("{out}/run.sqlite"))).expect("a store");
    store.profiles().expect("profiles")
}

fn results(lab: &Lab, out: &str) -> Value {
    let text = std::fs::read_to_string(lab.path(&format!("{out}/results.json"))).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

/// The results without profiles, to the last digit.
fn figures(text: &str) -> (Value, Value) {
    let json: Value = serde_json::from_str(text).expect("JSON");
    (json["variants"].clone(), json["comparisons"].clone())
}

#[test]
fn sampling_does_not_change_measured_runs() {
    let lab = Lab::new(INSTANT);
    let plain = lab.fwdlab(&["run", "x.toml", "--out", "plain", "--json"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    assert_eq!(profiles(&lab, "plain"), []);
    assert_eq!(results(&lab, "plain")["profiles"], Value::Null);

    let with = lab.fwdlab(&["run", "x.toml", "--out", "with", "--json", "--profile"]);
    assert_eq!(with.code, Some(0), "{}", with.stderr);
    assert_eq!(with.stderr.matches("SIMULATED: these samples").count(), 1, "{}", with.stderr);
    let stored = profiles(&lab, "with");
    let mut runs: Vec<u32> = stored.iter().filter_map(|profile| profile.record.run).collect();
    runs.sort_unstable();
    assert_eq!(runs, (0..8).collect::<Vec<u32>>(), "every run, and nothing else");
    for profile in &stored {
        assert_eq!((profile.windows.len(), profile.record.frequency_hz), (1, 199));
        let has_firewall = profile.windows[0].contains("simulated_firewall");
        assert_eq!(has_firewall, profile.record.variant == 1);
    }
    assert_eq!(figures(&plain.stdout), figures(&with.stdout));
}

#[test]
fn profile_runs_between_blocks_do_not_change_the_runs() {
    let lab = Lab::new(INSTANT);
    let plain = lab.fwdlab(&["run", "x.toml", "--out", "plain", "--json"]);
    lab.write("x.toml", &format!("{INSTANT}[profile]\nsampling = 0\nstarts = 2\n"));
    let with = lab.fwdlab(&["run", "x.toml", "--out", "with", "--json"]);
    assert_eq!(with.code, Some(0), "{}", with.stderr);
    assert!(with.stderr.contains("profile  stateful  simulated"), "{}", with.stderr);
    assert!(with.stderr.contains("then 4 profiles, about"), "{}", with.stderr);
    // The first start follows the second block.
    let place = |words: &str| with.stderr.find(words).unwrap_or_else(|| panic!("{}", with.stderr));
    assert!(place("profile  ") > place("block 2/4") && place("profile  ") < place("block 3/4"));
    let stored = profiles(&lab, "with");
    let starts: Vec<_> =
        stored.iter().map(|p| (p.record.variant, p.record.start, p.record.run)).collect();
    assert_eq!(starts, [(0, 0, None), (0, 1, None), (1, 0, None), (1, 1, None)]);
    for profile in &stored {
        assert_eq!(profile.windows.len(), 5);
        let has_firewall = profile.windows.iter().any(|w| w.contains("simulated_firewall"));
        assert_eq!(has_firewall, profile.record.variant == 1);
        let lost: i64 = profile.record.drops.iter().map(|drop| drop.packets).sum();
        assert_eq!(lost, profile.record.total.lost());
    }
    assert_eq!(figures(&plain.stdout), figures(&with.stdout));
}

#[test]
fn report_shows_costs_of_functions_and_their_differences() {
    let lab = Lab::new(INSTANT);
    let run = lab.fwdlab(&["run", "x.toml", "--out", "o", "--profile"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let json = results(&lab, "o");
    let variants = json["profiles"]["variants"].as_array().expect("variants");
    assert_eq!(variants.len(), 2);
    for variant in variants {
        assert!(variant["inside_share"].as_f64().expect("a share") > 0.9, "{variant}");
        assert!(variant["per_packet"].as_f64().expect("a cost") > 0.0, "{variant}");
        let picture = lab.path("o").join(variant["file"].as_str().expect("a picture"));
        let svg = std::fs::read_to_string(&picture).expect("a flame graph");
        assert!(svg.contains("<svg") && svg.contains("where the time goes"));
    }
    let difference = &json["profiles"]["differences"][0];
    assert_eq!(difference["functions"]["parts"][0]["name"], "simulated_firewall");
    assert!(difference["functions"]["parts"][0]["interval"].is_array(), "{difference}");
    assert!(lab.path("o").join(difference["file"].as_str().expect("a picture")).is_file());
    let readme = std::fs::read_to_string(lab.path("o/README.md")).expect("a file");
    assert!(readme.contains("Where in the code") && readme.contains("simulated_firewall"));
    let profiles = std::fs::read_to_string(lab.path("o/PROFILES.md")).expect("a page");
    assert!(profiles.contains("## Where the time goes") && profiles.contains("simulated_firewall"));

    // The same store gives the same bytes, also elsewhere and later.
    let again = lab.fwdlab(&["report", "o", "--out", "again"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(lab.path("again/README.md")).expect("a file"), readme);
}

#[test]
fn later_profile_request_uses_the_store_once() {
    let lab = Lab::new(INSTANT);
    assert_eq!(lab.fwdlab(&["run", "x.toml", "--out", "o"]).code, Some(0));
    lab.write("x.toml", &format!("{INSTANT}[profile]\n"));
    let off = lab.fwdlab(&["run", "x.toml", "--out", "o", "--no-profile"]);
    assert_eq!(off.code, Some(0), "{}", off.stderr);
    assert_eq!(profiles(&lab, "o"), []);
    let first = lab.fwdlab(&["run", "x.toml", "--out", "o"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("all of its 8 runs are stored already"), "{}", first.stderr);
    assert_eq!(profiles(&lab, "o").len(), 2);
    let second = lab.fwdlab(&["run", "x.toml", "--out", "o"]);
    assert!(!second.stderr.contains("profile  "), "{}", second.stderr);
    let conflicting = lab.fwdlab(&["run", "x.toml", "--profile", "--no-profile"]);
    assert_eq!(conflicting.code, Some(2), "{}", conflicting.stderr);
}
