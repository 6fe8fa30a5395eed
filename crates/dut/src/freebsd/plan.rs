//! Contents of a FreeBSD DUT's configuration files for given settings.
//!
//! All functions are pure: a file's text depends only on its original contents and on the settings,
//! never on an earlier variant.

use super::firewall::{self, DEFAULT_TO_ACCEPT, Program};
use super::queues;
use super::rc::{Document, Format};
use super::system::System;
use crate::links::mac;
use crate::links::{Link, Links, Peer};
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::{Napi, Settings};
use fwdlab_packet::address::{Family, Side, routed_prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// File of boot tunables.
pub const LOADER: &str = "/boot/loader.conf.local";
/// File of startup variables.
pub const RC: &str = "/etc/rc.conf";
/// Arguments of ifconfig(8) that switch offloads off.
pub const OFFLOADS_OFF: [&str; 4] = ["-tso4", "-tso6", "-lro", "-vlanhwtso"];
/// Names of the generator's and the receiver's entries in rc.conf(5).
const NAMES: [&str; 2] = ["generator", "receiver"];

/// Contents of the configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Lines of loader.conf(5).
    pub loader: BTreeMap<String, String>,
    /// Required number of queues of each interface, with the names of the tunables in `loader` that
    /// set it; no entry if the experiment sets one of them itself.
    pub queues: BTreeMap<String, (String, Vec<String>)>,
    /// Lines of rc.conf(5).
    pub rc: BTreeMap<String, String>,
    /// Lists of rc.conf(5); fwdlab's entries are added to the DUT's own.
    pub lists: BTreeMap<String, Vec<String>>,
    /// Path and text of the firewall's rules.
    pub rules: Option<(&'static str, String)>,
    /// The firewall program.
    pub firewall: Option<Program>,
    /// Overlay files, copied unchanged.
    pub overlay: BTreeMap<String, String>,
    /// Sysctls that the experiment or its firewall names.
    pub sysctls: BTreeMap<String, String>,
    /// Sysctls equivalent to fwdlab's lines of rc.conf(5).
    pub implied: BTreeMap<String, String>,
}

impl Plan {
    /// The plan for these settings on this machine.
    ///
    /// # Errors
    /// Fails if a setting has no meaning on FreeBSD.
    pub fn new(settings: &Settings, links: &Links, system: &System) -> Result<Plan, BenchError> {
        let remote = &settings.dut.remote;
        check_supported(settings)?;
        let mut plan = Plan { firewall: Program::of(settings)?, ..Plan::default() };
        if let Some(overlay) = &remote.overlay {
            for (path, text) in &overlay.files {
                let path = path.trim_start_matches('/');
                if path.is_empty() || path.split('/').any(|part| ["", ".", ".."].contains(&part)) {
                    return Err(BenchError::Refused(format!(
                        "overlay {}: `{path}` is no path from the DUT's root",
                        overlay.directory
                    )));
                }
                plan.overlay.insert(format!("/{path}"), text.clone());
            }
        }
        plan.add_loader(settings, links, system)?;
        plan.add_rc(settings, links)?;
        if let Some(program) = plan.firewall {
            plan.rules = Some((program.path(), firewall::ruleset(program, settings).0));
            plan.sysctls.extend(firewall::sysctls(program, settings));
        }
        plan.add_sysctls(settings, links);
        plan.sysctls.extend(settings.dut.sysctl.clone());
        Ok(plan)
    }

    /// True if an overlay contains the file; its settings are then only read back.
    pub fn governs(&self, path: &str) -> bool {
        self.overlay.contains_key(path)
    }

    fn add_sysctls(&mut self, settings: &Settings, links: &Links) {
        let redirect = if settings.dut.icmp_redirect { "1" } else { "0" };
        let drops = if settings.dut.icmp_redirect { "0" } else { "1" };
        let governed = self.governs(RC);
        let mut set = |name: &str, value: &str| self.implied.insert(name.into(), value.into());
        for family in families(links) {
            let tree = if family == Family::Inet { "net.inet.ip" } else { "net.inet6.ip6" };
            set(&format!("{tree}.forwarding"), "1");
            if !governed {
                set(&format!("{tree}.redirect"), redirect);
            }
        }
        if !governed {
            set("net.inet.icmp.drop_redirect", drops);
        }
        if let Some(mask) = settings.dut.remote.harvest_mask {
            self.sysctls.insert("kern.random.harvest.mask".into(), mask.to_string());
        }
    }

    fn add_loader(
        &mut self,
        settings: &Settings,
        links: &Links,
        system: &System,
    ) -> Result<(), BenchError> {
        let remote = &settings.dut.remote;
        if self.governs(LOADER) {
            return match remote.loader.keys().next() {
                Some(name) => Err(overlay_conflict(&format!("loader.{name}"), LOADER)),
                None => Ok(()),
            };
        }
        for link in links.both() {
            let queues = settings.dut.queues;
            let found = queues::tunables(&link.interface, queues, system.release, &remote.loader)?;
            let names = found.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            if !names.is_empty() && !names.iter().any(|name| remote.loader.contains_key(name)) {
                self.queues.insert(link.interface.clone(), (queues.to_string(), names));
            }
            self.loader.extend(found);
        }
        if self.firewall == Some(Program::Ipfw) {
            self.loader.insert(DEFAULT_TO_ACCEPT.into(), "1".into());
        }
        if settings.dut.bind_queues {
            self.loader.insert("net.isr.bindthreads".into(), "1".into());
        }
        for (name, value) in &remote.loader {
            check(Format::Loader, "loader", name, value)?;
            self.loader.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    fn add_rc(&mut self, settings: &Settings, links: &Links) -> Result<(), BenchError> {
        let remote = &settings.dut.remote;
        if self.governs(RC) {
            return match remote.rc.keys().next() {
                Some(name) => Err(overlay_conflict(&format!("rc.{name}"), RC)),
                None => Ok(()),
            };
        }
        let mut set = |name: &str, value: String| {
            self.rc.insert(name.to_owned(), value);
        };
        for link in links.both() {
            for (name, value) in addresses(link, settings.dut.offloads) {
                set(&name, value);
            }
        }
        let families = families(links);
        if families.contains(&Family::Inet) {
            set("gateway_enable", "YES".into());
        }
        if families.contains(&Family::Inet6) {
            set("ipv6_gateway_enable", "YES".into());
        }
        let drops = if settings.dut.icmp_redirect { "NO" } else { "YES" };
        set("icmp_drop_redirect", drops.into());
        if let Some(mask) = remote.harvest_mask {
            set("harvest_mask", mask.to_string());
        }
        self.add_routes_and_neighbours(links);
        for (name, value) in &remote.rc {
            check(Format::Rc, "rc", name, value)?;
            if is_runtime(name, links) {
                return Err(BenchError::Refused(format!(
                    "rc.{name}: fwdlab sets this itself, from the laboratory's file and the \
                     experiment's own words\n  next step: leave it out, or lay a whole {RC} over \
                     the DUT's (overlay)"
                )));
            }
            self.rc.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    fn add_routes_and_neighbours(&mut self, links: &Links) {
        for Entry { family, name, gateway, prefix, .. } in gateways(links) {
            let (list, variable, value) = match family {
                Family::Inet => ("static_routes", "route_", format!("-net {prefix} {gateway}")),
                Family::Inet6 => {
                    let (network, length) = prefix.split_once('/').unwrap_or((prefix, "128"));
                    let value = format!("{network} -prefixlen {length} {gateway}");
                    ("ipv6_static_routes", "ipv6_route_", value)
                }
            };
            self.rc.insert(format!("{variable}{name}"), value);
            self.lists.entry(list.to_owned()).or_default().push(name.to_owned());
        }
        for (name, peer) in peers(links) {
            for address in &peer.addresses {
                let (list, variable) = match address {
                    IpAddr::V4(_) => ("static_arp_pairs", "static_arp_"),
                    IpAddr::V6(_) => ("static_ndp_pairs", "static_ndp_"),
                };
                let value = format!("{address} {}", mac::text(peer.mac));
                self.rc.insert(format!("{variable}{name}"), value);
                self.lists.entry(list.to_owned()).or_default().push(name.clone());
            }
        }
    }

    /// Texts of all files that must differ from their original contents, by path; `original`
    /// returns the original content of a path.
    ///
    /// # Errors
    /// The errors of `original`.
    pub fn files(
        &self,
        mut original: impl FnMut(&str) -> Result<Option<String>, BenchError>,
    ) -> Result<BTreeMap<String, String>, BenchError> {
        let mut files = BTreeMap::new();
        if !self.governs(LOADER) && !self.loader.is_empty() {
            let before = original(LOADER)?.unwrap_or_default();
            let mut document = Document::parse(Format::Loader, &before);
            self.loader.iter().for_each(|(name, value)| document.set(name, value));
            files.insert(LOADER.to_owned(), document.text());
        }
        if !self.governs(RC) {
            let before = original(RC)?.unwrap_or_default();
            files.insert(RC.to_owned(), self.rc_text(&before));
        }
        if let Some((path, text)) = &self.rules {
            files.insert((*path).to_owned(), text.clone());
        }
        files.extend(self.overlay.clone());
        Ok(files)
    }

    fn rc_text(&self, before: &str) -> String {
        let mut document = Document::parse(Format::Rc, before);
        let is_on = |name: &str| {
            let yes = ["yes", "true", "on", "1"];
            document.get(name).is_some_and(|v| yes.iter().any(|yes| v.eq_ignore_ascii_case(yes)))
        };
        let firewall = firewall::variables(self.firewall, is_on);
        for (name, value) in self.rc.iter().chain(firewall.iter().map(|(n, v)| (n, v))) {
            document.set(name, value);
        }
        for (name, additions) in &self.lists {
            let existing = document.get(name).unwrap_or_default().to_owned();
            // rc.conf(5) writes an empty list as `NO`.
            let mut names: Vec<&str> = existing.split_whitespace().filter(|n| *n != "NO").collect();
            names.extend(additions.iter().map(String::as_str));
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(*name));
            document.set(name, &names.join(" "));
        }
        document.text()
    }
}

/// Rejects settings that FreeBSD does not support.
fn check_supported(settings: &Settings) -> Result<(), BenchError> {
    if !settings.dut.rps.is_empty() {
        return Err(BenchError::Refused(
            "rps: FreeBSD has no receive packet steering\n  next step: leave it out; \
             net.isr.dispatch in `loader` chooses where packets are worked on"
                .into(),
        ));
    }
    if settings.dut.napi != Napi::Auto {
        return Err(BenchError::Refused(format!(
            "napi = \"{}\": only Linux has NAPI\n  next step: leave it out",
            settings.dut.napi.name()
        )));
    }
    for (name, value) in &settings.dut.sysctl {
        check(Format::Sysctl, "sysctl", name, value)?;
    }
    Ok(())
}

fn check(format: Format, table: &str, name: &str, value: &str) -> Result<(), BenchError> {
    if !format.is_name(name) {
        return Err(BenchError::Refused(format!("{table}: `{name}` is no name in such a file")));
    }
    if !format.is_value(value) {
        return Err(BenchError::Refused(format!(
            "{table}.{name}: {value:?} is no value that such a file can hold"
        )));
    }
    Ok(())
}

fn overlay_conflict(name: &str, path: &str) -> BenchError {
    BenchError::Refused(format!(
        "{name}: the overlay has a {path} of its own, which is laid down as it is\n  next step: \
         write it into that file"
    ))
}

/// Address families that both links have addresses of.
pub fn families(links: &Links) -> Vec<Family> {
    let has = |link: &Link, inet: bool| link.addresses.iter().any(|(a, _)| a.is_ipv4() == inet);
    let both_have = |inet| links.both().into_iter().all(|link| has(link, inet));
    let all = [(Family::Inet, true), (Family::Inet6, false)];
    all.into_iter().filter(|(_, inet)| both_have(*inet)).map(|(family, _)| family).collect()
}

/// A route to one side's half of the test network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Family.
    pub family: Family,
    /// Name of the route in rc.conf(5).
    pub name: &'static str,
    /// Next hop.
    pub gateway: IpAddr,
    /// Prefix with its length.
    pub prefix: &'static str,
    /// Interface that leads to the gateway.
    pub interface: &'a str,
}

/// Routes to both sides, for each family that the peers have.
pub fn gateways(links: &Links) -> Vec<Entry<'_>> {
    let sides = links.both().into_iter().zip(NAMES).zip([Side::Sender, Side::Receiver]);
    let mut all = Vec::new();
    for ((link, name), side) in sides {
        for family in [Family::Inet, Family::Inet6] {
            let is_of_family = |address: &&IpAddr| address.is_ipv4() == (family == Family::Inet);
            let gateway = link.peers.iter().flat_map(|peer| &peer.addresses).find(is_of_family);
            let prefix = routed_prefix(family, side);
            let interface = link.interface.as_str();
            all.extend(gateway.map(|&gateway| Entry { family, name, gateway, prefix, interface }));
        }
    }
    all
}

/// All peers with their names in rc.conf(5): `generator`, `generator2`, `receiver`.
pub fn peers(links: &Links) -> Vec<(String, &Peer)> {
    let mut all = Vec::new();
    for (link, name) in links.both().into_iter().zip(NAMES) {
        for (index, peer) in link.peers.iter().enumerate() {
            let number = if index == 0 { String::new() } else { (index + 1).to_string() };
            all.push((format!("{name}{number}"), peer));
        }
    }
    all
}

/// Spelling of an interface's name in variables of rc.conf(5) (rc.subr(8)).
fn variable(interface: &str) -> String {
    interface.replace(['.', '-', '/', '+'], "_")
}

/// Variables of an interface: first addresses, then aliases in order.
fn addresses(link: &Link, offloads: bool) -> Vec<(String, String)> {
    let name = format!("ifconfig_{}", variable(&link.interface));
    let off = if offloads { String::new() } else { format!(" {}", OFFLOADS_OFF.join(" ")) };
    let (mut all, mut aliases) = (Vec::new(), 0);
    let (mut inet, mut inet6) = (None, None);
    for (address, length) in &link.addresses {
        let (first, text) = match address {
            IpAddr::V4(_) => (&mut inet, format!("inet {address}/{length}")),
            IpAddr::V6(_) => (&mut inet6, format!("inet6 {address} prefixlen {length}")),
        };
        if first.is_none() {
            *first = Some(text);
        } else {
            all.push((format!("{name}_alias{aliases}"), text));
            aliases += 1;
        }
    }
    let first = inet.unwrap_or_else(|| "up".into());
    all.push((name.clone(), format!("{first}{off}")));
    all.extend(inet6.map(|text| (format!("{name}_ipv6"), text)));
    all
}

/// True for a variable of rc.conf(5) that is also applied without a reboot.
pub fn is_runtime(name: &str, links: &Links) -> bool {
    const WHOLE: [&str; 9] = [
        "gateway_enable",
        "ipv6_gateway_enable",
        "icmp_drop_redirect",
        "harvest_mask",
        "static_routes",
        "ipv6_static_routes",
        "static_arp_pairs",
        "static_ndp_pairs",
        "firewall_script",
    ];
    let of_firewall = || Program::ALL.iter().any(|program| program.variables().contains(&name));
    let of_link = |link: &&Link| {
        let variable_name = format!("ifconfig_{}", variable(&link.interface));
        let rest = name.strip_prefix(&variable_name);
        rest.is_some_and(|rest| rest.is_empty() || rest == "_ipv6" || rest.starts_with("_alias"))
    };
    let of_peer = || {
        let prefixes = ["route_", "ipv6_route_", "static_arp_", "static_ndp_"];
        let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
        let is_peer_name = |rest: &str| {
            let number = NAMES.iter().find_map(|name| rest.strip_prefix(name));
            number.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
        };
        rest.is_some_and(is_peer_name)
    };
    WHOLE.contains(&name) || of_firewall() || links.both().iter().any(of_link) || of_peer()
}

/// Parts of a file that take effect only at boot: assignments without comments and without settings
/// that are also applied at run time; of other files the whole text. Empty for a missing file.
pub fn at_boot(path: &str, text: Option<&str>, links: &Links) -> String {
    let Some(text) = text else { return String::new() };
    let Some(format) = Format::of(path) else { return format!("present\n{text}") };
    let document = Document::parse(format, text);
    let mut all = BTreeMap::new();
    for (name, value) in document.assignments() {
        // The default of ipfw is also set before its module is loaded.
        let is_runtime = match format {
            Format::Rc => is_runtime(name, links),
            _ => name == DEFAULT_TO_ACCEPT,
        };
        if !is_runtime {
            all.insert(name, value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    let lines = all.iter().map(|(name, value)| format!("{name}={value}\n"));
    lines.chain(document.other_lines().map(|line| format!("{line}\n"))).collect()
}
