//! Settings that are applied without a reboot and read back: interfaces, routes, neighbours and
//! sysctls.
//!
//! Only differences are changed, so reapplying a variant costs no more than reading. Other
//! addresses of the DUT are left alone.

use super::backup::Backup;
use super::fib;
use super::plan::{self, OFFLOADS_OFF, Plan, RC};
use crate::findings::Findings;
use crate::links::{Link, Links, mac};
use crate::routes as table;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Settings;
use fwdlab_packet::address::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of routes that one command adds or removes.
const ROUTES_AT_ONCE: usize = 2000;
/// Capabilities of an interface controlled by `offloads`, in the spelling of ifconfig(8);
/// [`OFFLOADS_OFF`] switches them off.
const OFFLOADS: [&str; 4] = ["TSO4", "TSO6", "LRO", "VLAN_HWTSO"];

/// Sysctl that selects the sources of entropy.
const HARVEST: &str = "kern.random.harvest.mask";
/// Writable bits of the mask (random(4), `RANDOM_ENVIRONMENTAL_END`); higher bits are hardware
/// generators, which cannot be changed.
const HARVEST_WRITABLE: u32 = 0x7ff;

/// State of an interface as ifconfig(8) reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Flags from `flags=` of the first line: `UP`, `RUNNING`.
    pub flags: BTreeSet<String>,
    /// Largest packet, bytes.
    pub mtu: Option<u32>,
    /// Enabled options: `options=`.
    pub options: BTreeSet<String>,
    /// Capabilities: `capabilities=`, with `ifconfig -m`.
    pub capabilities: BTreeSet<String>,
    /// MAC as printed.
    pub ether: String,
    /// Addresses with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// `active` if there is a signal; empty if there is no medium (lo0).
    pub status: String,
}

impl Interface {
    /// Reads the output of `ifconfig -m INTERFACE`.
    pub fn parse(text: &str) -> Interface {
        let mut found = Interface::default();
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value_of = |name: &str| {
                let at = words.iter().position(|word| *word == name)?;
                words.get(at + 1).copied()
            };
            match words.as_slice() {
                ["ether", ether, ..] => found.ether = (*ether).to_owned(),
                ["status:", ..] => found.status = line["status:".len()..].trim().to_owned(),
                ["inet", address, ..] => {
                    let mask = value_of("netmask").and_then(|m| m.strip_prefix("0x"));
                    let mask = mask.and_then(|mask| u32::from_str_radix(mask, 16).ok());
                    let address = address.split('/').next().and_then(|a| a.parse().ok());
                    let address = address.map(|address: Ipv4Addr| address.into());
                    if let (Some(address), Some(mask)) = (address, mask) {
                        found.addresses.push((address, mask.count_ones() as u8));
                    }
                }
                ["inet6", address, ..] => {
                    let length = value_of("prefixlen").and_then(|length| length.parse().ok());
                    let address = address.parse::<Ipv6Addr>();
                    if let (Ok(address), Some(length @ 0..=128)) = (address, length) {
                        found.addresses.push((address.into(), length));
                    }
                }
                [_, word, ..] if word.starts_with("flags=") => {
                    found.flags = flags(word);
                    found.mtu = value_of("mtu").and_then(|mtu| mtu.parse().ok());
                }
                _ if line.starts_with("options=") => found.options = flags(line),
                _ if line.starts_with("capabilities=") => found.capabilities = flags(line),
                _ => {}
            }
        }
        found
    }
}

/// Flags of a line such as `options=6c07bb<RXCSUM,TXCSUM>`.
fn flags(line: &str) -> BTreeSet<String> {
    let inner = line.split_once('<').map_or("", |(_, rest)| rest.trim_end_matches('>'));
    inner.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned).collect()
}

/// Sets addresses and offloads of both interfaces.
///
/// # Errors
/// Fails if an interface is missing or rejects a setting.
pub fn interfaces(
    host: &dyn Host,
    plan: &Plan,
    links: &Links,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    for link in links.both() {
        let read = || {
            let text = host.run(&["ifconfig", "-m", &link.interface], "")?;
            Ok::<_, BenchError>(Interface::parse(&text))
        };
        if !plan.governs(RC) {
            set_interface(host, link, &read()?, settings.dut.offloads)?;
        }
        let found = read()?;
        let name = &link.interface;
        findings.expect(&format!("{name} mac"), &mac::text(link.mac), &found.ether);
        for (address, length) in &link.addresses {
            let is_set = found.addresses.contains(&(*address, *length));
            let text = format!("{address}/{length}");
            findings.expect(
                &format!("{name} {text}"),
                "set",
                if is_set { "set" } else { "missing" },
            );
        }
        let on: Vec<&str> =
            OFFLOADS.into_iter().filter(|flag| found.options.contains(*flag)).collect();
        if settings.dut.offloads || plan.governs(RC) {
            findings.facts.insert(format!("{name} offloads"), on.join(" "));
        } else {
            let on = if on.is_empty() { "off".to_owned() } else { on.join(" ") };
            findings.expect(&format!("{name} offloads"), "off", &on);
        }
        if !found.status.is_empty() {
            findings.expect(&format!("{name} link"), "active", &found.status);
        }
    }
    Ok(())
}

fn set_interface(
    host: &dyn Host,
    link: &Link,
    found: &Interface,
    offloads: bool,
) -> Result<(), BenchError> {
    let name = link.interface.as_str();
    let mut switches: Vec<&str> = Vec::new();
    for (flag, off) in OFFLOADS.into_iter().zip(OFFLOADS_OFF) {
        let (on, can) = (found.options.contains(flag), found.capabilities.contains(flag));
        match offloads {
            true if !on && can => switches.push(&off[1..]),
            false if on => switches.push(off),
            _ => {}
        }
    }
    let argv: Vec<&str> = [&["ifconfig", name][..], &switches, &["up"]].concat();
    host.run(&argv, "")?;
    if link.addresses.iter().any(|(address, _)| address.is_ipv6()) {
        // IPv6 is disabled on an interface without an IPv6 address at boot.
        host.run(&["ifconfig", name, "inet6", "-ifdisabled"], "")?;
    }
    for (address, length) in &link.addresses {
        if found.addresses.contains(&(*address, *length)) {
            continue;
        }
        let (address, length) = (address.to_string(), length.to_string());
        if address.contains(':') {
            let argv = ["ifconfig", name, "inet6", &address, "prefixlen", &length, "alias"];
            host.run(&argv, "")?;
        } else {
            let address = format!("{address}/{length}");
            host.run(&["ifconfig", name, "inet", &address, "alias"], "")?;
        }
    }
    Ok(())
}

/// Destination of a route: address and prefix length.
pub type Prefix = (IpAddr, u8);

fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let max_length = if address.is_ipv4() { 32 } else { 128 };
    Some((address, length.unwrap_or(max_length))).filter(|(_, length)| *length <= max_length)
}

/// Destinations with next hops from the output of `netstat -rnW`; directly connected ones are left
/// out.
pub fn routing_table(text: &str) -> BTreeMap<Prefix, IpAddr> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|row| Some((prefix(row.first()?)?, row.get(1)?.parse().ok()?))).collect()
}

/// Sets static routes: to both sides for IPv4 and IPv6, plus the experiment's additional ones for
/// the traffic's address family.
///
/// # Errors
/// Fails if the table cannot be read or a route is rejected.
pub fn routes(
    host: &dyn Host,
    plan: &Plan,
    links: &Links,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let gateways = plan::gateways(links);
    let traffic = settings.traffic.family;
    let mut expected = BTreeMap::new();
    for family in [Family::Inet, Family::Inet6] {
        let of_family: Vec<_> = gateways.iter().filter(|entry| entry.family == family).collect();
        let count = if family == traffic { settings.dut.routes } else { 2 };
        let [sender, receiver] = of_family[..] else {
            if family == traffic {
                return Err(BenchError::Refused(format!(
                    "traffic.family = \"{}\": not all peers of the DUT have an address of it\n  \
                     next step: add them to the laboratory's file",
                    settings.traffic.family.name()
                )));
            }
            continue;
        };
        let all = table::prefixes(family, count, settings.traffic.flows.destinations, links);
        table::keep_ways(&all, links)?;
        for (index, route) in all.iter().enumerate() {
            let gateway = if index == 0 { sender.gateway } else { receiver.gateway };
            expected.insert(route.prefix, gateway);
        }
    }
    let read = || {
        let text = host.run(&["netstat", "-rnW"], "")?;
        Ok::<_, BenchError>(routing_table(&text))
    };
    let gateways_in_use: BTreeSet<IpAddr> = gateways.iter().map(|entry| entry.gateway).collect();
    let found = read()?;
    let stale = found.iter().filter(|(p, gateway)| {
        expected.get(p).map_or(gateways_in_use.contains(gateway), |expected| expected != *gateway)
    });
    let missing = expected.iter().filter(|(prefix, gateway)| found.get(prefix) != Some(gateway));
    let mut lines: Vec<String> = stale.map(|(p, _)| route_words("delete", p, None)).collect();
    lines.extend(missing.map(|(p, gateway)| route_words("add", p, Some(gateway))));
    if !(plan.governs(RC) && settings.dut.routes <= 2) {
        for part in lines.chunks(ROUTES_AT_ONCE) {
            host.run(&["xargs", "-L", "1", "route", "-n", "-q"], &part.join("\n"))?;
        }
    }
    let found = if lines.is_empty() { found } else { read()? };
    let inet = traffic == Family::Inet;
    let of_traffic = expected.iter().filter(|((address, _), _)| address.is_ipv4() == inet);
    let count = of_traffic.filter(|(prefix, gateway)| found.get(prefix) == Some(gateway)).count();
    findings.expect("routes", &settings.dut.routes.max(2).to_string(), &count.to_string());
    Ok(())
}

/// A line of arguments for route(8).
fn route_words(verb: &str, (address, length): &Prefix, gateway: Option<&IpAddr>) -> String {
    let gateway = gateway.map(|gateway| format!(" {gateway}")).unwrap_or_default();
    match address {
        IpAddr::V4(_) => format!("{verb} -net {address}/{length}{gateway}"),
        IpAddr::V6(_) => format!("{verb} -inet6 {address} -prefixlen {length}{gateway}"),
    }
}

/// Adds permanent entries for all peers to the ARP and NDP tables.
///
/// # Errors
/// Fails if an entry is rejected.
pub fn neighbours(
    host: &dyn Host,
    plan: &Plan,
    links: &Links,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let read = || {
        let mut all = host.run(&["arp", "-an"], "")?;
        if plan::families(links).contains(&Family::Inet6) {
            all.push_str(&host.run(&["ndp", "-an"], "")?);
        }
        Ok::<_, BenchError>(permanent(&all))
    };
    let before = read()?;
    let expected: Vec<(IpAddr, [u8; 6])> = links
        .both()
        .into_iter()
        .flat_map(|link| &link.peers)
        .flat_map(|peer| peer.addresses.iter().map(|address| (*address, peer.mac)))
        .collect();
    let mut changed = false;
    for (address, hardware) in &expected {
        if before.get(address) == Some(hardware) || plan.governs(RC) {
            continue;
        }
        let (text, hardware) = (address.to_string(), mac::text(*hardware));
        let argv = match address {
            IpAddr::V4(_) => ["arp", "-S", &text, &hardware],
            IpAddr::V6(_) => ["ndp", "-s", &text, &hardware],
        };
        host.run(&argv, "")?;
        changed = true;
    }
    let after = if changed { read()? } else { before };
    for (address, hardware) in expected {
        let found = after.get(&address).map_or("none".to_owned(), |found| mac::text(*found));
        findings.expect(&format!("neighbour {address}"), &mac::text(hardware), &found);
    }
    Ok(())
}

/// Permanent entries from the output of `arp -an` (`? (198.18.0.2) at 00:07:43:2f:fe:b1 on cxl0
/// permanent`) and `ndp -an` (`2001:2::2 00:07:43:2f:fe:b1 cxl0 permanent`).
pub fn permanent(text: &str) -> BTreeMap<IpAddr, [u8; 6]> {
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.contains(&"permanent") {
            return None;
        }
        let bare = |word: &&str| word.trim_matches(['(', ')']).parse::<IpAddr>().ok();
        Some((words.iter().find_map(bare)?, words.iter().find_map(|word| hardware(word))?))
    };
    text.lines().filter_map(entry).collect()
}

/// Parses a MAC with or without leading zeros.
fn hardware(word: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> =
        word.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

/// Sets sysctls and records their old values; restores those that an earlier variant set and this
/// one does not.
///
/// # Errors
/// Fails if a sysctl does not exist or its value is rejected.
pub fn sysctls(
    host: &dyn Host,
    backup: &Backup,
    plan: &Plan,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let read = |name: &str| {
        let text = host.run(&["sysctl", "-n", name], "")?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok::<_, BenchError>(if name == HARVEST { writable_sources(&text) } else { text })
    };
    let set = |name: &str, value: &str| host.run(&["sysctl", &format!("{name}={value}")], "");
    let mut expected = plan.sysctls.clone();
    if !plan.governs(RC) {
        expected.extend(plan.implied.clone());
        expected.extend(plan.sysctls.clone());
    }
    for (name, old) in backup.sysctls()? {
        if !expected.contains_key(&name) {
            match put_back(host, backup, &name, &old) {
                // Not fatal: a warning about this variant.
                Err(BenchError::Program { .. }) => {
                    findings.expect(&format!("sysctl {name}"), &old, &read(&name)?);
                }
                other => other?,
            }
        }
    }
    for (name, value) in &expected {
        let old = read(name)?;
        if old != *value {
            backup.remember_sysctl(name, &old)?;
            fib::before_setting(host, backup, name, value)?;
            set(name, value)?;
        }
    }
    for (name, value) in plan.implied.iter().chain(&plan.sysctls) {
        let value = plan.sysctls.get(name).unwrap_or(value);
        findings.expect(&format!("sysctl {name}"), value, &read(name)?);
    }
    fib::unload(host, backup, plan)?;
    fib::read_back(host, backup, plan, findings)
}

/// Restores a sysctl. Skips one that no longer exists because its module is unloaded.
///
/// # Errors
/// Fails if the value is rejected.
pub fn put_back(host: &dyn Host, backup: &Backup, name: &str, old: &str) -> Result<(), BenchError> {
    match host.run(&["sysctl", &format!("{name}={old}")], "") {
        Err(BenchError::Program { why, .. }) if why.contains("unknown oid") => {}
        other => drop(other?),
    }
    backup.forget_sysctl(name)
}

/// The writable part of a harvest mask.
fn writable_sources(mask: &str) -> String {
    mask.parse::<u32>()
        .map_or_else(|_| mask.to_owned(), |mask| (mask & HARVEST_WRITABLE).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harvest_mask_reads_back_without_hardware_generators() {
        // Mask 351 read back as 16735 on FreeBSD 16 on an Atom with RDRAND (netbenches).
        assert_eq!(writable_sources("16735"), "351");
        assert_eq!(writable_sources("351"), "351");
        assert_eq!(writable_sources("none"), "none");
    }

    /// Composed from ifconfig(8) and its source code.
    const IFCONFIG: &str = "cxl0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\toptions=6ec07bb<RXCSUM,TXCSUM,VLAN_MTU,TSO4,LRO>\n\tcapabilities=6ec07bb<RXCSUM,TXCSUM,TSO4,TSO6,LRO,VLAN_HWTSO>\n\tether 00:07:43:2e:e4:70\n\tinet 198.18.0.10 netmask 0xffffff00 broadcast 198.18.0.255\n\tinet6 fe80::207:43ff:fe2e:e470%cxl0 prefixlen 64 scopeid 0x1\n\tinet6 2001:2::10 prefixlen 64\n\tnd6 options=21<PERFORMNUD,AUTO_LINKLOCAL>\n\tmedia: Ethernet 40Gbase-LR4 <full-duplex>\n\tstatus: no carrier\n";

    #[test]
    fn interface_parses_ifconfig_output() {
        let found = Interface::parse(IFCONFIG);
        let address = |text: &str| prefix(text).expect("a prefix");
        assert_eq!(found.addresses, [address("198.18.0.10/24"), address("2001:2::10/64")]);
        assert_eq!(found.ether, "00:07:43:2e:e4:70");
        assert_eq!((found.status.as_str(), found.mtu), ("no carrier", Some(1500)));
        assert!(found.flags.contains("RUNNING") && !found.flags.contains("PERFORMNUD"));
        assert!(found.options.contains("TSO4") && !found.options.contains("TSO6"));
        assert!(found.capabilities.contains("VLAN_HWTSO"));
    }

    #[test]
    fn routing_and_neighbour_tables_are_parsed() {
        let text = "Routing tables\n\nInternet:\nDestination        Gateway            Flags     Netif Expire\ndefault            192.168.1.1        UGS       igb1\n198.18.0.0/16      198.18.0.108       UGS       cxl0\n198.18.0.0/24      link#1             U         cxl0\n198.19.1.7         198.19.0.108       UGHS      cxl1\n\nInternet6:\n2001:2::/49        2001:2::108        UGS       cxl0\n";
        let found = routing_table(text);
        assert_eq!(found.len(), 3, "{found:?}");
        let host = prefix("198.19.1.7/32").expect("a host");
        assert_eq!(found.get(&host).map(ToString::to_string).as_deref(), Some("198.19.0.108"));
        let text = "? (198.18.0.2) at 00:07:43:2f:fe:b1 on cxl0 permanent [ethernet]\n? (198.18.0.3) at 00:07:43:2f:fe:b2 on cxl0 expires in 2 seconds [ethernet]\n2001:2::2   0:7:43:2f:fe:b1  cxl0 permanent R\n";
        let found = permanent(text);
        assert_eq!(found.len(), 2);
        assert!(found.values().all(|mac| *mac == [0, 7, 0x43, 0x2f, 0xfe, 0xb1]));
    }
}
