//! Rules in the syntax of the router and of nft(8).

use super::traffic::{self, address};
use crate::seen::Side;
use fwdlab_packet::Family;
use fwdlab_testdata::Random;

/// Rules in order; the first match decides.
#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// True if packets without a matching rule pass.
    default_pass: bool,
    /// All rules that pass keep state, and nothing passes by default.
    pub(crate) keep_state: bool,
    /// The only side from which rules admit packets without a state.
    pub(crate) only_from: Option<Side>,
}

#[derive(Debug)]
struct Rule {
    pass: bool,
    from: Option<Side>,
    family: Option<Family>,
    protocol: Option<u8>,
    ends: [End; 2],
    opening: bool,
}

/// One end of a packet's path: addresses and ports, if they matter.
#[derive(Debug, Default)]
struct End {
    negated: bool,
    prefixes: Vec<String>,
    /// First and last of each range.
    ports: Vec<(u16, u16)>,
}

impl Rules {
    /// Random rules for the hosts of a set.
    pub(crate) fn random(random: &mut Random, set: u8) -> Rules {
        let keep_state = set % 2 == 1;
        let default_pass = !keep_state && random.below(2) == 0;
        let only_from = (keep_state && random.below(2) == 0)
            .then(|| if random.below(2) == 0 { Side::Near } else { Side::Far });
        let count = 2 + random.below(7);
        let rules = (0..count)
            .map(|number| {
                // The last rules are wide, so that enough packets pass and enough are dropped.
                let is_wide = number + 2 >= count;
                let pass = if is_wide { !default_pass } else { random.below(2) == 0 };
                Rule::random(random, set, pass, is_wide, keep_state, only_from)
            })
            .collect();
        Rules { rules, default_pass, keep_state, only_from }
    }

    /// The rules in the router's syntax; UDP packets to `port` always pass, without a state.
    pub(crate) fn ours(&self, port: u16) -> String {
        let mut text = String::from("\n");
        if !self.default_pass {
            text += "default block\n";
        }
        text += &format!("pass proto udp from any to any port {port}\n");
        for rule in &self.rules {
            text += &rule.ours(self.keep_state);
            text.push('\n');
        }
        if self.keep_state {
            // They are `in` rules: packets that they admit without a state, such as errors, leave.
            text += "pass out all\n";
        }
        text
    }

    /// The rules in the syntax of nft(8).
    pub(crate) fn nft(&self, port: u16) -> String {
        let policy = if self.default_pass { "accept" } else { "drop" };
        let mut text = format!(
            "table inet rules {{\nchain forward {{\ntype filter hook forward priority 0; policy \
             {policy};\nudp dport {port} accept\n"
        );
        if self.keep_state {
            text += "ct state established,related accept\n";
        }
        for rule in &self.rules {
            text += &rule.nft();
            text.push('\n');
        }
        text + "}\n}\n"
    }
}

impl Rule {
    fn random(
        random: &mut Random,
        set: u8,
        pass: bool,
        is_wide: bool,
        keep_state: bool,
        only_from: Option<Side>,
    ) -> Rule {
        let side = [Side::Near, Side::Far][random.below(2) as usize];
        let from = match only_from {
            Some(side) if pass => Some(side),
            // A packet that an `in` rule admits without a state also needs an `out` rule.
            _ => (keep_state && random.below(3) == 0).then_some(side),
        };
        let protocol = match random.below(5) {
            0 if !is_wide => Some(traffic::OTHER),
            1 => Some(traffic::ICMP),
            2 | 3 => Some([traffic::UDP, traffic::TCP][random.below(2) as usize]),
            _ => None,
        };
        let mut family = [None, Some(Family::Inet), Some(Family::Inet6)][random.below(3) as usize];
        if protocol == Some(traffic::ICMP) {
            family = family.or(Some(Family::Inet));
        }
        let has_ports = matches!(protocol, Some(traffic::TCP | traffic::UDP));
        let mut ends = [End::default(), End::default()];
        if !is_wide {
            let side_of = |end: usize| match (from, end) {
                (Some(side), 0) => side,
                (Some(side), _) => side.other(),
                (None, _) => side,
            };
            for (number, end) in ends.iter_mut().enumerate() {
                if let Some(family) = family
                    && random.below(2) == 0
                {
                    *end = End::of_hosts(random, set, side_of(number), family);
                }
                if has_ports && random.below(2) == 0 {
                    end.ports = ports(random, number == 1);
                }
            }
        }
        // Packets in the middle of a connection are treated differently: see `mod.rs`.
        let opening = protocol == Some(traffic::TCP) && (keep_state || random.below(2) == 0);
        let any_with_tcp = protocol.is_none() && keep_state && pass;
        let protocol = if any_with_tcp { Some(traffic::UDP) } else { protocol };
        Rule { pass, from, family, protocol, ends, opening }
    }

    fn ours(&self, keep_state: bool) -> String {
        let mut words = vec![if self.pass { "pass" } else { "block" }.to_owned()];
        if let Some(side) = self.from {
            words.push(format!("in on {side}"));
        } else if keep_state {
            words.push("in".into());
        }
        let family = self.family.map(|family| match family {
            Family::Inet => "inet",
            Family::Inet6 => "inet6",
        });
        words.extend(family.map(str::to_owned));
        match self.protocol {
            Some(traffic::TCP) => words.push("proto tcp".into()),
            Some(traffic::UDP) => words.push("proto udp".into()),
            Some(traffic::ICMP) if self.family == Some(Family::Inet) => {
                words.push("proto icmp".into());
            }
            Some(traffic::ICMP) => words.push("proto icmp6".into()),
            Some(number) => words.push(format!("proto {number}")),
            None => {}
        }
        let [from, to] = &self.ends;
        words.push(format!("from {} to {}", from.ours(), to.ours()));
        if self.opening {
            words.push("flags S/SA".into());
        } else if self.pass && keep_state && self.protocol.is_none() {
            words.push("flags any".into());
        }
        if self.pass && keep_state {
            words.push("keep state".into());
        }
        words.join(" ")
    }

    fn nft(&self) -> String {
        let mut words = Vec::new();
        if let Some(side) = self.from {
            words.push(format!("iifname \"{}\"", ["d0", "d1"][side as usize]));
        }
        if let Some(family) = self.family {
            let family = if family == Family::Inet { "ipv4" } else { "ipv6" };
            words.push(format!("meta nfproto {family}"));
        }
        if let Some(protocol) = self.protocol {
            let name = match (protocol, self.family) {
                (traffic::ICMP, Some(Family::Inet6)) => "icmpv6".to_owned(),
                (traffic::ICMP, _) => "icmp".to_owned(),
                (number, _) => number.to_string(),
            };
            words.push(format!("meta l4proto {name}"));
        }
        for (end, [address, port]) in self.ends.iter().zip([["saddr", "sport"], ["daddr", "dport"]])
        {
            if !end.prefixes.is_empty() {
                let family = if self.family == Some(Family::Inet) { "ip" } else { "ip6" };
                let not = if end.negated { "!= " } else { "" };
                let prefixes = end.prefixes.join(", ");
                words.push(format!("{family} {address} {not}{{ {prefixes} }}"));
            }
            if !end.ports.is_empty() {
                let ports = ranges(&end.ports, "-");
                words.push(format!("th {port} {{ {ports} }}"));
            }
        }
        if self.opening {
            words.push("tcp flags & (syn | ack) == syn".into());
        }
        words.push(if self.pass { "accept" } else { "drop" }.into());
        words.join(" ")
    }
}

impl End {
    fn of_hosts(random: &mut Random, set: u8, side: Side, family: Family) -> End {
        let host = 1 + random.below(traffic::HOSTS) as u8;
        let lengths = if family == Family::Inet { [32, 30, 24] } else { [128, 126, 64] };
        let length = lengths[random.below(3) as usize];
        let prefix = traffic::prefix(&address(family, side, set, host), length);
        End { negated: random.below(4) == 0, prefixes: vec![prefix], ports: Vec::new() }
    }

    fn ours(&self) -> String {
        let not = if self.negated { "!" } else { "" };
        let hosts = match &self.prefixes[..] {
            [] => "any".to_owned(),
            [prefix, ..] => format!("{not}{prefix}"),
        };
        match &self.ports[..] {
            [] => hosts,
            [(first, last)] if first == last => format!("{hosts} port {first}"),
            ports => format!("{hosts} port {{ {} }}", ranges(ports, ":")),
        }
    }
}

fn ports(random: &mut Random, of_servers: bool) -> Vec<(u16, u16)> {
    let all: &[u16] = if of_servers { &traffic::SERVERS } else { &traffic::CLIENTS };
    let mut pick = || all[random.below(all.len() as u64) as usize];
    let (one, other) = (pick(), pick());
    match one.cmp(&other) {
        std::cmp::Ordering::Less => vec![(one, other)],
        std::cmp::Ordering::Equal => vec![(one, one)],
        // Different ports, in any order.
        std::cmp::Ordering::Greater => vec![(one, one), (other, other)],
    }
}

fn ranges(ports: &[(u16, u16)], to: &str) -> String {
    let ranges = ports.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}{to}{last}"),
    });
    ranges.collect::<Vec<_>>().join(", ")
}
