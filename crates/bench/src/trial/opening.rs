//! Waits until all flows have been seen before the window opens.
//!
//! A flow's first packet costs more than the others (state creation, route caching), so a
//! window that opens too early measures a mixture. The warm-up continues until all flows
//! have been seen, no new ones appear, or the time limit is reached.

use super::{DutCounters, OpeningConditions, Traffic};
use fwdlab_model::plan::Trial;
use fwdlab_model::record::Opening;
use fwdlab_model::warning::Warning;

/// Maximum extension of the planned warm-up, nanoseconds.
pub const WAIT_LIMIT_NS: u64 = 20_000_000_000;
/// Time without new flows, over several rounds through all flows, after which the wait ends.
const STILL_NS: u64 = 1_000_000_000;
const STILL_ROUNDS: u64 = 10;

/// Maximum duration of a trial, nanoseconds.
pub fn longest_ns(trial: &Trial) -> u64 {
    trial.warmup_ns + WAIT_LIMIT_NS + trial.duration_ns + trial.drain_ns
}

/// The wait for flows.
pub(super) struct Waiting {
    begin_ns: u64,
    planned_ns: u64,
    awaited: OpeningConditions,
    seen: Opening,
    /// Maxima so far: flows sent, flows received, states.
    maxima: [u64; 3],
    /// Time of the last rise of a maximum, and the packets sent until then.
    last_rise: (u64, u64),
}

impl Waiting {
    /// Starts the wait after a warm-up from `begin_ns` to `planned_ns`.
    pub(super) fn new(begin_ns: u64, planned_ns: u64, awaited: OpeningConditions) -> Waiting {
        let seen =
            Opening { flows: awaited.flows, is_stateful: awaited.states, ..Opening::default() };
        Waiting { begin_ns, planned_ns, awaited, seen, maxima: [0; 3], last_rise: (planned_ns, 0) }
    }

    /// Returns true once the window may open.
    pub(super) fn is_over(
        &mut self,
        now_ns: u64,
        traffic: &mut dyn Traffic,
        counters: &mut dyn DutCounters,
    ) -> bool {
        let sent = traffic.snapshot().sent_total();
        let flows = self.awaited.flows;
        // Senders cycle through all flows.
        let round = u64::from(flows) * u64::from(self.awaited.senders.max(1));
        let turns = sent / u64::from(self.awaited.senders.max(1));
        self.seen.states = counters.states();
        if flows == 0 {
            return true;
        }
        self.seen.flows_sent = Some(turns.min(flows.into()) as u32);
        self.seen.flows_received = traffic.flows_seen().map(|seen| seen.min(flows));
        let states = self.seen.states.filter(|_| self.awaited.states);
        let [flows_sent, flows_received] =
            [self.seen.flows_sent, self.seen.flows_received].map(|n| n.map_or(0, u64::from));
        let counts = [flows_sent, flows_received, states.unwrap_or(0)];
        if counts.iter().zip(self.maxima).any(|(&now, most)| now > most) {
            self.last_rise = (now_ns, sent);
            self.maxima = std::array::from_fn(|at| self.maxima[at].max(counts[at]));
        }
        let is_still = now_ns.saturating_sub(self.last_rise.0) >= STILL_NS
            && sent.saturating_sub(self.last_rise.1) >= STILL_ROUNDS * round;
        let is_late = now_ns.saturating_sub(self.planned_ns) >= WAIT_LIMIT_NS;
        self.seen.missing().is_none() || is_still || is_late
    }

    /// Returns the flows and states seen, with the length of the warm-up.
    pub(super) fn into_opening(self, now_ns: u64) -> Opening {
        Opening { warmup_ns: now_ns.saturating_sub(self.begin_ns), ..self.seen }
    }
}

/// Returns the warning about missing flows, if any.
pub(super) fn doubt(opening: &Opening) -> Option<Warning> {
    let (there, flows, what) = opening.missing()?;
    let warmup_ns = opening.warmup_ns;
    Some(Warning::OpenedEarly { there, flows, what: what.to_owned(), warmup_ns })
}
