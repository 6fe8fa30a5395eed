//! `fwdlab route` when its files, pipes and commands fail: it continues to forward.

use crate::support::Lab;
use fwdlab_model::router::RouterStats;
use fwdlab_netio::circuit::Circuit;
use fwdlab_netio::pcap::PcapWriter;
use fwdlab_packet::{Family, Flows, Stamp, Stream, Template};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Interfaces whose keys are completed.
fn setup(head: &str, near: &str, far: &str) -> String {
    format!(
        r#"
routes = ["198.19.0.0/16 via 198.19.0.2"]
{head}
[[interface]]
name = "near"
mac = "02:00:00:00:00:02"
addresses = ["198.18.0.1/24"]
{near}
[[interface]]
name = "far"
mac = "02:00:00:00:00:03"
addresses = ["198.19.0.1/24"]
{far}
[[neighbour]]
address = "198.19.0.2"
mac = "02:00:00:00:00:04"
"#
    )
}

fn frame() -> Vec<u8> {
    let flows = Flows { sources: 4, destinations: 4 };
    let template = Template::new(&Stream::new(Family::Inet, 64, flows), 7, SENDER, NEAR);
    let stamp = Stamp { run_id: 7, sender: 0, phase: 1, flow: 0, sequence: 0, time_ns: 0 };
    template.frame(0, 0, &stamp)
}

#[test]
fn files_that_cannot_be_written_are_counted_and_change_no_packet() {
    let lab = Lab::new("");
    let near = "port = \"pcap\"\ninput = \"in.pcap\"\ncapture = \"near.pcap\"";
    let far = "port = \"pcap\"\noutput = \"/dev/full\"\ncapture = \"/dev/full\"\n\
               trace = \"/dev/full\"";
    lab.write("r.toml", &setup("", near, far));
    let file = std::fs::File::create(lab.path("in.pcap")).expect("a file");
    let mut writer = PcapWriter::new(file).expect("a header");
    (0..12).for_each(|at| writer.write(at, &frame()).expect("a frame"));
    let ended = lab.fwdlab(&["route", "r.toml", "--json", "--metrics", "nowhere/m.prom"]).expect(0);
    let stats: RouterStats = serde_json::from_str(ended.stdout.trim()).expect("statistics");
    assert_eq!((stats.received, stats.forwarded), (12, 12));
    let warnings: Vec<String> = stats.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let expected = "/dev/full: 12 records not written: ";
    assert!(warnings.iter().all(|warning| warning.starts_with(expected)), "{warnings:?}");
    let reports = ended.stderr.lines().filter(|line| line.contains("nowhere/m.prom")).count();
    assert_eq!(reports, 1, "{}", ended.stderr);
    let capture = lab.path("near.pcap").metadata().expect("a capture");
    assert_eq!(capture.permissions().mode() & 0o777, 0o600);
}

/// A router on a circuit, with its configuration in `r.toml`.
struct Forwarding {
    lab: Lab,
    circuit: Circuit,
    child: Child,
}

impl Forwarding {
    fn new(arguments: &[&str]) -> Forwarding {
        let (lab, circuit) = (Lab::new(""), Circuit::new(4).expect("memory"));
        let circuits = format!("circuits = [\"{}\"]", circuit.path().display());
        lab.write("r.toml", &setup(&circuits, "", ""));
        let mut command = lab.command(&[&["route"][..], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        Forwarding { lab, circuit, child }
    }

    /// Waits for a line on standard error.
    fn wait_for_note(&mut self, expected: &str) {
        let output = self.child.stderr.as_mut().expect("a pipe");
        let mut lines = BufReader::with_capacity(1, output).lines();
        assert!(lines.any(|line| line.expect("text").contains(expected)), "no `{expected}`");
    }

    fn assert_forwards(&self) {
        let (mut feeder, mut drain) = (self.circuit.feeder(), self.circuit.drain());
        feeder.slot().expect("room")[0].receive(0, &frame()).expect("it fits");
        feeder.publish(1);
        loop {
            if let Some(frames) = drain.slot() {
                assert!(frames[0].egress().is_some());
                drain.release();
                return;
            }
            std::thread::yield_now();
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

#[test]
fn closed_pipe_is_reported_once_and_forwarding_continues() {
    let mut router = Forwarding::new(&["r.toml", "--stats", "0.01"]);
    drop(router.child.stdout.take());
    router.wait_for_note("standard output: ");
    router.assert_forwards();
    router.signal(Signal::TERM);
    router.wait_for_note("attempts failed");
    assert!(router.child.wait().expect("it ends").success());
}

#[test]
fn pipe_as_configuration_does_not_stop_a_reload() {
    let mut router = Forwarding::new(&["r.toml"]);
    router.wait_for_note("forwarding with");
    let path = router.lab.path("r.toml");
    std::fs::remove_file(&path).expect("it exists");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a pipe");
    router.signal(Signal::HUP);
    router.wait_for_note("not a regular file");
    router.assert_forwards();
    router.signal(Signal::TERM);
    assert!(router.child.wait().expect("it ends").success());
}

#[test]
fn unusable_commands_are_answered_and_forwarding_continues() {
    let mut router = Forwarding::new(&["--control"]);
    let mut input = router.child.stdin.take().expect("a pipe");
    let mut output = BufReader::new(router.child.stdout.take().expect("a pipe")).lines();
    let mut answer = || -> RouterStats {
        let line = output.next().expect("a line").expect("text");
        assert!(line.len() < 20_000, "{} bytes", line.len());
        serde_json::from_str(&line).expect("statistics")
    };
    let text = std::fs::read_to_string(router.lab.path("r.toml")).expect("text");
    let setup: fwdlab_model::router::RouterSetup = toml::from_str(&text).expect("a set-up");
    writeln!(input, "{}", serde_json::to_string(&setup).expect("JSON")).expect("it listens");
    assert_eq!(answer().error, None);
    for (line, expected) in [
        (b"\xff\xfe stats".to_vec(), "utf-8"),
        (b"\0\x01".to_vec(), "expected stats"),
        (vec![b'x'; 5_000_000], "expected stats"),
        (vec![b'x'; 17 << 20], "more than"),
    ] {
        input.write_all(&[&line[..], b"\n"].concat()).expect("it listens");
        let error = answer().error.expect("an error");
        assert!(error.contains(expected), "{error}");
    }
    router.assert_forwards();
    writeln!(input, "stop").expect("it listens");
    assert_eq!(answer().received, 1);
    assert!(router.child.wait().expect("it ends").success());
}
