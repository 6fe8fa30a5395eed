//! Generator, router and sink, on one thread.

use super::tables::{RECEIVER, SENDER};
use super::traffic::MACS;
use super::{RouteError, Tables, Traffic, Variant};
use crate::fib::NextHop;
use crate::firewall::{Ruleset, SharedFirewall, Standard, StateConfig};
use crate::path::harvest::Pool;
use crate::path::{
    Class, Config, Counters, Interface, Neighbour, Neighbours, NoFirewall, Rate, Reason, Router,
};
use crate::worker::Engine;
use fwdlab_netio::clock;
use fwdlab_netio::frame::{BATCH, Batch};
use fwdlab_netio::ring::{Consumer, Producer, ring};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Batches that the router alone processes between two readings of the clock. All buffers in use
/// fit in a small first-level cache.
pub const LOT: usize = 2;
/// Steps between two readings of the clock for generator, router and sink together.
const BETWEEN_CLOCKS: usize = 256;

/// Generator, router and sink.
pub struct Lab {
    name: String,
    traffic: Arc<Traffic>,
    /// Flow number of the next packet.
    next: usize,
    router: Box<dyn Engine>,
    counters: Arc<Counters>,
    wires: [(Producer, Consumer); 2],
    /// Batches at the generator, at the router and at the sink.
    batches: [Batch; 3],
    generated: u64,
    arrived: u64,
}

impl Lab {
    /// Creates the variant's router between a generator of this traffic, which must be of its
    /// family, and a sink.
    ///
    /// # Errors
    /// If the variant can't be built.
    pub fn new(
        variant: &Variant,
        tables: &mut Tables,
        traffic: Arc<Traffic>,
    ) -> Result<Lab, RouteError> {
        let config = config(variant);
        let (inet, inet6) = tables.of(variant)?;
        let counters = Counters::new(1);
        // Counters of one worker always have a tally for worker 0.
        let Some(tally) = counters.tally(0) else { unreachable!("a worker") };
        let router: Box<dyn Engine> = match variant.firewall {
            Standard::None => Box::new(Router::new(&config, inet, inet6, NoFirewall, tally)?),
            standard => {
                // A fixed seed, so that every run uses the same slots of the table.
                let states =
                    StateConfig { kind: variant.states, seed: Some(1), ..StateConfig::default() };
                let wall = SharedFirewall::new(&Ruleset::standard(standard), &states)?;
                Box::new(Router::new(&config, inet, inet6, wall.filter(), tally)?)
            }
        };
        Ok(Lab {
            name: variant.name(),
            traffic,
            next: 0,
            router,
            counters,
            wires: [ring(LOT), ring(LOT)],
            batches: [(); 3].map(|()| Batch::new()),
            generated: 0,
            arrived: 0,
        })
    }

    /// Packets per second, generator and sink included, over at least `time`.
    pub fn whole(&mut self, time: Duration) -> f64 {
        let begin = Instant::now();
        let arrived = self.arrived;
        loop {
            self.pass(BETWEEN_CLOCKS, clock::monotonic_ns);
            let elapsed = begin.elapsed();
            if elapsed >= time {
                return (self.arrived - arrived) as f64 / elapsed.as_secs_f64();
            }
        }
    }

    /// Packets per second of the router alone, over at least `time` of the router's own time.
    pub fn alone(&mut self, time: Duration) -> f64 {
        let arrived = self.arrived;
        let mut elapsed = Duration::ZERO;
        loop {
            for _ in 0..BETWEEN_CLOCKS / LOT {
                (0..LOT).for_each(|_| self.generate());
                let begin = Instant::now();
                (0..LOT).for_each(|_| self.forward(clock::monotonic_ns()));
                elapsed += begin.elapsed();
                (0..LOT).for_each(|_| self.sink());
            }
            if elapsed >= time {
                return (self.arrived - arrived) as f64 / elapsed.as_secs_f64();
            }
        }
    }

    /// Passes `batches` batches end to end, one after the other, at the times that `now_ns`
    /// returns.
    pub fn pass(&mut self, batches: usize, mut now_ns: impl FnMut() -> u64) {
        for _ in 0..batches {
            self.generate();
            self.forward(now_ns());
            self.sink();
        }
    }

    /// As [`Lab::pass`] without the router: the cost of generator, rings and sink. No packet
    /// arrives.
    pub fn pass_around(&mut self, batches: usize) {
        for _ in 0..batches {
            self.generate();
            let [_, batch, _] = &mut self.batches;
            let [(_, from), (to, _)] = &mut self.wires;
            from.receive(batch);
            to.send(batch);
            self.sink();
        }
    }

    /// Sends one packet of every flow, so that each has its state.
    pub fn all_flows(&mut self) {
        self.pass(self.traffic.flows().div_ceil(BATCH), clock::monotonic_ns);
    }

    /// Returns the number of packets so far, if all arrived and the router's counters agree.
    ///
    /// # Errors
    /// If a packet is missing.
    pub fn check(&self) -> Result<u64, RouteError> {
        let counted = self.counters.read();
        let expected = match self.traffic.expires() {
            true => counted.get(Reason::Answered).min(counted.get(Reason::SlowExpired)),
            false => counted.total(Class::Forwarded),
        };
        if [expected, counted.received(), self.arrived] == [self.generated; 3] {
            return Ok(self.generated);
        }
        Err(RouteError::lost(&self.name, self.generated, self.arrived, &counted))
    }

    fn generate(&mut self) {
        let [batch, ..] = &mut self.batches;
        self.next = self.traffic.write(batch.fill(BATCH), self.next);
        self.generated += BATCH as u64;
        self.wires[0].0.send(batch);
    }

    fn forward(&mut self, now_ns: u64) {
        let [_, batch, _] = &mut self.batches;
        let [(_, from), (to, _)] = &mut self.wires;
        from.receive(batch);
        self.router.process(batch.frames_mut(), now_ns);
        self.router.flush();
        to.send(batch);
    }

    fn sink(&mut self) {
        let [.., batch] = &mut self.batches;
        self.wires[1].1.receive(batch);
        // Error messages return to the port where packets came from.
        let port = u8::from(!self.traffic.expires());
        let there = batch.frames().iter().filter(|frame| frame.egress() == Some(port));
        self.arrived += there.count() as u64;
    }
}

/// Two ports: the sender at the first and the receiver at the second.
fn config(variant: &Variant) -> Config {
    let mut neighbours = Neighbours::new();
    for (number, port, mac) in [(RECEIVER, 1, MACS[3]), (SENDER, 0, MACS[0])] {
        let next_hop = NextHop::new(number);
        // Low numbers always fit in the table.
        let _ = next_hop.map(|next_hop| neighbours.set(next_hop, Neighbour { port, mac }));
    }
    let interface = |mac, side| {
        let addresses = [Family::Inet, Family::Inet6].into_iter().filter_map(|family| {
            let (address, length) = dut_address(family, side).split_once('/')?;
            Some((address.parse().ok()?, length.parse().ok()?))
        });
        Interface { mac, mtu: 1500, addresses: addresses.collect() }
    };
    // Every packet of the traffic must be answered.
    let all = Rate { per_second: u32::MAX, burst: u32::MAX };
    Config {
        interfaces: vec![interface(MACS[1], Side::Sender), interface(MACS[2], Side::Receiver)],
        neighbours,
        errors: all,
        path: variant.path,
        harvest: variant.harvest.then(|| Arc::new(Pool::new())),
        ..Config::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(family: Family, expiring: bool) -> Lab {
        let mut traffic = Traffic::new(family, None, 5).expect("a size");
        if expiring {
            traffic = traffic.expiring();
        }
        let mut tables = Tables::new(1);
        Lab::new(&Variant::plain(family), &mut tables, Arc::new(traffic)).expect("a lab")
    }

    #[test]
    fn expiring_packets_are_all_answered() {
        for family in [Family::Inet, Family::Inet6] {
            let mut lab = lab(family, true);
            lab.pass(3, || 0);
            assert_eq!(lab.check(), Ok(3 * BATCH as u64));
        }
    }

    #[test]
    fn check_reports_a_misrouted_packet() {
        let mut lab = lab(Family::Inet, false);
        lab.pass(1, || 0);
        assert_eq!(lab.check(), Ok(BATCH as u64));
        lab.generate();
        let [_, batch, _] = &mut lab.batches;
        lab.wires[0].1.receive(batch);
        batch.frames_mut()[3].buffer_mut()[30] = 198;
        batch.frames_mut()[3].buffer_mut()[0] ^= 2;
        lab.router.process(batch.frames_mut(), 0);
        lab.router.flush();
        lab.wires[1].0.send(batch);
        lab.sink();
        let error = lab.check().expect_err("a packet to another station").to_string();
        assert!(error.contains("of 128 packets 127 arrived"), "{error}");
        assert!(error.contains("other_mac 1"), "{error}");
    }
}
