//! A worker: one thread that receives, forwards and sends, for one queue of every port.
//!
//! It is the only one in the router that knows ports and time; what happens to packets
//! is [`crate::path`]'s. Everything is run to completion: a batch is received, forwarded
//! and sent before the next is looked at.

use crate::path::{Firewall, Router};
use fwdlab_port::circuit::Passage;
use fwdlab_port::frame::{Batch, Frame};
use fwdlab_port::{Port, PortError, clock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{hint, thread};

/// Looks at empty ports before the thread lets others run.
const PATIENCE: u32 = 200;
/// Looks at empty ports before the thread sleeps, where ports can wake it.
const WAKEFUL: u32 = 20_000;
/// Longest sleep: until an order to end is seen.
const NAP: Duration = Duration::from_millis(1);

/// A router of whatever kind, as a worker sees it.
pub trait Engine: Send {
    /// As [`Router::process`].
    fn process(&mut self, batch: &mut [Frame], now_ns: u64);
    /// As [`Router::no_room`].
    fn no_room(&mut self, packets: u64);
    /// As [`Router::flush`].
    fn flush(&mut self);
}

impl<W: Firewall> Engine for Router<W> {
    fn process(&mut self, batch: &mut [Frame], now_ns: u64) {
        Router::process(self, batch, now_ns);
    }
    fn no_room(&mut self, packets: u64) {
        Router::no_room(self, packets);
    }
    fn flush(&mut self) {
        Router::flush(self);
    }
}

/// What is seen of ports from outside while workers run.
#[derive(Debug, Default)]
pub struct Missed(AtomicU64);

impl Missed {
    /// Frames that the port lost before they could be received.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Forwards between ports until `stop` is set, or nothing will ever come in again.
/// `missed` has a place for each port.
///
/// # Errors
/// When a port is gone for good.
pub fn forward(
    engine: &mut dyn Engine,
    ports: &mut [Box<dyn Port>],
    missed: &[Missed],
    stop: &AtomicBool,
) -> Result<(), PortError> {
    let mut batch = Batch::new();
    let mut idle = 0u32;
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut received = 0;
        for at in 0..ports.len() {
            received += ports[at].receive(&mut batch)?;
            if batch.frames().is_empty() {
                continue;
            }
            engine.process(batch.frames_mut(), clock::monotonic_ns());
            send(engine, ports, &mut batch)?;
            engine.flush();
        }
        if received > 0 {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        if idle % 1024 == 1 {
            note_missed(ports, missed);
            if ports.iter().all(|port| port.is_at_end()) {
                break;
            }
        }
        match idle {
            0..PATIENCE => hint::spin_loop(),
            PATIENCE..WAKEFUL => thread::yield_now(),
            _ if ports.is_empty() => thread::sleep(NAP),
            _ => {
                turn = (turn + 1) % ports.len();
                ports[turn].wait(NAP / ports.len() as u32)?;
            }
        }
    }
    note_missed(ports, missed);
    Ok(())
}

/// Sends a batch out of all ports that its frames go to.
fn send(
    engine: &mut dyn Engine,
    ports: &mut [Box<dyn Port>],
    batch: &mut Batch,
) -> Result<(), PortError> {
    let mut egresses = [0u64; 4];
    for port in batch.frames().iter().filter_map(Frame::egress) {
        egresses[usize::from(port) / 64] |= 1 << (port % 64);
    }
    for (at, port) in ports.iter_mut().enumerate() {
        if egresses[at / 64 % 4] >> (at % 64) & 1 != 0 {
            let lost = port.send(batch)?.lost;
            if lost > 0 {
                engine.no_room(lost);
            }
        }
    }
    Ok(())
}

fn note_missed(ports: &mut [Box<dyn Port>], missed: &[Missed]) {
    for (port, Missed(counter)) in ports.iter_mut().zip(missed) {
        counter.store(port.missed(), Ordering::Relaxed);
    }
}

/// Forwards along a wire in memory until `stop` is set.
pub fn forward_circuit(engine: &mut dyn Engine, passage: &mut Passage, stop: &AtomicBool) {
    let mut idle = 0u32;
    while !stop.load(Ordering::Relaxed) {
        match passage.slot() {
            Some(frames) => {
                engine.process(frames, clock::monotonic_ns());
                passage.publish();
                engine.flush();
                idle = 0;
            }
            None if idle < PATIENCE => {
                hint::spin_loop();
                idle += 1;
            }
            // Other workers may share this CPU.
            None => thread::yield_now(),
        }
    }
}
