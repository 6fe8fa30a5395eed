//! Rings of batches from one thread to another.
//!
//! A slot holds a whole batch, and sending swaps it with an empty one: frames are not
//! copied, and the cost of synchronisation is paid once per batch. Each slot is a mutex
//! that is never contended, as head and tail determine its owner.

use crate::frame::Batch;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An index on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Index(AtomicUsize);

#[derive(Debug)]
struct Ring {
    slots: Box<[Mutex<Batch>]>,
    /// Number of batches sent so far.
    head: Index,
    /// Number of batches received so far.
    tail: Index,
}

/// The sending end of a ring.
#[derive(Debug)]
pub struct Producer {
    ring: Arc<Ring>,
    head: usize,
}

/// The receiving end of a ring.
#[derive(Debug)]
pub struct Consumer {
    ring: Arc<Ring>,
    tail: usize,
}

/// Creates a ring of `batches` batches; 0 counts as 1.
pub fn ring(batches: usize) -> (Producer, Consumer) {
    let slots = (0..batches.max(1)).map(|_| Mutex::new(Batch::new())).collect();
    let ring = Arc::new(Ring { slots, head: Index::default(), tail: Index::default() });
    (Producer { ring: Arc::clone(&ring), head: 0 }, Consumer { ring, tail: 0 })
}

impl Ring {
    /// Exchanges the batch in a slot owned by the caller.
    #[inline]
    fn exchange(&self, at: usize, batch: &mut Batch) -> bool {
        // Never contended: head and tail determine the owner.
        let slot = self.slots[at % self.slots.len()].try_lock();
        slot.map(|mut slot| mem::swap(&mut *slot, batch)).is_ok()
    }
}

impl Producer {
    /// Sends a batch, which becomes an empty one to fill. Returns false without effect if the ring
    /// is full.
    #[inline]
    pub fn send(&mut self, batch: &mut Batch) -> bool {
        let tail = self.ring.tail.0.load(Ordering::Acquire);
        if self.head.wrapping_sub(tail) >= self.ring.slots.len() {
            return false;
        }
        let sent = self.ring.exchange(self.head, batch);
        if sent {
            self.head = self.head.wrapping_add(1);
            self.ring.head.0.store(self.head, Ordering::Release);
        }
        sent
    }
}

impl Consumer {
    /// Receives a batch in exchange for `batch`. Returns false without effect if the ring is empty.
    #[inline]
    pub fn receive(&mut self, batch: &mut Batch) -> bool {
        if self.is_empty() {
            return false;
        }
        let received = self.ring.exchange(self.tail, batch);
        if received {
            self.tail = self.tail.wrapping_add(1);
            self.ring.tail.0.store(self.tail, Ordering::Release);
        }
        received
    }

    /// True if there is nothing to receive yet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ring.head.0.load(Ordering::Acquire) == self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::BATCH;
    use std::thread;

    #[test]
    fn ring_reports_full_and_empty() {
        let (mut producer, mut consumer) = ring(2);
        let mut batch = Batch::new();
        assert!(consumer.is_empty() && !consumer.receive(&mut batch));
        batch.fill(1);
        assert!(producer.send(&mut batch) && !consumer.is_empty());
        batch.fill(3);
        assert!(producer.send(&mut batch) && !producer.send(&mut batch));
        assert!(consumer.receive(&mut batch));
        assert_eq!(batch.frames().len(), 1);
        assert!(consumer.receive(&mut batch) && !consumer.receive(&mut batch));
        assert_eq!(batch.frames().len(), 3);
    }

    #[test]
    fn ring_keeps_order_between_threads() {
        const BATCHES: u32 = 2000;
        let (mut producer, mut consumer) = ring(3);
        let sender = thread::spawn(move || {
            let mut batch = Batch::new();
            for number in 0..BATCHES {
                let frame = &mut batch.fill(1 + number as usize % BATCH)[0];
                frame.receive(0, &number.to_be_bytes()).expect("it fits");
                while !producer.send(&mut batch) {
                    thread::yield_now();
                }
            }
        });
        let mut batch = Batch::new();
        for number in 0..BATCHES {
            while !consumer.receive(&mut batch) {
                thread::yield_now();
            }
            assert_eq!(batch.frames().len(), 1 + number as usize % BATCH);
            assert_eq!(batch.frames()[0].bytes(), number.to_be_bytes());
        }
        sender.join().expect("the sender ends well");
    }
}
