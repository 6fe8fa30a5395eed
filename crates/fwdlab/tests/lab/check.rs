//! `fwdlab lab check`, with packets.

use crate::rack::Rack;
use serde_json::Value;

/// What it found, as JSON, with its exit code.
fn checked(rack: &Rack, code: i32) -> Value {
    let ended = rack.fwdlab(&["lab", "check", "lab.toml", "--traffic", "--json"]).expect(code);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// What does not work: names and what is said of them.
fn wrong(report: &Value) -> Vec<String> {
    let hosts = report["hosts"].as_array().expect("hosts").iter();
    let probes = hosts.flat_map(|host| host["probes"].as_array().expect("probes"));
    let sent = ["cables", "ceilings"].into_iter().flat_map(|kind| {
        report["traffic"][kind].as_array().expect("reports").iter().map(|one| &one["probe"])
    });
    let bad = probes.chain(sent).filter(|probe| probe["works"] == false);
    bad.map(|probe| format!("{}: {}", probe["name"], probe["detail"])).collect()
}

#[test]
fn cables_and_ceilings_are_found_by_packets_and_a_wrong_clock_is_told() {
    let Some(rack) = Rack::build() else { return };
    // Nobody has configured the DUT yet.
    rack.on("dut", "ip link set in0 up; ip link set out0 up");
    let report = checked(&rack, 0);
    assert_eq!((&report["fine"], wrong(&report)), (&Value::Bool(true), Vec::new()));
    let traffic = &report["traffic"];
    assert_eq!(traffic["cables"].as_array().map(Vec::len), Some(2), "{traffic}");
    assert_eq!(traffic["ceilings"].as_array().map(Vec::len), Some(1), "{traffic}");

    // The file says it the other way round, and a clock is two hours ahead.
    let lab = rack.lab("").replace("in0", "@").replace("out0", "in0").replace("@", "out0");
    rack.write("lab.toml", &lab);
    rack.write_program("receiver.bin/date", "#!/bin/sh\necho $(($(/bin/date +%s) + 7200))\n");
    let wrong = wrong(&checked(&rack, 3));
    let clock = wrong.iter().filter(|line| line.contains("clock") && line.contains("7200"));
    assert_eq!(clock.count(), 1, "{wrong:?}");
    for (cable, leads) in [("sender:gen0", "in0"), ("receiver:cnt0", "out0")] {
        let found = wrong.iter().find(|line| line.contains(cable));
        assert!(found.is_some_and(|line| line.contains(leads)), "{wrong:?}");
    }
}
