//! DUTs that are programs, on another host.

use crate::rack::Rack;
use crate::whole::recorded;

const TWO: &str = r#"
version = 1
title = "A router and a forwarder in a laboratory"
[testbed]
kind = "ssh"
lab = "lab.toml"
[[factor]]
name = "forwarder"
[[factor.levels]]
label = "kernel"
kind = "linux"
[[factor.levels]]
label = "router"
kind = "router"
port = "packet"
[[factor.levels]]
label = "testpmd"
kind = "command"
start = [
  "dpdk-testpmd", "--lcores=0@({cpus}),1@({cpus})", "--no-pci", "--no-huge", "-m", "128",
  "--no-shconf", "--vdev=net_af_packet0,iface={ingress}",
  "--vdev=net_af_packet1,iface={egress}", "--", "--forward-mode=mac",
  "--eth-peer=0,{sender_mac}", "--eth-peer=1,{receiver_mac}", "--nb-cores=1",
  "--total-num-mbufs=8192", "--auto-start", "--no-lsc-interrupt",
]
rewrites = "mac"
[traffic]
rate = "2kpps"
flows = { sources = 4, destinations = 5 }
[trial]
warmup = "100ms"
duration = "400ms"
drain = "400ms"
[design]
blocks = 2
"#;

#[test]
fn program_dut_forwards_and_restores_its_host() {
    if std::process::Command::new("dpdk-testpmd").arg("--help").output().is_err() {
        return fwdlab_testdata::skip("dpdk-testpmd is not installed");
    }
    let Some(rack) = Rack::build() else { return };
    rack.write("x.toml", TWO);
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--json", "--no-calibration"]).carried_out();
    assert_eq!(recorded(&rack), [2, 2, 2], "{}", ended.stderr);
    rack.expect_state_of_the_dut(&before);
    for run in rack.runs() {
        let (total, label) = (run.trial.total, run.variants[0]);
        assert!(total.forwarded > 200, "{label}: {total:?}");
        assert!(total.forwarded <= total.offered, "{label}: {total:?}");
        assert_eq!(run.trial.arrivals.damaged, 0, "{label}");
        if label == 1 {
            let counter = run.trial.counters.iter().find(|c| c.name == "forwarded");
            let counter = counter.expect("what the router forwarded");
            assert_eq!(Some(counter.delta()), counter.expected);
        }
    }
}

#[test]
fn failed_program_is_reported_with_its_output_and_others_continue() {
    let Some(rack) = Rack::build() else { return };
    let text = r#"
version = 1
[testbed]
kind = "ssh"
lab = "lab.toml"
[[factor]]
name = "forwarder"
levels = [
  { label = "kernel", kind = "linux" },
  { label = "broken", kind = "command", start = ["sh", "-c", "echo no such card >&2; exit 3"] },
]
[traffic]
rate = "2kpps"
[trial]
warmup = "100ms"
duration = "300ms"
[design]
blocks = 1
"#;
    rack.write("x.toml", text);
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--no-calibration"]);
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("no such card"), "{}", ended.stderr);
    assert_eq!(rack.runs().len(), 1, "{}", ended.stderr);
    rack.expect_state_of_the_dut(&before);
}
