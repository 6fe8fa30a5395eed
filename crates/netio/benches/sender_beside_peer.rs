//! The lab's senders next to xdp-trafficgen, into the same sink, in one session.
//!
//! `cargo bench -p fwdlab-netio --bench sender_beside_peer` (as root; Debian's package `xdp-tools`
//! has the peer; the variable XDP_TRAFFICGEN names another build). One core generates and counts:
//! g0 in one namespace, r0 with an XDP program that counts and drops in another. Each pair is one
//! second of each, in alternating order; the ratio is computed within the pair.
//!
//! The lab's senders vary 2000 flows and write run id and sequence into every packet; the peer
//! varies 2000 destination ports and writes nothing.

use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{NetNs, Receiver, Sender, SenderConfig, clock, packet_socket, xsk};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stream, Template};
use std::process::{Child, Command, Stdio};

const PAIRS: usize = 10;
const SECOND: u64 = 1_000_000_000;

fn main() {
    // `cargo test --benches` only checks that this compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
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
    compare(g, r);
    sh(&format!("ip netns delete {g}; ip netns delete {r}"));
}

fn compare(g: &str, r: &str) {
    let (sender, receiver) = (NetNs::open(g).expect("ns"), NetNs::open(r).expect("ns"));
    let sink = XdpReceiver::new(
        &receiver,
        "r0",
        &fwdlab_netio::Watch::Stamps { run_id: 1, flows: 0 },
        XdpMode::Driver,
    )
    .expect("sink");
    let kinds: [(&str, Engine, Family, bool); 5] = [
        ("XDP live frames, inet, 64 bytes", Engine::Xdp, Family::Inet, false),
        ("XDP live frames, inet6, 84 bytes", Engine::Xdp, Family::Inet6, false),
        ("XDP live frames, inet, time stamps", Engine::Xdp, Family::Inet, true),
        ("AF_XDP, inet, 64 bytes", Engine::Xsk, Family::Inet, false),
        ("AF_PACKET, inet, 64 bytes", Engine::Packet, Family::Inet, false),
    ];
    for (label, engine, family, timestamps) in kinds {
        let (mut lab, mut peer, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            let run_lab = || lab_rate(&sender, &sink, engine, family, timestamps);
            let run_peer = || peer_rate(g, &sink);
            let (a, b) = if pair % 2 == 0 {
                let a = run_lab();
                (a, run_peer())
            } else {
                let b = run_peer();
                (run_lab(), b)
            };
            lab.push(a);
            peer.push(b);
            ratios.push(a / b);
        }
        println!(
            "{label:36} {} Mpps   xdp-trafficgen {} Mpps   ratio {}",
            spread(&mut lab, 1e6),
            spread(&mut peer, 1e6),
            spread(&mut ratios, 1.0)
        );
    }
}

#[derive(Clone, Copy)]
enum Engine {
    Xdp,
    Xsk,
    Packet,
}

fn lab_rate(
    namespace: &NetNs,
    sink: &XdpReceiver,
    engine: Engine,
    family: Family,
    timestamps: bool,
) -> f64 {
    let flows = Flows { sources: 20, destinations: 100 };
    let size = Template::smallest_frame(family);
    let config = SenderConfig {
        namespace: namespace.clone(),
        interface: "g0".into(),
        cpu: 0,
        number: 0,
        template: Template::new(
            &Stream::new(family, size, flows),
            1,
            [2, 0, 0, 0, 0, 1],
            [2, 0, 0, 0, 0, 2],
        ),
        rate_pps: None,
        limit: None,
        burst: 64,
        spread: None,
        flood: None,
        yields: false,
        timestamps,
        batch: 64,
    };
    let sender: Box<dyn Sender> = match engine {
        Engine::Xdp => Box::new(XdpSender::new(&config).expect("XDP sender")),
        Engine::Xsk => Box::new(xsk::sender(&config).expect("AF_XDP sender")),
        Engine::Packet => Box::new(packet_socket::sender(&config).expect("AF_PACKET sender")),
    };
    sender.start();
    let rate = rate(|| sink.received().total());
    sender.halt().expect("halt");
    rate
}

fn peer_rate(g: &str, sink: &XdpReceiver) -> f64 {
    let program = std::env::var("XDP_TRAFFICGEN").unwrap_or_else(|_| "xdp-trafficgen".into());
    let mut peer: Child = Command::new("ip")
        .args(["netns", "exec", g, "taskset", "-c", "0", &program, "udp", "g0"])
        .args(["-m", "02:00:00:00:00:02", "-d", "2000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("xdp-trafficgen (apt-get install xdp-tools)");
    let rate = rate(|| sink.received().unstamped + sink.received().others);
    sh(&format!("kill -INT {}", peer.id()));
    peer.wait().expect("the peer ends");
    rate
}

/// Returns the packets per second over one second that begins 300 ms from now.
fn rate(count: impl Fn() -> u64) -> f64 {
    let begin = clock::sleep_until(clock::monotonic_ns() + 3 * SECOND / 10);
    let before = count();
    let end = clock::sleep_until(begin + SECOND);
    (count() - before) as f64 * 1e9 / (end - begin) as f64
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
