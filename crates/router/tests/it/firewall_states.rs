//! Compares states with a map whose connections remember all their packets, over time; tests
//! growth, and several workers in parallel.

use crate::support::walled::*;
use fwdlab_router::firewall::{Filter, SharedFirewall, StateConfig, StateTable};
use fwdlab_router::path::{Firewall, Frame};
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Phases only: windows have separate tests.
const OUTWARDS: &str = "pass in on 0 all flags any keep state (sloppy)\nblock in on 1 all";

const HOLDERS: [StateTable; 3] = [StateTable::Global, StateTable::Sharded, StateTable::PerWorker];

/// Connections by their two ends in order, with all that is known of them.
#[derive(Default)]
struct Oracle {
    connections: HashMap<(u8, [(IpAddr, u16); 2]), History>,
    limit: usize,
    created: u64,
    full: u64,
}

struct History {
    last_ns: u64,
    /// True for a reply, and the TCP flags.
    packets: Vec<(bool, u8)>,
    began: (IpAddr, u16),
}

impl History {
    /// The timeouts of pf.conf(5), in seconds.
    fn timeout(&self, protocol: u8) -> u64 {
        let replied = self.packets.iter().any(|packet| packet.0);
        match protocol {
            TCP => self.tcp_timeout(),
            1 | 58 => 20,
            _ if replied => 60,
            _ if self.packets.len() == 1 => 60,
            _ => 30,
        }
    }

    fn tcp_timeout(&self) -> u64 {
        let finished = |side| self.packets.iter().any(|&(reply, f)| reply == side && f & FIN != 0);
        if self.is_closed() {
            return 90;
        }
        if finished(false) || finished(true) {
            return 900;
        }
        if self.packets[0].1 & (SYN | ACK) != SYN {
            return 86_400;
        }
        let Some(answer) = self.packets.iter().position(|packet| packet.0) else { return 120 };
        let agreed = self.packets[answer..].iter().any(|&(reply, f)| !reply && f & ACK != 0);
        if agreed { 86_400 } else { 30 }
    }

    fn is_closed(&self) -> bool {
        let reset = self.packets.iter().any(|packet| packet.1 & RST != 0);
        let finished = |side| self.packets.iter().any(|&(reply, f)| reply == side && f & FIN != 0);
        reset || finished(false) && finished(true)
    }
}

impl Oracle {
    fn forget(&mut self, now_ns: u64) {
        self.connections.retain(|(protocol, _), history| {
            now_ns - history.last_ns < history.timeout(*protocol) * SECOND
        });
    }

    /// True for an error to the sender of a packet of a connection: it changes nothing.
    fn is_related(&self, spec: &Spec) -> bool {
        let quote = &spec.payload[8..];
        let (protocol, ends, rest) = if spec.protocol == 1 {
            let end =
                |at: usize| IpAddr::from(*quote[at..].first_chunk::<4>().expect("four bytes"));
            (quote[9], [end(12), end(16)], &quote[20..])
        } else {
            let end = |at: usize| IpAddr::from(*quote[at..].first_chunk::<16>().expect("sixteen"));
            (quote[6], [end(8), end(24)], &quote[40..])
        };
        let word = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        let is_query = matches!(protocol, 1 | 58);
        let marks = if is_query { [word(4); 2] } else { [word(0), word(2)] };
        let mut sides = [(ends[0], marks[0]), (ends[1], marks[1])];
        sides.sort();
        ends[0] == spec.ends[1] && self.connections.contains_key(&(protocol, sides))
    }

    /// Returns true if the packet passes.
    fn judge(&mut self, spec: &Spec, now_ns: u64) -> bool {
        self.forget(now_ns);
        if spec.is_error() {
            return self.is_related(spec) || spec.port == 0;
        }
        let word = |at: usize| u16::from_be_bytes([spec.payload[at], spec.payload[at + 1]]);
        let query = matches!(spec.protocol, 1 | 58);
        let marks = if query { [word(4); 2] } else { [word(0), word(2)] };
        let source = (spec.ends[0], marks[0]);
        let mut ends = [source, (spec.ends[1], marks[1])];
        ends.sort();
        let key = (spec.protocol, ends);
        let flags = if spec.protocol == TCP { spec.payload[13] } else { 0 };
        let opens_tcp = flags & (SYN | ACK) == SYN;
        if opens_tcp && self.connections.get(&key).is_some_and(History::is_closed) {
            self.connections.remove(&key);
        }
        if let Some(history) = self.connections.get_mut(&key) {
            history.packets.push((history.began != source, flags));
            history.last_ns = now_ns;
            return true;
        }
        if spec.port != 0 {
            return false;
        }
        if flags & RST != 0 || query && !matches!(spec.payload[0], 8 | 128) {
            return true;
        }
        if self.connections.len() == self.limit {
            self.full += 1;
            return false;
        }
        self.created += 1;
        let packets = vec![(false, flags)];
        self.connections.insert(key, History { last_ns: now_ns, packets, began: source });
        true
    }
}

/// Packets between few ends, in either direction, each with the nanoseconds before it and the
/// number of copies in one batch. Some are repeated soon.
fn steps() -> impl Strategy<Value = Vec<(Spec, u64, usize)>> {
    let flags = prop_oneof![
        3 => Just(SYN), 3 => Just(SYN | ACK), 6 => Just(ACK), 2 => Just(FIN | ACK), 1 => Just(RST)
    ];
    let wait = prop_oneof![
        4 => Just(0u64),
        3 => (1u64..25).prop_map(|seconds| seconds * SECOND),
        4 => 1_000_000u64..40_000_000,
        1 => (25u64..1000).prop_map(|seconds| seconds * SECOND),
        1 => (80_000u64..90_000).prop_map(|seconds| seconds * SECOND),
    ];
    let packet = (0u8..5, any::<bool>(), 0u16..4, any::<bool>(), flags, 0u8..6);
    let packet = packet.prop_map(|(kind, inet6, number, reply, flags, swap)| {
        let me = if inet6 { ("2001:2::5", number) } else { ("198.18.0.5", number) };
        let you = if inet6 { ("2001:2:0:8000::9", 2) } else { ("198.19.0.9", 2) };
        let (from, to) = if reply { (you, me) } else { (me, you) };
        let types = if inet6 { [128, 129] } else { [8, 0] };
        let mut spec = match kind {
            0 => datagram(from, to),
            1 => icmp(from.0, to.0, types[usize::from(reply)], number),
            2 => {
                let quoted = match flags {
                    SYN => icmp(to.0, from.0, types[usize::from(!reply)], number),
                    ACK => tcp(to, from, flags),
                    _ => datagram(to, from),
                };
                // Sometimes to a host that never sent it.
                let to = if flags == RST { from } else { to };
                error(from.0, to.0, if inet6 { 1 } else { 3 }, &quoted.quote()[..])
            }
            _ => tcp(from, to, flags),
        };
        // Sometimes from the other side.
        spec.port ^= u8::from(swap == 0);
        spec
    });
    // As often as a worker looks up flows that its cache contains.
    let again = prop::collection::vec((0u64..15_000_000, 2usize..5), 0..4);
    let step = (packet, wait, 1usize..3, again).prop_map(|(spec, wait_ns, copies, again)| {
        let again = again.into_iter().map(|(wait_ns, copies)| (spec.clone(), wait_ns, copies));
        std::iter::once((spec.clone(), wait_ns, copies)).chain(again).collect::<Vec<_>>()
    });
    prop::collection::vec(step, 1..60).prop_map(|steps| steps.concat())
}

/// The verdict on each copy of a packet in one batch.
fn judge(filter: &mut Filter, spec: &Spec, copies: usize, now_ns: u64) -> Vec<bool> {
    let batch = vec![spec.frame(); copies];
    let passed = filter.incoming(&batch, (1 << copies) - 1, now_ns);
    (0..copies).map(|copy| passed >> copy & 1 == 1).collect()
}

fn states(kind: StateTable) -> StateConfig {
    StateConfig { kind, seed: Some(1), ..StateConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Once with a limit and immediate removal of expired states, once without limit and no removal
    /// before the next packet.
    #[test]
    fn states_match_a_map(
        steps in steps(),
        limited in any::<bool>(),
        flow_cache in any::<bool>(),
    ) {
        let limit = if limited { 4 } else { 1 << 20 };
        let interval = if limited { Duration::from_nanos(1) } else { Duration::MAX };
        for kind in HOLDERS {
            let mut oracle = Oracle { limit, ..Oracle::default() };
            let gives_way = false;
            let config = StateConfig { limit, interval, flow_cache, gives_way, ..states(kind) };
            let wall = wall(OUTWARDS, &config);
            let mut filter = wall.filter();
            let mut now_ns = 5;
            for (number, (spec, wait_ns, copies)) in steps.iter().enumerate() {
                now_ns += wait_ns;
                if limited {
                    for later_ns in 0..4 {
                        filter.incoming(&[], 0, now_ns + later_ns);
                    }
                    now_ns += 3;
                }
                let judged = judge(&mut filter, spec, *copies, now_ns);
                let expected: Vec<bool> = judged.iter().map(|_| oracle.judge(spec, now_ns)).collect();
                prop_assert_eq!(judged, expected, "packet {} {:?}, {:?}", number, spec, kind);
                let stats = wall.stats();
                prop_assert_eq!((stats.created, stats.full), (oracle.created, oracle.full));
                prop_assert_eq!(stats.states, stats.created - stats.expired);
                if limited {
                    prop_assert_eq!(stats.states, oracle.connections.len() as u64);
                }
            }
            let found = filter.connections();
            prop_assert_eq!(found.len() as u64, wall.stats().states);
            for ((protocol, ends), history) in &oracle.connections {
                let same = found.iter().find(|connection| {
                    let mut sides = [0, 1].map(|at| (connection.ends[at], connection.marks[at]));
                    sides.sort();
                    (connection.protocol, &sides) == (*protocol, ends)
                });
                let same = same.expect("a connection");
                let replies = history.packets.iter().filter(|packet| packet.0).count() as u64;
                prop_assert_eq!(same.packets, [history.packets.len() as u64 - replies, replies]);
                prop_assert_eq!((same.ends[0], same.marks[0]), history.began);
                prop_assert_eq!(same.last_ns, history.last_ns);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    /// If rules treat both directions alike, states change no verdict, except on errors.
    #[test]
    fn state_tables_agree_and_count_packets_once(steps in steps()) {
        let rules = "block in proto icmp all\npass in all keep state (sloppy)";
        let of_kind = |kind| {
            let mut lab = Walled::new(rules, &states(kind));
            let specs = steps.iter().map(|(spec, ..)| spec.clone());
            let specs: Vec<Spec> = specs.filter(|spec| !spec.is_error()).collect();
            let seen = lab.send_all(&specs, 0);
            (seen, lab.counters.read())
        };
        let all = StateTable::ALL.map(of_kind);
        prop_assert!(all.iter().all(|seen| *seen == all[0]), "{:?}", all);
    }
}

/// Neither has ports or an identifier to distinguish them: an echo request with identifier 0, whose
/// flow is in the cache, and an error between the same ends.
#[test]
fn flow_cache_distinguishes_errors_from_queries() {
    for (me, you, types) in
        [("198.18.0.5", "198.19.0.9", [8, 3]), ("2001:2::5", "2001:2:0:8000::9", [128, 1])]
    {
        let wall = wall(OUTWARDS, &states(StateTable::Sharded));
        let mut filter = wall.filter();
        let [query, error] = types.map(|kind| icmp(me, you, kind, 0));
        for now_ns in 0..4 {
            assert_eq!(judge(&mut filter, &query, 3, now_ns), [true; 3]);
        }
        let error = Spec { port: 1, ..error };
        assert_eq!(judge(&mut filter, &error, 3, 5), [false; 3], "{me}");
        // Packets outside the set are not counted.
        let batch = vec![query.frame(); 4];
        assert_eq!(filter.incoming(&batch, 0b0110, 6), 0b0110);
        assert_eq!(filter.connections()[0].packets, [14, 0]);
    }
}

/// Frames of this many flows, both families.
fn flows(count: u16) -> Vec<Frame> {
    let flow = |number| match number % 2 {
        0 => datagram(("198.18.0.5", number), ("198.19.0.9", 2)).frame(),
        _ => datagram(("2001:2::5", number), ("2001:2:0:8000::9", 2)).frame(),
    };
    (0..count).map(flow).collect()
}

fn send_all(filter: &mut Filter, frames: &[Frame], now_ns: u64) -> usize {
    let batches = frames.chunks(64);
    let passed = batches.map(|batch| {
        let among = u64::MAX >> (64 - batch.len());
        (filter.incoming(batch, among, now_ns) & among).count_ones() as usize
    });
    passed.sum()
}

#[test]
fn tables_grow_and_expire_incrementally() {
    let frames = flows(20_000);
    for kind in HOLDERS {
        let wall = wall(OUTWARDS, &states(kind));
        let mut filter = wall.filter();
        let before = wall.stats().memory_bytes;
        for second in 0..2 {
            assert_eq!(send_all(&mut filter, &frames, second * SECOND), frames.len());
            let stats = wall.stats();
            assert_eq!((stats.created, stats.states), (20_000, 20_000));
            assert_eq!(stats.matches, second * 20_000);
        }
        let grown = wall.stats().memory_bytes;
        assert!(grown > before && grown < 20_000 * 400, "{grown} bytes");
        // All states have expired; a tenth of the interval covers a tenth of the slots.
        filter.incoming(&[], 0, 100 * SECOND);
        let mut at_a_time = Vec::new();
        for batch in 1..=400 {
            let left = wall.stats().states;
            filter.incoming(&[], 0, 100 * SECOND + batch * SECOND / 10);
            at_a_time.push(left - wall.stats().states);
        }
        assert_eq!(wall.stats().states, 0, "{kind:?}");
        let most = at_a_time.into_iter().max().expect("some");
        assert!((1..=1024).contains(&most), "{most} in one batch");
        assert_eq!(wall.stats().expired, 20_000);
    }
}

#[test]
fn workers_share_states_unless_per_worker() {
    let frames = flows(2_000);
    let rounds = 20;
    for (kind, expected) in
        [(StateTable::Global, 2_000), (StateTable::Sharded, 2_000), (StateTable::PerWorker, 4_000)]
    {
        let wall: Arc<SharedFirewall> = wall(OUTWARDS, &states(kind));
        let mut filters = [wall.filter(), wall.filter()];
        std::thread::scope(|scope| {
            for (worker, filter) in filters.iter_mut().enumerate() {
                let mut frames = frames.clone();
                if worker == 1 {
                    frames.reverse();
                }
                scope.spawn(move || {
                    for round in 0..rounds {
                        assert_eq!(send_all(filter, &frames, round), frames.len());
                    }
                });
            }
            // Counters can be read concurrently.
            for _ in 0..100 {
                let stats = wall.stats();
                assert!(stats.matches <= stats.searches && stats.states <= expected);
            }
        });
        let stats = wall.stats();
        let sent = 2 * rounds * frames.len() as u64;
        assert_eq!((stats.created, stats.states, stats.searches), (expected, expected, sent));
        // Both workers may meet a new flow at the same time: one creates the state, the rules pass
        // both.
        assert_eq!(stats.matches + stats.rules[0].packets, sent);
        // Each filter includes counters that only its own cache contains.
        let of_other = filters[1].connections();
        let mut connections = filters[0].connections();
        if kind == StateTable::PerWorker {
            connections.extend(of_other);
        }
        let packets: u64 = connections.iter().map(|connection| connection.packets[0]).sum();
        assert_eq!((connections.len() as u64, packets), (expected, sent), "{kind:?}");
    }
}

/// No worker has visited the flows, not even in the background while no packet came.
#[test]
fn flows_of_expired_states_are_blocked_after_a_pause() {
    let (me, you) = (("198.18.0.5", 1000), ("198.19.0.5", 2000));
    let (there, back) = (datagram(me, you), datagram(you, me));
    for kind in HOLDERS {
        let wall = wall(OUTWARDS, &states(kind));
        let mut filter = wall.filter();
        for now_ns in 0..40 {
            assert_eq!(judge(&mut filter, &there, 2, now_ns), [true; 2]);
            assert_eq!(judge(&mut filter, &back, 2, now_ns), [true; 2], "{kind:?}");
        }
        assert_eq!(judge(&mut filter, &back, 2, 59 * SECOND), [true; 2], "{kind:?}: in time");
        assert_eq!(judge(&mut filter, &back, 2, 120 * SECOND), [false; 2], "{kind:?}");
    }
}

#[test]
fn forget_removes_states_of_every_worker() {
    let (me, you) = (("198.18.0.5", 1000), ("198.19.0.5", 2000));
    let (there, back) = (datagram(me, you), datagram(you, me));
    for kind in HOLDERS {
        for flow_cache in [false, true] {
            let wall = wall(OUTWARDS, &StateConfig { flow_cache, ..states(kind) });
            let mut filters = [wall.filter(), wall.filter()];
            // Often enough to get into the flow caches.
            for now_ns in 0..40 {
                for filter in &mut filters {
                    assert_eq!(judge(filter, &there, 2, now_ns), [true; 2]);
                    assert_eq!(judge(filter, &back, 2, now_ns), [true; 2], "{kind:?}");
                }
            }
            let bytes = wall.stats().memory_bytes;
            assert!(!wall.forget(Duration::from_millis(20)), "{kind:?}: nobody follows");
            let forgotten = std::thread::scope(|scope| {
                let forgetting = scope.spawn(|| wall.forget(Duration::from_secs(20)));
                while !forgetting.is_finished() {
                    for filter in &mut filters {
                        filter.rest(50);
                    }
                    std::thread::yield_now();
                }
                forgetting.join().expect("no panic")
            });
            assert!(forgotten, "{kind:?}");
            let stats = wall.stats();
            assert_eq!((stats.states, stats.memory_bytes), (0, bytes), "{kind:?}");
            for filter in &mut filters {
                assert_eq!(judge(filter, &back, 1, 50), [false], "{kind:?}: without a state");
            }
            let [one, _two] = &mut filters;
            assert_eq!(judge(one, &there, 1, 60), [true]);
            assert_eq!(judge(one, &back, 1, 61), [true], "{kind:?}: a new one");
            assert_eq!(wall.stats().states, 1, "{kind:?}");
            drop(filters);
            assert!(wall.forget(Duration::ZERO), "workers that are gone are not waited for");
        }
    }
}
