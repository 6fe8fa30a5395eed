//! A host's lease as a pure state machine, and controllers that hold it, against an oracle
//! that looks through all that has happened, in real time.

use proptest::prelude::*;

/// By how much the clock may be wrong, as in the lines of sh on Linux.
const GRAIN: u64 = 2;

/// What taking came to.
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
    /// It boots: the clock begins again.
    pub(super) fn boot(&mut self) {
        (self.boot, self.now) = (self.boot + 1, 0);
    }

    /// Nobody has ever taken it.
    pub(super) fn is_new(&self) -> bool {
        !self.has_record
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.record.as_ref().map(|record| record.owner.as_str())
    }

    /// What is left of the lease.
    pub(super) fn left(&self) -> u64 {
        let Some(record) = &self.record else { return 0 };
        let anew = (record.length + GRAIN).saturating_sub(self.now);
        match record.boot == self.boot {
            true => record.ends.saturating_sub(self.now),
            false => anew,
        }
    }

    pub(super) fn take(&mut self, owner: &str, length: u64, gone: &str, renew: bool) -> Took {
        let theirs = self.owner().unwrap_or("nobody").to_owned();
        if theirs != owner && renew {
            return Took::Lost(if self.is_new() { "-".into() } else { theirs });
        }
        if theirs != owner && theirs != gone && self.left() > 0 {
            return Took::Held(theirs, self.left());
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

/// Length of the leases here.
const LENGTH: u64 = 100;
/// How long a holder relies on one.
const RELIED_ON: u64 = LENGTH - LENGTH / 4;
const CONTROLLERS: usize = 3;

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes; the host's clock stands still for a part of it (a machine that is paused).
    Passes { time: u64, paused: u64 },
    /// A controller asks, and the host does it after a while, and the answer takes another.
    Asks { who: usize, renew: bool, there: u64, back: u64 },
    /// A controller gives it back.
    GivesBack { who: usize },
    /// The host is down for a time, and boots.
    Boots { down: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    let who = 0..CONTROLLERS;
    prop_oneof![
        3 => (1..60u64, 0..20u64).prop_map(|(time, paused)| Event::Passes { time, paused: paused.min(time) }),
        1 => (60..300u64).prop_map(|time| Event::Passes { time, paused: 0 }),
        8 => (who.clone(), any::<bool>(), 0..30u64, 0..30u64)
            .prop_map(|(who, renew, there, back)| Event::Asks { who, renew, there, back }),
        1 => who.prop_map(|who| Event::GivesBack { who }),
        1 => (0..200u64).prop_map(|down| Event::Boots { down }),
    ]
}

/// Something that was granted: who, when it was done there, in real time.
#[derive(Clone, Debug)]
struct Granted {
    who: usize,
    asked: u64,
    /// Real time in which the host did it, and its clock since that boot began.
    done: u64,
    known: u64,
    /// Real time from which on it is not relied on for another reason: given back.
    until: u64,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_host_is_held_twice_and_the_dead_are_outlived_by_one_lease_time(
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
                Event::GivesBack { who } => {
                    host.release(&who.to_string());
                    for one in granted.iter_mut().filter(|one| one.who == who) {
                        one.until = one.until.min(real);
                    }
                }
                Event::Asks { who, renew, there, back } => {
                    let asked = real;
                    run(&mut host, &mut real, &mut ran, there);
                    let before = host.clone();
                    match host.take(&who.to_string(), LENGTH, "", renew) {
                        Took::Yours => granted.push(Granted {
                            who, asked, done: real, known: real + back, until: u64::MAX,
                        }),
                        Took::Held(owner, left) => {
                            prop_assert!(left <= LENGTH + GRAIN);
                            // The oracle: its clock has not run for a lease in this boot since
                            // the last thing that the owner was granted.
                            let last = granted.iter().rfind(|one| one.who.to_string() == owner);
                            let last = last.expect("held by one who was granted it");
                            let passed: u64 = ran.iter()
                                .filter(|(boot, ..)| *boot == before.boot)
                                .map(|(_, from, to)| to.saturating_sub(last.done.max(*from)))
                                .sum();
                            prop_assert!(passed < LENGTH + GRAIN, "{passed} of {owner}'s lease");
                        }
                        Took::Lost(owner) => {
                            prop_assert!(renew && owner != who.to_string());
                        }
                    }
                }
            }
        }
        // Nobody relied on it while another did.
        let relied = |one: &Granted| (one.known, one.until.min(one.asked + RELIED_ON));
        for (index, one) in granted.iter().enumerate() {
            for other in granted[index + 1..].iter().filter(|other| other.who != one.who) {
                let ((from, to), (other_from, other_to)) = (relied(one), relied(other));
                prop_assert!(
                    to <= from || other_to <= other_from || to <= other_from || other_to <= from,
                    "{one:?} and {other:?}"
                );
            }
        }
    }
}
