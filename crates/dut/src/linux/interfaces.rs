//! A Linux DUT's interfaces: queues, interrupts, offloads, addresses, neighbours.

use super::scheduling;
use crate::cpu::Placement;
use crate::findings::Findings;
use crate::links::{Link, Links, mac};
use crate::restore::SettingRestorer;
use crate::undo::script;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Settings;
use std::fmt::Write;
use std::net::IpAddr;

/// Sets both interfaces up. Returns the polling threads of [`scheduling::apply`].
///
/// # Errors
/// Fails if something is missing or rejected.
pub(super) fn configure(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<Vec<u32>, BenchError> {
    for link in links.both() {
        // The queues come first: some drivers take the link down to change them.
        queues(host, keeper, &link.interface, settings.dut.queues, findings)?;
    }
    addresses(host, keeper, links)?;
    for link in links.both() {
        offloads(host, keeper, &link.interface, settings.dut.offloads, findings)?;
    }
    let threads = scheduling::apply(host, keeper, links, settings, placement, findings)?;
    if settings.dut.remote.bind_interrupts {
        for link in links.both() {
            interrupts(host, keeper, &link.interface, &placement.dut, findings)?;
        }
    }
    wait_for_signal(host, links)?;
    Ok(threads)
}

/// Sets the number of queue pairs with `ethtool -L` and reads it back.
fn queues(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    interface: &str,
    expected: u16,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let read = || host.run(&["ethtool", "-l", interface], "").map(|text| Channels::current(&text));
    let found = match read() {
        // Without channels the number of queues cannot be changed.
        Err(_) => queues_in_sysfs(host, interface)?,
        Ok(now) if now.pairs() == expected => expected.to_string(),
        Ok(now) => {
            keeper.note(host, &[format!("ethtool -L {interface} {}", now.words())])?;
            let words = now.with(expected).words();
            let argv = ["ethtool", "-L", interface].into_iter().chain(words.split(' '));
            host.run(&argv.collect::<Vec<_>>(), "")?;
            read()?.pairs().to_string()
        }
    };
    findings.expect(&format!("{interface} queues"), &expected.to_string(), &found);
    Ok(())
}

fn queues_in_sysfs(host: &dyn Host, interface: &str) -> Result<String, BenchError> {
    let count = r#"ls -d "/sys/class/net/$1/queues/"rx-* | wc -l"#;
    let found = host.run(&["/bin/sh", "-c", count, "queues", interface], "")?;
    Ok(found.trim().to_owned())
}

/// Current channels from `ethtool -l`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Receive-only queues.
    pub rx: u16,
    /// Transmit-only queues.
    pub tx: u16,
    /// Queues of both directions.
    pub combined: u16,
}

impl Channels {
    /// Parses the second half of the output; values that are not applicable are 0.
    pub fn current(text: &str) -> Channels {
        let current = text.split("Current hardware settings:").nth(1).unwrap_or("");
        let value = |name: &str| {
            let line = current.lines().find_map(|line| line.trim().strip_prefix(name));
            line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
        };
        Channels { rx: value("RX"), tx: value("TX"), combined: value("Combined") }
    }

    /// Number of queues of both directions.
    pub fn pairs(self) -> u16 {
        self.combined.saturating_add(self.rx.min(self.tx))
    }

    fn with(self, pairs: u16) -> Channels {
        match self.combined {
            0 => Channels { rx: pairs, tx: pairs, combined: 0 },
            _ => Channels { combined: pairs, rx: 0, tx: 0 },
        }
    }

    fn words(self) -> String {
        match self {
            Channels { rx: 0, tx: 0, combined } => format!("combined {combined}"),
            Channels { rx, tx, combined: 0 } => format!("rx {rx} tx {tx}"),
            Channels { rx, tx, combined } => format!("rx {rx} tx {tx} combined {combined}"),
        }
    }
}

/// Sets both interfaces up if they are down, without an automatic link-local address, which the
/// interface would announce to its neighbours.
///
/// # Errors
/// Fails if an interface is missing.
pub(crate) fn switch_on(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
) -> Result<(), BenchError> {
    for interface in links.both().map(|link| link.interface.as_str()) {
        if is_up(&flags(host, interface)?) {
            continue;
        }
        // The last note is undone first: an interface gets an address when `addr_gen_mode` is
        // restored, even while it is down.
        let flush = format!("ip -6 addr flush dev {interface} scope link 2>/dev/null || :");
        keeper.note(host, &[flush])?;
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/addr_gen_mode");
        if host.get(&path).is_ok() {
            keeper.put(host, &[(path, "1".into())])?;
        }
        keeper.note(host, &[format!("ip link set {interface} down")])?;
        host.run(&["ip", "link", "set", interface, "up"], "")?;
    }
    Ok(())
}

/// Adds missing addresses, and permanent neighbour entries.
fn addresses(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    links: &Links,
) -> Result<(), BenchError> {
    switch_on(host, keeper, links)?;
    let has_inet6 = super::has_inet6(host);
    let (mut text, mut undo) = (String::new(), Vec::new());
    for link in links.both() {
        let interface = &link.interface;
        let shown = host.run(&["ip", "-o", "addr", "show", "dev", interface], "")?;
        for (address, length) in missing(link, &shown, has_inet6) {
            let nodad = if address.is_ipv6() { " nodad" } else { "" };
            // The kernel removes IPv6 addresses when a link goes down.
            undo.push(format!("ip addr del {address}/{length} dev {interface} 2>/dev/null || :"));
            let _ = writeln!(text, "addr add {address}/{length} dev {interface}{nodad}");
        }
        for peer in &link.peers {
            let mac = mac::text(peer.mac);
            for address in peer.addresses.iter().filter(|a| a.is_ipv4() || has_inet6) {
                undo.push(format!("ip neigh del {address} dev {interface} 2>/dev/null || :"));
                let line = format!("{address} lladdr {mac} dev {interface} nud permanent");
                let _ = writeln!(text, "neigh replace {line}");
            }
        }
    }
    keeper.note(host, &undo)?;
    host.run(&["ip", "-batch", "-"], &text).map(drop)
}

/// Flags of an interface (netdevice(7)) from sysfs.
pub(crate) fn flags(host: &dyn Host, interface: &str) -> Result<String, BenchError> {
    host.get(&format!("/sys/class/net/{interface}/flags"))
}

/// IFF_UP is the lowest bit of an interface's flags (netdevice(7)).
pub fn is_up(flags: &str) -> bool {
    u32::from_str_radix(flags.trim_start_matches("0x"), 16).is_ok_and(|flags| flags & 1 == 1)
}

/// Addresses of a link that are missing in the output of `ip -o addr show`.
fn missing(link: &Link, shown: &str, has_inet6: bool) -> Vec<(IpAddr, u8)> {
    let is_shown = |address: IpAddr, length: u8| {
        let expected = format!("{address}/{length}");
        shown.split_whitespace().any(|word| word == expected)
    };
    let of_kernel = link.addresses.iter().filter(|(address, _)| address.is_ipv4() || has_inet6);
    of_kernel.copied().filter(|(address, length)| !is_shown(*address, *length)).collect()
}

/// Features by their long names, with the names for `ethtool -K`.
const FEATURES: [(&str, &str); 5] = [
    ("generic-receive-offload", "gro"),
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("rx-udp-gro-forwarding", "rx-udp-gro-forwarding"),
    ("rx-gro-list", "rx-gro-list"),
];

fn offloads(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    interface: &str,
    allowed: bool,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    // A virtual interface polls (NAPI) only with GRO; without it frames would be lost during
    // operation. UDP is merged only if the features named after it are on.
    let device = format!("/sys/class/net/{interface}/device/uevent");
    let is_virtual = host.get(&device).is_err();
    let expected = |feature: &str| match feature {
        "generic-receive-offload" if is_virtual => "on",
        "rx-gro-list" => "off",
        _ if allowed => "on",
        _ => "off",
    };
    let before = host.run(&["ethtool", "-k", interface], "")?;
    let (mut change, mut undo) = (Vec::new(), Vec::new());
    for (feature, name) in FEATURES {
        match feature_state(&before, feature) {
            "absent" => {}
            // Set even if it is already on: switching it on while the link is up makes the kernel
            // mark the peer as a target of redirects.
            "on" if name == "gro" && is_virtual => change.extend([name, "on"]),
            found if found != expected(feature) => {
                change.extend([name, expected(feature)]);
                undo.push(format!("ethtool -K {interface} {name} {found}"));
            }
            _ => {}
        }
    }
    keeper.note(host, &undo)?;
    if !change.is_empty() {
        let argv = ["ethtool", "-K", interface].into_iter().chain(change);
        host.run(&argv.collect::<Vec<_>>(), "")?;
    }
    let after = host.run(&["ethtool", "-k", interface], "")?;
    for (feature, _) in FEATURES.iter().filter(|(f, _)| feature_state(&after, f) != "absent") {
        let found = feature_state(&after, feature);
        let note = match *feature {
            "generic-receive-offload" if is_virtual => " (polling needs it; it merges no UDP)",
            _ => "",
        };
        findings.expect(&format!("{interface} {feature}{note}"), expected(feature), found);
    }
    Ok(())
}

/// State of a feature in the output of `ethtool -k`: `on`, `off`, or `absent` if it has no line.
pub fn feature_state<'a>(features: &'a str, feature: &str) -> &'a str {
    features
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .find(|(name, _)| *name == feature)
        .and_then(|(_, state)| state.split_whitespace().next())
        .unwrap_or("absent")
}

/// Binds the interrupt of queue n to the n-th CPU, modulo the number of CPUs.
fn interrupts(
    host: &dyn Host,
    keeper: &dyn SettingRestorer,
    interface: &str,
    cpus: &[u16],
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let of_device = r#"ls "/sys/class/net/$1/device/msi_irqs" 2>/dev/null; true"#;
    let of_device = host.run(&["/bin/sh", "-c", of_device, "irqs", interface], "")?;
    let numbers = queue_interrupts(&host.get("/proc/interrupts")?, interface, &of_device);
    if numbers.is_empty() {
        return Err(BenchError::environment(
            format!("no interrupts of {interface} stand in /proc/interrupts of {}", host.name()),
            "take bind_interrupts = false for an interface without interrupts",
        ));
    }
    let pairs = numbers.iter().zip(cpus.iter().cycle());
    let path = |number: &u32| format!("/proc/irq/{number}/smp_affinity_list");
    let affinities: Vec<(String, String)> =
        pairs.map(|(number, cpu)| (path(number), cpu.to_string())).collect();
    keeper.put(host, &affinities)?;
    for (number, (path, cpu)) in numbers.iter().zip(&affinities) {
        findings.expect(&format!("{interface} interrupt {number} CPU"), cpu, &host.get(path)?);
    }
    Ok(())
}

/// Numbers of the interrupts of an interface's queues in `/proc/interrupts`: those named after the
/// interface, otherwise all of its device except those for control.
pub fn queue_interrupts(text: &str, interface: &str, of_device: &str) -> Vec<u32> {
    let lines = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        Some((number.trim().parse::<u32>().ok()?, rest.split_whitespace().last()?))
    });
    let all: Vec<(u32, &str)> = lines.collect();
    let is_named = |name: &str| {
        name.strip_prefix(interface).is_some_and(|rest| rest.starts_with(['-', '@', ':']))
    };
    let named: Vec<u32> =
        all.iter().filter(|(_, name)| is_named(name)).map(|(number, _)| *number).collect();
    if !named.is_empty() {
        return named;
    }
    let device: Vec<u32> = of_device.split_whitespace().flat_map(str::parse).collect();
    let is_control = |name: &str| {
        ["async", "ctrl", "control", "misc", "fw", "mgmt"].iter().any(|word| name.contains(word))
    };
    let of_queues = all.iter().filter(|(n, name)| device.contains(n) && !is_control(name));
    of_queues.map(|(number, _)| *number).collect()
}

/// Waits until both links have carrier; changing the queues may have reset them.
///
/// # Errors
/// Fails if a link has no carrier within the time limit.
pub(crate) fn wait_for_signal(host: &dyn Host, links: &Links) -> Result<(), BenchError> {
    const WAIT: &str = r#"for name; do left=100
until [ "$(cat "/sys/class/net/$name/carrier" 2>/dev/null)" = 1 ]; do
left=$((left - 1)); [ "$left" -gt 0 ] || { echo "$name has no signal" >&2; exit 1; }
sleep 0.2; done; done"#;
    script(host, WAIT, links.both().into_iter().map(|link| link.interface.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_parsed_and_changed_in_the_drivers_form() {
        let text = |rx, tx, combined: &str| {
            format!(
                "Channel parameters for x:\nPre-set maximums:\nRX:\t\tn/a\nCombined:\t64\n\
                 Current hardware settings:\nRX:\t\t{rx}\nTX:\t\t{tx}\nOther:\t\t1\n\
                 Combined:\t{combined}\n"
            )
        };
        let combined = Channels::current(&text("n/a", "n/a", "8"));
        assert_eq!((combined.pairs(), combined.words().as_str()), (8, "combined 8"));
        assert_eq!(combined.with(4).words(), "combined 4");
        let separate = Channels::current(&text("2", "2", "n/a"));
        assert_eq!((separate.pairs(), separate.with(4).words().as_str()), (2, "rx 4 tx 4"));
    }

    #[test]
    fn queue_interrupts_exclude_others() {
        let text = "           CPU0       CPU1\n  0:  1  2  IO-APIC   2-edge  timer\n \
                    24:  1  2  PCI-MSI 1-edge  enp1s0-TxRx-0\n \
                    25:  1  2  PCI-MSI 2-edge  enp1s0-TxRx-1\n \
                    26:  1  2  PCI-MSI 3-edge  enp1s0d1-TxRx-0\n \
                    30:  1  2  PCI-MSI 4-edge  mlx5_async0@pci:0000:01:00.0\n \
                    31:  1  2  PCI-MSI 5-edge  mlx5_comp0@pci:0000:01:00.0\nNMI: 0 0 x\n";
        assert_eq!(queue_interrupts(text, "enp1s0", "24\n25\n"), [24, 25]);
        assert_eq!(queue_interrupts(text, "eth9", "30\n31\n"), [31]);
        assert!(queue_interrupts(text, "veth0", "").is_empty());
    }

    #[test]
    fn only_missing_addresses_are_added() {
        let mut links = Links::of_namespaces();
        links.ingress.addresses.truncate(2);
        let shown = "2: d0    inet 198.18.0.1/24 brd 198.18.0.255 scope global d0\\       valid\n";
        let missing = |has_inet6| missing(&links.ingress, shown, has_inet6);
        assert_eq!(missing(true), [("2001:2::1".parse().expect("an address"), 64)]);
        assert!(missing(false).is_empty());
        assert!(is_up("0x1003") && !is_up("0x1002") && !is_up("?"));
    }
}
