//! The simulated sender, device and receiver: packet rates over steps of time.

use super::{STEP_NS, SimClock, SimEnds, delays, law, sender_pps};
use crate::error::BenchError;
use crate::testbed::TrafficRequest;
use crate::trial::{Clock, Evidence, Snapshot, Traffic};
use fwdlab_model::record::{Counts, Latency};
use fwdlab_model::settings::{Firewall, SimSettings};
use fwdlab_packet::Phase;
use rand_xoshiro::Xoshiro256StarStar;
use std::cell::Cell;
use std::rc::Rc;

/// Traffic through the simulated device.
pub(super) struct SimTraffic {
    clock: SimClock,
    /// Current capacity without jitter; shared with the code that switches levels.
    capacity_pps: Rc<Cell<f64>>,
    /// Share of the capacity in this direction.
    share: f64,
    /// Packets forwarded, shared with the device.
    through: Rc<Cell<u64>>,
    offered_pps: f64,
    ceiling_pps: f64,
    flows: u32,
    loss: f64,
    jitter: f64,
    random: Xoshiro256StarStar,
    /// Number of packets after which sending stops; `None` without a limit.
    limit: Option<u64>,
    /// Table of the device's firewall, if every packet opens a connection.
    table: Option<Table>,
    /// Flood in addition to the traffic in the window.
    flood: Option<SimFlood>,
    /// Size of the device's buffer in packets, and its current occupancy.
    buffer: f64,
    kept: f64,
    sending: bool,
    phase: usize,
    seen_ns: u64,
    /// End of the current jitter step.
    step_end_ns: u64,
    factor: f64,
    // Fractions of packets are carried over.
    sent: [f64; 4],
    received: [f64; 4],
}

/// Connection table of the simulated device.
struct Table {
    /// Maximum number of connections.
    capacity: f64,
    /// Connection setup rate as a share of the forwarding rate.
    share: f64,
    /// States now, shared with the device.
    states: Rc<Cell<f64>>,
}

/// Packets in addition to the traffic, each with its own flow.
struct SimFlood {
    rate_pps: f64,
    /// Processing time of a flood packet relative to a packet of a known flow.
    cost: f64,
    /// Table for the new flows: flows that find no room are not forwarded. `None` without a
    /// stateful firewall.
    table: Option<Table>,
    sent: f64,
    received: f64,
}

impl SimFlood {
    /// Returns the flood of the request; `None` without one.
    fn of(request: &TrafficRequest<'_>, ends: &SimEnds<'_>) -> Option<SimFlood> {
        let (flood, settings) = (request.flood?, request.settings);
        let sim = &settings.testbed.sim;
        let is_stateful = settings.dut.firewall == Firewall::Stateful;
        let table = is_stateful.then(|| Table::of(sim, ends));
        let cost = table.as_ref().map_or(1.0, |table| 1.0 / table.share);
        Some(SimFlood { rate_pps: flood.rate_pps, cost, table, sent: 0.0, received: 0.0 })
    }

    /// Lets `seconds` pass, in which the device could forward `capacity_pps` packets of known
    /// flows, and `beside_pps` of these arrive. All packets are served alike; returns the capacity
    /// left for known flows.
    fn advance(&mut self, seconds: f64, traffic_pps: f64, capacity_pps: f64) -> f64 {
        let served = (capacity_pps / (traffic_pps + self.rate_pps * self.cost)).min(1.0);
        let offered = self.rate_pps * seconds;
        let places = self.table.as_ref().map_or(f64::INFINITY, Table::places);
        let passed = (served * offered).min(places);
        if let Some(table) = &self.table {
            table.states.set(table.states.get() + passed);
        }
        self.sent += offered;
        self.received += passed;
        served * traffic_pps
    }

    fn counts(&self) -> Counts {
        Counts { offered: self.sent.ceil() as u64, forwarded: self.received.floor() as u64 }
    }
}

impl Table {
    fn of(sim: &SimSettings, ends: &SimEnds<'_>) -> Table {
        Table {
            capacity: f64::from(sim.table.states),
            share: sim.table.establishment_pps / sim.capacity_pps,
            states: ends.states.clone(),
        }
    }

    /// Number of connections that still fit.
    fn places(&self) -> f64 {
        (self.capacity - self.states.get()).max(0.0)
    }
}

impl SimTraffic {
    /// Returns the traffic of a request, with the random numbers of its run.
    pub(super) fn new(
        request: &TrafficRequest<'_>,
        ends: &SimEnds<'_>,
        random: Xoshiro256StarStar,
    ) -> SimTraffic {
        let settings = request.settings;
        let sim = &settings.testbed.sim;
        let ceiling_pps = sender_pps(settings);
        // Counted packets at a rate belong to a new flow each.
        let opens = request.limit.is_some() && request.rate_pps.is_some();
        let is_stateful = settings.dut.firewall == Firewall::Stateful;
        let opens = opens && is_stateful;
        if is_stateful && request.limit.is_none() {
            // The traffic's flows have their states before a window opens.
            let flows = f64::from(settings.traffic.flows.count());
            ends.states.set(flows.min(f64::from(sim.table.states)));
        }
        SimTraffic {
            clock: ends.clock.clone(),
            capacity_pps: ends.capacity.clone(),
            share: 1.0,
            through: ends.received[0].clone(),
            offered_pps: request.rate_pps.unwrap_or(ceiling_pps).min(ceiling_pps),
            ceiling_pps,
            flows: settings.traffic.flows.count(),
            loss: sim.loss,
            jitter: sim.jitter,
            random,
            limit: request.limit,
            table: opens.then(|| Table::of(sim, ends)),
            flood: SimFlood::of(request, ends),
            buffer: f64::from(sim.buffer),
            kept: 0.0,
            sending: false,
            phase: 0,
            seen_ns: 0,
            step_end_ns: 0,
            factor: 1.0,
            sent: [0.0; 4],
            received: [0.0; 4],
        }
    }

    /// Returns the same traffic in the reverse direction.
    pub(super) fn back(self, ends: &SimEnds<'_>) -> SimTraffic {
        let share = ends.task.plan.base.testbed.sim.reverse;
        SimTraffic { share, through: ends.received[1].clone(), ..self }
    }

    fn advance(&mut self) {
        let now = self.clock.now_ns();
        while self.sending && self.seen_ns < now {
            if self.seen_ns >= self.step_end_ns {
                self.factor = (1.0 + self.jitter * law::normal(&mut self.random)).max(0.05);
                self.step_end_ns = self.seen_ns + STEP_NS;
            }
            let until = now.min(self.step_end_ns);
            let seconds = (until - self.seen_ns) as f64 / 1e9;
            let share = self.table.as_ref().map_or(1.0, |table| table.share);
            let capacity = self.capacity_pps.get() * self.share * self.factor * share;
            let sent: f64 = self.sent.iter().sum();
            let left = self.limit.map_or(f64::INFINITY, |limit| limit as f64 - sent);
            let offered = (self.offered_pps * seconds).min(left.max(0.0));
            // Packets of a burst that ends within a step leave at the device's own pace.
            let seconds = if offered < self.offered_pps * seconds {
                offered / self.offered_pps
            } else {
                seconds
            };
            let capacity = match &mut self.flood {
                Some(flood) if self.phase == Phase::Window as usize => {
                    flood.advance(seconds, self.offered_pps, capacity)
                }
                _ => capacity,
            };
            let places = self.table.as_ref().map_or(f64::INFINITY, Table::places);
            let demand = (offered * (1.0 - self.loss)).min(places);
            let passed = demand.min(capacity * seconds);
            // Buffered packets are forwarded later: they count as soon as that is certain.
            let room = (self.buffer - self.kept).max(0.0);
            let kept = (demand - passed).min(room);
            self.kept = (self.kept + kept - (capacity * seconds - passed)).max(0.0);
            self.sent[self.phase] += offered;
            self.received[self.phase] += passed + kept;
            if let Some(table) = &self.table {
                table.states.set(table.states.get() + passed + kept);
            }
            self.seen_ns = until;
        }
        self.seen_ns = now;
    }
}

impl Traffic for SimTraffic {
    fn start(&mut self) -> Result<(), BenchError> {
        self.seen_ns = self.clock.now_ns();
        self.sending = true;
        Ok(())
    }

    fn set_phase(&mut self, phase: Phase) {
        self.advance();
        self.phase = phase as usize;
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.advance();
        self.offered_pps = rate_pps.min(self.ceiling_pps);
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.advance();
        let sent = self.sent.map(|packets| packets.ceil() as u64);
        // A partially forwarded packet does not count, unless nothing is lost at all.
        let arrived = |phase: usize| match self.received[phase] {
            all if all == self.sent[phase] => sent[phase],
            some => some.floor() as u64,
        };
        let received = std::array::from_fn(arrived);
        self.through.set(received.iter().sum());
        let flood = self.flood.as_ref().map_or(Counts::default(), SimFlood::counts);
        Snapshot { sent, received, flood, ..Snapshot::default() }
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.advance();
        self.sending = false;
        Ok(())
    }

    fn flows_seen(&mut self) -> Option<u32> {
        None
    }

    fn delays(&mut self) -> Option<Latency> {
        let packets = self.received[Phase::Window as usize] as u64;
        let (load, capacity) = (self.offered_pps, self.capacity_pps.get());
        Latency::of(&delays::delays(packets, self.flows, load, capacity))
    }

    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}
