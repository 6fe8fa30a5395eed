//! Tests of the state machine with simulated traffic and clock.

use super::*;
use crate::NoopObserver;
use fwdlab_model::plan::Trial;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

mod around;

const MS: u64 = 1_000_000;

#[derive(Clone, Default)]
struct FakeClock {
    now: Rc<Cell<u64>>,
    jump_at: Option<u64>,
}

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        self.now.get()
    }
    fn sleep_until(&self, deadline_ns: u64) -> u64 {
        self.now.set(self.now.get().max(deadline_ns));
        self.now.get()
    }
    fn wall_ns(&self) -> i64 {
        let jumped = self.jump_at.is_some_and(|at| self.now.get() > at);
        self.now.get() as i64 + if jumped { 3_600_000_000_000 } else { 0 }
    }
}

/// Sends 1000 packets a millisecond; forwards `forwarded` of each thousand.
struct Fake {
    clock: FakeClock,
    phase: usize,
    seen: u64,
    sending: bool,
    sent: [u64; 4],
    received: [u64; 4],
    forwarded: Rc<Cell<u64>>,
    foreign: u64,
    receiver_dropped: u64,
    late_ms: u64,
    /// Time after the end before the late packets begin to arrive.
    silent_ms: u64,
    log: Rc<RefCell<Vec<String>>>,
}

impl Fake {
    fn new(clock: &FakeClock, forwarded: u64) -> Fake {
        Fake {
            clock: clock.clone(),
            phase: 0,
            seen: 0,
            sending: false,
            sent: [0; 4],
            received: [0; 4],
            forwarded: Rc::new(Cell::new(forwarded)),
            foreign: 0,
            receiver_dropped: 0,
            late_ms: 0,
            silent_ms: 0,
            log: Rc::default(),
        }
    }

    fn advance(&mut self) {
        let now = self.clock.now_ns() / MS;
        let steps = now.saturating_sub(self.seen);
        if self.sending {
            self.sent[self.phase] += 1000 * steps;
            self.received[self.phase] += self.forwarded.get() * steps;
        } else if self.late_ms > 0 {
            // A packet a millisecond dribbles in after the end.
            let silent = steps.min(self.silent_ms);
            self.silent_ms -= silent;
            let late = (steps - silent).min(self.late_ms);
            self.received[1] += late;
            self.late_ms -= late;
        }
        self.seen = now;
    }
}

impl Traffic for Fake {
    fn start(&mut self) -> Result<(), BenchError> {
        self.seen = self.clock.now_ns() / MS;
        self.sending = true;
        self.log.borrow_mut().push("start".into());
        Ok(())
    }
    fn set_phase(&mut self, phase: Phase) {
        self.advance();
        self.phase = phase as usize;
        self.log.borrow_mut().push(format!("{phase:?}"));
    }
    fn snapshot(&mut self) -> Snapshot {
        self.advance();
        Snapshot {
            sent: self.sent,
            received: self.received,
            foreign: self.foreign,
            receiver_dropped: self.receiver_dropped,
            ..Snapshot::default()
        }
    }
    fn stop(&mut self) -> Result<(), BenchError> {
        self.advance();
        self.sending = false;
        self.log.borrow_mut().push("stop".into());
        Ok(())
    }
    fn flows_seen(&mut self) -> Option<u32> {
        Some(5)
    }
    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}

fn phases() -> Trial {
    Trial {
        warmup_ns: 100 * MS,
        duration_ns: 600 * MS,
        drain_ns: 100 * MS,
        interval_ns: 100 * MS,
        slice_ns: 20 * MS,
    }
}

fn spec<'a>(trial: &'a Trial, at_window: &'a mut dyn FnMut(Moment)) -> TrialSpec<'a> {
    let (awaited, account) = (OpeningConditions::default(), Box::leak(Box::new(NoCounters)));
    TrialSpec { trial, rate_pps: None, variant: 0, alternation: None, at_window, awaited, account }
}

fn observe(clock: &FakeClock, fake: &mut Fake, rate_pps: Option<f64>) -> Observed {
    let trial = phases();
    let mut nothing = |_| {};
    let spec = TrialSpec { rate_pps, ..spec(&trial, &mut nothing) };
    run(fake, clock, spec, &mut NoopObserver).expect("a trial")
}

#[test]
fn window_counts_exclude_the_warm_up() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    let observed = observe(&clock, &mut fake, None);
    assert_eq!(observed.window, Counts { offered: 600_000, forwarded: 240_000 });
    assert_eq!(observed.window.lost(), 360_000);
    assert_eq!(observed.total, Counts { offered: 700_000, forwarded: 280_000 });
    assert_eq!(observed.window_ns, 600 * MS);
    assert_eq!(observed.samples.len(), 30);
    assert!(observed.samples.iter().all(|s| s.valid && s.forwarded == 8000 && s.offered == 20_000));
    assert_eq!(observed.warnings, []);
    assert_eq!(*fake.log.borrow(), ["start", "Window", "After", "After", "stop"]);
}

#[test]
fn window_packets_count_if_they_arrive_in_the_drain() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    fake.late_ms = 30;
    let observed = observe(&clock, &mut fake, None);
    assert_eq!(observed.window.forwarded, 240_030);
    assert!((29 * MS..=31 * MS).contains(&observed.drain_ns), "{}", observed.drain_ns);
}

#[test]
fn endless_drain_causes_a_warning() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    fake.late_ms = 1000;
    let observed = observe(&clock, &mut fake, None);
    assert_eq!(observed.warnings, [Warning::NotDrained { drain_ns: 100 * MS }]);
}

#[test]
fn unsent_packets_cause_a_warning_with_both_counts() {
    let clock = FakeClock::default();
    let observed = observe(&clock, &mut Fake::new(&clock, 400), Some(2e6));
    assert_eq!(observed.intended, Some(1_200_000));
    assert_eq!(observed.warnings, [Warning::Unsent { intended: 1_200_000, offered: 600_000 }]);
}

#[test]
fn surplus_packets_are_fatal_and_foreign_packets_cause_a_warning() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 1001);
    fake.foreign = 7;
    let observed = observe(&clock, &mut fake, None);
    let broken = Warning::NotConserved { offered: 600_000, forwarded: 600_600 };
    assert!(broken.is_fatal());
    assert_eq!(observed.warnings, [broken, Warning::Foreign { packets: 7 }]);
}

#[test]
fn receiver_drops_cause_a_warning() {
    let clock = FakeClock::default();
    let mut fake = Fake::new(&clock, 400);
    fake.receiver_dropped = 12;
    let observed = observe(&clock, &mut fake, None);
    assert_eq!(observed.warnings, [Warning::ReceiverDropped { packets: 12 }]);
}

#[test]
fn wall_clock_jump_causes_a_warning() {
    let clock = FakeClock { jump_at: Some(300 * MS), ..FakeClock::default() };
    let observed = observe(&clock, &mut Fake::new(&clock, 400), None);
    assert_eq!(observed.warnings, [Warning::ClockJump { jump_ns: 3_600_000_000_000 }]);
    assert_eq!(observed.window_ns, 600 * MS);
}

#[test]
fn window_length_comes_from_the_senders_and_late_failures_are_errors() {
    struct Remote(Fake, bool);
    impl Traffic for Remote {
        fn start(&mut self) -> Result<(), BenchError> {
            self.0.start()
        }
        fn set_phase(&mut self, phase: Phase) {
            self.0.set_phase(phase);
        }
        fn snapshot(&mut self) -> Snapshot {
            self.0.snapshot()
        }
        fn stop(&mut self) -> Result<(), BenchError> {
            self.0.stop()
        }
        fn flows_seen(&mut self) -> Option<u32> {
            None
        }
        fn evidence(&mut self) -> Evidence {
            Evidence::default()
        }
        fn window_ns(&mut self) -> Option<u64> {
            Some(601 * MS)
        }
        fn finish(&mut self) -> Result<(), BenchError> {
            match self.1 {
                true => Ok(()),
                false => Err(BenchError::Refused("the receiver has died".into())),
            }
        }
    }
    let clock = FakeClock::default();
    let trial = phases();
    let attempt = |lives| {
        let mut traffic = Remote(Fake::new(&clock, 400), lives);
        let mut nothing = |_| {};
        let spec = TrialSpec { rate_pps: Some(1e6), ..spec(&trial, &mut nothing) };
        run(&mut traffic, &clock, spec, &mut NoopObserver)
    };
    let observed = attempt(true).expect("a trial");
    assert_eq!((observed.window_ns, observed.intended), (601 * MS, Some(601_000)));
    assert!(attempt(false).expect_err("an error").to_string().contains("has died"));
}

#[test]
fn falling_rate_causes_a_warning() {
    struct Falling(Fake);
    impl Traffic for Falling {
        fn start(&mut self) -> Result<(), BenchError> {
            self.0.start()
        }
        fn set_phase(&mut self, phase: Phase) {
            self.0.set_phase(phase);
        }
        fn snapshot(&mut self) -> Snapshot {
            let snapshot = self.0.snapshot();
            let falling = 400u64.saturating_sub(self.0.clock.now_ns() / MS / 4);
            self.0.forwarded.set(falling);
            snapshot
        }
        fn stop(&mut self) -> Result<(), BenchError> {
            self.0.stop()
        }
        fn flows_seen(&mut self) -> Option<u32> {
            None
        }
        fn evidence(&mut self) -> Evidence {
            Evidence::default()
        }
    }
    let clock = FakeClock::default();
    let trial = phases();
    let mut falling = Falling(Fake::new(&clock, 400));
    let observed = run(&mut falling, &clock, spec(&trial, &mut |_| {}), &mut NoopObserver);
    let warnings = observed.expect("a trial").warnings;
    assert!(matches!(warnings[..], [Warning::NotSteady { ratio }] if ratio < 0.8), "{warnings:?}");
}

#[test]
fn cancelling_stops_the_senders() {
    struct Cancel;
    impl Observer for Cancel {
        fn cancelled(&self) -> bool {
            true
        }
    }
    let clock = FakeClock::default();
    let trial = phases();
    let mut fake = Fake::new(&clock, 400);
    let result = run(&mut fake, &clock, spec(&trial, &mut |_| {}), &mut Cancel);
    assert!(matches!(result, Err(BenchError::Interrupted)));
    assert_eq!(fake.log.borrow().last().map(String::as_str), Some("stop"));
}

#[test]
fn alternation_switches_each_cycle_and_settles_after_each_switch() {
    let clock = FakeClock::default();
    let trial = Trial { duration_ns: 1600 * MS, slice_ns: 10 * MS, ..phases() };
    let mut fake = Fake::new(&clock, 400);
    let (rate, mut switched) = (fake.forwarded.clone(), Vec::new());
    let mut switch = |variant: usize| {
        switched.push(variant);
        rate.set(if variant == 0 { 400 } else { 300 });
        Ok(())
    };
    let mut nothing = |_| {};
    let spec = TrialSpec {
        alternation: Some(Alternation {
            slice_ns: 200 * MS,
            settle_ns: 40 * MS,
            length: 4,
            // The order of the second cycle differs from the first.
            cycle: &|cycle| if cycle == 0 { vec![0, 1, 1, 0] } else { vec![1, 0, 0, 1] },
            switch: &mut switch,
        }),
        ..spec(&trial, &mut nothing)
    };
    let observed = run(&mut fake, &clock, spec, &mut NoopObserver).expect("a stream");
    assert_eq!(switched, [1, 0, 1, 0, 1]);
    let slices = [(0, 0), (1, 1), (2, 1), (3, 0), (4, 1), (5, 0), (6, 0), (7, 1)];
    for (slice, variant) in slices {
        let samples: Vec<&Sample> = observed.samples.iter().filter(|s| s.slice == slice).collect();
        assert_eq!(samples.len(), 20, "slice {slice}");
        assert!(samples.iter().all(|s| s.variant == variant));
        let valid = samples.iter().filter(|s| s.valid).count();
        assert_eq!(valid, if slice == 0 { 20 } else { 16 });
        let expected = if variant == 0 { 4000 } else { 3000 };
        assert!(samples.iter().filter(|s| s.valid).all(|s| s.forwarded == expected));
    }
}

#[test]
fn packets_before_the_start_are_refused() {
    let clock = FakeClock::default();
    let trial = phases();
    let mut fake = Fake::new(&clock, 400);
    fake.received[0] = 3;
    let result = run(&mut fake, &clock, spec(&trial, &mut |_| {}), &mut NoopObserver);
    assert!(matches!(result, Err(BenchError::Refused(_))));
}
