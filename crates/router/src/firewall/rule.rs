//! Rules, tables and rulesets, before compilation.

use crate::fib::{Address, Prefix, V4, V6};
use fwdlab_packet::Family;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::packet::protocol::{ICMP, ICMP6, TCP, UDP};

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet passes.
    Pass,
    /// The packet is dropped silently.
    Block,
}

/// Direction in which packets are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Incoming, before the route lookup.
    In,
    /// Outgoing, after the route lookup.
    Out,
    /// To the router itself.
    Local,
}

/// A prefix of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    /// IPv4
    Inet(Prefix<V4>),
    /// IPv6
    Inet6(Prefix<V6>),
}

/// Addresses that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// All addresses.
    Any,
    /// Addresses of a prefix, or if negated the other addresses of its family.
    Net {
        /// Match all other addresses.
        negated: bool,
        /// The prefix.
        net: Net,
    },
    /// Addresses of a table, or if negated all others.
    Table {
        /// Match all other addresses.
        negated: bool,
        /// The table's name.
        name: String,
    },
}

/// Source or destination of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Addresses.
    pub host: Host,
    /// Ports, of which one must match; empty for any port or no port.
    pub ports: Vec<RangeInclusive<u16>>,
}

/// Conditions on a packet, and the action if all of them match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The action.
    pub action: Action,
    /// Direction; `None` for in and out.
    pub direction: Option<Direction>,
    /// The router's port at which the packet came in, or goes out.
    pub port: Option<u8>,
    /// Family.
    pub family: Option<Family>,
    /// Protocol number.
    pub protocol: Option<u8>,
    /// Source.
    pub source: End,
    /// Destination.
    pub destination: End,
    /// Of TCP, only the packet that opens a connection: SYN without ACK (`flags S/SA`). The default
    /// of rules that keep state, as in pf.conf(5); `flags any` includes all packets.
    pub opening: bool,
    /// Keep state: later packets of the connection pass in both directions.
    pub keep_state: bool,
    /// Of TCP, without checking sequence numbers (`keep state (sloppy)`).
    pub sloppy: bool,
    /// Rate up to which the rule matches.
    pub limit: Option<Limit>,
}

/// Rate up to which a rule matches; further packets are left to the rules after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets in each period.
    pub packets: u32,
    /// Seconds of the period: 1 or 60.
    pub seconds: u32,
    /// Maximum number of packets in a burst after silence.
    pub burst: u32,
    /// A rate for each source, instead of one for all packets.
    pub per_source: bool,
}

impl Limit {
    /// Units of the period with their seconds.
    pub(super) const PERIODS: [(&str, u32); 2] = [("second", 1), ("minute", 60)];

    /// Maximum number of packets in a period and in a burst: the interval between two packets has
    /// whole nanoseconds.
    const MOST: u32 = 10_000_000;

    /// Returns the period in nanoseconds.
    pub(super) fn period_ns(&self) -> u64 {
        u64::from(self.seconds) * 1_000_000_000
    }
}

/// Named set of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Its prefixes.
    pub prefixes: Vec<Net>,
}

/// Rules in order: **the first match decides**, as with ipfw(8) or with pf rules that are all
/// `quick`. Evaluation ends at the match, and a reader can stop there too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// Tables that rules refer to.
    pub tables: Vec<Table>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Default action for packets that match no rule, in either direction.
    pub policy: Action,
}

/// Rulesets that experiments compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// No rule: all packets pass.
    None,
    /// One rule that never matches, then all packets pass.
    Stateless,
    /// This number of rules that never match, then all packets pass.
    Rules(u32),
    /// All packets pass and states are kept.
    Stateful,
}

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// No such table.
    #[error("there is no table <{0}>")]
    Table(String),
    /// Two tables with the same name.
    #[error("there is a table <{0}> already")]
    Twice(String),
    /// Addresses, protocol and `inet` or `inet6` contradict each other.
    #[error("no packet is both IPv4 and IPv6")]
    Families,
    /// Ports with a protocol that has none.
    #[error("ports need \"proto tcp\" or \"proto udp\"")]
    Ports,
    /// TCP flags with another protocol.
    #[error("\"flags\" needs \"proto tcp\"")]
    Flags,
    /// State for a blocked packet.
    #[error("\"keep state\" goes with \"pass\"")]
    Keep,
    /// State for the router's own answers.
    #[error("\"keep state\" goes with \"in\" and \"out\": the router's own answers need none")]
    KeepLocal,
    /// A rate or burst of 0, or a rate that no limit can distinguish.
    #[error("a limit admits 1 to {} packets", Limit::MOST)]
    Limit,
    /// A range of ports that ends before it begins.
    #[error("the ports {0}:{1} end before they begin")]
    Range(u16, u16),
}

impl Ruleset {
    /// A ruleset without tables and rules.
    pub fn new(policy: Action) -> Ruleset {
        Ruleset { tables: Vec::new(), rules: Vec::new(), policy }
    }

    /// One of the rulesets that experiments compare. The rules that never match require UDP ports
    /// from 10000 on, which no packet of an experiment has; nftables gets the same rules.
    pub fn standard(standard: Standard) -> Ruleset {
        let mut ruleset = Ruleset::new(Action::Pass);
        let count = match standard {
            Standard::None => return ruleset,
            Standard::Stateless => 1,
            Standard::Rules(count) => count,
            Standard::Stateful => {
                let (opening, keep_state) = (true, true);
                let direction = Some(Direction::In);
                let rule = Rule { opening, keep_state, direction, ..Rule::new(Action::Pass) };
                ruleset.rules.push(rule);
                return ruleset;
            }
        };
        let first = 10_000;
        for number in 0..count {
            let port = (first + number % (65_536 - first)) as u16;
            let mut rule = Rule { direction: Some(Direction::In), ..Rule::new(Action::Block) };
            rule.protocol = Some(UDP);
            rule.destination.ports.push(port..=port);
            ruleset.rules.push(rule);
        }
        ruleset
    }

    /// Rejects contradictory rulesets.
    pub(super) fn check(&self) -> Result<(), RuleError> {
        for (at, table) in self.tables.iter().enumerate() {
            if self.tables[..at].iter().any(|other| other.name == table.name) {
                return Err(RuleError::Twice(table.name.clone()));
            }
        }
        self.rules.iter().try_for_each(|rule| rule.check(&self.tables))
    }
}

impl Rule {
    /// A rule that matches every packet.
    pub fn new(action: Action) -> Rule {
        Rule {
            action,
            direction: None,
            port: None,
            family: None,
            protocol: None,
            source: End::any(),
            destination: End::any(),
            opening: false,
            keep_state: false,
            sloppy: false,
            limit: None,
        }
    }

    /// True if the rule applies in `direction`.
    pub fn applies(&self, direction: Direction) -> bool {
        match self.direction {
            None => direction != Direction::Local,
            Some(own) => own == direction,
        }
    }

    /// True unless the protocol is another one than TCP.
    pub(super) fn may_be_tcp(&self) -> bool {
        self.protocol.is_none_or(|protocol| protocol == TCP)
    }

    /// The family that the conditions imply, if they agree.
    pub(super) fn only_family(&self) -> Result<Option<Family>, RuleError> {
        let of_protocol = match self.protocol {
            Some(ICMP) => Some(Family::Inet),
            Some(ICMP6) => Some(Family::Inet6),
            _ => None,
        };
        let families =
            [self.family, of_protocol, self.source.host.family(), self.destination.host.family()];
        let mut families = families.into_iter().flatten();
        let first = families.next();
        if families.all(|family| Some(family) == first) {
            Ok(first)
        } else {
            Err(RuleError::Families)
        }
    }

    pub(super) fn check(&self, tables: &[Table]) -> Result<(), RuleError> {
        self.only_family()?;
        for end in [&self.source, &self.destination] {
            if let Host::Table { name, .. } = &end.host
                && !tables.iter().any(|table| table.name == *name)
            {
                return Err(RuleError::Table(name.clone()));
            }
            if !end.ports.is_empty() && !matches!(self.protocol, Some(TCP | UDP)) {
                return Err(RuleError::Ports);
            }
            if let Some(range) = end.ports.iter().find(|range| range.is_empty()) {
                return Err(RuleError::Range(*range.start(), *range.end()));
            }
        }
        if self.opening && !(self.protocol == Some(TCP) || self.keep_state && self.may_be_tcp()) {
            return Err(RuleError::Flags);
        }
        let is_valid = |packets: u32| (1..=Limit::MOST).contains(&packets);
        if self.limit.is_some_and(|limit| !is_valid(limit.packets) || !is_valid(limit.burst)) {
            return Err(RuleError::Limit);
        }
        if self.keep_state && self.action == Action::Block {
            return Err(RuleError::Keep);
        }
        if self.keep_state && self.direction == Some(Direction::Local) {
            return Err(RuleError::KeepLocal);
        }
        Ok(())
    }
}

impl End {
    /// Matches any address and port.
    pub fn any() -> End {
        End { host: Host::Any, ports: Vec::new() }
    }

    fn is_any(&self) -> bool {
        self.host == Host::Any && self.ports.is_empty()
    }
}

impl Host {
    fn family(&self) -> Option<Family> {
        match self {
            Host::Net { net: Net::Inet(_), .. } => Some(Family::Inet),
            Host::Net { net: Net::Inet6(_), .. } => Some(Family::Inet6),
            _ => None,
        }
    }
}

impl FromStr for Standard {
    type Err = String;

    /// Parses `none`, `stateless`, `stateful`, or `rules:` and a number.
    fn from_str(text: &str) -> Result<Standard, String> {
        let number = text.strip_prefix("rules:").and_then(|number| number.parse().ok());
        match (text, number) {
            ("none", _) => Ok(Standard::None),
            ("stateless", _) => Ok(Standard::Stateless),
            ("stateful", _) => Ok(Standard::Stateful),
            (_, Some(number)) => Ok(Standard::Rules(number)),
            _ => Err(format!("{text:?} is not one of none, stateless, stateful, rules:N")),
        }
    }
}

impl fmt::Display for Ruleset {
    /// Writes the rule in the syntax of [`super::text::read`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.tables {
            writeln!(f, "{table}")?;
        }
        if self.policy == Action::Block {
            writeln!(f, "default block")?;
        }
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes: Vec<String> = self.prefixes.iter().map(Net::to_string).collect();
        write!(f, "table <{}> {{ {} }}", self.name, prefixes.join(", "))
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn short<A: Address>(prefix: Prefix<A>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            if prefix.length() == A::BITS {
                write!(f, "{}", prefix.address())
            } else {
                write!(f, "{prefix}")
            }
        }
        match *self {
            Net::Inet(prefix) => short(prefix, f),
            Net::Inet6(prefix) => short(prefix, f),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.action == Action::Pass { "pass" } else { "block" })?;
        match self.direction {
            None => {}
            Some(Direction::In) => f.write_str(" in")?,
            Some(Direction::Out) => f.write_str(" out")?,
            Some(Direction::Local) => f.write_str(" local")?,
        }
        if let Some(port) = self.port {
            write!(f, " on {port}")?;
        }
        match self.family {
            None => {}
            Some(Family::Inet) => f.write_str(" inet")?,
            Some(Family::Inet6) => f.write_str(" inet6")?,
        }
        match self.protocol {
            None => {}
            Some(TCP) => f.write_str(" proto tcp")?,
            Some(UDP) => f.write_str(" proto udp")?,
            Some(ICMP) => f.write_str(" proto icmp")?,
            Some(ICMP6) => f.write_str(" proto icmp6")?,
            Some(number) => write!(f, " proto {number}")?,
        }
        if self.source.is_any() && self.destination.is_any() {
            f.write_str(" all")?;
        } else {
            write!(f, " from {} to {}", self.source, self.destination)?;
        }
        if self.opening && self.protocol == Some(TCP) {
            f.write_str(" flags S/SA")?;
        } else if self.keep_state && self.may_be_tcp() && !self.opening {
            f.write_str(" flags any")?;
        }
        if self.keep_state {
            f.write_str(" keep state")?;
        }
        if self.sloppy {
            f.write_str(" (sloppy)")?;
        }
        match self.limit {
            Some(limit) => write!(f, " {limit}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = Limit::PERIODS.iter().find(|(_, seconds)| *seconds == self.seconds);
        write!(f, "limit {}/{}", self.packets, period.map_or("?", |(name, _)| name))?;
        if self.burst != self.packets {
            write!(f, " burst {}", self.burst)?;
        }
        f.write_str(if self.per_source { " per source" } else { "" })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |negated: bool| if negated { "!" } else { "" };
        match &self.host {
            Host::Any => f.write_str("any")?,
            Host::Net { negated, net } => write!(f, "{}{net}", not(*negated))?,
            Host::Table { negated, name } => write!(f, "{}<{name}>", not(*negated))?,
        }
        let range = |range: &RangeInclusive<u16>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}:{}", range.start(), range.end()),
        };
        match &self.ports[..] {
            [] => Ok(()),
            [one] => write!(f, " port {}", range(one)),
            many => {
                let many: Vec<String> = many.iter().map(range).collect();
                write!(f, " port {{ {} }}", many.join(", "))
            }
        }
    }
}
