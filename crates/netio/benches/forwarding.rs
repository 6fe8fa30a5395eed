//! Maximum rate of a router's ports: a loop that exchanges MAC addresses.
//!
//! `cargo bench -p fwdlab-netio --bench forwarding` (as root). CPU 0 sends frames of 64 bytes as
//! XDP live frames. They cross the loop on CPU 1, and an XDP program counts them; g0 - d0, loop, d1
//! - r0, all veth. The sender offers more than the loop can forward.

use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::xsk::{Bind, XskConfig, XskPort, XskProgram};
use fwdlab_netio::{Batch, NetNs, NetioError, Port, Receiver, Sender, SenderConfig, clock};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stream, Template};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: usize = 5;
const SECOND: u64 = 1_000_000_000;

fn main() {
    // `cargo test --benches` only checks that this compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let names = ["g", "d", "r"].map(|role| format!("fwdbench-{}-{role}", std::process::id()));
    let [g, d, r] = &names;
    sh(&format!(
        "ip netns add {g} && ip netns add {d} && ip netns add {r} && \
         ip link add g0 netns {g} type veth peer name d0 netns {d} && \
         ip link add r0 netns {r} type veth peer name d1 netns {d} && \
         for end in {g}/g0 {d}/d0 {d}/d1 {r}/r0; do \
            ip -n ${{end%/*}} link set ${{end#*/}} addrgenmode none up; \
            ip netns exec ${{end%/*}} ethtool -K ${{end#*/}} gro on; done"
    ));
    let [g, d, r] = [g, d, r].map(|name| NetNs::open(name).expect("a namespace"));
    let sink = XdpReceiver::new(
        &r,
        "r0",
        &fwdlab_netio::Watch::Stamps { run_id: 1, flows: 0 },
        XdpMode::Driver,
    )
    .expect("a sink");
    for (label, kind) in [
        ("AF_XDP, program in the driver", Kind::Xsk(XdpMode::Driver)),
        ("AF_XDP, generic program", Kind::Xsk(XdpMode::Generic)),
        ("AF_PACKET", Kind::Packet),
    ] {
        let mut rates: Vec<f64> =
            (0..ROUNDS).map(|_| forward_for_a_second(&g, &d, &sink, kind) / 1e6).collect();
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{label:32} {median:.2} Mpps ({least:.2} to {most:.2})");
    }
    names.iter().for_each(|name| sh(&format!("ip netns delete {name}")));
}

#[derive(Clone, Copy)]
enum Kind {
    Xsk(XdpMode),
    Packet,
}

/// Opens both ports, numbers 0 and 1.
fn open(kind: Kind) -> Result<Vec<Box<dyn Port>>, NetioError> {
    let open = |(interface, number): (&str, u8)| -> Result<Box<dyn Port>, NetioError> {
        Ok(match kind {
            Kind::Xsk(mode) => {
                let program = XskProgram::attach(interface, 1, Some(mode))?;
                let config = XskConfig { queue: 0, number, bind: Bind::Auto };
                Box::new(XskPort::open(&config, &program)?)
            }
            Kind::Packet => {
                let config = PacketConfig { interface: interface.into(), number, fanout: None };
                Box::new(PacketPort::open(&config)?)
            }
        })
    };
    [("d0", 0), ("d1", 1)].into_iter().map(open).collect()
}

/// Returns the packets per second at the sink.
fn forward_for_a_second(g: &NetNs, d: &NetNs, sink: &XdpReceiver, kind: Kind) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let thread_stop = stop.clone();
    let router = d.spawn("router", &[1], move || {
        let mut ports = open(kind)?;
        let mut batch = Batch::new();
        while !thread_stop.load(Ordering::Relaxed) {
            if ports[0].receive(&mut batch)? == 0 {
                ports[0].wait(Duration::from_millis(1))?;
                continue;
            }
            for frame in batch.frames_mut() {
                let (destination, rest) = frame.buffer_mut().split_at_mut(6);
                destination.swap_with_slice(&mut rest[..6]);
                frame.send_to(1);
            }
            ports[1].send(&mut batch)?;
        }
        Ok(ports[0].missed())
    });
    let flows = Flows { sources: 20, destinations: 100 };
    let template = Template::new(
        &Stream::new(Family::Inet, 64, flows),
        1,
        [2, 0, 0, 0, 0, 1],
        [2, 0, 0, 0, 0, 2],
    );
    let sender = XdpSender::new(&SenderConfig {
        namespace: g.clone(),
        interface: "g0".into(),
        cpu: 0,
        number: 0,
        template,
        rate_pps: None,
        limit: None,
        burst: 64,
        spread: None,
        flood: None,
        yields: false,
        timestamps: false,
        batch: 64,
    });
    let sender: Box<dyn Sender> = Box::new(sender.expect("a sender"));
    sender.start();
    let begin = clock::sleep_until(clock::monotonic_ns() + SECOND / 3);
    let before = sink.received().total();
    let end = clock::sleep_until(begin + SECOND);
    let forwarded = sink.received().total() - before;
    sender.halt().expect("halt");
    stop.store(true, Ordering::Relaxed);
    let router = router.expect("a thread").join().expect("no panic");
    router.expect("ports");
    forwarded as f64 * SECOND as f64 / (end - begin) as f64
}

fn sh(command: &str) {
    let status = Command::new("sh").arg("-c").arg(command).status();
    assert!(status.is_ok_and(|status| status.success()), "{command}");
}
