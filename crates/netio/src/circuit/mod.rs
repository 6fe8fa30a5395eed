//! A wire in shared memory: a circular buffer from a generator through a router to a sink,
//! which may be three processes, and back.
//!
//! Each slot holds a batch of frames. The generator fills a slot, the router changes it in
//! place, the sink reads it, and the generator reuses it: frames are not copied, and the
//! cost of transferring cache lines between CPUs is paid once per batch. Each frame
//! contains its egress port ([`Frame::egress`]): port 1 is the sink's side, port 0 the
//! generator's. A frame without an egress port stays in its slot and is not counted.
//!
//! ```text
//! generator: Feeder -> slot -> router: Transit -> slot -> sink: Drain -> slot -> ...
//! ```
//!
//! The memory is an unnamed file. Another process of the same user opens it by its path
//! under `/proc`, without privileges, and may write anything into it: that falsifies
//! measurements, but never violates memory safety.

mod memory;
pub mod traffic;

use crate::NetioError;
use crate::frame::{BATCH, Frame};
use memory::{Index, Memory};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default number of slots: as many frames as the receive ring of many network cards holds (2048).
pub const SLOTS: u32 = 32;
/// Maximum number of slots.
pub const SLOTS_MAX: u32 = 1024;
/// Port of the router that faces the generator.
pub const NEAR: u8 = 0;
/// Port of the router that faces the sink.
pub const FAR: u8 = 1;

/// One wire. Create each of its three ends only once.
#[derive(Debug)]
pub struct Circuit {
    memory: Arc<Memory>,
}

impl Circuit {
    /// Allocates a circuit of `slots` slots (1 to [`SLOTS_MAX`]).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(slots: u32) -> Result<Circuit, NetioError> {
        Ok(Circuit { memory: Arc::new(Memory::new(slots.clamp(1, SLOTS_MAX))?) })
    }

    /// Opens another process's circuit.
    ///
    /// # Errors
    /// If it can't be opened, or is not a circuit.
    pub fn open(path: &Path) -> Result<Circuit, NetioError> {
        Ok(Circuit { memory: Arc::new(Memory::open(path)?) })
    }

    /// Path for other processes of this user, valid while this process keeps the circuit.
    pub fn path(&self) -> PathBuf {
        self.memory.path()
    }

    /// Fills all buffers with these bytes, before anything is sent.
    pub fn prepare(&self, bytes: &[u8]) {
        for at in 0..self.memory.slots() {
            // No end owns a slot yet.
            let (_, frames) = self.memory.slot(at);
            for frame in frames {
                // Cannot fail: a template is an Ethernet frame, which fits every buffer.
                let _ = frame.receive(NEAR, bytes);
            }
        }
    }

    /// Returns the generator's end.
    pub fn feeder(&self) -> Feeder {
        Feeder(self.end(Index::Fed, Index::Drained, self.memory.slots()))
    }

    /// Returns the router's end.
    pub fn transit(&self) -> Transit {
        Transit(self.end(Index::Passed, Index::Fed, 0))
    }

    /// Returns the sink's end.
    pub fn drain(&self) -> Drain {
        Drain(self.end(Index::Drained, Index::Passed, 0))
    }

    fn end(&self, counter: Index, before: Index, lead: u32) -> End {
        let at = self.memory.index(counter);
        let limit = self.memory.index(before).wrapping_add(lead);
        End { memory: self.memory.clone(), counter, before, lead, at, limit }
    }
}

/// State common to the three ends: each may take the slots that the previous end has released, in
/// order.
#[derive(Debug)]
struct End {
    memory: Arc<Memory>,
    counter: Index,
    before: Index,
    /// Slots that this end may be ahead of the previous one: the initially empty ones.
    lead: u32,
    /// Number of slots released so far, modulo 2^32.
    at: u32,
    /// Cached limit: slots released by the end before.
    limit: u32,
}

impl End {
    /// True if this end owns a slot.
    #[inline]
    fn has_slot(&mut self) -> bool {
        if self.at == self.limit {
            self.limit = self.memory.index(self.before).wrapping_add(self.lead);
        }
        self.at != self.limit
    }

    #[inline]
    fn slot(&mut self) -> Option<(&mut u32, &mut [Frame; BATCH])> {
        // Owned until `release`: every end has at most one slot at a time, and the indices
        // determine the owners of the others.
        self.has_slot().then(|| self.memory.slot(self.at))
    }

    #[inline]
    fn release(&mut self) {
        if self.at != self.limit {
            self.at = self.at.wrapping_add(1);
            self.memory.set_index(self.counter, self.at);
        }
    }
}

/// The generator's end.
#[derive(Debug)]
pub struct Feeder(End);

impl Feeder {
    /// Returns the buffers of the next slot, the same ones until [`Feeder::publish`]; `None` while
    /// the wire is full.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut [Frame; BATCH]> {
        self.0.slot().map(|(_, frames)| frames)
    }

    /// Sends the slot's first `count` frames.
    #[inline]
    pub fn publish(&mut self, count: usize) {
        if let Some((length, _)) = self.0.slot() {
            *length = count.min(BATCH) as u32;
        }
        self.0.release();
    }
}

/// The router's end.
#[derive(Debug)]
pub struct Transit(End);

impl Transit {
    /// Returns the next frames, to be changed in place; `None` if there are none.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut [Frame]> {
        self.0.slot().map(|(count, frames)| &mut frames[..(*count as usize).min(BATCH)])
    }

    /// Releases the slot to the sink.
    #[inline]
    pub fn publish(&mut self) {
        self.0.release();
    }
}

/// The sink's end.
#[derive(Debug)]
pub struct Drain(End);

impl Drain {
    /// Returns the next frames; `None` if there are none.
    #[inline]
    pub fn slot(&mut self) -> Option<&[Frame]> {
        self.0.slot().map(|(count, frames)| &frames[..(*count as usize).min(BATCH)])
    }

    /// Releases the slot to the generator.
    #[inline]
    pub fn release(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn slots_keep_order_across_mappings() {
        const BATCHES: u32 = 3000;
        let near = Circuit::new(3).expect("memory");
        let far = Circuit::open(&near.path()).expect("its path");
        let (mut feeder, mut transit, mut drain) = (near.feeder(), far.transit(), near.drain());
        let router = thread::spawn(move || {
            for number in 0..BATCHES {
                let frames = loop {
                    match transit.slot() {
                        Some(frames) => break frames,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(frames.len(), 1 + number as usize % BATCH);
                frames.iter_mut().for_each(|frame| frame.send_to(FAR));
                transit.publish();
            }
        });
        let (mut fed, mut drained) = (0, 0);
        while drained < BATCHES {
            if fed < BATCHES
                && let Some(frames) = feeder.slot()
            {
                frames[0].receive(NEAR, &fed.to_be_bytes()).expect("it fits");
                feeder.publish(1 + fed as usize % BATCH);
                fed += 1;
            }
            while let Some(frames) = drain.slot() {
                assert_eq!(frames.len(), 1 + drained as usize % BATCH);
                assert_eq!(
                    (frames[0].bytes(), frames[0].egress()),
                    (&drained.to_be_bytes()[..], Some(FAR))
                );
                drain.release();
                drained += 1;
            }
            thread::yield_now();
        }
        router.join().expect("the router ends well");
    }

    #[test]
    fn wire_reports_full_and_empty() {
        let circuit = Circuit::new(2).expect("memory");
        let (mut feeder, mut transit, mut drain) =
            (circuit.feeder(), circuit.transit(), circuit.drain());
        assert!(transit.slot().is_none() && drain.slot().is_none());
        // Without a slot to release, nothing happens.
        transit.publish();
        drain.release();
        feeder.publish(1);
        feeder.publish(2);
        assert!(feeder.slot().is_none() && drain.slot().is_none());
        feeder.publish(3);
        for count in [1, 2] {
            assert_eq!(transit.slot().map(|frames| frames.len()), Some(count));
            transit.publish();
        }
        assert!(transit.slot().is_none() && feeder.slot().is_none());
        assert_eq!(drain.slot().map(<[Frame]>::len), Some(1));
        drain.release();
        assert!(feeder.slot().is_some());
    }

    #[test]
    fn open_rejects_other_files() {
        let error = Circuit::open(Path::new("/proc/self/exe")).expect_err("no circuit");
        assert!(error.to_string().contains("/proc/self/exe"), "{error}");
        let error = Circuit::open(Path::new("/dev/null")).expect_err("no circuit");
        assert!(error.to_string().contains("no circuit"), "{error}");
    }
}
