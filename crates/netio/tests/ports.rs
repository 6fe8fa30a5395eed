//! Frames received and sent by ports, byte for byte, over real interfaces.

mod common;

use common::{DESTINATION, NUMBER, Pair, SOURCE, drain, numbered, send_raw, sh, wait_for_packets};
use fwdlab_netio::packet_socket::{self, PacketConfig, PacketPort};
use fwdlab_netio::port::Sent;
use fwdlab_netio::xdp::{XdpMode, XdpSender};
use fwdlab_netio::xsk::{self, Bind, XskConfig, XskPort, XskProgram};
use fwdlab_netio::{Batch, NetNs, NetioError, Port, Sender, SenderConfig, clock};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stamp, Stream, Template};
use std::collections::HashSet;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const RUN_ID: u32 = 0x1234_5678;
/// A number that no port has.
const OTHER: u8 = 6;

/// One pair of namespaces at a time; CPUs are scarce.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    XskDriver,
    XskGeneric,
    Packet,
}

const KINDS: [Kind; 3] = [Kind::XskDriver, Kind::XskGeneric, Kind::Packet];

/// Opens a port on each queue of an interface, or that many packet sockets in one group.
fn open(kind: Kind, namespace: &NetNs, interface: &'static str, queues: u32) -> Vec<Box<dyn Port>> {
    let opened = namespace.run(move || {
        let mode = match kind {
            Kind::Packet => {
                let fanout = (queues > 1).then_some(77);
                let config = PacketConfig { interface: interface.into(), number: NUMBER, fanout };
                let open = |_| Ok(Box::new(PacketPort::open(&config)?) as Box<dyn Port>);
                return (0..queues).map(open).collect();
            }
            Kind::XskDriver => XdpMode::Driver,
            Kind::XskGeneric => XdpMode::Generic,
        };
        let program = XskProgram::attach(interface, queues, Some(mode))?;
        assert_eq!((program.mode(), program.queues()), (mode, queues));
        let open = |queue| {
            let config = XskConfig { queue, number: NUMBER, bind: Bind::Auto };
            let port = XskPort::open(&config, &program)?;
            assert!(!port.is_zero_copy()?, "a veth has no memory of its own");
            Ok(Box::new(port) as Box<dyn Port>)
        };
        (0..queues).map(open).collect()
    });
    opened.unwrap_or_else(|error: NetioError| panic!("{kind:?}: {error}"))
}

/// Sends frames through a port, in batches with frames for other ports.
fn send_all(port: &mut dyn Port, frames: &[Vec<u8>]) -> Sent {
    let (mut batch, mut total) = (Batch::new(), Sent::default());
    for chunk in frames.chunks(48) {
        let buffers = batch.fill(chunk.len() + 2);
        for (buffer, bytes) in buffers.iter_mut().zip(chunk) {
            buffer.receive(0, bytes).expect("it fits");
            buffer.send_to(NUMBER);
        }
        for (buffer, egress) in buffers[chunk.len()..].iter_mut().zip([Some(OTHER), None]) {
            buffer.receive(0, &numbered(64, 0xffff)).expect("it fits");
            egress.into_iter().for_each(|port| buffer.send_to(port));
        }
        let before: Vec<Vec<u8>> = batch.frames().iter().map(|f| f.whole().to_vec()).collect();
        let sent = port.send(&mut batch).expect("sending");
        let after: Vec<Vec<u8>> = batch.frames().iter().map(|f| f.whole().to_vec()).collect();
        assert!(before == after, "a batch with other frames stays as it is");
        total.sent += sent.sent;
        total.lost += sent.lost;
        // Limits the frames in flight to the size of the receivers' rings.
        clock::sleep_until(clock::monotonic_ns() + 200_000);
    }
    total
}

#[test]
fn ports_receive_sent_frames() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 3, destinations: 5 };
    for kind in KINDS {
        let mut ports = open(kind, &pair.receiver, "r0", 1);
        for (engine, family, size) in [
            ("xdp", Family::Inet, 64),
            ("xsk", Family::Inet, 128),
            ("packet", Family::Inet6, 1518),
            ("xsk", Family::Inet6, 84),
        ] {
            let template =
                Template::new(&Stream::new(family, size, flows), RUN_ID, SOURCE, DESTINATION);
            let config = SenderConfig {
                namespace: pair.sender.clone(),
                interface: "g0".into(),
                cpu: fwdlab_netio::affinity::allowed_cpus().expect("CPUs")[0],
                number: 3,
                template: template.clone(),
                rate_pps: Some(5_000.0),
                limit: None,
                burst: 64,
                spread: None,
                flood: None,
                yields: false,
                timestamps: true,
                batch: 64,
            };
            let sender: Box<dyn Sender> = match engine {
                "xdp" => Box::new(XdpSender::new(&config).expect("sender")),
                "xsk" => Box::new(xsk::sender(&config).expect("sender")),
                _ => Box::new(packet_socket::sender(&config).expect("sender")),
            };
            let context = format!("{kind:?} from {engine} {family:?} {size}");
            sender.start();
            wait_for_packets(&*sender);
            let sent: u64 = sender.halt().expect("halt").iter().sum();
            let frames = drain(&mut *ports[0]);
            let mut sequences = HashSet::new();
            for frame in &frames {
                let stamp = Stamp::parse_frame(frame).expect(&context);
                let (source, destination) = (stamp.flow / 5, stamp.flow % 5);
                assert_eq!(*frame, template.frame(source, destination, &stamp), "{context}");
                sequences.insert(stamp.sequence);
            }
            assert_eq!(
                (frames.len(), sequences.len()),
                (sent as usize, sent as usize),
                "{context}"
            );
            assert!(sent >= 200, "{context}: only {sent}");
            assert_eq!(ports[0].missed(), 0, "{context}");
        }
    }
}

#[test]
fn port_sends_frames_in_order() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let lengths = [60, 61, 64, 128, 777, 1514].into_iter().cycle();
    let frames: Vec<Vec<u8>> =
        lengths.zip(0..6000).map(|(length, number)| numbered(length, number)).collect();
    for kind in KINDS {
        let mut read = pair.capture();
        let mut ports = open(kind, &pair.sender, "g0", 1);
        let sent = send_all(&mut *ports[0], &frames);
        assert_eq!(sent, Sent { sent: frames.len() as u64, lost: 0 }, "{kind:?}");
        clock::sleep_until(clock::monotonic_ns() + 20_000_000);
        let arrived: Vec<Vec<u8>> = std::iter::from_fn(&mut read).collect();
        assert_eq!(arrived.len(), frames.len(), "{kind:?}");
        assert!(arrived == frames, "{kind:?}: other bytes, or another order");
        assert_eq!(ports[0].receive(&mut Batch::new()).expect("receiving"), 0, "{kind:?}");
    }
}

#[test]
fn each_queue_delivers_to_its_port() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::with_queues(2) else { return };
    // Behind a generic hook, all of a veth's frames belong to queue 0.
    let mut left = open(Kind::XskDriver, &pair.sender, "g0", 2);
    let mut right = open(Kind::XskDriver, &pair.receiver, "r0", 2);
    for queue in [1, 0] {
        let frames: Vec<Vec<u8>> = (0..100).map(|n| numbered(100 + queue, n)).collect();
        assert_eq!(send_all(&mut *left[queue], &frames), Sent { sent: 100, lost: 0 });
        assert!(drain(&mut *right[queue]) == frames, "queue {queue}");
        assert!(drain(&mut *right[1 - queue]).is_empty(), "queue {queue}");
    }
}

#[test]
fn queue_without_port_drops_and_counts() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::with_queues(2) else { return };
    let opened = pair.receiver.run(|| {
        let program = XskProgram::attach("r0", 2, None)?;
        let config = XskConfig { queue: 0, number: NUMBER, bind: Bind::Copy };
        let zero_copy = XskConfig { bind: Bind::ZeroCopy, ..config.clone() };
        assert!(XskPort::open(&zero_copy, &program).is_err(), "a veth can't do without copying");
        Ok((XskPort::open(&config, &program)?, program))
    });
    let (mut port, program) = opened.expect("port");
    let mut left = open(Kind::XskDriver, &pair.sender, "g0", 2);
    let frames: Vec<Vec<u8>> = (0..30).map(|n| numbered(100, n)).collect();
    send_all(&mut *left[1], &frames);
    assert_eq!((drain(&mut port).len(), program.unserved()), (0, 30));
    send_all(&mut *left[0], &frames);
    assert_eq!((drain(&mut port).len(), program.unserved()), (30, 30));
    // The program is detached with its last user.
    let attached = || sh(&format!("ip -n {} link show r0 | grep -q xdp", pair.receiver.name()));
    drop(program);
    assert!(attached());
    drop(port);
    assert!(!attached());
}

#[test]
fn fanout_group_shares_flows() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let mut ports = open(Kind::Packet, &pair.receiver, "r0", 2);
    let mut left = open(Kind::Packet, &pair.sender, "g0", 1);
    let flows = Flows { sources: 20, destinations: 20 };
    let template =
        Template::new(&Stream::new(Family::Inet, 64, flows), RUN_ID, SOURCE, DESTINATION);
    let stamp = |flow, sequence| Stamp { flow, sequence, ..some_stamp() };
    let frames: Vec<Vec<u8>> =
        (0..1200).map(|n| template.frame(n % 400 / 20, n % 20, &stamp(n % 400, n))).collect();
    assert_eq!(send_all(&mut *left[0], &frames).lost, 0);
    let flows_of = |frames: &[Vec<u8>]| -> HashSet<u32> {
        frames.iter().filter_map(|frame| Stamp::parse_frame(frame)).map(|s| s.flow).collect()
    };
    let [first, second] = [0, 1].map(|port| drain(&mut *ports[port]));
    assert_eq!(first.len() + second.len(), frames.len());
    assert_eq!(flows_of(&first).intersection(&flows_of(&second)).count(), 0);
    // 400 flows, spread by a hash with an unknown seed.
    assert!(flows_of(&first).len().min(flows_of(&second).len()) > 50);
}

fn some_stamp() -> Stamp {
    Stamp { run_id: RUN_ID, sender: 1, phase: 0, flow: 0, sequence: 0, time_ns: 1 }
}

#[test]
fn ports_keep_tags_and_count_long_frames() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let enlarge_mtu = |namespace: &NetNs, interface: &str| {
        sh(&format!("ip -n {} link set {interface} mtu 3000", namespace.name()))
    };
    assert!(enlarge_mtu(&pair.sender, "g0") && enlarge_mtu(&pair.receiver, "r0"));
    let mut tagged = numbered(200, 1);
    tagged.splice(12..12, [0x81, 0, 0x60, 7]);
    let mut double_tagged = numbered(300, 2);
    double_tagged.splice(12..12, [0x88, 0xa8, 0, 9, 0x81, 0, 0x60, 7]);
    let long = numbered(fwdlab_netio::frame::CAPACITY, 3);
    let expected = [tagged, double_tagged, long];
    for kind in KINDS {
        let mut ports = open(kind, &pair.receiver, "r0", 1);
        let mut left = open(Kind::Packet, &pair.sender, "g0", 1);
        assert_eq!(send_all(&mut *left[0], &expected), Sent { sent: 3, lost: 0 }, "{kind:?}");
        for length in [1593, 1792, 1793, 2048, 2900] {
            send_raw(&pair, &numbered(length, 4), None);
        }
        assert!(drain(&mut *ports[0]) == expected, "{kind:?}");
        assert_eq!((ports[0].missed(), ports[0].missed()), (5, 5), "{kind:?}");
    }
    // A port with a larger MTU receives and sends such frames.
    let open_for = |namespace: &NetNs, interface: &str| {
        let config = PacketConfig { interface: interface.into(), number: NUMBER, fanout: None };
        namespace.run(move || PacketPort::open_for(&config, 3000)).expect("a port")
    };
    let mut port = open_for(&pair.receiver, "r0");
    let mut left = open_for(&pair.sender, "g0");
    let frames = [1592, 1593, 3000, 3014].map(|length| numbered(length, 5));
    assert_eq!(send_all(&mut left, &frames), Sent { sent: 4, lost: 0 });
    assert!(drain(&mut port) == frames);
    assert_eq!(port.missed(), 0);
}

#[test]
fn send_loses_only_invalid_frames() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let frames = [numbered(60, 1), vec![0; 13], numbered(60, 2), Vec::new(), numbered(60, 3)];
    for kind in KINDS {
        let mut read = pair.capture();
        let mut ports = open(kind, &pair.sender, "g0", 1);
        assert_eq!(send_all(&mut *ports[0], &frames), Sent { sent: 3, lost: 2 }, "{kind:?}");
        let arrived: Vec<Vec<u8>> = std::iter::from_fn(&mut read).collect();
        assert_eq!(arrived, [1, 2, 3].map(|number| numbered(60, number)), "{kind:?}");
    }
}

#[test]
fn full_ring_is_counted_and_wait_times_out() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let frames: Vec<Vec<u8>> = (0..6000).map(|n| numbered(60, n)).collect();
    for kind in KINDS {
        let mut ports = open(kind, &pair.receiver, "r0", 1);
        let begin = clock::monotonic_ns();
        ports[0].wait(Duration::from_millis(20)).expect("waiting");
        let waited = clock::monotonic_ns() - begin;
        assert!(waited >= 20_000_000, "{kind:?}: waited {waited} ns for nothing");
        let mut left = open(Kind::Packet, &pair.sender, "g0", 1);
        assert_eq!(send_all(&mut *left[0], &frames).lost, 0, "{kind:?}");
        let begin = clock::monotonic_ns();
        ports[0].wait(Duration::from_secs(60)).expect("waiting");
        assert!(clock::monotonic_ns() - begin < 30_000_000_000, "{kind:?}");
        let (received, missed) = (drain(&mut *ports[0]).len() as u64, ports[0].missed());
        assert_eq!(received + missed, 6000, "{kind:?}: {received} received, {missed} missed");
        assert!(received >= 2000 && missed > 1000, "{kind:?}: {received}, {missed}");
        // The ring has room again.
        send_all(&mut *left[0], &frames[..100]);
        assert!(drain(&mut *ports[0]) == frames[..100], "{kind:?}");
    }
}

#[test]
fn interface_down_loses_frames_and_removal_is_an_error() {
    let _guard = ONE_AT_A_TIME.lock();
    let frames: Vec<Vec<u8>> = (0..3000).map(|n| numbered(60, n)).collect();
    for kind in KINDS {
        let Some(pair) = Pair::new() else { return };
        let change_link =
            |arguments: &str| sh(&format!("ip -n {} link {arguments}", pair.sender.name()));
        let mut ports = open(kind, &pair.sender, "g0", 1);
        let port = &mut *ports[0];
        let mut right = open(Kind::Packet, &pair.receiver, "r0", 1);
        assert!(change_link("set g0 down"));
        let sent = send_all(port, &frames);
        // AF_XDP's memory holds 2048 frames until the interface is up again.
        let held = if kind == Kind::Packet { 0 } else { 2048 };
        assert_eq!(sent, Sent { sent: held, lost: 3000 - held }, "{kind:?}");
        port.wait(Duration::from_millis(1)).expect("it may come back");
        assert_eq!(port.receive(&mut Batch::new()).expect("it may come back"), 0);
        assert!(change_link("set g0 up"));
        for _ in 0..100 {
            port.wait(Duration::from_millis(1)).expect("waiting");
        }
        assert!(drain(&mut *right[0]) == frames[..held as usize], "{kind:?}");
        assert_eq!(send_all(port, &frames[..50]), Sent { sent: 50, lost: 0 }, "{kind:?}");
        assert!(drain(&mut *right[0]) == frames[..50], "{kind:?}");
        assert!(change_link("delete g0"));
        assert!(port.wait(Duration::from_millis(1)).is_err(), "{kind:?}: the interface is gone");
    }
}

/// Set in the process that [`packet_ports_work_for_ordinary_users`] starts.
const INSIDE: &str = "FWDLAB_TEST_IN_USER_NAMESPACE";

#[test]
fn packet_ports_work_for_ordinary_users() {
    if std::env::var_os(INSIDE).is_some() {
        assert!(sh("ip link add a0 type veth peer name b0 && \
                    ip link set a0 addrgenmode none up && ip link set b0 addrgenmode none up"));
        let config = |interface: &str| PacketConfig {
            interface: interface.into(),
            number: NUMBER,
            fanout: None,
        };
        let mut left = PacketPort::open(&config("a0")).expect("a port");
        let mut right = PacketPort::open(&config("b0")).expect("a port");
        let frames: Vec<Vec<u8>> = (0..500).map(|n| numbered(60, n)).collect();
        assert_eq!(send_all(&mut left, &frames), Sent { sent: 500, lost: 0 });
        assert!(drain(&mut right) == frames);
        assert!(drain(&mut left).is_empty(), "what it sent itself");
        assert!(sh("ip link delete a0"));
        assert!(right.wait(Duration::from_millis(1)).is_err(), "the interface is gone");
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let probe = Command::new("unshare").args(["-Urn", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        return fwdlab_testdata::skip("user namespaces can't be made here");
    }
    let status = Command::new("unshare")
        .arg("-Urn")
        .arg(program)
        .args(["--exact", "packet_ports_work_for_ordinary_users", "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(status.is_ok_and(|status| status.success()), "inside the user namespace");
}
