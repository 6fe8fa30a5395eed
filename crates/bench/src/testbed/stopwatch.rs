//! Where a run's time goes outside the traffic.

use std::time::Instant;

/// Splits a run's time outside the traffic into named steps.
pub struct Stopwatch {
    last: Instant,
    skipped_ns: u64,
    /// Steps and their nanoseconds, in order.
    pub(crate) laps: Vec<(String, u64)>,
}

impl Default for Stopwatch {
    fn default() -> Stopwatch {
        Stopwatch { last: Instant::now(), skipped_ns: 0, laps: Vec::new() }
    }
}

impl Stopwatch {
    /// Leaves `ns` out of the current step.
    pub(crate) fn skip(&mut self, ns: u64) {
        self.skipped_ns += ns;
    }

    /// The step of this name ends.
    pub(crate) fn lap(&mut self, name: &str) {
        let ns = self.last.elapsed().as_nanos() as u64;
        self.laps.push((name.to_owned(), ns.saturating_sub(self.skipped_ns)));
        self.skipped_ns = 0;
        self.last = Instant::now();
    }
}
