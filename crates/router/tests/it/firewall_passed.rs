//! Attempts to bypass a firewall, all of which fail: fragments, headers that can't be read, resets,
//! floods of states, packets to the router and packets that expire.

use crate::support::walled::*;
use crate::support::with;
use fwdlab_router::firewall::{StateConfig, StateTable};
use fwdlab_router::path::{ForwardingPath, Frame, Reason};

const ME: (&str, u16) = ("198.18.0.5", 40_000);
const YOU: (&str, u16) = ("198.19.0.9", 80);
const ME6: (&str, u16) = ("2001:2::5", 40_000);
const YOU6: (&str, u16) = ("2001:2:0:8000::9", 80);
const OUTWARDS: &str = "pass in on 0 all flags any keep state\nblock in on 1 all";

fn states() -> StateConfig {
    StateConfig { seed: Some(1), ..StateConfig::default() }
}

/// Routers on both paths with these rules.
fn labs(rules: &str) -> [Walled; 2] {
    ForwardingPath::IN_PROCESS.map(|path| Walled::along(path, rules, &states()))
}

/// Fragment of a packet from `begin`, a multiple of eight, to `end`.
fn piece(whole: &Spec, begin: usize, end: usize) -> Spec {
    let end = end.min(whole.payload.len());
    let payload = whole.payload[begin..end].to_vec();
    let fragment = Some(((begin / 8) as u16, end < whole.payload.len()));
    Spec { payload, fragment, ..whole.clone() }
}

#[test]
fn tiny_fragments_do_not_hide_ports() {
    let rules = "block in proto tcp from any to any port 22";
    for mut lab in labs(rules) {
        for (me, you) in [(ME, (YOU.0, 22)), (ME6, (YOU6.0, 22))] {
            let syn = tcp(me, you, SYN);
            assert_eq!(lab.send(&syn, 0), "firewall");
            assert_eq!(lab.send(&piece(&syn, 0, 8), 0), "firewall_unreadable");
            assert_eq!(lab.send(&piece(&syn, 8, 20), 0), "firewall_fragment", "of nothing");
            assert_eq!(lab.send(&piece(&syn, 0, 16), 0), "firewall_unreadable");
            // A header of 24 bytes, of which the first fragment contains 20.
            let mut long = segment(me, (you.0, 23), SYN, [1, 0], &[1; 28]);
            long.payload[12] = 0xc0;
            assert_eq!(lab.send(&piece(&long, 0, 24), 0), "firewall_unreadable");
            assert_eq!(lab.send(&tcp(me, (you.0, 23), SYN), 0), "forwarded");
        }
        // Chains of options, including one that does not end.
        for (options, expected) in [
            (0, "firewall"),
            (8, "firewall"),
            (9, "firewall_unreadable"),
            (12, "firewall_unreadable"),
        ] {
            let mut syn = tcp(ME6, (YOU6.0, 22), SYN);
            for option in 0..options {
                let next = if option == 0 { TCP } else { 60 };
                syn.payload.splice(0..0, [next, 0, 1, 4, 0, 0, 0, 0]);
                syn.protocol = 60;
            }
            assert_eq!(lab.send(&syn, 0), expected, "{options} options");
        }
    }
}

#[test]
fn overlapping_fragments_are_dropped() {
    for mut lab in labs("block in proto udp from any to any port 22") {
        for (me, you) in [(ME, YOU), (ME6, YOU6)] {
            let whole = spec(UDP, me, you, &[0; 60]);
            assert_eq!(lab.send(&piece(&whole, 0, 32), 0), "forwarded");
            assert_eq!(lab.send(&piece(&whole, 24, 40), 0), "firewall_fragment");
            assert_eq!(lab.send(&piece(&whole, 8, 16), 0), "firewall_fragment");
            assert_eq!(lab.send(&piece(&whole, 40, 64), 0), "forwarded", "the last");
            assert_eq!(lab.send(&piece(&whole, 48, 56), 0), "firewall_fragment");
            assert_eq!(lab.send(&piece(&whole, 32, 40), 0), "forwarded", "the gap");
            // Later fragments share the verdict on the first.
            let blocked = spec(UDP, me, (you.0, 22), &[0; 60]);
            assert_eq!(lab.send(&piece(&blocked, 0, 32), 0), "firewall");
            assert_eq!(lab.send(&piece(&blocked, 32, 64), 0), "firewall");
        }
    }
    // If no rule needs fields of the first fragment, each fragment is filtered by itself.
    for mut lab in labs("block in from 198.18.0.6 to any") {
        let whole = spec(UDP, ME, YOU, &[0; 60]);
        assert_eq!(lab.send(&piece(&whole, 32, 64), 0), "forwarded");
        let other = spec(UDP, ("198.18.0.6", 1), YOU, &[0; 60]);
        assert_eq!(lab.send(&piece(&other, 32, 64), 0), "firewall");
    }
}

#[test]
fn fragments_follow_the_state_of_the_first() {
    for mut lab in labs(&format!("{OUTWARDS}\nblock out all")) {
        for (me, you) in [(ME, YOU), (ME6, YOU6)] {
            assert_eq!(lab.send(&datagram(me, you), 0), "forwarded");
            let reply = spec(UDP, you, me, &[0; 2996]);
            let pieces = [(0, 1000), (1000, 2000), (2000, 3000)].map(|(a, b)| piece(&reply, a, b));
            assert_eq!(lab.send_all(&pieces, 0), ["forwarded"; 3], "{me:?}");
            // No request preceded this one.
            let other = spec(UDP, (you.0, 81), me, &[0; 2996]);
            let pieces = [(0, 1000), (1000, 2000)].map(|(a, b)| piece(&other, a, b));
            assert_eq!(lab.send_all(&pieces, 0), ["firewall"; 2]);
        }
        assert_eq!(lab.wall.stats().created, 2);
    }
}

/// A connection with 50 bytes in each direction: `me` has sent up to 1051, `you` up to 551.
fn established(me: (&str, u16), you: (&str, u16)) -> [Spec; 5] {
    [
        segment(me, you, SYN, [1000, 0], &[]),
        segment(you, me, SYN | ACK, [500, 1001], &[]),
        segment(me, you, ACK, [1001, 501], &[7; 50]),
        segment(you, me, ACK, [501, 1051], &[7; 50]),
        segment(me, you, ACK, [1051, 551], &[]),
    ]
}

/// RFC 5961 section 3.
#[test]
fn reset_needs_the_expected_sequence_number() {
    for (me, you) in [(ME, YOU), (ME6, YOU6)] {
        for (number, flags, seen, ends) in [
            (1_000_000_551, RST, "firewall_stray", false),
            (552, RST, "forwarded", false),
            (551 + 257, RST, "firewall_stray", false),
            (551, RST, "forwarded", true),
            (551, RST | ACK, "forwarded", true),
        ] {
            for mut lab in labs("pass in proto tcp all flags S/SA keep state\nblock all") {
                for packet in established(me, you) {
                    assert_eq!(lab.send(&packet, 0), "forwarded");
                }
                assert_eq!(lab.send(&segment(you, me, flags, [number, 1051], &[]), 0), seen);
                // A state that was ended expires after 90 s of silence; others stay.
                let later = lab.send(&segment(me, you, ACK, [1051, 551], &[1]), 95 * SECOND);
                let expected = if ends { "firewall" } else { "forwarded" };
                assert_eq!(later, expected, "{number} {flags}");
            }
        }
        // The right number in a damaged packet.
        for mut lab in labs("pass in proto tcp all flags S/SA keep state\nblock all") {
            for packet in established(me, you) {
                assert_eq!(lab.send(&packet, 0), "forwarded");
            }
            let mut bytes = segment(you, me, RST, [551, 0], &[]).bytes();
            *bytes.last_mut().expect("a byte") ^= 1;
            let mut batch = [Frame::of(1, &bytes).expect("it fits")];
            lab.router.process(&mut batch, 0);
            lab.router.flush();
            assert_eq!(lab.counters.read().get(Reason::FirewallStray), 1);
            assert_eq!(
                lab.send(&segment(me, you, ACK, [1051, 551], &[1]), 95 * SECOND),
                "forwarded"
            );
        }
    }
}

#[test]
fn segments_pass_only_within_windows() {
    let rules = "pass in proto tcp all flags S/SA keep state\nblock all";
    for mut lab in labs(rules) {
        for packet in established(ME, YOU) {
            assert_eq!(lab.send(&packet, 0), "forwarded");
        }
        for (numbers, length, expected) in [
            ([501, 1051], 50, "forwarded"),
            ([550, 1051], 0, "forwarded"),
            ([551, 1051], 256, "forwarded"),
            ([551 + 256, 1051], 1, "forwarded"),
            ([551 + 257 + 256, 1051], 1, "firewall_stray"),
            ([551 + 100_000, 1051], 1, "firewall_stray"),
            ([551u32.wrapping_sub(100_000), 1051], 50, "firewall_stray"),
            ([551, 1052], 0, "firewall_stray"),
            ([551, 1051u32.wrapping_sub(200_000)], 0, "firewall_stray"),
        ] {
            let packet = segment(YOU, ME, ACK, numbers, &vec![0; length]);
            assert_eq!(lab.send(&packet, 0), expected, "{numbers:?}");
        }
        // A SYN of the responder, and flags that no stack sends, as with nf_conntrack.
        let [push, urgent] = [8, 32];
        for flags in [SYN, 0, FIN, SYN | FIN, SYN | RST, FIN | RST | ACK, FIN | push | urgent] {
            for number in [551, 9_000_000] {
                let packet = segment(YOU, ME, flags, [number, 0], &[]);
                assert_eq!(lab.send(&packet, 0), "firewall_stray", "{flags:#x}");
            }
        }
        // A second SYN passes, so that its receiver can send a challenge ACK, and changes nothing.
        assert_eq!(lab.send(&segment(ME, YOU, SYN, [77_000_000, 0], &[]), 0), "forwarded");
        assert_eq!(lab.send(&segment(YOU, ME, ACK, [551, 1051], &[1]), 0), "forwarded");
        // The answer accepts it: this replaces the old connection.
        assert_eq!(lab.send(&segment(YOU, ME, SYN | ACK, [9, 77_000_001], &[]), 0), "forwarded");
        assert_eq!(lab.send(&segment(ME, YOU, ACK, [77_000_001, 10], &[1]), 0), "forwarded");
        assert_eq!(lab.send(&segment(YOU, ME, ACK, [551, 1051], &[1]), 0), "firewall_stray");
    }
    // Sloppy states ignore sequence numbers.
    for mut lab in labs("pass in proto tcp all flags S/SA keep state (sloppy)\nblock all") {
        for packet in established(ME, YOU) {
            assert_eq!(lab.send(&packet, 0), "forwarded");
        }
        assert_eq!(lab.send(&segment(YOU, ME, ACK, [3_000_000_000, 0], &[1]), 0), "forwarded");
    }
}

/// Two conforming hosts never violate a window: packets are lost, duplicated and reordered, with
/// and without scaling.
#[test]
fn conforming_hosts_are_never_blocked() {
    for (seed, scale) in (0..40u64).zip([None, Some(0), Some(3), Some(7)].into_iter().cycle()) {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut lab =
            Walled::new("pass in proto tcp all flags S/SA keep state\nblock all", &states());
        let start = [u32::MAX - 3000, (draw(1 << 32)) as u32];
        let open = |from: usize, flags, numbers| {
            let ends = [ME, YOU];
            let mut syn = segment(ends[from], ends[1 - from], flags, numbers, &[]);
            if let Some(scale) = scale {
                syn.payload[12] = 0x60;
                syn.payload.extend([3, 3, scale, 0]);
            }
            syn
        };
        assert_eq!(lab.send(&open(0, SYN, [start[0], 0]), 0), "forwarded");
        let acknowledges = start[0].wrapping_add(1);
        assert_eq!(lab.send(&open(1, SYN | ACK, [start[1], acknowledges]), 0), "forwarded");
        // For each host: the end of sent data, the end of data received in order, and its view of
        // the other's offer.
        let mut sent = start.map(|start| start.wrapping_add(1));
        let mut got = [sent[1], sent[0]];
        let window = 256u32 << scale.unwrap_or(0);
        let mut offered = [sent[0].wrapping_add(256), sent[1].wrapping_add(256)];
        let mut flying: Vec<(usize, u32, u32, u32)> = Vec::new();
        // Data that arrived long ago may be dropped if it comes again.
        let (mut top, mut old) = (sent, 0);
        for step in 0..300 {
            let from = draw(2) as usize;
            let room = offered[from].wrapping_sub(sent[from]);
            let length = if room < 1 << 30 { (draw(90) as u32).min(room) } else { 0 };
            let again = draw(5) == 0 && got[1 - from] != sent[from];
            let begin = if again { got[1 - from] } else { sent[from] };
            let length = if again { length.min(sent[from].wrapping_sub(begin)) } else { length };
            flying.push((from, begin, length, got[from]));
            if !again {
                sent[from] = sent[from].wrapping_add(length);
            }
            // The router sees some, not all, in any order; so do the hosts.
            while flying.len() > 4 {
                let (from, begin, length, has) = flying.swap_remove(draw(5) as usize);
                let ends = [ME, YOU];
                let data = vec![0; length as usize];
                let packet = segment(ends[from], ends[1 - from], ACK, [begin, has], &data);
                let seen = lab.send(&packet, step);
                let end = begin.wrapping_add(length);
                if top[from].wrapping_sub(end).cast_signed() > window.cast_signed() {
                    old += 1;
                    continue;
                }
                assert_eq!(seen, "forwarded", "seed {seed}, step {step}: {from} {begin} {has}");
                if end.wrapping_sub(top[from]).cast_signed() > 0 {
                    top[from] = end;
                }
                if draw(6) == 0 {
                    continue; // lost behind the router
                }
                let new = end.wrapping_sub(got[1 - from]).cast_signed() > 0;
                if begin.wrapping_sub(got[1 - from]).cast_signed() <= 0 && new {
                    got[1 - from] = end;
                }
                let offer = has.wrapping_add(window);
                if offer.wrapping_sub(offered[1 - from]).cast_signed() > 0 {
                    offered[1 - from] = offer;
                }
            }
        }
        assert!(old < 30, "{old} of 300");
    }
}

/// Packets of one connection of a flood, from its host and its target.
type Flood = fn((&str, u16)) -> Vec<Spec>;

/// Floods of connections in which no side sends twice.
const FLOODS: [(&str, Flood); 5] = [
    ("openings", |host| vec![tcp(host, YOU, SYN)]),
    ("openings, refused", |host| {
        vec![tcp(host, YOU, SYN), segment(YOU, host, RST | ACK, [0, 2], &[])]
    }),
    ("openings, answered", |host| {
        vec![tcp(host, YOU, SYN), segment(YOU, host, SYN | ACK, [500, 2], &[])]
    }),
    ("acknowledgements", |host| vec![tcp(host, YOU, ACK)]),
    ("queries, answered", |host| vec![datagram(host, YOU), datagram(YOU, host)]),
];

/// A flood of 17,500 connections per second, from an unlimited number of sources, into a table of
/// 1000: connections in use stay, and new connections get in.
#[test]
fn floods_do_not_block_other_connections() {
    for (what, connection_of) in FLOODS {
        for kind in [StateTable::Global, StateTable::Sharded, StateTable::PerWorker] {
            flood_does_not_block_other_connections(kind, what, connection_of);
        }
    }
}

fn flood_does_not_block_other_connections(kind: StateTable, what: &str, connection_of: Flood) {
    let config = StateConfig { limit: 1000, kind, ..states() };
    let mut lab = Walled::new("pass in on 0 all flags any keep state\nblock in all", &config);
    let host = |number: u32| format!("198.18.{}.{}", 1 + number / 250, 1 + number % 250);
    let answered_host = host(0);
    for packet in established((&answered_host, 1), YOU) {
        assert_eq!(lab.send(&packet, 0), "forwarded");
    }
    let (mut flood, mut now_ns) = (0u32, 0u64);
    let mut pour = |lab: &mut Walled, connections: u32, now_ns: &mut u64| {
        for _ in 0..connections {
            flood += 1;
            *now_ns += SECOND / 17_500;
            let port = 1024 + (flood % 60_000) as u16;
            for packet in connection_of((&host(300 + flood % 10_000), port)) {
                assert_eq!(lab.send(&packet, *now_ns), "forwarded", "{what}, {kind:?}");
            }
        }
    };
    for connection in 1..=20 {
        let (me, port) = (host(connection), connection as u16);
        pour(&mut lab, 1225, &mut now_ns);
        for (at, packet) in established((&me, port), YOU).into_iter().enumerate() {
            let context = format!("{what}, {kind:?}: packet {at} of connection {connection}");
            assert_eq!(lab.send(&packet, now_ns), "forwarded", "{context}");
            // 2 ms between a packet and its answer.
            pour(&mut lab, 35, &mut now_ns);
        }
    }
    assert!(flood > 20_000);
    let more = segment((&answered_host, 1), YOU, ACK, [1051, 551], &[1]);
    assert_eq!(lab.send(&more, 4 * SECOND), "forwarded", "{what}, {kind:?}");
    let stats = lab.wall.stats();
    assert!(stats.states <= 1000 && stats.evicted > 15_000, "{what}: {stats:?}");
    assert_eq!(stats.states, stats.created - stats.expired - stats.evicted);
    assert!(stats.memory_bytes < 1 << 20, "{what}: {stats:?}");
}

/// A segment from mid-stream does not keep a state for a day, as an established connection does.
#[test]
fn midstream_states_are_short_until_both_sides_have_answered() {
    for mut lab in labs(OUTWARDS) {
        let me = |port| (ME.0, port);
        let ack = |port| segment(me(port), YOU, ACK, [1000, 500], &[]);
        let answer = |port| segment(YOU, me(port), ACK, [500, 1000], &[]);
        for port in [1, 2, 3] {
            assert_eq!(lab.send(&ack(port), 0), "forwarded");
        }
        for packet in [answer(1), ack(1)] {
            assert_eq!(lab.send(&packet, SECOND), "forwarded");
        }
        assert_eq!(lab.send(&answer(2), 119 * SECOND), "forwarded");
        assert_eq!(lab.send(&answer(3), 121 * SECOND), "firewall", "one side only");
        assert_eq!(lab.send(&answer(2), 150 * SECOND), "firewall", "not confirmed");
        assert_eq!(lab.send(&answer(1), 80_000 * SECOND), "forwarded", "established");
    }
}

#[test]
fn source_limit_bounds_states_per_source() {
    for kind in [StateTable::Global, StateTable::Sharded, StateTable::PerWorker] {
        let config = StateConfig { source_limit: 10, kind, ..states() };
        let mut lab = Walled::new(OUTWARDS, &config);
        for (me, neighbour, you) in
            [(ME.0, "198.18.0.6", YOU), ("2001:2::5", "2001:2:0:1::5", YOU6)]
        {
            for port in 0..20 {
                let expected = if port < 10 { "forwarded" } else { "state_full" };
                assert_eq!(lab.send(&datagram((me, port), you), 0), expected, "{kind:?} {port}");
            }
            let mut other = datagram((neighbour, 1), you);
            other.port = 0;
            assert_eq!(lab.send(&other, 0), "forwarded");
            // Expired states make room.
            assert_eq!(lab.send(&datagram((me, 3), you), 100 * SECOND), "forwarded");
        }
    }
}

/// Packets beyond the rate are decided by the rules after it; states are not limited by it.
#[test]
fn limited_rule_matches_up_to_its_rate() {
    let rules = "pass in proto udp to port 53 keep state limit 10/second burst 4\n\
                 pass in proto udp to port 54 limit 60/minute per source\n\
                 block in all";
    for mut lab in labs(rules) {
        let to = |(me, port): (&str, u16), service| {
            let mut packet = datagram((me, port), (YOU.0, service));
            packet.port = 0;
            packet
        };
        let mut passed = |packets: &mut dyn Iterator<Item = Spec>, now_ns| {
            packets.filter(|packet| lab.send(packet, now_ns) == "forwarded").count()
        };
        let of_ports = |from: u16, count: u16| (from..from + count).map(move |n| to((ME.0, n), 53));
        assert_eq!(passed(&mut of_ports(1, 20), SECOND), 4);
        assert_eq!(passed(&mut of_ports(1, 4), SECOND), 4, "they have a state");
        assert_eq!(passed(&mut of_ports(30, 20), SECOND + SECOND / 2), 4, "a burst");
        assert_eq!(passed(&mut of_ports(60, 20), SECOND + SECOND * 6 / 10), 1);
        for neighbour in ["198.18.0.6", "198.18.0.7"] {
            assert_eq!(passed(&mut (0..70).map(|_| to((neighbour, 5), 54)), 3 * SECOND), 60);
        }
    }
}

#[test]
fn local_and_expiring_packets_are_filtered() {
    let rules = "block local proto icmp from 198.18.0.5 to any\n\
                 block in from 198.18.0.6 to any";
    for mut lab in labs(rules) {
        let ping = |from: &str| icmp(from, "198.18.0.1", 8, 7);
        assert_eq!(lab.send(&ping("198.18.0.5"), 0), "firewall");
        assert_eq!(lab.send(&ping("198.18.0.7"), 0), "forwarded", "answered");
        // `in` rules apply to packets that are forwarded, or would be if they did not expire.
        assert_eq!(lab.send(&ping("198.18.0.6"), 0), "forwarded", "answered");
        let mut expiring = |from: &str| {
            let bytes = with(datagram((from, 1), YOU).bytes(), &[(22, &[1])]);
            let mut batch = [Frame::of(0, &bytes).expect("it fits")];
            let before = lab.counters.read();
            lab.router.process(&mut batch, 0);
            lab.router.flush();
            let after = lab.counters.read();
            let new = |reason| after.get(reason) - before.get(reason);
            (new(Reason::SlowExpired), new(Reason::Answered), new(Reason::Firewall))
        };
        assert_eq!(expiring("198.18.0.5"), (1, 1, 0));
        assert_eq!(expiring("198.18.0.6"), (0, 0, 1));
    }
}
