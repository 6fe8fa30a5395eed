//! Rulesets compiled for fast evaluation.
//!
//! A rule is a head of 16 bytes, four of which share a cache line, and a tail. The head compares
//! the small fields (family, protocol, port of the router, whether TCP opens, and the bits that all
//! its ports share) as one word under a mask; only a rule whose head matches and has further
//! conditions uses its tail. There, prefixes of source and destination are also compared together
//! under a mask, and only then read from the frame. Tables are forwarding tables.

use super::limit::RateLimit;
use super::packet::{Packet, bit, ends, ends6};
use super::rule::{Action, Direction, End, Host, Net, Rule, RuleError, Ruleset};
use crate::fib::{Address, BSearch, Fib, NextHop, Poptrie, Prefix, Rib, V4, V6};
use fwdlab_netio::frame::Frame;
use fwdlab_packet::Family;
use std::ops::RangeInclusive;

/// Maximum number of prefixes for which a table uses binary search.
const FEW: usize = 64;

/// The rules of one direction.
#[derive(Debug)]
pub(super) struct Rules {
    heads: Vec<Head>,
    tails: Vec<Tail>,
    policy: Action,
}

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) keep_state: bool,
    pub(super) sloppy: bool,
    /// The rule's number in the ruleset; one beyond its last if none matched.
    pub(super) rule: u32,
}

/// The part of a rule that rejects most packets: [`Packet::word`], and above it the marks.
#[derive(Clone, Copy, Debug)]
struct Head {
    mask: u64,
    value: u64,
}

#[derive(Debug)]
struct Tail {
    decision: Decision,
    nets: Nets,
    more: Option<Box<More>>,
}

/// Prefixes of both ends, of the family that the head requires, in packet byte order.
#[derive(Debug)]
enum Nets {
    Any,
    Inet { mask: u64, value: u64 },
    Inet6 { mask: [u64; 4], value: [u64; 4] },
}

/// Conditions that can't be compared under masks.
#[derive(Debug)]
struct More {
    hosts: [Hosts; 2],
    /// Empty if the head covers the ports.
    ports: [Vec<RangeInclusive<u16>>; 2],
    /// The last condition: it takes credit.
    limit: Option<RateLimit>,
}

#[derive(Debug)]
enum Hosts {
    Any,
    Not(Net),
    Table { number: usize, negated: bool },
}

/// Tables by their numbers in the ruleset.
#[derive(Debug)]
pub(super) struct Tables(Vec<(Set<V4>, Set<V6>)>);

/// Addresses of prefixes: one lookup, regardless of their number.
#[derive(Debug)]
enum Set<A> {
    Few(BSearch<A>),
    Many(Box<Poptrie<A>>),
}

impl Rules {
    /// The rules that apply to `direction`.
    pub(super) fn of(ruleset: &Ruleset, direction: Direction) -> Result<Rules, RuleError> {
        ruleset.check()?;
        // The router's own answers are dropped only by an explicit rule.
        let local = direction == Direction::Local;
        let policy = if local { Action::Pass } else { ruleset.policy };
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for (rule, number) in ruleset.rules.iter().zip(0..) {
            if rule.applies(direction) {
                let (head, tail) = compiled(rule, number, ruleset)?;
                heads.push(head);
                tails.push(tail);
            }
        }
        let rule = ruleset.rules.len() as u32;
        let decision = Decision { action: policy, keep_state: false, sloppy: false, rule };
        // A final rule matches every packet.
        heads.push(Head { mask: 0, value: 0 });
        tails.push(Tail { decision, nets: Nets::Any, more: None });
        Ok(Rules { heads, tails, policy })
    }

    /// True if every packet passes and no state is kept, so filtering can be skipped.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.len() == 1 && self.policy == Action::Pass
    }

    /// True if a rule requires fields that only the first fragment of a packet has.
    pub(super) fn look_inside(&self) -> bool {
        let inside = u64::from(bit::HAS_PORTS | bit::WITHIN_TCP);
        self.keep_state() || self.heads.iter().any(|head| head.mask & inside != 0)
    }

    /// True if a rule keeps state.
    pub(super) fn keep_state(&self) -> bool {
        self.tails.iter().any(|tail| tail.decision.keep_state)
    }

    /// The first rule that matches a packet at this port of the router.
    #[inline(always)]
    pub(super) fn decide(
        &self,
        packet: &Packet,
        frame: &Frame,
        port: u8,
        tables: &Tables,
        now_ns: u64,
    ) -> Decision {
        let word = packet.word | u64::from(port);
        for (head, tail) in self.heads.iter().zip(&self.tails) {
            if (word ^ head.value) & head.mask == 0 && tail.fits(packet, frame, tables, now_ns) {
                return tail.decision;
            }
        }
        unreachable!("the last rule matches")
    }
}

impl Head {
    /// Adds a condition.
    fn demand(&mut self, mask: u32, value: u32) {
        self.mask |= u64::from(mask);
        self.value |= u64::from(value);
    }

    /// Requires the bits that all ports from `low` to `high` share, at the source's or the
    /// destination's position.
    fn demand_ports(&mut self, end: usize, low: u16, high: u16) {
        let mask = shared(low, high);
        let place =
            |port: u16| u64::from(u16::from_le_bytes(port.to_be_bytes())) << (32 + 16 * end);
        self.mask |= place(mask);
        self.value |= place(low & mask);
    }
}

/// The leading bits that all numbers from `low` to `high` share.
fn shared(low: u16, high: u16) -> u16 {
    !u16::MAX.checked_shr((low ^ high).leading_zeros()).unwrap_or(0)
}

impl Tail {
    #[inline(always)]
    fn fits(&self, packet: &Packet, frame: &Frame, tables: &Tables, now_ns: u64) -> bool {
        let nets = match &self.nets {
            Nets::Any => true,
            Nets::Inet { mask, value } => (ends(frame.buffer()) ^ value) & mask == 0,
            Nets::Inet6 { mask, value } => {
                let ends = ends6(frame.buffer());
                (0..4).fold(0, |sum, at| sum | (ends[at] ^ value[at]) & mask[at]) == 0
            }
        };
        nets && self.more.as_ref().is_none_or(|more| more.fits(packet, frame, tables, now_ns))
    }
}

impl More {
    fn fits(&self, packet: &Packet, frame: &Frame, tables: &Tables, now_ns: u64) -> bool {
        let listed = |end: usize| {
            let list = &self.ports[end];
            let port = ((packet.marks() >> (16 * end)) as u16).swap_bytes();
            list.is_empty() || list.iter().any(|range| range.contains(&port))
        };
        let hosts = if packet.is(bit::INET6) {
            let [a, b, c, d] = ends6(frame.buffer()).map(|word| u128::from(word.swap_bytes()));
            let ends = [V6(a << 64 | b), V6(c << 64 | d)];
            [0, 1].iter().all(|&end| self.hosts[end].hold_inet6(ends[end], tables))
        } else {
            let ends = ends(frame.buffer()).swap_bytes();
            let ends = [V4((ends >> 32) as u32), V4(ends as u32)];
            [0, 1].iter().all(|&end| self.hosts[end].hold_inet(ends[end], tables))
        };
        let is_within = || self.limit.as_ref().is_none_or(|it| it.take(packet, frame, now_ns));
        hosts && listed(0) && listed(1) && is_within()
    }
}

impl Hosts {
    fn hold_inet(&self, address: V4, tables: &Tables) -> bool {
        match *self {
            Hosts::Any => true,
            Hosts::Not(Net::Inet(prefix)) => !prefix.contains(address),
            Hosts::Not(Net::Inet6(_)) => false,
            Hosts::Table { number, negated } => tables.0[number].0.holds(address) != negated,
        }
    }

    fn hold_inet6(&self, address: V6, tables: &Tables) -> bool {
        match *self {
            Hosts::Any => true,
            Hosts::Not(Net::Inet(_)) => false,
            Hosts::Not(Net::Inet6(prefix)) => !prefix.contains(address),
            Hosts::Table { number, negated } => tables.0[number].1.holds(address) != negated,
        }
    }
}

fn compiled(rule: &Rule, number: u32, ruleset: &Ruleset) -> Result<(Head, Tail), RuleError> {
    let mut head = Head { mask: 0, value: 0 };
    if let Some(port) = rule.port {
        head.demand(bit::PORT, port.into());
    }
    if let Some(protocol) = rule.protocol {
        head.demand(bit::PROTOCOL, u32::from(protocol) << 8);
    }
    if let Some(family) = rule.only_family()? {
        head.demand(bit::INET6, if family == Family::Inet6 { bit::INET6 } else { 0 });
    }
    if rule.opening {
        head.demand(bit::WITHIN_TCP, 0);
    }
    let ends = [&rule.source, &rule.destination];
    let mut ports = [const { Vec::new() }; 2];
    for (at, end) in ends.iter().enumerate() {
        let lowest = end.ports.iter().map(|range| *range.start()).min();
        let highest = end.ports.iter().map(|range| *range.end()).max();
        if let (Some(low), Some(high)) = (lowest, highest) {
            head.demand(bit::HAS_PORTS, bit::HAS_PORTS);
            head.demand_ports(at, low, high);
            let all = end.ports.len() == 1 && high - low == !shared(low, high);
            ports[at] = if all { Vec::new() } else { end.ports.clone() };
        }
    }
    let hosts = [hosts(ends[0], ruleset)?, hosts(ends[1], ruleset)?];
    let limit = rule.limit.as_ref().map(RateLimit::new);
    let is_complete = ports.iter().all(Vec::is_empty)
        && hosts.iter().all(|h| matches!(h, Hosts::Any))
        && limit.is_none();
    let more = (!is_complete).then(|| Box::new(More { hosts, ports, limit }));
    let Rule { action, keep_state, sloppy, .. } = *rule;
    let decision = Decision { action, keep_state, sloppy, rule: number };
    Ok((head, Tail { decision, nets: Nets::of(ends), more }))
}

impl Nets {
    /// The prefixes of both ends, for the ends that have one.
    fn of(ends: [&End; 2]) -> Nets {
        let (mut inet, mut inet6) = ([(0, 0); 2], [(0, 0); 2]);
        let (mut any_inet, mut any_inet6) = (false, false);
        for (at, end) in ends.iter().enumerate() {
            match end.host {
                Host::Net { negated: false, net: Net::Inet(prefix) } => {
                    inet[at] = (mask(prefix) as u32, prefix.address().0);
                    any_inet = true;
                }
                Host::Net { negated: false, net: Net::Inet6(prefix) } => {
                    inet6[at] = (mask(prefix), prefix.address().0);
                    any_inet6 = true;
                }
                _ => {}
            }
        }
        let word = |[a, b]: [u32; 2]| u64::from(a.swap_bytes()) | u64::from(b.swap_bytes()) << 32;
        let words =
            |[a, b]: [u128; 2]| [a >> 64, a, b >> 64, b].map(|half| (half as u64).swap_bytes());
        match (any_inet, any_inet6) {
            (true, _) => {
                Nets::Inet { mask: word(inet.map(|m| m.0)), value: word(inet.map(|m| m.1)) }
            }
            (_, true) => {
                Nets::Inet6 { mask: words(inet6.map(|m| m.0)), value: words(inet6.map(|m| m.1)) }
            }
            _ => Nets::Any,
        }
    }
}

/// Mask of a prefix, right-aligned.
fn mask<A: Address>(prefix: Prefix<A>) -> u128 {
    let open = u32::from(A::BITS - prefix.length());
    let all = u128::MAX >> (128 - u32::from(A::BITS));
    all & u128::MAX.checked_shl(open).unwrap_or(0)
}

/// Conditions that remain after the prefix comparison.
fn hosts(end: &End, ruleset: &Ruleset) -> Result<Hosts, RuleError> {
    Ok(match &end.host {
        Host::Any | Host::Net { negated: false, .. } => Hosts::Any,
        Host::Net { negated: true, net } => Hosts::Not(*net),
        Host::Table { negated, name } => {
            let number = ruleset.tables.iter().position(|table| table.name == *name);
            let number = number.ok_or_else(|| RuleError::Table(name.clone()))?;
            Hosts::Table { number, negated: *negated }
        }
    })
}

impl Tables {
    /// The tables of a ruleset.
    pub(super) fn of(ruleset: &Ruleset) -> Tables {
        let set = |table: &super::rule::Table| {
            let (mut inet, mut inet6) = (Vec::new(), Vec::new());
            for net in &table.prefixes {
                match *net {
                    Net::Inet(prefix) => inet.push(prefix),
                    Net::Inet6(prefix) => inet6.push(prefix),
                }
            }
            (Set::of(&inet), Set::of(&inet6))
        };
        Tables(ruleset.tables.iter().map(set).collect())
    }
}

impl<A: Address> Set<A> {
    fn of(prefixes: &[Prefix<A>]) -> Set<A> {
        let mut rib = Rib::new();
        let routes = prefixes.iter().filter_map(|&prefix| Some((prefix, NextHop::new(0)?)));
        rib.apply(&routes.collect());
        if rib.len() <= FEW {
            Set::Few(BSearch::of(rib))
        } else {
            Set::Many(Box::new(Poptrie::of(rib)))
        }
    }

    fn holds(&self, address: A) -> bool {
        match self {
            Set::Few(few) => few.lookup(address).is_some(),
            Set::Many(many) => many.lookup(address).is_some(),
        }
    }
}

const _: () = assert!(size_of::<Head>() == 16);
