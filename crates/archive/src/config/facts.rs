//! Facts about a router's set-up from its configuration.

use super::{Configuration, Place, rules};

/// Returns observations for a description of the set-up, in a fixed order: static routes, disabled
/// offloads, entropy harvesting, ICMP redirects, hyper-threading, fast forwarding, firewalls,
/// interfaces. Contains only facts that the files state.
pub fn facts(configuration: &Configuration) -> Vec<String> {
    let view = View(configuration);
    [
        view.static_routes(),
        view.offloads(),
        view.rc("harvest_mask").map(|mask| format!("harvest_mask {mask}")),
        view.redirects_sent(),
        view.is_on("icmp_drop_redirect").then(|| "ICMP redirects dropped".into()),
        view.hyper_threading(),
        (view.sysctl("net.inet.ip.fastforwarding") == Some("1"))
            .then(|| "fast forwarding on".into()),
    ]
    .into_iter()
    .flatten()
    .chain(view.firewalls())
    .chain(view.interfaces())
    .collect()
}

/// A firewall: its name, the variable that enables it, the variable that names its rules, and their
/// default path.
struct Firewall(&'static str, &'static str, &'static str, &'static str);

/// The firewalls of FreeBSD with their rc.conf(5) variables.
const FIREWALLS: [Firewall; 3] = [
    Firewall("pf", "pf_enable", "pf_rules", "etc/pf.conf"),
    Firewall("ipfw", "firewall_enable", "firewall_script", "etc/ipfw.rules"),
    Firewall("ipf", "ipfilter_enable", "ipfilter_rules", "etc/ipf.rules"),
];

struct View<'a>(&'a Configuration);

impl<'a> View<'a> {
    fn rc(&self, name: &str) -> Option<&'a str> {
        self.0.get(&Place::RcConf, name)
    }

    fn sysctl(&self, name: &str) -> Option<&'a str> {
        self.0.get(&Place::Sysctl, name)
    }

    /// Interprets the value like rc.subr(8).
    fn is_on(&self, name: &str) -> bool {
        let yes = ["yes", "true", "on", "1"];
        self.rc(name).is_some_and(|value| yes.iter().any(|yes| value.eq_ignore_ascii_case(yes)))
    }

    fn static_routes(&self) -> Option<String> {
        let count = |name| self.rc(name).map_or(0, |names| names.split_whitespace().count());
        let (inet, inet6) = (count("static_routes"), count("ipv6_static_routes"));
        let plural = |count| if count == 1 { "" } else { "s" };
        match (inet, inet6) {
            (0, 0) => None,
            (_, 0) => Some(format!("{inet} static route{} (inet)", plural(inet))),
            (0, _) => Some(format!("{inet6} static route{} (inet6)", plural(inet6))),
            _ => Some(format!("{inet} static route{} (inet), {inet6} (inet6)", plural(inet))),
        }
    }

    /// Interfaces with TSO or LRO disabled, grouped by the disabled offloads.
    fn offloads(&self) -> Option<String> {
        let mut lines = Vec::<(String, Vec<&str>)>::new();
        for (interface, value) in self.ifconfig() {
            let has = |flag| value.split_whitespace().any(|word| word == flag);
            let tso = has("-tso") || (has("-tso4") && has("-tso6"));
            let what = match (has("-lro"), tso) {
                (true, true) => "LRO and TSO off",
                (true, false) => "LRO off",
                (false, true) => "TSO off",
                (false, false) => continue,
            };
            match lines.iter_mut().find(|(known, _)| known == what) {
                Some((_, interfaces)) => interfaces.push(interface),
                None => lines.push((what.into(), vec![interface])),
            }
        }
        let lines: Vec<String> = lines
            .iter()
            .map(|(what, interfaces)| format!("{what} on {}", interfaces.join(", ")))
            .collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }

    fn redirects_sent(&self) -> Option<String> {
        let off = |name| self.sysctl(name) == Some("0");
        let families = match (off("net.inet.ip.redirect"), off("net.inet6.ip6.redirect")) {
            (true, true) => "inet, inet6",
            (true, false) => "inet",
            (false, true) => "inet6",
            (false, false) => return None,
        };
        Some(format!("ICMP redirects not sent ({families})"))
    }

    fn hyper_threading(&self) -> Option<String> {
        let allowed = self.0.get(&Place::Tunable, "machdep.hyperthreading_allowed")?;
        Some(format!("hyper-threading {}", if allowed == "0" { "off" } else { "on" }))
    }

    fn firewalls(&self) -> Vec<String> {
        FIREWALLS
            .iter()
            .filter(|Firewall(_, enable, ..)| self.is_on(enable))
            .map(|Firewall(name, _, path, default)| {
                let path = self.rc(path).map_or(*default, |path| path.trim_start_matches('/'));
                match self.0.get(&Place::Rules(path.to_owned()), "") {
                    Some(text) => format!("{name} enabled, {}", state(name, text)),
                    None => format!("{name} enabled, rules not kept"),
                }
            })
            .collect()
    }

    /// Returns the interface and arguments of every `ifconfig_IF` variable, including aliases and
    /// address families.
    fn ifconfig(&self) -> Vec<(&'a str, &'a str)> {
        self.0
            .iter()
            .filter(|setting| setting.place == Place::RcConf)
            .filter_map(|setting| {
                let rest = setting.name.strip_prefix("ifconfig_")?;
                let interface = rest.split('_').next().unwrap_or(rest);
                (interface != "DEFAULT").then_some((interface, setting.value.as_str()))
            })
            .collect()
    }

    fn interfaces(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for (interface, _) in self.ifconfig() {
            if !names.contains(&interface) {
                names.push(interface);
            }
        }
        (!names.is_empty()).then(|| format!("interfaces {}", names.join(", ")))
    }
}

/// Describes whether rules keep state, as far as they specify it. By default, `pass` rules of pf
/// keep state (pf.conf(5), "Stateful Filtering").
fn state(firewall: &str, text: &str) -> String {
    let rules = rules::rules(text);
    let stateful = rules.iter().any(|rule| match firewall {
        "pf" => rule.split(' ').next() == Some("pass") && !rule.contains("no state"),
        "ipfw" => ["keep-state", "check-state", "limit"]
            .iter()
            .any(|word| rule.split(' ').any(|other| other == *word)),
        _ => rule.contains("keep state"),
    });
    let state = if stateful { "stateful" } else { "stateless" };
    format!("{state}, {} rule{}", rules.len(), if rules.len() == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn facts_describe_a_router() {
        let tree = tree(&[
            ("boot/loader.conf.local", "machdep.hyperthreading_allowed=\"0\"\n"),
            ("etc/sysctl.conf", "net.inet.ip.redirect=0\nnet.inet6.ip6.redirect=0\n"),
            (
                "etc/rc.conf",
                "ifconfig_igb1=\"inet 192.0.2.10/24\"\n\
                 ifconfig_cxl0=\"inet 198.18.0.10/24 -tso4 -tso6 -lro\"\n\
                 ifconfig_cxl0_ipv6=\"inet6 2001:2::10 prefixlen 64\"\n\
                 ifconfig_cxl1=\"inet 198.19.0.10/24 -tso4 -tso6 -lro\"\n\
                 static_routes=\"generator receiver\"\n\
                 ipv6_static_routes=\"generator receiver\"\n\
                 harvest_mask=\"351\"\nicmp_drop_redirect=\"YES\"\n\
                 pf_enable=\"YES\"\npf_rules=\"/etc/pf.conf\"\nfirewall_enable=NO\n",
            ),
            ("etc/pf.conf", "set skip on lo0\npass no state\n"),
        ]);
        assert_eq!(
            facts(&tree),
            [
                "2 static routes (inet), 2 (inet6)",
                "LRO and TSO off on cxl0, cxl1",
                "harvest_mask 351",
                "ICMP redirects not sent (inet, inet6)",
                "ICMP redirects dropped",
                "hyper-threading off",
                "pf enabled, stateless, 1 rule",
                "interfaces igb1, cxl0, cxl1",
            ]
        );
    }

    #[test]
    fn facts_of_an_empty_tree_are_empty() {
        assert_eq!(facts(&tree(&[])), Vec::<String>::new());
        let enabled = tree(&[("etc/rc.conf", "firewall_enable=yes\n")]);
        assert_eq!(facts(&enabled), ["ipfw enabled, rules not kept"]);
    }

    #[test]
    fn state_follows_the_syntax_of_each_firewall() {
        for (firewall, rules, stateful) in [
            ("pf", "pass", true),
            ("pf", "pass no state\nblock in all", false),
            ("ipfw", "${fwcmd} add 3000 allow ip from any to any keep-state", true),
            ("ipfw", "${fwcmd} add 3000 allow ip from any to any", false),
            ("ipf", "pass in quick on lo0\npass out proto udp from any to any keep state", true),
            ("ipf", "pass out all\npass in all", false),
        ] {
            let text = state(firewall, rules);
            assert_eq!(text.starts_with("stateful"), stateful, "{firewall}: {rules}: {text}");
        }
    }
}
