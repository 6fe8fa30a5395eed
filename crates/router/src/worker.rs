//! A worker: one thread that receives, forwards and sends, for one queue of every port.
//!
//! It is the only one in the router that knows ports and time; what happens to packets
//! is [`crate::path`]'s. Everything is run to completion: a batch is received, forwarded
//! and sent before the next is looked at.

use crate::fib::{V4, V6};
use crate::firewall::SharedFirewall;
use crate::path::{Config, ConfigError, Firewall, Lookup, NoFirewall, Router, Tally};
use fwdlab_port::circuit::Transit;
use fwdlab_port::frame::{Batch, Frame};
use fwdlab_port::prefetch::prefetch;
use fwdlab_port::{Port, PortError, clock};
use std::sync::Arc;
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
    /// As [`Router::take_emitted`].
    fn take_emitted(&mut self, work: &mut Batch) -> usize;
    /// As [`Router::no_room`].
    fn no_room(&mut self, packets: u64);
    /// As [`Router::extra_lost`].
    fn extra_lost(&mut self, frames: u64);
    /// As [`Router::flush`].
    fn flush(&mut self);
    /// As [`Router::rest`].
    fn rest(&mut self, now_ns: u64);
}

impl<W: Firewall> Engine for Router<W> {
    fn process(&mut self, batch: &mut [Frame], now_ns: u64) {
        Router::process(self, batch, now_ns);
    }
    fn take_emitted(&mut self, work: &mut Batch) -> usize {
        Router::take_emitted(self, work)
    }
    fn no_room(&mut self, packets: u64) {
        Router::no_room(self, packets);
    }
    fn extra_lost(&mut self, frames: u64) {
        Router::extra_lost(self, frames);
    }
    fn flush(&mut self) {
        Router::flush(self);
    }
    fn rest(&mut self, now_ns: u64) {
        Router::rest(self, now_ns);
    }
}

/// A router that looks up in these tables, behind `firewall` if there is one.
///
/// # Errors
/// What can't be in `config`.
pub fn engine(
    config: &Config,
    inet: Arc<dyn Lookup<V4>>,
    inet6: Arc<dyn Lookup<V6>>,
    firewall: Option<&Arc<SharedFirewall>>,
    tally: Tally,
) -> Result<Box<dyn Engine>, ConfigError> {
    Ok(match firewall {
        None => Box::new(Router::new(config, inet, inet6, NoFirewall, tally)?),
        Some(shared) => Box::new(Router::new(config, inet, inet6, shared.filter(), tally)?),
    })
}

/// What is seen of a port from outside while its worker runs.
#[derive(Debug, Default)]
pub struct Missed {
    missed: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    lost: AtomicU64,
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
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
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
            let count = ports[at].receive(&mut batch)?;
            received += count;
            if batch.frames().is_empty() {
                continue;
            }
            if let Some(seen) = missed.get(at) {
                add(&seen.received, count as u64);
            }
            engine.process(batch.frames_mut(), clock::monotonic_ns());
            let lost = send(ports, missed, &mut batch)?;
            engine.no_room(lost);
            while engine.take_emitted(&mut batch) > 0 {
                let lost = send(ports, missed, &mut batch)?;
                engine.extra_lost(lost);
            }
            engine.flush();
        }
        if received > 0 {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        engine.rest(clock::monotonic_ns());
        while engine.take_emitted(&mut batch) > 0 {
            let lost = send(ports, missed, &mut batch)?;
            engine.extra_lost(lost);
            engine.flush();
        }
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

/// Sends a batch out of all ports that its frames go to; returns how many found no room.
fn send(
    ports: &mut [Box<dyn Port>],
    missed: &[Missed],
    batch: &mut Batch,
) -> Result<u64, PortError> {
    let mut lost = 0;
    let mut egresses = [0u64; 4];
    for port in batch.frames().iter().filter_map(Frame::egress) {
        egresses[usize::from(port) / 64] |= 1 << (port % 64);
    }
    for (at, port) in ports.iter_mut().enumerate() {
        if egresses[at / 64 % 4] >> (at % 64) & 1 != 0 {
            let sent = port.send(batch)?;
            lost += sent.lost;
            if let Some(seen) = missed.get(at) {
                add(&seen.sent, sent.sent);
                add(&seen.lost, sent.lost);
            }
        }
    }
    Ok(lost)
}

fn note_missed(ports: &mut [Box<dyn Port>], missed: &[Missed]) {
    for (port, seen) in ports.iter_mut().zip(missed) {
        seen.missed.store(port.missed(), Ordering::Relaxed);
    }
}

/// Forwards along a wire in memory until `stop` is set. What the router sends of its own
/// beyond what it received takes the place of frames that went nowhere.
pub fn forward_circuit(engine: &mut dyn Engine, transit: &mut Transit, stop: &AtomicBool) {
    let mut idle = 0u32;
    let mut own = Batch::new();
    while !stop.load(Ordering::Relaxed) {
        match transit.slot() {
            Some(frames) => {
                // They lie in another CPU's caches: all are asked for at once.
                frames.iter().for_each(|frame| prefetch(frame.bytes().as_ptr() as usize));
                engine.process(frames, clock::monotonic_ns());
                while engine.take_emitted(&mut own) > 0 {
                    let lost = put_in(own.frames(), frames);
                    engine.extra_lost(lost);
                }
                transit.publish();
                engine.flush();
                idle = 0;
            }
            None if idle < PATIENCE => {
                hint::spin_loop();
                idle += 1;
            }
            // Other workers may share this CPU.
            None => {
                engine.rest(clock::monotonic_ns());
                thread::yield_now();
            }
        }
    }
}

/// Puts frames where others go nowhere; returns how many found no place.
#[cold]
fn put_in(own: &[Frame], frames: &mut [Frame]) -> u64 {
    let mut places = frames.iter_mut().filter(|frame| frame.egress().is_none());
    let left = own.iter().skip_while(|frame| match places.next() {
        Some(place) => {
            place.clone_from(frame);
            true
        }
        None => false,
    });
    left.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::{Fib, NextHop, Radix, V4, V6};
    use crate::path::{Config, Counters, Interface, Neighbour, Neighbours, NoFirewall, Reason};
    use fwdlab_packet::Flows;
    use fwdlab_packet::template::Template;
    use fwdlab_packet::{Family, Stamp};
    use fwdlab_port::circuit::Circuit;
    use fwdlab_port::port::Sent;
    use std::sync::Arc;

    const MACS: [[u8; 6]; 4] = [[2; 6], [4; 6], [6; 6], [8; 6]];

    /// Between ports 0 and 1, everything leads out of 1.
    fn router() -> (Router, Arc<Counters>) {
        let hop = NextHop::new(0).expect("a number");
        let (mut inet, inet6) = (Radix::<V4>::new(), Radix::<V6>::new());
        inet.insert("0.0.0.0/0".parse().expect("a prefix"), hop);
        let mut neighbours = Neighbours::new();
        neighbours.set(hop, Neighbour { port: 1, mac: MACS[3] }).expect("a low number");
        let address = ("192.0.2.1".parse().expect("an address"), 24);
        let interface = |mac| Interface { mac, mtu: 1500, addresses: vec![address] };
        let interfaces = vec![interface(MACS[1]), interface(MACS[2])];
        let config = Config { interfaces, neighbours, ..Config::default() };
        let counters = Counters::new(1);
        let tally = counters.tally(0).expect("a worker");
        let router = Router::new(&config, Arc::new(inet), Arc::new(inet6), NoFirewall, tally);
        (router.expect("a router"), counters)
    }

    fn frame() -> Vec<u8> {
        let flows = Flows { sources: 1, destinations: 1 };
        let template = Template::new(Family::Inet, 64, flows, 1, MACS[0], MACS[1]);
        let (sender, phase, flow) = (0, 1, 0);
        template.frame(0, 0, &Stamp { run_id: 1, sender, phase, flow, sequence: 0, time_ns: 0 })
    }

    /// Gives some frames, then ends; takes all but every third.
    struct Script {
        number: u8,
        frames: usize,
        seen: u64,
    }

    impl Port for Script {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
            let count = self.frames.min(10);
            self.frames -= count;
            for place in batch.fill(count) {
                place.receive(self.number, &frame()).expect("it fits");
            }
            Ok(count)
        }
        fn send(&mut self, batch: &mut Batch) -> Result<Sent, PortError> {
            let own = batch.frames().iter().filter(|frame| frame.egress() == Some(self.number));
            let mut result = Sent::default();
            for _ in own {
                self.seen += 1;
                let taken = !self.seen.is_multiple_of(3);
                *if taken { &mut result.sent } else { &mut result.lost } += 1;
            }
            Ok(result)
        }
        fn wait(&mut self, _: Duration) -> Result<(), PortError> {
            Ok(())
        }
        fn missed(&mut self) -> u64 {
            u64::from(self.number) * 5
        }
        fn is_at_end(&self) -> bool {
            self.frames == 0
        }
    }

    #[test]
    fn what_a_port_has_no_room_for_is_not_forwarded() {
        let (mut router, counters) = router();
        let script =
            |number, frames| -> Box<dyn Port> { Box::new(Script { number, frames, seen: 0 }) };
        let mut ports = [script(0, 90), script(1, 0)];
        let missed = [Missed::default(), Missed::default()];
        forward(&mut router, &mut ports, &missed, &AtomicBool::new(false)).expect("ports");
        let snapshot = counters.read();
        assert_eq!((snapshot.get(Reason::Forwarded), snapshot.get(Reason::NoRoom)), (60, 30));
        assert_eq!(snapshot.received(), 90);
        assert_eq!((missed[0].get(), missed[1].get()), (0, 5));
        assert_eq!((missed[0].received(), missed[1].sent(), missed[1].lost()), (90, 60, 30));
    }

    #[test]
    fn an_answer_that_finds_no_room_takes_no_packet_with_it() {
        let (mut router, counters) = router();
        let mut expired = frame();
        // A TTL of 1 in place of 64, and the checksum that goes with it.
        let sum = u32::from(u16::from_be_bytes([expired[24], expired[25]])) + (63 << 8);
        expired[22] = 1;
        expired[24..26].copy_from_slice(&(((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes());
        let mut batch =
            [Frame::of(0, &frame()).expect("it fits"), Frame::of(0, &expired).expect("it fits")];
        router.process(&mut batch, 0);
        Engine::no_room(&mut router, 2);
        Engine::flush(&mut router);
        let snapshot = counters.read();
        assert_eq!(snapshot.received(), 2);
        let counted = [Reason::Forwarded, Reason::NoRoom, Reason::SlowExpired, Reason::ExtraLost];
        let counted = counted.map(|reason| snapshot.get(reason));
        let answered = snapshot.get(Reason::Answered);
        assert_eq!((counted, answered), ([0, 1, 1, 1], 1));
    }

    #[test]
    fn a_wire_is_followed_until_the_order_to_stop() {
        let (mut router, counters) = router();
        let circuit = Circuit::new(4).expect("memory");
        let (mut feeder, mut drain) = (circuit.feeder(), circuit.drain());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| forward_circuit(&mut router, &mut circuit.transit(), &stop));
            let mut arrived = 0;
            while arrived < 100 {
                if let Some(frames) = feeder.slot() {
                    frames[0].receive(0, &frame()).expect("it fits");
                    frames[1].receive(0, &[0; 20]).expect("it fits");
                    feeder.publish(2);
                }
                while let Some(frames) = drain.slot() {
                    let egresses = [frames[0].egress(), frames[1].egress()];
                    assert_eq!(egresses, [Some(1), None]);
                    drain.release();
                    arrived += 1;
                }
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let snapshot = counters.read();
        assert!(snapshot.get(Reason::Forwarded) >= 100);
        assert_eq!(snapshot.received(), 2 * snapshot.get(Reason::Forwarded));
    }

    #[test]
    fn own_frames_take_the_places_of_frames_that_go_nowhere() {
        let mut frames = [Frame::new(), Frame::new(), Frame::new()];
        frames[1].send_to(1);
        let own = [1u8, 2, 3].map(|number| Frame::of(0, &[number]).expect("it fits"));
        assert_eq!(put_in(&own, &mut frames), 1);
        assert_eq!(
            (frames[0].bytes(), frames[1].len(), frames[2].bytes()),
            (&[1][..], 0, &[2][..])
        );
    }
}
