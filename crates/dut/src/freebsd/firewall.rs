//! Firewalls in the syntax of pf.conf(5), ipfw(8) and ipf(5), and how to load them without a
//! reboot.
//!
//! All of them pass all packets: the experiment measures the cost of filtering. Rules that must not
//! match name a UDP port that no test packet carries.

use super::backup::Backup;
use super::modules;
use crate::findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::{Firewall, FirewallProgram, Settings};
use fwdlab_model::warning::Warning;
use std::fmt::Write;

/// Default limit of states in pf (pf.conf(5), `limit states`).
const PF_STATES: u64 = 100_000;
/// Default limit of dynamic rules in ipfw in the oldest supported release
/// (`net.inet.ip.fw.dyn_max`; 16384 since FreeBSD 12).
const IPFW_STATES: u64 = 4096;
/// Default limit of states in ipf (ipf(8), `state_max`).
const IPF_STATES: u64 = 4013;
/// Tunable for the action of ipfw's last rule. Read when the module is loaded.
pub const DEFAULT_TO_ACCEPT: &str = "net.inet.ip.fw.default_to_accept";
/// First port of the rules that do not match, and the number of ports they cycle through.
const PORTS: (u32, u32) = (10_000, 50_000);

/// A firewall program of FreeBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// pf(4).
    Pf,
    /// ipfw(8).
    Ipfw,
    /// ipfilter(4).
    Ipf,
}

impl Program {
    /// All programs.
    pub const ALL: [Program; 3] = [Program::Pf, Program::Ipfw, Program::Ipf];

    /// Program that the settings require; `None` without a firewall.
    ///
    /// # Errors
    /// Fails if the settings name a program of Linux.
    pub fn of(settings: &Settings) -> Result<Option<Program>, BenchError> {
        if settings.dut.firewall == Firewall::None {
            return Ok(None);
        }
        match settings.dut.remote.firewall_program {
            FirewallProgram::Auto | FirewallProgram::Pf => Ok(Some(Program::Pf)),
            FirewallProgram::Ipfw => Ok(Some(Program::Ipfw)),
            FirewallProgram::Ipf => Ok(Some(Program::Ipf)),
            other @ (FirewallProgram::Nft | FirewallProgram::Iptables) => Err(BenchError::Refused(
                format!("firewall_program = \"{}\": FreeBSD has pf, ipfw and ipf", other.name()),
            )),
        }
    }

    /// Name of the program in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Program::Pf => "pf",
            Program::Ipfw => "ipfw",
            Program::Ipf => "ipf",
        }
    }

    /// File that contains the rules.
    pub fn path(self) -> &'static str {
        match self {
            Program::Pf => "/etc/pf.conf",
            Program::Ipfw => "/etc/ipfw.rules",
            Program::Ipf => "/etc/ipf.rules",
        }
    }

    /// Variables of rc.conf(5) that enable the program and name its file.
    pub fn variables(self) -> [&'static str; 2] {
        match self {
            Program::Pf => ["pf_enable", "pf_rules"],
            Program::Ipfw => ["firewall_enable", "firewall_script"],
            Program::Ipf => ["ipfilter_enable", "ipfilter_rules"],
        }
    }

    /// File of the kernel module, and the module's name.
    pub(super) fn module(self) -> (&'static str, &'static str) {
        match self {
            Program::Pf => ("pf", "pf"),
            Program::Ipfw => ("ipfw", "ipfw"),
            Program::Ipf => ("ipl", "ipfilter"),
        }
    }
}

/// Text of a firewall's file and the number of rules expected on reading back; the number is `None`
/// for a user's own file.
pub fn ruleset(program: Program, settings: &Settings) -> (String, Option<usize>) {
    let firewall = &settings.dut.firewall;
    if let Firewall::Ruleset { text, .. } = firewall {
        return (text.clone(), None);
    }
    let stateful = *firewall == Firewall::Stateful;
    let blocked = match firewall {
        Firewall::Rules(count) => *count,
        _ => 0,
    };
    let ports = (0..blocked).map(|n| PORTS.0 + n % PORTS.1);
    let (mut text, last, mut rules) = (String::new(), rules_of(program, stateful), 0);
    match program {
        Program::Pf => {
            text.push_str("set skip on lo0\n");
            // Without this, pf would merge or remove some of the rules.
            if blocked > 0 {
                text.push_str("set ruleset-optimization none\n");
            }
            let needed = needed_states(settings) * 2;
            if stateful && needed > PF_STATES {
                let _ = writeln!(text, "set limit states {needed}");
            }
            for port in ports {
                let _ = writeln!(text, "block drop quick proto udp from any to any port {port}");
            }
        }
        Program::Ipfw => {
            text.push_str("#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\n${fwcmd} -f flush\n");
            for port in ports {
                let _ = writeln!(text, "${{fwcmd}} add 1000 deny udp from any to any {port}");
            }
        }
        Program::Ipf => {
            for port in ports {
                let _ = writeln!(text, "block in quick proto udp from any to any port = {port}");
            }
        }
    }
    for rule in last {
        let _ = writeln!(text, "{rule}");
        rules += 1;
    }
    (text, Some(rules + blocked as usize))
}

/// Rules that pass everything. ipf creates UDP states on output: an incoming packet passes by
/// default and finds the state from the second packet on.
fn rules_of(program: Program, stateful: bool) -> &'static [&'static str] {
    match (program, stateful) {
        (Program::Pf, true) => &["pass"],
        (Program::Pf, false) => &["pass no state"],
        (Program::Ipfw, true) => &["${fwcmd} add 3000 allow ip from any to any keep-state"],
        (Program::Ipfw, false) => &["${fwcmd} add 3000 allow ip from any to any"],
        (Program::Ipf, false) => &["pass out all", "pass in all"],
        (Program::Ipf, true) => &[
            "pass in quick on lo0",
            "pass out quick on lo0",
            "pass in proto icmp from any to any keep state",
            "pass out proto icmp from any to any keep state",
            "pass out proto udp from any to any keep state",
            "pass in proto tcp from any to any flags S/SAFR keep state",
            "pass out proto tcp from any to any flags S/SAFR keep state",
        ],
    }
}

fn needed_states(settings: &Settings) -> u64 {
    u64::from(settings.traffic.flows.count()) * 5 / 4 + 1024
}

/// Sysctls that make room for the flows' states.
pub fn sysctls(program: Program, settings: &Settings) -> Vec<(String, String)> {
    let needed = needed_states(settings);
    let short = program == Program::Ipfw
        && settings.dut.firewall == Firewall::Stateful
        && needed > IPFW_STATES;
    short.then(|| ("net.inet.ip.fw.dyn_max".into(), needed.to_string())).into_iter().collect()
}

/// Loads the rules of the file and disables the other firewall programs. Their modules that an
/// earlier variant loaded are unloaded: a kernel with the module is not the same as one without.
///
/// # Errors
/// Fails if the program is missing or rejects the rules.
pub fn apply(
    host: &dyn Host,
    backup: &Backup,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let selected = Program::of(settings)?;
    let available = loaded(host)?;
    let others = || available.iter().copied().filter(|program| Some(*program) != selected);
    others().try_for_each(|program| stop(host, program))?;
    let kept = modules::unload(host, backup, |file| others().any(|p| p.module().0 == file))?;
    let Some(program) = selected else {
        let idle: Vec<&str> = others().filter(|p| kept(p.module().0)).map(Program::name).collect();
        let idle = if idle.is_empty() { String::new() } else { format!(" ({})", idle.join(", ")) };
        findings.facts.insert("firewall".into(), "none".into());
        if !idle.is_empty() {
            findings.facts.insert("firewall in the kernel".into(), format!("off{idle}"));
        }
        return Ok(());
    };
    start(host, backup, program, available.contains(&program), None)?;
    verify(host, settings, findings)?;
    let needed = u64::from(settings.traffic.flows.count());
    if program == Program::Ipf && settings.dut.firewall == Firewall::Stateful && needed > IPF_STATES
    {
        findings.warnings.push(Warning::NotVerified {
            setting: "room for ipf's states".into(),
            wanted: needed.to_string(),
            found: format!("{IPF_STATES} unless `ipf -T` raised it before ipf was enabled"),
        });
    }
    Ok(())
}

/// Loads the rules of a variant while traffic flows, without changing their file: first the new
/// rules, then the other firewall programs are disabled. Modules stay loaded.
///
/// # Errors
/// The errors of [`apply`].
pub fn switch(host: &dyn Host, backup: &Backup, settings: &Settings) -> Result<(), BenchError> {
    let selected = Program::of(settings)?;
    let available = loaded(host)?;
    if let Some(program) = selected {
        let rules = ruleset(program, settings).0;
        start(host, backup, program, available.contains(&program), Some(&rules))?;
    }
    let mut others = available.into_iter().filter(|program| Some(*program) != selected);
    others.try_for_each(|program| stop(host, program))
}

/// Reads back the active program and its number of rules.
///
/// # Errors
/// Fails if the state cannot be read.
pub fn verify(
    host: &dyn Host,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let Some(program) = Program::of(settings)? else {
        let mut on = Vec::new();
        for program in loaded(host)? {
            on.extend(is_running(host, program)?.then_some(program.name()));
        }
        let found = if on.is_empty() { "none".to_owned() } else { on.join(" and ") };
        findings.expect("firewall", "none", &found);
        return Ok(());
    };
    let found = rules_in_force(host, program)?;
    match ruleset(program, settings).1 {
        Some(rules) => {
            let text = |count: usize| format!("{}, {count} rules", program.name());
            findings.expect("firewall", &text(rules), &text(found));
        }
        None => {
            findings.facts.insert("firewall".into(), format!("{}, {found} rules", program.name()));
        }
    }
    Ok(())
}

/// Script that prints those of its arguments that name modules of the kernel, compiled in or
/// loaded.
pub(super) const LOADED: &str = r#"for name; do kldstat -q -m "$name" && echo "$name"; done; true"#;

/// Programs available in the kernel.
pub(super) fn loaded(host: &dyn Host) -> Result<Vec<Program>, BenchError> {
    let names = Program::ALL.map(|program| program.module().1);
    let output = host.run(&[&["/bin/sh", "-c", LOADED, "sh"][..], &names].concat(), "")?;
    let is_there = |program: &Program| output.lines().any(|line| line == program.module().1);
    Ok(Program::ALL.into_iter().filter(is_there).collect())
}

pub(super) fn is_running(host: &dyn Host, program: Program) -> Result<bool, BenchError> {
    Ok(match program {
        Program::Pf => host.run(&["pfctl", "-s", "info"], "")?.contains("Status: Enabled"),
        Program::Ipfw => host.run(&["sysctl", "-n", "net.inet.ip.fw.enable"], "")?.trim() == "1",
        Program::Ipf => host.run(&["sysctl", "-n", "net.inet.ipf.fr_running"], "")?.trim() == "1",
    })
}

/// Disables a program that is available in the kernel.
pub(super) fn stop(host: &dyn Host, program: Program) -> Result<(), BenchError> {
    if !is_running(host, program)? {
        return Ok(());
    }
    let argv: &[&str] = match program {
        Program::Pf => &["pfctl", "-d"],
        Program::Ipfw => &["sysctl", "net.inet.ip.fw.enable=0", "net.inet6.ip6.fw.enable=0"],
        Program::Ipf => &["ipf", "-D"],
    };
    host.run(argv, "").map(drop)
}

/// Runs an ipfw script. Between its flush and its rules the default rule applies, which may deny: a
/// rule in set 31, which flush spares (ipfw(8)), keeps fwdlab's own connection alive during that
/// time.
pub(super) const UNCUT: &str = "ipfw -q add 65533 set 31 allow ip from any to any || exit 1\n\
                     /bin/sh \"$0\"; status=$?\n\
                     ipfw -q delete 65533; exit $status";

/// Starts a program with the rules of its file, or with `rules`.
fn start(
    host: &dyn Host,
    backup: &Backup,
    program: Program,
    is_loaded: bool,
    rules: Option<&str>,
) -> Result<(), BenchError> {
    // All three read standard input: pf and ipf for the file name `-`, sh with `-s`.
    let (path, rules) = match rules {
        Some(rules) => ("-", rules),
        None => (program.path(), ""),
    };
    if !is_loaded {
        if program == Program::Ipfw {
            // Otherwise the module's default rule would cut fwdlab's own connection.
            host.run(&["kenv", &format!("{DEFAULT_TO_ACCEPT}=1")], "")?;
        }
        modules::load(host, backup, program.module().0)?;
    }
    match program {
        Program::Pf => {
            host.run(&["pfctl", "-f", path], rules)?;
            if !is_running(host, program)? {
                host.run(&["pfctl", "-e"], "")?;
            }
        }
        Program::Ipfw => {
            let path = if path == "-" { "-s" } else { path };
            host.run(&["/bin/sh", "-c", UNCUT, path], rules)?;
            host.run(&["sysctl", "net.inet.ip.fw.enable=1", "net.inet6.ip6.fw.enable=1"], "")?;
        }
        Program::Ipf => {
            if !is_running(host, program)? {
                host.run(&["ipf", "-E"], "")?;
            }
            host.run(&["ipf", "-Fa", "-f", path], rules)?;
        }
    }
    Ok(())
}

/// Number of rules that the program lists, without ipfw's implicit last rule.
fn rules_in_force(host: &dyn Host, program: Program) -> Result<usize, BenchError> {
    let argv: &[&str] = match program {
        Program::Pf => &["pfctl", "-s", "rules"],
        Program::Ipfw => &["ipfw", "list"],
        Program::Ipf => &["ipfstat", "-io"],
    };
    let text = host.run(argv, "")?;
    // `# empty list for ipfilter(out)` from ipfstat is not a rule.
    let others = ["65535 ", "#"];
    let is_rule = |line: &&str| {
        !line.trim().is_empty() && !others.iter().any(|other| line.starts_with(other))
    };
    Ok(text.lines().filter(is_rule).count())
}

/// Variables of rc.conf(5) that enable this program and disable those that the DUT's own file
/// enables (`is_on`).
pub fn variables(program: Option<Program>, is_on: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for known in Program::ALL {
        let [enable, rules] = known.variables();
        if Some(known) == program {
            all.push((enable.to_owned(), "YES".to_owned()));
            all.push((rules.to_owned(), known.path().to_owned()));
        } else if is_on(enable) {
            all.push((enable.to_owned(), "NO".to_owned()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::settings::Flows;

    fn settings(firewall: Firewall, program: FirewallProgram) -> Settings {
        let mut settings = Settings::default();
        settings.dut.firewall = firewall;
        settings.dut.remote.firewall_program = program;
        settings
    }

    #[test]
    fn linux_programs_are_rejected_and_pf_is_the_default() {
        let of = |program| Program::of(&settings(Firewall::Stateless, program));
        assert_eq!(of(FirewallProgram::Auto).expect("pf"), Some(Program::Pf));
        let error = of(FirewallProgram::Nft).expect_err("Linux's").to_string();
        assert!(error.contains("nft") && error.contains("ipfw"), "{error}");
        let none = settings(Firewall::None, FirewallProgram::Nft);
        assert_eq!(Program::of(&none).expect("none"), None);
    }

    #[test]
    fn rules_that_do_not_match_precede_the_pass_rule() {
        let settings = settings(Firewall::Rules(3), FirewallProgram::Auto);
        for (program, rule, rules) in [
            (Program::Pf, "block drop quick proto udp from any to any port 10002", 4),
            (Program::Ipfw, "${fwcmd} add 1000 deny udp from any to any 10002", 4),
            (Program::Ipf, "block in quick proto udp from any to any port = 10002", 5),
        ] {
            let (text, found) = ruleset(program, &settings);
            assert_eq!(found, Some(rules), "{text}");
            assert_eq!(text.lines().filter(|line| line.contains("1000")).count(), 3);
            assert!(text.contains(rule) && !text.contains("keep"), "{text}");
        }
        let port = u32::from(fwdlab_packet::template::DESTINATION_PORT);
        assert!(port < PORTS.0 || port >= PORTS.0 + PORTS.1);
    }

    #[test]
    fn state_limits_grow_with_the_number_of_flows() {
        let mut many = settings(Firewall::Stateful, FirewallProgram::Auto);
        assert_eq!(ruleset(Program::Pf, &many).0, "set skip on lo0\npass\n");
        assert_eq!(sysctls(Program::Ipfw, &many), []);
        many.traffic.flows = Flows { sources: 1000, destinations: 100 };
        assert!(ruleset(Program::Pf, &many).0.contains("set limit states 252048\n"));
        let expected = [("net.inet.ip.fw.dyn_max".to_owned(), "126024".to_owned())];
        assert_eq!(sysctls(Program::Ipfw, &many), expected);
    }
}
