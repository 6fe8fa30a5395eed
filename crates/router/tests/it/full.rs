//! The full path: the same frames as from the fast path, options, and fragments.

use crate::support::*;
use fwdlab_packet::Family;
use fwdlab_router::fib::{Fib, Radix};
use fwdlab_router::path::{
    Config, Counters, Firewall, ForwardingPath, Frame, Rate, Router, Snapshot, Special,
};
use proptest::prelude::*;
use std::sync::Arc;

const GENEROUS: Rate = Rate { per_second: 0, burst: 100_000 };

fn full() -> Config {
    Config { path: ForwardingPath::Full, ..config() }
}

/// Counters and frames of a router that received these.
fn outcome(config: &Config, sent: &[Vec<u8>], ingress: u8) -> (Snapshot, Sent, Sent) {
    let mut lab = lab_of(&Config { errors: GENEROUS, answers: GENEROUS, ..config.clone() });
    let frames = sent.iter().map(|bytes| Frame::of(ingress, bytes).expect("it fits"));
    let mut batch: Vec<Frame> = frames.collect();
    lab.router.process(&mut batch, 1);
    lab.router.flush();
    let out = batch.iter().map(|frame| (frame.egress().unwrap_or(99), frame));
    let out = out.map(|(port, f)| (port, if port == 99 { vec![] } else { f.whole().to_vec() }));
    let out = out.collect();
    // The order differs: the fast path processes packets with options last.
    let mut emitted = lab.emitted();
    emitted.sort();
    (lab.counters.read(), out, emitted)
}

type Sent = Vec<(u8, Vec<u8>)>;

/// A packet without "don't fragment" to a prefix whose route limits packets to `mtu` bytes, on
/// either path; returns its fragments.
fn cut_by_route(config: Config, mtu: u16, size: u16) -> Vec<Vec<u8>> {
    let mut config = config;
    config.neighbours.set_special(hop(9), Special::Limited(hop(0), mtu)).expect("a low number");
    let mut lab = lab_of(&config);
    let frame = with(udp(Family::Inet, size), &[(20, &[0, 0]), (30, &[203, 0, 113, 7])]);
    let first = lab.send(&frame).0;
    let emitted = lab.emitted();
    first.into_iter().chain(emitted).map(|(_, bytes)| bytes).collect()
}

#[test]
fn route_mtu_cuts_packets_on_either_path() {
    for config in [config(), full()] {
        let fragments = cut_by_route(config.clone(), 600, 1200);
        assert_eq!(fragments.len(), 3);
        assert!(fragments.iter().all(|bytes| bytes.len() <= 614), "{fragments:?}");
        assert_eq!(cut_by_route(config.clone(), 600, 500).len(), 1);
        // No payload fits: the packet is dropped.
        assert_eq!(cut_by_route(config, 24, 500).len(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_full_path_agree(
        sent in prop::collection::vec(frames(), 1..150),
        ingress in 0u8..3,
    ) {
        let fast = outcome(&config(), &sent, ingress);
        prop_assert_eq!(fast, outcome(&full(), &sent, ingress));
    }

    #[test]
    fn fragments_reassemble_to_the_packet(
        size in 1300u16..1518,
        words in 0usize..=10,
        offset in 0u16..0x1000,
        more: bool,
        longer in prop_oneof![Just(0), 1..7600usize],
        options in prop::collection::vec(prop::sample::select(&[1u8, 148, 68][..]), 10),
    ) {
        let mut frame = udp(Family::Inet, size);
        frame[14] = 0x45 + words as u8;
        // No more options than there are words; each that is not a no-op has four bytes.
        for (word, kind) in frame[34..34 + 4 * words].chunks_mut(4).zip(&options) {
            word.copy_from_slice(if *kind == 1 { &[1, 1, 1, 1] } else { &[0, 4, 7, 8] });
            if *kind != 1 { word[0] = *kind }
        }
        let flags = offset | if more { 0x2000 } else { 0 };
        // Payload as on links with an MTU of 9000.
        frame.extend((0..longer).map(|at| (at / 3) as u8));
        let total = frame.len() as u16 - 14;
        let changes = [(16, &total.to_be_bytes()[..]), (20, &flags.to_be_bytes())];
        let frame = with(frame, &changes);
        for config in [config(), full()] {
            let mut lab = lab_of(&config);
            let (first, names) = lab.send(&frame);
            let mut fragments = vec![first.expect("it is sent")];
            fragments.extend(lab.emitted());
            if total <= 1280 {
                prop_assert_eq!(fragments.len(), 1);
                continue;
            }
            prop_assert_eq!(names, ["forwarded", "fragments_sent"]);
            prop_assert_eq!(reassembled(&fragments, flags), &frame[34 + 4 * words..]);
            // The first fragment has all options, the others only those that are copied.
            let copied = options[..words].iter().filter(|&&kind| kind == 148).count();
            prop_assert_eq!(&fragments[0].1[34..34 + 4 * words], &frame[34..34 + 4 * words]);
            for (_, fragment) in &fragments[1..] {
                prop_assert_eq!(usize::from(fragment[14] & 15), 5 + copied);
                prop_assert_eq!(&fragment[18..20], &frame[18..20]);
                prop_assert_eq!(fragment[22], 63);
            }
        }
    }
}

/// Data of the packet with these fragments and flags.
fn reassembled(fragments: &[(u8, Vec<u8>)], flags: u16) -> Vec<u8> {
    let mut data = Vec::new();
    for (at, (port, fragment)) in fragments.iter().enumerate() {
        assert_sound(fragment);
        assert_eq!((*port, &fragment[..6]), (1, &RECEIVER[..]));
        let total = usize::from(u16::from_be_bytes([fragment[16], fragment[17]]));
        assert!(total <= 1280 && fragment.len() == (14 + total).max(60));
        let word = u16::from_be_bytes([fragment[20], fragment[21]]);
        let is_last = at + 1 == fragments.len();
        assert_eq!(word & 0x2000, if is_last { flags & 0x2000 } else { 0x2000 });
        assert_eq!(usize::from(word & 0x1fff), usize::from(flags & 0x1fff) + data.len() / 8);
        let payload = &fragment[14 + usize::from(fragment[14] & 15) * 4..14 + total];
        assert!(is_last || payload.len().is_multiple_of(8));
        data.extend(payload);
    }
    data
}

#[test]
fn fragment_has_expected_bytes() {
    let mut frame = udp(Family::Inet, 1306);
    frame[20] = 0;
    let mut lab = lab_of(&full());
    let (first, _) = lab.send(&with(frame.clone(), &[]));
    let (_, first) = first.expect("it is sent");
    assert_eq!(first.len(), 14 + 20 + 1256);
    assert_eq!(first[16..22], [4, 252, 0, 0, 0x20, 0]);
    let [(1, second)] = &lab.emitted()[..] else { panic!("one further fragment") };
    #[rustfmt::skip]
    let header = [
        2, 0, 0, 0, 0, 0x20, 2, 0, 0, 0, 0, 2, 8, 0,
        0x45, 0, 0, 32, 0, 0, 0, 157, 63, 17, 0xed, 0x07, 198, 18, 1, 1, 198, 19, 1, 2,
    ];
    assert_eq!(second[..34], header);
    assert_eq!(second[34..46], frame[34 + 1256..]);
    assert_eq!(second[46..], [0; 14]);
}

#[test]
fn packet_is_dropped_if_fragments_have_no_room() {
    for config in [config(), full()] {
        let mut lab = lab_of(&config);
        let frame = Frame::of(0, &with(udp(Family::Inet, 1500), &[(20, &[0])])).expect("it fits");
        let mut batch = vec![frame; 300];
        lab.router.process(&mut batch, 0);
        lab.router.flush();
        let seen: Vec<_> = lab.counters.read().iter().map(|(r, n)| (r.name(), n)).collect();
        assert_eq!(seen, [("forwarded", 256), ("ipv4_fragment", 44), ("fragments_sent", 256)]);
        assert_eq!(batch.iter().filter(|frame| frame.egress().is_some()).count(), 256);
        assert_eq!(lab.emitted().len(), 256);
    }
}

#[test]
fn firewall_filters_each_packet_once_per_direction() {
    /// Decides by one byte of each packet; counts the packets it filters.
    #[derive(Default)]
    struct ByBytes {
        filtered: [u32; 2],
        report: Option<std::sync::mpsc::Sender<[u32; 2]>>,
    }
    impl ByBytes {
        fn judge(batch: &[Frame], among: u64, at: usize) -> u64 {
            let blocked = |place: &usize| batch[*place].bytes()[at] == 0xee;
            (0..batch.len()).filter(blocked).fold(among, |among, place| among & !(1 << place))
        }
    }
    impl Firewall for ByBytes {
        fn incoming(&mut self, batch: &[Frame], among: u64, _: u64) -> u64 {
            self.filtered[0] += among.count_ones();
            ByBytes::judge(batch, among, 58)
        }
        fn outgoing(&mut self, batch: &[Frame], among: u64, _: u64) -> u64 {
            let sent = |place: usize| among >> place & 1 == 0 || batch[place].egress() == Some(1);
            assert!((0..batch.len()).all(sent), "all that is asked about goes out");
            self.filtered[1] += among.count_ones();
            ByBytes::judge(batch, among, 59)
        }
    }
    impl Drop for ByBytes {
        fn drop(&mut self) {
            self.report.take().map(|report| report.send(self.filtered));
        }
    }
    let options = with(udp(Family::Inet, 100), &[(14, &[0x46]), (34, &[1, 1, 1, 1])]);
    let big = with(udp(Family::Inet, 1500), &[(20, &[0])]);
    let kinds = [udp(Family::Inet, 100), options, big, udp(Family::Inet6, 100)];
    let mut sent = Vec::new();
    for kind in kinds {
        for at in [57, 58, 59] {
            sent.push(with(kind.clone(), &[(at, &[0xee])]));
        }
    }
    for path in ForwardingPath::IN_PROCESS {
        let counters = Counters::new(1);
        let tally = counters.tally(0).expect("a worker");
        let (mut inet, mut inet6) = (Radix::new(), Radix::new());
        inet.insert("0.0.0.0/0".parse().expect("one"), hop(0));
        inet6.insert("::/0".parse().expect("one"), hop(0));
        let (report, counts) = std::sync::mpsc::channel();
        let firewall = ByBytes { report: Some(report), ..ByBytes::default() };
        let config = Config { path, ..config() };
        let router = Router::new(&config, Arc::new(inet), Arc::new(inet6), firewall, tally);
        let mut router = router.expect("a sound set-up");
        let frames = sent.iter().map(|bytes| Frame::of(0, bytes).expect("it fits"));
        let mut batch: Vec<Frame> = frames.collect();
        router.process(&mut batch, 0);
        router.flush();
        let out = |(at, frame): (usize, &Frame)| frame.egress().is_some() == at.is_multiple_of(3);
        assert!(batch.iter().enumerate().all(out), "{path}");
        let seen: Vec<_> = counters.read().iter().map(|(r, n)| (r.name(), n)).collect();
        assert_eq!(seen, [("forwarded", 4), ("firewall", 8), ("fragments_sent", 1)], "{path}");
        drop(router);
        assert_eq!(counts.recv(), Ok([12, 8]), "{path}");
    }
}

#[test]
fn options_are_processed_and_source_routes_refused() {
    let options = |options: &[u8]| {
        let mut frame = udp(Family::Inet, 100);
        frame[34..34 + options.len()].copy_from_slice(options);
        with(frame, &[(14, &[0x45 + (options.len() / 4) as u8])])
    };
    for config in [config(), full()] {
        let mut lab = lab_of(&config);
        let (out, names) = lab.send(&options(&[7, 7, 4, 0, 0, 0, 0, 0]));
        assert_eq!(names, ["forwarded"]);
        let (_, frame) = out.expect("it is sent");
        assert_sound(&frame);
        assert_eq!(frame[34..42], [7, 7, 8, 198, 19, 0, 1, 0]);
        for (given, reason, kind, word) in [
            ([131, 7, 4, 198, 19, 0, 9, 0], "slow_source_route", [3, 5], [0; 4]),
            ([137, 7, 4, 198, 19, 0, 9, 0], "slow_source_route", [3, 5], [0; 4]),
            ([1, 7, 9, 4, 0, 0, 0, 0], "slow_options", [12, 0], [22, 0, 0, 0]),
        ] {
            let sent = options(&given);
            let (out, names) = lab.send(&sent);
            assert_eq!(names, [reason, "answered"]);
            let (_, error) = out.expect("an error");
            assert_sound(&error);
            assert_eq!((&error[34..36], &error[38..42]), (&kind[..], &word[..]));
            assert_eq!(error[42..], sent[14..]);
        }
        // The route recorded before the packet turned out too large is removed again.
        let mut big = udp(Family::Inet, 1500);
        big[34..42].copy_from_slice(&[7, 7, 4, 0, 0, 0, 0, 0]);
        let big = with(big, &[(14, &[0x47])]);
        let (out, names) = lab.send(&big);
        assert_eq!(names, ["slow_too_big", "answered"]);
        assert_eq!(out.expect("an error").1[42..], big[14..14 + 548]);
    }
}

#[test]
fn path_names_round_trip() {
    for kind in ForwardingPath::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    let error = "slow".parse::<ForwardingPath>().expect_err("no such path");
    assert_eq!(error.to_string(), "\"slow\" is none of fast, full, xdp");
}
