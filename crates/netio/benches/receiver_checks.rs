//! Cost of checking packets: alternates one receiver that checks only the stamp, everything, and
//! everything of a sample; with time stamps, also everything without a histogram of delays.
//!
//! `cargo bench -p fwdlab-netio --bench receiver_checks` (as root). One core sends and counts, as
//! in the closed arrangement: the ratio is the ratio of the upper limits. The ring of a packet
//! socket and the sink in memory count in user space: for them the benchmark measures the time for
//! a packet in the cache, and the total rate of the sink.

use fwdlab_netio::circuit::Circuit;
use fwdlab_netio::circuit::traffic::{Traffic, TrafficConfig};
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{NetNs, Receiver, Sender, SenderConfig, Watch, affinity, clock};
use fwdlab_packet::Flows;
use fwdlab_packet::arrivals::{Arrivals, Expected, Routes};
use fwdlab_packet::{Family, FrameWriter, Phase, Stream, Template};
use std::process::Command;

const PAIRS: usize = 10;
const MS: u64 = 1_000_000;
const FEW: Flows = Flows { sources: 20, destinations: 100 };
const MANY: Flows = Flows { sources: 1000, destinations: 1000 };
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn main() {
    // `cargo test --benches` only checks that this compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    // An argument that is not an option selects the labels that contain it.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let filter = filter.unwrap_or_default();
    if filter.is_empty() {
        in_user_space();
    }
    let names = ["g", "r"].map(|role| format!("fwdbench-{}-{role}", std::process::id()));
    let [g, r] = &names;
    sh(&format!(
        "ip netns add {g} && ip netns add {r} && \
         ip link add g0 address 02:00:00:00:00:01 netns {g} type veth \
            peer name r0 address 02:00:00:00:00:02 netns {r} && \
         ip -n {g} link set g0 addrgenmode none up && ip -n {r} link set r0 addrgenmode none up && \
         ip netns exec {r} ethtool -K r0 gro on"
    ));
    in_the_kernel(g, r, &filter);
    sh(&format!("ip netns delete {g}; ip netns delete {r}"));
}

fn expected(family: Family, size: u16, flows: Flows, timestamps: bool) -> Expected {
    let [from, to] = MACS;
    Expected {
        template: Template::new(&Stream::new(family, size, flows), 1, from, to),
        destination_mac: Some(to),
        source_mac: Some(from),
        translated: None,
        hops: 0,
        senders: 1,
        timestamps,
        same_clock: true,
        sampled: false,
    }
}

fn in_the_kernel(g: &str, r: &str, filter: &str) {
    let (near, far) = (NetNs::open(g).expect("ns"), NetNs::open(r).expect("ns"));
    for (label, expected) in [
        ("inet, 64 bytes, 2000 flows", expected(Family::Inet, 64, FEW, false)),
        ("inet6, 84 bytes, 2000 flows", expected(Family::Inet6, 84, FEW, false)),
        ("inet, 64 bytes, a million flows", expected(Family::Inet, 64, MANY, false)),
        ("inet, 1518 bytes, 2000 flows", expected(Family::Inet, 1518, FEW, false)),
        ("inet, 64 bytes, time stamps", expected(Family::Inet, 64, FEW, true)),
    ]
    .into_iter()
    .filter(|(label, _)| label.contains(filter))
    {
        // The stamp alone, everything, everything of a sample; each is first in turn.
        let sampled = Expected { sampled: true, ..expected.clone() };
        let mut watches = vec![
            ("stamp", Watch::Stamps { run_id: 1, flows: 2000 }),
            ("everything", Watch::Packets(Box::new(expected.clone()))),
            ("a sample", Watch::Packets(Box::new(sampled))),
        ];
        if expected.timestamps {
            let no_delays = Expected { same_clock: false, ..expected.clone() };
            watches.push(("no delays", Watch::Packets(Box::new(no_delays))));
        }
        let mut rates = vec![Vec::new(); watches.len()];
        for round in 0..PAIRS {
            for turn in 0..watches.len() {
                let index = (round + turn) % watches.len();
                rates[index].push(rate_of(&near, &far, &expected, &watches[index].1));
            }
        }
        let ratio = |index: usize| {
            let pairs = rates[index].iter().zip(&rates[0]);
            spread(&mut pairs.map(|(rate, stamp)| rate / stamp).collect::<Vec<f64>>(), 1.0)
        };
        println!("{label}");
        for (index, (name, _)) in watches.iter().enumerate() {
            let rate = spread(&mut rates[index].clone(), 1e6);
            println!("{name:>32} {rate} Mpps   ratio {}", ratio(index));
        }
    }
}

fn rate_of(near: &NetNs, far: &NetNs, expected: &Expected, watch: &Watch) -> f64 {
    let sink = XdpReceiver::new(far, "r0", watch, XdpMode::Driver).expect("sink");
    let config = SenderConfig {
        namespace: near.clone(),
        interface: "g0".into(),
        cpu: 0,
        number: 0,
        template: expected.template.clone(),
        rate_pps: None,
        limit: None,
        timestamps: expected.timestamps,
        batch: 64,
        burst: 64,
        spread: None,
        flood: None,
        yields: false,
    };
    let sender: Box<dyn Sender> = Box::new(XdpSender::new(&config).expect("sender"));
    // Only packets of the window have delays.
    sender.set_phase(Phase::Window);
    sender.start();
    let begin = clock::sleep_until(clock::monotonic_ns() + 200 * MS);
    let before = sink.received().total();
    let end = clock::sleep_until(begin + 500 * MS);
    let packets = sink.received().total() - before;
    sender.halt().expect("halt");
    assert!(sink.received().faults.iter().all(|&packets| packets == 0));
    packets as f64 * 1e9 / (end - begin) as f64
}

fn in_user_space() {
    for (label, family, size) in
        [("inet, 64 bytes", Family::Inet, 64), ("inet6, 84 bytes", Family::Inet6, 84)]
    {
        let expected = expected(family, size, FEW, false);
        let mut writer = FrameWriter::new(expected.template.clone(), 0);
        let length = writer.frame_length();
        let mut frames = vec![0; length << 15];
        for frame in frames.chunks_mut(length) {
            writer.prepare(frame);
            writer.write_next(frame, Phase::Window, 0);
        }
        let ns_per_packet = |mut arrivals: Arrivals| {
            let begin = clock::monotonic_ns();
            frames.chunks(length).for_each(|frame| arrivals.take(frame, length, 0));
            assert_eq!(arrivals.counts().total(), 1 << 15);
            (clock::monotonic_ns() - begin) as f64 / f64::from(1 << 15)
        };
        let (mut stamp_ns, mut all_ns) = (Vec::new(), Vec::new());
        for _ in 0..10 * PAIRS {
            stamp_ns.push(ns_per_packet(Arrivals::by_stamp(1, 2000)));
            all_ns.push(ns_per_packet(Arrivals::new(
                &expected,
                Routes::Everywhere { flows: 2000, senders: 1 },
            )));
        }
        println!(
            "{label:32} stamp {} ns   everything {} ns a packet in user space",
            spread(&mut stamp_ns, 1.0),
            spread(&mut all_ns, 1.0)
        );
        let mut rates: Vec<f64> = (0..PAIRS).map(|_| sink_in_memory(&expected)).collect();
        println!("{label:32} generator and sink in memory {} Mpps", spread(&mut rates, 1e6));
    }
}

/// Returns the packets per second from generator to sink without a router.
fn sink_in_memory(expected: &Expected) -> f64 {
    let circuits = [Circuit::new(32).expect("memory")];
    let cpus = affinity::allowed_cpus().expect("CPUs");
    let config = TrafficConfig {
        cpu: cpus[0],
        template: expected.template.clone(),
        wires: vec![0; 2000],
        rate_pps: None,
        timestamps: false,
        arriving: None,
        bypass: true,
        flood: None,
        back: None,
    };
    let traffic = Traffic::new(config, &circuits).expect("traffic");
    traffic.start();
    let begin = clock::sleep_until(clock::monotonic_ns() + 100 * MS);
    let before = traffic.received().total();
    let end = clock::sleep_until(begin + 300 * MS);
    (traffic.received().total() - before) as f64 * 1e9 / (end - begin) as f64
}

/// Formats `median (min to max)`.
fn spread(values: &mut [f64], unit: f64) -> String {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
    let at = |value: f64| value / unit;
    format!("{:.2} ({:.2} to {:.2})", at(median), at(values[0]), at(values[n - 1]))
}

fn sh(command: &str) {
    let status = Command::new("sh").arg("-c").arg(command).status();
    assert!(status.is_ok_and(|status| status.success()), "{command}");
}
