//! Kernel modules and firewalls of the machine in memory.

use super::scripted::{Answer, State};

const ALGORITHMS: &str = "net.route.algo.inet.algo_list";

impl State {
    /// kldload(8) and kldunload(8).
    pub(super) fn module(&mut self, argv: &[&str]) -> Answer {
        let file = argv.last().copied().unwrap_or_default();
        // ipfw and ipf filter as soon as they are loaded.
        let (module, oids): (&str, &[(&str, &str)]) = match file {
            "ipfw" => (
                "ipfw",
                &[
                    ("net.inet.ip.fw.enable", "1"),
                    ("net.inet6.ip6.fw.enable", "1"),
                    ("net.inet.ip.fw.dyn_max", "16384"),
                ],
            ),
            "ipl" => ("ipfilter", &[("net.inet.ipf.fr_running", "1")]),
            other => (other, &[]),
        };
        let of_algorithm = [("fib_dxr", ", dxr"), ("dpdk_lpm4", ", dpdk_lpm4")];
        let of_algorithm = of_algorithm.iter().find(|(known, _)| *known == file);
        if argv[0] == "kldunload" {
            if !self.modules.remove(module) {
                return Err(format!("kldunload: can't find file {file}"));
            }
            for (oid, _) in oids {
                self.sysctls.remove(*oid);
            }
            self.running.retain(|name, _| !name.starts_with(file));
            if let Some((_, name)) = of_algorithm {
                let list = self.sysctls.entry(ALGORITHMS.into()).or_default();
                *list = list.replace(name, "");
            }
            return Ok(String::new());
        }
        self.modules.insert(module.to_owned());
        for (oid, value) in oids {
            self.sysctls.insert(oid.to_string(), value.to_string());
        }
        if let Some((_, name)) = of_algorithm {
            self.sysctls.entry(ALGORITHMS.into()).or_default().push_str(name);
        }
        Ok(String::new())
    }

    pub(super) fn firewall(&mut self, argv: &[&str], stdin: &str) -> Answer {
        let text = match argv.last().copied().unwrap_or_default() {
            "-" | "-s" => stdin.to_owned(),
            path => self.files.get(path).cloned().unwrap_or_default(),
        };
        let lines = |words: &[&str]| {
            let is_rule = |line: &&str| words.iter().any(|word| line.starts_with(word));
            text.lines().filter(is_rule).count()
        };
        let rules =
            |count: usize| -> String { (0..count).map(|n| format!("rule {n}\n")).collect() };
        let of = |state: &State, name| state.running.get(name).copied();
        match argv {
            ["pfctl", "-s", "info"] => {
                let status = if of(self, "pf on").is_some() { "Enabled" } else { "Disabled" };
                return Ok(format!(
                    "Status: {status} for 0 days 00:00:10           Debug: Urgent\n\nState Table{:>25}{:>17}\n",
                    "Total", "Rate"
                ));
            }
            ["pfctl", "-f", _] => drop(self.running.insert("pf", lines(&["pass", "block"]))),
            ["service", "pf", "onereload"] => {
                return self.firewall(&["pfctl", "-f", "/etc/pf.conf"], stdin);
            }
            ["pfctl", "-e"] if of(self, "pf on").is_some() => {
                return Err("pfctl: pf already enabled".into());
            }
            ["pfctl", "-e"] => drop(self.running.insert("pf on", 1)),
            ["pfctl", "-d"] => drop(self.running.remove("pf on")),
            ["pfctl", "-s", "rules"] => return Ok(rules(of(self, "pf").unwrap_or(0))),
            ["/bin/sh", _] => drop(self.running.insert("ipfw", lines(&["${fwcmd} add"]))),
            ["ipfw", "list"] => {
                let last = "65535 deny ip from any to any\n";
                return Ok(rules(of(self, "ipfw").unwrap_or(0)) + last);
            }
            ["ipf", "-E"] => {
                drop(self.sysctls.insert("net.inet.ipf.fr_running".into(), "1".into()))
            }
            ["ipf", "-D"] => {
                drop(self.sysctls.insert("net.inet.ipf.fr_running".into(), "-1".into()))
            }
            ["ipf", "-Fa", "-f", _] => drop(self.running.insert("ipf", lines(&["pass", "block"]))),
            ["ipfstat", "-io"] => {
                let count = of(self, "ipf").unwrap_or(0);
                let none = ["in", "out"]
                    .map(|direction| format!("# empty list for ipfilter({direction})\n"));
                return Ok(if count == 0 { none.concat() } else { rules(count) });
            }
            _ => return Err(format!("usage: {}", argv[0])),
        }
        Ok(String::new())
    }
}
