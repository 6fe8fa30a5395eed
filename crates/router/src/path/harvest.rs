//! Entropy harvesting: each packet is mixed into one pool that all workers share, under one lock.
//!
//! Kernels collect randomness in this way. Older releases of FreeBSD did so by default
//! (`kern.random.harvest.mask`): `random_harvest_queue` takes a lock for each packet, which costs
//! more the more cores forward; `random_harvest_fast` folds an event into a few words without it.
//! Here each packet is folded, and then put into the ring under the lock. In FreeBSD a thread
//! removes events, and events are lost while the ring is full; here the oldest are overwritten, so
//! each packet costs the same.
//!
//! No random number is derived from it, and none should be: this models only the cost.

use fwdlab_netio::frame::Frame;
use std::sync::{Mutex, PoisonError};

/// Events in the ring, as in FreeBSD (`RANDOM_RING_MAX`).
const RING: usize = 1024;
/// Words that events are folded into (`RANDOM_ACCUM_MAX`).
const WORDS: usize = 8;
/// Bytes of a frame that are part of an event.
const BYTES: usize = 16;

/// Data of one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    now_ns: u64,
    bytes: [u8; BYTES],
    length: u16,
    ingress: u8,
}

#[derive(Debug)]
struct State {
    ring: Box<[Event]>,
    accumulator: [u64; WORDS],
    events: u64,
}

/// The pool that all workers share.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<State>,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Pool {
        let ring = vec![Event::default(); RING].into_boxed_slice();
        Pool { state: Mutex::new(State { ring, accumulator: [0; WORDS], events: 0 }) }
    }

    /// Mixes in a packet under the lock: its time of arrival in nanoseconds, its length, its port,
    /// its first bytes.
    pub fn harvest(&self, frame: &Frame, now_ns: u64) {
        let first = frame.bytes().first_chunk::<BYTES>();
        let bytes = first.copied().unwrap_or_default();
        let length = frame.len() as u16;
        let event = Event { now_ns, bytes, length, ingress: frame.ingress() };
        let folded = event.folded();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.events as usize;
        state.ring[at % RING] = event;
        let word = &mut state.accumulator[at % WORDS];
        *word = word.wrapping_add(folded);
        state.events += 1;
    }

    /// Number of events so far, one per packet.
    pub fn events(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).events
    }

    /// All events, folded.
    pub fn accumulated(&self) -> [u64; WORDS] {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).accumulator
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl Event {
    /// The event as one number.
    fn folded(&self) -> u64 {
        let bytes = u128::from_ne_bytes(self.bytes);
        let frame = u64::from(self.length) << 8 | u64::from(self.ingress);
        let fields = [self.now_ns, frame, bytes as u64, (bytes >> 64) as u64];
        fields.iter().fold(0, |folded: u64, field| {
            // An odd number without pattern: 2^64 divided by the golden ratio.
            (folded ^ field).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_of_an_event_changes_the_result() {
        let frame = |ingress, bytes: &[u8]| Frame::of(ingress, bytes).expect("it fits");
        let one = |frame: Frame, now_ns| {
            let pool = Pool::new();
            pool.harvest(&frame, now_ns);
            assert_eq!(pool.events(), 1);
            pool.accumulated()
        };
        let plain = one(frame(0, &[1; 60]), 5);
        assert_eq!(plain, one(frame(0, &[1; 60]), 5));
        assert_ne!(plain, one(frame(0, &[1; 60]), 6));
        assert_ne!(plain, one(frame(1, &[1; 60]), 5));
        assert_ne!(plain, one(frame(0, &[1; 61]), 5));
        assert_ne!(plain, one(frame(0, &[2; 60]), 5));
        assert_ne!(plain, one(frame(0, &[]), 5));
    }
}
