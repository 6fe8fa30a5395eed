//! A Linux kernel's own forwarding.

pub use super::findings::Findings;

use super::keeper::Keeper;
use super::{nft, routes, scheduling};
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use fwdlab_model::settings::{Family, Firewall, Settings};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;

/// MAC addresses of the testbed's interfaces, locally administered.
pub mod mac {
    /// Sender.
    pub const SENDER: [u8; 6] = [2, 0x19, 0x80, 0, 0, 1];
    /// DUT, towards the sender.
    pub const INGRESS: [u8; 6] = [2, 0x19, 0x80, 0, 0, 2];
    /// DUT, towards the receiver.
    pub const EGRESS: [u8; 6] = [2, 0x19, 0x80, 0, 0, 3];
    /// Receiver.
    pub const RECEIVER: [u8; 6] = [2, 0x19, 0x80, 0, 0, 4];

    /// A MAC address as text.
    pub fn text(mac: [u8; 6]) -> String {
        mac.map(|byte| format!("{byte:02x}")).join(":")
    }
}

/// The DUT, and who puts back what is changed of it.
pub struct LinuxDut<'a> {
    host: &'a dyn Host,
    keeper: &'a dyn Keeper,
    links: &'a Links,
    found: &'a Found,
}

/// Values that sysctls had before the first change, to switch back to.
pub type Found = RefCell<BTreeMap<String, String>>;

impl<'a> LinuxDut<'a> {
    /// The DUT `host` between `links`; what outlives a run is changed through `keeper`.
    pub fn new(
        host: &'a dyn Host,
        keeper: &'a dyn Keeper,
        links: &'a Links,
        found: &'a Found,
    ) -> LinuxDut<'a> {
        LinuxDut { host, keeper, links, found }
    }

    /// Sets up interfaces, addresses, routes, neighbours, queues, firewall and
    /// sysctls, and reads everything back. Returns the kernel threads that poll for it, as
    /// [`scheduling::apply`].
    ///
    /// # Errors
    /// When a setting does not exist here or is refused.
    pub fn configure(
        &self,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Vec<u32>, BenchError> {
        self.forwarding(settings)?;
        self.addresses()?;
        self.offloads(settings, findings)?;
        let threads = scheduling::apply(self.host, self.links, settings, placement, findings)?;
        self.routes(settings, findings)?;
        self.firewall(&settings.dut.firewall, settings, findings)?;
        self.sysctls(&settings.dut.sysctl, findings)?;
        self.queues(settings, findings);
        Ok(threads)
    }

    /// Switches from one variant to another while traffic flows. Only what
    /// differs is touched.
    ///
    /// # Errors
    /// As [`LinuxDut::configure`].
    pub fn switch(&self, from: &Settings, to: &Settings) -> Result<(), BenchError> {
        if from.dut.firewall != to.dut.firewall {
            self.load(&nft::ruleset(&to.dut.firewall).text)?;
        }
        if from.dut.icmp_redirect != to.dut.icmp_redirect {
            self.redirects(to)?;
        }
        if from.dut.rps != to.dut.rps {
            self.steer(to)?;
        }
        for (name, value) in &to.dut.sysctl {
            if from.dut.sysctl.get(name) != Some(value) {
                self.set_sysctl(name, value)?;
            }
        }
        // What only the other level sets goes back to what was found.
        for name in from.dut.sysctl.keys().filter(|name| !to.dut.sysctl.contains_key(*name)) {
            let found = self.found.borrow().get(name).cloned();
            if let Some(value) = found {
                self.set_sysctl(name, &value)?;
            }
        }
        Ok(())
    }

    /// Reads back what [`LinuxDut::switch`] has just changed.
    ///
    /// # Errors
    /// When something can't be read.
    pub fn verify_live(
        &self,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        if from.dut.firewall != to.dut.firewall {
            self.verify_firewall(&to.dut.firewall, findings)?;
            if to.dut.firewall == Firewall::Stateful {
                self.room_for_states(to, findings)?;
            }
        }
        self.verify_sysctls(&to.dut.sysctl, findings)
    }

    fn put_all(&self, settings: &[(String, &str)]) -> Result<(), BenchError> {
        let paths = settings.iter().map(|(name, value)| (sysctl_path(name), (*value).to_owned()));
        self.keeper.put(self.host, &paths.collect::<Vec<_>>())
    }

    /// The same setting of both interfaces.
    fn of_both(&self, family: &str, key: &str) -> [String; 2] {
        // With slashes: names of interfaces may hold dots.
        self.links.both().map(|link| format!("net/{family}/conf/{}/{key}", link.interface))
    }

    fn has_inet6(&self) -> bool {
        self.host.get("/proc/sys/net/ipv6/conf/all/forwarding").is_ok()
    }

    pub(super) fn forwarding(&self, settings: &Settings) -> Result<(), BenchError> {
        // The interfaces' own values first: one of `default` is handed on to those that
        // have none, and what it was before could not be told any more.
        let mut wanted: Vec<(String, &str)> =
            self.of_both("ipv4", "rp_filter").map(|name| (name, "0")).into();
        let plain = [("conf.default.rp_filter", "0"), ("conf.all.rp_filter", "0")];
        let plain = plain.into_iter().chain([("ip_forward", "1")]);
        wanted.extend(plain.map(|(name, value)| (format!("net.ipv4.{name}"), value)));
        self.put_all(&wanted)?;
        self.redirects(settings)?;
        if self.has_inet6() {
            let of_both = |key, value| self.of_both("ipv6", key).map(|name| (name, value));
            let mut wanted: Vec<(String, &str)> = of_both("accept_dad", "0").into();
            wanted.push(("net.ipv6.conf.all.forwarding".to_owned(), "1"));
            self.put_all(&wanted)
        } else if settings.traffic.family == Family::Inet6 {
            need_inet6(self.host)
        } else {
            Ok(())
        }
    }

    fn redirects(&self, settings: &Settings) -> Result<(), BenchError> {
        let value = if settings.dut.icmp_redirect { "1" } else { "0" };
        let names = ["default", "all"].map(|of| format!("net.ipv4.conf.{of}.send_redirects"));
        let names = self.of_both("ipv4", "send_redirects").into_iter().chain(names);
        self.put_all(&names.map(|name| (name, value)).collect::<Vec<_>>())
    }

    /// Sets receive packet steering of the side that packets come from.
    pub(super) fn steer(&self, settings: &Settings) -> Result<(), BenchError> {
        let dut = &settings.dut;
        let wanted = scheduling::steering(&self.links.ingress.interface, dut.queues, &dut.rps);
        self.keeper.put(self.host, &wanted)
    }

    fn offloads(&self, settings: &Settings, findings: &mut Findings) -> Result<(), BenchError> {
        let state = if settings.dut.offloads { "on" } else { "off" };
        for link in self.links.both() {
            let interface = link.interface.as_str();
            // GRO stays on in any case: it is what makes veth poll (NAPI) at all,
            // without it live frames vanish; and it must be switched on while the
            // link is up, or the kernel does not mark the peer as a target of
            // redirects. It merges no UDP unless one of the two features named
            // after it is on too.
            self.host.run(
                &[
                    "ethtool",
                    "-K",
                    interface,
                    "gro",
                    "on",
                    "tso",
                    state,
                    "gso",
                    state,
                    "rx-udp-gro-forwarding",
                    state,
                    "rx-gro-list",
                    "off",
                ],
                "",
            )?;
        }
        let ingress = &self.links.ingress.interface;
        let features = self.host.run(&["ethtool", "-k", ingress], "")?;
        for (feature, wanted) in [
            ("generic-receive-offload", "on"),
            ("tcp-segmentation-offload", state),
            ("generic-segmentation-offload", state),
            ("rx-udp-gro-forwarding", state),
        ] {
            let remark = match feature {
                "generic-receive-offload" => " (polling needs it; it merges no UDP)",
                _ => "",
            };
            let state = feature_state(&features, feature);
            findings.expect(&format!("{ingress} {feature}{remark}"), wanted, state);
        }
        Ok(())
    }

    fn addresses(&self) -> Result<(), BenchError> {
        let has_inet6 = self.has_inet6();
        let mut text = String::new();
        for link in self.links.both() {
            let interface = &link.interface;
            // The kernel shall not speak of its own accord.
            if has_inet6 {
                let _ = writeln!(text, "link set {interface} addrgenmode none");
            }
            let _ = writeln!(text, "link set {interface} up");
            for (address, length) in &link.addresses {
                let nodad = match address {
                    IpAddr::V6(_) if !has_inet6 => continue,
                    IpAddr::V6(_) => " nodad",
                    IpAddr::V4(_) => "",
                };
                let _ = writeln!(text, "addr add {address}/{length} dev {interface}{nodad}");
            }
            for peer in &link.peers {
                let mac = mac::text(peer.mac);
                for address in peer.addresses.iter().filter(|a| a.is_ipv4() || has_inet6) {
                    let _ = writeln!(
                        text,
                        "neigh replace {address} lladdr {mac} dev {interface} nud permanent"
                    );
                }
            }
        }
        self.host.run(&["ip", "-batch", "-"], &text).map(drop)
    }

    pub(super) fn routes(
        &self,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let family = settings.traffic.family;
        let count = settings.dut.routes;
        let destinations = settings.traffic.flows.destinations;
        let wanted = routes::prefixes(family, count, destinations, self.links);
        routes::keep_ways(&wanted, self.links)?;
        let text = routes::batch(&wanted, self.keeper.mark_routes(self.host)?);
        self.host.run(&["ip", "-batch", "-"], &text)?;
        let found = match family {
            Family::Inet => {
                routes::count_inet(&self.host.get("/proc/thread-self/net/fib_triestat")?)
            }
            Family::Inet6 => {
                routes::count_inet6(&self.host.get("/proc/thread-self/net/rt6_stats")?)
            }
        };
        // The table also holds the links' own prefixes: at least as many is right.
        let found = found.unwrap_or(0);
        let enough = if found >= u64::from(count) { count.to_string() } else { found.to_string() };
        findings.expect("routes", &count.to_string(), &enough);
        Ok(())
    }

    /// Loads a firewall and reads it back.
    ///
    /// # Errors
    /// When nft is missing or refuses the ruleset.
    pub fn firewall(
        &self,
        firewall: &Firewall,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        if *firewall == Firewall::None {
            // A fresh namespace has none; no need for nft to exist.
            findings.facts.insert("firewall".into(), "none".into());
            return Ok(());
        }
        self.load(&nft::ruleset(firewall).text)?;
        self.verify_firewall(firewall, findings)?;
        if *firewall == Firewall::Stateful {
            self.room_for_states(settings, findings)?;
        }
        Ok(())
    }

    fn verify_firewall(
        &self,
        firewall: &Firewall,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let json = self.host.run(&["nft", "-j", "list", "ruleset"], "")?;
        let (tables, rules) = nft::count(&json).unwrap_or((0, 0));
        let found = format!("{tables} tables, {rules} rules");
        match nft::ruleset(firewall).rules {
            Some(wanted) => {
                let expected = usize::from(*firewall != Firewall::None);
                findings.expect("firewall", &format!("{expected} tables, {wanted} rules"), &found);
            }
            None => {
                findings.facts.insert("firewall".into(), found);
            }
        }
        Ok(())
    }

    fn load(&self, text: &str) -> Result<(), BenchError> {
        self.host.run(&["nft", "-f", "-"], text).map(drop).map_err(|error| match error {
            BenchError::Program { why, .. } if why.contains("not installed") => {
                BenchError::environment(
                    "the firewall needs nft, which is not installed",
                    "apt-get install nftables",
                )
            }
            other => other,
        })
    }

    /// Raises the machine's limit of connections when the flows need it.
    pub(super) fn room_for_states(
        &self,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        const PATH: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
        let needed = u64::from(settings.traffic.flows.count()) * 5 / 4 + 1024;
        let limit: u64 = self.keeper.get(self.host, PATH)?.parse().unwrap_or(0);
        if limit < needed {
            self.keeper.change(self.host, PATH, &needed.to_string())?;
        }
        let found = self.keeper.get(self.host, PATH)?;
        findings.facts.insert("sysctl net.netfilter.nf_conntrack_max".into(), found);
        Ok(())
    }

    pub(super) fn sysctls(
        &self,
        wanted: &BTreeMap<String, String>,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        wanted.iter().try_for_each(|(name, value)| self.set_sysctl(name, value))?;
        self.verify_sysctls(wanted, findings)
    }

    pub(super) fn verify_sysctls(
        &self,
        wanted: &BTreeMap<String, String>,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        for (name, value) in wanted {
            let path = sysctl_path(name);
            let found = self.keeper.get(self.host, &path)?;
            let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
            findings.expect(&format!("sysctl {name}"), value, &found);
        }
        Ok(())
    }

    fn set_sysctl(&self, name: &str, value: &str) -> Result<(), BenchError> {
        let path = sysctl_path(name);
        let old = self.keeper.get(self.host, &path).map_err(|error| match error {
            BenchError::File { .. } => BenchError::Refused(format!(
                "sysctl {name}: this kernel has none of that name (`sysctl -a` lists them)"
            )),
            other => other,
        })?;
        self.found.borrow_mut().entry(name.to_owned()).or_insert(old);
        self.keeper.change(self.host, &path, value)
    }

    fn queues(&self, settings: &Settings, findings: &mut Findings) {
        let has = |queue: u16| {
            let ingress = &self.links.ingress.interface;
            self.host.get(&format!("/sys/class/net/{ingress}/queues/rx-{queue}/rps_cpus")).is_ok()
        };
        let found = (0..=settings.dut.queues).take_while(|&queue| has(queue)).count();
        findings.expect("queues", &settings.dut.queues.to_string(), &found.to_string());
    }
}

/// An error unless the kernel has IPv6.
///
/// # Errors
/// [`BenchError::Environment`].
pub fn need_inet6(host: &dyn Host) -> Result<(), BenchError> {
    host.get("/proc/sys/net/ipv6/conf/all/forwarding").map(drop).map_err(|_| {
        BenchError::environment(
            "this kernel has no IPv6",
            "boot it without ipv6.disable=1, or take family = \"inet\"",
        )
    })
}

/// `/proc/sys` path of a sysctl. Dots separate, as sysctl(8) has it; a name that
/// contains slashes is taken as a path (for interface names with dots).
pub(super) fn sysctl_path(name: &str) -> String {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    format!("/proc/sys/{path}")
}

/// `on` or `off` of a feature in the output of `ethtool -k`; `absent` where it has no line.
pub fn feature_state<'a>(features: &'a str, feature: &str) -> &'a str {
    features
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .find(|(name, _)| *name == feature)
        .and_then(|(_, state)| state.split_whitespace().next())
        .unwrap_or("absent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctl_names() {
        assert_eq!(sysctl_path("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(sysctl_path("net/ipv4/conf/a.b/x"), "/proc/sys/net/ipv4/conf/a.b/x");
    }
}
