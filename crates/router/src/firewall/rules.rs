//! Rulesets compiled for judging packets.
//!
//! A rule is a head of 16 bytes, four of which share a cache line, and a tail. The
//! head compares what is small (family, protocol, port of the router, whether TCP
//! opens) as one word under a mask, and ports as one range each; only rules
//! whose heads fit and that say more look at their tails. Tables are forwarding tables.

use super::packet::{Ends, Packet, bit};
use super::rule::{Action, Direction, End, Host, Net, Rule, RuleError, Ruleset};
use crate::fib::{Address, BSearch, Fib, NextHop, Poptrie, Prefix, Rib, V4, V6};
use fwdlab_packet::Family;
use std::ops::RangeInclusive;

/// Prefixes up to which a table is searched rather than walked.
const FEW: usize = 64;

/// The rules of one direction.
#[derive(Debug)]
pub(super) struct Rules {
    heads: Vec<Head>,
    tails: Vec<Tail>,
    policy: Action,
}

/// What was decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) keep_state: bool,
    /// The rule's number in the ruleset; one beyond its last where none matched.
    pub(super) rule: u32,
}

/// What most packets fail at.
#[derive(Clone, Copy, Debug)]
struct Head {
    mask: u32,
    value: u32,
    /// Lowest port and width of the range, of source and destination.
    low: [u16; 2],
    width: [u16; 2],
}

#[derive(Debug)]
struct Tail {
    decision: Decision,
    /// The head says it all.
    short: bool,
    hosts: [Hosts; 2],
    /// Where one range doesn't say it.
    ports: [Vec<RangeInclusive<u16>>; 2],
}

#[derive(Debug)]
enum Hosts {
    Any,
    Inet { prefix: Prefix<V4>, negated: bool },
    Inet6 { prefix: Prefix<V6>, negated: bool },
    Table { number: usize, negated: bool },
}

/// Tables by their numbers in the ruleset.
#[derive(Debug)]
pub(super) struct Tables(Vec<(Set<V4>, Set<V6>)>);

/// Addresses of prefixes: one lookup, however many there are.
#[derive(Debug)]
enum Set<A> {
    Few(BSearch<A>),
    Many(Box<Poptrie<A>>),
}

impl Rules {
    /// The rules that apply to `direction`.
    pub(super) fn of(ruleset: &Ruleset, direction: Direction) -> Result<Rules, RuleError> {
        ruleset.check()?;
        let policy = ruleset.policy;
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        for (rule, number) in ruleset.rules.iter().zip(0..) {
            if rule.applies(direction) {
                let (head, tail) = compiled(rule, number, ruleset)?;
                heads.push(head);
                tails.push(tail);
            }
        }
        let rule = ruleset.rules.len() as u32;
        let decision = Decision { action: policy, keep_state: false, rule };
        let hosts = [const { Hosts::Any }; 2];
        // What no rule matches meets a last one that always does.
        heads.push(Head { mask: 0, value: 0, low: [0; 2], width: [u16::MAX; 2] });
        tails.push(Tail { decision, short: true, hosts, ports: [const { Vec::new() }; 2] });
        Ok(Rules { heads, tails, policy })
    }

    /// True when every packet passes and no state is kept, so that nobody need ask.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.len() == 1 && self.policy == Action::Pass
    }

    /// True when a rule keeps state.
    pub(super) fn keep_state(&self) -> bool {
        self.tails.iter().any(|tail| tail.decision.keep_state)
    }

    /// The first rule that matches a packet at this port of the router.
    #[inline(always)]
    pub(super) fn decide(&self, packet: &Packet, port: u8, tables: &Tables) -> Decision {
        let (word, ports) = (packet.word | u32::from(port), packet.marks);
        for (head, tail) in self.heads.iter().zip(&self.tails) {
            if head.fits(word, ports) && (tail.short || tail.fits(packet, ports, tables)) {
                return tail.decision;
            }
        }
        unreachable!("the last rule matches")
    }
}

impl Head {
    #[inline(always)]
    fn fits(&self, word: u32, ports: [u16; 2]) -> bool {
        let within = |end: usize| ports[end].wrapping_sub(self.low[end]) <= self.width[end];
        ((word ^ self.value) & self.mask == 0) & within(0) & within(1)
    }
}

impl Tail {
    fn fits(&self, packet: &Packet, ports: [u16; 2], tables: &Tables) -> bool {
        let listed = |end: usize| {
            let list = &self.ports[end];
            list.is_empty() || list.iter().any(|range| range.contains(&ports[end]))
        };
        let hosts = match packet.ends {
            Ends::Inet(ends) => {
                [0, 1].iter().all(|&end| self.hosts[end].hold_inet(ends[end], tables))
            }
            Ends::Inet6(ends) => {
                [0, 1].iter().all(|&end| self.hosts[end].hold_inet6(ends[end], tables))
            }
        };
        hosts && listed(0) && listed(1)
    }
}

impl Hosts {
    fn hold_inet(&self, address: V4, tables: &Tables) -> bool {
        match *self {
            Hosts::Any => true,
            Hosts::Inet { prefix, negated } => prefix.contains(address) != negated,
            Hosts::Inet6 { .. } => false,
            Hosts::Table { number, negated } => tables.0[number].0.holds(address) != negated,
        }
    }

    fn hold_inet6(&self, address: V6, tables: &Tables) -> bool {
        match *self {
            Hosts::Any => true,
            Hosts::Inet { .. } => false,
            Hosts::Inet6 { prefix, negated } => prefix.contains(address) != negated,
            Hosts::Table { number, negated } => tables.0[number].1.holds(address) != negated,
        }
    }
}

fn compiled(rule: &Rule, number: u32, ruleset: &Ruleset) -> Result<(Head, Tail), RuleError> {
    let mut head = Head { mask: 0, value: 0, low: [0; 2], width: [u16::MAX; 2] };
    let mut demand = |mask: u32, value: u32| {
        head.mask |= mask;
        head.value |= value;
    };
    if let Some(port) = rule.port {
        demand(bit::PORT, port.into());
    }
    if let Some(protocol) = rule.protocol {
        demand(bit::PROTOCOL, u32::from(protocol) << 8);
    }
    if let Some(family) = rule.only_family()? {
        demand(bit::INET6, if family == Family::Inet6 { bit::INET6 } else { 0 });
    }
    if rule.opening {
        demand(bit::OPENS_TCP, bit::OPENS_TCP);
    }
    let ends = [&rule.source, &rule.destination];
    if ends.iter().any(|end| !end.ports.is_empty()) {
        demand(bit::HAS_PORTS, bit::HAS_PORTS);
    }
    for (at, end) in ends.iter().enumerate() {
        let lowest = end.ports.iter().map(|range| *range.start()).min().unwrap_or(0);
        let highest = end.ports.iter().map(|range| *range.end()).max().unwrap_or(u16::MAX);
        (head.low[at], head.width[at]) = (lowest, highest - lowest);
    }
    let list = |end: &End| if end.ports.len() > 1 { end.ports.clone() } else { Vec::new() };
    let ports = ends.map(list);
    let hosts = [hosts(ends[0], ruleset)?, hosts(ends[1], ruleset)?];
    let short =
        ports.iter().all(Vec::is_empty) && hosts.iter().all(|hosts| matches!(hosts, Hosts::Any));
    let decision = Decision { action: rule.action, keep_state: rule.keep_state, rule: number };
    Ok((head, Tail { decision, short, hosts, ports }))
}

fn hosts(end: &End, ruleset: &Ruleset) -> Result<Hosts, RuleError> {
    Ok(match &end.host {
        Host::Any => Hosts::Any,
        Host::Net { negated, net: Net::Inet(prefix) } => {
            Hosts::Inet { prefix: *prefix, negated: *negated }
        }
        Host::Net { negated, net: Net::Inet6(prefix) } => {
            Hosts::Inet6 { prefix: *prefix, negated: *negated }
        }
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
