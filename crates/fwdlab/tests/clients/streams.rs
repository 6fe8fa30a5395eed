//! iperf3 streams through the router, and tcpdump's verdict on every packet of them.

use crate::STATEFUL;
use crate::net::Net;
use serde_json::Value;
use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Address of the server, by family.
const SERVERS: [&str; 2] = ["10.2.0.2", "2001:db8:2::2"];
/// Ends a stream after two seconds.
const BY_TIME: [&str; 2] = ["-t", "2"];
/// Ends a stream after 20 MiB, however long a busy machine takes.
const BY_BYTES: [&str; 2] = ["-n", "20M"];

/// Runs iperf3 from `a` to `b`; returns its `-J` report.
fn iperf3(net: &Net, end: [&str; 2], more: &[&str]) -> Value {
    let mut server = net.start("b", &["iperf3", "-s", "-1"]);
    let client = ["iperf3", "-J", end[0], end[1]];
    // A server that does not listen yet refuses.
    let report = (0..50).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let (succeeded, output) = net.run("a", &[&client[..], more].concat());
        succeeded.then(|| serde_json::from_str::<Value>(&output).expect("JSON"))
    });
    let _ = server.kill();
    let _ = server.wait();
    report.unwrap_or_else(|| panic!("iperf3 {more:?}"))
}

fn number(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {report:#}"))
}

/// Starts tcpdump on a device of `b`, with checksum verification.
fn dump(net: &Net) -> Child {
    let program = ["tcpdump", "-nn", "-vv", "-l", "-Q", "in", "-i", "b0", "-s", "0"];
    let only = ["tcp port 5201 or udp port 5201"];
    let mut command = net.command("b", &[&program[..], &only].concat());
    let file = File::create(net.file("dump")).expect("a file");
    command.stdout(file).stderr(Stdio::null()).spawn().expect("ip starts")
}

#[test]
fn iperf3_streams_pass_completely_in_both_directions() {
    let Some(mut net) = Net::new(&["iperf3"]) else { return };
    net.route("auto", STATEFUL);
    for to in SERVERS {
        for direction in [&[][..], &["-R"]] {
            let report = iperf3(&net, BY_BYTES, &[&["-c", to][..], direction].concat());
            let received = number(&report, "/end/sum_received/bytes");
            // The receiver's count may miss packets that were on their way when the sender ended.
            assert!(received > 10e6, "{to} {direction:?}: {received} bytes");
            // A load that any machine carries; iperf3 itself may be late with some datagrams.
            let datagrams = ["-c", to, "-u", "-b", "5M", "-l", "1000"];
            let mut counts = Vec::new();
            // A sender that was stalled sends its arrears in one burst, more than a socket holds.
            let passes = (0..3).any(|_| {
                let report = iperf3(&net, BY_TIME, &[&datagrams[..], direction].concat());
                let [packets, lost] = ["packets", "lost_packets"]
                    .map(|name| number(&report, &format!("/end/sum/{name}")));
                counts.push((packets, lost));
                packets > 1000.0 && lost < packets / 10.0
            });
            assert!(passes, "{to} {direction:?}: datagrams and lost ones: {counts:?}");
        }
    }
    let (stats, _) = net.end();
    assert!(stats.missed.iter().all(|(_, frames)| *frames == 0), "{stats:?}");
    for reason in ["firewall_stray", "firewall_unreadable", "firewall_fragment"] {
        assert_eq!(stats.count(reason), 0, "{stats:?}");
    }
}

#[test]
fn router_output_has_correct_checksums() {
    for port in ["auto", "packet"] {
        let Some(mut net) = Net::new(&["iperf3", "tcpdump"]) else { return };
        net.route(port, STATEFUL);
        let mut tcpdump = dump(&net);
        std::thread::sleep(Duration::from_millis(500));
        for to in SERVERS {
            iperf3(&net, BY_TIME, &["-c", to, "-b", "2M"]);
            iperf3(&net, BY_TIME, &["-c", to, "-u", "-b", "2M", "-l", "1000"]);
        }
        std::thread::sleep(Duration::from_millis(500));
        let pid = tcpdump.id().to_string();
        assert!(net.run("b", &["kill", "-INT", &pid]).0);
        tcpdump.wait().expect("its end");
        let output = fs::read_to_string(net.file("dump")).expect("text");
        let wrong: Vec<&str> = output
            .lines()
            .filter(|line| {
                ["incorrect", "bad udp cksum", "bad cksum"].iter().any(|w| line.contains(w))
            })
            .collect();
        assert!(wrong.is_empty(), "{port}: {} packets, e.g. {}", wrong.len(), wrong[0]);
        let right = |how: &str| output.matches(how).count();
        let [tcp, udp] = ["(correct)", "[udp sum ok]"].map(right);
        assert!(tcp > 100 && udp > 100, "{port}: {tcp} segments, {udp} datagrams: {output:.500}");
    }
}
