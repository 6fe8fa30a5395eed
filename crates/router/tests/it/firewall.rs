//! Single packets through a router with a firewall: forwarding and states.

use crate::support::walled::*;
use crate::support::with;
use fwdlab_router::firewall::{Action, Phase, StateConfig, StateTable};
use fwdlab_router::path::{ForwardingPath, Frame};

const ME: (&str, u16) = ("198.18.0.5", 40_000);
const YOU: (&str, u16) = ("198.19.0.9", 80);
const ME6: (&str, u16) = ("2001:2::5", 40_000);
const YOU6: (&str, u16) = ("2001:2:0:8000::9", 80);

/// Connections begin only on the near side.
const OUTWARDS: &str = "pass in on 0 all keep state\nblock in on 1 all";

const HOLDERS: [StateTable; 3] = [StateTable::Global, StateTable::Sharded, StateTable::PerWorker];

fn states(kind: StateTable) -> StateConfig {
    StateConfig { kind, seed: Some(1), ..StateConfig::default() }
}

#[test]
fn tcp_connection_can_reopen_after_closing() {
    for kind in HOLDERS {
        for (me, you) in [(ME, YOU), (ME6, YOU6)] {
            let mut lab = Walled::new(OUTWARDS, &states(kind));
            let mut send = |source, destination, flags, second| {
                lab.send(&tcp(source, destination, flags), second * SECOND)
            };
            assert_eq!(send(you, me, SYN | ACK, 0), "firewall", "nobody asked");
            assert_eq!(send(me, you, SYN, 1), "forwarded");
            assert_eq!(send(you, me, SYN | ACK, 2), "forwarded");
            assert_eq!(send(me, you, ACK, 3), "forwarded");
            assert_eq!(send(you, (me.0, me.1 + 1), ACK, 3), "firewall", "another port");
            assert_eq!(send(you, me, ACK, 80_000), "forwarded", "a day is allowed");
            assert_eq!(send(me, you, FIN | ACK, 80_001), "forwarded");
            assert_eq!(send(you, me, FIN | ACK, 80_002), "forwarded");
            assert_eq!(send(me, you, ACK, 80_003), "forwarded");
            assert_eq!(send(you, me, SYN, 80_004), "firewall", "it is over");
            assert_eq!(send(me, you, SYN, 80_005), "forwarded", "the ports again");
            assert_eq!(send(you, me, RST | ACK, 80_006), "forwarded");
            assert_eq!(send(you, me, ACK, 80_095), "forwarded", "89 s after the reset");
            assert_eq!(send(you, me, ACK, 80_185), "firewall", "90 s after the last");
            let stats = lab.wall.stats();
            assert_eq!((stats.created, stats.expired, stats.states, stats.full), (2, 2, 0, 0));
            assert_eq!((stats.searches, stats.matches), (14, 8));
            assert_eq!(stats.rules[0].packets, 2);
            assert_eq!(stats.rules[1].packets, 4);
        }
    }
}

#[test]
fn state_counts_packets_and_bytes_of_both_sides() {
    for kind in HOLDERS {
        let wall = wall(OUTWARDS, &states(kind));
        let mut filter = wall.filter();
        let mut send = |packet: Spec, second| {
            let batch = [packet.frame()];
            fwdlab_router::path::Firewall::incoming(&mut filter, &batch, 1, second * SECOND)
        };
        // In one of the two families the initiator has the higher address.
        send(datagram(ME, YOU), 1);
        assert_eq!(send(datagram(YOU, ME), 2), 1);
        send(datagram(("198.18.255.5", 1), ("198.18.0.1", 2)), 3);
        send(datagram(("198.18.255.5", 1), ("198.18.0.1", 2)), 4);
        let mut found = filter.connections();
        found.sort_by_key(|connection| connection.last_ns);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].ends.map(|end| end.to_string()), [ME.0, YOU.0]);
        assert_eq!((found[0].marks, found[0].protocol), ([ME.1, YOU.1], UDP));
        assert_eq!((found[0].packets, found[0].bytes), ([1, 1], [28, 28]));
        assert_eq!((found[0].phase, found[0].last_ns), (Phase::Multiple, 2 * SECOND));
        assert_eq!(found[1].ends.map(|end| end.to_string()), ["198.18.255.5", "198.18.0.1"]);
        assert_eq!((found[1].packets, found[1].phase), ([2, 0], Phase::Single));
        drop(filter);
        let left = if kind == StateTable::PerWorker { 0 } else { 2 };
        assert_eq!(wall.stats().states, left, "{kind:?}");
    }
}

#[test]
fn only_echo_replies_pass_by_the_state_of_a_request() {
    for (me, you, request, reply) in [(ME.0, YOU.0, 8, 0), (ME6.0, YOU6.0, 128, 129)] {
        let mut lab = Walled::new(OUTWARDS, &states(StateTable::Sharded));
        assert_eq!(lab.send(&icmp(me, you, reply, 7), 0), "forwarded", "but keeps no state");
        assert_eq!(lab.send(&icmp(you, me, request, 7), 0), "firewall");
        assert_eq!(lab.send(&icmp(me, you, request, 7), 0), "forwarded");
        assert_eq!(lab.send(&icmp(you, me, reply, 7), 19 * SECOND), "forwarded");
        assert_eq!(lab.send(&icmp(you, me, reply, 8), 19 * SECOND), "firewall");
        assert_eq!(lab.send(&icmp(you, me, reply, 7), 39 * SECOND), "firewall");
    }
}

#[test]
fn ports_are_found_after_extension_headers() {
    let rules = "pass proto udp from any to any port 80\nblock all";
    let mut lab = Walled::new(rules, &states(StateTable::Sharded));
    let behind = |extensions: &[u8], first: u8| {
        let mut packet = datagram(ME6, YOU6);
        let mut payload = extensions.to_vec();
        payload.append(&mut packet.payload);
        (packet.payload, packet.protocol) = (payload, first);
        packet
    };
    let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
    let options = [51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let authentication = [17, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let all = [&hop_by_hop[..], &options, &authentication].concat();
    assert_eq!(lab.send(&behind(&all, 0), 0), "forwarded");
    let cut = behind(&[17, 9, 1, 4, 0, 0, 0, 0], 0);
    assert_eq!(lab.send(&cut, 0), "firewall_unreadable", "beyond the end");
    let chain: Vec<u8> = [0, 0, 1, 4, 0, 0, 0, 0].repeat(9);
    assert_eq!(lab.send(&behind(&chain, 0), 0), "firewall_unreadable", "too many");
}

#[test]
fn states_pass_outgoing_packets_and_rules_filter_others() {
    let rules = "pass in proto tcp all keep state\npass in all\nblock out on 1 all";
    let mut lab = Walled::new(rules, &states(StateTable::Sharded));
    assert_eq!(lab.send(&tcp(ME, YOU, SYN), 0), "forwarded");
    assert_eq!(lab.send(&tcp(ME, YOU, ACK), 0), "forwarded");
    assert_eq!(lab.send(&datagram(ME, YOU), 0), "firewall");
    assert_eq!(lab.send(&datagram(YOU, ME), 0), "forwarded", "out at the other port");
    // A state may also begin on the way out.
    let rules = "pass out on 1 all keep state\nblock in on 1 all";
    let mut lab = Walled::new(rules, &states(StateTable::Sharded));
    assert_eq!(lab.send(&datagram(YOU, ME), 0), "firewall");
    assert_eq!(lab.send(&datagram(ME, YOU), 0), "forwarded");
    assert_eq!(lab.send(&datagram(YOU, ME), 0), "forwarded");
}

#[test]
fn state_of_tcp_begins_with_its_opening_by_default() {
    for (rule, picks_up) in [
        ("pass in proto tcp all flags S/SA keep state", false),
        ("pass in proto tcp all keep state", false),
        ("pass in all keep state", false),
        ("pass in all keep state (sloppy)", false),
        ("pass in proto tcp all flags any keep state", true),
        ("pass in all flags any keep state", true),
    ] {
        let rules = format!("{rule}\nblock in proto tcp all");
        let mut lab = Walled::new(&rules, &states(StateTable::Sharded));
        let middle = if picks_up { "forwarded" } else { "firewall" };
        assert_eq!(lab.send(&tcp(ME, YOU, ACK), 0), middle, "{rule}");
        let mut lab = Walled::new(&rules, &states(StateTable::Sharded));
        assert_eq!(lab.send(&datagram(ME, YOU), 0), "forwarded", "{rule}");
        if !picks_up {
            assert_eq!(lab.send(&tcp(ME, YOU, SYN | ACK), 0), "firewall", "{rule}");
        }
        assert_eq!(lab.send(&tcp(ME, YOU, SYN), 0), "forwarded", "{rule}");
        assert_eq!(lab.send(&tcp(ME, YOU, ACK), 0), "forwarded", "{rule}");
    }
}

#[test]
fn full_table_blocks_or_passes_only_new_connections() {
    for kind in HOLDERS {
        for when_full in [Action::Block, Action::Pass] {
            let gives_way = false;
            let config = StateConfig { limit: 2, when_full, gives_way, ..states(kind) };
            let mut lab = Walled::new(OUTWARDS, &config);
            let from = |port| datagram((ME.0, port), YOU);
            let new = if when_full == Action::Pass { "forwarded" } else { "state_full" };
            let seen = lab.send_all(&[from(1), from(2), from(3), from(1), from(3)], 0);
            assert_eq!(seen, ["forwarded", "forwarded", new, "forwarded", new]);
            assert_eq!(lab.send(&datagram(YOU, (ME.0, 2)), 0), "forwarded");
            assert_eq!(lab.send(&datagram(YOU, (ME.0, 3)), 0), "firewall", "it has no state");
            let stats = lab.wall.stats();
            assert_eq!((stats.states, stats.created, stats.full), (2, 2, 2));
            // The states have expired, but no sweep has run yet; the rejected batch runs it.
            assert_eq!(lab.send(&from(4), 1000 * SECOND), new);
            assert_eq!(lab.send(&from(4), 1000 * SECOND), "forwarded");
            assert_eq!(lab.wall.stats().expired, 2);
        }
    }
}

/// The fast path hands over packets with options: outside their batch, they remain the packets that
/// came in, with their states.
#[test]
fn packets_with_options_keep_their_states() {
    let rules =
        "pass in proto udp from any to any port 53 keep state\nblock out on 1 proto udp all";
    for path in ForwardingPath::IN_PROCESS {
        let mut lab = Walled::along(path, rules, &states(StateTable::Global));
        let plain = |port| datagram(ME, (YOU.0, port)).bytes();
        let optional = |port| {
            let mut frame = plain(port);
            frame.splice(34..34, [1, 1, 1, 1]);
            frame[17] += 4;
            with(frame, &[(14, &[0x46])])
        };
        let frames = [plain(54), optional(53), plain(53), optional(54)];
        let mut batch = frames.map(|bytes| Frame::of(0, &bytes).expect("it fits"));
        lab.router.process(&mut batch, 0);
        let egresses = batch.each_ref().map(Frame::egress);
        assert_eq!(egresses, [None, Some(1), Some(1), None], "{path}");
    }
}

#[test]
fn full_table_is_counted_on_the_full_path() {
    let config = StateConfig { limit: 1, gives_way: false, ..states(StateTable::Global) };
    let mut lab = Walled::along(ForwardingPath::Full, OUTWARDS, &config);
    assert_eq!(lab.send(&datagram((ME.0, 1), YOU), 0), "forwarded");
    assert_eq!(lab.send(&datagram((ME.0, 2), YOU), 0), "state_full");
    assert_eq!(lab.send(&datagram(YOU, (ME.0, 2)), 0), "firewall");
}

#[test]
fn keep_state_is_ignored_if_states_are_disabled() {
    let mut lab = Walled::new(OUTWARDS, &states(StateTable::None));
    assert_eq!(lab.send(&datagram(ME, YOU), 0), "forwarded");
    assert_eq!(lab.send(&datagram(YOU, ME), 0), "firewall");
    let stats = lab.wall.stats();
    assert_eq!((stats.states, stats.created, stats.searches, stats.memory_bytes), (0, 0, 0, 0));
}
