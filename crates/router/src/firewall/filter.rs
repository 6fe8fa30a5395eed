//! Rules and states at work: what a router's worker asks.

use super::packet::{Packet, bit};
use super::rule::{Action, Direction, RuleError, Ruleset};
use super::rules::{Decision, Rules, Tables};
use super::states::{
    Access, Answer, Connection, Inet, Inet6, Kept, Key, Of, Own, Question, StateConfig, States,
    Work,
};
use super::stats::{Counts, FirewallStats, RuleStats, RuleTally, Totals};
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

/// The batch at hand: of packets that can belong to a state, what is looked up.
#[derive(Debug)]
struct Bench {
    packets: [Packet; BATCH],
    hashes: [u64; BATCH],
    /// Of IPv4 packets.
    inet: [Inet; BATCH],
    /// Of IPv6 packets.
    inet6: [Inet6; BATCH],
    /// The source comes second in the key.
    turned: [bool; BATCH],
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
            inet: [Inet::EMPTY; BATCH],
            inet6: [Inet6::EMPTY; BATCH],
            turned: [false; BATCH],
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
        bench.known = 0;
        if wall.rules_in.is_empty() && !wall.keeps {
            return among;
        }
        let (rules, tally) = (&wall.rules_in, RuleTally::new(counts));
        let port = Frame::ingress;
        let judge = Judge { wall, rules, bench, counts, tally, batch, port, among, now_ns };
        judge.run(Direction::In, own.as_mut())
    }

    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let Filter { wall, own, bench, counts } = self;
        // What has a state has been let through on both sides.
        let known = among & std::mem::take(&mut bench.known);
        let among = among & !known;
        if among == 0 || wall.rules_out.is_empty() {
            return known | among;
        }
        let (rules, tally) = (&wall.rules_out, RuleTally::new(counts));
        let port = |frame: &Frame| frame.egress().unwrap_or_default();
        let judge = Judge { wall, rules, bench, counts, tally, batch, port, among, now_ns };
        known | judge.run(Direction::Out, own.as_mut())
    }

    fn take_full(&mut self) -> u64 {
        std::mem::take(&mut self.bench.full)
    }
}

impl Bench {
    /// Writes down what is looked up for a packet, and returns its hash.
    #[inline(always)]
    fn note(&mut self, place: usize, frame: &Frame, packet: Packet, states: &States) -> u64 {
        let hash;
        (self.turned[place], hash) = if packet.is(bit::INET6) {
            let (key, turned) = Inet6::of(frame.buffer(), &packet);
            self.inet6[place] = key;
            (turned, key.hash(&states.seed))
        } else {
            let (key, turned) = Inet::of(frame.buffer(), &packet);
            self.inet[place] = key;
            (turned, key.hash(&states.seed))
        };
        self.packets[place] = packet;
        self.hashes[place] = hash;
        hash
    }

    #[inline(always)]
    fn question<const N: usize>(
        &self,
        keys: &[Key<N>; BATCH],
        place: usize,
        now_ns: u64,
    ) -> Question<N> {
        let (packet, key) = (self.packets[place], keys[place]);
        let (turned, hash) = (self.turned[place], self.hashes[place]);
        Question { packet, key, turned, hash, now_ns }
    }

    /// Adds a packet to its connection.
    #[inline(always)]
    fn look<X: Access>(&self, place: usize, states: &States, access: &mut X, now: u64) -> Answer {
        if self.packets[place].is(bit::INET6) {
            states.look(access, &self.question(&self.inet6, place, now))
        } else {
            states.look(access, &self.question(&self.inet, place, now))
        }
    }

    /// Keeps state from a packet on.
    fn make<X: Access>(&self, place: usize, states: &States, access: &mut X, now: u64) -> Kept {
        if self.packets[place].is(bit::INET6) {
            states.make(access, &self.question(&self.inet6, place, now))
        } else {
            states.make(access, &self.question(&self.inet, place, now))
        }
    }
}

/// The judging of a batch in one direction.
struct Judge<'a, P> {
    wall: &'a Wall,
    rules: &'a Rules,
    bench: &'a mut Bench,
    counts: &'a Counts,
    tally: RuleTally<'a>,
    batch: &'a [Frame],
    /// The router's port that counts for a packet.
    port: P,
    among: u64,
    now_ns: u64,
}

impl<P: Fn(&Frame) -> u8> Judge<'_, P> {
    #[inline(always)]
    fn run(self, direction: Direction, own: Option<&mut Own>) -> u64 {
        let Judge { wall, .. } = self;
        if wall.keeps {
            let judge = WithStates { judge: self, direction, totals: Totals::default() };
            wall.states.with(own, judge).unwrap_or_default()
        } else {
            self.by_rules_alone()
        }
    }

    #[inline(always)]
    fn by_rules_alone(mut self) -> u64 {
        let mut passed = 0;
        for place in places(self.among) {
            let frame = &self.batch[place];
            let decision = self.decide(frame, &Packet::read(frame));
            passed |= u64::from(decision.action == Action::Pass) << place;
        }
        passed
    }

    #[inline(always)]
    fn decide(&mut self, frame: &Frame, packet: &Packet) -> Decision {
        let port = (self.port)(frame);
        let decision = self.rules.decide(packet, frame, port, &self.wall.tables);
        self.tally.count(decision.rule, packet.bytes());
        decision
    }
}

/// The same with states.
struct WithStates<'a, P> {
    judge: Judge<'a, P>,
    direction: Direction,
    totals: Totals,
}

impl<P: Fn(&Frame) -> u8> Work for WithStates<'_, P> {
    type Result = u64;

    #[inline(always)]
    fn run<X: Access>(mut self, access: &mut X) -> u64 {
        // On the way out, what has a state isn't asked about.
        let passed = match self.direction {
            Direction::In => self.by_states(access),
            Direction::Out => self.by_rules(self.judge.among, access),
        };
        let WithStates { judge: Judge { wall, bench, counts, among, now_ns, .. }, .. } = self;
        let most = if bench.was_full { SWEPT_WHEN_FULL } else { SWEPT };
        bench.was_full = self.totals.full > 0;
        self.totals.expired += wall.states.sweep(access, now_ns, most);
        counts.add(self.totals);
        (passed | bench.known) & among
    }
}

impl<P: Fn(&Frame) -> u8> WithStates<'_, P> {
    #[inline(always)]
    fn by_states<X: Access>(&mut self, access: &mut X) -> u64 {
        let Judge { wall, ref mut bench, batch, among, now_ns, .. } = self.judge;
        let states = &wall.states;
        let mut asked = 0u64;
        for place in places(among) {
            let packet = Packet::read(&batch[place]);
            if packet.is(bit::HAS_MARKS) {
                asked |= 1 << place;
                let hash = bench.note(place, &batch[place], packet, states);
                if packet.is(bit::INET6) {
                    states.prefetch::<{ Inet6::WORDS }, X>(access, hash);
                } else {
                    states.prefetch::<{ Inet::WORDS }, X>(access, hash);
                }
            }
        }
        let (mut known, mut passed) = (0u64, 0);
        // In order: a packet may have the state that one before it in the batch made.
        for place in places(among) {
            if asked >> place & 1 != 0 {
                match self.judge.bench.look(place, states, access, now_ns) {
                    Answer::Known => {
                        known |= 1 << place;
                        continue;
                    }
                    Answer::Expired => self.totals.expired += 1,
                    Answer::Unknown => {}
                }
            }
            passed |= self.by_rules(1 << place, access);
        }
        self.totals.searches = u64::from(asked.count_ones());
        self.totals.matches = u64::from(known.count_ones());
        self.judge.bench.known |= known;
        passed
    }

    /// What happens to packets without a state, which may have one afterwards.
    #[inline(never)]
    fn by_rules<X: Access>(&mut self, among: u64, access: &mut X) -> u64 {
        let mut passed = 0;
        for place in places(among) {
            let frame = &self.judge.batch[place];
            let packet = Packet::read(frame);
            let decision = self.judge.decide(frame, &packet);
            let mut passes = decision.action == Action::Pass;
            let Judge { wall, ref mut bench, now_ns, .. } = self.judge;
            if decision.keep_state && packet.is(bit::OPENS) {
                bench.note(place, frame, packet, &wall.states);
                let kept = bench.make(place, &wall.states, access, now_ns);
                self.totals.created += u64::from(kept == Kept::New);
                if kept == Kept::Full {
                    self.totals.full += 1;
                    passes = wall.when_full == Action::Pass;
                    bench.full += u64::from(!passes);
                } else {
                    bench.known |= 1 << place;
                }
            }
            passed |= u64::from(passes) << place;
        }
        passed
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
