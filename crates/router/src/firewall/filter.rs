//! Filters batches of packets by rules and states.

mod connections;
mod credit;
mod forget;
mod handover;
mod icmp_errors;
mod irregular;
mod shared;
mod view;

use super::fragments::Fragments;
use super::packet::{Packet, bit};
use super::rule::{Action, Direction, RuleError, Ruleset};
use super::rules::{Decision, Rules, Tables};
use super::states::{
    Access, First, Flows, Found, Insertion, Key, Matches, Of, OfFamily, Queries, Query, Segment,
    StateConfig, States, Work, WorkerTables,
};
use super::stats::{Counts, RuleTally, Totals};
use crate::path::places;
use crate::path::{self, FlowUse, HeldBack};
use fwdlab_netio::frame::{BATCH, Frame};
use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
pub use view::{Removed, Selected, Selector};

/// Number of slots that a batch sweeps for expired states.
const SWEPT: usize = 1 << 10;
/// As [`SWEPT`], after a batch that found the state table full.
const SWEPT_WHEN_FULL: usize = 1 << 14;

/// No rule decided about a packet.
const NO_RULE: u32 = u32::MAX;

/// Maximum number of cached flows that a batch visits: more are due only after a pause.
const VISITED: usize = 64;

/// The part of a router's firewall that all workers share.
#[derive(Debug)]
pub struct SharedFirewall {
    rules_in: Rules,
    rules_out: Rules,
    /// Rules for packets to the router itself.
    rules_local: Rules,
    rules: usize,
    tables: Tables,
    states: Arc<States>,
    config: StateConfig,
    /// True if a rule keeps state, or a rule of an earlier ruleset did, and states are enabled.
    keeps: bool,
    when_full: Action,
    /// Shared by all workers, as the fragments of a packet may arrive at several.
    fragments: Arc<Mutex<Fragments>>,
    workers: Mutex<Vec<Arc<Counts>>>,
    /// Number of times that all states were removed.
    forgotten: AtomicU64,
}

/// One worker's part of the firewall.
#[derive(Debug)]
pub struct Filter {
    shared: Arc<SharedFirewall>,
    own: Option<WorkerTables>,
    flows: Option<Flows>,
    scratch: BatchState,
    counts: Arc<Counts>,
    /// Value of [`SharedFirewall::forgotten`] that this worker has followed.
    forgotten: u64,
}

/// Scratch state for the batch being filtered.
#[derive(Debug)]
struct BatchState {
    inet: Queries<2>,
    inet6: Queries<5>,
    /// Packets of connections that have a state.
    known: u64,
    /// Packets of connections whose state is steady.
    steady: u64,
    /// Packets dropped for other reasons than rules, since the last [`Firewall::take_held_back`].
    held_back: HeldBack,
    /// Rules that decided, by place; [`NO_RULE`] where none did.
    rules: [u32; BATCH],
    was_full: bool,
}

impl path::Firewall for Filter {
    fn rest(&mut self, now_ns: u64) -> bool {
        if self.shared.forgotten.load(Relaxed) != self.forgotten {
            self.follow();
        }
        self.visit_flows(now_ns)
    }

    #[inline(always)]
    fn ahead(&mut self, packets: &[Frame], from: usize) {
        if let Some(flows) = &mut self.flows {
            flows.ahead(packets, from);
        }
    }

    fn incoming(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        if self.shared.forgotten.load(Relaxed) != self.forgotten {
            self.follow();
        }
        let Filter { shared, own, flows, scratch, counts, .. } = self;
        (scratch.known, scratch.steady) = (0, 0);
        if shared.rules_in.is_empty() && !shared.keeps {
            return among;
        }
        let way = (Direction::In, Frame::ingress);
        let evaluation = Evaluation::new(shared, scratch, counts, way, (batch, among), now_ns);
        let passed = evaluation.run(own.as_mut(), flows.as_mut());
        if let Some(flows) = flows {
            flows.end_batch();
        }
        passed
    }

    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let Filter { shared, own, flows, scratch, counts, .. } = self;
        // Packets with a state have passed the firewall in both directions. Packets that came in
        // together need not go out together.
        let known = among & scratch.known;
        scratch.known &= !among;
        let without_state = among & !known;
        if without_state == 0 || shared.rules_out.is_empty() {
            return among;
        }
        let way = (Direction::Out, |frame: &Frame| frame.egress().unwrap_or_default());
        let packets = (batch, without_state);
        let evaluation = Evaluation::new(shared, scratch, counts, way, packets, now_ns);
        known | evaluation.run(own.as_mut(), flows.as_mut())
    }

    /// Evaluated like packets in transit, with the same treatment of fragments and unreadable
    /// headers, but without states.
    fn local(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let Filter { shared, scratch, counts, .. } = self;
        if shared.rules_local.is_empty() {
            return true;
        }
        let way = (Direction::Local, Frame::ingress);
        let packets = (std::slice::from_ref(frame), 1);
        let evaluation = Evaluation::new(shared, scratch, counts, way, packets, now_ns);
        evaluation.by_rules_alone() != 0
    }

    fn steady(&self) -> u64 {
        self.steady_packets()
    }

    fn credit(&mut self, uses: &[FlowUse], now_ns: u64) -> u64 {
        self.credit_flows(uses, now_ns)
    }

    fn rule(&self, place: usize) -> Option<u32> {
        self.scratch.rules.get(place).copied().filter(|rule| *rule != NO_RULE)
    }

    fn take_held_back(&mut self) -> HeldBack {
        std::mem::take(&mut self.scratch.held_back)
    }

    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        self.give()
    }

    fn take_over(&mut self, before: Box<dyn Any + Send>) {
        self.take(before);
    }
}

/// The filtering of a batch in one direction.
struct Evaluation<'a, P> {
    shared: &'a SharedFirewall,
    rules: &'a Rules,
    scratch: &'a mut BatchState,
    counts: &'a Counts,
    tally: RuleTally<'a>,
    batch: &'a [Frame],
    /// Returns the router's port that rules compare for a packet.
    port: P,
    among: u64,
    now_ns: u64,
    direction: Direction,
}

impl<'a, P: Fn(&Frame) -> u8> Evaluation<'a, P> {
    /// Prepares the filtering of the packets `among` a batch by the rules of a direction.
    #[inline(always)]
    fn new(
        shared: &'a SharedFirewall,
        scratch: &'a mut BatchState,
        counts: &'a Counts,
        (direction, port): (Direction, P),
        (batch, among): (&'a [Frame], u64),
        now_ns: u64,
    ) -> Evaluation<'a, P> {
        let rules = match direction {
            Direction::In => &shared.rules_in,
            Direction::Out => &shared.rules_out,
            Direction::Local => &shared.rules_local,
        };
        let tally = RuleTally::new(counts);
        Evaluation { shared, rules, scratch, counts, tally, batch, port, among, now_ns, direction }
    }

    #[inline(always)]
    fn run(self, own: Option<&mut WorkerTables>, flows: Option<&mut Flows>) -> u64 {
        let Evaluation { shared, .. } = self;
        if shared.keeps {
            let (totals, has_created) = (Totals::default(), false);
            let evaluation = WithStates { evaluation: self, flows, totals, has_created };
            shared.states.with(own, evaluation).unwrap_or_default()
        } else {
            self.by_rules_alone()
        }
    }

    #[inline(always)]
    fn by_rules_alone(mut self) -> u64 {
        let mut passed = 0;
        for place in places(self.among) {
            let frame = &self.batch[place];
            let packet = Packet::read(frame);
            let passes = if packet.is(bit::ODD) {
                self.odd_alone(place, packet)
            } else {
                self.decide(frame, &packet, place).action == Action::Pass
            };
            passed |= u64::from(passes) << place;
        }
        passed
    }

    #[inline(always)]
    fn decide(&mut self, frame: &Frame, packet: &Packet, place: usize) -> Decision {
        let port = (self.port)(frame);
        let decision = self.rules.decide(packet, frame, port, &self.shared.tables, self.now_ns);
        self.tally.count(decision.rule, packet.bytes());
        self.scratch.rules[place % BATCH] = decision.rule;
        decision
    }
}

/// Stateful filtering of a batch in one direction.
struct WithStates<'a, P> {
    evaluation: Evaluation<'a, P>,
    flows: Option<&'a mut Flows>,
    totals: Totals,
    /// A state was created.
    has_created: bool,
}

impl<P: Fn(&Frame) -> u8> Work for WithStates<'_, P> {
    type Result = u64;

    #[inline(always)]
    fn run<X: Access>(mut self, access: &mut X) -> u64 {
        // Packets with a state skip the `out` rules.
        let passed = match self.evaluation.direction {
            // The full path filters packets one by one.
            Direction::In if self.evaluation.among.is_power_of_two() => {
                self.by_state_of_one(access)
            }
            Direction::In => self.by_states(access),
            Direction::Out | Direction::Local => self.by_rules(self.evaluation.among, access),
        };
        let WithStates {
            evaluation: Evaluation { shared, scratch, counts, among, now_ns, .. },
            ..
        } = self;
        let most = if scratch.was_full { SWEPT_WHEN_FULL } else { SWEPT };
        scratch.was_full = self.totals.full > 0;
        self.totals.expired += shared.states.sweep(access, now_ns, most);
        counts.add(self.totals);
        (passed | scratch.known) & among
    }
}

impl<P: Fn(&Frame) -> u8> WithStates<'_, P> {
    /// Looks packets up in the flow cache, and in the states if they are not there.
    #[inline(always)]
    fn by_states<X: Access>(&mut self, access: &mut X) -> u64 {
        let Evaluation { shared, batch, among, now_ns, .. } = self.evaluation;
        let mut cached = 0u64;
        let mut remembers = false;
        if let Some(flows) = &mut self.flows {
            let packets = among.count_ones();
            flows.visit(&shared.states, access, now_ns, VISITED);
            remembers = flows.is_awake(packets, &shared.states);
            if remembers {
                cached = flows.take(batch, among, now_ns);
                flows.found(cached.count_ones());
                flows.tell_forgotten(&shared.states, access, now_ns);
            }
        }
        self.evaluation.scratch.known = cached;
        self.evaluation.scratch.steady = cached;
        self.totals.searches = u64::from(cached.count_ones());
        self.totals.matches = self.totals.searches;
        if cached == among { 0 } else { self.by_states_alone(among & !cached, remembers, access) }
    }

    #[inline(always)]
    fn by_states_alone<X: Access>(&mut self, among: u64, remembers: bool, access: &mut X) -> u64 {
        let Evaluation { shared, ref mut scratch, batch, now_ns, .. } = self.evaluation;
        let states = &shared.states;
        // The compiler cannot exclude that stores to the scratch change it.
        let seed = states.seed;
        scratch.inet.clear();
        let (mut without, mut inet6) = (0u64, 0u64);
        for place in places(among) {
            let frame = &batch[place];
            let packet = Packet::read(frame);
            if !packet.is(bit::TRACKABLE) {
                without |= 1 << place;
                continue;
            }
            if packet.is(bit::INET6) {
                if inet6 == 0 {
                    scratch.inet6.clear();
                }
                inet6 |= 1 << place;
                states.enqueue(access, &mut scratch.inet6, place, Query::of(frame, packet, &seed));
            } else {
                states.enqueue(access, &mut scratch.inet, place, Query::of(frame, packet, &seed));
            }
        }
        let mut matches = states.lookup_all(access, &scratch.inet, batch, now_ns);
        if inet6 != 0 {
            let more = states.lookup_all(access, &scratch.inet6, batch, now_ns);
            matches.known |= more.known;
            matches.steady |= more.steady;
            matches.stray |= more.stray;
            matches.over += more.over;
        }
        let Matches { known, steady, stray, over } = matches;
        scratch.held_back.stray |= stray;
        if let Some(flows) = self.flows.as_mut().filter(|_| remembers) {
            for place in places(steady & !inet6) {
                flows.inet.remember(scratch.inet.query(place), now_ns);
            }
            for place in places(steady & inet6) {
                flows.inet6.remember(scratch.inet6.query(place), now_ns);
            }
        }
        scratch.known |= known;
        scratch.steady |= steady;
        self.totals.searches += u64::from((among & !without).count_ones());
        self.totals.matches += u64::from(known.count_ones());
        self.totals.expired = over as u64;
        let judged = known | stray;
        if judged == among { 0 } else { self.by_rules(among & !judged, access) }
    }

    /// As [`WithStates::by_states`] for one packet, without sorting by lock.
    #[inline(never)]
    fn by_state_of_one<X: Access>(&mut self, access: &mut X) -> u64 {
        let Evaluation { shared, ref mut scratch, batch, among, now_ns, .. } = self.evaluation;
        let (states, frame) = (&shared.states, &batch[among.trailing_zeros() as usize]);
        let packet = Packet::read(frame);
        if let Some(flows) = &mut self.flows {
            flows.visit(states, access, now_ns, VISITED);
            if packet.may_change_phase() {
                flows.take(batch, among, now_ns);
                flows.tell_forgotten(states, access, now_ns);
            }
        }
        let found = if !packet.is(bit::TRACKABLE) {
            Found::Unknown
        } else if packet.is(bit::INET6) {
            states.lookup(access, &Query::<5>::of(frame, packet, &states.seed), frame, now_ns)
        } else {
            states.lookup(access, &Query::<2>::of(frame, packet, &states.seed), frame, now_ns)
        };
        let known = if matches!(found, Found::Known | Found::Steady) { among } else { 0 };
        scratch.known = known;
        scratch.steady = if found == Found::Steady { among } else { 0 };
        self.totals.searches = u64::from(packet.is(bit::TRACKABLE));
        self.totals.matches = u64::from(known != 0);
        self.totals.expired = u64::from(matches!(found, Found::Over));
        if found == Found::Stray {
            scratch.held_back.stray |= among;
            return 0;
        }
        if known == among { 0 } else { self.by_rules(among, access) }
    }

    /// Evaluates the rules for packets without a state, and creates states.
    #[inline(never)]
    fn by_rules<X: Access>(&mut self, among: u64, access: &mut X) -> u64 {
        let mut passed = 0;
        for place in places(among) {
            let packet = Packet::read(&self.evaluation.batch[place]);
            let passes = if packet.is(bit::ODD) {
                self.odd(place, packet, access)
            } else {
                self.by_rules_any(place, packet, self.has_created, access)
            };
            passed |= u64::from(passes) << place;
        }
        passed
    }

    /// Evaluates the rules for a packet; with `looks`, looks for its state first.
    #[inline(always)]
    fn by_rules_any<X: Access>(
        &mut self,
        place: usize,
        packet: Packet,
        looks: bool,
        access: &mut X,
    ) -> bool {
        if packet.is(bit::INET6) {
            self.by_rules_one::<5, X>(place, packet, looks, access)
        } else {
            self.by_rules_one::<2, X>(place, packet, looks, access)
        }
    }

    fn by_rules_one<const N: usize, X: Access>(
        &mut self,
        place: usize,
        packet: Packet,
        looks: bool,
        access: &mut X,
    ) -> bool
    where
        Key<N>: Of,
        Segment: OfFamily<N>,
    {
        let frame = &self.evaluation.batch[place];
        let Evaluation { shared, now_ns, direction, .. } = self.evaluation;
        let query = Query::<N>::of(frame, packet, &shared.states.seed);
        // An earlier packet of the batch may have created its state.
        if looks && direction == Direction::In && packet.is(bit::TRACKABLE) {
            match shared.states.lookup(access, &query, frame, now_ns) {
                Found::Known | Found::Steady => {
                    self.totals.matches += 1;
                    self.evaluation.scratch.known |= 1 << place;
                    return true;
                }
                Found::Stray => {
                    self.evaluation.scratch.held_back.stray |= 1 << place;
                    return false;
                }
                Found::Over => self.totals.expired += 1,
                Found::Unknown => {}
            }
        }
        if direction == Direction::In && self.is_related::<N, X>(frame, packet, access) {
            self.evaluation.scratch.known |= 1 << place;
            return true;
        }
        let decision = self.evaluation.decide(frame, &packet, place);
        let passes = decision.action == Action::Pass;
        if !decision.keep_state || !packet.is(bit::OPENS) {
            return passes;
        }
        let scratch = &mut self.evaluation.scratch;
        let first = First { query: &query, frame, sloppy: decision.sloppy };
        match shared.states.insert(access, first, now_ns) {
            Insertion::Full => {
                self.totals.full += 1;
                let passes = shared.when_full == Action::Pass;
                scratch.held_back.full |= u64::from(!passes) << place;
                return passes;
            }
            Insertion::Stray => {
                scratch.held_back.stray |= 1 << place;
                return false;
            }
            Insertion::New => self.totals.created += 1,
            Insertion::Instead => {
                self.totals.created += 1;
                self.totals.evicted += 1;
            }
            Insertion::Known => {}
        }
        self.has_created = true;
        scratch.known |= 1 << place;
        passes
    }
}
