//! `fwdlab lab check`, with packets.

use crate::leases::leases;
use crate::program::until;
use crate::rack::{PATIENCE, Rack};
use serde_json::Value;

/// Runs the check; asserts the exit code, and returns the JSON report.
fn checked(rack: &Rack, code: i32) -> Value {
    let ended = rack.fwdlab(&["lab", "check", "lab.toml", "--traffic", "--json"]).expect(code);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Failed checks: names and details.
fn wrong(report: &Value) -> Vec<String> {
    let hosts = report["hosts"].as_array().expect("hosts").iter();
    let probes = hosts.flat_map(|host| host["probes"].as_array().expect("probes"));
    let sent = ["cables", "ceilings"]
        .into_iter()
        .flat_map(|kind| report["traffic"][kind].as_array().expect("reports").iter());
    let bad = probes.chain(sent).filter(|probe| probe["works"] == false);
    bad.map(|probe| format!("{}: {}", probe["name"], probe["detail"])).collect()
}

#[test]
fn check_finds_cables_and_ceilings_and_reports_a_wrong_clock() {
    let Some(rack) = Rack::build() else { return };
    // The DUT is not configured yet.
    rack.on("dut", "ip link set in0 up; ip link set out0 up");
    let check = ["lab", "check", "lab.toml", "--traffic", "--wait", "1min", "--json"];
    let program = rack.start(&check);
    // The hosts are held during the check, and free afterwards.
    let all = |state: &str| leases(&rack).iter().all(|host| host["state"] == state);
    assert!(until(PATIENCE, || all("held")), "{}", program.stderr());
    let ended = program.end().expect(0);
    assert!(all("free"), "{:?}", leases(&rack));
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&report["fine"], wrong(&report)), (&Value::Bool(true), Vec::new()));
    let traffic = &report["traffic"];
    assert_eq!(traffic["cables"].as_array().map(Vec::len), Some(2), "{traffic}");
    assert_eq!(traffic["ceilings"].as_array().map(Vec::len), Some(1), "{traffic}");

    // The file swaps the cables, and a clock is two hours ahead.
    let lab = rack.lab("").replace("in0", "@").replace("out0", "in0").replace("@", "out0");
    rack.write("lab.toml", &lab);
    rack.write_program("receiver.bin/date", "#!/bin/sh\necho $(($(/bin/date +%s) + 7200))\n");
    let report = checked(&rack, 3);
    let wrong = wrong(&report);
    let clock = wrong.iter().filter(|line| line.contains("clock") && line.contains("+7"));
    assert_eq!(clock.count(), 1, "{wrong:?}");
    for (name, detail) in [
        ("cable sender:gen0 to dut:out0", "at in0 instead"),
        ("cable receiver:cnt0 to dut:in0", "at out0 instead"),
        ("ceiling of sender:gen0", "sent"),
    ] {
        let found = wrong.iter().find(|line| line.contains(name));
        assert!(found.is_some_and(|line| line.contains(detail)), "{wrong:?}");
    }
}
