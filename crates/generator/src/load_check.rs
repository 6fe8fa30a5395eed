//! Compares a sender's counters with its intended load.

use std::time::{Duration, Instant};

/// Shortfalls up to this share are attributed to rounding.
const SHARE: f64 = 0.005;
/// Tolerance for starting and stopping in the check of the sending time.
const EDGES: Duration = Duration::from_millis(300);

/// Intended and actual load of one sender. Times are relative to its opening.
#[derive(Debug)]
pub(crate) struct LoadCheck {
    opened: Instant,
    rate: Option<f64>,
    patience: Duration,
    began: Option<Duration>,
    ended: Option<Duration>,
    last_change: (Duration, u64),
    stalled: Duration,
}

impl LoadCheck {
    /// Opens the check of a sender whose counter should have moved after `patience`.
    pub(crate) fn open(rate: Option<f64>, patience: Duration) -> LoadCheck {
        // A slow sender may pause between two packets.
        let patience = rate.map_or(patience, |rate| {
            patience.max(Duration::from_secs_f64((10.0 / rate.max(1e-3)).min(3600.0)))
        });
        LoadCheck {
            opened: Instant::now(),
            rate,
            patience,
            began: None,
            ended: None,
            last_change: (Duration::ZERO, 0),
            stalled: Duration::ZERO,
        }
    }

    /// Records the start of sending.
    pub(crate) fn begin(&mut self) {
        self.begin_at(self.opened.elapsed());
    }

    /// Records that the sender started this long ago, later than requested.
    pub(crate) fn began_ago(&mut self, ago: Duration) {
        self.began_ago_at(self.opened.elapsed(), ago);
    }

    fn began_ago_at(&mut self, now: Duration, ago: Duration) {
        let began = now.saturating_sub(ago);
        self.begin_at(self.began.map_or(began, |requested| requested.max(began)));
    }

    /// Records a reading of the counter.
    pub(crate) fn saw(&mut self, sent: u64) {
        self.record_at(self.opened.elapsed(), sent);
    }

    /// Records the end of sending.
    pub(crate) fn end(&mut self) {
        self.end_at(self.opened.elapsed());
    }

    fn begin_at(&mut self, now: Duration) {
        self.began = Some(now);
        self.last_change.0 = now;
    }

    fn record_at(&mut self, now: Duration, sent: u64) {
        if self.began.is_none() || self.ended.is_some() {
            return;
        }
        let silent = now.saturating_sub(self.last_change.0);
        if sent != self.last_change.1 {
            self.last_change = (now, sent);
        } else if silent > self.patience {
            self.stalled = self.stalled.max(silent);
        }
    }

    fn end_at(&mut self, now: Duration) {
        self.ended = self.ended.or(Some(now));
    }

    /// Intended sending time, if known.
    fn intended_time(&self) -> Option<Duration> {
        Some(self.ended?.saturating_sub(self.began?))
    }

    /// Unsent packets, after the sender has ended; `reported` is the sending time that the
    /// generator itself reports.
    pub(crate) fn unsent(&self, sent: u64, reported: Option<Duration>) -> u64 {
        let (Some(rate), Some(intended_time)) = (self.rate, self.intended_time()) else { return 0 };
        // The generator's own time is used only as far as it is plausible.
        let shortest = intended_time.saturating_sub(EDGES);
        let time = reported.map_or(shortest, |reported| reported.clamp(shortest, intended_time));
        let intended = (rate * time.as_secs_f64()).round();
        match intended - sent as f64 {
            missing if missing > intended * SHARE => missing as u64,
            _ => 0,
        }
    }

    /// Remarks for the user.
    pub(crate) fn remarks(&self, sent: u64, reported: Option<Duration>) -> Vec<String> {
        let mut remarks = Vec::new();
        let unsent = self.unsent(sent, reported);
        if unsent > 0 {
            remarks.push(format!(
                "{unsent} packets that were to be sent were not ({sent} were): the generator did \
                 not keep the rate"
            ));
        }
        if let (Some(reported), Some(intended_time)) = (reported, self.intended_time())
            && reported > intended_time.mul_f64(1.0 + SHARE) + EDGES
        {
            remarks.push(format!(
                "the generator says that it sent for {:.2} s; it had {:.2} s: its rate is not \
                 what it says",
                reported.as_secs_f64(),
                intended_time.as_secs_f64()
            ));
        }
        if !self.stalled.is_zero() {
            remarks.push(format!(
                "the sender's counter did not move for {:.1} s while it should have sent",
                self.stalled.as_secs_f64()
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(rate: Option<f64>, seconds: u32) -> LoadCheck {
        let mut check = LoadCheck::open(rate, SECOND);
        check.begin_at(SECOND);
        check.end_at(SECOND * (1 + seconds));
        check
    }

    #[test]
    fn shortfall_is_counted_only_with_a_rate() {
        let paced = check(Some(1000.0), 10);
        assert_eq!(paced.unsent(9_960, Some(SECOND * 10)), 0, "rounding");
        assert_eq!(paced.unsent(9_000, Some(SECOND * 10)), 1_000);
        assert_eq!(paced.unsent(9_000, None), 700, "starting and stopping are not its fault");
        assert!(paced.remarks(9_000, None)[0].starts_with("700 packets that were to be sent"));
        assert_eq!(check(None, 10).unsent(1, None), 0, "as fast as possible");
        assert_eq!(LoadCheck::open(Some(5.0), SECOND).unsent(0, None), 0, "not begun");
    }

    #[test]
    fn time_before_the_actual_start_is_not_counted() {
        let ended = |ago: Duration| {
            let mut check = LoadCheck::open(Some(1000.0), SECOND);
            check.begin_at(SECOND);
            check.began_ago_at(SECOND * 4, ago);
            check.end_at(SECOND * 4);
            check
        };
        let late = ended(SECOND * 2);
        assert_eq!(late.unsent(2_000, None), 0);
        assert_eq!(late.unsent(1_000, None), 700);
        // Reported starts before the requested start are ignored.
        let early = ended(SECOND * 60);
        assert_eq!(early.unsent(1_000, None), 1_700);
    }

    #[test]
    fn time_that_is_stretched_is_told() {
        let paced = check(Some(1000.0), 10);
        assert!(paced.remarks(10_000, Some(SECOND * 10)).is_empty());
        let remarks = paced.remarks(10_000, Some(SECOND * 12));
        assert!(remarks[0].contains("sent for 12.00 s; it had 10.00 s"), "{remarks:?}");
        // Neither a longer nor a shorter reported time hides anything: the shortfall refers to the
        // available time.
        assert_eq!(paced.unsent(8_000, Some(SECOND * 12)), 2_000);
        assert_eq!(paced.unsent(5_000, Some(SECOND * 5)), 4_700);
    }

    #[test]
    fn stalled_counter_is_reported() {
        let mut check = LoadCheck::open(None, SECOND);
        check.record_at(SECOND * 9, 0);
        check.begin_at(SECOND * 10);
        check.record_at(SECOND * 11, 5);
        check.record_at(SECOND * 12, 5);
        assert!(check.remarks(5, None).is_empty());
        check.record_at(SECOND * 14, 5);
        check.record_at(SECOND * 15, 6);
        check.end_at(SECOND * 16);
        check.record_at(SECOND * 60, 6);
        assert!(check.remarks(6, None)[0].contains("did not move for 3.0 s"));
        assert_eq!(LoadCheck::open(Some(2.0), SECOND).patience, SECOND * 5, "slow senders");
    }
}
