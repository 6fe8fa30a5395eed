//! The hash covers all relevant parts of a plan and nothing else.

use super::keys::writing;
use super::{faults, plan};
use fwdlab_model::spec::keys::SECTIONS;
use std::collections::BTreeMap;

#[test]
fn every_key_changes_the_hash() {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for section in SECTIONS {
        for key in section.keys {
            // The only factor, and its baseline that is the default, are not new.
            let is_new =
                !matches!((section.path, key.name), ("factor", "name") | ("compare", "baseline"));
            let is_hashed = section.path != "profile" && !matches!(key.name, "version" | "lab");
            if key.example.is_empty() || !is_hashed || !is_new {
                continue;
            }
            let text = writing(section, key, key.example);
            let hash = plan(&text).hash;
            assert_eq!(hash.len(), 16);
            if let Some(other) = seen.insert(hash, text.clone()) {
                panic!("the same hash:\n{other}\nand\n{text}");
            }
        }
    }
    assert!(!seen.contains_key(&plan("version = 1\n").hash));
}

#[test]
fn baseline_and_ruleset_change_the_plan_hash() {
    let compared = |level: u32| {
        plan(&format!(
            "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[compare]\nbaseline = {{ queues = {level} }}"
        ))
    };
    assert_ne!(compared(1).hash, compared(2).hash);

    let ruleset = |text: &str| {
        let loader = |_: &str| Ok(text.into());
        fwdlab_model::load("x.toml", "version = 1\n[dut]\nfirewall = \"a.nft\"", &loader)
            .expect("a valid file")
            .hash
    };
    assert_ne!(ruleset("accept"), ruleset("drop"));
}

#[test]
fn comments_spaces_and_key_order_do_not_change_the_hash() {
    let a = plan("version = 1\n[dut]\nqueues = 2\nroutes = 10\n[design]\nseed = 3\n");
    let b =
        plan("# other\nversion=1\n\n[design]\nseed = 3 # c\n[dut]\nroutes = 1_0\nqueues = 0x2\n");
    assert_eq!(a, b);
    assert!(a.is_intact());
    let mut altered = a.clone();
    altered.base.dut.queues = 3;
    assert!(!altered.is_intact());
}

#[test]
fn a_plan_survives_json() {
    let before = plan(
        "version = 1\n[dut]\nfirewall = \"edge.nft\"\n[traffic]\nrate = \"50%\"\n[[factor]]\nname = \"firewall\"\nlevels = [\"rules:3\", \"none\"]",
    );
    let json = serde_json::to_string(&before).expect("a plan is JSON");
    let after: fwdlab_model::Plan = serde_json::from_str(&json).expect("and is read back");
    assert_eq!(before, after);
    assert!(after.is_intact());
}

/// Optional keys that are absent are not in the plan's JSON, so stores of older versions, which do
/// not know them, keep their hash.
#[test]
fn unused_rules_and_contamination_are_not_serialised() {
    let factor = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n";
    let json = |text: &str| serde_json::to_value(plan(text)).expect("a plan is JSON");
    let silent = json(factor);
    assert!(silent["design"].get("stop").is_none() && silent["compare"].get("adjust").is_none());
    let sim =
        |plan: &serde_json::Value, key: &str| plan["base"]["testbed"]["sim"].get(key).cloned();
    assert_eq!((sim(&silent, "contamination"), sim(&silent, "contamination_depth")), (None, None));

    let written = format!(
        "{factor}[design]\nstop = \"open\"\n[compare]\nadjust = \"benjamini-hochberg\"\n[testbed.sim]\ncontamination = 0.1\ncontamination_depth = 0.2\n"
    );
    let loud = json(&written);
    assert_eq!((&loud["design"]["stop"], &loud["design"]["blocks"]), (&"open".into(), &100.into()));
    assert_eq!(loud["compare"]["adjust"], "benjamini-hochberg");
    assert_eq!(sim(&loud, "contamination_depth"), Some(0.2.into()));
    let back: fwdlab_model::Plan = serde_json::from_value(loud).expect("and is read back");
    assert!(back == plan(&written) && back.is_intact());
}

/// The same for the router: stores made before it existed can continue.
#[test]
fn unused_router_is_not_serialised() {
    let silent = plan("version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n");
    // The hash since file names are excluded from it.
    assert_eq!(silent.hash, "48552bf4b4cc0057");
    let json = |plan: &fwdlab_model::Plan| serde_json::to_value(plan).expect("a plan is JSON");
    assert_eq!(json(&silent)["base"]["dut"].get("router"), None);

    let default = plan("version = 1\n[dut]\nkind = \"router\"\nfib = \"auto\"\n");
    assert_eq!(json(&default)["base"]["dut"].get("router"), None);
    let poptrie = plan("version = 1\n[dut]\nkind = \"router\"\nfib = \"poptrie\"\n");
    assert_eq!(json(&poptrie)["base"]["dut"]["router"]["fib"], "poptrie");
    let back: fwdlab_model::Plan = serde_json::from_value(json(&poptrie)).expect("is read back");
    assert!(back == poptrie && back.is_intact());
}

#[test]
fn routes_file_content_changes_the_hash_but_is_not_in_the_plan() {
    let routes = |content: &[u8]| {
        let loader = |_: &str| Ok(content.to_vec());
        let text = "version = 1\n[dut]\nkind = \"router\"\nroutes_file = \"rib.mrt\"\n";
        fwdlab_model::load("x.toml", text, &loader).expect("a valid file")
    };
    let (one, other) = (routes(&[0xff, 1]), routes(&[0xff, 2]));
    assert_ne!(one.hash, other.hash);
    let file = one.base.dut.router.routes_file.expect("the file is named");
    assert_eq!(file.file, "rib.mrt");
    // printf '\377\001' | sha256sum
    assert_eq!(file.digest, "437cb43a30226e639b33d84533cfc3ddd970a40055b9c8c0bf7e3795cf184eb6");
}

/// The same plan runs in any laboratory, and a store continues after its file was moved.
#[test]
fn laboratory_file_does_not_change_the_hash() {
    let of = |lab: &str| {
        plan(&format!(
            "version = 1\n[testbed]\nkind = \"ssh\"\nlab = \"{lab}\"\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n"
        ))
    };
    let (here, there) = (of("lab.toml"), of("../labs/rack.toml"));
    assert_eq!(here.base.testbed.lab.as_deref(), Some("lab.toml"));
    assert_eq!(here.hash, there.hash);
    assert!(here.is_intact() && there.is_intact());
    let json = serde_json::to_string(&there).expect("a plan is JSON");
    let back: fwdlab_model::Plan = serde_json::from_str(&json).expect("and is read back");
    assert!(back == there && back.is_intact());
    let netns = plan(
        "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[testbed]\nkind = \"netns\"\n",
    );
    assert_ne!(here.hash, netns.hash);
}

/// A later request for profiles finds the store of the same experiment.
#[test]
fn profile_changes_neither_the_hash_nor_the_stored_plan() {
    let silent = plan("version = 1\n");
    assert_eq!(silent.profile, None);
    let section = SECTIONS.iter().find(|section| section.path == "profile").expect("the table");
    for key in section.keys {
        let with = plan(&writing(section, key, key.example));
        assert_eq!(with.hash, silent.hash, "{}", key.name);
        assert!(with.is_intact(), "{}", key.name);
        let stored = serde_json::to_string(&with).expect("a plan is JSON");
        assert_eq!(stored, serde_json::to_string(&silent).expect("JSON"), "{}", key.name);
    }
}

#[test]
fn default_checks_sample_at_high_rates_and_are_not_serialised() {
    let with_checks =
        |checks: &str| plan(&format!("version = 1\n[traffic]\nchecks = \"{checks}\"\n"));
    assert_eq!(with_checks("auto").hash, plan("version = 1\n").hash);
    let is_sample = |checks: &str| {
        let checks = with_checks(checks).base.traffic.checks;
        [None, Some(1_000_001.0), Some(1e6)].map(|rate| checks.is_sample(rate))
    };
    assert_eq!(is_sample("auto"), [true, true, false]);
    assert_eq!(is_sample("all"), [false; 3]);
    assert_eq!(is_sample("sample"), [true; 3]);
    let in_memory = |checks: &str| {
        format!(
            "version = 1\n[testbed]\nkind = \"memory\"\n[dut]\nkind = \"router\"\n[traffic]\nchecks = \"{checks}\"\n"
        )
    };
    plan(&in_memory("all"));
    let got = faults(&in_memory("sample"));
    assert!(got.contains("`checks`") && got.contains("a receiver in the kernel"), "{got}");
}
