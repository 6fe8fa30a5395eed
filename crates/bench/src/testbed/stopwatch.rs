//! Overhead of a run: time spent outside of the traffic, by step.

use std::time::Instant;

/// Measures the overhead of a run in named steps.
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
    /// Excludes `ns` from the current step.
    pub(crate) fn skip(&mut self, ns: u64) {
        self.skipped_ns += ns;
    }

    /// Ends the step `name`.
    pub(crate) fn lap(&mut self, name: &str) {
        let ns = self.last.elapsed().as_nanos() as u64;
        self.laps.push((name.to_owned(), ns.saturating_sub(self.skipped_ns)));
        self.skipped_ns = 0;
        self.last = Instant::now();
    }
}
