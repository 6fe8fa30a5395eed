//! Rules and states at work: what a router's worker asks.

use super::packet::{Packet, bit};
use super::rule::{Action, Direction, RuleError, Ruleset};
use super::rules::{Rules, Tables};
use super::states::{
    Access, Answer, Connection, Kept, Own, Question, StateConfig, States, Work, hash,
};
use super::stats::{Counts, FirewallStats, RuleStats, Totals};
use crate::path;
use fwdlab_port::frame::{BATCH, Frame};
use std::sync::{Arc, Mutex, PoisonError};

/// Slots of states that a batch looks through whether they are over.
const SWEPT: usize = 1 << 10;
/// The same after a batch that found no room.
const SWEPT_WHEN_FULL: usize = 1 << 14;

/// A router's firewall: what all its workers share.
#[derive(Debug)]
pub struct Wall {
    rules_in: Rules,
    rules_out: Rules,
    rules: usize,
    tables: Tables,
    states: States,
    /// A rule keeps state, and there is somebody to hold it.
    keeps: bool,
    when_full: Action,
    workers: Mutex<Vec<Arc<Counts>>>,
}

/// One worker's part of it.
#[derive(Debug)]
pub struct Filter {
    wall: Arc<Wall>,
    own: Option<Own>,
    bench: Bench,
    counts: Arc<Counts>,
}

/// The batch at hand.
#[derive(Debug)]
struct Bench {
    packets: [Packet; BATCH],
    /// Of those that can belong to a state.
    hashes: [u64; BATCH],
    /// Those of the two that are filled.
    read: u64,
    /// Packets that have a state.
    known: u64,
    /// Those that were blocked as there was no room.
    full: u64,
    was_full: bool,
}

impl Wall {
    /// A firewall with these rules.
    ///
    /// # Errors
    /// When a rule can't be meant.
    pub fn new(ruleset: &Ruleset, config: &StateConfig) -> Result<Arc<Wall>, RuleError> {
        let rules_in = Rules::of(ruleset, Direction::In)?;
        let rules_out = Rules::of(ruleset, Direction::Out)?;
        let states = States::new(config);
        let keeps = states.keep() && (rules_in.keep_state() || rules_out.keep_state());
        Ok(Arc::new(Wall {
            rules_in,
            rules_out,
            rules: ruleset.rules.len(),
            tables: Tables::of(ruleset),
            states,
            keeps,
            when_full: config.when_full,
            workers: Mutex::default(),
        }))
    }

    /// The part of one more worker.
    pub fn filter(self: &Arc<Wall>) -> Filter {
        let counts = Counts::new(self.rules);
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counts));
        let bench = Bench {
            packets: [Packet::EMPTY; BATCH],
            hashes: [0; BATCH],
            read: 0,
            known: 0,
            full: 0,
            was_full: false,
        };
        Filter { wall: Arc::clone(self), own: self.states.own(), bench, counts }
    }

    /// Counters of all workers that there have been. They may go on meanwhile.
    pub fn stats(&self) -> FirewallStats {
        let rules = vec![RuleStats::default(); self.rules];
        let mut stats = FirewallStats { rules, ..FirewallStats::default() };
        for counts in self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            counts.sum(&mut stats);
        }
        (stats.states, stats.memory_bytes) = self.states.size();
        stats
    }
}

impl Filter {
    /// The connections that have a state, in no order: of all workers, or where each
    /// has its own, of this one.
    pub fn connections(&mut self) -> Vec<Connection> {
        struct List<'a>(&'a States);
        impl Work for List<'_> {
            type Result = Vec<Connection>;
            fn run<X: Access>(self, access: &mut X) -> Vec<Connection> {
                self.0.list(access)
            }
        }
        let states = &self.wall.states;
        states.with(self.own.as_mut(), List(states)).unwrap_or_default()
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            self.wall.states.give_up(own);
        }
    }
}

impl path::Firewall for Filter {
    fn incoming(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let Filter { wall, own, bench, counts } = self;
        (bench.read, bench.known) = (0, 0);
        if wall.rules_in.is_empty() && !wall.keeps {
            return among;
        }
        bench.read(batch, among, wall);
        let port = |place: usize| batch[place].ingress();
        let rules = &wall.rules_in;
        let judge = Judge { wall, rules, bench, counts, port, among, now_ns, search: true };
        judge.run(own.as_mut())
    }

    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let Filter { wall, own, bench, counts } = self;
        // What has a state has been let through on both sides.
        // Not all packets that came in together go out together.
        let known = among & bench.known;
        bench.known &= !among;
        let asked = among & !known;
        if asked == 0 || wall.rules_out.is_empty() {
            return among;
        }
        bench.read(batch, asked & !bench.read, wall);
        let port = |place: usize| batch[place].egress().unwrap_or_default();
        let rules = &wall.rules_out;
        let judge = Judge { wall, rules, bench, counts, port, among: asked, now_ns, search: false };
        known | judge.run(own.as_mut())
    }

    fn take_full(&mut self) -> u64 {
        std::mem::take(&mut self.bench.full)
    }
}

impl Bench {
    /// Reads packets, and hashes all before any is looked up.
    #[inline(always)]
    fn read(&mut self, batch: &[Frame], among: u64, wall: &Wall) {
        for place in places(among) {
            let packet = &mut self.packets[place];
            packet.read(&batch[place]);
            if wall.keeps {
                self.hashes[place] = hash(packet, &wall.states.seed);
            }
        }
        self.read |= among;
    }
}

/// The judging of a batch in one direction.
struct Judge<'a, P> {
    wall: &'a Wall,
    rules: &'a Rules,
    bench: &'a mut Bench,
    counts: &'a Counts,
    /// The router's port that counts for a packet.
    port: P,
    among: u64,
    now_ns: u64,
    /// States are looked up.
    search: bool,
}

impl<P: Fn(usize) -> u8> Judge<'_, P> {
    fn run(self, own: Option<&mut Own>) -> u64 {
        if self.wall.keeps {
            let states = &self.wall.states;
            states.with(own, self).unwrap_or_default()
        } else {
            self.by_rules_alone()
        }
    }

    fn by_rules_alone(self) -> u64 {
        let Judge { wall, rules, bench, counts, port, among, .. } = self;
        let mut passed = 0;
        for place in places(among) {
            let packet = &bench.packets[place];
            let decision = rules.decide(packet, port(place), &wall.tables);
            counts.rule(decision.rule, packet.bytes);
            passed |= u64::from(decision.action == Action::Pass) << place;
        }
        passed
    }
}

impl<P: Fn(usize) -> u8> Work for Judge<'_, P> {
    type Result = u64;

    fn run<X: Access>(self, access: &mut X) -> u64 {
        let Judge { wall, rules, bench, counts, port, among, now_ns, search } = self;
        let states = &wall.states;
        let mut totals = Totals::default();
        if search {
            for place in places(among) {
                let question = Question::new(&bench.packets[place], bench.hashes[place], now_ns);
                states.prefetch(access, &question);
            }
        }
        let mut passed = 0;
        // In order: a packet may have the state that one before it in the batch made.
        for place in places(among) {
            let packet = &bench.packets[place];
            let question = Question::new(packet, bench.hashes[place], now_ns);
            if search && packet.is(bit::HAS_MARKS) {
                totals.searches += 1;
                match states.look(access, &question) {
                    Answer::Known => {
                        totals.matches += 1;
                        bench.known |= 1 << place;
                        continue;
                    }
                    Answer::Expired => totals.expired += 1,
                    Answer::Unknown => {}
                }
            }
            let decision = rules.decide(packet, port(place), &wall.tables);
            counts.rule(decision.rule, packet.bytes);
            let mut passes = decision.action == Action::Pass;
            if decision.keep_state && packet.is(bit::OPENS) {
                let kept = states.make(access, &question);
                totals.created += u64::from(kept == Kept::New);
                if kept == Kept::Full {
                    totals.full += 1;
                    passes = wall.when_full == Action::Pass;
                    bench.full += u64::from(!passes);
                } else {
                    bench.known |= 1 << place;
                }
            }
            passed |= u64::from(passes) << place;
        }
        let most = if bench.was_full { SWEPT_WHEN_FULL } else { SWEPT };
        bench.was_full = totals.full > 0;
        totals.expired += states.sweep(access, now_ns, most);
        counts.add(totals);
        (passed | bench.known) & among
    }
}

/// The places in a set, in order.
#[inline(always)]
fn places(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let place = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(place)
    })
}
