//! The traffic of a trial by agents: one or two senders and a receiver.

use super::conversation::Conversation;
use super::protocol::{ExpectedPackets, Order, ReceiveOrder, Received, SendOrder, Sent};
use crate::error::BenchError;
use crate::host::Host;
use crate::trial::{Evidence, Snapshot, Traffic};
use fwdlab_model::record::{Arrivals, Counts, Latency};
use fwdlab_model::settings::Engine;
use fwdlab_netio::clock;
use fwdlab_netio::sender::Counted;
use fwdlab_packet::stamp::PHASES;
use fwdlab_packet::{Phase, Stream};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

/// Time beyond [`AgentLoad::at_most`] after which agents without a controller exit.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// Maximum difference of two clocks over the window: 1 ms plus 0.1 % of the window's length.
/// Oscillators differ by less than a tenth of this limit.
const SLACK_NS: u64 = 1_000_000;

/// A host that sends or receives.
pub struct End<'a> {
    /// Connection to the host.
    pub host: &'a dyn Host,
    /// Path of fwdlab there, see [`super::program()`].
    pub program: String,
    /// Interface.
    pub interface: String,
    /// MAC of the interface.
    pub mac: [u8; 6],
    /// CPUs for traffic; if empty, the agent chooses one.
    pub cpus: Vec<u16>,
}

/// The load to send.
#[derive(Clone, Debug)]
pub struct AgentLoad {
    /// The packets as sent.
    pub stream: Stream,
    /// The packets as the receiver expects them; source addresses are those before translation.
    pub arriving: Stream,
    /// Identity of the run.
    pub run_id: u32,
    /// Packets per second of all senders together; `None` for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Packets of a burst of all senders together; `None` for no limit.
    pub limit: Option<u64>,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// A receiver in the kernel checks a sample.
    pub sampled: bool,
    /// Sending mechanism.
    pub engine: Engine,
    /// Routers on the path.
    pub hops: u8,
    /// Source MAC of frames at the receiver; `None` for any.
    pub last_mac: Option<[u8; 6]>,
    /// Source address that the device gives every packet; `None` if packets keep theirs.
    pub translated: Option<IpAddr>,
    /// Maximum duration of the traffic after arming; agents exit soon after it if their controller
    /// has died.
    pub at_most: Duration,
}

/// Start of a phase: times of this machine's clock before and after the order, and of the sender's
/// clock, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Edge {
    before_ns: u64,
    after_ns: u64,
    sender_ns: u64,
}

struct SendingAgent {
    agent: Conversation,
    last: Sent,
    opened: Option<Edge>,
    closed: Option<Edge>,
    /// True after the order to stop.
    stopped: bool,
}

/// Sending and receiving agents. Dropping it ends them.
///
/// Counters are read on demand: a snapshot takes the round trip to the slowest agent. A snapshot
/// cannot fail, so the next call that can fail returns its error.
pub struct AgentTraffic<'a> {
    senders: Vec<SendingAgent>,
    /// Number of sending threads of each sender.
    threads: Vec<usize>,
    receiver: Option<Conversation>,
    /// The receiver's counters before the trial started: packets of other traffic.
    idle: Received,
    last: Received,
    flows: Option<u32>,
    arrivals: Arrivals,
    delays: Option<Latency>,
    facts: BTreeMap<String, String>,
    pending_error: Option<BenchError>,
    hosts: PhantomData<&'a dyn Host>,
}

impl<'a> AgentTraffic<'a> {
    /// Starts the agents, the receiver first, and waits until all are ready. Each sender is paired
    /// with its destination MAC.
    ///
    /// # Errors
    /// Fails if an agent cannot be started, has another version, or is not ready in time; the error
    /// names the host and the command and quotes the last output.
    pub fn arm(
        senders: &[(End<'a>, [u8; 6])],
        receiver: &End<'a>,
        load: &AgentLoad,
    ) -> Result<AgentTraffic<'a>, BenchError> {
        let at_most_ns = (load.at_most + LEFT_ALONE).as_nanos() as u64;
        let threads: usize = senders.iter().map(|(end, _)| end.cpus.len().max(1)).sum();
        let order = Order::Receive(ReceiveOrder {
            interface: receiver.interface.clone(),
            run_id: load.run_id,
            flows: 0,
            expected: Some(ExpectedPackets {
                stream: load.arriving,
                destination_mac: receiver.mac,
                source_mac: load.last_mac,
                translated: load.translated,
                hops: load.hops,
                senders: u8::try_from(threads.max(1)).unwrap_or(u8::MAX),
                timestamps: load.timestamps,
                same_clock: senders.iter().all(|(end, _)| end.host.name() == receiver.host.name()),
                sampled: load.sampled,
            }),
            engine: Engine::Auto,
            cpus: receiver.cpus.clone(),
            at_most_ns,
        });
        let (mut receiving, mut facts) =
            Conversation::begin(receiver.host, &receiver.program, "receive", &order)?;
        let mut first_number = 0;
        let mut armed = Vec::new();
        for (end, next_hop_mac) in senders {
            let thread_count = end.cpus.len().max(1);
            let share = thread_count as f64 / threads as f64;
            let counted = load.limit.map(|packets| {
                counted_of(
                    packets,
                    first_number..first_number + thread_count,
                    threads,
                    load.stream.flows.count(),
                )
            });
            let order = Order::Send(SendOrder {
                interface: end.interface.clone(),
                source_mac: end.mac,
                next_hop_mac: *next_hop_mac,
                stream: load.stream,
                run_id: load.run_id,
                first_number: u8::try_from(first_number).unwrap_or(u8::MAX),
                rate_pps: load.rate_pps.map(|rate| rate * share),
                limit: counted.map(|counted| counted.packets),
                first_flow: counted.map_or(0, |counted| counted.first),
                timestamps: load.timestamps,
                engine: load.engine,
                cpus: end.cpus.clone(),
                at_most_ns,
            });
            first_number += thread_count;
            let (agent, more) = Conversation::begin(end.host, &end.program, "send", &order)?;
            for (name, value) in more {
                // Two senders may use different mechanisms.
                let name =
                    if senders.len() > 1 { format!("{name} on {}", agent.host()) } else { name };
                facts.insert(name, value);
            }
            let last = Sent::default();
            armed.push(SendingAgent { agent, last, opened: None, closed: None, stopped: false });
        }
        receiving.tell(&Order::Report { flows: false })?;
        let idle = receiving.received()?;
        Ok(AgentTraffic {
            senders: armed,
            threads: senders.iter().map(|(end, _)| end.cpus.len().max(1)).collect(),
            receiver: Some(receiving),
            last: idle.clone(),
            idle,
            flows: None,
            arrivals: Arrivals::default(),
            delays: None,
            facts,
            pending_error: None,
            hosts: PhantomData,
        })
    }

    /// Mechanisms and CPUs in use, by name.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    /// Mean length of the window by the senders' own clocks, nanoseconds; `None` before the window
    /// has closed.
    pub fn window_ns(&self) -> Option<u64> {
        let lengths: Option<Vec<u64>> = self.senders.iter().map(SendingAgent::window_ns).collect();
        let lengths = lengths.filter(|lengths| !lengths.is_empty())?;
        let sum = lengths.iter().copied().fold(0, u64::saturating_add);
        Some(sum / lengths.len() as u64)
    }

    /// Sends an order to all senders in parallel and reads their counters.
    fn all_senders(&mut self, order: &Order) -> Result<(), BenchError> {
        for sender in &mut self.senders {
            sender.agent.tell(order)?;
        }
        for sender in &mut self.senders {
            sender.last = sender.agent.sent()?;
        }
        Ok(())
    }

    fn begin_phase(&mut self, phase: Phase) -> Result<(), BenchError> {
        let before_ns = clock::monotonic_ns();
        self.all_senders(&Order::Phase { phase: phase as u8 })?;
        let after_ns = clock::monotonic_ns();
        for sender in &mut self.senders {
            let edge = Edge { before_ns, after_ns, sender_ns: sender.last.at_ns };
            match phase {
                Phase::WarmUp => {}
                Phase::Window => sender.opened = Some(edge),
                Phase::After => sender.closed = sender.closed.or(Some(edge)),
            }
        }
        Ok(())
    }

    fn query(&mut self, flows: bool) -> Result<(), BenchError> {
        let order = Order::Report { flows };
        for sender in self.senders.iter_mut().filter(|sender| !sender.stopped) {
            sender.agent.tell(&order)?;
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.tell(&order)?;
        }
        for sender in self.senders.iter_mut().filter(|sender| !sender.stopped) {
            sender.last = sender.agent.sent()?;
        }
        if let Some(receiver) = &mut self.receiver {
            self.last = receiver.received()?;
            self.flows = self.last.flows.or(self.flows);
            if let Some(arrivals) = self.last.arrivals.take() {
                self.arrivals = arrivals;
                self.delays = self.last.delays.take();
            }
        }
        Ok(())
    }

    /// Keeps the first error for a call that can return it. Agents are not queried after an error.
    fn keep_error(&mut self, work: impl FnOnce(&mut Self) -> Result<(), BenchError>) {
        if self.pending_error.is_none() {
            self.pending_error = work(self).err();
        }
    }

    /// Returns the kept error.
    fn take_pending_error(&mut self) -> Result<(), BenchError> {
        self.pending_error.take().map_or(Ok(()), Err)
    }
}

impl SendingAgent {
    fn window_ns(&self) -> Option<u64> {
        let (opened, closed) = (self.opened?, self.closed?);
        closed.sender_ns.checked_sub(opened.sender_ns)
    }

    /// Fails if this machine's clock and the sender's disagree about the window's length.
    fn check_clock(&self) -> Result<(), BenchError> {
        let (Some(opened), Some(closed)) = (self.opened, self.closed) else { return Ok(()) };
        let least = closed.before_ns.saturating_sub(opened.after_ns);
        let most = closed.after_ns.saturating_sub(opened.before_ns);
        let slack = SLACK_NS + most / 1000;
        let by_sender = self.window_ns();
        if by_sender.is_some_and(|ns| (least.saturating_sub(slack)..=most + slack).contains(&ns)) {
            return Ok(());
        }
        let by_sender =
            by_sender.map_or("less than nothing".into(), |ns| format!("{:.4} s", seconds(ns)));
        Err(BenchError::environment(
            format!(
                "the window took {by_sender} by the clock of {}, but {:.4} to {:.4} s by this \
                 machine's: one of them jumps",
                self.agent.host(),
                seconds(least),
                seconds(most)
            ),
            "see which clock source each uses (on Linux \
             /sys/devices/system/clocksource/clocksource0/current_clocksource), and don't \
             suspend virtual machines that measure",
        ))
    }
}

/// Share of counted packets for the agent with these threads out of `threads`.
fn counted_of(packets: u64, numbers: Range<usize>, threads: usize, flows: u32) -> Counted {
    let share = |number| Counted::packets(packets).share(number, threads, flows);
    let packets = numbers.clone().map(|number| share(number).packets).sum();
    Counted { packets, ..share(numbers.start) }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Traffic for AgentTraffic<'_> {
    fn start(&mut self) -> Result<(), BenchError> {
        self.take_pending_error()?;
        self.all_senders(&Order::Start)
    }

    fn set_phase(&mut self, phase: Phase) {
        // The trial sets the last phase again before it stops.
        let closed = self.senders.iter().all(|sender| sender.closed.is_some() || sender.stopped);
        if phase != Phase::After || !closed {
            self.keep_error(|traffic| traffic.begin_phase(phase));
        }
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.take_pending_error()?;
        let threads = self.threads.iter().sum::<usize>().max(1);
        let shares = self.threads.iter().map(|&count| rate_pps * count as f64 / threads as f64);
        for (sender, share) in self.senders.iter_mut().zip(shares) {
            sender.agent.tell(&Order::Rate { rate_pps: share })?;
        }
        for sender in &mut self.senders {
            sender.last = sender.agent.sent()?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.keep_error(|traffic| traffic.query(false));
        let mut sent = [0_u64; PHASES];
        for sender in &self.senders {
            for (sum, packets) in sent.iter_mut().zip(sender.last.packets) {
                *sum = sum.saturating_add(packets);
            }
        }
        Snapshot {
            sent,
            received: self.last.packets,
            damaged: self.last.damaged,
            foreign: self.last.foreign.saturating_sub(self.idle.foreign),
            unstamped: self.last.unstamped.saturating_sub(self.idle.unstamped),
            other_frames: self.last.others.saturating_sub(self.idle.others),
            receiver_dropped: self.last.dropped.saturating_sub(self.idle.dropped),
            missed: self.senders.iter().map(|sender| sender.last.missed).sum(),
            flood: Counts::default(),
        }
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        // Stops the senders even after earlier errors.
        let (mut stopped, before) = (Ok(()), self.pending_error.is_some());
        for sender in &mut self.senders {
            let _ = sender.agent.tell(&Order::Stop);
        }
        for sender in &mut self.senders {
            sender.stopped = true;
            // After an error don't wait for the agent: dropping it ends it.
            if before {
                continue;
            }
            match sender.agent.sent() {
                Ok(last) => sender.last = last,
                Err(error) => stopped = stopped.and(Err(error)),
            }
        }
        self.take_pending_error()?;
        stopped?;
        self.senders.iter().try_for_each(SendingAgent::check_clock)?;
        self.query(false)
    }

    fn flows_seen(&mut self) -> Option<u32> {
        self.keep_error(|traffic| traffic.query(true));
        self.flows
    }

    fn arrivals(&mut self) -> Arrivals {
        self.keep_error(|traffic| traffic.query(true));
        self.arrivals.clone()
    }

    fn delays(&mut self) -> Option<Latency> {
        self.delays.clone()
    }

    fn evidence(&mut self) -> Evidence {
        // The DUT is on another machine; its own readings cover the window.
        Evidence::default()
    }

    fn window_ns(&mut self) -> Option<u64> {
        AgentTraffic::window_ns(self)
    }

    fn finish(&mut self) -> Result<(), BenchError> {
        self.take_pending_error()?;
        if let Some(mut receiver) = self.receiver.take() {
            receiver.tell(&Order::Stop)?;
            self.last = receiver.received()?;
            receiver.end()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
