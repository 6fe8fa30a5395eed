//! Traffic in both directions simultaneously (RFC 2544, section 14): two streams as one.
//!
//! Counts are sums; counts of the reverse direction are also kept separately, so that the loss in
//! each direction is known.

use super::{Armed, Plain};
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::trial::{Evidence, Snapshot, Traffic};
use fwdlab_model::record::{Arrivals, Counts, FlowArrivals, Reverse};
use fwdlab_model::settings::Settings;
use fwdlab_packet::Phase;
use fwdlab_packet::stamp::PHASES;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Time and rounds through all flows without a new one after which the missing ones count as lost.
const STILL: Duration = Duration::from_secs(1);
const STILL_ROUNDS: u64 = 2;
/// Maximum time until all flows have arrived.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Senders and receivers of both directions.
pub(super) struct Bidirectional<'a> {
    forth: Box<dyn Armed + 'a>,
    back: Box<dyn Armed + 'a>,
    /// Number of flows that have to arrive before they are answered; `None` if both directions begin
    /// together.
    answered_flows: Option<u32>,
    /// Last snapshot of the reverse direction, which a trial's sums include.
    read: Snapshot,
}

impl<'a> Bidirectional<'a> {
    /// Combines the traffic from the sender to the receiver with the traffic back.
    pub(super) fn new(forth: Box<dyn Armed + 'a>, back: Box<dyn Armed + 'a>) -> Bidirectional<'a> {
        Bidirectional { forth, back, answered_flows: None, read: Snapshot::default() }
    }

    /// Waits until all flows have arrived. A flow of which several packets are lost is not awaited
    /// any longer; it is reported as missing.
    ///
    /// # Errors
    /// If new flows still arrive after [`LONGEST_WAIT`].
    fn wait_for_flows(&mut self) -> Result<(), BenchError> {
        let Some(flows) = self.answered_flows else { return Ok(()) };
        let began = Instant::now();
        let (mut most, mut last) = (0, (began, 0));
        loop {
            let traffic = self.forth.traffic();
            let (sent, seen) = (traffic.snapshot().sent_total(), traffic.flows_seen().unwrap_or(0));
            if seen > most {
                (most, last) = (seen, (Instant::now(), sent));
            }
            let is_still = last.0.elapsed() >= STILL
                && sent.saturating_sub(last.1) >= STILL_ROUNDS * u64::from(flows);
            if seen >= flows || is_still {
                return Ok(());
            }
            if began.elapsed() >= LONGEST_WAIT {
                return Err(BenchError::Refused(format!(
                    "only {most} of {flows} flows arrived within {} s, and a translated flow is \
                     answered only after its first packet; next step: fewer flows or a higher rate \
                     in [traffic]",
                    LONGEST_WAIT.as_secs()
                )));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Armed for Bidirectional<'_> {
    fn traffic(&mut self) -> &mut dyn Traffic {
        self
    }

    fn facts(&self) -> BTreeMap<String, String> {
        // Both directions use the same mechanisms.
        self.forth.facts()
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        let back = self.back.end();
        let forth = self.forth.end()?;
        let back = back?;
        let named = back.facts.into_iter().map(|(name, value)| (format!("{name}, reverse"), value));
        Ok(Outcome {
            counters: [forth.counters, back.counters].concat(),
            facts: forth.facts.into_iter().chain(named).collect(),
            remarks: [forth.remarks, back.remarks].concat(),
            ..forth
        })
    }
}

impl Traffic for Bidirectional<'_> {
    fn start(&mut self) -> Result<(), BenchError> {
        self.forth.traffic().start()?;
        self.wait_for_flows()?;
        self.back.traffic().start()
    }

    fn set_phase(&mut self, phase: Phase) {
        self.forth.traffic().set_phase(phase);
        self.back.traffic().set_phase(phase);
    }

    fn set_rate(&mut self, rate_pps: f64) -> Result<(), BenchError> {
        self.forth.traffic().set_rate(rate_pps / 2.0)?;
        self.back.traffic().set_rate(rate_pps / 2.0)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.read = self.back.traffic().snapshot();
        sum(self.forth.traffic().snapshot(), self.read)
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        let forth = self.forth.traffic().stop();
        self.back.traffic().stop()?;
        forth
    }

    fn flows_seen(&mut self) -> Option<u32> {
        // A flow counts as seen once it has arrived in both directions.
        Some(self.forth.traffic().flows_seen()?.min(self.back.traffic().flows_seen()?))
    }

    fn arrivals(&mut self) -> Arrivals {
        let reverse = reverse(&self.read, self.back.traffic().arrivals());
        together(self.forth.traffic().arrivals(), reverse)
    }

    fn evidence(&mut self) -> Evidence {
        // The device is the same; the senders are not.
        let (forth, back) = (self.forth.traffic().evidence(), self.back.traffic().evidence());
        // Both contain the time stolen from a CPU that both send on.
        Evidence { sender_waited_ns: forth.sender_waited_ns.max(back.sender_waited_ns), ..forth }
    }

    fn finish(&mut self) -> Result<(), BenchError> {
        let forth = self.forth.traffic().finish();
        self.back.traffic().finish()?;
        forth
    }
}

/// Combines one or two directions: one unchanged, two as one.
pub(super) fn armed<'a, T: Traffic + 'a>(directions: Vec<T>) -> Box<dyn Armed + 'a> {
    combined(directions, None)
}

/// Combines directions through a device. One that translates destinations has to see a flow's first
/// packet before its first answer: an answer alone opens another, untranslated connection.
pub(super) fn through_device<'a, T: Traffic + 'a>(
    directions: Vec<T>,
    settings: &Settings,
) -> Box<dyn Armed + 'a> {
    let is_translated = settings.dut.nat.is_of_destinations();
    combined(directions, is_translated.then(|| settings.traffic.flows.count()))
}

fn combined<'a, T: Traffic + 'a>(
    directions: Vec<T>,
    answered_flows: Option<u32>,
) -> Box<dyn Armed + 'a> {
    let mut directions = directions.into_iter().map(|traffic| Box::new(Plain(traffic)));
    match (directions.next(), directions.next()) {
        (Some(forth), Some(back)) => {
            Box::new(Bidirectional { answered_flows, ..Bidirectional::new(forth, back) })
        }
        (Some(forth), None) => forth,
        (None, _) => unreachable!("a testbed without traffic"),
    }
}

/// Returns the reverse direction, as of its last snapshot.
pub(super) fn reverse(read: &Snapshot, arrivals: Arrivals) -> Reverse {
    let window = Phase::Window as usize;
    Reverse {
        window: Counts { offered: read.sent[window], forwarded: read.received[window] },
        total: Counts { offered: read.sent_total(), forwarded: read.received_total() },
        arrivals,
    }
}

/// Returns the sum of both directions.
pub(super) fn sum(forth: Snapshot, back: Snapshot) -> Snapshot {
    let phases = |a: [u64; PHASES], b: [u64; PHASES]| {
        std::array::from_fn(|phase| a[phase].saturating_add(b[phase]))
    };
    Snapshot {
        sent: phases(forth.sent, back.sent),
        received: phases(forth.received, back.received),
        damaged: forth.damaged.saturating_add(back.damaged),
        foreign: forth.foreign.saturating_add(back.foreign),
        unstamped: forth.unstamped.saturating_add(back.unstamped),
        other_frames: forth.other_frames.saturating_add(back.other_frames),
        receiver_dropped: forth.receiver_dropped.saturating_add(back.receiver_dropped),
        missed: forth.missed.saturating_add(back.missed),
        flood: Counts {
            offered: forth.flood.offered.saturating_add(back.flood.offered),
            forwarded: forth.flood.forwarded.saturating_add(back.flood.forwarded),
        },
    }
}

/// Returns the arrivals of all packets, with those of the reverse direction separately.
pub(super) fn together(forth: Arrivals, reverse: Reverse) -> Arrivals {
    let back = &reverse.arrivals;
    let mut faults = forth.faults;
    for (fault, packets) in &back.faults {
        *faults.entry(fault.clone()).or_default() += packets;
    }
    let flows = forth.flows.zip(back.flows).map(|(a, b)| FlowArrivals {
        flows: a.flows + b.flows,
        sent: a.sent + b.sent,
        seen: a.seen + b.seen,
        with_loss: a.with_loss + b.with_loss,
        missing: a.missing.saturating_add(b.missing),
        worst: [a.worst, b.worst]
            .into_iter()
            .flatten()
            .max_by_key(|worst| worst.sent.saturating_sub(worst.arrived)),
        unseen_by_chance: a.unseen_by_chance + b.unseen_by_chance,
        lacking: a.lacking || b.lacking,
    });
    let sample = match (forth.sample, back.sample) {
        (Some(mut a), Some(b)) => {
            a.checked += b.checked;
            a.of += b.of;
            a.damaged += b.damaged;
            Some(a)
        }
        (one, other) => one.or(other),
    };
    Arrivals {
        checked: forth.checked,
        damaged: forth.damaged + back.damaged,
        damaged_in_window: forth.damaged_in_window + back.damaged_in_window,
        faults,
        duplicates: forth.duplicates + back.duplicates,
        duplicates_in_window: forth.duplicates_in_window + back.duplicates_in_window,
        reordered: forth.reordered + back.reordered,
        reordered_in_window: forth.reordered_in_window + back.reordered_in_window,
        others: forth.others + back.others,
        in_full: forth.in_full + back.in_full,
        bytes_in_window: forth.bytes_in_window + back.bytes_in_window,
        sample,
        flows,
        reverse: Some(Box::new(reverse)),
    }
}

#[cfg(test)]
mod tests;
