//! Compares rules with the simplest possible evaluator, and checks their text.

use crate::support::walled::*;
use fwdlab_packet::Family;
use fwdlab_router::fib::{Address, Prefix, V4, V6};
use fwdlab_router::firewall::{
    Action, Direction, End, Host, Limit, Net, Rule, Ruleset, SharedFirewall, Standard, StateConfig,
    StateTable, Table, text,
};
use fwdlab_router::path::{Firewall, Frame};
use proptest::prelude::*;
use std::net::IpAddr;

#[test]
fn pf_syntax_is_accepted() {
    let written = "# the lot\n\
        table <bad> { 203.0.113.0/24, # more\n   2001:db8::/32\n 192.0.2.1 }\n\
        block in quick on 0 inet proto tcp from <bad> to port 1:1023\n\
        pass in on far proto udp from !198.18.0.0/15 port { 53 5000:5010, 7 } to ! <bad> keep state\n\
        pass out inet6 proto tcp to 2001:db8::1 keep state (sloppy)\n\
        block local proto icmp to 198.18.0.1\n\
        pass proto icmp6 all\n\n  block proto 47 from any\nblock all\ndefault block";
    let ruleset =
        text::read_with(written, &|name| if name == "far" { Some(1) } else { name.parse().ok() })
            .expect("rules");
    assert_eq!(
        ruleset.to_string(),
        "table <bad> { 203.0.113.0/24, 2001:db8::/32, 192.0.2.1 }\n\
         default block\n\
         block in on 0 inet proto tcp from <bad> to any port 1:1023\n\
         pass in on 1 proto udp from !198.18.0.0/15 port { 53, 5000:5010, 7 } to !<bad> keep state\n\
         pass out inet6 proto tcp from any to 2001:db8::1 flags S/SA keep state (sloppy)\n\
         block local proto icmp from any to 198.18.0.1\n\
         pass proto icmp6 all\n\
         block proto 47 all\n\
         block all\n"
    );
}

#[test]
fn errors_include_line_and_column() {
    let fault = |text: &str| text::read(text).expect_err("a fault").to_string();
    for (text, expected) in [
        (
            "allow all",
            "line 1, column 1: expected \"pass\", \"block\", \"table\" or \"default\", but here is \"allow\"",
        ),
        (
            "pass all\n  pass in no 1",
            "line 2, column 11: expected the end of the line, but here is \"no\"",
        ),
        ("pass all keep", "line 1, column 14: expected \"state\", but the line ends"),
        ("pass in on em0", "line 1, column 12: the router has no port \"em0\""),
        ("pass in on 256", "line 1, column 12: the router has no port \"256\""),
        (
            "pass proto ipx",
            "line 1, column 12: expected tcp, udp, icmp, icmp6 or a number up to 255, but here is \"ipx\"",
        ),
        (
            "pass from 10.0.0.1/8",
            "line 1, column 11: 10.0.0.1/8 has bits set after the first 8: 0.0.0.1; write 10.0.0.0/8",
        ),
        (
            "pass to anyone",
            "line 1, column 9: expected \"any\", a prefix or a <table>, but here is \"anyone\"",
        ),
        ("pass from <x>", "line 1, column 1: there is no table <x>"),
        (
            "table <x> { }\ntable <x> { 10.0.0.0/8 }",
            "line 2, column 1: there is a table <x> already",
        ),
        (
            "table <x> { 10.0.0.0/8",
            "line 1, column 23: expected a prefix or \"}\", but the line ends",
        ),
        ("pass to any port 80", "line 1, column 1: ports need \"proto tcp\" or \"proto udp\""),
        (
            "pass proto udp to any port 80:",
            "line 1, column 28: expected a port up to 65535, or two as 1:1023, but here is \"80:\"",
        ),
        ("pass proto udp to any port 9:8", "line 1, column 1: the ports 9:8 end before they begin"),
        ("pass inet from ::/0", "line 1, column 1: no packet is both IPv4 and IPv6"),
        ("pass proto udp all flags S/SA", "line 1, column 1: \"flags\" needs \"proto tcp\""),
        (
            "pass local all keep state",
            "line 1, column 1: \"keep state\" goes with \"in\" and \"out\": the router's own answers need none",
        ),
        ("block all keep state", "line 1, column 1: \"keep state\" goes with \"pass\""),
        ("default", "line 1, column 8: expected \"pass\" or \"block\", but the line ends"),
        ("pass all limit 0/second", "line 1, column 1: a limit admits 1 to 10000000 packets"),
        (
            "pass all limit 5/hour",
            "line 1, column 16: expected a rate as 10/second or 10/minute, but here is \"5/hour\"",
        ),
        (
            "pass all limit 5/minute burst x",
            "line 1, column 31: expected a number of packets, but here is \"x\"",
        ),
        (
            "pass all limit 5/minute per host",
            "line 1, column 29: expected \"source\", but here is \"host\"",
        ),
    ] {
        assert_eq!(fault(text), expected);
    }
}

#[test]
fn shadowed_rules_are_found_with_their_cause() {
    let shadowed = |written: &str| text::read(written).expect("rules").shadowed();
    assert_eq!(
        shadowed("block all\npass in proto udp from any to any port 7\npass out all"),
        [(1, 0), (2, 0)]
    );
    for written in [
        "pass in proto udp from any to any port 7\nblock all",
        "block in\npass out",
        "block local\npass all",
        "block all\npass local",
        "block in on 0\npass in",
        "block proto tcp all flags S/SA\npass proto tcp all",
        "block from 10.0.0.0/8\npass from 10.0.0.0/7",
        "block inet\npass all",
        "block proto udp from any to any port 5:9\npass proto udp from any to any port { 6, 10 }",
        "block from !10.0.0.0/8\npass from 2001:db8::/32",
        "block all limit 5/second\npass all",
        "table <a> { 10.0.0.0/9 }\nblock from <a>\npass from 10.0.0.0/8",
    ] {
        assert_eq!(shadowed(written), [], "{written}");
    }
    for written in [
        "block inet\npass from 10.0.0.0/8",
        "block from 10.0.0.0/8\npass from 10.1.0.0/16 keep state",
        "block from !10.0.0.0/8\npass from 11.0.0.0/8",
        "block from !10.1.0.0/16\npass from !10.0.0.0/8",
        "block proto udp from any to any port 5:9\npass proto udp from any to any port { 6, 8:9 }",
        "table <a> { 10.0.0.0/9 }\nblock from <a>\npass from 10.1.1.1",
        "table <a> { 10.0.0.0/9 }\nblock from 10.0.0.0/8\npass from <a>",
        "pass all\nblock all",
    ] {
        assert_eq!(shadowed(written), [(1, 0)], "{written}");
    }
    assert_eq!(
        text::rule_lines("# a\n\ntable <t> {\n10.0.0.0/8 }\n pass all\ndefault block\nblock in"),
        [5, 7]
    );
}

#[test]
fn standard_rulesets_match_other_devices() {
    let text = |standard| Ruleset::standard(standard).to_string();
    assert_eq!(text(Standard::None), "");
    assert_eq!(text(Standard::Stateless), text(Standard::Rules(1)));
    assert_eq!(
        text(Standard::Rules(2)),
        "block in proto udp from any to any port 10000\n\
         block in proto udp from any to any port 10001\n"
    );
    assert_eq!(text(Standard::Stateful), "pass in all keep state\n");
    let many = Ruleset::standard(Standard::Rules(60_000));
    assert_eq!(many.rules.len(), 60_000);
    assert!(many.rules.iter().all(|rule| *rule.destination.ports[0].start() >= 10_000));
    for text in ["none", "stateless", "stateful", "rules:7"] {
        assert!(text.parse::<Standard>().is_ok());
    }
    assert!("rules:".parse::<Standard>().is_err());
}

/// A large table decides like its prefixes.
#[test]
fn large_tables_match_their_prefixes() {
    let prefixes: Vec<String> =
        (0..1000).map(|n| format!("10.{}.{}.0/24", n / 100, n % 100 * 2)).collect();
    let rules = format!("table <big> {{ {} }}\nblock from <big>\n", prefixes.join("\n"));
    let wall = wall(&rules, &StateConfig::default());
    let mut filter = wall.filter();
    let mut passes = |source: &str| {
        let batch = [datagram((source, 1), ("198.19.0.9", 2)).frame()];
        filter.incoming(&batch, 1, 0) == 1
    };
    assert!(!passes("10.9.198.255"));
    assert!(passes("10.9.199.0"));
    assert!(!passes("10.0.0.1"));
    assert!(passes("11.0.0.1"));
}

/// Few addresses, so that rules and packets match often.
fn address() -> impl Strategy<Value = u8> {
    0u8..16
}

fn ip(family: Family, number: u8) -> IpAddr {
    match family {
        Family::Inet => IpAddr::from([198, 18, 0, 0x50 | number]),
        Family::Inet6 => V6(0x2001_0002 << 96 | 0x50 | u128::from(number)).to_ip(),
    }
}

fn net() -> impl Strategy<Value = Net> {
    (any::<bool>(), address(), 0u8..=4).prop_map(|(inet6, number, open)| {
        if inet6 {
            let V6(bits) = V6::from_ip(ip(Family::Inet6, number)).expect("one");
            Net::Inet6(Prefix::containing(V6(bits), 128 - open))
        } else {
            let V4(bits) = V4::from_ip(ip(Family::Inet, number)).expect("one");
            Net::Inet(Prefix::containing(V4(bits), 32 - open))
        }
    })
}

fn end() -> impl Strategy<Value = End> {
    let host = prop_oneof![
        2 => Just(Host::Any),
        2 => (any::<bool>(), net()).prop_map(|(negated, net)| Host::Net { negated, net }),
        1 => (any::<bool>(), 0..2).prop_map(|(negated, n)| Host::Table { negated, name: format!("t{n}") }),
    ];
    let range = (0u16..8, 0u16..3).prop_map(|(low, width)| low..=low + width);
    let ports = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(range, 1..4)];
    (host, ports).prop_map(|(host, ports)| End { host, ports })
}

fn rule() -> impl Strategy<Value = Rule> {
    let direction = prop_oneof![
        Just(None),
        Just(Some(Direction::In)),
        Just(Some(Direction::Out)),
        Just(Some(Direction::Local))
    ];
    let family =
        prop_oneof![4 => Just(None), 1 => Just(Some(Family::Inet)), 1 => Just(Some(Family::Inet6))];
    let protocol = prop_oneof![
        Just(None),
        Just(Some(TCP)),
        Just(Some(UDP)),
        Just(Some(1)),
        Just(Some(58)),
        Just(Some(47))
    ];
    let port = prop::option::weighted(0.2, 0u8..2);
    (any::<bool>(), direction, port, family, protocol, end(), end(), any::<[bool; 3]>()).prop_map(
        |(
            pass,
            direction,
            port,
            family,
            protocol,
            mut source,
            mut destination,
            [opening, keep, sloppy],
        )| {
            if !matches!(protocol, Some(TCP | UDP)) {
                source.ports.clear();
                destination.ports.clear();
            }
            Rule {
                action: if pass { Action::Pass } else { Action::Block },
                direction,
                port,
                family,
                protocol,
                source,
                destination,
                opening: match protocol {
                    Some(TCP) => opening,
                    None => opening && keep && pass,
                    Some(_) => false,
                },
                keep_state: keep && pass,
                sloppy: sloppy && keep && pass,
                limit: None,
            }
        },
    )
}

/// Rates, if any.
fn limit() -> impl Strategy<Value = Option<Limit>> {
    let parts = (1u32..9, prop::bool::ANY, 1u32..9, prop::bool::ANY);
    prop::option::of(parts.prop_map(|(packets, is_minute, burst, per_source)| Limit {
        packets,
        seconds: if is_minute { 60 } else { 1 },
        burst,
        per_source,
    }))
}

/// Valid rulesets.
fn rulesets() -> impl Strategy<Value = Ruleset> {
    let table = prop::collection::vec(net(), 0..6);
    let parts = (prop::array::uniform2(table), prop::collection::vec(rule(), 0..8), any::<bool>());
    parts.prop_map(|(tables, rules, pass)| {
        let tables = tables.into_iter().enumerate();
        let tables = tables.map(|(n, prefixes)| Table { name: format!("t{n}"), prefixes });
        let mut ruleset = Ruleset::new(if pass { Action::Pass } else { Action::Block });
        ruleset.tables = tables.collect();
        for rule in rules {
            ruleset.rules.push(rule);
            if SharedFirewall::new(
                &ruleset,
                &StateConfig { kind: StateTable::None, ..Default::default() },
            )
            .is_err()
            {
                ruleset.rules.pop();
            }
        }
        ruleset
    })
}

fn packets() -> impl Strategy<Value = Spec> {
    let protocol =
        prop_oneof![3 => Just(TCP), 3 => Just(UDP), 1 => Just(1), 1 => Just(58), 1 => Just(47)];
    let flags = prop_oneof![Just(SYN), Just(ACK), Just(SYN | ACK), Just(RST), Just(FIN | ACK)];
    let parts =
        (any::<bool>(), [address(), address()], [0u16..10, 0u16..10], protocol, flags, 0u8..2);
    parts.prop_map(|(inet6, [a, b], [from, to], protocol, flags, port)| {
        let family = if inet6 { Family::Inet6 } else { Family::Inet };
        let mut spec = tcp(("198.18.0.5", from), ("198.19.0.9", to), flags);
        spec.ends = [ip(family, a), ip(family, b)];
        (spec.protocol, spec.port) = (protocol, port);
        spec
    })
}

/// Evaluates a rule condition by condition.
fn matches(rule: &Rule, spec: &Spec, direction: Direction, port: u8, tables: &[Table]) -> bool {
    let contains = |net: &Net, address: IpAddr| match *net {
        Net::Inet(prefix) => V4::from_ip(address).is_some_and(|a| prefix.contains(a)),
        Net::Inet6(prefix) => V6::from_ip(address).is_some_and(|a| prefix.contains(a)),
    };
    let has_ports = matches!(spec.protocol, TCP | UDP);
    let end = |end: &End, at: usize| {
        let address = spec.ends[at];
        let host = match &end.host {
            Host::Any => true,
            Host::Net { negated, net } => {
                address.is_ipv6() == matches!(net, Net::Inet6(_))
                    && contains(net, address) != *negated
            }
            Host::Table { negated, name } => {
                let table = tables.iter().find(|table| table.name == *name).expect("a table");
                table.prefixes.iter().any(|net| contains(net, address)) != *negated
            }
        };
        let number = u16::from_be_bytes([spec.payload[2 * at], spec.payload[2 * at + 1]]);
        let ports = end.ports.is_empty()
            || has_ports && end.ports.iter().any(|range| range.contains(&number));
        host && ports
    };
    let of_family = |family| (family == Family::Inet6) == spec.ends[0].is_ipv6();
    rule.direction.is_none_or(|own| own == direction)
        && rule.port.is_none_or(|own| own == port)
        && rule.family.is_none_or(of_family)
        && rule.protocol.is_none_or(|own| own == spec.protocol)
        && (rule.protocol != Some(1) || of_family(Family::Inet))
        && (rule.protocol != Some(58) || of_family(Family::Inet6))
        && (!rule.opening || spec.protocol != TCP || spec.payload[13] & (SYN | ACK) == SYN)
        && end(&rule.source, 0)
        && end(&rule.destination, 1)
}

fn decided(ruleset: &Ruleset, spec: &Spec, direction: Direction, port: u8) -> (bool, usize) {
    for (number, rule) in ruleset.rules.iter().enumerate() {
        if matches(rule, spec, direction, port, &ruleset.tables) {
            return (rule.action == Action::Pass, number);
        }
    }
    (ruleset.policy == Action::Pass, ruleset.rules.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn rulesets_round_trip_through_text(
        mut ruleset in rulesets(),
        limits in prop::collection::vec(limit(), 8),
    ) {
        for (rule, limit) in ruleset.rules.iter_mut().zip(limits) {
            rule.limit = limit;
        }
        prop_assert_eq!(text::read(&ruleset.to_string()), Ok(ruleset));
    }

    #[test]
    fn shadowed_rules_decide_no_packet(ruleset in rulesets(), specs in prop::collection::vec(packets(), 1..64)) {
        let shadowed = ruleset.shadowed();
        for spec in &specs {
            for direction in [Direction::In, Direction::Out, Direction::Local] {
                // The evaluator lets rules without a direction decide about every packet.
                let rules: Vec<Rule> = ruleset.rules.iter().cloned().map(|rule| match rule.direction {
                    None if direction == Direction::Local => Rule { direction: Some(Direction::In), ..rule },
                    _ => rule,
                }).collect();
                let ruleset = Ruleset { rules, ..ruleset.clone() };
                let (_, rule) = decided(&ruleset, spec, direction, spec.port);
                prop_assert!(shadowed.iter().all(|&(found, _)| found != rule), "{:?}: {}", spec, rule);
            }
        }
    }

    #[test]
    fn compiled_rules_match_the_evaluator(ruleset in rulesets(), specs in prop::collection::vec(packets(), 1..64)) {
        let config = StateConfig { kind: StateTable::None, ..StateConfig::default() };
        let wall = SharedFirewall::new(&ruleset, &config).expect("sound rules");
        let mut filter = wall.filter();
        let mut batch: Vec<Frame> = specs.iter().map(Spec::frame).collect();
        let among = u64::MAX >> (64 - batch.len());
        let passed = filter.incoming(&batch, among, 0) & among;
        let mut counted = vec![0; ruleset.rules.len() + 1];
        for (place, spec) in specs.iter().enumerate() {
            let (passes, rule) = decided(&ruleset, spec, Direction::In, spec.port);
            prop_assert_eq!(passed >> place & 1 == 1, passes, "{:?} by rule {}", spec, rule);
            counted[rule] += 1;
            batch[place].send_to(1 - spec.port);
        }
        let out = filter.outgoing(&batch, passed, 0) & passed;
        for (place, spec) in specs.iter().enumerate().filter(|(place, _)| passed >> place & 1 == 1) {
            let (passes, rule) = decided(&ruleset, spec, Direction::Out, 1 - spec.port);
            prop_assert_eq!(out >> place & 1 == 1, passes, "out: {:?} by rule {}", spec, rule);
            counted[rule] += 1;
        }
        let stats = wall.stats();
        // Packets for which no rules are evaluated are not counted.
        for (rule, stats) in stats.rules.iter().enumerate() {
            prop_assert_eq!(stats.packets, counted[rule]);
        }
    }
}
