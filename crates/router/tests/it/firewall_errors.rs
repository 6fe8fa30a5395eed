//! ICMP errors, which belong to the connection whose packet they quote.

use crate::support::walled::*;
use fwdlab_router::firewall::{StateConfig, StateTable};
use fwdlab_router::path::{Firewall, ForwardingPath};

const ME: (&str, u16) = ("198.18.0.5", 40_000);
const YOU: (&str, u16) = ("198.19.0.9", 80);
const ME6: (&str, u16) = ("2001:2::5", 40_000);
const YOU6: (&str, u16) = ("2001:2:0:8000::9", 80);
/// A router between the far side and the other end.
const HOP: &str = "198.19.77.1";
const HOP6: &str = "2001:2:0:8000::77";

/// UDP and TCP connections begin on the near side; nothing else passes, including ICMP.
const NARROW: &str = "pass in on 0 proto udp all keep state\n\
                      pass in on 0 proto tcp all keep state\n\
                      block all";
/// All connections begin on the near side.
const OUTWARDS: &str = "pass in on 0 all keep state\nblock in on 1 all";

const HOLDERS: [StateTable; 3] = [StateTable::Global, StateTable::Sharded, StateTable::PerWorker];

fn states(kind: StateTable) -> StateConfig {
    StateConfig { kind, seed: Some(1), ..StateConfig::default() }
}

/// Routers on both paths with these rules, each after these packets.
fn labs(rules: &str, begun: &[Spec]) -> [Walled; 2] {
    ForwardingPath::IN_PROCESS.map(|path| {
        let mut lab = Walled::along(path, rules, &states(StateTable::Sharded));
        for packet in begun {
            assert_eq!(lab.send(packet, 0), "forwarded");
        }
        lab
    })
}

/// IPv4 packet from [`ME`] to [`YOU`]: UDP with 8 bytes after the header.
#[rustfmt::skip]
const QUOTE: [u8; 28] = [
    0x45, 0, 0, 28, 0, 1, 0, 0, 1, 17, 0, 0, 198, 18, 0, 5, 198, 19, 0, 9,
    0x9c, 0x40, 0, 80, 0, 8, 0, 0,
];

/// The same as an IPv6 packet.
#[rustfmt::skip]
const QUOTE6: [u8; 48] = [
    0x60, 0, 0, 0, 0, 8, 17, 1,
    0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
    0x20, 1, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 9,
    0x9c, 0x40, 0, 80, 0, 8, 0, 0,
];

#[test]
fn errors_about_a_connection_pass_without_rules() {
    let begun = [datagram(ME, YOU), datagram(ME6, YOU6)];
    for mut lab in labs(NARROW, &begun) {
        for kind in 0..=255 {
            let inet = error(HOP, ME.0, kind, &QUOTE);
            let expected = matches!(kind, 3 | 4 | 11 | 12);
            assert_eq!(lab.send(&inet, 0) == "forwarded", expected, "ICMP type {kind}");
            let inet6 = error(HOP6, ME6.0, kind, &QUOTE6);
            let expected = matches!(kind, 1..=4);
            assert_eq!(lab.send(&inet6, 0) == "forwarded", expected, "ICMPv6 type {kind}");
        }
        // From the near side about packets that the far side has sent.
        let back = error(ME.0, YOU.0, 3, &datagram(YOU, ME).quote());
        let back6 = error(ME6.0, YOU6.0, 1, &datagram(YOU6, ME6).quote());
        assert_eq!(lab.send_all(&[back, back6], 0), ["forwarded"; 2]);
        // TCP initiators also get errors, although quotes lack flags.
        let [syn, syn6] = [tcp(ME, YOU, SYN), tcp(ME6, YOU6, SYN)];
        assert_eq!(lab.send_all(&[syn.clone(), syn6.clone()], 0), ["forwarded"; 2]);
        let error4 = error(HOP, ME.0, 3, &syn.quote()[..28]);
        let error6 = error(HOP6, ME6.0, 1, &syn6.quote()[..48]);
        assert_eq!(lab.send_all(&[error4, error6], 0), ["forwarded"; 2]);
    }
}

#[test]
fn unrelated_errors_are_filtered_by_rules() {
    for mut lab in labs(NARROW, &[datagram(ME, YOU), datagram(ME6, YOU6)]) {
        let about = |spec: Spec| error(HOP, ME.0, 3, &spec.quote());
        let about6 = |spec: Spec| error(HOP6, ME6.0, 1, &spec.quote());
        let unrelated = [
            ("another port", about(datagram((ME.0, ME.1 + 1), YOU))),
            ("another port", about6(datagram(ME6, (YOU6.0, YOU6.1 + 1)))),
            ("another protocol", about(tcp(ME, YOU, ACK))),
            ("another address", about(datagram(ME, ("198.19.0.8", YOU.1)))),
            ("another address", about6(datagram(ME6, ("2001:2:0:8000::8", YOU6.1)))),
            ("to who didn't send it", about(datagram(YOU, ME))),
            ("to who didn't send it", about6(datagram(YOU6, ME6))),
            ("to somebody else", error(HOP, "198.18.0.6", 3, &QUOTE)),
            ("the other family", error(HOP, ME.0, 3, &QUOTE6)),
            ("the other family", error(HOP6, ME6.0, 1, &QUOTE)),
            ("the other family's ICMP", Spec { protocol: 58, ..error(HOP, ME.0, 1, &QUOTE) }),
            ("the other family's ICMP", Spec { protocol: 1, ..error(HOP6, ME6.0, 3, &QUOTE6) }),
            ("a header of four words", error(HOP, ME.0, 3, &[&[0x44], &QUOTE[1..]].concat())),
            ("nothing", error(HOP, ME.0, 3, &[])),
            ("nothing", error(HOP6, ME6.0, 1, &[])),
        ];
        for (what, spec) in unrelated {
            assert_eq!(lab.send(&spec, 0), "firewall", "{what}: {spec:?}");
        }
        let rules = "pass in on 0 proto udp all keep state\n\
                     pass in proto icmp all\n\
                     block in on 1 all";
        for mut lab in labs(rules, &[datagram(ME, YOU)]) {
            let other = about(datagram(ME, (YOU.0, YOU.1 + 1)));
            assert_eq!(lab.send_all(&[other, about(datagram(ME, YOU))], 0), ["forwarded"; 2]);
            let stats = lab.wall.stats();
            let packets: Vec<u64> = stats.rules.iter().map(|rule| rule.packets).collect();
            assert_eq!(packets, [1, 1, 0]);
        }
    }
}

#[test]
fn quotes_need_eight_bytes_after_the_header() {
    let begun = [datagram(ME, YOU), datagram(ME6, YOU6)];
    for mut lab in labs(NARROW, &begun) {
        for length in 0..=28 {
            let seen = lab.send(&error(HOP, ME.0, 11, &QUOTE[..length]), 0);
            assert_eq!(seen == "forwarded", length == 28, "{length} bytes");
        }
        for length in 0..=48 {
            let seen = lab.send(&error(HOP6, ME6.0, 3, &QUOTE6[..length]), 0);
            assert_eq!(seen == "forwarded", length == 48, "{length} bytes");
        }
        // A fragmented error is ignored, as it can't be verified.
        let piece = |offset| {
            let (mut inet, mut inet6) =
                (error(HOP, ME.0, 11, &QUOTE), error(HOP6, ME6.0, 3, &QUOTE6));
            (inet.fragment, inet6.fragment) = (Some((offset, true)), Some((offset, true)));
            inet.payload.resize(40, 0);
            inet6.payload.resize(56, 0);
            [inet, inet6]
        };
        assert_eq!(lab.send_all(&piece(0), 0), ["firewall"; 2]);
        assert_eq!(lab.send_all(&piece(7), 0), ["firewall"; 2]);
        // Bytes beyond the length of a packet do not belong to it.
        let mut short = QUOTE;
        short[3] = 27;
        assert_eq!(lab.send(&error(HOP, ME.0, 11, &short), 0), "firewall");
    }
}

#[test]
fn options_and_extension_headers_are_skipped() {
    let begun = [datagram(ME, YOU), datagram(ME6, YOU6)];
    for mut lab in labs(NARROW, &begun) {
        let mut optional = QUOTE.to_vec();
        (optional[0], optional[3]) = (0x46, 32);
        optional.splice(20..20, [1, 1, 1, 1]);
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &optional), 0), "forwarded");
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &optional[..31]), 0), "firewall");
        // Hop-by-hop options of 16 bytes, then a fragment header.
        let extended = |offset: u8| {
            let mut quote = QUOTE6.to_vec();
            (quote[5], quote[6]) = (32, 0);
            let extensions = [44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            quote.splice(40..40, [&extensions[..], &[17, 0, 0, offset, 0, 0, 0, 7]].concat());
            error(HOP6, ME6.0, 2, &quote)
        };
        assert_eq!(lab.send(&extended(1), 0), "forwarded");
        assert_eq!(lab.send(&extended(9), 0), "firewall", "a later fragment");
        let mut cut = extended(1);
        cut.payload.truncate(8 + 71);
        assert_eq!(lab.send(&cut, 0), "firewall");
        // Before the error itself: destination options.
        let mut behind = error(HOP6, ME6.0, 2, &QUOTE6);
        behind.payload.splice(0..0, [58, 0, 1, 4, 0, 0, 0, 0]);
        behind.protocol = 60;
        assert_eq!(lab.send(&behind, 0), "forwarded");
        let mut later = QUOTE;
        later[7] = 1;
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &later), 0), "firewall");
        later[6..8].copy_from_slice(&[0x20, 0]);
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &later), 0), "forwarded");
    }
}

#[test]
fn errors_about_queries_pass_but_not_about_errors() {
    for (me, you, hop, [request, reply, unreachable]) in
        [(ME.0, YOU.0, HOP, [8, 0, 3]), (ME6.0, YOU6.0, HOP6, [128, 129, 1])]
    {
        for mut lab in labs(OUTWARDS, &[icmp(me, you, request, 7)]) {
            let about = |kind, identifier| {
                error(hop, me, unreachable, &icmp(me, you, kind, identifier).quote())
            };
            assert_eq!(lab.send(&about(request, 7), 0), "forwarded");
            assert_eq!(lab.send(&about(reply, 7), 0), "forwarded");
            assert_eq!(lab.send(&about(request, 8), 0), "firewall");
            assert_eq!(lab.send(&about(unreachable, 7), 0), "firewall");
            // Even if the quoted error itself quotes a packet of the connection.
            let inner = error(me, you, unreachable, &icmp(you, me, reply, 7).quote());
            let outer = error(hop, me, unreachable, &inner.quote());
            assert_eq!(lab.send(&outer, 0), "firewall");
        }
    }
}

#[test]
fn other_protocols_match_by_address() {
    let begun = spec(47, ME, YOU, &[]);
    for mut lab in labs(OUTWARDS, std::slice::from_ref(&begun)) {
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &begun.quote()), 0), "forwarded");
        let other = spec(50, ME, YOU, &[0; 8]);
        assert_eq!(lab.send(&error(HOP, ME.0, 3, &other.quote()), 0), "firewall");
    }
}

#[test]
fn errors_do_not_refresh_the_state() {
    for kind in HOLDERS {
        let wall = wall(NARROW, &states(kind));
        let mut filter = wall.filter();
        let mut send =
            |packet: &Spec, second| filter.incoming(&[packet.frame()], 1, second * SECOND);
        assert_eq!(send(&datagram(ME, YOU), 1), 1);
        let report = error(HOP, ME.0, 3, &QUOTE);
        for second in 1..61 {
            assert_eq!(send(&report, second), 1, "{kind:?}, second {second}");
        }
        let stats = wall.stats();
        assert_eq!((stats.searches, stats.matches, stats.created), (61, 60, 1));
        assert_eq!(stats.rules.iter().map(|rule| rule.packets).sum::<u64>(), 1);
        let [connection] = filter.connections()[..] else { panic!("one connection") };
        assert_eq!(
            (connection.last_ns, connection.packets, connection.bytes),
            (SECOND, [1, 0], [28, 0])
        );
        // The state expires a minute after its only packet, regardless of errors about it.
        let mut send =
            |packet: &Spec, second| filter.incoming(&[packet.frame()], 1, second * SECOND);
        assert_eq!(send(&report, 61), 0);
        let stats = wall.stats();
        assert_eq!((stats.searches, stats.matches), (62, 60));
    }
}

/// Order within a batch matters, as for single packets.
#[test]
fn error_matches_a_state_from_its_own_batch() {
    for mut lab in labs(NARROW, &[]) {
        let report = error(HOP, ME.0, 3, &QUOTE);
        let seen = lab.send_all(&[report.clone(), datagram(ME, YOU), report], 0);
        assert_eq!(seen, ["firewall", "forwarded", "forwarded"]);
        let stats = lab.wall.stats();
        assert_eq!((stats.searches, stats.matches), (3, 1));
    }
}

/// RFC 5927: an attacker who can't see the connection knows neither its checksum nor its sequence
/// numbers.
#[test]
fn error_needs_a_valid_checksum_and_a_sequence_number_in_flight() {
    for (me, you, hop, kind) in [(ME, YOU, HOP, 3), (ME6, YOU6, HOP6, 1)] {
        let at = |sequence| segment(me, you, ACK, [sequence, 501], &[7; 50]);
        let begun = [
            segment(me, you, SYN, [1000, 0], &[]),
            segment(you, me, SYN | ACK, [500, 1001], &[]),
            at(1001),
            segment(you, me, ACK, [501, 1051], &[]),
            at(1051),
        ];
        for mut lab in labs(NARROW, &begun) {
            let report = |sequence| error(hop, me.0, kind, &at(sequence).quote());
            for (sequence, expected) in [
                (1051, "forwarded"),
                (1101, "forwarded"),
                (1001, "forwarded"),
                (1102, "firewall"),
                (700, "firewall"),
                (1_000_001_051, "firewall"),
            ] {
                assert_eq!(lab.send(&report(sequence), 0), expected, "{me:?} {sequence}");
            }
            let mut wrong = report(1051).bytes();
            *wrong.last_mut().expect("a byte") ^= 1;
            let mut batch = [fwdlab_router::path::Frame::of(1, &wrong).expect("it fits")];
            lab.router.process(&mut batch, 0);
            assert_eq!(batch[0].egress(), None, "{me:?}");
        }
    }
}
