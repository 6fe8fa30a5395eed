//! A router between two links, and frames that go through it.
#![allow(dead_code, unreachable_pub)]

pub mod walled;

use etherparse::{NetSlice, SlicedPacket};
use fwdlab_netio::Batch;
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stamp, checksum};
use fwdlab_packet::{Stream, Template};
use fwdlab_router::fib::{Auto, Fib, NextHop, Prefix, V4, V6};
use fwdlab_router::path::{
    Config, Counters, Frame, Interface, Neighbour, Neighbours, NoFirewall, Router,
};
use proptest::prelude::*;
use std::sync::Arc;

pub const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 0x10];
pub const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 0x20];
pub const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

pub struct Lab {
    pub router: Router<NoFirewall>,
    pub counters: Arc<Counters>,
}

/// 198.18.0.1/24 with an MTU of 1500 and 198.19.0.1/24 with 1280, likewise IPv6. Routes lead to the
/// receiver's side, to the sender's side, and to a next hop without neighbour: 198.19/16,
/// 198.18/16, 203.0.113/24.
pub fn config() -> Config {
    let interface = |mac, mtu, addresses: [(&str, u8); 3]| {
        let addresses = addresses.map(|(address, length)| (address.parse().expect("one"), length));
        Interface { mac, mtu, addresses: addresses.to_vec() }
    };
    let near = [("198.18.0.1", 24), ("2001:2::1", 64), ("fe80::1", 64)];
    let far = [("198.19.0.1", 24), ("2001:2:0:8000::1", 64), ("fe80::2", 64)];
    let interfaces = vec![interface(NEAR, 1500, near), interface(FAR, 1280, far)];
    let mut neighbours = Neighbours::new();
    let hops = [(0, 1, RECEIVER), (1, 0, SENDER)];
    for (number, port, mac) in hops {
        let neighbour = Neighbour { port, mac };
        neighbours.set(hop(number), neighbour).expect("a low number");
    }
    Config { interfaces, neighbours, ..Config::default() }
}

pub fn hop(number: u32) -> NextHop {
    NextHop::new(number).expect("a number")
}

pub fn lab_of(config: &Config) -> Lab {
    let (mut inet, mut inet6) = (Auto::<V4>::new(), Auto::<V6>::new());
    for (prefix, number) in [("198.19.0.0/16", 0), ("198.18.0.0/16", 1), ("203.0.113.0/24", 9)] {
        inet.insert(prefix.parse::<Prefix<V4>>().expect("a prefix"), hop(number));
    }
    for (prefix, number) in [("2001:2:0:8000::/49", 0), ("2001:2::/49", 1)] {
        inet6.insert(prefix.parse::<Prefix<V6>>().expect("a prefix"), hop(number));
    }
    let counters = Counters::new(1);
    let tally = counters.tally(0).expect("a worker");
    let router = Router::new(config, Arc::new(inet), Arc::new(inet6), NoFirewall, tally);
    Lab { router: router.expect("a sound set-up"), counters }
}

pub fn lab() -> Lab {
    lab_of(&config())
}

impl Lab {
    /// Sends one frame in at port 0; returns the frame sent, and the names of incremented counters.
    pub fn send(&mut self, bytes: &[u8]) -> (Option<(u8, Vec<u8>)>, Vec<&'static str>) {
        self.send_at(bytes, 0)
    }

    pub fn send_at(
        &mut self,
        bytes: &[u8],
        now: u64,
    ) -> (Option<(u8, Vec<u8>)>, Vec<&'static str>) {
        self.send_from(0, bytes, now)
    }

    /// As [`Lab::send`], in at another port.
    pub fn send_from(
        &mut self,
        port: u8,
        bytes: &[u8],
        now: u64,
    ) -> (Option<(u8, Vec<u8>)>, Vec<&'static str>) {
        let before = self.counters.read();
        let mut batch = [Frame::of(port, bytes).expect("it fits")];
        self.router.process(&mut batch, now);
        self.router.flush();
        let after = self.counters.read();
        assert_eq!(after.received(), before.received() + 1);
        let new = after.iter().filter(|&(reason, n)| n > before.get(reason));
        let names = new.map(|(reason, _)| reason.name()).collect();
        let out = batch[0].egress().map(|port| (port, batch[0].whole().to_vec()));
        (out, names)
    }

    /// Frames sent in addition to received ones.
    pub fn emitted(&mut self) -> Vec<(u8, Vec<u8>)> {
        let (mut work, mut emitted) = (Batch::new(), Vec::new());
        while self.router.take_emitted(&mut work) > 0 {
            let frames = work.frames().iter();
            emitted.extend(frames.map(|f| (f.egress().expect("a port"), f.whole().to_vec())));
        }
        emitted
    }

    /// The single reason why a frame isn't forwarded.
    pub fn reason(&mut self, bytes: &[u8]) -> &'static str {
        let (out, names) = self.send(bytes);
        assert_eq!(out, None, "{names:?}");
        names[0]
    }
}

/// A valid UDP packet from flow (1, 2), to the router's near port.
pub fn udp(family: Family, size: u16) -> Vec<u8> {
    let flows = Flows { sources: 20, destinations: 100 };
    let template = Template::new(&Stream::new(family, size, flows), 7, SENDER, NEAR);
    let stamp = Stamp { run_id: 7, sender: 0, phase: 1, flow: 102, sequence: 5, time_ns: 9 };
    template.frame(1, 2, &stamp)
}

/// Changes bytes of an IPv4 header (offsets in the frame) and updates its checksum.
pub fn with(mut frame: Vec<u8>, changes: &[(usize, &[u8])]) -> Vec<u8> {
    for (at, bytes) in changes {
        frame[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    if frame[12..14] == [8, 0] {
        let end = (14 + usize::from(frame[14] & 15) * 4).min(frame.len());
        frame[24..26].fill(0);
        let check = checksum::finish(checksum::add(0, &frame[14..end]));
        frame[24..26].copy_from_slice(&check);
    }
    frame
}

/// Valid packets, some with options or without the DF flag, with some bytes changed, truncated or
/// extended, and random bytes.
pub fn frames() -> impl Strategy<Value = Vec<u8>> {
    let families = prop_oneof![Just(Family::Inet), Just(Family::Inet6)];
    let changes = prop::collection::vec((0usize..80, any::<u8>()), 0..4);
    let like = (families, 84u16..1518, changes, any::<bool>(), any::<bool>(), any::<[u8; 2]>());
    let like = like.prop_map(|(family, size, changes, whole, repaired, [icmp, special])| {
        let mut frame = udp(family, size);
        if icmp < 64 {
            frame[if family == Family::Inet { 23 } else { 20 }] = [1, 58][usize::from(icmp & 1)];
        }
        match (family, special) {
            (Family::Inet, 0..64) => frame[20] = 0,
            (Family::Inet, 64..96) => frame[14] = 0x45 + special % 11,
            (Family::Inet, 96..112) => {
                frame[14] = 0x48;
                frame[34..46].copy_from_slice(&[1, 7, 7, 4, 0, 0, 0, 0, 131, 3, 4, 0]);
                frame[42] += special % 2;
            }
            _ => {}
        }
        for (at, byte) in changes {
            frame[at] = byte;
        }
        let frame = if repaired { with(frame, &[]) } else { frame };
        let cut = if whole { frame.len() } else { usize::from(size) % 90 };
        frame[..cut.min(frame.len())].to_vec()
    });
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![9 => like, 1 => noise]
}

/// Panics unless the frame is a packet with consistent lengths and checksums.
pub fn assert_sound(frame: &[u8]) {
    if frame[12..14] == [8, 6] {
        assert!(frame.len() >= 42);
        return;
    }
    let packet = SlicedPacket::from_ethernet(frame);
    match packet.as_ref().map(|packet| &packet.net) {
        Ok(Some(NetSlice::Ipv4(ip))) => {
            // Over the bytes: etherparse's header type has no room for the reserved flag.
            let sum = checksum::add(0, ip.header().slice());
            assert_eq!(checksum::finish(sum), [0, 0]);
            assert!(ip.header().ttl() > 0);
        }
        Ok(Some(NetSlice::Ipv6(ip))) => assert!(ip.header().hop_limit() > 0),
        // The payload may be invalid, as it was before.
        Ok(_) => panic!("neither IPv4 nor IPv6"),
        Err(error) => {
            let error = format!("{error:?}");
            assert!(!error.contains("Layer: Ipv4Header"), "{error}");
        }
    }
}
