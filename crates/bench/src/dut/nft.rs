//! Firewalls as nft(8) reads them. The whole ruleset of the namespace is ours,
//! so every text begins by flushing it: loading one is an atomic switch.

use fwdlab_model::settings::{Family, Firewall};
use fwdlab_packet::address::{Side, routed_prefix};
use std::fmt::Write;

/// A ruleset, and how to recognise it when it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// Text for `nft -f`.
    pub text: String,
    /// Number of rules that must be found; none for a user's own file.
    pub rules: Option<usize>,
}

/// The ruleset of a firewall.
pub fn ruleset(firewall: &Firewall) -> Ruleset {
    match firewall {
        Firewall::None => Ruleset { text: "flush ruleset\n".into(), rules: Some(0) },
        Firewall::Stateless => {
            chain("drop", &[accept(Family::Inet, ""), accept(Family::Inet6, "")])
        }
        Firewall::Stateful => chain(
            "drop",
            &[
                "ct state established,related accept".into(),
                "ct state invalid drop".into(),
                accept(Family::Inet, "ct state new "),
                accept(Family::Inet6, "ct state new "),
            ],
        ),
        Firewall::Rules(count) => {
            // Ports that no packet of ours carries, so that every rule is tried.
            let rules: Vec<String> =
                (0..*count).map(|n| format!("udp dport {} drop", 10_000 + n)).collect();
            chain("accept", &rules)
        }
        Firewall::Ruleset { text, .. } => {
            Ruleset { text: format!("flush ruleset\n{text}\n"), rules: None }
        }
    }
}

fn accept(family: Family, state: &str) -> String {
    let (ip, family) = match family {
        Family::Inet => ("ip", Family::Inet),
        Family::Inet6 => ("ip6", Family::Inet6),
    };
    format!(
        "{ip} saddr {} {ip} daddr {} meta l4proto udp {state}accept",
        routed_prefix(family, Side::Sender),
        routed_prefix(family, Side::Receiver)
    )
}

fn chain(policy: &str, rules: &[String]) -> Ruleset {
    let mut text = String::from("flush ruleset\ntable inet fwdlab {\n\tchain forward {\n");
    let _ = writeln!(text, "\t\ttype filter hook forward priority 0; policy {policy};");
    for rule in rules {
        let _ = writeln!(text, "\t\t{rule}");
    }
    text.push_str("\t}\n}\n");
    Ruleset { text, rules: Some(rules.len()) }
}

/// Number of tables and rules in the output of `nft -j list ruleset`.
pub fn count(json: &str) -> Option<(usize, usize)> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let objects = value.get("nftables")?.as_array()?;
    let of = |kind: &str| objects.iter().filter(|object| object.get(kind).is_some()).count();
    Some((of("table"), of("rule")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_never_match_the_benchmark() {
        let ruleset = ruleset(&Firewall::Rules(3));
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
    fn rules_are_counted() {
        let json =
            r#"{"nftables":[{"metainfo":{}},{"table":{}},{"chain":{}},{"rule":{}},{"rule":{}}]}"#;
        assert_eq!(count(json), Some((1, 2)));
        assert_eq!(count("nonsense"), None);
    }
}
