//! `fwdlab route` with files that it can use only in part.

use crate::support::Lab;
use fwdlab_model::router::RouterStats;
use fwdlab_netio::pcap::PcapWriter;
use fwdlab_packet::{Family, Flows, Stamp, Stream, Template};

/// Two files for two links.
const SETUP: &str = r#"
routes = ["198.19.0.0/16 via 198.19.0.2"]
[[interface]]
name = "near"
port = "pcap"
input = "in.pcap"
mac = "02:00:00:00:00:02"
addresses = ["198.18.0.1/24"]
[[interface]]
name = "far"
port = "pcap"
output = "out.pcap"
mac = "02:00:00:00:00:03"
addresses = ["198.19.0.1/24"]
[[neighbour]]
address = "198.19.0.2"
mac = "02:00:00:00:00:04"
"#;

/// A capture of 100 packets, so that the last batch is not full.
fn capture() -> Vec<u8> {
    let (sender, router) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let flows = Flows { sources: 4, destinations: 4 };
    let template = Template::new(&Stream::new(Family::Inet, 64, flows), 7, sender, router);
    let mut writer = PcapWriter::new(Vec::new()).expect("memory");
    for n in 0..100 {
        let stamp = Stamp { run_id: 7, sender: 0, phase: 1, flow: 0, sequence: n, time_ns: 0 };
        writer.write(0, &template.frame(0, 0, &stamp)).expect("memory");
    }
    writer.into_inner()
}

fn lab(setup: &str, capture: &[u8]) -> Lab {
    let lab = Lab::new("");
    lab.write("r.toml", setup);
    std::fs::write(lab.path("in.pcap"), capture).expect("a file");
    lab
}

#[test]
fn cut_capture_is_forwarded_up_to_the_cut() {
    let whole = capture();
    let lab = lab(SETUP, &whole[..whole.len() - 7]);
    let ended = lab.fwdlab(&["route", "r.toml", "--json"]).expect(2);
    let stats: RouterStats = serde_json::from_str(ended.stdout.trim()).expect("statistics");
    assert_eq!((stats.received, stats.forwarded), (99, 99));
    assert!(stats.warnings[0].to_string().contains("in.pcap: at byte"), "{:?}", stats.warnings);
    for expected in ["in.pcap: at byte", "is cut within this record", "next step: capture again"] {
        assert!(ended.stderr.contains(expected), "{expected} in\n{}", ended.stderr);
    }
    let table = lab.fwdlab(&["route", "r.toml"]).expect(2).stdout;
    assert!(table.contains("received 99 = forwarded 99"), "{table}");
    assert!(table.contains("warning: in.pcap: at byte"), "{table}");
    let checked = lab.fwdlab(&["route", "r.toml", "--check"]).expect(2);
    assert!(checked.stderr.contains("is cut within this record"), "{}", checked.stderr);
}

#[test]
fn capture_of_other_links_is_a_mistake() {
    let mut raw = capture();
    raw[20] = 101;
    let ended = lab(SETUP, &raw).fwdlab(&["route", "r.toml"]).expect(2);
    assert!(ended.stderr.contains("frames of link type RAW, not Ethernet"), "{}", ended.stderr);
    assert!(ended.stdout.contains("received 0 = "), "{}", ended.stdout);
}

#[test]
fn capture_that_is_mostly_truncated_is_refused() {
    let mut short = capture();
    // The original lengths of the first 60 frames are above the captured ones.
    let record = (short.len() - 24) / 100;
    for n in 0..60 {
        short[24 + n * record + 13] = 9;
    }
    let lab = lab(SETUP, &short);
    for arguments in [&["route", "r.toml"][..], &["route", "r.toml", "--check"]] {
        let ended = lab.fwdlab(arguments).expect(2);
        let expected = "in.pcap: 60 of 100 records left out: 60 truncated when they were captured";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let mut few = capture();
    few[24 + 13] = 9;
    std::fs::write(lab.path("in.pcap"), few).expect("a file");
    let ended = lab.fwdlab(&["route", "r.toml", "--check"]).expect(0);
    assert!(
        ended.stdout.contains("warning: in.pcap: 1 of 100 records left out"),
        "{}",
        ended.stdout
    );
}

#[test]
fn rules_that_never_match_are_reported() {
    let rules = "firewall = \"\"\"\nblock all\npass in proto udp from any to any port 7\n\"\"\"\n";
    let lab = lab(&(rules.to_owned() + SETUP), &capture());
    let expected =
        "firewall:2: this rule never matches: the rule in line 1 matches all its packets";
    let checked = lab.fwdlab(&["route", "r.toml", "--check"]).expect(0);
    assert!(checked.stdout.contains(&format!("warning: {expected}")), "{}", checked.stdout);
    let ended = lab.fwdlab(&["route", "r.toml", "--json"]).expect(0);
    let stats: RouterStats = serde_json::from_str(ended.stdout.trim()).expect("statistics");
    assert_eq!((stats.warnings.len(), stats.warnings[0].line), (1, Some(2)));
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert_eq!((stats.received, stats.count("firewall")), (100, 100));
}

/// A route in the form of a dump with several paths per peer, and records of two other kinds.
#[test]
fn experiment_warns_of_records_that_are_left_out() {
    let lab = Lab::new(
        r#"
version = 1
[testbed]
kind = "memory"
[dut]
kind = "router"
routes_file = "rib.mrt"
[trial]
warmup = "50ms"
duration = "200ms"
[design]
blocks = 1
"#,
    );
    let record = |subtype: u8, body: &[u8]| {
        [&[0x69, 0, 0, 0, 0, 13, 0, subtype, 0, 0, 0, body.len() as u8], body].concat()
    };
    let route = |prefix: &[u8], via: u8| {
        let entry = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 0x40, 3, 4, 198, via, 0, 2];
        record(8, &[&[0, 0, 0, 0, 16], prefix, &entry].concat())
    };
    let file = [route(&[198, 18], 18), route(&[198, 19], 19), record(3, &[0; 9])].concat();
    std::fs::write(lab.path("rib.mrt"), file).expect("a file");
    lab.fwdlab(&["run", "x.toml", "--out", "out", "--no-calibration"]).carried_out();
    let readme = ["README.md", "DETAILS.md"]
        .map(|name| std::fs::read_to_string(lab.path("out").join(name)).expect("a report"))
        .concat();
    let expected = "rib.mrt: 1 of 3 records left out: 1 x RIB_IPV4_MULTICAST (13/3)";
    assert!(readme.contains(expected), "{readme}");
}
