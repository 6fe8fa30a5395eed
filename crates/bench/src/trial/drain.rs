//! The drain: waits until every packet in flight is accounted for.

use super::{Clock, DutCounters, Snapshot, Traffic};
use fwdlab_model::record::DrainEnd;
use fwdlab_model::warning::Warning;

/// Silence after which the DUT's drop counters are read, or after which the drain ends if the DUT
/// has none.
const QUIET_NS: u64 = 10_000_000;
/// Polling interval.
const LOOK_NS: u64 = 1_000_000;

/// Result of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainResult {
    /// Time until the last packet arrived, nanoseconds.
    pub last_ns: u64,
    /// Reason why the drain ended.
    pub end: DrainEnd,
    /// Packets neither received nor counted as dropped; `None` if the DUT does not report drops.
    pub unaccounted: Option<i64>,
    /// True if packets were still arriving at the end.
    is_flowing: bool,
}

impl DrainResult {
    /// Returns the warning about a drain of at most `limit_ns`, if any.
    pub(super) fn doubt(&self, limit_ns: u64) -> Option<Warning> {
        match (self.end, self.unaccounted) {
            (DrainEnd::Limit, _) if self.is_flowing => {
                Some(Warning::NotDrained { drain_ns: limit_ns })
            }
            (DrainEnd::Limit, Some(packets)) if packets != 0 => {
                Some(Warning::Unaccounted { packets, drain_ns: limit_ns })
            }
            _ => None,
        }
    }
}

/// Waits until all sent packets have arrived or the DUT has counted them as dropped, up to the time
/// limit. Without drop counters, waits until no more packets arrive.
pub(super) fn wait(
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    counters: &mut dyn DutCounters,
    limit_ns: u64,
) -> DrainResult {
    let start = clock.now_ns();
    let snapshot = traffic.snapshot();
    let mut last = (start, snapshot.arrived());
    let (mut query_at, mut unaccounted) = (start, None);
    if snapshot.missing(0) <= 0 {
        return DrainResult {
            last_ns: 0,
            end: DrainEnd::Accounted,
            unaccounted: Some(snapshot.missing(0)),
            is_flowing: false,
        };
    }
    loop {
        let now = clock.sleep_until(clock.now_ns() + LOOK_NS);
        let snapshot = traffic.snapshot();
        if snapshot.arrived() != last.1 {
            last = (now, snapshot.arrived());
        }
        let ended = |end, unaccounted| DrainResult {
            last_ns: last.0 - start,
            end,
            unaccounted,
            is_flowing: now - last.0 < QUIET_NS && last.0 > start,
        };
        if snapshot.missing(0) <= 0 {
            return ended(DrainEnd::Accounted, Some(snapshot.missing(0)));
        }
        let is_quiet = now - last.0 >= QUIET_NS;
        if is_quiet && now >= query_at {
            // Packets that arrive between the reading of the DUT and the next snapshot count as
            // received.
            let Some(dropped) = counters.dropped(snapshot.sent_total()) else {
                return ended(DrainEnd::Silence, None);
            };
            let missing = traffic.snapshot().missing(dropped);
            if missing <= 0 {
                return ended(DrainEnd::Accounted, Some(missing));
            }
            unaccounted = Some(missing);
            // Slow queries are repeated less often.
            let duration_ns = clock.now_ns() - now;
            query_at = clock.now_ns() + QUIET_NS.max(3 * duration_ns);
        }
        if now - start >= limit_ns {
            return ended(DrainEnd::Limit, unaccounted);
        }
    }
}

impl Snapshot {
    /// Packets sent, in all phases.
    pub(crate) fn sent_total(&self) -> u64 {
        self.sent.iter().copied().fold(0, u64::saturating_add)
    }

    /// Packets received, of all phases.
    pub(crate) fn received_total(&self) -> u64 {
        self.received.iter().copied().fold(0, u64::saturating_add)
    }

    /// Packets that reached the receiver, including damaged ones.
    fn arrived(&self) -> u64 {
        let ours = self.received_total().saturating_add(self.damaged);
        ours.saturating_add(self.flood.forwarded).saturating_add(self.receiver_dropped)
    }

    /// Packets sent that neither arrived nor were counted as dropped.
    fn missing(&self, dropped: u64) -> i64 {
        let accounted = self.arrived().saturating_add(dropped);
        let sent = self.sent_total().saturating_add(self.flood.offered);
        (sent as i64).saturating_sub(accounted as i64)
    }
}
