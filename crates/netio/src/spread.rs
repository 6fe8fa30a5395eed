//! Receive-side scaling in software, for ports without it in hardware.
//!
//! Each worker has its own port, such as one queue of an interface. A function assigns each
//! received frame to a worker by its flow's hash, so that one worker gets all packets of a flow, in
//! order. Frames for another worker are copied into a ring; each pair of workers has one. Network
//! cards do the same without the copy.
//!
//! Not included: the definition of flows (see [`fwdlab_packet::rss`]), and moving flows to workers
//! with less load.

use crate::NetioError;
use crate::bell::Bell;
use crate::frame::{Batch, Frame};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use crate::ring::{Consumer, Producer, ring};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// States of a worker as a sender to other workers: it may still send, it will never send again, or
/// it is gone and no longer receives either.
const RUNNING: u8 = 0;
const ENDED: u8 = 1;
const GONE: u8 = 2;

/// The port of one worker, which receives its share of the frames of all ports.
#[derive(Debug)]
pub struct Spread<P, F> {
    port: P,
    choose: F,
    index: usize,
    /// Rings to other workers, and frames waiting for room in them.
    to: Vec<(Producer, Batch)>,
    from: Vec<Consumer>,
    /// Index of the worker whose frames to receive next.
    turn: usize,
    received: Batch,
    missed: u64,
    states: Arc<[AtomicU8]>,
    /// Bells by worker: rung when a ring to the worker has new frames.
    bells: Arc<[Bell]>,
}

/// Spreads received frames over one worker per port. `choose` returns a frame's worker, modulo
/// their number; it should be constant for all frames of a flow. Each ring holds `batches` batches.
///
/// # Errors
/// If the process has reached its limit of descriptors.
pub fn spread<P, F>(
    ports: Vec<P>,
    batches: usize,
    choose: F,
) -> Result<Vec<Spread<P, F>>, NetioError>
where
    P: Port,
    F: Fn(&Frame) -> usize + Clone + Send,
{
    let workers = ports.len();
    let states: Arc<[AtomicU8]> = ports.iter().map(|_| AtomicU8::new(RUNNING)).collect();
    let bells: Arc<[Bell]> = ports.iter().map(|_| Bell::new()).collect::<Result<_, _>>()?;
    let mut to: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(workers)).collect();
    let mut from: Vec<Vec<_>> = (0..workers).map(|_| Vec::with_capacity(workers)).collect();
    for sender in &mut to {
        for receiver in &mut from {
            // Also from each worker to itself: never used, but keeps indices simple.
            let (producer, consumer) = ring(batches);
            sender.push((producer, Batch::new()));
            receiver.push(consumer);
        }
    }
    let ends = ports.into_iter().zip(to.into_iter().zip(from)).enumerate();
    let spread = ends.map(|(index, (port, (to, from)))| Spread {
        port,
        choose: choose.clone(),
        index,
        to,
        from,
        turn: index,
        received: Batch::new(),
        missed: 0,
        states: Arc::clone(&states),
        bells: Arc::clone(&bells),
    });
    Ok(spread.collect())
}

impl<P: Port, F: Fn(&Frame) -> usize + Send> Spread<P, F> {
    /// Receives at the port itself: own frames into the batch, others into their rings.
    fn share_out(&mut self, batch: &mut Batch) -> Result<(), NetioError> {
        self.port.receive(&mut self.received)?;
        for frame in self.received.frames() {
            let worker = (self.choose)(frame) % self.to.len();
            let place = match worker == self.index {
                true => batch.grow(),
                false => self.to[worker].1.grow(),
            };
            match place {
                Some(place) => copy(frame, place),
                None => self.missed += 1,
            }
        }
        self.pass_on();
        Ok(())
    }

    /// Moves waiting frames into the rings as far as there is room.
    fn pass_on(&mut self) {
        let mut waiting = false;
        let others = self.states.iter().zip(&*self.bells);
        for ((producer, batch), (state, bell)) in self.to.iter_mut().zip(others) {
            if batch.frames().is_empty() {
                continue;
            }
            if producer.send(batch) {
                batch.clear();
                bell.ring_if_asleep();
            } else if state.load(Ordering::Acquire) == GONE {
                self.missed += batch.frames().len() as u64;
                batch.clear();
            } else {
                waiting = true;
            }
        }
        if !waiting && self.port.is_at_end() {
            self.states[self.index].store(ENDED, Ordering::Release);
            self.bells.iter().for_each(Bell::ring_if_asleep);
        }
    }

    fn has_more(&self) -> bool {
        self.from.iter().any(|consumer| !consumer.is_empty())
            || self.to.iter().any(|(_, batch)| !batch.frames().is_empty())
    }
}

/// Copies a frame with its ingress port.
fn copy(from: &Frame, to: &mut Frame) {
    // Cannot fail: any frame fits.
    let _ = to.receive(from.ingress(), &from.whole());
}

impl<P: Port, F: Fn(&Frame) -> usize + Send> Port for Spread<P, F> {
    /// Receives from the port itself and the rings of the others in turn, so that a busy sender
    /// does not delay the others.
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        batch.clear();
        for _ in 0..self.from.len() {
            let turn = self.turn;
            self.turn = (turn + 1) % self.from.len();
            if turn == self.index {
                self.share_out(batch)?;
            } else if !self.from[turn].receive(batch) {
                continue;
            }
            if !batch.frames().is_empty() {
                break;
            }
        }
        Ok(batch.frames().len())
    }

    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        self.port.send(batch)
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        wakers.add_bell(&self.bells[self.index]);
        // After `add_bell`, so that no ring is missed.
        if self.has_more() {
            wakers.ready();
        }
        self.port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        self.bells[self.index].answer();
        self.port.woken(woken)
    }

    /// Frames missed by the port itself, and frames this worker received for others whose rings
    /// were full.
    fn missed(&mut self) -> u64 {
        self.port.missed() + self.missed
    }

    fn is_at_end(&self) -> bool {
        // In this order: a worker that has ended has sent everything before.
        self.states.iter().all(|state| state.load(Ordering::Acquire) != RUNNING) && !self.has_more()
    }
}

impl<P, F> Drop for Spread<P, F> {
    fn drop(&mut self) {
        self.states[self.index].store(GONE, Ordering::Release);
        self.bells.iter().for_each(Bell::ring_if_asleep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::BATCH;
    use std::collections::VecDeque;
    use std::thread;
    use std::time::Duration;

    /// Frames of four bytes: flow, ingress port, number within both.
    #[derive(Debug)]
    struct Script {
        number: u8,
        frames: VecDeque<[u8; 4]>,
        sent: u64,
    }

    impl Script {
        fn new(number: u8, flows: u8, rounds: u16) -> Script {
            let frame = |at: u16, flow| [flow, number, at.to_be_bytes()[0], at.to_be_bytes()[1]];
            let frames = (0..rounds).flat_map(|at| (0..flows).map(move |flow| frame(at, flow)));
            Script { number, frames: frames.collect(), sent: 0 }
        }
    }

    impl Port for Script {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
            batch.clear();
            while let Some(bytes) = self.frames.front()
                && let Some(frame) = batch.grow()
            {
                frame.receive(self.number, bytes).expect("it fits");
                self.frames.pop_front();
            }
            Ok(batch.frames().len())
        }
        fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
            self.sent += batch.frames().len() as u64;
            Ok(Sent { sent: self.sent, lost: 0 })
        }
        fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
            if !self.is_at_end() {
                wakers.ready();
            }
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            0
        }
        fn is_at_end(&self) -> bool {
            self.frames.is_empty()
        }
    }

    fn by_flow(frame: &Frame) -> usize {
        usize::from(frame.bytes()[0])
    }

    /// Receives until no more frames will arrive.
    fn drain(port: &mut impl Port) -> Vec<(u8, [u8; 4])> {
        let (mut batch, mut seen) = (Batch::new(), Vec::new());
        while !port.is_at_end() {
            if port.receive(&mut batch).expect("it receives") == 0 {
                port.wait(Duration::from_secs(1)).expect("it waits");
                thread::yield_now();
            }
            let frames = batch.frames().iter();
            seen.extend(
                frames.map(|frame| (frame.ingress(), frame.bytes().try_into().expect("4"))),
            );
        }
        seen
    }

    /// Panics unless these are frames of one worker's flows, in order.
    fn assert_in_order(seen: &[(u8, [u8; 4])], worker: usize, workers: usize) {
        let mut last = std::collections::HashMap::new();
        for (ingress, [flow, port, high, low]) in seen {
            assert_eq!(ingress, port, "a frame remembers where it came in");
            assert_eq!(usize::from(*flow) % workers, worker);
            let number = u16::from_be_bytes([*high, *low]);
            let before = last.insert((*flow, *port), number);
            assert!(before.is_none_or(|before| before < number), "flow {flow}");
        }
    }

    #[test]
    fn spread_delivers_each_frame_once_in_order() {
        const WORKERS: usize = 3;
        const ROUNDS: u16 = 2000;
        let ports = (0..3).map(|number| Script::new(number, 7, ROUNDS)).collect();
        let threads: Vec<_> = spread(ports, 4, by_flow)
            .expect("bells")
            .into_iter()
            .map(|mut port| {
                thread::spawn(move || {
                    let seen = drain(&mut port);
                    (seen, port.missed())
                })
            })
            .collect();
        let mut total = 0;
        for (worker, thread) in threads.into_iter().enumerate() {
            let (seen, missed) = thread.join().expect("a worker ends well");
            assert_in_order(&seen, worker, WORKERS);
            total += seen.len() as u64 + missed;
        }
        assert_eq!(total, 3 * 7 * u64::from(ROUNDS));
    }

    #[test]
    fn spread_misses_nothing_with_enough_room() {
        let ports = (0..2).map(|number| Script::new(number, 4, 100)).collect();
        let mut ports = spread(ports, 100, by_flow).expect("bells");
        let mut batch = Batch::new();
        let mut seen = [const { Vec::new() }; 2];
        while !(ports[0].is_at_end() && ports[1].is_at_end()) {
            for (port, seen) in ports.iter_mut().zip(&mut seen) {
                port.receive(&mut batch).expect("it receives");
                let frames = batch.frames().iter();
                seen.extend(frames.map(|f| (f.ingress(), f.bytes().try_into().expect("4"))));
            }
        }
        for (worker, seen) in seen.iter().enumerate() {
            assert_eq!(seen.len(), 2 * 2 * 100);
            assert_in_order(seen, worker, 2);
            assert_eq!(ports[worker].missed(), 0);
        }
    }

    #[test]
    fn spread_counts_frames_missed_by_full_ring() {
        // One worker doesn't receive at all: one batch is in the ring, another waits.
        let ports = (0..2).map(|number| Script::new(number, 2, 1000)).collect();
        let mut ports = spread(ports, 1, by_flow).expect("bells");
        let mut idle = ports.pop().expect("two workers");
        let mut batch = Batch::new();
        for _ in 0..100 {
            ports[0].receive(&mut batch).expect("it receives");
        }
        let missed = ports[0].missed();
        assert!((1000 - 2 * BATCH as u64..1000).contains(&missed), "{missed} missed");
        assert_eq!((ports[0].is_at_end(), ports[0].wait(Duration::ZERO).is_ok()), (false, true));
        // All waiting frames are received once.
        let mut late = 0;
        for _ in 0..10 {
            idle.receive(&mut batch).expect("it receives");
            late += batch.frames().iter().filter(|frame| frame.ingress() == 0).count() as u64;
            ports[0].receive(&mut batch).expect("it receives");
        }
        assert_eq!(late + missed, 1000);
        drop(idle);
        drain(&mut ports[0]);
        assert!(ports[0].is_at_end());
    }

    #[test]
    fn send_passes_frames_to_port() {
        let mut ports = spread(vec![Script::new(0, 1, 1)], 1, by_flow).expect("bells");
        let mut batch = Batch::new();
        batch.fill(3);
        assert_eq!(ports[0].send(&mut batch).expect("it sends"), Sent { sent: 3, lost: 0 });
        assert_eq!(drain(&mut ports[0]), [(0, [0; 4])]);
    }
}
