//! `fwdlab route`, and experiments with it as the device.

use crate::support::Lab;
use fwdlab_model::router::{InterfaceSetup, NeighbourSetup, RouterSetup, RouterStats};
use fwdlab_netio::circuit::{Circuit, FAR};
use fwdlab_netio::frame::Batch;
use fwdlab_netio::pcap::{PcapPort, PcapWriter};
use fwdlab_netio::{Frame, Port};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stamp};
use fwdlab_packet::{Stream, Template};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 4];

/// Two files for two links.
const SETUP: &str = r#"
routes = ["198.19.0.0/16 via 198.19.0.2"]
firewall = """
block in on near proto udp from 198.18.1.1 to any
pass in
"""
[[interface]]
name = "near"
port = "pcap"
input = "in.pcap"
mac = "02:00:00:00:00:02"
addresses = ["198.18.0.1/24"]
capture = "near.pcap"
[[interface]]
name = "far"
port = "pcap"
output = "out.pcap"
mac = "02:00:00:00:00:03"
addresses = ["198.19.0.1/24"]
trace = "far.txt"
[[neighbour]]
address = "198.19.0.2"
mac = "02:00:00:00:00:04"
"#;

fn frame(source: u32, destination: u32) -> Vec<u8> {
    let flows = Flows { sources: 4, destinations: 4 };
    let template = Template::new(&Stream::new(Family::Inet, 64, flows), 7, SENDER, NEAR);
    let flow = source * 4 + destination;
    template.frame(
        source,
        destination,
        &Stamp { run_id: 7, sender: 0, phase: 1, flow, sequence: 0, time_ns: 0 },
    )
}

/// Sixteen packets, four of them from a source that the firewall blocks, one with a wrong checksum,
/// one without a route.
fn lab() -> Lab {
    let lab = Lab::new("");
    lab.write("r.toml", SETUP);
    let file = std::fs::File::create(lab.path("in.pcap")).expect("a file");
    let mut writer = PcapWriter::new(file).expect("a header");
    for n in 0..16 {
        writer.write(n.into(), &frame(n / 4, n % 4)).expect("a frame");
    }
    let mut wrong = frame(0, 0);
    wrong[24] ^= 1;
    writer.write(16, &wrong).expect("a frame");
    let mut nowhere = frame(0, 0);
    // The checksum stays right: two bytes change places.
    nowhere.swap(30, 32);
    writer.write(17, &nowhere).expect("a frame");
    writer.flush().expect("written");
    lab
}

#[test]
fn route_counts_every_packet_of_its_files() {
    let lab = lab();
    let ended = lab.fwdlab(&["route", "r.toml", "--json"]).expect(0);
    let stats: RouterStats = serde_json::from_str(ended.stdout.trim()).expect("statistics");
    let count = |name: &str| stats.count(name);
    assert_eq!(stats.received, 18);
    assert_eq!((count("forwarded"), count("firewall")), (12, 4));
    assert_eq!((count("ipv4_checksum"), count("slow_no_route")), (1, 1));
    assert_eq!(stats.received, stats.forwarded + stats.dropped + stats.slow);

    let mut far = PcapPort::open(Some(&lab.path("out.pcap")), None, 0).expect("the output");
    let mut batch = Batch::new();
    assert_eq!(far.receive(&mut batch).expect("frames"), 12);
    let first = batch.frames()[0].bytes();
    assert_eq!((&first[..6], first[22]), (&RECEIVER[..], 63));
    // The tap contains the received packets, and the answer that went back.
    let mut near = PcapPort::open(Some(&lab.path("near.pcap")), None, 0).expect("the capture");
    assert_eq!(near.receive(&mut batch).expect("frames"), 19);
    let trace = std::fs::read_to_string(lab.path("far.txt")).expect("the trace");
    assert_eq!(trace.lines().count(), 12, "{trace}");
}

#[test]
fn route_prints_a_table_and_checks_a_set_up() {
    let lab = lab();
    let ended = lab.fwdlab(&["route", "r.toml", "--stats"]).expect(0);
    for line in [
        "received",
        "  forwarded",
        "  ipv4_checksum",
        "received 18 = forwarded 12 + dropped 5 + slow path 1",
    ] {
        assert!(ended.stdout.contains(line), "{line} in\n{}", ended.stdout);
    }
    let checked = lab.fwdlab(&["route", "r.toml", "--check"]).expect(0);
    assert!(checked.stdout.contains("interface 1: far"), "{}", checked.stdout);
}

#[test]
fn route_mistakes_name_their_place() {
    for (from, to, expected) in [
        ("pass in\n", "pas in\n", "firewall: line 2, column 1"),
        ("198.19.0.0/16 via", "198.19.0.1/16 via", "routes: line 1"),
        ("[[neighbour]]", "[[neighbor]]", "unknown field `neighbor`"),
        ("input = \"in.pcap\"", "input = \"no.pcap\"", "no.pcap"),
        ("routes =", "workers = 2\nroutes =", "workers = 1"),
        ("routes =", "fib = \"tree\"\nroutes =", "line 2"),
    ] {
        let lab = lab();
        assert!(SETUP.contains(from), "{from}");
        lab.write("r.toml", &SETUP.replace(from, to));
        let ended = lab.fwdlab(&["route", "r.toml"]).expect(2);
        assert!(ended.stderr.contains(expected), "{expected} in\n{}", ended.stderr);
    }
    Lab::new("").fwdlab(&["route", "nothing.toml"]).expect(2);
    Lab::new("").fwdlab(&["route"]).expect(2);
}

/// As a testbed does it: commands over pipes, packets over shared memory.
#[test]
fn controlled_router_takes_commands_over_pipes() {
    let circuit = Circuit::new(4).expect("memory");
    let interface = |name: &str, mac: &str, address: &str| InterfaceSetup {
        name: name.into(),
        mac: Some(mac.into()),
        addresses: vec![address.into()],
        ..InterfaceSetup::default()
    };
    let setup = RouterSetup {
        circuits: vec![circuit.path().display().to_string()],
        routes: vec!["198.19.0.0/16 via 198.19.0.2".into()],
        interfaces: vec![
            interface("near", "02:00:00:00:00:02", "198.18.0.1/24"),
            interface("far", "02:00:00:00:00:03", "198.19.0.1/24"),
        ],
        neighbours: vec![NeighbourSetup {
            address: "198.19.0.2".into(),
            mac: Some("02:00:00:00:00:04".into()),
            interface: None,
        }],
        ..RouterSetup::default()
    };
    let lab = Lab::new("");
    let mut command = lab.command(&["route", "--control"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut read_stats = || -> RouterStats {
        let line = output.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("statistics")
    };
    let setup = serde_json::to_string(&setup).expect("JSON");
    writeln!(input, "{setup}").expect("it listens");
    let first = read_stats();
    assert_eq!(first.received, 0);
    assert!(first.facts.iter().any(|(name, _)| name == "fib inet"), "{:?}", first.facts);

    let (mut feeder, mut drain) = (circuit.feeder(), circuit.drain());
    let frames = feeder.slot().expect("an empty wire");
    frames[0].receive(0, &frame(1, 2)).expect("it fits");
    feeder.publish(1);
    let arrived = loop {
        match drain.slot() {
            Some(frames) => break frames[0].clone(),
            None => std::thread::yield_now(),
        }
    };
    assert_eq!((arrived.egress(), Frame::bytes(&arrived)[22]), (Some(FAR), 63));
    // Counted after it was released.
    let counted = loop {
        writeln!(input, "stats").expect("it listens");
        let stats = read_stats();
        if stats.received > 0 {
            break stats;
        }
    };
    assert_eq!((counted.received, counted.forwarded), (1, 1));
    // A deleted route leads nowhere from the next packet on.
    writeln!(input, "route delete 198.19.0.0/16").expect("it listens");
    assert_eq!(read_stats().received, 1);
    drain.release();
    feeder.slot().expect("room")[0].receive(0, &frame(1, 2)).expect("it fits");
    feeder.publish(1);
    while drain.slot().is_none() {
        std::thread::yield_now();
    }
    writeln!(input, "stop").expect("it listens");
    let last = read_stats();
    assert_eq!((last.received, last.forwarded, last.slow), (2, 1, 1));
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn controlled_router_ends_with_its_controller() {
    let lab = Lab::new("");
    let mut command = lab.command(&["route", "--control"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let circuit = Circuit::new(1).expect("memory");
    let setup = RouterSetup {
        circuits: vec![circuit.path().display().to_string()],
        ..RouterSetup::default()
    };
    writeln!(input, "{}", serde_json::to_string(&setup).expect("JSON")).expect("it listens");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// The complete path without privileges: generator, router process, sink, store, report.
#[test]
fn memory_experiment_measures_the_router() {
    let lab = Lab::new(
        r#"
version = 1
title = "The router in memory"
[testbed]
kind = "memory"
[dut]
kind = "router"
queues = 2
[[factor]]
name = "firewall"
levels = ["none", "stateful"]
[traffic]
flows = { sources = 5, destinations = 10 }
[trial]
warmup = "50ms"
duration = "200ms"
[design]
blocks = 2
"#,
    );
    let ended = lab.fwdlab(&["run", "x.toml", "--json", "--out", "out"]).carried_out();
    let result = ended.json();
    let variants = result["variants"].as_array().expect("variants");
    assert_eq!(variants.len(), 2);
    for variant in variants {
        let values = variant["values"].as_array().expect("values");
        // Other tests on the same CPUs may take a whole window from either of them.
        assert!((1..=2).contains(&values.len()), "{result:#}");
        assert!(values.iter().all(|value| value.as_f64() > Some(1000.0)), "{result:#}");
    }
    let readme = ["README.md", "DETAILS.md"]
        .map(|name| std::fs::read_to_string(lab.path("out").join(name)).expect("a report"))
        .concat();
    assert!(readme.contains("packets in memory of this machine"), "{readme}");
    assert!(readme.contains("none damaged, none twice, none out of order"), "{readme}");
    assert!(!readme.contains("can't be trusted"), "{readme}");
}

/// A rate below the router's capacity: nothing is lost, everything is counted.
#[test]
fn memory_experiment_keeps_a_paced_rate() {
    let lab = Lab::new(
        r#"
version = 1
[testbed]
kind = "memory"
[dut]
kind = "router"
[traffic]
rate = 2000
flows = { sources = 2, destinations = 5 }
[trial]
warmup = "50ms"
duration = "300ms"
[design]
blocks = 1
"#,
    );
    let arguments = ["run", "x.toml", "--json", "--out", "out", "--no-calibration"];
    let result = lab.fwdlab(&arguments).carried_out().json();
    let value = result["variants"][0]["values"][0].as_f64().expect("a rate");
    // Less if another program had the CPU, never more than requested.
    assert!(value > 0.0 && value < 2500.0, "{result:#}");
    let csv = std::fs::read_to_string(lab.path("out/runs.csv")).expect("the runs");
    let columns: Vec<&str> = csv.lines().next().expect("a header").split(',').collect();
    let row: Vec<&str> = csv.lines().nth(1).expect("a run").split(',').collect();
    let at = |name| row[columns.iter().position(|&column| column == name).expect(name)];
    // Its ring holds 16 ms at this rate: packets are lost if another program had a CPU for longer,
    // and then the run reports it.
    let [offered, forwarded, lost] =
        ["offered", "forwarded", "lost"].map(|name| at(name).parse::<u64>().expect("a count"));
    assert_eq!(offered, forwarded + lost, "{csv}");
    assert!(lost == 0 || at("warnings") != "0", "{csv}");
}
