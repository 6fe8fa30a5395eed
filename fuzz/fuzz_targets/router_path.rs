//! Any bytes through the router: no panic, every frame counted once, and both paths send
//! the same.
#![no_main]

use fwdlab_router::fib::{Fib, NextHop, Radix, V4, V6};
use fwdlab_router::path::{
    Batch, Class, Config, Counters, Frame, Gateway, Interface, Neighbour, Neighbours, NoFirewall,
    PathKind, Router, Snapshot,
};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

/// What is counted, and what is sent: in place of the frame, and besides.
type Outcome = (Snapshot, Vec<(u8, Vec<u8>)>);

fuzz_target!(|bytes: &[u8]| {
    let [fast, full] = PathKind::ALL.map(|path| outcome(bytes, path));
    assert_eq!(fast, full);
});

fn outcome(bytes: &[u8], path: PathKind) -> Option<Outcome> {
    let [near, far] = [0, 1].map(|number| NextHop::new(number).expect("a number"));
    let (mut inet, mut inet6) = (Radix::<V4>::new(), Radix::<V6>::new());
    inet.insert("128.0.0.0/1".parse().expect("a prefix"), near);
    inet.insert("64.0.0.0/2".parse().expect("a prefix"), far);
    inet6.insert("2000::/3".parse().expect("a prefix"), near);
    inet6.insert("4000::/3".parse().expect("a prefix"), far);
    let addresses = [("198.18.0.1", 24), ("2001:2::1", 64), ("fe80::1", 64)];
    let addresses = addresses.map(|(address, length)| (address.parse().expect("one"), length));
    let interface = Interface { mac: [2; 6], mtu: 1280, addresses: addresses.to_vec() };
    let mut neighbours = Neighbours::new();
    neighbours.set(near, Neighbour { port: 0, mac: [4; 6] }).expect("a low number");
    let gateway = Gateway { port: 0, address: "198.18.0.9".parse().expect("one") };
    neighbours.set_gateway(far, gateway).expect("a low number");
    let interfaces = vec![interface];
    let config = Config { interfaces, neighbours, path, redirects: true, ..Config::default() };
    let counters = Counters::new(1);
    let tally = counters.tally(0).expect("a worker");
    let mut router = Router::new(&config, Arc::new(inet), Arc::new(inet6), NoFirewall, tally)
        .expect("a sound set-up");
    let mut batch = [Frame::of(0, bytes).ok()?];
    router.process(&mut batch, 0);
    router.flush();
    let snapshot = counters.read();
    assert_eq!(snapshot.received(), 1);
    assert_eq!(snapshot.total(Class::Slow), snapshot.total(Class::Answer));
    let mut sent = Vec::new();
    let mut keep = |frame: &Frame| {
        sent.extend(frame.egress().map(|port| (port, frame.bytes().to_vec())));
    };
    keep(&batch[0]);
    let mut work = Batch::new();
    while router.take_emitted(&mut work) > 0 {
        work.frames().iter().for_each(&mut keep);
    }
    Some((snapshot, sent))
}
