//! Traffic of third-party generators, through the whole program.

use crate::program::run;
use crate::rack::Rack;
use fwdlab_model::RunRecord;

/// An experiment with one variant and another generator.
fn experiment(traffic: &str) -> String {
    format!(
        r#"
version = 1
title = "Traffic of another's"
[testbed]
kind = "ssh"
lab = "lab.toml"
[[factor]]
name = "firewall"
levels = ["none"]
[traffic]
{traffic}
[trial]
warmup = "200ms"
duration = "600ms"
drain = "1s"
[design]
blocks = 2
"#
    )
}

/// Measures; checks the properties common to these generators, and returns the runs.
fn measured(rack: &Rack, traffic: &str) -> Vec<RunRecord> {
    rack.write("x.toml", &experiment(traffic));
    // Neighbour discovery of the hosts would be counted at the interfaces.
    for (host, interface) in [("sender", "gen0"), ("receiver", "cnt0")] {
        rack.on(host, &format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1"));
    }
    let before = rack.state_of_the_dut();
    let ended = rack.fwdlab(&["run", "x.toml", "--no-calibration"]).carried_out();
    rack.expect_state_of_the_dut(&before);
    let runs = rack.runs();
    assert_eq!(runs.len(), 2, "{}", ended.stderr);
    for run in &runs {
        let (total, window) = (run.trial.total, run.trial.window);
        assert!(total.forwarded > 100 && window.offered <= total.offered, "{total:?} {window:?}");
        // One kernel plays all parts, and the DUT occasionally sends its own packets on its links.
        assert!(total.lost() > -50 && window.lost() > -50, "{total:?} {window:?}");
    }
    runs
}

/// True if it is not installed; records a skip, and fails in CI.
fn is_without_testpmd() -> bool {
    let is_missing = std::process::Command::new("dpdk-testpmd").arg("--help").output().is_err();
    if is_missing {
        fwdlab_testdata::skip("dpdk-testpmd is not installed");
    }
    is_missing
}

#[test]
fn testpmd_sends_and_interfaces_count() {
    if is_without_testpmd() {
        return;
    }
    let Some(rack) = Rack::build() else { return };
    let runs = measured(
        &rack,
        r#"generator = "testpmd"
rate = "max"
flows = { sources = 1, destinations = 1 }
generator_options = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--", "--total-num-mbufs=4096"]"#,
    );
    for run in &runs {
        let facts = &run.facts;
        assert_eq!(facts["generator"], "testpmd");
        assert!(facts["window's edges"].starts_with("counters are read there"), "{facts:?}");
        assert_eq!(facts["testpmd received"], "at the interface: every packet counts");
        let command = &facts["testpmd testpmd command"];
        assert!(command.contains("--vdev=net_af_packet0,iface=gen0"), "{command}");
        // The sender's interface counts the packets that testpmd reports as sent.
        let witness = run.trial.counters.iter().find(|counter| counter.name.contains("gen0"));
        let witness = witness.expect("a witness");
        assert_eq!(Some(witness.delta()), witness.expected, "{witness:?}");
    }
    let report = rack.report();
    assert!(report.contains("testpmd"), "{report}");
    let left = run(&[
        "sh",
        "-c",
        "ip netns pids \"$1\" | xargs -r ps -o args= -p",
        "sh",
        &rack.namespace("sender"),
    ]);
    assert!(!left.contains("testpmd"), "it goes on: {left}");
}

/// A pkt-gen that sends fwdlab's packets and reports the interface's own counts.
const PKT_GEN: &str = r#"#!/bin/sh
for word; do
    case $last in -f) function=$word;; -i) interface=$word;; -D) to=$word;; -R) rate=$word;; esac
    [ "$word" = -h ] && { echo "pkt-gen: illegal option -- U" >&2; exit 1; }
    last=$word
done
case $function in tx) verb=Sent ;; rx) verb=Received ;; esac
counter=/sys/class/net/$interface/statistics/${function}_packets
read -r first <$counter
before=$first reports=0
report() {
    read -r now <$counter
    reports=$((reports + 1))
    echo "126.000003 main_thread [2781] 1 pps ($((now - before)) pkts 64000 bps in 100000 usec) 1.00 avg_batch 99999 min_space" >&2
    before=$now
}
end() {
    [ $function = tx ] && kill $sends && wait $sends
    read -r now <$counter
    echo "$verb $((now - first)) packets $(((now - first) * 60)) bytes $reports events 60 bytes each in $((reports / 10)).$((reports % 10))0 seconds."
    echo "Speed: 1 pps Bandwidth: 2 bps (raw 2 bps). Average batch: 1.00 pkts"
    exit 0
}
trap end INT
[ $function = tx ] && { PROGRAM send --interface "$interface" --to "$to" --run-id 7 ${rate:+--rate "${rate}pps"} --seconds 60 --engine packet >/dev/null & sends=$!; }
echo "125.000002 start_threads [2849] Ready..." >&2
while :; do
    sleep 0.1
    report
done
"#;

#[test]
fn pkt_gen_reports_agree_with_the_interfaces() {
    let Some(rack) = Rack::build() else { return };
    let script = PKT_GEN.replace("PROGRAM", env!("CARGO_BIN_EXE_fwdlab"));
    for host in ["sender", "receiver"] {
        rack.write_program(&format!("{host}.bin/pkt-gen"), &script);
    }
    let runs = measured(&rack, "generator = \"pkt-gen\"\nrate = \"2kpps\"");
    for run in &runs {
        let facts = &run.facts;
        assert_eq!(facts["generator"], "pkt-gen");
        assert!(facts["window's edges"].contains("100 ms"), "{facts:?}");
        assert!(facts["pkt-gen pkt-gen sender"].contains("-f tx -i gen0"), "{facts:?}");
        let total = run.trial.total;
        assert!(total.lost().abs() <= 50, "{total:?}");
        for name in ["gen0", "cnt0"] {
            let found = run.trial.counters.iter().find(|counter| counter.name.contains(name));
            let counter = found.expect("a witness");
            let expected = counter.expected.expect("what it should be");
            assert!(counter.delta().abs_diff(expected) <= 50, "{counter:?}");
        }
    }
}

/// Searches by two senders through one shaper of 2000 packets per second. Reports a tenth of a
/// second apart delimit a trial of pkt-gen, so the goal tolerates the packets that these may miss.
const SEARCH: &str = r#"
version = 1
title = "One device, two senders"
[testbed]
kind = "ssh"
lab = "lab.toml"
engine = "packet"
[dut]
firewall = "shaper.nft"
[[factor]]
name = "sender"
levels = [{ label = "fwdlab" }, { label = "pkt-gen", generator = "pkt-gen" }]
[trial]
warmup = "200ms"
duration = "600ms"
drain = "1s"
[method]
kind = "mlrsearch"
min_load = "500pps"
max_load = "8kpps"
max_trials = 40
[[method.goal]]
name = "quarter"
loss_ratio = 0.25
exceed_ratio = 0.5
initial_trial = "1s"
final_trial = "1s"
duration_sum = "3s"
width = "10%"
[design]
blocks = 1
"#;

/// The same search, trial by trial, by fwdlab's sender and by another generator.
#[test]
fn search_with_pkt_gen_agrees_with_fwdlab() {
    let Some(rack) = Rack::build() else { return };
    let script = PKT_GEN.replace("PROGRAM", env!("CARGO_BIN_EXE_fwdlab"));
    for host in ["sender", "receiver"] {
        rack.write_program(&format!("{host}.bin/pkt-gen"), &script);
    }
    searched(&rack, "pkt-gen", SEARCH);
}

/// The same with DPDK's testpmd, whose rate the kernel of its host limits.
#[test]
fn search_with_testpmd_agrees_with_fwdlab() {
    if is_without_testpmd() {
        return;
    }
    let Some(rack) = Rack::build() else { return };
    let options = "generator = \"testpmd\", generator_options = [\"--no-huge\", \"-m\", \"256\", \
                   \"--no-pci\", \"--no-shconf\", \"--\", \"--total-num-mbufs=4096\"]";
    let search = SEARCH
        .replace(
            "label = \"pkt-gen\", generator = \"pkt-gen\"",
            &format!("label = \"testpmd\", {options}"),
        )
        .replace("[trial]", "[traffic]\nflows = { sources = 1, destinations = 1 }\n[trial]");
    searched(&rack, "testpmd", &search);
    let qdisc = rack.on("sender", "tc qdisc show dev gen0");
    assert!(!qdisc.contains("tbf"), "the interface is as it was: {qdisc}");
}

/// Asserts that both senders find the known rate of the shaper, each with bounds that enclose it.
fn searched(rack: &Rack, other: &str, search: &str) {
    for (host, interface) in [("sender", "gen0"), ("receiver", "cnt0")] {
        rack.on(host, &format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1"));
    }
    let shaper = "table inet fwdlab_shaper {\n    chain forward {\n        type filter hook \
                  forward priority 0; policy accept;\n        meta l4proto udp limit rate over \
                  2000/second burst 20 packets drop\n    }\n}\n";
    rack.write("shaper.nft", shaper);
    rack.write("x.toml", search);
    rack.fwdlab(&["run", "x.toml", "--no-calibration"]).carried_out();
    let runs = rack.runs();
    assert_eq!(runs.len(), 2);
    let goals = [fwdlab_search::Goal {
        name: "quarter".into(),
        loss_ratio: 0.25,
        exceed_ratio: 0.5,
        initial_ns: 1_000_000_000,
        final_ns: 1_000_000_000,
        sum_ns: 3_000_000_000,
        width: 0.1,
    }];
    let mut rates = Vec::new();
    for run in &runs {
        let sender = ["fwdlab", other][run.variants[0]];
        let record = run.method.as_ref().expect("a search");
        let limits = fwdlab_search::Limits::between(record.min_load, record.max_load);
        let outcomes = record.outcomes(&goals);
        let found = fwdlab_search::SearchResult::of(
            goals.to_vec(),
            &limits,
            outcomes,
            record.ended.as_ref(),
        );
        let goal = &found.goals[0];
        let context = format!("{sender}: {goal:?} of {:?}", record.trials);
        assert!(goal.is_regular(), "{context}");
        // A quarter of 2667 is lost; the width is a tenth, and the edges as much.
        let pps = goal.conditional_throughput.expect("regular");
        assert!((pps / 2000.0 - 1.0).abs() < 0.25, "{context}");
        rates.push(pps);
        // Third-party generators measure neither delays nor flows by packet.
        assert_eq!(run.trial.arrivals.flows.is_some(), sender == "fwdlab", "{context}");
        assert!(record.trials.iter().all(|trial| trial.latency.is_none()), "{context}");
    }
    // The width of each, and the edges of the other's trials.
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.25, "they agree: {rates:?}");
}
