//! A worker: one thread that receives, forwards and sends, for one queue of every port.
//!
//! Workers are the only part of the router that knows ports and time; [`crate::path`] processes the
//! packets. Everything runs to completion: a batch is received, forwarded and sent before the next
//! one.

mod engine;
mod orders;

pub use engine::{Engine, engine};
pub use orders::{Orders, PortCounters, Station};

use fwdlab_netio::circuit::Transit;
use fwdlab_netio::frame::{Batch, Frame};
use fwdlab_netio::poll::Wakers;
use fwdlab_netio::port::wait_any;
use fwdlab_netio::prefetch::prefetch;
use fwdlab_netio::{NetioError, Port, clock};
use orders::add;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{hint, thread};

/// Minimum and maximum number of polls of empty ports before the thread sleeps: the sooner packets
/// came after recent sleeps, the more.
const PATIENCE: RangeInclusive<u32> = 100..=20_000;
/// Polls without yielding the CPU.
const SPIN: u32 = 200;
/// Duration below which a sleep was not worthwhile.
const SHORT_NS: u64 = 50_000;
/// Longest sleep: then the router checks neighbours and states.
const NAP: Duration = Duration::from_millis(100);
/// Rounds after which a busy worker polls the port of the router's host.
const HOST: u32 = 8;

/// Forwards between ports until it is stopped, or all ports have reached their end.
///
/// # Errors
/// If a port fails permanently. A malformed capture file ends its port only; the error is returned
/// when the router ends.
pub fn forward(mut engine: Box<dyn Engine>, station: Station) -> Result<(), NetioError> {
    let Station { mut ports, missed, orders } = station;
    let (mut batch, mut wakers) = (Batch::new(), Wakers::new());
    let for_others: Vec<bool> = ports.iter().map(|port| port.receives_for_others()).collect();
    let (mut idle, mut patience, mut round) = (0u32, *PATIENCE.start(), 0u32);
    let mut fault = None;
    while !orders.is_stopped() {
        orders.follow(&mut engine);
        round = round.wrapping_add(1);
        let mut received = 0;
        for at in 0..ports.len() {
            let of_host = at >= missed.len();
            if of_host && received > 0 && !round.is_multiple_of(HOST) {
                break;
            }
            let count = match ports[at].receive(&mut batch) {
                Ok(count) => count,
                Err(error @ NetioError::Capture { .. }) => {
                    fault.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            received += count;
            if batch.frames().is_empty() {
                continue;
            }
            if of_host {
                engine.originate(batch.frames_mut());
                let lost = send(&mut ports, &missed, &mut batch)?;
                engine.extra_lost(lost.packets + lost.to_host);
                engine.flush();
                continue;
            }
            if for_others[at] {
                count_by_port(&batch, &missed);
            } else {
                add(&missed[at].received, count as u64);
            }
            engine.process(batch.frames_mut(), clock::monotonic_ns());
            let lost = send(&mut ports, &missed, &mut batch)?;
            engine.no_room(lost.packets);
            engine.extra_lost(lost.to_host);
            emit(&mut *engine, &mut ports, &missed, &mut batch)?;
            engine.flush();
        }
        if received > 0 {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        let more = engine.rest(clock::monotonic_ns());
        if emit(&mut *engine, &mut ports, &missed, &mut batch)? {
            engine.flush();
        }
        if idle == 1 || idle > patience {
            note_missed(&mut ports, &missed);
            if ports.iter().all(|port| port.is_at_end()) {
                break;
            }
        }
        match idle {
            _ if idle > patience && !more => {
                let begin = clock::monotonic_ns();
                wait_any(&mut ports, Some(&orders.bell), &mut wakers, NAP)?;
                let was_short = clock::monotonic_ns() - begin < SHORT_NS;
                let next = if was_short { patience.saturating_mul(2) } else { patience / 2 };
                patience = next.clamp(*PATIENCE.start(), *PATIENCE.end());
                idle = 1;
            }
            0..SPIN => hint::spin_loop(),
            _ => thread::yield_now(),
        }
    }
    orders.follow(&mut engine);
    engine.end();
    emit(&mut *engine, &mut ports, &missed, &mut batch)?;
    engine.flush();
    note_missed(&mut ports, &missed);
    fault.map_or(Ok(()), Err)
}

/// Counts frames by the port where they came in.
fn count_by_port(batch: &Batch, missed: &[PortCounters]) {
    for frame in batch.frames() {
        if let Some(seen) = missed.get(usize::from(frame.ingress())) {
            add(&seen.received, 1);
        }
    }
}

/// Sends the router's own frames; returns true if there were any.
fn emit(
    engine: &mut dyn Engine,
    ports: &mut [Box<dyn Port>],
    missed: &[PortCounters],
    batch: &mut Batch,
) -> Result<bool, NetioError> {
    let mut any = false;
    while engine.take_emitted(batch) > 0 {
        let lost = send(ports, missed, batch)?;
        engine.extra_lost(lost.packets + lost.to_host);
        any = true;
    }
    Ok(any)
}

/// Frames for which ports had no room.
struct Lost {
    packets: u64,
    to_host: u64,
}

/// Sends a batch out of all egress ports of its frames.
fn send(
    ports: &mut [Box<dyn Port>],
    missed: &[PortCounters],
    batch: &mut Batch,
) -> Result<Lost, NetioError> {
    let mut lost = Lost { packets: 0, to_host: 0 };
    let mut egresses = [0u64; 4];
    for port in batch.frames().iter().filter_map(Frame::egress) {
        egresses[usize::from(port) / 64] |= 1 << (port % 64);
    }
    for (at, port) in ports.iter_mut().enumerate() {
        if egresses[at / 64 % 4] >> (at % 64) & 1 != 0 {
            let sent = port.send(batch)?;
            match missed.get(at) {
                Some(seen) => {
                    lost.packets += sent.lost;
                    add(&seen.sent, sent.sent);
                    add(&seen.lost, sent.lost);
                }
                None => lost.to_host += sent.lost,
            }
        }
    }
    Ok(lost)
}

fn note_missed(ports: &mut [Box<dyn Port>], missed: &[PortCounters]) {
    for (port, seen) in ports.iter_mut().zip(missed) {
        seen.missed.store(port.missed(), Ordering::Relaxed);
    }
}

/// Forwards along a wire in memory until it is stopped. The router's own frames replace frames that
/// are not forwarded.
pub fn forward_circuit(mut engine: Box<dyn Engine>, transit: &mut Transit, orders: &Orders) {
    let mut idle = 0u32;
    let mut own = Batch::new();
    while !orders.is_stopped() {
        orders.follow(&mut engine);
        match transit.slot() {
            Some(frames) => {
                // They are in another CPU's caches: prefetch all of them in parallel.
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
            None if idle < SPIN => {
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

/// Replaces frames without egress; returns the number of frames that did not fit.
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
    use crate::path::{
        Config, Counters, Interface, Neighbour, Neighbours, NoFirewall, Reason, Router,
    };
    use fwdlab_netio::circuit::Circuit;
    use fwdlab_netio::port::Sent;
    use fwdlab_packet::Flows;
    use fwdlab_packet::{Family, Stamp};
    use fwdlab_packet::{Stream, Template};
    use std::sync::Arc;

    const MACS: [[u8; 6]; 4] = [[2; 6], [4; 6], [6; 6], [8; 6]];

    /// Between ports 0 and 1, all routes lead out of 1.
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
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, MACS[0], MACS[1]);
        let (sender, phase, flow) = (0, 1, 0);
        template.frame(0, 0, &Stamp { run_id: 1, sender, phase, flow, sequence: 0, time_ns: 0 })
    }

    /// Delivers some frames, then ends; accepts all but every third.
    struct Script {
        number: u8,
        frames: usize,
        seen: u64,
    }

    impl Port for Script {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
            let count = self.frames.min(10);
            self.frames -= count;
            for place in batch.fill(count) {
                place.receive(self.number, &frame()).expect("it fits");
            }
            Ok(count)
        }
        fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
            let own = batch.frames().iter().filter(|frame| frame.egress() == Some(self.number));
            let mut result = Sent::default();
            for _ in own {
                self.seen += 1;
                let taken = !self.seen.is_multiple_of(3);
                *if taken { &mut result.sent } else { &mut result.lost } += 1;
            }
            Ok(result)
        }
        fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
            wakers.ready();
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
    fn frames_rejected_by_a_port_count_as_no_room() {
        let (router, counters) = router();
        let script =
            |number, frames| -> Box<dyn Port> { Box::new(Script { number, frames, seen: 0 }) };
        let ports = vec![script(0, 90), script(1, 0)];
        let missed: Arc<[PortCounters]> =
            Arc::new([PortCounters::default(), PortCounters::default()]);
        let orders = Arc::new(Orders::new().expect("a bell"));
        let station = Station { ports, missed: missed.clone(), orders };
        forward(Box::new(router), station).expect("ports");
        let snapshot = counters.read();
        assert_eq!((snapshot.get(Reason::Forwarded), snapshot.get(Reason::NoRoom)), (60, 30));
        assert_eq!(snapshot.received(), 90);
        assert_eq!((missed[0].get(), missed[1].get()), (0, 5));
        assert_eq!((missed[0].received(), missed[1].sent(), missed[1].lost()), (90, 60, 30));
    }

    #[test]
    fn lost_answers_do_not_change_forwarded_packets() {
        let (mut router, counters) = router();
        let mut expired = frame();
        // A TTL of 1 in place of 64, with a matching checksum.
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
    fn forward_circuit_runs_until_stopped() {
        let (router, counters) = router();
        let circuit = Circuit::new(4).expect("memory");
        let (mut feeder, mut drain) = (circuit.feeder(), circuit.drain());
        let orders = Orders::new().expect("a bell");
        thread::scope(|scope| {
            scope.spawn(|| forward_circuit(Box::new(router), &mut circuit.transit(), &orders));
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
            orders.stop();
        });
        let snapshot = counters.read();
        assert!(snapshot.get(Reason::Forwarded) >= 100);
        assert_eq!(snapshot.received(), 2 * snapshot.get(Reason::Forwarded));
    }

    #[test]
    fn put_in_replaces_frames_without_egress() {
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
