//! What every program that forwards in the kernel's place has: its own counters, and
//! interfaces whose packets the kernel leaves to it.

use super::counters;
use super::keeper::Keeper;
use super::linux_remote::interfaces::{is_up, wait_for_signal};
use super::linux_remote::undo::Undo;
use super::path::{self, with_unexplained};
use super::{Ground, Reading, Totals};
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::scheduling;
use crate::error::BenchError;
use crate::host::Host;
use crate::lab::links::Links;
use fwdlab_model::record::{Counter, Counts, DropPlace, queues};
use fwdlab_model::settings::Settings;
use fwdlab_packet::forwarding::Class;

/// A counter of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub class: Class,
    /// Packets.
    pub packets: u64,
}

impl Own {
    /// A counter.
    pub fn new(name: impl Into<String>, class: Class, packets: u64) -> Own {
        Own { name: name.into(), class, packets }
    }
}

/// A program's counters between two readings, with those of the interfaces.
pub(super) fn compare(
    before: &Reading,
    after: &Reading,
    totals: Totals,
    links: &Links,
) -> Vec<Counter> {
    let first = |name: &str| before.own.iter().find(|own| own.name == name).map(|own| own.packets);
    let counters = after.own.iter().map(|own| Counter {
        name: own.name.clone(),
        before: first(&own.name).unwrap_or(0),
        after: own.packets,
        expected: (own.class == Class::Forwarded).then_some(totals.passed.forwarded),
    });
    let is_shown = |counter: &Counter| {
        let is_queue = queues::parse_name(&counter.name).is_some();
        counter.delta() > 0 || counter.expected.is_some() || is_queue
    };
    let mut all: Vec<Counter> = counters.filter(is_shown).collect();
    let (first, last) = (&before.machine, &after.machine);
    all.extend(counters::compare(first, last, totals.at_interfaces, links));
    all
}

/// Where packets were lost between two readings of a program called `who`: by its own
/// counters, and before it; the last place is the difference to what was lost in all.
pub(super) fn drops(
    who: &str,
    before: &Reading,
    after: &Reading,
    total: Counts,
    receiver: u64,
    links: &Links,
) -> Vec<DropPlace> {
    let first = |name: &str| before.own.iter().find(|own| own.name == name).map(|own| own.packets);
    let dropped = after.own.iter().filter(|own| own.class.is_loss());
    let places = dropped.map(|own| {
        let packets = own.packets.saturating_sub(first(&own.name).unwrap_or(0));
        (format!("{who}: {}", own.name), packets as i64)
    });
    let receiver = ("receiver of the testbed".to_owned(), receiver as i64);
    let mut drops = with_unexplained(places.chain([receiver]), total);
    let ingress = &links.ingress.interface;
    let name = format!("{ingress} rx_dropped");
    for (counter, place) in
        [(name.as_str(), path::ring(ingress)), (WIRE_FULL, WIRE_FULL.to_owned())]
    {
        if after.machine.contains_key(counter) {
            let risen = path::risen(&before.machine, &after.machine, counter);
            drops = path::with_place(drops, place, risen);
        }
    }
    drops
}

/// Where packets are lost before a program that reads wires in memory, with a rate.
pub(crate) const WIRE_FULL: &str = "wire full";

/// Sets the interfaces up for a program, so that the kernel neither answers nor forwards,
/// and places whatever polls for them.
///
/// # Errors
/// When something is not there or refused.
pub(super) fn interfaces(
    host: &dyn Host,
    ground: &Ground<'_>,
    settings: &Settings,
    placement: &Placement,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let links = ground.links;
    if ground.namespace.is_some() {
        for interface in links.both().map(|link| link.interface.as_str()) {
            let text = format!("link set {interface} addrgenmode none\nlink set {interface} up\n");
            host.run(&["ip", "-batch", "-"], &text)?;
            // GRO makes veth poll, which frames that are redirected into it need.
            host.run(&["ethtool", "-K", interface, "gro", "on", "tso", "off", "gso", "off"], "")?;
        }
        return scheduling::apply(host, links, settings, placement, findings).map(drop);
    }
    for interface in links.both().map(|link| link.interface.as_str()) {
        let flags = host.get(&format!("/sys/class/net/{interface}/flags"))?;
        let is_down = !is_up(&flags);
        // The last line is undone first. Programs leave an interface promiscuous; and one
        // gets an address when `addr_gen_mode` is put back, although it is down.
        let mut undo = Vec::new();
        if !is_promiscuous(&flags) {
            undo.push(format!("ip link set {interface} promisc off"));
        }
        if is_down {
            undo.push(format!("ip -6 addr flush dev {interface} scope link 2>/dev/null || :"));
        }
        Undo.note(host, &undo)?;
        // A machine that is a router itself would forward every packet once more; and a
        // link that comes up gets an address, which is told to its neighbours.
        let mut wanted = vec![("ipv4", "forwarding", "0"), ("ipv6", "forwarding", "0")];
        wanted.extend(is_down.then_some(("ipv6", "addr_gen_mode", "1")));
        for (family, name, value) in wanted {
            let path = format!("/proc/sys/net/{family}/conf/{interface}/{name}");
            if host.get(&path).is_ok() {
                Undo.change(host, &path, value)?;
            }
        }
        if is_down {
            Undo.note(host, &[format!("ip link set {interface} down")])?;
            host.run(&["ip", "link", "set", interface, "up"], "")?;
        }
    }
    wait_for_signal(host, links)
}

/// IFF_PROMISC is the ninth bit of an interface's flags (netdevice(7)).
fn is_promiscuous(flags: &str) -> bool {
    let bits = u32::from_str_radix(flags.trim_start_matches("0x"), 16);
    bits.is_ok_and(|bits| bits & 0x100 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_what_happened_meanwhile() {
        let reading = |received, forwarded, refused| Reading {
            own: vec![
                Own::new("received", Class::Received, received),
                Own::new("forwarded", Class::Forwarded, forwarded),
                Own::new("answered", Class::Extra, 0),
                Own::new("firewall", Class::Dropped, refused),
                Own::new("worker rx queue 0", Class::Extra, 0),
            ],
            ..Reading::default()
        };
        let (before, after) = (reading(100, 100, 0), reading(200, 190, 10));
        let links = Links::of_namespaces();
        let passed = Counts { offered: 100, forwarded: 90 };
        let totals = Totals { passed, at_interfaces: passed };
        let counters = compare(&before, &after, totals, &links);
        let found: Vec<_> = counters.iter().map(|c| (&c.name[..], c.delta(), c.expected)).collect();
        assert_eq!(
            found[..3],
            [("received", 100, None), ("forwarded", 90, Some(90)), ("firewall", 10, None)]
        );
        let total = Counts { offered: 125, forwarded: 90 };
        let drops = drops("router", &before, &after, total, 3, &links);
        let found: Vec<_> = drops.iter().map(|drop| (&drop.place[..], drop.packets)).collect();
        assert_eq!(
            found,
            [("router: firewall", 10), ("receiver of the testbed", 3), ("no counter tells", 22)]
        );
    }
}
