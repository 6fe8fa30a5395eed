//! Compares a sender's counters with its intended load.

use std::time::{Duration, Instant};

/// Shortfalls up to this share are attributed to rounding.
const SHARE: f64 = 0.005;
/// Tolerance for starting and stopping when checking how long it sent.
const EDGES: Duration = Duration::from_millis(300);

/// The account of one sender. Times are since it was opened.
#[derive(Debug)]
pub(crate) struct LoadCheck {
    opened: Instant,
    rate: Option<f64>,
    patience: Duration,
    began: Option<Duration>,
    ended: Option<Duration>,
    changed: (Duration, u64),
    stalled: Duration,
}

impl LoadCheck {
    /// An account of a sender whose counter should have moved after `patience`.
    pub(crate) fn open(rate: Option<f64>, patience: Duration) -> LoadCheck {
        // A slow sender may be silent between two packets.
        let patience = rate.map_or(patience, |rate| {
            patience.max(Duration::from_secs_f64((10.0 / rate.max(1e-3)).min(3600.0)))
        });
        LoadCheck {
            opened: Instant::now(),
            rate,
            patience,
            began: None,
            ended: None,
            changed: (Duration::ZERO, 0),
            stalled: Duration::ZERO,
        }
    }

    /// Records that it starts sending.
    pub(crate) fn begin(&mut self) {
        self.begin_at(self.opened.elapsed());
    }

    /// Records that it began to send that long ago, later than it was told to.
    pub(crate) fn began_ago(&mut self, ago: Duration) {
        self.began_ago_at(self.opened.elapsed(), ago);
    }

    fn began_ago_at(&mut self, now: Duration, ago: Duration) {
        let began = now.saturating_sub(ago);
        self.begin_at(self.began.map_or(began, |told| told.max(began)));
    }

    /// Records a reading of its counter.
    pub(crate) fn saw(&mut self, sent: u64) {
        self.saw_at(self.opened.elapsed(), sent);
    }

    /// Records that it has ended.
    pub(crate) fn end(&mut self) {
        self.end_at(self.opened.elapsed());
    }

    fn begin_at(&mut self, now: Duration) {
        self.began = Some(now);
        self.changed.0 = now;
    }

    fn saw_at(&mut self, now: Duration, sent: u64) {
        if self.began.is_none() || self.ended.is_some() {
            return;
        }
        let silent = now.saturating_sub(self.changed.0);
        if sent != self.changed.1 {
            self.changed = (now, sent);
        } else if silent > self.patience {
            self.stalled = self.stalled.max(silent);
        }
    }

    fn end_at(&mut self, now: Duration) {
        self.ended = self.ended.or(Some(now));
    }

    /// Intended sending time, if known.
    fn asked(&self) -> Option<Duration> {
        Some(self.ended?.saturating_sub(self.began?))
    }

    /// Unsent packets, after it has ended; `own` is the sending time that the generator itself
    /// reports.
    pub(crate) fn unsent(&self, sent: u64, own: Option<Duration>) -> u64 {
        let (Some(rate), Some(asked)) = (self.rate, self.asked()) else { return 0 };
        // Its own time is used only as far as it is plausible.
        let shortest = asked.saturating_sub(EDGES);
        let time = own.map_or(shortest, |own| own.clamp(shortest, asked));
        let intended = (rate * time.as_secs_f64()).round();
        match intended - sent as f64 {
            missing if missing > intended * SHARE => missing as u64,
            _ => 0,
        }
    }

    /// Remarks for the user.
    pub(crate) fn remarks(&self, sent: u64, own: Option<Duration>) -> Vec<String> {
        let mut remarks = Vec::new();
        let unsent = self.unsent(sent, own);
        if unsent > 0 {
            remarks.push(format!(
                "{unsent} packets that were to be sent were not ({sent} were): the generator did \
                 not keep the rate"
            ));
        }
        if let (Some(own), Some(asked)) = (own, self.asked())
            && own > asked.mul_f64(1.0 + SHARE) + EDGES
        {
            remarks.push(format!(
                "the generator says that it sent for {:.2} s; it had {:.2} s: its rate is not \
                 what it says",
                own.as_secs_f64(),
                asked.as_secs_f64()
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

    fn account(rate: Option<f64>, seconds: u32) -> LoadCheck {
        let mut account = LoadCheck::open(rate, SECOND);
        account.begin_at(SECOND);
        account.end_at(SECOND * (1 + seconds));
        account
    }

    #[test]
    fn unsent_packets_are_counted_where_a_rate_was_asked_for() {
        let paced = account(Some(1000.0), 10);
        assert_eq!(paced.unsent(9_960, Some(SECOND * 10)), 0, "rounding");
        assert_eq!(paced.unsent(9_000, Some(SECOND * 10)), 1_000);
        assert_eq!(paced.unsent(9_000, None), 700, "starting and stopping are not its fault");
        assert!(paced.remarks(9_000, None)[0].starts_with("700 packets that were to be sent"));
        assert_eq!(account(None, 10).unsent(1, None), 0, "as fast as possible");
        assert_eq!(LoadCheck::open(Some(5.0), SECOND).unsent(0, None), 0, "not begun");
    }

    #[test]
    fn a_sender_owes_nothing_for_the_time_before_it_began() {
        let ended = |ago: Duration| {
            let mut account = LoadCheck::open(Some(1000.0), SECOND);
            account.begin_at(SECOND);
            account.began_ago_at(SECOND * 4, ago);
            account.end_at(SECOND * 4);
            account
        };
        let late = ended(SECOND * 2);
        assert_eq!(late.unsent(2_000, None), 0);
        assert_eq!(late.unsent(1_000, None), 700);
        // Reports of before it was told to send move nothing.
        let early = ended(SECOND * 60);
        assert_eq!(early.unsent(1_000, None), 1_700);
    }

    #[test]
    fn time_that_is_stretched_is_told() {
        let paced = account(Some(1000.0), 10);
        assert!(paced.remarks(10_000, Some(SECOND * 10)).is_empty());
        let remarks = paced.remarks(10_000, Some(SECOND * 12));
        assert!(remarks[0].contains("sent for 12.00 s; it had 10.00 s"), "{remarks:?}");
        // Neither stretching nor ending early hides anything: it is held against the time that it had.
        assert_eq!(paced.unsent(8_000, Some(SECOND * 12)), 2_000);
        assert_eq!(paced.unsent(5_000, Some(SECOND * 5)), 4_700);
    }

    #[test]
    fn a_counter_that_stands_still_is_told() {
        let mut account = LoadCheck::open(None, SECOND);
        account.saw_at(SECOND * 9, 0);
        account.begin_at(SECOND * 10);
        account.saw_at(SECOND * 11, 5);
        account.saw_at(SECOND * 12, 5);
        assert!(account.remarks(5, None).is_empty());
        account.saw_at(SECOND * 14, 5);
        account.saw_at(SECOND * 15, 6);
        account.end_at(SECOND * 16);
        account.saw_at(SECOND * 60, 6);
        assert!(account.remarks(6, None)[0].contains("did not move for 3.0 s"));
        assert_eq!(LoadCheck::open(Some(2.0), SECOND).patience, SECOND * 5, "slow senders");
    }
}
