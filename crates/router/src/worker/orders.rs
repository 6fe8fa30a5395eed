//! What a worker is given, and what it is told while it runs.

use super::engine::Engine;
use fwdlab_port::{Bell, Port, PortError, clock};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is seen of a port from outside while its worker runs.
#[derive(Debug, Default)]
pub struct Missed {
    pub(super) missed: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) lost: AtomicU64,
}

impl Missed {
    /// Frames that the port lost before they could be received.
    pub fn get(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Frames that were received.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Frames that were sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Frames that the port had no room for.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// There is one writer, so nothing can come between.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The ports of a worker, and what is told to it while it runs.
pub struct Station {
    /// Those of the interfaces, then those of the router's host, if it has any.
    pub ports: Vec<Box<dyn Port>>,
    /// What is seen of the interfaces' ports: as many as there are interfaces.
    pub missed: Arc<[Missed]>,
    /// The orders.
    pub orders: Arc<Orders>,
}

/// What a worker is told while it runs.
#[derive(Debug)]
pub struct Orders {
    stop: AtomicBool,
    pub(super) bell: Bell,
    /// The router that takes the place of the worker's; `taken` counts those that did.
    next: Mutex<Option<Next>>,
    is_next: AtomicBool,
    taken: AtomicU64,
}

/// Of a router there is nothing to be shown.
struct Next(Box<dyn Engine>);

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

impl Orders {
    /// None yet.
    ///
    /// # Errors
    /// When the process has as many descriptors as it may.
    pub fn new() -> Result<Orders, PortError> {
        Ok(Orders {
            stop: AtomicBool::new(false),
            bell: Bell::new()?,
            next: Mutex::default(),
            is_next: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        })
    }

    /// Lets the worker end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// True when it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Lets `engine` take the place of the worker's router before its next batch.
    pub fn replace(&self, engine: Box<dyn Engine>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Next(engine));
        self.is_next.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Routers that have taken another one's place.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// Lets the router that is to take the place of `engine` do so, if there is one.
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
