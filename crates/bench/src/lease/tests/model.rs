//! A host's lease as a pure state machine, and controllers that hold it, against an oracle that
//! inspects the whole history in real time.

use proptest::prelude::*;

/// Possible error of the clock, as in the sh script on Linux.
const GRAIN: u64 = 2;

/// Result of taking a lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Took {
    Yours,
    Held(String, u64),
    Lost(String),
}

#[derive(Clone, Debug)]
struct Record {
    owner: String,
    ends: u64,
    length: u64,
    boot: u32,
}

/// A host: its clock in hundredths of a second, and its record.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) now: u64,
    pub(super) boot: u32,
    record: Option<Record>,
    has_record: bool,
}

impl Host {
    /// Boots the host: its clock restarts.
    pub(super) fn boot(&mut self) {
        (self.boot, self.now) = (self.boot + 1, 0);
    }

    /// True if the host was never taken.
    pub(super) fn is_new(&self) -> bool {
        !self.has_record
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.owner.as_str())
    }

    /// Remaining time of the lease.
    pub(super) fn left(&self) -> u64 {
        let Some(record) = &self.record else { return 0 };
        let remaining_after_boot = (record.length + GRAIN).saturating_sub(self.now);
        match record.boot == self.boot {
            true => record.ends.saturating_sub(self.now),
            false => remaining_after_boot,
        }
    }

    pub(super) fn take(&mut self, owner: &str, length: u64, gone: &str, renew: bool) -> Took {
        let holder = self.owner().unwrap_or("nobody").to_owned();
        if holder != owner && renew {
            return Took::Lost(if self.is_new() { "-".into() } else { holder });
        }
        if holder != owner && holder != gone && self.left() > 0 {
            return Took::Held(holder, self.left());
        }
        let (ends, boot) = (self.now + length + GRAIN, self.boot);
        self.record = Some(Record { owner: owner.into(), ends, length, boot });
        self.has_record = true;
        Took::Yours
    }

    pub(super) fn release(&mut self, owner: &str) {
        if self.owner() == Some(owner) {
            self.free();
        }
    }

    pub(super) fn free(&mut self) {
        self.record = None;
        self.has_record = true;
    }
}

/// Length of all leases in this test.
const LENGTH: u64 = 100;
/// Time for which a holder relies on a lease.
const RELIED_ON: u64 = LENGTH - LENGTH / 4;
const CONTROLLERS: usize = 3;

/// Next event.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes; the host's clock stops for a part of it (a paused machine).
    Passes { time: u64, paused: u64 },
    /// A controller sends a request; the host executes it after one delay, and the answer takes
    /// another.
    Requests { controller: usize, renew: bool, there: u64, back: u64 },
    /// A controller releases the lease.
    Releases { controller: usize },
    /// The host is down for a time, and boots.
    Boots { down: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let controller = 0..CONTROLLERS;
    prop_oneof![
        3 => (1..60u64, 0..20u64).prop_map(|(time, paused)| Event::Passes { time, paused: paused.min(time) }),
        1 => (60..300u64).prop_map(|time| Event::Passes { time, paused: 0 }),
        8 => (controller.clone(), any::<bool>(), 0..30u64, 0..30u64)
            .prop_map(|(controller, renew, there, back)| Event::Requests { controller, renew, there, back }),
        1 => controller.prop_map(|controller| Event::Releases { controller }),
        1 => (0..200u64).prop_map(|down| Event::Boots { down }),
    ]
}

/// A granted lease: controller and times.
#[derive(Clone, Debug)]
struct Granted {
    controller: usize,
    requested: u64,
    /// Real time at which the host granted it.
    done: u64,
    known: u64,
    /// Real time after which it is not relied on for another reason: released.
    until: u64,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn host_is_never_held_twice_and_dead_holders_expire_within_one_lease(
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut host = Host::default();
        let mut real = 0;
        let mut granted: Vec<Granted> = Vec::new();
        // Spans of real time in which the host's clock ran, by boot.
        let mut ran: Vec<(u32, u64, u64)> = vec![(0, 0, 0)];
        let run = |host: &mut Host, real: &mut u64, ran: &mut Vec<(u32, u64, u64)>, time: u64| {
            (host.now, *real) = (host.now + time, *real + time);
            ran.push((host.boot, *real - time, *real));
        };
        for event in events {
            match event {
                Event::Passes { time, paused } => {
                    real += paused;
                    run(&mut host, &mut real, &mut ran, time - paused);
                }
                Event::Boots { down } => {
                    real += down;
                    host.boot();
                }
                Event::Releases { controller } => {
                    host.release(&controller.to_string());
                    for one in granted.iter_mut().filter(|one| one.controller == controller) {
                        one.until = one.until.min(real);
                    }
                }
                Event::Requests { controller, renew, there, back } => {
                    let requested = real;
                    run(&mut host, &mut real, &mut ran, there);
                    let before = host.clone();
                    match host.take(&controller.to_string(), LENGTH, "", renew) {
                        Took::Yours => granted.push(Granted {
                            controller, requested, done: real, known: real + back, until: u64::MAX,
                        }),
                        Took::Held(owner, left) => {
                            prop_assert!(left <= LENGTH + GRAIN);
                            // The oracle: since the last grant to the owner, the clock of this boot
                            // has run for less than one lease.
                            let last = granted.iter().rfind(|one| one.controller.to_string() == owner);
                            let last = last.expect("held by one who was granted it");
                            let passed: u64 = ran.iter()
                                .filter(|(boot, ..)| *boot == before.boot)
                                .map(|(_, from, to)| to.saturating_sub(last.done.max(*from)))
                                .sum();
                            prop_assert!(passed < LENGTH + GRAIN, "{passed} of {owner}'s lease");
                        }
                        Took::Lost(owner) => {
                            prop_assert!(renew && owner != controller.to_string());
                        }
                    }
                }
            }
        }
        // No two controllers relied on it at the same time.
        let relied = |one: &Granted| (one.known, one.until.min(one.requested + RELIED_ON));
        for (index, one) in granted.iter().enumerate() {
            for other in granted[index + 1..].iter().filter(|other| other.controller != one.controller) {
                let ((from, to), (other_from, other_to)) = (relied(one), relied(other));
                prop_assert!(
                    to <= from || other_to <= other_from || to <= other_from || other_to <= from,
                    "{one:?} and {other:?}"
                );
            }
        }
    }
}
