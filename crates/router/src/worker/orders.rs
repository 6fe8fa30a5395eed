//! Inputs of a worker, and orders to it while it runs.

use super::engine::Engine;
use fwdlab_netio::{Bell, NetioError, Port, clock};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counters of a port, visible to other threads while its worker runs.
#[derive(Debug, Default)]
pub struct PortCounters {
    pub(super) missed: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) lost: AtomicU64,
}

impl PortCounters {
    /// Frames that the port lost before the worker received them.
    pub fn get(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Received frames.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Sent frames.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Frames for which the port had no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Adds without a locked instruction: there is only one writer.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The ports of a worker, and orders to it while it runs.
pub struct Station {
    /// Ports of the interfaces, followed by the ports of the router's host, if it has any.
    pub ports: Vec<Box<dyn Port>>,
    /// Counters of the interfaces' ports, one for each interface.
    pub missed: Arc<[PortCounters]>,
    /// The orders.
    pub orders: Arc<Orders>,
}

/// Orders to a worker while it runs.
#[derive(Debug)]
pub struct Orders {
    stop: AtomicBool,
    pub(super) bell: Bell,
    /// The router that replaces the worker's; `taken` counts the replacements.
    next: Mutex<Option<Next>>,
    is_next: AtomicBool,
    taken: AtomicU64,
}

/// Newtype for `Debug`, as routers have none.
struct Next(Box<dyn Engine>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

impl Orders {
    /// No orders.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> Result<Orders, NetioError> {
        Ok(Orders {
            stop: AtomicBool::new(false),
            bell: Bell::new()?,
            next: Mutex::default(),
            is_next: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        })
    }

    /// Stops the worker.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// True if the worker is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Replaces the worker's router by `engine` before its next batch.
    pub fn replace(&self, engine: Box<dyn Engine>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Next(engine));
        self.is_next.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Number of replacements that have been carried out.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// Replaces `engine` if a new router was ordered.
    #[inline]
    pub(super) fn follow(&self, engine: &mut Box<dyn Engine>) {
        if self.is_next.load(Ordering::Relaxed) {
            self.put(engine);
        }
    }

    #[cold]
    fn put(&self, engine: &mut Box<dyn Engine>) {
        if !self.is_next.swap(false, Ordering::AcqRel) {
            return;
        }
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Next(next)) = next {
            let mut before = std::mem::replace(engine, next);
            engine.take_over(before.hand_over(), clock::monotonic_ns());
            self.taken.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine;
    use super::*;
    use crate::fib::{Auto, Fib, NextHop, V4, V6};
    use crate::path::{Config, Counters, Gateway, Interface, Neighbours};
    use fwdlab_netio::frame::{Batch, Frame};
    use fwdlab_packet::checksum;

    const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 9];

    /// All packets go to 198.51.100.9, the next hop of this number, whose MAC is unknown.
    fn router(number: u32, counters: &Arc<Counters>) -> Box<dyn Engine> {
        let next_hop = NextHop::new(number).expect("a number");
        let (mut inet, inet6) = (Auto::<V4>::new(), Auto::<V6>::new());
        inet.insert("0.0.0.0/0".parse().expect("a prefix"), next_hop);
        let interface = |mac, address: &str| Interface {
            mac,
            mtu: 1500,
            addresses: vec![(address.parse().expect("an address"), 24)],
        };
        let mut neighbours = Neighbours::new();
        neighbours.may_grow();
        let gateway = Gateway { port: 1, address: "198.51.100.9".parse().expect("an address") };
        neighbours.set_gateway(next_hop, gateway).expect("a low number");
        let interfaces = vec![interface(NEAR, "192.0.2.1"), interface(FAR, "198.51.100.1")];
        let config = Config { interfaces, neighbours, ..Config::default() };
        let tally = counters.tally(0).expect("a worker");
        engine(&config, Arc::new(inet), Arc::new(inet6), None, tally).expect("a sound set-up")
    }

    /// The router's own frames.
    fn emitted(engine: &mut dyn Engine) -> Vec<Vec<u8>> {
        let (mut work, mut all) = (Batch::new(), Vec::new());
        while engine.take_emitted(&mut work) > 0 {
            all.extend(work.frames().iter().map(|frame| frame.bytes().to_vec()));
        }
        all
    }

    #[test]
    fn waiting_packets_survive_a_replacement() {
        let counters = Counters::new(1);
        let mut engine = router(0, &counters);
        let mut header =
            [&[0x45, 0, 0, 46, 0, 1, 0, 0, 9, 253, 0, 0][..], &[192, 0, 2, 7, 10, 1, 1, 1]]
                .concat();
        let sum = checksum::finish(checksum::add(0, &header));
        header[10..12].copy_from_slice(&sum);
        let packet = [&NEAR[..], &[2, 0, 0, 0, 0, 7, 8, 0], &header, &[77; 26]].concat();
        let mut frames = [Frame::of(0, &packet).expect("it fits")];
        engine.process(&mut frames, clock::monotonic_ns());
        assert!(frames[0].egress().is_none() && emitted(&mut *engine).len() == 1, "a question");
        let orders = Orders::new().expect("a descriptor");
        orders.follow(&mut engine);
        assert_eq!(orders.taken(), 0);
        orders.replace(router(5, &counters));
        orders.follow(&mut engine);
        orders.follow(&mut engine);
        assert_eq!(orders.taken(), 1);
        let mut reply = [&FAR[..], &NEXT, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &NEXT].concat();
        reply.extend([198, 51, 100, 9]);
        reply.extend(FAR);
        reply.extend([198, 51, 100, 1]);
        let mut frames = [Frame::of(1, &reply).expect("it fits")];
        engine.process(&mut frames, clock::monotonic_ns());
        engine.flush();
        let sent: Vec<_> =
            emitted(&mut *engine).into_iter().filter(|f| f[12..14] == [8, 0]).collect();
        assert_eq!(sent.len(), 1);
        assert_eq!((&sent[0][..12], sent[0][22]), (&[NEXT, FAR].concat()[..], 8));
        assert_eq!(sent[0][34..], [77; 26]);
    }
}
