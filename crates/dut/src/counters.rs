//! The DUT's own counters, read before and after a trial: counters of the Linux kernel, or of a
//! program that forwards instead of it.

use super::Totals;
use crate::links::Links;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, queues};
use fwdlab_model::settings::Directions;
use fwdlab_packet::forwarding::Class;
use std::collections::BTreeMap;

/// Counter values of one reading, by name.
pub type Reading = BTreeMap<String, u64>;

/// A counter of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCounter {
    /// Name of the counter.
    pub name: String,
    /// Events that it counts.
    pub class: Class,
    /// Packets.
    pub packets: u64,
}

impl ProgramCounter {
    /// Returns a counter.
    pub fn new(name: impl Into<String>, class: Class, packets: u64) -> ProgramCounter {
        ProgramCounter { name: name.into(), class, packets }
    }
}

/// Reads the counters of both interfaces, of the IP layer and, for the backlog, of the whole
/// machine.
///
/// # Errors
/// Fails if `/proc` cannot be read.
pub fn read(host: &dyn Host, links: &Links) -> Result<Reading, BenchError> {
    // Not `/proc/net`, which is the namespace of the process's first thread.
    let names = links.both().map(|link| link.interface.as_str());
    let mut all = interface_counters(&host.get("/proc/thread-self/net/dev")?, names);
    all.extend(snmp_counters(&host.get("/proc/thread-self/net/snmp")?));
    if let Ok(text) = host.get("/proc/thread-self/net/snmp6") {
        all.extend(snmp6_counters(&text));
    }
    all.extend(softnet_counters(&host.get("/proc/thread-self/net/softnet_stat")?));
    Ok(all.into_iter().collect())
}

/// Counter differences between two readings, each with the value expected from fwdlab's own counts:
/// ingress received or dropped = offered, egress sent = received by fwdlab; a program's forwarded
/// packets likewise, with those that the interface could not deliver.
pub fn compare(
    before: &super::Reading,
    after: &super::Reading,
    totals: Totals,
    links: &Links,
) -> Vec<Counter> {
    let first = |name: &str| {
        before.own.iter().find(|counter| counter.name == name).map(|counter| counter.packets)
    };
    let (ingress, egress) = (&links.ingress.interface, &links.egress.interface);
    let undelivered = |interface: &String| {
        let name = format!("{interface} tx_dropped");
        let read = |reading: &Reading| reading.get(&name).copied();
        let counted = read(&after.machine).zip(read(&before.machine));
        counted.map_or(0, |(after, before)| after.saturating_sub(before))
    };
    let handed_over = totals.passed.forwarded + undelivered(ingress) + undelivered(egress);
    let of_program = after.own.iter().map(|counter| Counter {
        name: counter.name.clone(),
        before: first(&counter.name).unwrap_or(0),
        after: counter.packets,
        expected: (counter.class == Class::Forwarded).then_some(handed_over),
    });
    let both = totals.directions == Directions::Both;
    let sent = format!("{egress} tx_packets");
    let machine = after.machine.iter().filter_map(|(name, &after)| {
        let before = *before.machine.get(name)?;
        let expected = (*name == sent && !both).then_some(totals.at_interfaces.forwarded);
        Some(Counter { name: name.clone(), before, after, expected })
    });
    // With traffic in both directions only sums can be compared: both interfaces together count
    // what all senders send.
    let (at, names) = match both {
        false => (vec![ingress], ingress.clone()),
        true => (vec![ingress, egress], format!("{ingress} + {egress}")),
    };
    let sum = |reading: &Reading, column: &str| -> Option<u64> {
        let all = at.iter().map(|link| reading.get(&format!("{link} {column}")).copied());
        all.sum()
    };
    let received = |reading: &Reading| {
        Some(sum(reading, "rx_packets")?.saturating_add(sum(reading, "rx_dropped").unwrap_or(0)))
    };
    let (before, after) = (&before.machine, &after.machine);
    let arrived = received(before).zip(received(after)).map(|(before, after)| Counter {
        name: format!("{names} rx_packets + rx_dropped"),
        before,
        after,
        expected: Some(totals.at_interfaces.offered),
    });
    let left = sum(before, "tx_packets").zip(sum(after, "tx_packets")).filter(|_| both);
    let left = left.map(|(before, after)| Counter {
        name: format!("{names} tx_packets"),
        before,
        after,
        expected: Some(totals.at_interfaces.forwarded),
    });
    let sums = arrived.into_iter().chain(left);
    let is_shown = |counter: &Counter| {
        let is_queue = queues::parse_name(&counter.name).is_some();
        counter.delta() > 0 || counter.expected.is_some() || is_queue
    };
    of_program.chain(machine).chain(sums).filter(is_shown).collect()
}

/// Number of connections that the kernel tracks in the host's namespace; `None` if it tracks none.
pub fn states(host: &dyn Host) -> Option<u64> {
    let text = host.get("/proc/sys/net/netfilter/nf_conntrack_count").ok()?;
    text.trim().parse().ok()
}

/// Packets and drops of two interfaces in `/proc/net/dev` (proc_pid_net(5)).
pub fn interface_counters(text: &str, interfaces: [&str; 2]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for (name, values) in text.lines().filter_map(|line| line.trim().split_once(':')) {
        if !interfaces.contains(&name) {
            continue;
        }
        let values: Vec<u64> = values.split_whitespace().map_while(|v| v.parse().ok()).collect();
        let columns = [("rx_packets", 1), ("rx_dropped", 3), ("tx_packets", 9), ("tx_dropped", 11)];
        all.extend(
            columns.iter().filter_map(|(c, at)| Some((format!("{name} {c}"), *values.get(*at)?))),
        );
    }
    all
}

/// `Ip:` lines of `/proc/net/snmp`: names in one, values in the next.
pub fn snmp_counters(text: &str) -> Vec<(String, u64)> {
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Vec::new() };
    let names_to_read = [
        "InReceives",
        "InHdrErrors",
        "InAddrErrors",
        "InUnknownProtos",
        "InDiscards",
        "InDelivers",
        "ForwDatagrams",
        "OutDiscards",
        "OutNoRoutes",
        "OutRequests",
        "OutTransmits",
    ];
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .filter(|(name, _)| names_to_read.contains(name))
        .filter_map(|(name, value)| Some((format!("ip {name}"), value.parse().ok()?)))
        .collect()
}

/// Lines of `/proc/net/snmp6`: a name and a value each.
pub fn snmp6_counters(text: &str) -> Vec<(String, u64)> {
    let names_to_read = [
        "Ip6InReceives",
        "Ip6InHdrErrors",
        "Ip6InAddrErrors",
        "Ip6InUnknownProtos",
        "Ip6InDiscards",
        "Ip6InDelivers",
        "Ip6InNoRoutes",
        "Ip6OutForwDatagrams",
        "Ip6OutDiscards",
        "Ip6OutNoRoutes",
        "Ip6OutRequests",
        "Ip6OutTransmits",
    ];
    text.lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter(|(name, _)| names_to_read.contains(name))
        .filter_map(|(name, value)| {
            Some((format!("ip6 {}", &name[3..]), value.trim().parse().ok()?))
        })
        .collect()
}

/// Packets dropped because a CPU's backlog was full, and polls cut short (columns 2 and 3 of
/// `/proc/net/softnet_stat`, summed over CPUs).
pub fn softnet_counters(text: &str) -> Vec<(String, u64)> {
    let column = |line: &str, at| {
        line.split_whitespace().nth(at).and_then(|w| u64::from_str_radix(w, 16).ok()).unwrap_or(0)
    };
    let sum = |at| text.lines().map(|line| column(line, at)).fold(0, u64::saturating_add);
    vec![("softnet dropped".into(), sum(1)), ("softnet time_squeeze".into(), sum(2))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Counts;

    fn compared(before: Reading, after: Reading, of: (u64, u64)) -> Vec<Counter> {
        let reading = |machine| super::super::Reading { machine, own: Vec::new() };
        let passed = Counts { offered: of.0, forwarded: of.1 };
        let totals = Totals { passed, at_interfaces: passed, ..Totals::default() };
        compare(&reading(before), &reading(after), totals, &Links::of_namespaces())
    }

    #[test]
    fn counters_are_read_from_proc() {
        let dev =
            "Inter-|   Receive\n face |bytes\n    d0: 600 10 0 3 0 0 0 0 1200 20 0 4 0 0 0 0\n";
        let counters = interface_counters(dev, ["d0", "d1"]);
        assert_eq!(counters[0], ("d0 rx_packets".into(), 10));
        assert_eq!(counters[3], ("d0 tx_dropped".into(), 4));
        let snmp = "Ip: Forwarding InReceives ForwDatagrams\nIp: 1 100 90\nIcmp: X\n";
        let expected = [("ip InReceives".to_owned(), 100), ("ip ForwDatagrams".to_owned(), 90)];
        assert_eq!(snmp_counters(snmp), expected);
        let softnet = softnet_counters("0000000a 00000001 00000002\n0000000a 0000000f 00000000\n");
        assert_eq!(softnet[0].1, 16);
    }

    #[test]
    fn overflowing_sums_saturate() {
        let softnet = softnet_counters("0 ffffffffffffffff 1\n0 1 2\n");
        assert_eq!((softnet[0].1, softnet[1].1), (u64::MAX, 3));
        let full = [("d0 rx_packets".to_owned(), u64::MAX), ("d0 rx_dropped".to_owned(), 1)];
        let counters = compared(Reading::from(full.clone()), Reading::from(full), (1, 1));
        let sum = counters.iter().find(|c| c.name.contains('+')).expect("the sum");
        assert_eq!((sum.after, sum.delta()), (u64::MAX, 0));
    }

    #[test]
    fn ingress_sum_is_expected_to_equal_the_offered_packets() {
        let before = Reading::from([("d0 rx_packets".into(), 5), ("d0 rx_dropped".into(), 1)]);
        let after = Reading::from([("d0 rx_packets".into(), 45), ("d0 rx_dropped".into(), 61)]);
        let counters = compared(before, after, (100, 40));
        let sum = counters.iter().find(|c| c.name.contains('+')).expect("the sum");
        assert_eq!((sum.delta(), sum.expected), (100, Some(100)));
    }

    #[test]
    fn program_counters_are_reported_as_differences() {
        let reading = |received, forwarded, refused| super::super::Reading {
            own: vec![
                ProgramCounter::new("received", Class::Received, received),
                ProgramCounter::new("forwarded", Class::Forwarded, forwarded),
                ProgramCounter::new("answered", Class::Extra, 0),
                ProgramCounter::new("firewall", Class::Dropped, refused),
                ProgramCounter::new("worker rx queue 0", Class::Extra, 0),
            ],
            ..super::super::Reading::default()
        };
        let (before, after) = (reading(100, 100, 0), reading(200, 190, 10));
        let passed = Counts { offered: 100, forwarded: 90 };
        let totals = Totals { passed, at_interfaces: passed, ..Totals::default() };
        let counters = compare(&before, &after, totals, &Links::of_namespaces());
        let found: Vec<_> = counters.iter().map(|c| (&c.name[..], c.delta(), c.expected)).collect();
        assert_eq!(
            found[..3],
            [("received", 100, None), ("forwarded", 90, Some(90)), ("firewall", 10, None)]
        );
    }
}
