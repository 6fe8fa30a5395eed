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
use std::ops::Range;
use std::time::Duration;

/// Time beyond [`AgentLoad::at_most`] after which unattended agents exit.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// Maximum difference of two clocks over the window: 1 ms plus 0.1 % of its length.
/// Oscillators differ by less than a tenth of that.
const SLACK_NS: u64 = 1_000_000;

/// A host that sends or receives.
pub struct End<'a> {
    /// Connection to the host.
    pub host: &'a dyn Host,
    /// fwdlab's path there, see [`super::program()`].
    pub program: String,
    /// Interface.
    pub interface: String,
    /// Its MAC.
    pub mac: [u8; 6],
    /// CPUs for traffic; empty: the agent chooses one.
    pub cpus: Vec<u16>,
}

/// The load to send.
#[derive(Clone, Debug)]
pub struct AgentLoad {
    /// The packets.
    pub stream: Stream,
    /// Identity of the run.
    pub run_id: u32,
    /// Packets per second of all senders together; none for as fast as possible.
    pub rate_pps: Option<f64>,
    /// Packets of a burst of all senders together; none for no end.
    pub limit: Option<u64>,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// A receiver in the kernel checks a sample.
    pub sampled: bool,
    /// Sending mechanism.
    pub engine: Engine,
    /// Routers on the way.
    pub hops: u8,
    /// Source MAC of frames at the receiver; none: any.
    pub last_mac: Option<[u8; 6]>,
    /// The source address that the device gives every packet; `None` if they keep theirs.
    pub translated: Option<[u8; 4]>,
    /// Maximum duration of the traffic from arming on: agents exit soon after it if their
    /// controller has died.
    pub at_most: Duration,
}

/// When a phase began: nanoseconds of this machine's clock before and after, and of the
/// sender's.
#[derive(Clone, Copy, Debug)]
struct Edge {
    before_ns: u64,
    after_ns: u64,
    theirs_ns: u64,
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
/// Counters are read on demand: a snapshot takes the round trip to the slowest agent. A
/// snapshot can't fail, so its error is returned by the next call that can.
pub struct AgentTraffic<'a> {
    senders: Vec<SendingAgent>,
    /// Sending threads of each.
    threads: Vec<usize>,
    receiver: Option<Conversation>,
    /// Other packets that the receiver counted before the trial started.
    idle: Received,
    last: Received,
    flows: Option<u32>,
    arrivals: Arrivals,
    delays: Option<Latency>,
    facts: BTreeMap<String, String>,
    trouble: Option<BenchError>,
    hosts: PhantomData<&'a dyn Host>,
}

impl<'a> AgentTraffic<'a> {
    /// Starts the agents, the receiver first, and waits until all are ready. Each sender is
    /// paired with its destination MAC.
    ///
    /// # Errors
    /// When an agent can't be started, has another version, or is not ready in time: names
    /// host, command and its last output.
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
                stream: load.stream,
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
            let own = end.cpus.len().max(1);
            let share = own as f64 / threads as f64;
            let counted = load.limit.map(|packets| {
                counted_of(
                    packets,
                    first_number..first_number + own,
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
            first_number += own;
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
            trouble: None,
            hosts: PhantomData,
        })
    }

    /// Mechanisms and CPUs in use, by name.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.facts.clone()
    }

    /// Length of the window by the senders' own clocks, nanoseconds, their mean; none
    /// before it has closed.
    pub fn window_ns(&self) -> Option<u64> {
        let lengths: Option<Vec<u64>> = self.senders.iter().map(SendingAgent::window_ns).collect();
        let lengths = lengths.filter(|lengths| !lengths.is_empty())?;
        let sum = lengths.iter().copied().fold(0, u64::saturating_add);
        Some(sum / lengths.len() as u64)
    }

    /// Sends an order to all senders at once and reads their counters.
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
            let edge = Edge { before_ns, after_ns, theirs_ns: sender.last.at_ns };
            match phase {
                Phase::WarmUp => {}
                Phase::Window => sender.opened = Some(edge),
                Phase::After => sender.closed = sender.closed.or(Some(edge)),
            }
        }
        Ok(())
    }

    fn ask(&mut self, flows: bool) -> Result<(), BenchError> {
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

    /// Keeps the first error for a call that can return it; agents are not queried after it.
    fn note(&mut self, work: impl FnOnce(&mut Self) -> Result<(), BenchError>) {
        if self.trouble.is_none() {
            self.trouble = work(self).err();
        }
    }

    /// Returns the error that was kept.
    fn take_trouble(&mut self) -> Result<(), BenchError> {
        self.trouble.take().map_or(Ok(()), Err)
    }
}

impl SendingAgent {
    fn window_ns(&self) -> Option<u64> {
        let (opened, closed) = (self.opened?, self.closed?);
        closed.theirs_ns.checked_sub(opened.theirs_ns)
    }

    /// Fails if this machine's clock and the sender's disagree about the window's length.
    fn check_clock(&self) -> Result<(), BenchError> {
        let (Some(opened), Some(closed)) = (self.opened, self.closed) else { return Ok(()) };
        let least = closed.before_ns.saturating_sub(opened.after_ns);
        let most = closed.after_ns.saturating_sub(opened.before_ns);
        let slack = SLACK_NS + most / 1000;
        let theirs = self.window_ns();
        if theirs.is_some_and(|ns| (least.saturating_sub(slack)..=most + slack).contains(&ns)) {
            return Ok(());
        }
        let theirs =
            theirs.map_or("less than nothing".into(), |ns| format!("{:.4} s", seconds(ns)));
        Err(BenchError::environment(
            format!(
                "the window took {theirs} by the clock of {}, but {:.4} to {:.4} s by this \
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

/// The part of counted packets for the agent with these of all `threads`.
fn counted_of(packets: u64, own: Range<usize>, threads: usize, flows: u32) -> Counted {
    let share = |number| Counted::packets(packets).share(number, threads, flows);
    let packets = own.clone().map(|number| share(number).packets).sum();
    Counted { packets, ..share(own.start) }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Traffic for AgentTraffic<'_> {
    fn start(&mut self) -> Result<(), BenchError> {
        self.take_trouble()?;
        self.all_senders(&Order::Start)
    }

    fn set_phase(&mut self, phase: Phase) {
        // The trial says it again before it stops.
        let closed = self.senders.iter().all(|sender| sender.closed.is_some() || sender.stopped);
        if phase != Phase::After || !closed {
            self.note(|traffic| traffic.begin_phase(phase));
        }
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.take_trouble()?;
        let threads = self.threads.iter().sum::<usize>().max(1);
        let shares = self.threads.iter().map(|&own| rate_pps * own as f64 / threads as f64);
        for (sender, share) in self.senders.iter_mut().zip(shares) {
            sender.agent.tell(&Order::Rate { rate_pps: share })?;
        }
        for sender in &mut self.senders {
            sender.last = sender.agent.sent()?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Snapshot {
        self.note(|traffic| traffic.ask(false));
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
        // Senders are stopped in spite of earlier errors.
        let (mut stopped, before) = (Ok(()), self.trouble.is_some());
        for sender in &mut self.senders {
            let _ = sender.agent.tell(&Order::Stop);
        }
        for sender in &mut self.senders {
            sender.stopped = true;
            // After an error don't wait for an agent: dropping it ends it.
            if before {
                continue;
            }
            match sender.agent.sent() {
                Ok(last) => sender.last = last,
                Err(error) => stopped = stopped.and(Err(error)),
            }
        }
        self.take_trouble()?;
        stopped?;
        self.senders.iter().try_for_each(SendingAgent::check_clock)?;
        self.ask(false)
    }

    fn flows_seen(&mut self) -> Option<u32> {
        self.note(|traffic| traffic.ask(true));
        self.flows
    }

    fn arrivals(&mut self) -> Arrivals {
        self.note(|traffic| traffic.ask(true));
        self.arrivals.clone()
    }

    fn delays(&mut self) -> Option<Latency> {
        self.delays.clone()
    }

    fn evidence(&mut self) -> Evidence {
        // The DUT is another machine, whose own reading covers the window.
        Evidence::default()
    }

    fn window_ns(&mut self) -> Option<u64> {
        AgentTraffic::window_ns(self)
    }

    fn finish(&mut self) -> Result<(), BenchError> {
        self.take_trouble()?;
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
