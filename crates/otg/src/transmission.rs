//! One flow from its start on: sender, receiver, counters.

use crate::config::{Duration, Flow, Rate};
use crate::wires::{Options, Wires};
use fwdlab_bench::agent::protocol::{ExpectedPackets, ReceiveOrder, Received, SendOrder};
use fwdlab_bench::agent::serve_receive;
use fwdlab_bench::error::BenchError;
use fwdlab_model::record::Checked;
use fwdlab_model::settings::Engine;
use fwdlab_netio::{Receiver, Sender, clock};
use fwdlab_packet::Phase;

/// Interval of rates in nanoseconds.
const INTERVAL_NS: u64 = 500_000_000;
/// Longest time in which a paced flow sends its packets: a factor on its duration, and seconds. A
/// sender catches up after a pause of the machine.
const OVERTIME: f64 = 1.1;
const OVERTIME_S: f64 = 1.0;
/// Senders and receivers of this process end with it.
const UNLIMITED_NS: u64 = u64::MAX;

/// A flow that was started.
pub(crate) struct Transmission {
    /// Empty once sending has ended.
    senders: Vec<Box<dyn Sender>>,
    receiver: Box<dyn Receiver>,
    checked: Checked,
    /// Packets and missed packets after the end.
    sent: u64,
    missed: u64,
    limit: Option<u64>,
    /// Time of the end, nanoseconds of the monotonic clock.
    until_ns: Option<u64>,
    seconds: Option<f64>,
    samples: [Sample; 2],
}

/// Counters at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at_ns: u64,
    sent: u64,
    received: u64,
}

/// Counters of a flow, without bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) is_sending: bool,
    pub(crate) sent: u64,
    /// Intact packets, each once.
    pub(crate) received: u64,
    /// Packets per second.
    pub(crate) sent_rate: f64,
    /// Packets per second.
    pub(crate) received_rate: f64,
}

/// Ports of a flow and its identity.
pub(crate) struct Place<'a> {
    pub(crate) tx: &'a str,
    pub(crate) rx: &'a str,
    pub(crate) run_id: u32,
    /// True if other flows arrive at the same port.
    pub(crate) is_shared: bool,
    pub(crate) cpu: Option<u16>,
}

impl Transmission {
    /// Opens receiver and sender of a flow; nothing is sent yet.
    ///
    /// # Errors
    /// Fails if an interface is missing or no mechanism works, or the speed of a link is unknown.
    pub(crate) fn open(
        flow: &Flow,
        place: &Place<'_>,
        wires: &dyn Wires,
        options: &Options,
    ) -> Result<Transmission, BenchError> {
        let (stream, headers) = (flow.stream(), &flow.headers);
        let rate_pps = rate_pps(flow, place.tx, wires)?;
        let destination_mac = match options.hops {
            // Nothing between the ports changes it.
            0 => headers.destination_mac,
            _ => wires.mac(place.rx)?,
        };
        let (receiver, _, checked) = wires.receiver(&ReceiveOrder {
            interface: place.rx.to_owned(),
            run_id: place.run_id,
            flows: 0,
            expected: Some(ExpectedPackets {
                stream,
                destination_mac,
                source_mac: None,
                translated: None,
                hops: options.hops,
                senders: 1,
                timestamps: flow.metrics.latency,
                same_clock: true,
                sampled: false,
            }),
            // An XDP program takes all frames of its interface.
            engine: if place.is_shared { Engine::Packet } else { options.engine },
            cpus: Vec::new(),
            at_most_ns: UNLIMITED_NS,
        })?;
        let seconds = match flow.duration {
            Duration::Seconds(seconds) => Some(seconds),
            _ => None,
        };
        let limit = match (flow.duration, rate_pps) {
            (Duration::Packets(packets), _) => Some(packets),
            (Duration::Seconds(seconds), Some(rate)) => Some((seconds * rate).round() as u64),
            _ => None,
        };
        let source_mac = match headers.source_mac {
            Some(mac) => mac,
            None => wires.mac(place.tx)?,
        };
        let (senders, _) = wires.senders(&SendOrder {
            interface: place.tx.to_owned(),
            source_mac,
            next_hop_mac: headers.destination_mac,
            stream,
            run_id: place.run_id,
            first_number: 0,
            rate_pps,
            limit,
            first_flow: 0,
            timestamps: flow.metrics.latency,
            engine: options.engine,
            cpus: place.cpu.into_iter().collect(),
            at_most_ns: UNLIMITED_NS,
        })?;
        // Delays are of the packets of the window.
        senders.iter().for_each(|sender| sender.set_phase(Phase::Window));
        Ok(Transmission {
            senders,
            receiver,
            checked,
            sent: 0,
            missed: 0,
            limit,
            until_ns: None,
            seconds: match limit {
                None => seconds,
                // Packets that the sender can't send in time don't prolong the flow.
                Some(_) => seconds.map(|seconds| OVERTIME * seconds + OVERTIME_S),
            },
            samples: [Sample::default(); 2],
        })
    }

    /// Starts sending.
    pub(crate) fn start(&mut self) {
        let now = clock::monotonic_ns();
        self.samples = [Sample { at_ns: now, ..Sample::default() }; 2];
        self.until_ns = self.seconds.map(|seconds| now.saturating_add((seconds * 1e9) as u64));
        self.senders.iter().for_each(|sender| sender.start());
    }

    /// Ends a flow whose packets or time are used up, and samples the counters.
    ///
    /// # Errors
    /// Fails if the sender has failed.
    pub(crate) fn tick(&mut self) -> Result<(), BenchError> {
        let now = clock::monotonic_ns();
        let is_used_up = self.limit.is_some_and(|limit| self.packets_sent() >= limit)
            || self.until_ns.is_some_and(|until| now >= until);
        if is_used_up {
            self.stop()?;
        }
        if now.saturating_sub(self.samples[1].at_ns) >= INTERVAL_NS {
            let (sent, received) = (self.packets_sent(), self.packets_received());
            self.samples = [self.samples[1], Sample { at_ns: now, sent, received }];
        }
        Ok(())
    }

    /// Stops sending; the receiver continues, so that the last packets count.
    ///
    /// # Errors
    /// Fails if the sender has failed.
    pub(crate) fn stop(&mut self) -> Result<(), BenchError> {
        let mut failed = None;
        for sender in std::mem::take(&mut self.senders) {
            self.missed += sender.missed();
            let before = sender.sent();
            let halted = sender.halt();
            self.sent += halted.as_ref().unwrap_or(&before).iter().sum::<u64>();
            failed = failed.or(halted.err());
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// True while packets are sent.
    pub(crate) fn is_sending(&self) -> bool {
        !self.senders.is_empty()
    }

    /// Counters and rates of the last interval.
    pub(crate) fn counted(&self) -> Counted {
        let [before, last] = self.samples;
        let seconds = last.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let rate = |before: u64, last: u64| match seconds > 0.0 {
            true => last.saturating_sub(before) as f64 / seconds,
            false => 0.0,
        };
        Counted {
            is_sending: self.is_sending(),
            sent: self.packets_sent(),
            received: self.packets_received(),
            sent_rate: rate(before.sent, last.sent),
            received_rate: rate(before.received, last.received),
        }
    }

    /// Everything that the receiver found.
    pub(crate) fn arrivals(&self) -> Received {
        serve_receive::count(self.receiver.as_ref(), self.checked, true)
    }

    /// Packets that were due and not sent.
    pub(crate) fn missed(&self) -> u64 {
        self.missed + self.senders.iter().map(|sender| sender.missed()).sum::<u64>()
    }

    fn packets_sent(&self) -> u64 {
        let running = self.senders.iter().flat_map(|sender| sender.sent()).sum::<u64>();
        self.sent + running
    }

    fn packets_received(&self) -> u64 {
        self.receiver.received().packets.iter().sum()
    }
}

/// Packets per second of a flow; `None` for the maximum rate.
fn rate_pps(flow: &Flow, interface: &str, wires: &dyn Wires) -> Result<Option<f64>, BenchError> {
    match flow.rate {
        Rate::Packets(pps) => Ok(Some(pps)),
        Rate::LineBits(bits) => Ok(Some(bits / flow.line_bits())),
        Rate::Share(share) if share >= 1.0 => Ok(None),
        Rate::Share(share) => match wires.link(interface).speed {
            Some(speed) => Ok(Some(share * speed as f64 / flow.line_bits())),
            None => Err(BenchError::Refused(format!(
                "rate.percentage of flow `{}`: {interface} reports no speed; give pps",
                flow.name
            ))),
        },
    }
}
