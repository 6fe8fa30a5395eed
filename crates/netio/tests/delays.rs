//! Delays reported by receivers, compared with known delays: packets with old time stamps, and a
//! late sender.

mod common;

use common::Pair;
use fwdlab_netio::packet_socket::{self, PacketReceiver};
use fwdlab_netio::xdp::{XdpMode, XdpReceiver, XdpSender};
use fwdlab_netio::{Receiver, Sender, SenderConfig, Watch, affinity, clock};
use fwdlab_packet::arrivals::{Delays, Expected, delays};
use fwdlab_packet::{Family, Flows, Phase, Stamp, Stream, Template};
use std::sync::Mutex;
use std::time::Duration;

const FLOWS: Flows = Flows { sources: 2, destinations: 2 };
const RUN_ID: u32 = 77;

/// One pair of namespaces at a time; CPUs are scarce.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn expected(family: Family, hops: u8) -> Expected {
    Expected {
        template: Template::new(&Stream::new(family, 84, FLOWS), RUN_ID, [2; 6], [6; 6]),
        destination_mac: None,
        source_mac: None,
        translated: None,
        hops,
        senders: 1,
        timestamps: true,
        same_clock: true,
        sampled: false,
    }
}

fn frame(expected: &Expected, sequence: u32, phase: u8, time_ns: u32) -> Vec<u8> {
    let flow = sequence % FLOWS.count();
    let stamp = Stamp { run_id: RUN_ID, sender: 0, phase, flow, sequence, time_ns };
    expected.template.frame(flow / FLOWS.destinations, flow % FLOWS.destinations, &stamp)
}

/// Each packet's delay in the kernel is the increment of the sum; buckets and range must follow
/// from these alone. Each delay is between the age of the packet when shown and its age when the
/// program has returned.
#[test]
fn program_reports_delay_of_each_packet() {
    let watch = |expected: &Expected| Watch::Packets(Box::new(expected.clone()));
    if XdpReceiver::detached(&watch(&expected(Family::Inet, 0))).is_err() {
        return fwdlab_testdata::skip("BPF programs can't be loaded here");
    }
    affinity::pin_thread(&affinity::allowed_cpus().expect("CPUs")[..1]).expect("pinned");
    for family in [Family::Inet, Family::Inet6] {
        let expected = expected(family, 0);
        let mut kernel = XdpReceiver::detached(&watch(&expected)).expect("the program");
        let (mut user, mut sum_ns) = (Delays::default(), 0);
        let ages = (0..31).map(|bits| 1u64 << bits).chain([63, 64, 65, 127, 128, 1_500_000_000]);
        for (sequence, age_ns) in (0..).zip(ages) {
            let sent_ns = clock::monotonic_ns() - age_ns;
            // Packets of the warm-up are not timed.
            kernel.show(&frame(&expected, sequence, 0, sent_ns as u32), 1).expect("shown");
            // One packet each: an older one after a newer would mean a wrong clock.
            let mut single = XdpReceiver::detached(&watch(&expected)).expect("the program");
            single.show(&frame(&expected, 0, 1, sent_ns as u32), 1).expect("shown");
            let latest = clock::monotonic_ns() - sent_ns;
            let delays = single.delays().expect("times of one clock");
            let (least, most) = delays.range_ns().expect("a packet");
            assert_eq!((delays.packets(), least, delays.sum_ns()), (1, most, u64::from(most)));
            assert!((age_ns..=latest).contains(&u64::from(most)), "{age_ns} {most} {latest}");
            assert_eq!(delays.filled().collect::<Vec<_>>(), [(delays::bucket(most), 1)]);
            user.add(most);
            sum_ns += u64::from(most);
        }
        assert_eq!((user.sum_ns(), user.packets()), (sum_ns, 37));
        assert_eq!(kernel.delays().expect("times").packets(), 0, "no packet of the window");
    }
    let other_clock = Expected { same_clock: false, ..expected(Family::Inet, 0) };
    assert_eq!(XdpReceiver::detached(&watch(&other_clock)).expect("the program").delays(), None);
}

/// A paced sender that is preempted: the packets due during that time report their delay.
#[test]
fn late_sender_reports_full_delay() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    const RATE: f64 = 10_000.0;
    const STALL: Duration = Duration::from_millis(200);
    let expected = expected(Family::Inet, 0);
    let watch = Watch::Packets(Box::new(expected.clone()));
    for engine in ["XDP", "packet socket"] {
        let receiver: Box<dyn Receiver> = match engine {
            "XDP" => {
                let mode = XdpMode::Driver;
                Box::new(XdpReceiver::new(&pair.receiver, "r0", &watch, mode).expect("XDP"))
            }
            _ => Box::new(PacketReceiver::new(&pair.receiver, "r0", &watch, &[]).expect("ring")),
        };
        let config = SenderConfig {
            namespace: pair.sender.clone(),
            interface: "g0".into(),
            cpu: affinity::allowed_cpus().expect("CPUs")[0],
            number: 0,
            template: expected.template.clone(),
            rate_pps: Some(RATE),
            limit: None,
            timestamps: true,
            batch: 64,
            burst: 64,
            spread: None,
            flood: None,
            yields: false,
        };
        let sender: Box<dyn Sender> = match engine {
            "XDP" => Box::new(XdpSender::new(&config).expect("sender")),
            _ => Box::new(packet_socket::sender(&config).expect("sender")),
        };
        sender.start();
        common::wait_for_packets(sender.as_ref());
        sender.set_phase(Phase::Window);
        std::thread::sleep(Duration::from_millis(300));
        let missed = sender.missed();
        stall(config.cpu, STALL);
        std::thread::sleep(Duration::from_millis(300));
        let given_up = sender.missed() - missed;
        sender.halt().expect("halt");
        std::thread::sleep(Duration::from_millis(50));
        let reported = receiver.delays().expect("times of one clock");
        let (least, most) = reported.range_ns().expect("packets");
        let text = format!("{engine}: {reported:?}, {given_up} given up");
        // 64 of the 2000 due packets are sent late; the others are given up and counted.
        assert!(given_up > 1000, "{text}");
        assert!(least < 1_000_000, "{text}");
        // The sent ones carry their due time: of the program, the first packet since the stall
        // began; of the thread, as many intervals ago as it catches up with.
        let since_ns = match engine {
            "XDP" => STALL.as_nanos() as u32,
            _ => (64.0 * 1e9 / RATE) as u32,
        };
        assert!(most > since_ns / 10 * 9, "{text}");
    }
}

/// The differences between consecutive packets of a flow follow from their delays, each of which is
/// the increment of the sum.
#[test]
fn program_reports_differences_of_consecutive_delays() {
    let watch = |expected: &Expected| Watch::Packets(Box::new(expected.clone()));
    if XdpReceiver::detached(&watch(&expected(Family::Inet, 0))).is_err() {
        return fwdlab_testdata::skip("BPF programs can't be loaded here");
    }
    affinity::pin_thread(&affinity::allowed_cpus().expect("CPUs")[..1]).expect("pinned");
    for family in [Family::Inet, Family::Inet6] {
        let expected = expected(family, 0);
        let mut kernel = XdpReceiver::detached(&watch(&expected)).expect("the program");
        let (mut expected_differences, mut sum_ns, mut sent_ns) = (Delays::default(), 0, 0);
        let mut last = [None; 4];
        // One in eleven is lost.
        for sequence in (0..300u32).filter(|sequence| sequence % 11 != 5) {
            let age_ns = 1000 * u64::from(sequence * 7919 % 97);
            // An older packet after a newer one would mean a wrong clock.
            sent_ns = sent_ns.max(clock::monotonic_ns() - age_ns);
            kernel.show(&frame(&expected, sequence, 1, sent_ns as u32), 1).expect("shown");
            let total_ns = kernel.delays().expect("times").sum_ns();
            let delay_ns = (total_ns - sum_ns) as u32;
            sum_ns = total_ns;
            let (flow, round) = ((sequence % 4) as usize, sequence / 4);
            if let Some((before, before_ns)) = last[flow]
                && before + 1 == round
            {
                expected_differences.add(delay_ns.abs_diff(before_ns));
            }
            last[flow] = Some((round, delay_ns));
        }
        let reported = kernel.delays().expect("times of one clock");
        assert_eq!(reported.differences(), Some(&expected_differences));
        assert!(expected_differences.packets() > 200, "{expected_differences:?}");
    }
}

/// Occupies a CPU exclusively for `time`.
fn stall(cpu: u16, time: Duration) {
    let busy = std::thread::spawn(move || {
        affinity::pin_thread(&[cpu]).expect("pinned");
        affinity::put_first(affinity::this_task()).expect("the first in the queue");
        let end = clock::monotonic_ns() + time.as_nanos() as u64;
        while clock::monotonic_ns() < end {
            std::hint::spin_loop();
        }
    });
    busy.join().expect("it ends well");
}
