//! Any [`Generator`] as the [`Traffic`] of a trial.
//!
//! A generator's packets don't carry their phase, so counts are divided by time: packets counted
//! before a phase begins belong to the previous phase. Packets that arrive after the sender has
//! ended belong to the window as far as it is missing packets. If a phase received more than it
//! sent, the surplus was in flight at an edge and is moved to the nearest phase that is missing
//! packets. The sums over all phases never change.

use crate::error::BenchError;
use crate::trial::{Evidence, Snapshot, Traffic};
use fwdlab_generator::{Capabilities, Counted, Edges, Generator, Load, Outcome};
use fwdlab_packet::Phase;
use fwdlab_packet::stamp::PHASES;

/// Maximum number of reports to wait for until two agree.
const SETTLING: u32 = 5;

/// A generator driven by a trial.
///
/// `snapshot` can't fail: the first error of a generator is kept and returned by `stop`;
/// until then `snapshot` returns the last counters.
pub struct CountedTraffic<'a> {
    generator: Box<dyn Generator + 'a>,
    ledger: Option<Ledger>,
    last: Counted,
    failed: Option<BenchError>,
}

impl<'a> CountedTraffic<'a> {
    /// Prepares the generator: on return its receiver is running.
    ///
    /// # Errors
    /// The errors of [`Generator::prepare`].
    pub fn new(
        mut generator: Box<dyn Generator + 'a>,
        load: &Load,
    ) -> Result<CountedTraffic<'a>, BenchError> {
        generator.prepare(load)?;
        Ok(CountedTraffic { generator, ledger: None, last: Counted::default(), failed: None })
    }

    /// Capabilities of the generator.
    pub fn capabilities(&self) -> Capabilities {
        self.generator.capabilities()
    }

    /// Stops the receiver, after the trial.
    ///
    /// # Errors
    /// Errors of the generator since [`Traffic::stop`].
    pub fn finish(mut self) -> Result<Outcome, BenchError> {
        let outcome = self.generator.finish();
        match self.failed.take() {
            Some(error) => Err(error),
            None => outcome,
        }
    }

    /// Reads the counters; returns the last ones if the generator has failed.
    fn read(&mut self, fresh: bool) -> Counted {
        if self.failed.is_none() {
            let counted = if fresh { self.generator.fresh() } else { self.generator.counted() };
            match counted {
                Ok(counted) => self.last = counted,
                Err(error) => self.failed = Some(error),
            }
        }
        self.last
    }

    /// Counters after the sender has ended. Reports lag, so two of them must agree; otherwise
    /// packets sent after the window would be attributed to its drain.
    fn settled(&mut self) -> Counted {
        let mut counted = self.read(true);
        for _ in 0..if self.is_reporting() { SETTLING } else { 0 } {
            let before = std::mem::replace(&mut counted, self.read(true));
            if counted == before {
                break;
            }
        }
        counted
    }

    fn is_reporting(&self) -> bool {
        matches!(self.generator.capabilities().edges, Edges::Reported(_))
    }
}

impl Traffic for CountedTraffic<'_> {
    fn start(&mut self) -> Result<(), BenchError> {
        // Packets that arrived earlier do not belong to this run, e.g. neighbour discovery.
        let before = self.generator.counted()?;
        self.last = before;
        self.ledger = Some(Ledger::new(before));
        self.generator.start()
    }

    fn set_phase(&mut self, phase: Phase) {
        if self.ledger.as_ref().is_some_and(|ledger| ledger.phase() != phase) {
            let counted = self.read(true);
            if let Some(ledger) = &mut self.ledger {
                ledger.begun.push((phase, counted));
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let Some(idle) = self.ledger.as_ref().map(|ledger| ledger.idle.is_some()) else {
            return Snapshot::default();
        };
        // Two readings of the same report would look like silence.
        let counted = self.read(idle && self.is_reporting());
        self.ledger.as_ref().map(|ledger| ledger.snapshot(counted)).unwrap_or_default()
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        let stopped = self.generator.stop();
        let counted = self.settled();
        if let Some(ledger) = &mut self.ledger {
            ledger.idle = Some(counted);
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => stopped,
        }
    }

    fn flows_seen(&mut self) -> Option<u32> {
        None
    }

    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}

/// Divides counts among phases.
struct Ledger {
    /// Phases with the counts at their start.
    begun: Vec<(Phase, Counted)>,
    /// Counts after the sender had ended.
    idle: Option<Counted>,
}

impl Ledger {
    fn new(before: Counted) -> Ledger {
        Ledger { begun: vec![(Phase::WarmUp, before)], idle: None }
    }

    fn phase(&self) -> Phase {
        self.begun.last().map_or(Phase::WarmUp, |(phase, _)| *phase)
    }

    fn snapshot(&self, now: Counted) -> Snapshot {
        // Saturating: a counter that was reset in between can make any sum overflow.
        let add = u64::saturating_add;
        let mut sent = [0; PHASES];
        let mut received = [0; PHASES];
        let idle = self.idle.unwrap_or(now);
        let ends = self.begun.iter().skip(1).map(|(_, counted)| *counted).chain([idle]);
        for ((phase, begin), end) in self.begun.iter().zip(ends) {
            let at = *phase as usize;
            sent[at] = add(sent[at], end.sent.saturating_sub(begin.sent));
            received[at] = add(received[at], end.received.saturating_sub(begin.received));
        }
        let at = self.phase() as usize;
        sent[at] = add(sent[at], now.sent.saturating_sub(idle.sent));

        let drained = now.received.saturating_sub(idle.received);
        let window = Phase::Window as usize;
        let missed = sent[window].saturating_sub(received[window]).min(drained);
        received[window] += missed;
        received[at] = add(received[at], drained - missed);

        let [first, middle, last] =
            [Phase::WarmUp, Phase::Window, Phase::After].map(|p| p as usize);
        // The nearest phases first.
        let back = [(last, middle), (middle, first), (last, first)];
        let forth = [(first, middle), (middle, last), (first, last)];
        for (from, to) in back.into_iter().chain(forth) {
            let surplus = received[from].saturating_sub(sent[from]);
            let moved = surplus.min(sent[to].saturating_sub(received[to]));
            received[from] -= moved;
            received[to] += moved;
        }
        let before = self.begun.first().map_or(0, |(_, counted)| counted.receiver_dropped);
        let receiver_dropped = now.receiver_dropped.saturating_sub(before);
        Snapshot { sent, received, receiver_dropped, ..Snapshot::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts ten packets per reading, fails after a number of readings, and reports late: only the
    /// third reading after its end is final.
    struct FailingCounter {
        readings: u64,
        dies_at: u64,
        ended_at: Option<u64>,
    }

    impl Generator for FailingCounter {
        fn name(&self) -> &'static str {
            "mortal"
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities { paced: false, inet6: true, edges: Edges::Reported(1) }
        }
        fn prepare(&mut self, _load: &Load) -> Result<(), BenchError> {
            Ok(())
        }
        fn start(&mut self) -> Result<(), BenchError> {
            Ok(())
        }
        fn counted(&mut self) -> Result<Counted, BenchError> {
            self.readings += 1;
            let last = self.ended_at.map_or(u64::MAX, |ended| ended + 2);
            match self.readings >= self.dies_at {
                true => Err(BenchError::Refused(format!("died at {}", self.readings))),
                false => Ok(counted(10 * self.readings.min(last), 10 * self.readings.min(last))),
            }
        }
        fn stop(&mut self) -> Result<(), BenchError> {
            self.ended_at = Some(self.readings);
            Ok(())
        }
        fn finish(&mut self) -> Result<Outcome, BenchError> {
            Ok(Outcome::default())
        }
    }

    fn traffic(dies_at: u64) -> CountedTraffic<'static> {
        let generator = Box::new(FailingCounter { readings: 0, dies_at, ended_at: None });
        CountedTraffic { generator, ledger: None, last: Counted::default(), failed: None }
    }

    #[test]
    fn generator_failure_is_returned_by_stop() {
        let mut mortal = traffic(4);
        assert_eq!(mortal.snapshot(), Snapshot::default());
        mortal.start().expect("alive");
        mortal.set_phase(Phase::Window);
        let alive = mortal.snapshot();
        assert_eq!((alive.sent, alive.received), ([10, 10, 0, 0], [10, 10, 0, 0]));
        assert_eq!(mortal.snapshot(), alive, "the last counters stand");
        mortal.set_phase(Phase::After);
        let error = mortal.stop().expect_err("dead").to_string();
        assert_eq!(error, "died at 4");
    }

    #[test]
    fn late_reports_are_not_counted_as_drain() {
        let mut traffic = traffic(u64::MAX);
        traffic.start().expect("started");
        traffic.set_phase(Phase::Window);
        traffic.set_phase(Phase::After);
        traffic.set_phase(Phase::After);
        traffic.stop().expect("stopped");
        let end = traffic.snapshot();
        assert_eq!((end.sent, end.received), ([10, 10, 20, 0], [10, 10, 20, 0]));
        assert!(traffic.finish().is_ok());
    }

    fn counted(sent: u64, received: u64) -> Counted {
        Counted { sent, received, ..Counted::default() }
    }

    fn ledger(edges: [(u64, u64); 4]) -> Ledger {
        let [before, open, close, idle] = edges.map(|(sent, received)| counted(sent, received));
        let begun = vec![(Phase::WarmUp, before), (Phase::Window, open), (Phase::After, close)];
        Ledger { begun, idle: Some(idle) }
    }

    /// No packet is lost; 7 packets are in flight at the opening and 9 at the close.
    #[test]
    fn packets_in_flight_at_the_edges_are_not_counted_as_lost() {
        let ledger = ledger([(0, 3), (100, 96), (1100, 1094), (1150, 1144)]);
        let snapshot = ledger.snapshot(counted(1150, 1153));
        assert_eq!(snapshot.sent, [100, 1000, 50, 0]);
        assert_eq!(snapshot.received, [100, 1000, 50, 0]);
    }

    /// The device forwards every second packet: packets sent after the window do not affect its
    /// rate, and packets in the device's buffer count towards the window.
    #[test]
    fn losses_stay_in_their_phase_and_the_drain_belongs_to_the_window() {
        let ledger = ledger([(0, 0), (100, 50), (1100, 550), (1200, 600)]);
        let snapshot = ledger.snapshot(counted(1200, 604));
        assert_eq!((snapshot.sent, snapshot.received), ([100, 1000, 100, 0], [50, 504, 50, 0]));
    }

    /// The receiver's reports are later than the sender's.
    #[test]
    fn misaligned_reports_cause_no_loss() {
        let ledger = ledger([(0, 0), (100, 120), (1100, 1118), (1200, 1200)]);
        let snapshot = ledger.snapshot(counted(1200, 1200));
        assert_eq!((snapshot.sent, snapshot.received), ([100, 1000, 100, 0], [100, 1000, 100, 0]));
    }

    proptest! {
        #[test]
        fn sums_over_all_phases_are_preserved(steps in prop::collection::vec((0u64..1000, 0u64..1000), 5)) {
            let mut at = (0, 0);
            let edges: Vec<(u64, u64)> = steps
                .iter()
                .map(|(sent, received)| {
                    at = (at.0 + sent, at.1 + received);
                    at
                })
                .collect();
            let first = edges[0];
            let last = edges[4];
            let snapshot = ledger([first, edges[1], edges[2], edges[3]])
                .snapshot(counted(last.0, last.1));
            prop_assert_eq!(snapshot.sent.iter().sum::<u64>(), last.0 - first.0);
            prop_assert_eq!(snapshot.received.iter().sum::<u64>(), last.1 - first.1);
            if last.1 - first.1 <= last.0 - first.0 {
                let window = Phase::Window as usize;
                prop_assert!(snapshot.received[window] <= snapshot.sent[window]);
            }
        }
    }
}
