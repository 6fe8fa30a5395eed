//! Arriving frames of every sender, byte for byte.

mod common;

use common::{Pair, wait_for_packets};
use fwdlab_netio::sender::Counted;
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{
    Flood, NetioError, Receiver, Sender, SenderConfig, Watch, clock, packet_socket, xsk,
};
use fwdlab_packet::{Family, Phase, Stamp, Stream, Template};
use fwdlab_packet::{Flows, FrameSize};
use std::collections::HashSet;
use std::sync::Mutex;

const RUN_ID: u32 = 0x1234_5678;
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// One pair of namespaces at a time; CPUs are scarce.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    Xdp,
    Xsk,
    Packet,
}

fn open(engine: Engine, config: &SenderConfig) -> Result<Box<dyn Sender>, NetioError> {
    Ok(match engine {
        Engine::Xdp => Box::new(XdpSender::new(config)?),
        Engine::Xsk => Box::new(xsk::sender(config)?),
        Engine::Packet => Box::new(packet_socket::sender(config)?),
    })
}

fn config(pair: &Pair, template: Template, rate_pps: Option<f64>) -> SenderConfig {
    SenderConfig {
        namespace: pair.sender.clone(),
        interface: "g0".into(),
        cpu: fwdlab_netio::affinity::allowed_cpus().expect("CPUs")[0],
        number: 3,
        template,
        rate_pps,
        limit: None,
        burst: 64,
        spread: None,
        flood: None,
        yields: false,
        timestamps: true,
        batch: 64,
    }
}

#[test]
fn senders_send_exactly_the_reference_frames() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 3, destinations: 5 };
    for engine in [Engine::Xdp, Engine::Xsk, Engine::Packet] {
        for (family, size) in [
            (Family::Inet, FrameSize::of(64)),
            (Family::Inet, FrameSize::of(128)),
            (Family::Inet, FrameSize::of(1518)),
            (Family::Inet6, FrameSize::of(84)),
            (Family::Inet6, FrameSize::of(1518)),
            (Family::Inet, FrameSize::parse("imix").expect("known")),
            (Family::Inet6, FrameSize::parse("imix").expect("known").at_least(84)),
        ] {
            let template =
                Template::new(&Stream::new(family, size, flows), RUN_ID, SOURCE, DESTINATION);
            let mut read = pair.capture();
            let sender = open(engine, &config(&pair, template.clone(), Some(20_000.0)))
                .unwrap_or_else(|e| panic!("{engine:?}: {e}"));
            sender.start();
            wait_for_packets(&*sender);
            sender.set_phase(Phase::Window);
            wait_for_packets(&*sender);
            let sent: u64 = sender.halt().expect("halt").iter().sum();
            clock::sleep_until(clock::monotonic_ns() + 10_000_000);
            let context = format!("{engine:?} {family:?} {size}");
            let (mut frames, mut seen_flows, mut phases) = (0, HashSet::new(), HashSet::new());
            while let Some(frame) = read() {
                let Some(stamp) = Stamp::parse_frame(&frame) else { continue };
                let (source, destination) = (stamp.flow / 5, stamp.flow % 5);
                assert_eq!(frame, template.frame(source, destination, &stamp), "{context}");
                assert_eq!((stamp.run_id, stamp.sender), (RUN_ID, 3), "{context}");
                assert_eq!(stamp.flow, stamp.sequence % 15, "{context}");
                assert_ne!(stamp.time_ns, 0, "{context}");
                frames += 1;
                seen_flows.insert(stamp.flow);
                phases.insert(stamp.phase);
            }
            assert_eq!(frames, sent, "{context}: frames captured, packets counted as sent");
            assert!(frames >= 200, "{context}: only {frames} frames");
            assert_eq!(seen_flows.len(), 15, "{context}: flows");
            assert_eq!(phases, HashSet::from([0, 1]), "{context}: phases");
        }
    }
}

#[test]
fn counted_packets_begin_with_first_flow() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 3, destinations: 5 };
    let template =
        Template::new(&Stream::new(Family::Inet, 64, flows), RUN_ID, SOURCE, DESTINATION);
    for engine in [Engine::Xdp, Engine::Xsk, Engine::Packet] {
        let mut read = pair.capture();
        let limit = Some(Counted { packets: 40, first: 7 });
        let counted = SenderConfig { limit, ..config(&pair, template.clone(), Some(2_000.0)) };
        let sender = open(engine, &counted).unwrap_or_else(|e| panic!("{engine:?}: {e}"));
        sender.start();
        let deadline = clock::monotonic_ns() + 5_000_000_000;
        while sender.sent().iter().sum::<u64>() < 40 && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        sender.halt().expect("halt");
        clock::sleep_until(clock::monotonic_ns() + 10_000_000);
        let stamps = std::iter::from_fn(&mut read).filter_map(|frame| Stamp::parse_frame(&frame));
        let numbers: Vec<(u32, u32)> = stamps.map(|stamp| (stamp.sequence, stamp.flow)).collect();
        let expected: Vec<(u32, u32)> = (7..47).map(|number| (number, number % 15)).collect();
        assert_eq!(numbers, expected, "{engine:?}");
    }
}

#[test]
fn limit_is_exact_and_rate_can_change() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 3, destinations: 5 };
    let template =
        Template::new(&Stream::new(Family::Inet, 64, flows), RUN_ID, SOURCE, DESTINATION);
    let total = |sender: &dyn Sender| sender.sent().iter().sum::<u64>();
    for engine in [Engine::Xdp, Engine::Xsk, Engine::Packet] {
        let burst = SenderConfig {
            limit: Some(Counted::packets(777)),
            ..config(&pair, template.clone(), None)
        };
        let sender = open(engine, &burst).unwrap_or_else(|e| panic!("{engine:?}: {e}"));
        sender.set_phase(Phase::Window);
        sender.start();
        let deadline = clock::monotonic_ns() + 5_000_000_000;
        while total(&*sender) < 777 && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        clock::sleep_until(clock::monotonic_ns() + 20_000_000);
        let sent = sender.halt().expect("halt");
        assert_eq!(sent, [0, 777, 0, 0], "{engine:?}: nothing before, nothing beyond");

        // A hundred times slower: far fewer packets than at the first rate.
        let sender = open(engine, &config(&pair, template.clone(), Some(100_000.0)))
            .unwrap_or_else(|e| panic!("{engine:?}: {e}"));
        sender.start();
        wait_for_packets(&*sender);
        sender.set_rate(1_000.0);
        clock::sleep_until(clock::monotonic_ns() + 20_000_000);
        let (before, began) = (total(&*sender), clock::monotonic_ns());
        clock::sleep_until(began + 200_000_000);
        let (packets, seconds) =
            (total(&*sender) - before, (clock::monotonic_ns() - began) as f64 / 1e9);
        sender.halt().expect("halt");
        // A sender that was late catches up with at most one burst of 64.
        let most = 1_000.0 * seconds + 64.0 + 2.0;
        assert!(packets as f64 <= most, "{engine:?}: {packets} in {seconds} s");
        assert!(packets > 0, "{engine:?}: it still sends");
    }
}

#[test]
fn flood_is_sent_in_window_at_its_rate() {
    const RATE: f64 = 20_000.0;
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 3, destinations: 5 };
    for (engine, family, size) in [
        (Engine::Xsk, Family::Inet, 64),
        (Engine::Packet, Family::Inet, 128),
        (Engine::Packet, Family::Inet6, 84),
    ] {
        let template =
            Template::new(&Stream::new(family, size, flows), RUN_ID, SOURCE, DESTINATION);
        let flood = Flood::beside(&template, 100_000, RATE);
        let with_flood = SenderConfig {
            flood: Some(flood.clone()),
            ..config(&pair, template.clone(), Some(RATE))
        };
        let mut read = pair.capture();
        let sender = open(engine, &with_flood).unwrap_or_else(|e| panic!("{engine:?}: {e}"));
        sender.start();
        wait_for_packets(&*sender);
        assert_eq!(flood.sent(), 0, "{engine:?}: before the window");
        let began = clock::monotonic_ns();
        sender.set_phase(Phase::Window);
        let deadline = began + 10_000_000_000;
        while flood.sent() < 1000 && clock::monotonic_ns() < deadline {
            clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        sender.set_phase(Phase::After);
        let seconds = (clock::monotonic_ns() - began) as f64 / 1e9;
        wait_for_packets(&*sender);
        let measured: u64 = sender.halt().expect("halt").iter().sum();
        clock::sleep_until(clock::monotonic_ns() + 10_000_000);
        assert!(flood.sent() as f64 <= RATE * seconds + 64.0, "{engine:?}: {}", flood.sent());
        let (mut captured, mut flood_packets) = (0, 0);
        while let Some(frame) = read() {
            let Some(stamp) = Stamp::parse_frame(&frame) else { continue };
            let template = if stamp.run_id == RUN_ID { &template } else { flood.template() };
            let destinations = template.flows().destinations;
            let (source, destination) = (stamp.flow / destinations, stamp.flow % destinations);
            assert_eq!(frame, template.frame(source, destination, &stamp), "{engine:?}");
            if stamp.run_id == RUN_ID {
                captured += 1;
                continue;
            }
            assert_eq!(stamp.flow, flood_packets, "{engine:?}: each of a new flow");
            assert_eq!((stamp.sequence, stamp.phase), (flood_packets, 1), "{engine:?}");
            flood_packets += 1;
        }
        assert_eq!((captured, u64::from(flood_packets)), (measured, flood.sent()), "{engine:?}");
        assert!(flood_packets >= 1000, "{engine:?}: {flood_packets}");
        assert!(open(Engine::Xdp, &with_flood).is_err(), "live frames are one stream");
    }
}

#[test]
fn receivers_count_what_was_sent_and_tell_runs_apart() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 20, destinations: 100 };
    let template =
        |run_id| Template::new(&Stream::new(Family::Inet, 64, flows), run_id, SOURCE, DESTINATION);
    let watch = Watch::Stamps { run_id: RUN_ID, flows: 2000 };
    for packet_ring in [false, true] {
        let receiver: Box<dyn Receiver> = match packet_ring {
            false => Box::new(
                XdpReceiver::new(&pair.receiver, "r0", &watch, XdpMode::Driver)
                    .expect("XDP receiver"),
            ),
            true => Box::new(
                packet_socket::PacketReceiver::new(&pair.receiver, "r0", &watch, &[])
                    .expect("packet receiver"),
            ),
        };
        let mut sent = [[0u64; 4]; 2];
        for (n, run_id) in [RUN_ID, 99].into_iter().enumerate() {
            let sender = XdpSender::new(&config(&pair, template(run_id), Some(100_000.0)));
            let sender: Box<dyn Sender> = Box::new(sender.expect("sender"));
            sender.start();
            clock::sleep_until(clock::monotonic_ns() + 30_000_000);
            sender.set_phase(Phase::Window);
            clock::sleep_until(clock::monotonic_ns() + 30_000_000);
            sent[n] = sender.halt().expect("halt");
        }
        clock::sleep_until(clock::monotonic_ns() + 50_000_000);
        let received = receiver.received();
        assert_eq!(receiver.dropped(), 0);
        assert_eq!(received.packets, sent[0], "packet ring: {packet_ring}");
        assert_eq!(received.foreign, sent[1].iter().sum::<u64>(), "packet ring: {packet_ring}");
        assert_eq!(received.bytes.iter().sum::<u64>(), 60 * received.total());
        // Flows are sent in turn, so a busy machine that sent fewer packets sent fewer flows.
        assert_eq!(
            receiver.flows().map(|flows| flows.seen),
            Some(received.total().min(2000) as u32)
        );
    }
}

#[test]
fn paced_sender_never_exceeds_rate() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let flows = Flows { sources: 1, destinations: 1 };
    let template =
        Template::new(&Stream::new(Family::Inet, 64, flows), RUN_ID, SOURCE, DESTINATION);
    let receiver = XdpReceiver::new(
        &pair.receiver,
        "r0",
        &Watch::Stamps { run_id: RUN_ID, flows: 0 },
        XdpMode::Driver,
    );
    let _receiver = receiver.expect("receiver");
    for engine in [Engine::Xdp, Engine::Xsk, Engine::Packet] {
        for rate in [1_000.0, 100_000.0] {
            let sender = open(engine, &config(&pair, template.clone(), Some(rate)));
            let sender = sender.expect("sender");
            let begin = clock::monotonic_ns();
            sender.start();
            // The machine determines how soon the sender gets there, but it must get there.
            let expected = (0.1 * rate) as u64;
            let deadline = begin + 20_000_000_000;
            let mut sent: u64 = 0;
            while sent + sender.missed() < expected && clock::monotonic_ns() < deadline {
                clock::sleep_until(clock::monotonic_ns() + 20_000_000);
                sent = sender.sent().iter().sum();
                // A schedule is an upper bound, whatever else the machine does; packets not sent in
                // time count as missed.
                let seconds = (clock::monotonic_ns() - begin) as f64 / 1e9;
                assert!(sent as f64 <= rate * seconds + 1.0, "{engine:?} at {rate}: {sent}");
            }
            let missed = sender.missed();
            sender.halt().expect("halt");
            assert!(sent > 0, "{engine:?} at {rate}: nothing sent, {missed} missed");
            assert!(
                sent + missed >= expected,
                "{engine:?} at {rate}: {sent} sent, {missed} missed"
            );
        }
    }
}
