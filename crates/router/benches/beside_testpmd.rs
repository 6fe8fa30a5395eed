//! Compares the router with DPDK's testpmd in its mode `csum`, on one core, in one session.
//!
//! `cargo bench -p fwdlab-router --bench beside_testpmd` (Debian's package `dpdk-dev` contains the
//! peer, `dpdk-testpmd`; no huge pages, no NIC, no privileges). Ports are in memory on both sides.
//! Two set-ups are compared, each with 2 and with 1,000,000 routes in our router:
//!
//! - whole: one core copies each of the same 2000 UDP packets into a buffer, forwards it and
//!   discards it. The peer's port replays the packets from a capture file (`net_pcap` with
//!   `infinite_rx`, which reads the file once and copies from memory) and frees the packets that
//!   are sent to it. Ours is generator, router, sink.
//! - rings: no copies; packets move from ring to ring. The peer's two ports (`net_ring`) return the
//!   packets that were sent to them, so the packets that `start tx_first` created circulate
//!   forever. Ours is the router alone between two rings, with the same number of packets in
//!   flight.
//!
//! `csum` reads Ethernet, IPv4 and UDP headers, writes both MACs and recomputes the header checksum
//! in software (`csum set ip sw`); packets have no UDP checksum, so testpmd need not compute it. It
//! does no lookup, verifies neither checksum nor addresses, and leaves the TTL unchanged; ours does
//! all of that.
//!
//! A pair is one second of each, in alternating order; the ratio is taken within the pair. The peer
//! is stopped while ours is measured, and its rate is the one it reports (`show port stats`)
//! between two readings. The commands are
//!
//! ```text
//! dpdk-testpmd --no-huge -m 512 --no-pci --no-telemetry --no-shconf --lcores 0@A,1@B \
//!     --vdev=net_pcap0,rx_pcap=FILE,infinite_rx=1 -- --total-num-mbufs=32768 \
//!     --port-topology=loop -i --nb-cores=1 --disable-device-start
//! dpdk-testpmd ... --vdev=net_ring0 --vdev=net_ring1 -- --total-num-mbufs=8192 \
//!     -i --nb-cores=1 --disable-device-start
//! ```
//!
//! then `csum set ip sw N` and `csum set udp sw N` of each port, `port start all`, `set fwd csum`,
//! and for each round `start` (with rings, `set txpkts 60` before and `start tx_first 2`: two
//! bursts of 32 at each port), `show port stats all` twice, `stop`. `stdbuf -oL` makes each line
//! readable as soon as it is printed. B is the CPU that our own rounds run on, A another one if
//! available.

use fwdlab_netio::affinity;
use fwdlab_packet::Family;
use fwdlab_router::bench::route::{Lab, Tables, Traffic, Variant};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

const PAIRS: usize = 12;
const ROUND: Duration = Duration::from_secs(1);
/// Warm-up of each peer round, whose first packets meet cold caches.
const WARM_UP: Duration = Duration::from_millis(200);
const FLOWS: u32 = 2000;

fn main() {
    // `cargo test --benches` only checks that this compiles.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    if Command::new(program()).arg("--version").output().is_err() {
        println!("SKIPPED: no dpdk-testpmd (apt-get install dpdk-dev)");
        return;
    }
    let pairs = env::args().find_map(|word| word.parse().ok()).unwrap_or(PAIRS).max(1);
    let cpus = affinity::allowed_cpus().expect("CPUs");
    let (a, b) = (cpus[0], cpus[cpus.len() - 1]);
    // Start testpmd before pinning, while this process may use all CPUs: testpmd inherits the mask.
    let traffic = Traffic::new(Family::Inet, None, FLOWS).expect("a size");
    let traffic = Arc::new(traffic.without_udp_checksum());
    let capture = Capture::of(&traffic);
    let mut peers = [
        (Kind::Whole, Peer::new(Kind::Whole, capture.path(), [a, b])),
        (Kind::Rings, Peer::new(Kind::Rings, capture.path(), [a, b])),
    ];
    affinity::pin_thread(&[b]).expect("a CPU that is allowed");
    let mut tables = Tables::new(1);
    println!("million packets a second, {pairs} pairs: median (min to max); load {}", load());
    for routes in [2, 1_000_000] {
        let variant = Variant { routes, ..Variant::plain(Family::Inet) };
        let lab = Lab::new(&variant, &mut tables, Arc::clone(&traffic));
        let mut lab = lab.expect("a lab");
        lab.all_flows();
        for (kind, peer) in &mut peers {
            compare(*kind, &variant.name(), pairs, &mut lab, peer);
        }
        lab.check().expect("every packet is forwarded");
    }
    println!("load {}", load());
    affinity::pin_thread(&cpus).expect("CPUs that were allowed");
}

/// Set-up to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Rings,
}

fn compare(kind: Kind, name: &str, pairs: usize, lab: &mut Lab, peer: &mut Peer) {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut measure_ours = || match kind {
        Kind::Whole => lab.whole(ROUND),
        Kind::Rings => lab.alone(ROUND),
    };
    for pair in 0..pairs {
        let (a, b) = if pair % 2 == 0 {
            let a = measure_ours();
            (a, peer.round())
        } else {
            let b = peer.round();
            (measure_ours(), b)
        };
        ours.push(a);
        theirs.push(b);
        ratios.push(a / b);
    }
    let of_medians = spread(&ours)[1] / spread(&theirs)[1];
    let kind = match kind {
        Kind::Whole => "whole",
        Kind::Rings => "rings",
    };
    println!(
        "{kind}, {name}: ours {}, testpmd {}; ratio of medians {of_medians:.2}, of pairs {}",
        shown(&ours, 1e6),
        shown(&theirs, 1e6),
        shown(&ratios, 1.0),
    );
}

/// A testpmd process that waits for commands.
struct Peer {
    kind: Kind,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts testpmd with its commands on the first CPU and its forwarding on the second.
    fn new(kind: Kind, capture: &Path, [commands, forwarding]: [u16; 2]) -> Peer {
        // Without line buffering, output arrives in blocks of 4096 bytes.
        let mut command = Command::new("stdbuf");
        command.arg("-oL").arg(program());
        command.args(["--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--no-shconf"]);
        command.arg("--lcores").arg(format!("0@{commands},1@{forwarding}"));
        let ports = match kind {
            Kind::Whole => {
                let file = capture.display();
                command.arg(format!("--vdev=net_pcap0,rx_pcap={file},infinite_rx=1"));
                command.args(["--", "--total-num-mbufs=32768", "--port-topology=loop"]);
                1
            }
            Kind::Rings => {
                command.args(["--vdev=net_ring0", "--vdev=net_ring1"]);
                command.args(["--", "--total-num-mbufs=8192"]);
                2
            }
        };
        command.args(["-i", "--nb-cores=1", "--disable-device-start"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("testpmd starts");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut peer = Peer { kind, child, input, output };
        for port in 0..ports {
            peer.send(&format!("csum set ip sw {port}"));
            peer.send(&format!("csum set udp sw {port}"));
        }
        peer.send("port start all");
        peer.send("set fwd csum");
        if kind == Kind::Rings {
            peer.send("set txpkts 60");
        }
        peer
    }

    /// Returns the packets per second that testpmd sends, summed over its ports.
    fn round(&mut self) -> f64 {
        self.send(match self.kind {
            Kind::Whole => "start",
            Kind::Rings => "start tx_first 2",
        });
        thread::sleep(WARM_UP);
        self.rates();
        thread::sleep(ROUND);
        let rates = self.rates();
        self.send("stop");
        self.read_until("Done.");
        let rate = rates.iter().sum();
        assert!(rate > 0.0, "testpmd forwards nothing");
        rate
    }

    /// Packets per second of each port since the previous reading.
    fn rates(&mut self) -> Vec<f64> {
        self.send("show port stats all");
        let ports = match self.kind {
            Kind::Whole => 1,
            Kind::Rings => 2,
        };
        let rate = |_| {
            let line = self.read_until("Tx-pps:");
            let (_, rest) = line.split_once("Tx-pps:").expect("it was looked for");
            let word = rest.split_whitespace().next().expect("a word");
            word.parse().expect("a number")
        };
        (0..ports).map(rate).collect()
    }

    fn send(&mut self, command: &str) {
        writeln!(self.input, "{command}").expect("testpmd listens");
        self.input.flush().expect("testpmd listens");
    }

    fn read_until(&mut self, text: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.output.read_line(&mut line).expect("testpmd's text");
            assert!(length > 0, "testpmd ended before it said {text}");
            let idle = line.contains("not started") || line.contains("Not all ports were started");
            assert!(!idle, "testpmd doesn't forward: {line}");
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = writeln!(self.input, "quit");
        // testpmd exits at end of input, unless its output is blocked.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The traffic as a capture file, deleted on drop.
struct Capture(PathBuf);

impl Capture {
    fn of(traffic: &Traffic) -> Capture {
        let path = env::temp_dir().join(format!("beside-testpmd-{}.pcap", std::process::id()));
        let mut bytes = Vec::new();
        // Magic number, version 2.4, zone offset and accuracy 0, no snap limit, Ethernet.
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        for frame in traffic.frames() {
            let length = frame.len() as u32;
            for word in [0, 0, length, length] {
                bytes.extend(u32::to_ne_bytes(word));
            }
            bytes.extend(frame);
        }
        fs::write(&path, bytes).expect("a capture file");
        Capture(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// testpmd, or the build that the variable `DPDK_TESTPMD` names.
fn program() -> String {
    env::var("DPDK_TESTPMD").unwrap_or_else(|_| "dpdk-testpmd".into())
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

/// Formats values as `median (min to max)`.
fn shown(values: &[f64], unit: f64) -> String {
    let [low, median, high] = spread(values).map(|value| value / unit);
    format!("{median:.2} ({low:.2} to {high:.2})")
}

/// Minimum, median and maximum.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    [sorted[0], (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0, sorted[n - 1]]
}
