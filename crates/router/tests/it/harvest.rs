//! Entropy harvested by several workers into one pool.

use crate::support::*;
use fwdlab_packet::Family;
use fwdlab_router::path::harvest::Pool;
use fwdlab_router::path::{Config, ForwardingPath, Frame};
use std::sync::Arc;
use std::thread;

#[test]
fn every_received_packet_is_an_event() {
    for path in ForwardingPath::IN_PROCESS {
        let pool = Arc::new(Pool::new());
        let config = Config { harvest: Some(Arc::clone(&pool)), path, ..config() };
        let packets = 200;
        thread::scope(|scope| {
            for worker in 0..2 {
                let config = &config;
                scope.spawn(move || {
                    let mut lab = lab_of(config);
                    // Dropped packets were received as well.
                    let size = if worker == 0 { udp(Family::Inet, 64) } else { vec![1; 13] };
                    let mut batch = vec![Frame::of(0, &size).expect("it fits"); packets];
                    for now in 0..10 {
                        lab.router.process(&mut batch, now);
                        batch.iter_mut().for_each(|f| f.receive(0, &size).expect("it fits"));
                    }
                    lab.router.flush();
                    assert_eq!(lab.counters.read().received(), 10 * packets as u64);
                });
            }
        });
        assert_eq!(pool.events(), 2 * 10 * packets as u64);
        assert!(pool.accumulated().iter().all(|&word| word != 0));
    }
}
