//! Rules that can never match, because an earlier rule matches all their packets.
//!
//! Sound, not complete: a rule is reported only if one earlier rule is at least as wide in every
//! condition. Rules that several earlier ones cover together are not found.

use super::rule::{Direction, End, Host, Net, Rule, Ruleset, Table};
use crate::fib::{Address, Prefix};

/// Maximum number of compared pairs of rules: a fraction of a second.
const PAIRS_MAX: usize = 20_000_000;

impl Ruleset {
    /// Returns the rules that can never match, each with the first rule that matches all its
    /// packets, by index. Of very long rulesets only the beginning is compared.
    pub fn shadowed(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut pairs = 0;
        for (at, rule) in self.rules.iter().enumerate() {
            pairs += at;
            if pairs > PAIRS_MAX {
                break;
            }
            let wider =
                self.rules[..at].iter().position(|earlier| earlier.covers(rule, &self.tables));
            found.extend(wider.map(|wider| (at, wider)));
        }
        found
    }
}

impl Rule {
    /// True if this rule matches every packet that `other` matches.
    fn covers(&self, other: &Rule, tables: &[Table]) -> bool {
        let covers_direction = match (self.direction, other.direction) {
            (None, direction) => direction != Some(Direction::Local),
            (own, direction) => own == direction,
        };
        covers_direction
            && self.limit.is_none()
            && (self.port.is_none() || self.port == other.port)
            && (self.protocol.is_none() || self.protocol == other.protocol)
            && (!self.opening || other.opening || !other.may_be_tcp())
            && (self.family.is_none() || other.only_family().is_ok_and(|own| own == self.family))
            && self.source.covers(&other.source, tables)
            && self.destination.covers(&other.destination, tables)
    }
}

impl End {
    fn covers(&self, other: &End, tables: &[Table]) -> bool {
        let covers_ports = self.ports.is_empty()
            || !other.ports.is_empty()
                && other.ports.iter().all(|range| {
                    let holds = |own: &std::ops::RangeInclusive<u16>| {
                        own.contains(range.start()) && own.contains(range.end())
                    };
                    self.ports.iter().any(holds)
                });
        covers_ports && self.host.covers(&other.host, tables)
    }
}

impl Host {
    fn covers(&self, other: &Host, tables: &[Table]) -> bool {
        let prefixes = |name: &str| tables.iter().find(|table| table.name == *name);
        match (self, other) {
            (Host::Any, _) => true,
            (_, Host::Any) => false,
            (Host::Table { negated, name }, Host::Table { negated: of_other, name: other }) => {
                negated == of_other && name == other
            }
            (Host::Net { negated: false, net }, Host::Net { negated: false, net: other }) => {
                net.contains(*other)
            }
            (Host::Net { negated: true, net }, Host::Net { negated: true, net: other }) => {
                other.contains(*net)
            }
            (Host::Net { negated: true, net }, Host::Net { negated: false, net: other }) => {
                net.is_same_family(*other) && !net.contains(*other) && !other.contains(*net)
            }
            (Host::Net { negated: false, net }, Host::Table { negated: false, name }) => {
                prefixes(name)
                    .is_some_and(|table| table.prefixes.iter().all(|one| net.contains(*one)))
            }
            (Host::Table { negated: false, name }, Host::Net { negated: false, net }) => {
                prefixes(name)
                    .is_some_and(|table| table.prefixes.iter().any(|one| one.contains(*net)))
            }
            _ => false,
        }
    }
}

impl Net {
    fn contains(self, other: Net) -> bool {
        fn holds<A: Address>(wide: Prefix<A>, narrow: Prefix<A>) -> bool {
            wide.length() <= narrow.length()
                && narrow.address().masked(wide.length()) == wide.address()
        }
        match (self, other) {
            (Net::Inet(wide), Net::Inet(narrow)) => holds(wide, narrow),
            (Net::Inet6(wide), Net::Inet6(narrow)) => holds(wide, narrow),
            _ => false,
        }
    }

    fn is_same_family(self, other: Net) -> bool {
        matches!((self, other), (Net::Inet(_), Net::Inet(_)) | (Net::Inet6(_), Net::Inet6(_)))
    }
}
