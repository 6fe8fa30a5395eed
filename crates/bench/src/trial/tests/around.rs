//! Tests of the phases around the window: the wait for flows, and the drain.

use super::*;
use fwdlab_model::record::DrainEnd;

/// A DUT that counts its drops and holds states.
struct Device {
    dropped: Rc<Cell<Option<u64>>>,
    states: Rc<Cell<Option<u64>>>,
}

impl DutCounters for Device {
    fn dropped(&mut self, _sent: u64) -> Option<u64> {
        self.dropped.get()
    }
    fn states(&mut self) -> Option<u64> {
        self.states.get()
    }
}

/// Runs one trial with a DUT that reports `dropped` drops.
fn run_with_drops(fake: &mut Fake, clock: &FakeClock, dropped: Option<u64>) -> Observed {
    let trial = phases();
    let mut nothing = |_| {};
    let mut device =
        Device { dropped: Rc::new(Cell::new(dropped)), states: Rc::new(Cell::new(None)) };
    let spec = TrialSpec { account: &mut device, ..spec(&trial, &mut nothing) };
    run(fake, clock, spec, &mut NoopObserver).expect("a trial")
}

#[test]
fn drain_lasts_until_all_packets_are_accounted_for() {
    let clock = FakeClock::default();
    // A device that holds its last packets back for 40 ms: silence does not end the drain.
    let mut fake = Fake::new(&clock, 400);
    (fake.silent_ms, fake.late_ms) = (40, 30);
    let observed = run_with_drops(&mut fake, &clock, Some(420_000 - 30));
    assert_eq!(observed.window.forwarded, 240_030);
    let opening = observed.opening;
    assert_eq!((opening.drained, opening.unaccounted), (Some(DrainEnd::Accounted), Some(0)));
    assert_eq!(observed.warnings, []);
    // Without the DUT's counters they count as lost after 10 ms.
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    (fake.silent_ms, fake.late_ms) = (40, 30);
    let observed = run_with_drops(&mut fake, &clock, None);
    assert_eq!(observed.window.forwarded, 240_000);
    assert_eq!(observed.opening.drained, Some(DrainEnd::Silence));
}

#[test]
fn drain_limit_reports_unaccounted_packets() {
    let clock = FakeClock::default();
    let observed = run_with_drops(&mut Fake::new(&clock, 400), &clock, Some(420_000 - 251));
    let unaccounted = Warning::Unaccounted { packets: 251, drain_ns: 100 * MS };
    assert_eq!(observed.warnings, [unaccounted]);
    let opening = observed.opening;
    assert_eq!((opening.drained, opening.unaccounted), (Some(DrainEnd::Limit), Some(251)));
    assert!(observed.drain_ns < 2 * MS, "the last packet came at once: {}", observed.drain_ns);
}

#[test]
fn drain_without_loss_does_not_wait() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 1000);
    let end = {
        let observed = run_with_drops(&mut fake, &clock, None);
        assert_eq!(observed.opening.drained, Some(DrainEnd::Accounted));
        clock.now_ns()
    };
    assert_eq!(end, 700 * MS);
}

/// Runs one trial of `flows` flows, of which `counts_at` returns the flows received and the states
/// at a time.
fn run_with_flows(
    flows: u32,
    states: bool,
    counts_at: &dyn Fn(u64) -> (Option<u32>, Option<u64>),
) -> Observed {
    struct Counted<'a>(Fake, &'a dyn Fn(u64) -> (Option<u32>, Option<u64>), Rc<Cell<Option<u64>>>);
    impl Traffic for Counted<'_> {
        fn start(&mut self) -> Result<(), BenchError> {
            self.0.start()
        }
        fn set_phase(&mut self, phase: Phase) {
            self.0.set_phase(phase);
        }
        fn snapshot(&mut self) -> Snapshot {
            self.2.set((self.1)(self.0.clock.now_ns()).1);
            self.0.snapshot()
        }
        fn stop(&mut self) -> Result<(), BenchError> {
            self.0.stop()
        }
        fn flows_seen(&mut self) -> Option<u32> {
            (self.1)(self.0.clock.now_ns()).0
        }
        fn evidence(&mut self) -> Evidence {
            Evidence::default()
        }
    }
    let clock = FakeClock::default();
    let trial = phases();
    let mut nothing = |_| {};
    let states_now = Rc::new(Cell::new(None));
    let mut traffic = Counted(Fake::new(&clock, 400), counts_at, states_now.clone());
    let mut device = Device { dropped: Rc::default(), states: states_now };
    let awaited = OpeningConditions { flows, senders: 1, states };
    let spec = TrialSpec { awaited, account: &mut device, ..spec(&trial, &mut nothing) };
    run(&mut traffic, &clock, spec, &mut NoopObserver).expect("a trial")
}

#[test]
fn window_opens_when_every_flow_has_arrived() {
    // Immediately, in the planned warm-up.
    let observed = run_with_flows(5000, false, &|_| (Some(5000), None));
    assert_eq!((observed.opening.warmup_ns, observed.opening.missing()), (100 * MS, None));
    assert_eq!(observed.warnings, []);
    // One new flow per millisecond: after 5000 of them.
    let observed = run_with_flows(5000, false, &|now| (Some((now / MS) as u32), None));
    assert_eq!(observed.opening.flows_received, Some(5000));
    assert_eq!((observed.opening.warmup_ns, observed.window_ns), (5000 * MS, 600 * MS));
    assert_eq!(observed.warnings, []);
    // The receiver has seen all flows; the DUT's table holds them later.
    let observed = run_with_flows(1000, true, &|now| (Some(1000), Some(now / (2 * MS))));
    assert_eq!((observed.opening.states, observed.opening.warmup_ns), (Some(1000), 2000 * MS));
    assert_eq!(observed.opening.states_closing, Some(1300));
    // Neither end counts the flows: all must at least have been sent (a million a second).
    let observed = run_with_flows(2_000_000, false, &|_| (None, None));
    assert_eq!(
        (observed.opening.flows_sent, observed.opening.flows_received),
        (Some(2_000_000), None)
    );
    assert_eq!(observed.opening.warmup_ns, 2000 * MS);
}

#[test]
fn missing_flows_end_the_wait_with_a_warning() {
    // Ten rounds and a second without a new flow.
    let observed = run_with_flows(5000, false, &|_| (Some(4990), None));
    assert_eq!(observed.opening.warmup_ns, 1100 * MS);
    let early = |there, flows, what: &str, warmup_ns| Warning::OpenedEarly {
        there,
        flows,
        what: what.into(),
        warmup_ns,
    };
    assert_eq!(observed.warnings, [early(4990, 5000, "flows had been received", 1100 * MS)]);
    // A table that is too small and keeps changing.
    let observed = run_with_flows(5000, true, &|now| (Some(5000), Some(3000 + now / MS % 7)));
    let states = observed.opening.states.expect("counted");
    let what = "flows had a state in the device under test";
    assert!((3000..3007).contains(&states), "{states}");
    assert_eq!(observed.warnings, [early(states, 5000, what, observed.opening.warmup_ns)]);
    assert!(observed.opening.warmup_ns < 2 * WAIT_LIMIT_NS);
    // New flows all the time: the limit.
    let observed = run_with_flows(u32::MAX, false, &|now| (Some((now / MS) as u32), None));
    assert_eq!(observed.opening.warmup_ns, 100 * MS + WAIT_LIMIT_NS);
    assert!(observed.opening.missing().is_some());
}
