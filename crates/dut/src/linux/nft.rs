//! Firewalls in the syntax of nft(8).

use fwdlab_model::settings::{Directions, Family, Firewall};
use fwdlab_packet::address::{Side, routed_prefix};
use std::fmt::Write;

/// Removes every rule. Prepended to a ruleset, both load in one atomic transaction.
pub const FLUSH: &str = "flush ruleset\n";

/// A ruleset, and the number of rules to verify when it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// Input for `nft -f`.
    pub text: String,
    /// Number of rules expected on reading back; `None` for a user's own file.
    pub rules: Option<usize>,
}

/// Ruleset of a firewall that accepts traffic in these directions.
pub fn ruleset(firewall: &Firewall, directions: Directions) -> Ruleset {
    let accepted = |state: &str| -> Vec<String> {
        let families = [Family::Inet, Family::Inet6];
        let of = |direction: &[Side; 2]| families.map(|family| accept(family, *direction, state));
        directions.ways().iter().flat_map(of).collect()
    };
    match firewall {
        Firewall::None => Ruleset { text: String::new(), rules: Some(0) },
        Firewall::Stateless => chain("drop", &accepted("")),
        Firewall::Stateful => {
            let known = ["ct state established,related accept", "ct state invalid drop"];
            let known = known.map(str::to_owned).into_iter();
            chain("drop", &known.chain(accepted("ct state new ")).collect::<Vec<String>>())
        }
        Firewall::Rules(count) => {
            // Ports that no test packet carries, so that every rule is evaluated.
            let rules: Vec<String> =
                (0..*count).map(|n| format!("udp dport {} drop", 10_000 + n)).collect();
            chain("accept", &rules)
        }
        Firewall::Ruleset { text, .. } => Ruleset { text: format!("{text}\n"), rules: None },
    }
}

fn accept(family: Family, [from, to]: [Side; 2], state: &str) -> String {
    let (ip, family) = match family {
        Family::Inet => ("ip", Family::Inet),
        Family::Inet6 => ("ip6", Family::Inet6),
    };
    format!(
        "{ip} saddr {} {ip} daddr {} meta l4proto udp {state}accept",
        routed_prefix(family, from),
        routed_prefix(family, to)
    )
}

fn chain(policy: &str, rules: &[String]) -> Ruleset {
    let mut text = String::from("table inet fwdlab {\n\tchain forward {\n");
    let _ = writeln!(text, "\t\ttype filter hook forward priority 0; policy {policy};");
    for rule in rules {
        let _ = writeln!(text, "\t\t{rule}");
    }
    text.push_str("\t}\n}\n");
    Ruleset { text, rules: Some(rules.len()) }
}

/// Summary of `nft -j list ruleset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of fwdlab's tables.
    pub tables: usize,
    /// Number of rules in them.
    pub rules: usize,
    /// Chains in other tables that forwarded packets traverse.
    pub other_hooks: usize,
}

/// Summarises the output of `nft -j list ruleset`; `own_tables` are fwdlab's tables, each
/// `FAMILY NAME`. With `None` every table counts as fwdlab's.
pub fn census(json: &str, own_tables: Option<&[String]>) -> Option<Census> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let objects = value.get("nftables")?.as_array()?;
    let text = |object: &serde_json::Value, key: &str| {
        object.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let is_ours = |object: &serde_json::Value, key: &str| {
        let name = || format!("{} {}", text(object, "family"), text(object, key));
        own_tables.is_none_or(|own_tables| own_tables.contains(&name()))
    };
    let of = |kind: &'static str| objects.iter().filter_map(move |object| object.get(kind));
    let is_traversed = |chain: &&serde_json::Value| {
        let hooks = ["prerouting", "forward", "postrouting", "ingress", "egress"];
        hooks.contains(&text(chain, "hook").as_str())
    };
    Some(Census {
        tables: of("table").filter(|table| is_ours(table, "name")).count(),
        rules: of("rule").filter(|rule| is_ours(rule, "table")).count(),
        other_hooks: of("chain")
            .filter(|chain| !is_ours(chain, "table") && is_traversed(chain))
            .count(),
    })
}

/// `FAMILY NAME` of the tables that a text creates. The default family is ip.
pub fn tables_of(text: &str) -> Vec<String> {
    let mut tables: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.trim_start_matches("add ").split([' ', '{']).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let table = match words.as_slice() {
            ["table", family @ ("ip" | "ip6" | "inet" | "arp" | "bridge" | "netdev"), name, ..] => {
                format!("{family} {name}")
            }
            ["table", name, ..] => format!("ip {name}"),
            _ => continue,
        };
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_never_match_test_packets() {
        let ruleset = ruleset(&Firewall::Rules(3), Directions::One);
        assert_eq!(ruleset.rules, Some(3));
        assert!(ruleset.text.contains("udp dport 10002 drop"));
        assert!(
            !ruleset
                .text
                .contains(&format!("dport {} ", fwdlab_packet::template::DESTINATION_PORT))
        );
        assert!(ruleset.text.contains("policy accept"));
    }

    #[test]
    fn both_directions_are_accepted_if_both_carry_traffic() {
        for firewall in [Firewall::Stateless, Firewall::Stateful] {
            let accepts = |directions| {
                let text = ruleset(&firewall, directions).text;
                ["198.18.0.0/16", "198.19.0.0/16"]
                    .map(|from| text.matches(&format!("ip saddr {from} ")).count())
            };
            assert_eq!(accepts(Directions::One), [1, 0], "{firewall}");
            assert_eq!(accepts(Directions::Both), [1, 1], "{firewall}");
        }
    }

    #[test]
    fn tables_of_finds_all_table_statements() {
        let text =
            "table inet fwdlab {\n\tchain x {\n}}\nadd table ip6 b\ntable c{\n}\ntable ip c {}";
        assert_eq!(tables_of(text), ["inet fwdlab", "ip6 b", "ip c"]);
        assert!(tables_of(FLUSH).is_empty());
    }

    #[test]
    fn foreign_chains_count_only_at_forwarding_hooks() {
        let json = r#"{"nftables":[{"metainfo":{}},
            {"table":{"family":"inet","name":"fwdlab"}},
            {"table":{"family":"inet","name":"admin"}},
            {"chain":{"family":"inet","table":"fwdlab","name":"f","hook":"forward"}},
            {"rule":{"family":"inet","table":"fwdlab"}},
            {"rule":{"family":"inet","table":"admin"}},
            {"chain":{"family":"inet","table":"admin","name":"i","hook":"input"}},
            {"chain":{"family":"ip","table":"docker","name":"f","hook":"forward"}}]}"#;
        let found = |ours: Option<&[String]>| {
            let census = census(json, ours).expect("a census");
            (census.tables, census.rules, census.other_hooks)
        };
        assert_eq!(found(Some(&["inet fwdlab".into()])), (1, 1, 1));
        assert_eq!(found(Some(&[])), (0, 0, 2));
        assert_eq!(found(None), (2, 2, 0));
        assert_eq!(census("?", None), None);
    }
}
