//! Profiles of a simulated device: when they are taken, where they lie.

use super::support::{INSTANT, Lab};
use serde_json::Value;

fn read(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.path(name)).expect("a file")
}

#[test]
fn a_profile_follows_the_runs_and_leaves_them_as_they_are() {
    let lab = Lab::new(INSTANT);
    let plain = lab.fwdlab(&["run", "x.toml", "--out", "plain", "--json"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    assert!(!lab.path("plain/profiles").exists());

    let with = lab.fwdlab(&["run", "x.toml", "--out", "with", "--json", "--profile"]);
    assert_eq!(with.code, Some(0), "{}", with.stderr);
    assert!(with.stderr.contains("profile  stateful  simulated"), "{}", with.stderr);
    assert!(with.stderr.contains("then 2 profiles, about"), "{}", with.stderr);
    assert!(with.stderr.contains("SIMULATED"), "{}", with.stderr);
    for variant in 0..2 {
        let text = read(&lab, &format!("with/profiles/{variant}.perf.txt"));
        assert_eq!(text.contains("simulated_firewall"), variant == 1);
        let json: Value =
            serde_json::from_str(&read(&lab, &format!("with/profiles/{variant}.json")))
                .expect("JSON");
        assert_eq!(json["record"]["variant"], variant);
        let windows = json["record"]["windows"].as_array().expect("windows");
        assert_eq!(windows.len(), 5);
        let lost: i64 = json["record"]["drops"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|drop| drop["packets"].as_i64())
            .sum();
        let total = |name: &str| json["record"]["total"][name].as_i64().expect("a count");
        assert_eq!(lost, total("offered") - total("forwarded"));
    }
    // The same figures, to the last digit, with a profile and without.
    let results = |text: &str| {
        let json: Value = serde_json::from_str(text).expect("JSON");
        (json["variants"].clone(), json["comparisons"].clone())
    };
    assert_eq!(results(&plain.stdout), results(&with.stdout));
}

#[test]
fn a_profile_asked_for_later_finds_the_store_and_is_taken_once() {
    let lab = Lab::new(INSTANT);
    assert_eq!(lab.fwdlab(&["run", "x.toml", "--out", "o"]).code, Some(0));
    lab.write("x.toml", &format!("{INSTANT}[profile]\nwindows = 2\n"));
    let off = lab.fwdlab(&["run", "x.toml", "--out", "o", "--no-profile"]);
    assert_eq!(off.code, Some(0), "{}", off.stderr);
    assert!(!lab.path("o/profiles").exists());
    let first = lab.fwdlab(&["run", "x.toml", "--out", "o"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.contains("all of its 8 runs are stored already"), "{}", first.stderr);
    assert!(lab.path("o/profiles/1.json").exists());
    let second = lab.fwdlab(&["run", "x.toml", "--out", "o"]);
    assert!(!second.stderr.contains("profile  "), "{}", second.stderr);
    let both = lab.fwdlab(&["run", "x.toml", "--profile", "--no-profile"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}
