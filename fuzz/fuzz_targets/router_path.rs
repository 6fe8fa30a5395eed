//! Sends arbitrary frames through the router. It never panics, counts every frame once and sends
//! only valid frames. Both paths send the same, whatever the buffers contained before.
//!
//! The first two bytes select firewall, forwarding path options, time step and redirects. Frames
//! follow: a control byte, two bytes of length, and the frame's bytes. The control byte selects
//! fields to repair, since random bytes rarely have valid checksums.
#![no_main]

use etherparse::{NetSlice, SlicedPacket};
use fwdlab_netio::frame::LONGEST;
use fwdlab_packet::checksum;
use fwdlab_router::fib::{Fib, NextHop, Radix, V4, V6};
use fwdlab_router::firewall::{SharedFirewall, StateConfig, StateTable, text};
use fwdlab_router::path::{
    Batch, Class, Config, Counters, Firewall, ForwardingPath, Frame, Gateway, Interface, Neighbour,
    Neighbours, NoFirewall, Reason, Router, Snapshot,
};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

const FRAMES_MAX: usize = 8;
const MTUS: [u16; 2] = [1280, 1500];
const MACS: [[u8; 6]; 2] = [[2; 6], [4; 6]];

const RULES: &str = "\
pass in proto tcp from any to any flags S/SA keep state
pass in proto udp from any to any keep state
pass in inet6 proto icmp6 all keep state
pass in inet proto icmp all keep state
pass in on 0 from 64.0.0.0/2 to any
block out on 1 proto udp from any to any port 7
block in proto tcp all
default pass
";

/// Counters, and sent frames.
type Outcome = (Snapshot, Vec<(u8, Vec<u8>)>);

/// Set-up of the router.
#[derive(Clone, Copy)]
struct Choice {
    redirects: bool,
    /// Processes all frames in one batch; otherwise one at a time, because the order affects new
    /// states.
    in_one_batch: bool,
    states: Option<StateTable>,
    limit: usize,
    step_ns: u64,
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, step, rest @ ..] = bytes else { return };
    let states = match choice >> 2 & 7 {
        0..4 => None,
        kind => Some(StateTable::ALL[usize::from(kind) - 4]),
    };
    let unit = if step & 0x80 != 0 { 1_000_000_000 } else { 1_000_000 };
    let choice = Choice {
        redirects: choice & 1 != 0,
        in_one_batch: choice & 2 != 0 && states.is_none(),
        states,
        limit: if choice & 0x20 != 0 { 2 } else { 1 << 10 },
        step_ns: u64::from(step & 0x7f) * unit,
    };
    let frames = frames(rest);
    let [fast, full] = ForwardingPath::IN_PROCESS.map(|path| outcome(&frames, path, choice, 0));
    assert_eq!(fast, full, "the paths");
    assert_eq!(
        fast,
        outcome(&frames, ForwardingPath::Fast, choice, 0xa5),
        "the fast path's buffers"
    );
    assert_eq!(
        full,
        outcome(&frames, ForwardingPath::Full, choice, 0x5a),
        "the full path's buffers"
    );
});

/// Decodes the input into frames with their ports.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while frames.len() < FRAMES_MAX
        && let [control, high, low, rest @ ..] = bytes
    {
        let length = (usize::from(u16::from_be_bytes([*high, *low])) % (LONGEST + 1)).max(1);
        let (given, after) = rest.split_at(length.min(rest.len()));
        let mut frame = given.to_vec();
        if control & 0x40 != 0 {
            frame.resize(length, 0);
        }
        repair(&mut frame, *control);
        frames.push((control & 1, frame));
        bytes = after;
    }
    frames
}

fn repair(frame: &mut [u8], control: u8) {
    if frame.len() < 34 {
        return;
    }
    if control & 2 != 0 {
        frame[..6].copy_from_slice(&MACS[usize::from(control & 1)]);
    }
    match control >> 2 & 3 {
        1 => frame[12..14].copy_from_slice(&[8, 0]),
        2 => frame[12..14].copy_from_slice(&[0x86, 0xdd]),
        _ => {}
    }
    if control & 0x10 != 0 {
        let length = (frame.len() - 14) as u16;
        match frame[12..14] {
            [8, 0] => frame[16..18].copy_from_slice(&length.to_be_bytes()),
            [0x86, 0xdd] if length >= 40 => {
                frame[18..20].copy_from_slice(&(length - 40).to_be_bytes());
            }
            _ => {}
        }
    }
    if control & 0x20 != 0 && frame[12..14] == [8, 0] {
        let end = frame.len().min(14 + usize::from(frame[14] & 15) * 4).max(26);
        frame[24..26].fill(0);
        let sum = checksum::finish(checksum::add(0, &frame[14..end]));
        frame[24..26].copy_from_slice(&sum);
    }
}

fn outcome(frames: &[(u8, Vec<u8>)], path: ForwardingPath, choice: Choice, before: u8) -> Outcome {
    let Some(kind) = choice.states else {
        return forwarded(frames, path, choice, before, NoFirewall);
    };
    let config = StateConfig { kind, limit: choice.limit, seed: Some(1), ..StateConfig::default() };
    let ruleset = text::read(RULES).expect("rules");
    let firewall = SharedFirewall::new(&ruleset, &config).expect("rules that can be put to work");
    forwarded(frames, path, choice, before, firewall.filter())
}

fn config(path: ForwardingPath, redirects: bool) -> Config {
    let addresses = |all: [(&str, u8); 3]| {
        all.map(|(address, length)| (address.parse().expect("one"), length)).to_vec()
    };
    let near = addresses([("198.18.0.1", 24), ("2001:2::1", 64), ("fe80::1", 64)]);
    let far = addresses([("65.0.0.1", 31), ("4000::1", 64), ("fe80::2", 64)]);
    let interface =
        |port: usize, addresses| Interface { mac: MACS[port], mtu: MTUS[port], addresses };
    let [one, two, unresolved, unresolved6] = hops();
    let mut neighbours = Neighbours::new();
    neighbours.set(one, Neighbour { port: 0, mac: [6; 6] }).expect("a low number");
    neighbours.set(two, Neighbour { port: 1, mac: [8; 6] }).expect("a low number");
    for (hop, port, address) in
        [(one, 0, "198.18.0.9"), (unresolved, 0, "198.18.0.8"), (unresolved6, 1, "fe80::9")]
    {
        let gateway = Gateway { port, address: address.parse().expect("one") };
        neighbours.set_gateway(hop, gateway).expect("a low number");
    }
    let interfaces = vec![interface(0, near), interface(1, far)];
    Config { interfaces, neighbours, path, redirects, ..Config::default() }
}

fn hops() -> [NextHop; 4] {
    [0, 1, 2, 3].map(|number| NextHop::new(number).expect("a number"))
}

fn forwarded<W: Firewall>(
    frames: &[(u8, Vec<u8>)],
    path: ForwardingPath,
    choice: Choice,
    before: u8,
    firewall: W,
) -> Outcome {
    let [one, two, unresolved, unresolved6] = hops();
    let (mut inet, mut inet6) = (Radix::<V4>::new(), Radix::<V6>::new());
    for (prefix, hop) in [("128.0.0.0/1", one), ("64.0.0.0/2", two), ("32.0.0.0/3", unresolved)] {
        inet.insert(prefix.parse().expect("a prefix"), hop);
    }
    for (prefix, hop) in [("2000::/3", one), ("4000::/3", two), ("6000::/3", unresolved6)] {
        inet6.insert(prefix.parse().expect("a prefix"), hop);
    }
    let counters = Counters::new(1);
    let tally = counters.tally(0).expect("a worker");
    let config = config(path, choice.redirects);
    let mut router = Router::new(&config, Arc::new(inet), Arc::new(inet6), firewall, tally)
        .expect("a sound set-up");
    let mut batch: Vec<Frame> = frames.iter().map(|frame| buffer(frame, before)).collect();
    let (mut sent, mut extra) = (Vec::new(), 0);
    let size = if choice.in_one_batch { FRAMES_MAX } else { 1 };
    let mut now_ns = 0;
    for part in batch.chunks_mut(size) {
        router.process(part, now_ns);
        now_ns += choice.step_ns;
        sent.extend(part.iter().filter_map(sound));
        let mut work = Batch::new();
        while router.take_emitted(&mut work) > 0 {
            extra += work.frames().len();
            sent.extend(work.frames().iter().filter_map(sound));
        }
    }
    router.flush();
    let snapshot = counters.read();
    let get = |reason| snapshot.get(reason);
    assert_eq!(snapshot.received(), frames.len() as u64);
    assert_eq!(snapshot.total(Class::Slow), snapshot.total(Class::Answer));
    let places = get(Reason::Forwarded) + get(Reason::Answered);
    assert_eq!(places, (sent.len() - extra) as u64, "frames that go somewhere");
    let emitted = [
        Reason::FragmentsSent,
        Reason::RedirectsSent,
        Reason::NeighboursAsked,
        Reason::WaitedSent,
        Reason::WaitedTold,
    ]
    .map(get)
    .iter()
    .sum();
    assert_eq!(extra as u64, emitted, "frames beyond them");
    sent.sort_unstable();
    (snapshot, sent)
}

/// Returns a buffer with previous contents.
fn buffer((port, bytes): &(u8, Vec<u8>), before: u8) -> Frame {
    let mut frame = Frame::of(*port, &[before; LONGEST]).expect("it fits");
    frame.receive(*port, bytes).expect("it fits");
    frame
}

/// Returns port and bytes of a sent frame, after checking it; `None` if it is not sent.
fn sound(frame: &Frame) -> Option<(u8, Vec<u8>)> {
    let (port, bytes) = (frame.egress()?, frame.whole());
    let place = usize::from(port);
    assert!(bytes.len() <= 14 + usize::from(MTUS[place]), "more than the link carries");
    assert_eq!(bytes[6..12], MACS[place]);
    if bytes[12..14] == [8, 6] {
        assert!(bytes.len() >= 42);
        return Some((port, bytes.to_vec()));
    }
    match SlicedPacket::from_ethernet(&bytes).as_ref().map(|packet| &packet.net) {
        Ok(Some(NetSlice::Ipv4(ip))) => {
            let sum = checksum::add(0, ip.header().slice());
            assert_eq!(checksum::finish(sum), [0, 0]);
            assert!(ip.header().ttl() > 0);
        }
        Ok(Some(NetSlice::Ipv6(ip))) => assert!(ip.header().hop_limit() > 0),
        // The payload may be invalid, because it already was on input.
        Ok(_) => panic!("neither IPv4 nor IPv6"),
        Err(error) => {
            let error = format!("{error:?}");
            assert!(!error.contains("Layer: Ipv4Header"), "{error}");
        }
    }
    Some((port, bytes.to_vec()))
}
