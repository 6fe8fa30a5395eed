//! Any bytes through the router: no panic, every frame counted once.
#![no_main]

use fwdlab_router::fib::{Fib, NextHop, Radix, V4, V6};
use fwdlab_router::path::{
    Class, Config, Counters, Frame, Interface, Neighbour, Neighbours, NoFirewall, Router,
};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let hop = NextHop::new(0).expect("a number");
    let (mut inet, mut inet6) = (Radix::<V4>::new(), Radix::<V6>::new());
    inet.insert("128.0.0.0/1".parse().expect("a prefix"), hop);
    inet6.insert("2000::/3".parse().expect("a prefix"), hop);
    let addresses = [("198.18.0.1", 24), ("2001:2::1", 64)];
    let addresses = addresses.map(|(address, length)| (address.parse().expect("one"), length));
    let interface = Interface { mac: [2; 6], mtu: 1280, addresses: addresses.to_vec() };
    let mut neighbours = Neighbours::new();
    neighbours.set(hop, Neighbour { port: 0, mac: [4; 6] }).expect("a low number");
    let config = Config { interfaces: vec![interface], neighbours, ..Config::default() };
    let counters = Counters::new(1);
    let tally = counters.tally(0).expect("a worker");
    let mut router = Router::new(&config, Arc::new(inet), Arc::new(inet6), NoFirewall, tally)
        .expect("a sound set-up");
    let Ok(frame) = Frame::of(0, bytes) else { return };
    let mut batch = [frame];
    router.process(&mut batch, 0);
    router.flush();
    let snapshot = counters.read();
    assert_eq!(snapshot.received(), 1);
    assert_eq!(snapshot.total(Class::Slow), snapshot.total(Class::Answer));
});
