//! A forwarder that injects faults, in front of every kind of receiver: receivers report each fault
//! by name with the correct count, and intact traffic raises no faults.

mod common;

use common::Pair;
use common::forwarder::{BATCH, BATCHES, FROM, Forwarder, TO, Wrong};
use fwdlab_netio::circuit::traffic::{Traffic, TrafficConfig};
use fwdlab_netio::circuit::{Circuit, FAR};
use fwdlab_netio::packet_socket::PacketReceiver;
use fwdlab_netio::tap::inflict;
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{Frame, Received, Receiver, Sender, SenderConfig, Watch, affinity, clock};
use fwdlab_packet::Flows;
use fwdlab_packet::arrivals::{CHECKED_ONE_IN, Expected, FAULTS, FIRST_CHECKED, Fault};
use fwdlab_packet::injection::Damage;
use fwdlab_packet::{Family, FrameSize, FrameWriter, Phase, Stream, Template};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const RUN_ID: u32 = 0x1234_5678;
const FLOWS: Flows = Flows { sources: 4, destinations: 4 };

/// One pair of namespaces at a time; CPUs are scarce.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn expected(family: Family, size: impl Into<FrameSize>, timestamps: bool) -> Expected {
    Expected {
        template: Template::new(&Stream::new(family, size, FLOWS), RUN_ID, [2; 6], [6; 6]),
        destination_mac: Some(TO),
        source_mac: Some(FROM),
        translated: None,
        hops: 1,
        senders: 1,
        timestamps,
        same_clock: true,
        sampled: false,
    }
}

/// Final counters of a receiver, and numbers of packets sent and tampered with.
struct Outcome {
    sent: u64,
    done: u64,
    received: Received,
    flows_lost: u32,
}

fn outcome(receiver: &dyn Receiver, sent: u64, done: u64) -> Outcome {
    let flows = receiver.flows().expect("flows are followed");
    let flows_lost = if flows.lacks_flows() { flows.sent - flows.seen } else { 0 };
    Outcome { sent, done, received: receiver.received(), flows_lost }
}

/// Returns batches of frames after the forwarder, in order, without lost ones.
fn forwarded(expected: &Expected, forwarder: &mut Forwarder, batches: usize) -> Vec<Vec<u8>> {
    let mut writer = FrameWriter::new(expected.template.clone(), 0);
    let mut frames = vec![Frame::of(0, expected.template.bytes()).expect("it fits"); BATCH];
    let mut all = Vec::new();
    for _ in 0..batches {
        let time = if expected.timestamps { clock::monotonic_ns() as u32 } else { 0 };
        for frame in &mut frames {
            let bytes = expected.template.bytes();
            frame.receive(0, bytes).expect("it fits");
            let buffer = &mut frame.buffer_mut()[..bytes.len()];
            let length = writer.write_next(buffer, Phase::Window, time);
            frame.set_len(length);
        }
        forwarder.forward(&mut frames);
        let remaining = frames.iter().filter(|frame| frame.egress() == Some(FAR));
        all.extend(remaining.map(|frame| frame.whole().to_vec()));
    }
    all
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The XDP program, called for each frame.
    Shown,
    /// The same program on an interface.
    Xdp(XdpMode),
    Packet,
    Memory,
}

fn run(kind: Kind, pair: Option<&Pair>, expected: &Expected, wrong: Wrong, seed: u64) -> Outcome {
    let watch = Watch::Packets(Box::new(expected.clone()));
    let mut forwarder = Forwarder::new(wrong, seed);
    match kind {
        Kind::Memory => in_memory(expected, forwarder),
        Kind::Shown => {
            let mut receiver = XdpReceiver::detached(&watch).expect("the program");
            for frame in forwarded(expected, &mut forwarder, BATCHES) {
                receiver.show(&frame, 1).expect("shown");
            }
            outcome(&receiver, (BATCHES * BATCH) as u64, forwarder.done)
        }
        Kind::Xdp(_) | Kind::Packet => {
            let pair = pair.expect("namespaces");
            let receiver: Box<dyn Receiver> = match kind {
                Kind::Xdp(mode) => Box::new(
                    XdpReceiver::new(&pair.receiver, "r0", &watch, mode).expect("XDP receiver"),
                ),
                _ => {
                    Box::new(PacketReceiver::new(&pair.receiver, "r0", &watch, &[]).expect("ring"))
                }
            };
            let frames = forwarded(expected, &mut forwarder, BATCHES);
            pair.send(&frames);
            settle(receiver.as_ref(), frames.len() as u64);
            outcome(receiver.as_ref(), (BATCHES * BATCH) as u64, forwarder.done)
        }
    }
}

fn counted(received: &Received) -> u64 {
    let all = [received.packets, received.damaged, received.duplicates];
    all.iter().flatten().sum::<u64>() + received.foreign + received.unstamped + received.others
}

/// Waits until `frames` frames have been counted, at most ten seconds.
fn settle(receiver: &dyn Receiver, frames: u64) {
    let deadline = clock::monotonic_ns() + 10_000_000_000;
    while counted(&receiver.received()) < frames && clock::monotonic_ns() < deadline {
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}

/// Generator and sink of the testbed in memory, with the forwarder on the wire between them.
fn in_memory(expected: &Expected, mut forwarder: Forwarder) -> Outcome {
    let circuit = Circuit::new(4).expect("memory");
    let cpus = affinity::allowed_cpus().expect("CPUs");
    let config = TrafficConfig {
        cpu: cpus[0],
        template: expected.template.clone(),
        wires: vec![0; FLOWS.count() as usize],
        rate_pps: None,
        timestamps: expected.timestamps,
        arriving: Some((TO, FROM)),
        bypass: false,
        flood: None,
        back: None,
    };
    let circuits = [circuit];
    let traffic = Traffic::new(config, &circuits).expect("traffic");
    let mut transit = circuits[0].transit();
    let (stop, lost) = (AtomicBool::new(false), AtomicU64::new(0));
    let done = std::thread::scope(|scope| {
        let router = scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                match transit.slot() {
                    Some(frames) => {
                        forwarder.forward(frames);
                        if forwarder.wrong == Wrong::FlowLost {
                            lost.store(forwarder.done, Ordering::Release);
                        }
                        transit.publish();
                    }
                    None => std::thread::yield_now(),
                }
            }
            forwarder.done
        });
        traffic.set_phase(Phase::Window);
        traffic.start();
        let sent = || traffic.sent().iter().sum::<u64>();
        while sent() < (BATCHES * BATCH) as u64 {
            std::thread::yield_now();
        }
        traffic.stop();
        // All packets reach the generator's side again eventually.
        let deadline = clock::monotonic_ns() + 10_000_000_000;
        let arrived = || counted(&traffic.received()) + lost.load(Ordering::Acquire);
        while arrived() < sent() && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        stop.store(true, Ordering::Release);
        router.join().expect("the forwarder")
    });
    outcome(&traffic, traffic.sent().iter().sum(), done)
}

fn cases(expected: &Expected) -> Vec<(Wrong, Option<Fault>)> {
    let inet = expected.template.family() == Family::Inet;
    let long = expected.template.bytes().len() > 80;
    let faults = Fault::ALL.into_iter().filter(|fault| match fault {
        Fault::IpChecksum => inet,
        // Sources are not translated here.
        Fault::Mapping => false,
        Fault::Payload => long,
        _ => true,
    });
    let mut all: Vec<_> =
        faults.map(|fault| (Wrong::Damage(Damage::Fault(fault)), Some(fault))).collect();
    let others = [Wrong::Nothing, Wrong::Damage(Damage::Flip), Wrong::Twice, Wrong::Overtaken];
    all.extend(others.into_iter().chain([Wrong::FlowLost]).map(|wrong| (wrong, None)));
    all
}

fn check(
    kind: Kind,
    pair: Option<&Pair>,
    expected: &Expected,
    wrong: Wrong,
    fault: Option<Fault>,
    seed: u64,
) {
    let Outcome { sent, done, received, flows_lost } = run(kind, pair, expected, wrong, seed);
    let context = format!("{kind:?} {:?} {wrong:?}: {received:?}", expected.template.family());
    assert_eq!(done == 0, wrong == Wrong::Nothing, "{context}");
    let damaged: u64 = received.damaged.iter().sum();
    let duplicates: u64 = received.duplicates.iter().sum();
    let reordered: u64 = received.reordered.iter().sum();
    let (mut faults, mut lost) = ([0; FAULTS], 0);
    let mut expected_counts = (0, 0, 0, 0);
    match wrong {
        Wrong::Nothing => {}
        Wrong::Damage(_) => {
            if let Some(fault) = fault {
                faults[fault as usize] = done;
            } else {
                faults = received.faults; // any fault: the bit is random
            }
            (expected_counts.0, lost) = (done, done);
        }
        Wrong::Twice => (expected_counts.1, lost) = (done, done),
        Wrong::Overtaken => expected_counts.2 = done,
        Wrong::FlowLost => (expected_counts.3, lost) = (1, done),
    }
    assert_eq!((damaged, duplicates, reordered, flows_lost), expected_counts, "{context}");
    assert_eq!(received.faults, faults, "{context}");
    assert_eq!(received.total(), sent - lost, "{context}");
    assert_eq!((received.foreign, received.unstamped), (0, 0), "{context}");
}

fn packets() -> Vec<Expected> {
    let mix = FrameSize::parse("genome:aabgfa").expect("letters");
    [
        (Family::Inet, FrameSize::of(64), false),
        (Family::Inet, FrameSize::of(512), true),
        (Family::Inet6, FrameSize::of(84), true),
        (Family::Inet6, FrameSize::of(512), false),
        (Family::Inet, mix, true),
        (Family::Inet6, mix.at_least(84), false),
    ]
    .into_iter()
    .map(|(family, size, timestamps)| expected(family, size, timestamps))
    .collect()
}

#[test]
fn memory_sink_names_every_fault() {
    for (expected, seed) in packets().iter().zip(1..) {
        for (wrong, fault) in cases(expected) {
            check(Kind::Memory, None, expected, wrong, fault, seed);
        }
    }
}

#[test]
fn every_fault_is_named_by_every_receiver_of_an_interface() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let xdp = [Kind::Shown, Kind::Xdp(XdpMode::Driver), Kind::Xdp(XdpMode::Generic)];
    for kind in xdp.into_iter().chain([Kind::Packet]) {
        for (expected, seed) in packets().iter().zip(1..) {
            for (wrong, fault) in cases(expected) {
                check(kind, Some(&pair), expected, wrong, fault, seed);
            }
        }
    }
}

/// Returns the number of intact runs: FWDLAB_CLEAN_RUNS, or `default`.
fn clean_runs(default: u64) -> u64 {
    let value = std::env::var("FWDLAB_CLEAN_RUNS").ok();
    value.and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn intact_traffic_raises_no_faults() {
    let all = packets();
    for seed in 0..clean_runs(20) {
        check(Kind::Memory, None, &all[seed as usize % all.len()], Wrong::Nothing, None, seed);
    }
}

#[test]
fn sent_traffic_raises_no_faults() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let cpu = affinity::allowed_cpus().expect("CPUs")[0];
    for (seed, expected) in (0..clean_runs(8)).zip(packets().iter().cycle()) {
        let expected = Expected {
            template: Template::new(
                &Stream::new(expected.template.family(), *expected.template.size(), FLOWS),
                RUN_ID,
                FROM,
                TO,
            ),
            hops: 0,
            ..expected.clone()
        };
        let watch = Watch::Packets(Box::new(expected.clone()));
        let receiver: Box<dyn Receiver> = match seed % 3 {
            0 => Box::new(
                XdpReceiver::new(&pair.receiver, "r0", &watch, XdpMode::Driver).expect("XDP"),
            ),
            1 => Box::new(
                XdpReceiver::new(&pair.receiver, "r0", &watch, XdpMode::Generic).expect("XDP"),
            ),
            _ => Box::new(PacketReceiver::new(&pair.receiver, "r0", &watch, &[]).expect("ring")),
        };
        let config = SenderConfig {
            namespace: pair.sender.clone(),
            interface: "g0".into(),
            cpu,
            number: 0,
            template: expected.template.clone(),
            rate_pps: Some(50_000.0),
            limit: None,
            timestamps: expected.timestamps,
            batch: 64,
            burst: 64,
            spread: None,
            flood: None,
            yields: false,
        };
        let sender: Box<dyn Sender> = Box::new(XdpSender::new(&config).expect("sender"));
        sender.start();
        common::wait_for_packets(&*sender);
        let sent: u64 = sender.halt().expect("halt").iter().sum();
        settle(receiver.as_ref(), sent);
        let Outcome { received, flows_lost, .. } = outcome(receiver.as_ref(), sent, 0);
        let clean = Received {
            packets: received.packets,
            bytes: received.bytes,
            others: received.others,
            in_full: received.in_full,
            checked: sent,
            ..Received::default()
        };
        assert_eq!((received, flows_lost, received.total()), (clean, 0, sent), "run {seed}");
    }
}

#[test]
fn sampled_traffic_raises_no_faults() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let cpu = affinity::allowed_cpus().expect("CPUs")[0];
    for expected in packets() {
        let size = *expected.template.size();
        let family = expected.template.family();
        let template = Template::new(&Stream::new(family, size, FLOWS), RUN_ID, FROM, TO);
        let expected = Expected { template, hops: 0, sampled: true, ..expected };
        let watch = Watch::Packets(Box::new(expected.clone()));
        let receiver = XdpReceiver::new(&pair.receiver, "r0", &watch, XdpMode::Driver);
        let receiver = receiver.expect("XDP");
        let config = SenderConfig {
            namespace: pair.sender.clone(),
            interface: "g0".into(),
            cpu,
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
        sender.start();
        // Twice as many as the CPUs together check in full.
        let cpus = affinity::possible_cpus() as u64;
        let enough = 2 * cpus * FIRST_CHECKED;
        let deadline = clock::monotonic_ns() + 30_000_000_000;
        while receiver.received().total() < enough && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        let sent: u64 = sender.halt().expect("halt").iter().sum();
        settle(&receiver, sent);
        let received = receiver.received();
        let context = format!("{sent} sent: {received:?}");
        assert_eq!(
            (received.total(), received.ours(), received.evident),
            (sent, sent, 0),
            "{context}"
        );
        assert!(received.checked > FIRST_CHECKED, "{context}");
        assert!(received.checked < cpus * FIRST_CHECKED + sent / (CHECKED_ONE_IN - 1), "{context}");
    }
}

/// The program in the kernel decides like the receiver in user space.
#[test]
fn the_kernel_finds_what_user_space_finds() {
    let _guard = ONE_AT_A_TIME.lock();
    if XdpReceiver::detached(&Watch::Stamps { run_id: 1, flows: 0 }).is_err() {
        return fwdlab_testdata::skip("BPF programs can't be loaded here");
    }
    // The program keeps state per CPU, user space only once.
    affinity::pin_thread(&affinity::allowed_cpus().expect("CPUs")[..1]).expect("pinned");
    let runs = packets().into_iter().flat_map(|one| [(one.clone(), false), (one, true)]);
    for ((expected, sampled), seed) in runs.zip(40..) {
        let expected = Expected { timestamps: false, senders: 3, sampled, ..expected };
        let watch = Watch::Packets(Box::new(expected.clone()));
        let mut kernel = XdpReceiver::detached(&watch).expect("the program");
        let mut user = watch.arrivals();
        let mut random = Xoshiro256StarStar::seed_from_u64(seed);
        let mut draw = |below: u64| random.next_u64() % below;
        let mut writers: Vec<FrameWriter> =
            (0..4).map(|n| FrameWriter::new(expected.template.clone(), n)).collect();
        let template = &expected.template;
        let size = *template.size();
        let other = Template::new(&Stream::new(template.family(), size, FLOWS), 99, [2; 6], [6; 6]);
        let mut stranger = FrameWriter::new(other, 0);
        let (mut old, mut held): (Vec<Vec<u8>>, Option<Frame>) = (Vec::new(), None);
        if sampled {
            // More than the number that are all checked.
            let count = FIRST_CHECKED as u32 + 100;
            let frame = forwarded(&expected, &mut Forwarder::new(Wrong::Nothing, 0), 1).remove(0);
            kernel.show(&frame, count).expect("shown");
            (0..count).for_each(|_| user.take(&frame, frame.len(), 0));
        }
        for n in 0..20_000 {
            let bytes = expected.template.bytes();
            let mut frame = Frame::of(0, bytes).expect("it fits");
            let sender = if draw(100) == 0 { 3 } else { draw(3) } as usize;
            for _ in 0..if draw(20) == 0 { draw(100) } else { 1 } {
                let length = writers[sender].write_next(
                    &mut frame.buffer_mut()[..bytes.len()],
                    Phase::Window,
                    u32::from(draw(1000) == 0),
                );
                frame.set_len(length);
            }
            Forwarder::new(Wrong::Nothing, 0).forward_one(&mut frame);
            if draw(200) == 0 {
                let buffer = &mut frame.buffer_mut()[..bytes.len()];
                let length = stranger.write_next(buffer, Phase::Window, 0);
                frame.set_len(length);
            }
            for _ in 0..draw(3) {
                match draw(12) {
                    0..2 => {
                        inflict(Damage::Flip, &mut frame, draw(u64::MAX));
                    }
                    2..4 => {
                        let fault = Fault::ALL[draw(FAULTS as u64) as usize];
                        inflict(Damage::Fault(fault), &mut frame, draw(u64::MAX));
                    }
                    4 => {
                        let at = draw(frame.len() as u64) as usize;
                        frame.buffer_mut()[at] = draw(256) as u8;
                    }
                    5 => frame.set_len(14 + draw(frame.len() as u64 - 13) as usize),
                    6 if !old.is_empty() => {
                        let earlier = &old[draw(old.len() as u64) as usize];
                        frame.receive(0, earlier).expect("it fits");
                    }
                    _ => {}
                }
                if frame.len() < 15 {
                    break;
                }
            }
            if held.is_none() && draw(30) == 0 {
                held = Some(frame);
                continue;
            }
            // A packet overtaken by many arrives after them.
            let late = if draw(60) == 0 { held.take() } else { None };
            for frame in [Some(frame), late].into_iter().flatten() {
                let frame = frame.whole().to_vec();
                kernel.show(&frame, 1).expect("shown");
                user.take(&frame, frame.len(), 0);
                assert_eq!(kernel.received(), *user.counts(), "{n}: {frame:02x?}");
                if old.len() < 5000 {
                    old.push(frame);
                }
            }
        }
        let counts = user.counts();
        assert!(counts.faults.iter().filter(|&&n| n > 0).count() >= FAULTS - 3, "{counts:?}");
        let kinds = [counts.foreign, counts.others, counts.duplicates[1], counts.reordered[1]];
        assert!(kinds.iter().all(|&n| n > 0), "{counts:?}");
        assert_eq!(kernel.flows(), user.flows());
        assert_eq!(counts.checked < counts.ours() && counts.evident > 0, sampled, "{counts:?}");
    }
}
