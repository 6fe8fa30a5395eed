//! When the next packets are due, for senders in user space.

/// Longest delay that is made up for; what is due longer is given up, so that a
/// stalled sender does not answer with a burst of a whole interval.
const LATE_NS: u64 = 200_000;

/// A constant schedule: packet `k` is due at `start + k / rate`.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    interval_ns: f64,
    start_ns: u64,
    due: u64,
    missed: u64,
}

impl Pacer {
    pub(crate) fn new(rate_pps: f64, start_ns: u64) -> Pacer {
        Pacer { interval_ns: 1e9 / rate_pps, start_ns, due: 0, missed: 0 }
    }

    /// Number of packets to send now, at most `most`.
    pub(crate) fn due(&mut self, now_ns: u64, most: usize) -> usize {
        let elapsed = now_ns.saturating_sub(self.start_ns) as f64;
        let target = (elapsed / self.interval_ns) as u64;
        let behind = target.saturating_sub(self.due);
        let allowed = (LATE_NS as f64 / self.interval_ns).ceil() as u64;
        if behind > allowed.max(1) {
            let skip = behind - allowed.max(1);
            self.missed += skip;
            self.due += skip;
        }
        (target.saturating_sub(self.due) as usize).min(most)
    }

    /// `count` packets were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        self.due += count as u64;
    }

    /// Packets given up so far.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_in_small_portions() {
        let mut pacer = Pacer::new(1e6, 1000);
        let mut sent = 0;
        for now in (1000..10_001_000).step_by(700) {
            let due = pacer.due(now, 64);
            assert!(due <= 2, "{due} packets at once");
            pacer.sent(due);
            sent += due;
        }
        assert!((9_998..=10_000).contains(&sent), "{sent}");
        assert_eq!(pacer.missed(), 0);
    }

    #[test]
    fn a_stall_is_not_answered_by_a_burst() {
        let mut pacer = Pacer::new(1e6, 0);
        let due = pacer.due(50_000_000, 100_000);
        assert_eq!(due, 200);
        assert_eq!(pacer.missed(), 49_800);
    }
}
