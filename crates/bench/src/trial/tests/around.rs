//! Before and after the window: flows that are waited for, packets that are accounted for.

use super::*;
use fwdlab_model::record::DrainEnd;

/// A DUT that counts what it drops, holds states, and may be slow to say.
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

/// One trial with a DUT that says it dropped so many.
fn drained(fake: &mut Fake, clock: &FakeClock, dropped: Option<u64>) -> Observed {
    let trial = phases();
    let mut nothing = |_| {};
    let mut device =
        Device { dropped: Rc::new(Cell::new(dropped)), states: Rc::new(Cell::new(None)) };
    let order = TrialSpec { account: &mut device, ..order(&trial, &mut nothing) };
    run(fake, clock, order, &mut NoopObserver).expect("a trial")
}

#[test]
fn a_drain_lasts_until_all_is_accounted_for() {
    let clock = FakeClock::default();
    // A device that holds its last packets back for 40 ms: silence is no end.
    let mut fake = Fake::new(&clock, 400);
    (fake.silent_ms, fake.late_ms) = (40, 30);
    let seen = drained(&mut fake, &clock, Some(420_000 - 30));
    assert_eq!(seen.window.forwarded, 240_030);
    let opening = seen.opening;
    assert_eq!((opening.drained, opening.unaccounted), (Some(DrainEnd::Accounted), Some(0)));
    assert_eq!(seen.warnings, []);
    // Without the DUT's word they are taken for lost after 10 ms.
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    (fake.silent_ms, fake.late_ms) = (40, 30);
    let seen = drained(&mut fake, &clock, None);
    assert_eq!(seen.window.forwarded, 240_000);
    assert_eq!(seen.opening.drained, Some(DrainEnd::Silence));
}

#[test]
fn what_nobody_accounts_for_is_named_at_the_limit() {
    let clock = FakeClock::default();
    let seen = drained(&mut Fake::new(&clock, 400), &clock, Some(420_000 - 251));
    let unaccounted = Warning::Unaccounted { packets: 251, drain_ns: 100 * MS };
    assert_eq!(seen.warnings, [unaccounted]);
    let opening = seen.opening;
    assert_eq!((opening.drained, opening.unaccounted), (Some(DrainEnd::Limit), Some(251)));
    assert!(seen.drain_ns < 2 * MS, "the last packet came at once: {}", seen.drain_ns);
}

#[test]
fn nothing_is_waited_for_where_nothing_was_lost() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 1000);
    let end = {
        let seen = drained(&mut fake, &clock, None);
        assert_eq!(seen.opening.drained, Some(DrainEnd::Accounted));
        clock.now_ns()
    };
    assert_eq!(end, 700 * MS);
}

/// One trial of so many flows, of which `came` says how many are there at a time.
fn opened(flows: u32, states: bool, came: &dyn Fn(u64) -> (Option<u32>, Option<u64>)) -> Observed {
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
    let held = Rc::new(Cell::new(None));
    let mut traffic = Counted(Fake::new(&clock, 400), came, held.clone());
    let mut device = Device { dropped: Rc::default(), states: held };
    let awaited = Awaited { flows, senders: 1, states };
    let order = TrialSpec { awaited, account: &mut device, ..order(&trial, &mut nothing) };
    run(&mut traffic, &clock, order, &mut NoopObserver).expect("a trial")
}

#[test]
fn the_window_opens_when_every_flow_is_there() {
    // At once, in the planned warm-up.
    let seen = opened(5000, false, &|_| (Some(5000), None));
    assert_eq!((seen.opening.warmup_ns, seen.opening.missing()), (100 * MS, None));
    assert_eq!(seen.warnings, []);
    // A flow more a millisecond: after 5000 of them.
    let seen = opened(5000, false, &|now| (Some((now / MS) as u32), None));
    assert_eq!(seen.opening.flows_received, Some(5000));
    assert_eq!((seen.opening.warmup_ns, seen.window_ns), (5000 * MS, 600 * MS));
    assert_eq!(seen.warnings, []);
    // The receiver has seen all, the DUT's table holds them later.
    let seen = opened(1000, true, &|now| (Some(1000), Some(now / (2 * MS))));
    assert_eq!((seen.opening.states, seen.opening.warmup_ns), (Some(1000), 2000 * MS));
    assert_eq!(seen.opening.states_closing, Some(1300));
    // Nobody counts them: they must have been sent at least (a million a second).
    let seen = opened(2_000_000, false, &|_| (None, None));
    assert_eq!((seen.opening.flows_sent, seen.opening.flows_received), (Some(2_000_000), None));
    assert_eq!(seen.opening.warmup_ns, 2000 * MS);
}

#[test]
fn flows_that_never_come_are_not_waited_for_and_named() {
    // Ten rounds and a second without a new one.
    let seen = opened(5000, false, &|_| (Some(4990), None));
    assert_eq!(seen.opening.warmup_ns, 1100 * MS);
    let early = |there, flows, what: &str, warmup_ns| Warning::OpenedEarly {
        there,
        flows,
        what: what.into(),
        warmup_ns,
    };
    assert_eq!(seen.warnings, [early(4990, 5000, "flows had been received", 1100 * MS)]);
    // A table too small, which goes on changing.
    let seen = opened(5000, true, &|now| (Some(5000), Some(3000 + now / MS % 7)));
    let states = seen.opening.states.expect("counted");
    let what = "flows had a state in the device under test";
    assert!((3000..3007).contains(&states), "{states}");
    assert_eq!(seen.warnings, [early(states, 5000, what, seen.opening.warmup_ns)]);
    assert!(seen.opening.warmup_ns < 2 * WAIT_LIMIT_NS);
    // New ones all the time: the limit.
    let seen = opened(u32::MAX, false, &|now| (Some((now / MS) as u32), None));
    assert_eq!(seen.opening.warmup_ns, 100 * MS + WAIT_LIMIT_NS);
    assert!(seen.opening.missing().is_some());
}
