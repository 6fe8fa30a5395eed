//! A Linux DUT's firewall: fwdlab's own tables, separate from the machine's other rules.

use super::nft;
use crate::findings::Findings;
use crate::restore::SettingRestorer;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::{Family, Firewall, FirewallProgram, Settings};
use fwdlab_packet::address::{Side, routed_prefix};
use std::fmt::Write;

/// Programs of iptables by family: the main program, and those that restore and save rules.
const IPTABLES: [(Family, &str, &str, &str); 2] = [
    (Family::Inet, "iptables", "iptables-restore", "iptables-save"),
    (Family::Inet6, "ip6tables", "ip6tables-restore", "ip6tables-save"),
];

/// Script that saves the output of `$1` (iptables-save or ip6tables-save) for the filter table,
/// together with commands that remove the objects which loading and restoring will add to nftables'
/// family `$2`: each hook that does not exist yet. Packets would traverse it, although it is empty.
/// An existing copy belongs to a restore that failed; it is never overwritten.
const KEEP: &str = r#"mkdir -p /run/fwdlab-dut || exit 1
[ ! -e "/run/fwdlab-dut/$1" ] || exit 0
for chain in INPUT FORWARD OUTPUT; do
nft list chain "$2" filter "$chain" >/dev/null 2>&1 || echo "nft delete chain $2 filter $chain"
done >"/run/fwdlab-dut/$1.new"
nft list table "$2" filter >/dev/null 2>&1 || echo "nft delete table $2 filter" >>"/run/fwdlab-dut/$1.new"
"$1" -t filter >"/run/fwdlab-dut/$1.part" && mv "/run/fwdlab-dut/$1.part" "/run/fwdlab-dut/$1""#;

/// Currently loaded rules; the next load replaces them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// True if nft was used at least once.
    nft: bool,
    /// fwdlab's tables, each `FAMILY NAME`.
    tables: Vec<String>,
    /// True if fwdlab loaded the chain of iptables at least once.
    iptables: bool,
}

impl Loaded {
    /// Replaces the rules loaded before; atomically with nft.
    ///
    /// # Errors
    /// Fails if the program is missing or rejects the rules.
    pub fn load(
        &mut self,
        host: &dyn Host,
        keeper: &dyn SettingRestorer,
        settings: &Settings,
    ) -> Result<(), BenchError> {
        let firewall = &settings.dut.firewall;
        match settings.dut.remote.firewall_program {
            FirewallProgram::Iptables => self.load_iptables(host, keeper, firewall),
            FirewallProgram::Auto | FirewallProgram::Nft => self.load_nft(host, keeper, settings),
            other => Err(BenchError::Refused(format!(
                "firewall_program = \"{}\" is FreeBSD's: a Linux DUT has nft and iptables",
                other.name()
            ))),
        }
    }

    fn load_nft(
        &mut self,
        host: &dyn Host,
        keeper: &dyn SettingRestorer,
        settings: &Settings,
    ) -> Result<(), BenchError> {
        let firewall = &settings.dut.firewall;
        if *firewall == Firewall::None && !self.nft {
            return Ok(()); // no need for nft to exist
        }
        self.nft = true;
        let mut text = String::new();
        let old = std::mem::take(&mut self.tables);
        if keeper.is_namespace() {
            // A user's ruleset may create tables that none of its lines names.
            text.push_str(nft::FLUSH);
        } else {
            text.extend(old.iter().map(|table| format!("delete table {table}\n")));
        }
        // Only a user's own ruleset may touch other tables.
        let rules = nft::ruleset(firewall, settings.traffic.directions).text;
        self.tables = nft::tables_of(&rules);
        let undo = self.tables.iter().map(|t| format!("nft delete table {t} 2>/dev/null || :"));
        keeper.note(host, &undo.collect::<Vec<_>>())?;
        text.push_str(&rules);
        host.run(&["nft", "-f", "-"], &text).map(drop).map_err(|e| of_program(e, "nft", "nftables"))
    }

    fn load_iptables(
        &mut self,
        host: &dyn Host,
        keeper: &dyn SettingRestorer,
        firewall: &Firewall,
    ) -> Result<(), BenchError> {
        if *firewall == Firewall::None && !self.iptables {
            return Ok(());
        }
        for (family, _, restore, save) in IPTABLES {
            if !self.iptables && !keeper.is_namespace() {
                let ip = if family == Family::Inet { "ip" } else { "ip6" };
                host.run(&["/bin/sh", "-c", KEEP, "keep", save, ip], "")
                    .map_err(|e| of_program(e, save, "iptables"))?;
                let copy = format!("/run/fwdlab-dut/{save}");
                let undo = format!("{restore} <{copy} && {{ sh {copy}.new 2>/dev/null || :; }}");
                keeper.note(host, &[undo])?;
            }
            let text = iptables_text(firewall, family);
            host.run(&[restore, "--noflush"], &text)
                .map_err(|e| of_program(e, restore, "iptables"))?;
        }
        self.iptables = true;
        Ok(())
    }

    /// Reads the rules back, and checks whether other rules also see the traffic.
    ///
    /// # Errors
    /// Fails if the rules cannot be read.
    pub(super) fn verify(
        &self,
        host: &dyn Host,
        keeper: &dyn SettingRestorer,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let firewall = &settings.dut.firewall;
        let expected = nft::ruleset(firewall, settings.traffic.directions).rules;
        let mut verify = |name: &str, expected: Option<String>, found: String| match expected {
            Some(expected) => findings.expect(name, &expected, &found),
            None => drop(findings.facts.insert(name.into(), found)),
        };
        if self.iptables {
            for (_, program, ..) in IPTABLES {
                let shown = host.run(&[program, "-S", "FORWARD"], "")?;
                let found = shown.lines().filter(|line| line.starts_with("-A ")).count();
                // Each program has only the rules of its family.
                let of_both = matches!(firewall, Firewall::Stateless | Firewall::Stateful);
                let expected = expected.map(|rules| (rules - usize::from(of_both)).to_string());
                verify(&format!("{program} rules"), expected, found.to_string());
            }
            return Ok(());
        }
        if keeper.is_namespace() && !self.nft {
            verify("firewall", None, "none".into());
            return Ok(());
        }
        let json = match host.run(&["nft", "-j", "list", "ruleset"], "") {
            Err(BenchError::Program { why, .. }) if why.contains("not installed") => {
                verify("firewall", None, "none (nft is not installed)".into());
                return Ok(());
            }
            other => other?,
        };
        let own_tables = (!keeper.is_namespace()).then_some(self.tables.as_slice());
        let found = nft::census(&json, own_tables).unwrap_or_default();
        let text = |tables: usize, rules: usize| format!("{tables} tables, {rules} rules");
        let tables = usize::from(*firewall != Firewall::None);
        let expected = expected.map(|rules| text(tables, rules));
        verify("firewall", expected, text(found.tables, found.rules));
        if !keeper.is_namespace() {
            verify("other firewall hooks", Some("0".into()), found.other_hooks.to_string());
        }
        Ok(())
    }
}

/// Adds the package that contains the program to an error about a missing program.
pub(super) fn of_program(error: BenchError, program: &str, package: &str) -> BenchError {
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

/// The chain FORWARD alone, in the format of iptables-restore(8).
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
    use crate::journal::Journal;
    use crate::undo::Undo;
    use fwdlab_host::FakeHost;

    /// Commands run on a host for a firewall and then for none.
    fn commands(keeper: &dyn SettingRestorer) -> Vec<(String, String)> {
        let (host, mut loaded) = (FakeHost::default(), Loaded::default());
        let mut settings = Settings::default();
        for firewall in [Firewall::None, Firewall::Stateless, Firewall::None] {
            settings.dut.firewall = firewall;
            loaded.load(&host, keeper, &settings).expect("loaded");
        }
        let commands = host.commands.into_inner().expect("commands");
        commands.into_iter().map(|(argv, input)| (argv.join(" "), input)).collect()
    }

    #[test]
    fn load_flushes_all_rules_only_in_a_namespace() {
        let folder = std::env::temp_dir().join(format!("fwdlab-rules-{}", std::process::id()));
        let journal = Journal::open(&folder).expect("a journal");
        let found = commands(&journal);
        std::fs::remove_dir_all(&folder).expect("removed");
        let texts: Vec<&str> = found.iter().map(|(_, input)| input.as_str()).collect();
        assert!(texts[0].starts_with("flush ruleset\ntable inet fwdlab {"), "{texts:?}");
        assert_eq!(texts[1..], ["flush ruleset\n"]);

        let found = commands(&Undo);
        assert_eq!(found.len(), 3, "{found:?}");
        let undo = "run nft delete table inet fwdlab 2>/dev/null || :";
        assert!(found[0].0.starts_with("/bin/sh") && found[0].0.ends_with(undo), "{found:?}");
        assert!(found[1].1.starts_with("table inet fwdlab {"), "noted, then loaded: {found:?}");
        assert_eq!(found[2], ("nft -f -".into(), "delete table inet fwdlab\n".into()));
    }

    #[test]
    fn iptables_rules_match_those_of_nft() {
        let text = iptables_text(&Firewall::Stateful, Family::Inet);
        assert!(text.starts_with("*filter\n:FORWARD DROP [0:0]\n-F FORWARD\n"), "{text}");
        assert!(text.contains("-s 198.18.0.0/16 -d 198.19.0.0/16 -p udp -m conntrack"), "{text}");
        assert_eq!(text.matches("-A FORWARD").count(), 3);
        let rules = iptables_text(&Firewall::Rules(20), Family::Inet6);
        assert!(rules.contains(":FORWARD ACCEPT") && rules.contains("--dport 10019 "), "{rules}");
    }
}
