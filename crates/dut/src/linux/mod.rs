//! Forwarding by the Linux kernel: in a namespace of this machine, or on a machine of a
//! laboratory.
//!
//! The [`SettingRestorer`](super::restore::SettingRestorer) records each old value before it is
//! changed, so that a later process can restore it. It also distinguishes a namespace from a whole
//! machine. Each variant starts from the same machine state.
//!
//! Not managed: the machine's own firewall rules and addresses. They stay; rules that forwarded
//! packets would traverse are reported.

pub mod firewall;
mod forwarding;
pub mod interfaces;
pub mod nft;
pub mod scheduling;
mod software;

use super::findings::Findings;
use super::undo::reboot_for;
use super::{
    Dut, DutContext, Loss, Preparation, Reading, Totals, counters, drop_accounting, queues, routes,
};
use crate::cpu::Placement;
use firewall::Loaded;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, DropPlace};
use fwdlab_model::settings::{Family, Firewall, Settings};
use std::collections::BTreeMap;

/// The DUT.
pub(super) struct LinuxDut<'a> {
    context: DutContext<'a>,
    loaded: Loaded,
    /// Sysctl values before the first change; switching levels restores them.
    original_sysctls: BTreeMap<String, String>,
    /// NAPI threads of this machine's kernel that poll for the DUT, bound to CPUs.
    threads: Vec<u32>,
}

impl Dut for LinuxDut<'_> {
    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Preparation, BenchError> {
        if self.context.keeper.is_namespace() {
            return Ok(Preparation::Ready);
        }
        let remote = &settings.dut.remote;
        let mut reasons = software::lay(host, remote.overlay.as_ref())?;
        if let Some(revision) = &remote.revision {
            reasons.extend(software::install(host, revision, self.context.experiment)?);
        }
        let reasons = reboot_for(host, &reasons)?;
        Ok(if reasons.is_empty() { Preparation::Ready } else { Preparation::Reboot(reasons) })
    }

    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let DutContext { links, keeper, .. } = self.context;
        findings.accept_not_put_back(keeper.undo(host))?;
        *self = LinuxDut::new(self.context);
        if let Some(revision) = settings.dut.configured_revision() {
            super::revision::read_back(host, revision, findings)?;
        }
        routes::keep_ways_of(settings, links)?;
        self.forwarding(host, settings)?;
        let (threads, dut) = (&mut self.threads, settings);
        *threads = interfaces::configure(host, keeper, links, dut, placement, findings)?;
        self.routes(host, settings, findings)?;
        self.loaded.load(host, keeper, settings)?;
        self.verify_firewall(host, settings, findings)?;
        for (name, value) in &settings.dut.sysctl {
            self.set_sysctl(host, name, value)?;
        }
        self.verify_sysctls(host, settings, findings)
    }

    /// On another machine this takes a few network round trips.
    fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        let keeper = self.context.keeper;
        if from.dut.firewall != to.dut.firewall {
            self.loaded.load(host, keeper, to)?;
        }
        if from.dut.icmp_redirect != to.dut.icmp_redirect {
            self.redirects(host, to)?;
        }
        if from.dut.rps != to.dut.rps {
            let (ingress, dut) = (&self.context.links.ingress.interface, &to.dut);
            keeper.put(host, &scheduling::steering(ingress, dut.queues, &dut.rps))?;
        }
        for (name, value) in &to.dut.sysctl {
            if from.dut.sysctl.get(name) != Some(value) {
                self.set_sysctl(host, name, value)?;
            }
        }
        // Sysctls that only the other level sets return to their original values.
        for name in from.dut.sysctl.keys().filter(|name| !to.dut.sysctl.contains_key(*name)) {
            if let Some(value) = self.original_sysctls.get(name).cloned() {
                self.set_sysctl(host, name, &value)?;
            }
        }
        Ok(())
    }

    fn verify(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        if from.dut.firewall != to.dut.firewall {
            self.verify_firewall(host, to, findings)?;
        }
        self.verify_sysctls(host, to, findings)
    }

    fn reset(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        let DutContext { links, keeper, .. } = self.context;
        for interface in links.both().map(|link| link.interface.as_str()) {
            if interfaces::is_up(&interfaces::flags(host, interface)?) {
                keeper.note(host, &[format!("ip link set {interface} up")])?;
            }
            host.run(&["ip", "link", "set", interface, "down"], "")?;
        }
        self.configure(host, settings, placement, findings)?;
        Ok(Some("both interfaces taken down, everything reconfigured".into()))
    }

    fn threads(&self) -> Vec<u32> {
        self.threads.clone()
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        let machine = counters::read(host, self.context.links)?;
        Ok(Reading { machine, ..Reading::default() })
    }

    fn queues(&self, host: &dyn Host) -> counters::Reading {
        queues::of_both(host, self.context.links)
    }

    fn states(&mut self, host: &dyn Host, settings: &Settings) -> Option<u64> {
        match settings.dut.firewall {
            Firewall::None => None,
            _ => counters::states(host),
        }
    }

    fn forget_states(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        if !settings.dut.firewall.may_keep_states() {
            return Ok(None);
        }
        host.run(&["conntrack", "--flush"], "")
            .map_err(|error| firewall::of_program(error, "conntrack", "conntrack"))?;
        Ok(Some("conntrack --flush".into()))
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        counters::compare(before, after, totals, self.context.links)
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        let has_firewall = loss.settings.dut.firewall != Firewall::None;
        drop_accounting::drops(loss, has_firewall, self.context.links)
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let keeper = self.context.keeper;
        let undone = keeper.undo(host);
        self.loaded = Loaded::default();
        if keeper.is_namespace() {
            return undone;
        }
        let lifted = software::lay(host, None);
        if let Ok(lifted) = lifted.as_ref()
            && !lifted.is_empty()
        {
            reboot_for(host, lifted)?;
        }
        undone.and(lifted.map(drop))
    }
}

impl<'a> LinuxDut<'a> {
    pub(super) fn new(context: DutContext<'a>) -> LinuxDut<'a> {
        let (loaded, original_sysctls, threads) = (Loaded::default(), BTreeMap::new(), Vec::new());
        LinuxDut { context, loaded, original_sysctls, threads }
    }

    fn put_all(&self, host: &dyn Host, settings: &[(String, &str)]) -> Result<(), BenchError> {
        let paths = settings.iter().map(|(name, value)| (sysctl_path(name), (*value).to_owned()));
        self.context.keeper.put(host, &paths.collect::<Vec<_>>())
    }

    /// Paths of the same setting for both interfaces.
    fn of_both(&self, family: &str, key: &str) -> [String; 2] {
        // With slashes: interface names may contain dots.
        let links = self.context.links.both();
        links.map(|link| format!("net/{family}/conf/{}/{key}", link.interface))
    }

    fn forwarding(&self, host: &dyn Host, settings: &Settings) -> Result<(), BenchError> {
        let DutContext { links, keeper, .. } = self.context;
        if !keeper.is_namespace() {
            forwarding::contain(host, keeper, links)?;
        }
        // The interfaces' own values come first: a value of `default` propagates to interfaces
        // without their own, and the original could then no longer be read.
        let mut expected: Vec<(String, &str)> =
            self.of_both("ipv4", "rp_filter").map(|name| (name, "0")).into();
        let plain = [("conf.default.rp_filter", "0"), ("conf.all.rp_filter", "0")];
        let plain = plain.into_iter().chain([("ip_forward", "1")]);
        expected.extend(plain.map(|(name, value)| (format!("net.ipv4.{name}"), value)));
        self.put_all(host, &expected)?;
        self.redirects(host, settings)?;
        if has_inet6(host) {
            let of_both = |key, value| self.of_both("ipv6", key).map(|name| (name, value));
            let mut expected: Vec<(String, &str)> = of_both("accept_dad", "0").into();
            expected.push(("net.ipv6.conf.all.forwarding".to_owned(), "1"));
            self.put_all(host, &expected)
        } else if settings.traffic.family == Family::Inet6 {
            need_inet6(host)
        } else {
            Ok(())
        }
    }

    fn redirects(&self, host: &dyn Host, settings: &Settings) -> Result<(), BenchError> {
        let value = if settings.dut.icmp_redirect { "1" } else { "0" };
        let names = ["default", "all"].map(|scope| format!("net.ipv4.conf.{scope}.send_redirects"));
        let names = self.of_both("ipv4", "send_redirects").into_iter().chain(names);
        self.put_all(host, &names.map(|name| (name, value)).collect::<Vec<_>>())
    }

    fn routes(
        &self,
        host: &dyn Host,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let (family, count) = (settings.traffic.family, settings.dut.routes);
        let destinations = settings.traffic.flows.destinations;
        let prefixes = routes::prefixes(family, count, destinations, self.context.links);
        let text = routes::batch(&prefixes, self.context.keeper.mark_routes(host)?);
        host.run(&["ip", "-batch", "-"], &text)?;
        let found = match family {
            Family::Inet => routes::count_inet(&host.get("/proc/thread-self/net/fib_triestat")?),
            Family::Inet6 => routes::count_inet6(&host.get("/proc/thread-self/net/rt6_stats")?),
        };
        // The table also contains the links' own prefixes, so a larger number is correct.
        let found = found.unwrap_or(0);
        let enough = if found >= u64::from(count) { count.to_string() } else { found.to_string() };
        findings.expect("routes", &count.to_string(), &enough);
        Ok(())
    }

    /// Reads the firewall back, and raises the limit of its state table if needed.
    fn verify_firewall(
        &self,
        host: &dyn Host,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let keeper = self.context.keeper;
        self.loaded.verify(host, keeper, settings, findings)?;
        if settings.dut.firewall != Firewall::Stateful {
            return Ok(());
        }
        // The machine's limit of connections is raised if the flows need it.
        const PATH: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
        let needed = u64::from(settings.traffic.flows.count()) * 5 / 4 + 1024;
        let limit: u64 = keeper.get(host, PATH)?.parse().unwrap_or(0);
        if limit < needed {
            keeper.change(host, PATH, &needed.to_string())?;
        }
        let found = keeper.get(host, PATH)?;
        findings.facts.insert("sysctl net.netfilter.nf_conntrack_max".into(), found);
        Ok(())
    }

    fn verify_sysctls(
        &self,
        host: &dyn Host,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        for (name, value) in &settings.dut.sysctl {
            findings.expect_sysctl(
                name,
                value,
                &self.context.keeper.get(host, &sysctl_path(name))?,
            );
        }
        Ok(())
    }

    fn set_sysctl(&mut self, host: &dyn Host, name: &str, value: &str) -> Result<(), BenchError> {
        let (keeper, path) = (self.context.keeper, sysctl_path(name));
        let old = keeper.get(host, &path).map_err(|error| match error {
            BenchError::File { .. } => BenchError::Refused(format!(
                "sysctl {name}: this kernel has none of that name (`sysctl -a` lists them)"
            )),
            other => other,
        })?;
        self.original_sysctls.entry(name.to_owned()).or_insert(old);
        keeper.change(host, &path, value)
    }
}

fn has_inet6(host: &dyn Host) -> bool {
    host.get("/proc/sys/net/ipv6/conf/all/forwarding").is_ok()
}

/// Fails unless the kernel supports IPv6.
///
/// # Errors
/// [`BenchError::Environment`].
pub fn need_inet6(host: &dyn Host) -> Result<(), BenchError> {
    if has_inet6(host) {
        return Ok(());
    }
    Err(BenchError::environment(
        "this kernel has no IPv6",
        "boot it without ipv6.disable=1, or take family = \"inet\"",
    ))
}

/// `/proc/sys` path of a sysctl. Dots are separators, as in sysctl(8); a name that contains slashes
/// is taken as a path (for interface names with dots).
fn sysctl_path(name: &str) -> String {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    format!("/proc/sys/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::place;
    use crate::links::Links;
    use crate::router::Wires;
    use crate::undo::Undo;
    use fwdlab_host::FakeHost;
    use fwdlab_model::settings::Arrangement;
    use std::path::Path;
    use std::sync::Mutex;

    #[test]
    fn sysctl_path_accepts_dots_and_slashes() {
        assert_eq!(sysctl_path("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(sysctl_path("net/ipv4/conf/a.b/x"), "/proc/sys/net/ipv4/conf/a.b/x");
    }

    /// DUT on a machine of a laboratory, whose interfaces are up.
    fn with_dut(test: impl FnOnce(&mut LinuxDut<'_>, &FakeHost)) {
        let (links, wires, here) = (Links::of_namespaces(), Wires::Sockets, Path::new(""));
        let context = DutContext {
            links: &links,
            experiment: here,
            program: here,
            keeper: &Undo,
            wires: &wires,
        };
        let mut host = FakeHost::default();
        let flags = |name: &str| (format!("/sys/class/net/{name}/flags"), "0x1003".to_owned());
        host.files = Mutex::new(["d0", "d1"].map(flags).into());
        test(&mut LinuxDut::new(context), &host);
    }

    /// Position of the first command that contains a word.
    fn position(host: &FakeHost, word: &str) -> Option<usize> {
        let commands = host.commands.lock().expect("commands");
        commands.iter().position(|(argv, _)| argv.join(" ").contains(word))
    }

    #[test]
    fn reset_records_that_interfaces_were_up() {
        with_dut(|dut, host| {
            let placement = place(&[0, 1], Arrangement::Open, 1, 1);
            let findings = &mut Findings::default();
            // Configuring needs more than this host has.
            let _ = dut.reset(host, &Settings::default(), &placement, findings);
            for name in ["d0", "d1"] {
                let noted = position(host, &format!("run ip link set {name} up")).expect("noted");
                assert!(noted < position(host, &format!("ip link set {name} down")).expect("down"));
            }
        });
    }

    #[test]
    fn side_effects_are_recorded_before_forwarding_is_enabled() {
        with_dut(|dut, host| {
            dut.forwarding(host, &Settings::default()).expect("enabled");
            let recorded = position(host, "for file in ipv4/ip_forward").expect("listed");
            assert!(recorded < position(host, "/proc/sys/net/ipv4/ip_forward 1").expect("enabled"));
        });
    }
}
