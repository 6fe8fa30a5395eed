//! Interprets and validates a lab file as a whole.

mod ends;

use super::raw::{Host, Interface, RawLab};
use super::{Lab, LabHost, LabInterface, Role, Side};
use crate::diagnostic::Diagnostic;
use ends::cables;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use toml::Spanned;

/// Maximum number of senders of a lab.
const SENDERS_MAX: usize = 2;

/// Returns the lab and every fault; it is valid only without faults.
pub(super) fn judge(written: &RawLab) -> (Lab, Vec<Diagnostic>) {
    let mut faults = Vec::new();
    names(written, &mut faults);
    addresses(written, &mut faults);
    roles(written, &mut faults);
    let hosts = written.hosts.iter().map(|host| host_of(host, &mut faults)).collect();
    let cables = cables(written, &mut faults);
    let name = written.name.clone().unwrap_or_default();
    let (ssh, notify) = (written.ssh.clone(), written.notify.clone());
    let (lease_ns, labgrid) = (written.lease_ns, written.labgrid.clone());
    (Lab { name, ssh, notify, lease_ns, labgrid, hosts, cables }, faults)
}

fn host_of(host: &Host, faults: &mut Vec<Diagnostic>) -> LabHost {
    if let Some(ssh) = &host.ssh
        && (ssh.get_ref().starts_with('-') || ssh.get_ref().contains(char::is_whitespace))
    {
        faults.push(
            Diagnostic::new(ssh.span(), format!("`{}` is no host for ssh", ssh.get_ref()))
                .help("write a name of ssh's configuration, user@host, or ssh://user@host:port"),
        );
    }
    let interfaces = host.interfaces.iter().map(|interface| LabInterface {
        name: interface.name.get_ref().clone(),
        mac: interface.mac.as_ref().map(|mac| *mac.get_ref()),
        addresses: interface.addresses.iter().map(|address| *address.get_ref()).collect(),
        // An interface without a side causes a fault, so this value is never used.
        side: host.side_of(interface).unwrap_or(Side::Sender),
    });
    LabHost {
        name: host.name.get_ref().clone(),
        roles: host.roles().collect(),
        ssh: host.ssh.as_ref().map(|ssh| ssh.get_ref().clone()),
        system: host.system,
        cpus: host.cpus.clone(),
        console: host.console.clone(),
        power_cycle: host.power_cycle.clone(),
        place: host.place.as_ref().map(|place| place.get_ref().clone()),
        reboot_timeout_ns: host.reboot_timeout_ns,
        online: host.online.clone(),
        interfaces: interfaces.collect(),
    }
}

impl Host {
    fn roles(&self) -> impl Iterator<Item = Role> {
        self.roles.iter().flatten().map(|role| *role.get_ref())
    }

    /// False also if roles could not be read.
    fn is(&self, role: Role) -> bool {
        self.roles().any(|own| own == role)
    }

    /// Returns the side in the file, or the only one that the roles permit.
    fn side_of(&self, interface: &Interface) -> Option<Side> {
        if let Some(side) = &interface.side {
            return Some(*side.get_ref());
        }
        match (self.is(Role::Dut), self.is(Role::Sender), self.is(Role::Receiver)) {
            (false, true, false) => Some(Side::Sender),
            (false, false, true) => Some(Side::Receiver),
            _ => None,
        }
    }
}

/// Checks that every host, and every interface of a host, has a unique name, and that interfaces
/// have a side.
fn names(written: &RawLab, faults: &mut Vec<Diagnostic>) {
    let hosts = written.hosts.iter().map(|host| &host.name);
    unique(hosts, |name| format!("two hosts are called `{name}`"), faults);
    let places = written.hosts.iter().filter_map(|host| host.place.as_ref());
    unique(places, |place| format!("two hosts have the place `{place}`"), faults);
    for host in &written.hosts {
        let interfaces = host.interfaces.iter().map(|interface| &interface.name);
        let message = |name: &String| {
            format!("two interfaces of `{}` are called `{name}`", host.name.get_ref())
        };
        unique(interfaces, message, faults);
        for interface in &host.interfaces {
            side(host, interface, faults);
        }
    }
}

fn side(host: &Host, interface: &Interface, faults: &mut Vec<Diagnostic>) {
    let (name, span) = (interface.name.get_ref(), interface.name.span());
    let owner = host.name.get_ref();
    match (&interface.side, host.side_of(interface)) {
        (Some(side), _) => {
            let role = Role::from(*side.get_ref());
            if host.roles.is_some() && !host.is(Role::Dut) && !host.is(role) {
                let message = format!("`{owner}` is no {}", role.name());
                faults.push(
                    Diagnostic::new(side.span(), message)
                        .help(format!("leave `side` out, or add \"{}\" to its roles", role.name())),
                );
            }
        }
        (None, None) if host.roles().next().is_some() && !interface.side_faulty => {
            let why = if host.is(Role::Dut) { "the DUT" } else { "sender and receiver" };
            faults.push(
                Diagnostic::new(span, format!("which side is `{name}` on?"))
                    .label(format!("`{owner}` is {why}"))
                    .help("write side = \"sender\" or side = \"receiver\" below"),
            );
        }
        _ => {}
    }
}

/// Checks that MACs and addresses belong to one interface, and are reserved for benchmarks.
fn addresses(written: &RawLab, faults: &mut Vec<Diagnostic>) {
    let interfaces = || written.hosts.iter().flat_map(|host| &host.interfaces);
    let macs: Vec<_> = interfaces().filter_map(|interface| interface.mac.as_ref()).collect();
    let macs: Vec<_> = macs.iter().map(|mac| Spanned::new(mac.span(), mac.get_ref().0)).collect();
    unique(macs.iter(), |mac| format!("two interfaces have the MAC {}", super::Mac(*mac)), faults);
    let all: Vec<_> = interfaces().flat_map(|interface| &interface.addresses).collect();
    let plain: Vec<_> =
        all.iter().map(|one| Spanned::new(one.span(), one.get_ref().address)).collect();
    unique(plain.iter(), |address| format!("two interfaces have the address {address}"), faults);
    for address in all {
        if written.allow_addresses || address.get_ref().is_for_benchmarks() {
            continue;
        }
        let message = format!("{} is not for benchmarks", address.get_ref());
        faults.push(
            Diagnostic::new(address.span(), message)
                .label("outside 198.18.0.0/15 and 2001:2::/48")
                .help(
                    "these are set aside for test traffic (RFC 2544 appendix C.2.2, RFC 5180): \
                     what leaks from the lab then reaches nobody; allow_addresses = true at the \
                     top of the file permits others",
                ),
        );
    }
}

/// Checks that there is one DUT without other roles, one or two senders, one receiver.
fn roles(written: &RawLab, faults: &mut Vec<Diagnostic>) {
    for host in &written.hosts {
        let roles = host.roles.iter().flatten();
        let name = host.name.get_ref();
        unique(roles.clone(), |role| format!("`{name}` is {} twice", role.name()), faults);
        if host.roles.as_ref().is_some_and(Vec::is_empty) {
            faults.push(
                Diagnostic::new(host.name.span(), format!("`{name}` has no role"))
                    .help("roles are \"sender\", \"receiver\" and \"dut\""),
            );
        }
        let dut = roles.clone().find(|role| *role.get_ref() == Role::Dut);
        if let (Some(dut), Some(other)) =
            (dut, roles.clone().find(|role| *role.get_ref() != Role::Dut))
        {
            faults.push(
                Diagnostic::new(other.span(), format!("`{name}` would test itself"))
                    .context(dut.span(), "the device under test")
                    .help("the DUT is a host of its own; one machine alone is testbed \"netns\""),
            );
        }
    }
    for (role, most) in [(Role::Dut, 1), (Role::Sender, SENDERS_MAX), (Role::Receiver, 1)] {
        let holders = written.hosts.iter().flat_map(|host| host.roles.iter().flatten());
        let holders: Vec<&Spanned<Role>> =
            holders.filter(|holder| *holder.get_ref() == role).collect();
        let name = match role {
            Role::Dut => "device under test",
            _ => role.name(),
        };
        let unread =
            written.hosts_incomplete || written.hosts.iter().any(|host| host.roles.is_none());
        if holders.is_empty() && !unread {
            faults.push(
                Diagnostic::new(0..0, format!("no host is the {name}"))
                    .help(format!("write roles = [\"{}\"] in one [[host]]", role.name())),
            );
        }
        if let (Some(first), Some(extra)) = (holders.first(), holders.get(most)) {
            faults.push(
                Diagnostic::new(extra.span(), format!("more than {most} {name}{}", plural(most)))
                    .context(first.span(), "the first")
                    .help("a lab has one DUT, one or two senders and one receiver"),
            );
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Reports every value that occurs a second time.
fn unique<'a, T: Eq + Hash + 'a>(
    values: impl Iterator<Item = &'a Spanned<T>>,
    message: impl Fn(&T) -> String,
    faults: &mut Vec<Diagnostic>,
) {
    let mut first: HashMap<&T, Range<usize>> = HashMap::new();
    for value in values {
        match first.get(value.get_ref()) {
            None => drop(first.insert(value.get_ref(), value.span())),
            Some(place) => faults.push(
                Diagnostic::new(value.span(), message(value.get_ref()))
                    .context(place.clone(), "the first"),
            ),
        }
    }
}
