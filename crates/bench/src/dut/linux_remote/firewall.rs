//! A Linux DUT's firewall: tables of our own beside whatever else the machine has.

use super::undo::Undo;
use crate::dut::linux::Findings;
use crate::dut::nft;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::settings::{Family, Firewall, FirewallProgram, Settings};
use fwdlab_packet::address::{Side, routed_prefix};
use std::fmt::Write;

/// Commands of iptables by family: the program, and those that load and save its rules.
const IPTABLES: [(Family, &str, &str, &str); 2] = [
    (Family::Inet, "iptables", "iptables-restore", "iptables-save"),
    (Family::Inet6, "ip6tables", "ip6tables-restore", "ip6tables-save"),
];

/// Keeps what `$1` (iptables-save or ip6tables-save) says of the filter table, and beside it
/// what takes away again what loading and restoring will add to nftables' family `$2`: each
/// hook that is not there now. Packets would meet it, although it is empty.
/// A copy that is there is of what could not be restored: nothing takes its place.
const KEEP: &str = r#"mkdir -p /run/fwdlab-dut || exit 1
[ ! -e "/run/fwdlab-dut/$1" ] || exit 0
for chain in INPUT FORWARD OUTPUT; do
nft list chain "$2" filter "$chain" >/dev/null 2>&1 || echo "nft delete chain $2 filter $chain"
done >"/run/fwdlab-dut/$1.new"
nft list table "$2" filter >/dev/null 2>&1 || echo "nft delete table $2 filter" >>"/run/fwdlab-dut/$1.new"
"$1" -t filter >"/run/fwdlab-dut/$1.part" && mv "/run/fwdlab-dut/$1.part" "/run/fwdlab-dut/$1""#;

/// What is loaded, for whoever loads the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// nft's tables that are ours, each `FAMILY NAME`.
    tables: Vec<String>,
    /// iptables' chain was ours at least once.
    iptables: bool,
}

impl Loaded {
    /// Takes the place of what was loaded before; with nft in one step.
    ///
    /// # Errors
    /// When the program is missing or refuses the rules.
    pub(super) fn load(&mut self, host: &dyn Host, settings: &Settings) -> Result<(), BenchError> {
        match settings.dut.remote.firewall_program {
            FirewallProgram::Iptables => self.load_iptables(host, &settings.dut.firewall),
            FirewallProgram::Auto | FirewallProgram::Nft => {
                self.load_nft(host, &settings.dut.firewall)
            }
            other => Err(BenchError::Refused(format!(
                "firewall_program = \"{}\" is FreeBSD's: a Linux DUT has nft and iptables",
                other.name()
            ))),
        }
    }

    fn load_nft(&mut self, host: &dyn Host, firewall: &Firewall) -> Result<(), BenchError> {
        let mut text = String::new();
        for table in std::mem::take(&mut self.tables) {
            let _ = writeln!(text, "delete table {table}");
        }
        if *firewall != Firewall::None {
            let rules = nft::ruleset(firewall).text;
            // Only a user's own text may touch what others have loaded.
            let rules = rules.strip_prefix("flush ruleset\n").unwrap_or(&rules);
            self.tables = tables_of(rules);
            let undo = self.tables.iter().map(|t| format!("nft delete table {t} 2>/dev/null || :"));
            Undo.note(host, &undo.collect::<Vec<_>>())?;
            text.push_str(rules);
        }
        if text.is_empty() {
            return Ok(()); // no need for nft to exist
        }
        host.run(&["nft", "-f", "-"], &text).map(drop).map_err(|e| of_program(e, "nft", "nftables"))
    }

    fn load_iptables(&mut self, host: &dyn Host, firewall: &Firewall) -> Result<(), BenchError> {
        if *firewall == Firewall::None && !self.iptables {
            return Ok(());
        }
        for (family, _, restore, save) in IPTABLES {
            if !self.iptables {
                let ip = if family == Family::Inet { "ip" } else { "ip6" };
                host.run(&["/bin/sh", "-c", KEEP, "keep", save, ip], "")
                    .map_err(|e| of_program(e, save, "iptables"))?;
                let copy = format!("/run/fwdlab-dut/{save}");
                let undo = format!("{restore} <{copy} && {{ sh {copy}.new 2>/dev/null || :; }}");
                Undo.note(host, &[undo])?;
            }
            let text = iptables_text(firewall, family);
            host.run(&[restore, "--noflush"], &text)
                .map_err(|e| of_program(e, restore, "iptables"))?;
        }
        self.iptables = true;
        Ok(())
    }

    /// Reads back what is loaded, and whether others' rules see the traffic too.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn verify(
        &self,
        host: &dyn Host,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let firewall = &settings.dut.firewall;
        let wanted = nft::ruleset(firewall).rules;
        if self.iptables {
            for (_, program, ..) in IPTABLES {
                let shown = host.run(&[program, "-S", "FORWARD"], "")?;
                let found = shown.lines().filter(|line| line.starts_with("-A ")).count();
                // Each program has the rules of its family only.
                let of_both = matches!(firewall, Firewall::Stateless | Firewall::Stateful);
                let wanted = wanted.map(|rules| rules - usize::from(of_both));
                told(&format!("{program} rules"), wanted, found, findings);
            }
            return Ok(());
        }
        let json = match host.run(&["nft", "-j", "list", "ruleset"], "") {
            Err(BenchError::Program { why, .. }) if why.contains("not installed") => {
                findings.facts.insert("firewall".into(), "none (nft is not installed)".into());
                return Ok(());
            }
            other => other?,
        };
        let (ours, hooks) = census(&json, &self.tables).unwrap_or((0, 0));
        told("firewall rules", wanted, ours, findings);
        findings.expect("other firewall hooks", "0", &hooks.to_string());
        Ok(())
    }
}

fn told(name: &str, wanted: Option<usize>, found: usize, findings: &mut Findings) {
    match wanted {
        Some(wanted) => findings.expect(name, &wanted.to_string(), &found.to_string()),
        None => {
            findings.facts.insert(name.into(), found.to_string());
        }
    }
}

fn of_program(error: BenchError, program: &str, package: &str) -> BenchError {
    match error {
        BenchError::Program { why, host, .. } if why.contains("not installed") => {
            BenchError::environment(
                format!("{host}: the firewall needs {program}, which is not installed"),
                format!("apt-get install {package} there"),
            )
        }
        other => other,
    }
}

/// `FAMILY NAME` of the tables that a text of nft's makes. Without a family it is ip.
fn tables_of(text: &str) -> Vec<String> {
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

/// Rules in our tables, and chains of others that forwarded packets meet, in the output
/// of `nft -j list ruleset`.
fn census(json: &str, ours: &[String]) -> Option<(usize, usize)> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let objects = value.get("nftables")?.as_array()?;
    let text = |object: &serde_json::Value, key: &str| {
        object.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let is_ours = |object: &serde_json::Value| {
        ours.contains(&format!("{} {}", text(object, "family"), text(object, "table")))
    };
    let rules = objects.iter().filter_map(|object| object.get("rule"));
    let chains = objects.iter().filter_map(|object| object.get("chain"));
    let is_met = |chain: &&serde_json::Value| {
        let hooks = ["prerouting", "forward", "postrouting", "ingress", "egress"];
        hooks.contains(&text(chain, "hook").as_str())
    };
    Some((
        rules.filter(|r| is_ours(r)).count(),
        chains.filter(|c| !is_ours(c) && is_met(c)).count(),
    ))
}

/// The chain FORWARD, and nothing else, as iptables-restore(8) reads it.
fn iptables_text(firewall: &Firewall, family: Family) -> String {
    let from_to = format!(
        "-s {} -d {} -p udp",
        routed_prefix(family, Side::Sender),
        routed_prefix(family, Side::Receiver)
    );
    let (policy, rules): (&str, Vec<String>) = match firewall {
        Firewall::None => ("ACCEPT", Vec::new()),
        Firewall::Stateless => ("DROP", vec![format!("{from_to} -j ACCEPT")]),
        Firewall::Stateful => (
            "DROP",
            vec![
                "-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT".into(),
                "-m conntrack --ctstate INVALID -j DROP".into(),
                format!("{from_to} -m conntrack --ctstate NEW -j ACCEPT"),
            ],
        ),
        Firewall::Rules(count) => {
            let rule = |n| format!("-p udp --dport {} -j DROP", 10_000 + n);
            ("ACCEPT", (0..*count).map(rule).collect())
        }
        Firewall::Ruleset { text, .. } => return text.clone(),
    };
    let mut text = format!("*filter\n:FORWARD {policy} [0:0]\n-F FORWARD\n");
    for rule in rules {
        let _ = writeln!(text, "-A FORWARD {rule}");
    }
    text.push_str("COMMIT\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_in_a_text() {
        let text =
            "table inet fwdlab {\n\tchain x {\n}}\nadd table ip6 b\ntable c{\n}\ntable ip c {}";
        assert_eq!(tables_of(text), ["inet fwdlab", "ip6 b", "ip c"]);
        assert!(tables_of("flush ruleset\n").is_empty());
    }

    #[test]
    fn others_rules_count_where_forwarded_packets_meet_them() {
        let json = r#"{"nftables":[{"metainfo":{}},
            {"table":{"family":"inet","name":"fwdlab"}},
            {"chain":{"family":"inet","table":"fwdlab","name":"f","hook":"forward"}},
            {"rule":{"family":"inet","table":"fwdlab"}},
            {"rule":{"family":"inet","table":"admin"}},
            {"chain":{"family":"inet","table":"admin","name":"i","hook":"input"}},
            {"chain":{"family":"ip","table":"docker","name":"f","hook":"forward"}}]}"#;
        assert_eq!(census(json, &["inet fwdlab".into()]), Some((1, 1)));
        assert_eq!(census(json, &[]), Some((0, 2)));
        assert_eq!(census("?", &[]), None);
    }

    #[test]
    fn iptables_gets_the_same_words() {
        let text = iptables_text(&Firewall::Stateful, Family::Inet);
        assert!(text.starts_with("*filter\n:FORWARD DROP [0:0]\n-F FORWARD\n"), "{text}");
        assert!(text.contains("-s 198.18.0.0/16 -d 198.19.0.0/16 -p udp -m conntrack"), "{text}");
        assert_eq!(text.matches("-A FORWARD").count(), 3);
        let rules = iptables_text(&Firewall::Rules(20), Family::Inet6);
        assert!(rules.contains(":FORWARD ACCEPT") && rules.contains("--dport 10019 "), "{rules}");
    }
}
