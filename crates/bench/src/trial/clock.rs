//! The clock of a trial.

/// Clock and timer of a trial.
pub trait Clock {
    /// Nanoseconds of a monotonic clock.
    fn now_ns(&self) -> u64;
    /// Waits until the deadline; returns the current time.
    fn sleep_until(&self, deadline_ns: u64) -> u64;
    /// Nanoseconds since 1970.
    fn wall_ns(&self) -> i64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        fwdlab_netio::clock::monotonic_ns()
    }
    fn sleep_until(&self, deadline_ns: u64) -> u64 {
        fwdlab_netio::clock::sleep_until(deadline_ns)
    }
    fn wall_ns(&self) -> i64 {
        fwdlab_netio::clock::realtime_ns()
    }
}

impl SystemClock {
    /// The current time as text, UTC (RFC 3339).
    pub fn wall_text(self) -> String {
        jiff::Timestamp::from_nanosecond(self.wall_ns().into())
            .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
            .unwrap_or_default()
    }
}
