//! A Linux DUT's counters along the packet path, read at both ends of a profile's window, and over
//! the whole run to locate packet loss.

use super::Loss;
use super::counters::{self, Reading};
use crate::links::Links;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{DropPlace, ProfileCounter};
use fwdlab_model::settings::Directions;

/// One reading, and the counters that could not be read (name and reason).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    values: Reading,
    absent: Vec<(String, String)>,
}

impl Readings {
    /// Reads all counters of `host`; softirqs and backlogs of `cpus`. Counters that cannot be read
    /// are listed with the reason.
    pub fn take(host: &dyn Host, links: &Links, cpus: &[u16]) -> Readings {
        let mut readings = Readings::default();
        let backlogs = |text: &str| softnet_counters(text, cpus);
        let drops = counters::read(host, links).map(|mut reading| {
            reading.retain(|name, _| !name.starts_with("softnet"));
            reading.into_iter().collect()
        });
        readings.add("interfaces", drops);
        let of_cpus = host.get("/proc/softirqs").map(|text| softirqs(&text, cpus));
        readings.add("softirqs", of_cpus);
        let softnet = host.get("/proc/thread-self/net/softnet_stat").map(|text| backlogs(&text));
        readings.add("softnet", softnet);
        for interface in links.both().map(|link| link.interface.as_str()) {
            let queues = host.run(&["ethtool", "-S", interface], "");
            let queues = queues.map(|text| queue_counters(interface, &text));
            readings.add(&format!("{interface} queues"), queues);
        }
        let tracked = host.get("/proc/thread-self/net/stat/nf_conntrack");
        readings.add("conntrack", tracked.map(|text| conntrack_counters(&text)));
        if let Ok(text) = host.run(&["nft", "list", "counters"], "") {
            readings.values.extend(nft_counters(&text));
        }
        readings
    }

    fn add(&mut self, name: &str, read: Result<Vec<(String, u64)>, BenchError>) {
        match read {
            Ok(values) => self.values.extend(values),
            Err(error) => self.absent.push((name.to_owned(), error.to_string())),
        }
    }

    /// Counter increments from `self` to `later`.
    pub fn until(&self, later: &Readings) -> Vec<ProfileCounter> {
        let counted = later.values.iter().filter_map(|(name, after)| {
            let before = self.values.get(name)?;
            Some(ProfileCounter::counted(name, after.saturating_sub(*before)))
        });
        let absent =
            later.absent.iter().map(|(name, why)| ProfileCounter::absent(name, why.as_str()));
        counted.chain(absent).collect()
    }
}

/// Counter increments between two readings.
pub(super) struct Increments<'a>(&'a Reading, &'a Reading);

impl<'a> Increments<'a> {
    pub(super) fn in_machine(loss: &Loss<'a>) -> Increments<'a> {
        Increments(&loss.before.machine, &loss.after.machine)
    }

    /// Increment of a counter, by its name.
    pub(super) fn of(&self, name: &str) -> i64 {
        risen(self.0, self.1, name)
    }

    /// Increment of an IP counter, IPv4 and IPv6 together.
    pub(super) fn ip(&self, name: &str) -> i64 {
        self.of(&format!("ip {name}")) + self.of(&format!("ip6 {name}"))
    }

    /// Increment of an interface's counter.
    pub(super) fn at(&self, interface: &str, column: &str) -> i64 {
        self.of(&format!("{interface} {column}"))
    }

    /// Packets that the IP layer discarded as erroneous, with the name of the drop place.
    pub(super) fn errors(&self) -> (String, i64) {
        let all = ["InHdrErrors", "InAddrErrors", "InUnknownProtos"];
        let place = "IP input: bad header, address or protocol".to_owned();
        (place, all.iter().map(|name| self.ip(name)).sum())
    }
}

/// Places where packets of a run were lost, along their path.
pub fn drops(loss: &Loss<'_>, has_firewall: bool, links: &Links) -> Vec<DropPlace> {
    let (ingress, egress) = (links.ingress.interface.as_str(), links.egress.interface.as_str());
    let both = loss.settings.traffic.directions == Directions::Both;
    let risen = Increments::in_machine(loss);
    let errors = risen.errors();
    let (input, no_route) =
        (risen.ip("InDiscards"), risen.ip("InNoRoutes") + risen.ip("OutNoRoutes"));
    let output = risen.ip("OutDiscards");
    let (sent, unsent) = (risen.at(egress, "tx_packets"), risen.at(egress, "tx_dropped"));
    // Packets of the opposite direction arrive at the egress interface.
    let back = |column: &str, at: &str| if both { risen.at(at, column) } else { 0 };
    let (sent_back, unsent_back) = (back("tx_packets", ingress), back("tx_dropped", ingress));
    // The kernel does not count what a rule drops. The firewall, if any, dropped the packets that
    // the IP layer received, not for itself, and neither rejected nor passed on. The IP layer
    // counts the packets it passes on since Linux 6.6 (OutTransmits); with older kernels, packets
    // still waiting in a queue of the interface count as dropped.
    let received = risen.ip("InReceives") - risen.ip("InDelivers");
    let counts = ["ip OutTransmits", "ip6 OutTransmits"];
    let passed_on = match counts.iter().any(|name| loss.after.machine.contains_key(*name)) {
        true => risen.ip("OutTransmits") - risen.ip("OutRequests"),
        false => sent + unsent + sent_back + unsent_back,
    };
    let between = (received - errors.1 - input - no_route - output - passed_on).max(0);
    let places = [
        (ring(ingress), risen.at(ingress, "rx_dropped")),
        (ring(egress), back("rx_dropped", egress)),
        ("backlog of a CPU full (softnet)".to_owned(), risen.of("softnet dropped")),
        errors,
        ("IP input: discarded".to_owned(), input),
        ("no route".to_owned(), no_route),
        ("firewall".to_owned(), if has_firewall { between } else { 0 }),
        ("IP output: discarded".to_owned(), output),
        (output_of(egress), unsent),
        (output_of(ingress), unsent_back),
    ];
    with_unexplained(places, loss)
}

/// Drop place: a full receive ring.
pub fn ring(interface: &str) -> String {
    format!("receive ring of {interface} full")
}

/// Drop place: an interface's queue, or the receive ring of its peer, is full.
pub fn output_of(interface: &str) -> String {
    format!("output of {interface}: queue or ring of the peer full")
}

/// Prepends a place to the drops and subtracts its packets from the remainder.
pub fn with_place(mut drops: Vec<DropPlace>, place: String, packets: i64) -> Vec<DropPlace> {
    if let Some(rest) = drops.last_mut()
        && packets > 0
    {
        rest.packets = rest.packets.saturating_sub(packets);
        drops.insert(0, DropPlace { place, packets });
    }
    drops
}

/// Increment of a counter between two readings, clamped by `clamp_count`.
pub fn risen(before: &Reading, after: &Reading, name: &str) -> i64 {
    let value = |reading: &Reading| reading.get(name).copied().unwrap_or(0);
    clamp_count(value(after).saturating_sub(value(before)))
}

/// Clamps to 2^56, so that sums of a few dozen counters cannot overflow.
pub(super) fn clamp_count(packets: u64) -> i64 {
    packets.min(1 << 56) as i64
}

/// The non-zero loss places, including the receiver's drops, then the remainder that no
/// counter explains.
pub(super) fn with_unexplained(
    places: impl IntoIterator<Item = (String, i64)>,
    loss: &Loss<'_>,
) -> Vec<DropPlace> {
    let receiver = ("receiver of the testbed".to_owned(), clamp_count(loss.receiver));
    let mut drops: Vec<DropPlace> = places
        .into_iter()
        .chain([receiver])
        .filter(|(_, packets)| *packets > 0)
        .map(|(place, packets)| DropPlace { place, packets })
        .collect();
    let explained: i64 = drops.iter().map(|drop| drop.packets).sum();
    let packets = loss.total.lost().saturating_sub(explained);
    drops.push(DropPlace { place: "no counter tells".into(), packets });
    drops
}

/// NET_RX and NET_TX of `/proc/softirqs`, summed over `cpus` (proc(5)).
pub fn softirqs(text: &str, cpus: &[u16]) -> Vec<(String, u64)> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let columns: Vec<usize> = cpus
        .iter()
        .filter_map(|cpu| header.iter().position(|name| *name == format!("CPU{cpu}")))
        .collect();
    let rows = lines.filter_map(|line| line.split_once(':'));
    rows.filter(|(name, _)| ["NET_RX", "NET_TX"].contains(&name.trim()))
        .map(|(name, values)| {
            let values: Vec<u64> = values.split_whitespace().flat_map(str::parse).collect();
            let selected = columns.iter().filter_map(|&column| values.get(column).copied());
            let sum = selected.fold(0, u64::saturating_add);
            (format!("softirq {}", name.trim()), sum)
        })
        .collect()
}

/// The first three columns of `/proc/net/softnet_stat`, hexadecimal, of `cpus`. The kernel writes
/// the CPU's number into column 13 (softnet_seq_show in net/core/net-procfs.c); before Linux 5.14
/// the lines are the CPUs in order.
pub fn softnet_counters(text: &str, cpus: &[u16]) -> Vec<(String, u64)> {
    let mut sums = [0; 3];
    for (number, line) in text.lines().enumerate() {
        let columns: Vec<u64> =
            line.split_whitespace().flat_map(|word| u64::from_str_radix(word, 16)).collect();
        let cpu = columns.get(12).copied().unwrap_or(number as u64);
        if cpus.iter().any(|selected| u64::from(*selected) == cpu) {
            let pairs = sums.iter_mut().zip(&columns);
            pairs.for_each(|(sum, value): (&mut u64, _)| *sum = sum.saturating_add(*value));
        }
    }
    let names = ["softnet processed", "softnet dropped", "softnet time_squeeze"];
    names.into_iter().map(str::to_owned).zip(sums).collect()
}

/// Drop counters of each queue from `ethtool -S`.
pub fn queue_counters(interface: &str, text: &str) -> Vec<(String, u64)> {
    text.lines()
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, _)| ["drop", "err", "full"].iter().any(|word| name.contains(word)))
        .filter_map(|(name, value)| {
            Some((format!("{interface} {name}"), value.trim().parse().ok()?))
        })
        .collect()
}

/// Drop columns of `/proc/net/stat/nf_conntrack`, summed over CPUs; the first line names the
/// columns, the others are hexadecimal.
pub fn conntrack_counters(text: &str) -> Vec<(String, u64)> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let drop_columns = ["invalid", "insert_failed", "drop", "early_drop"];
    let columns = header.iter().enumerate().filter(|(_, name)| drop_columns.contains(name));
    columns
        .map(|(column, name)| {
            let value = |row: &Vec<&str>| u64::from_str_radix(row.get(column)?, 16).ok();
            let sum = rows.iter().filter_map(value).fold(0, u64::saturating_add);
            (format!("conntrack {name}"), sum)
        })
        .collect()
}

/// Named counters from the output of `nft list counters`.
pub fn nft_counters(text: &str) -> Vec<(String, u64)> {
    let mut name = None;
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), name) {
            (["counter", counter, "{"], _) => name = Some(*counter),
            (["packets", packets, ..], Some(counter)) => {
                all.extend(packets.parse().ok().map(|n| (format!("nft {counter}"), n)));
                name = None;
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Counts;
    use fwdlab_model::settings::Settings;

    fn lost(
        before: Reading,
        after: Reading,
        total: Counts,
        receiver: u64,
        has_firewall: bool,
    ) -> Vec<DropPlace> {
        let [before, after] =
            [before, after].map(|machine| crate::Reading { machine, own: Vec::new() });
        let settings = &Settings::default();
        let loss = Loss { before: &before, after: &after, total, receiver, settings };
        drops(&loss, has_firewall, &Links::of_namespaces())
    }

    #[test]
    fn counters_of_the_duts_cpus_are_summed() {
        let text = "            CPU0       CPU1       CPU2\n  TIMER:  7  8  9\n  NET_TX:  1  20  300\n  NET_RX:  2  30  400\n";
        let found = softirqs(text, &[1, 2]);
        assert_eq!(found, [("softirq NET_TX".into(), 320), ("softirq NET_RX".into(), 430)]);
        let line = |processed, cpu| {
            format!("{processed:08x} 00000003 0000000a {} {cpu:08x}", ["00000000"; 9].join(" "))
        };
        let text = format!("{}\n{}\n", line(0x10, 0), line(0x20, 1));
        let found: Vec<u64> = softnet_counters(&text, &[1]).into_iter().map(|(_, n)| n).collect();
        assert_eq!(found, [0x20, 3, 10]);
    }

    #[test]
    fn queue_conntrack_and_nft_counters_are_parsed() {
        let text = "NIC statistics:\n     peer_ifindex: 2\n     rx_queue_0_xdp_packets: 5\n     rx_queue_0_drops: 7\n     rx_queue_1_xdp_tx_errors: 1\n";
        let expected =
            [("d0 rx_queue_0_drops".to_owned(), 7), ("d0 rx_queue_1_xdp_tx_errors".to_owned(), 1)];
        assert_eq!(queue_counters("d0", text), expected);
        let text = "entries found invalid insert_failed drop early_drop\n00000001 0 0000000a 1 2 3\n00000001 0 00000001 0 0 0\n";
        let values: Vec<u64> = conntrack_counters(text).into_iter().map(|(_, n)| n).collect();
        assert_eq!(values, [11, 1, 2, 3]);
        let text = "table inet t {\n\tcounter lost {\n\t\tpackets 12 bytes 720\n\t}\n}\n";
        assert_eq!(nft_counters(text), [("nft lost".to_owned(), 12)]);
    }

    #[test]
    fn missing_counter_is_listed_with_its_reason() {
        let mut before = Readings::default();
        before.values.insert("a".into(), 5);
        let mut after = before.clone();
        after.values.insert("a".into(), 9);
        after.values.insert("new".into(), 1);
        after.absent.push(("conntrack".into(), "no such file".into()));
        let counters = before.until(&after);
        assert_eq!(counters.len(), 2, "{counters:?}");
        assert_eq!(counters[0], ProfileCounter::counted("a", 4));
        assert_eq!(counters[1], ProfileCounter::absent("conntrack", "no such file"));
    }

    #[test]
    fn extreme_counters_do_not_overflow() {
        let names = ["ip InReceives", "ip InDelivers", "ip OutDiscards", "ip6 OutDiscards"];
        let after: Reading = names.map(|name| (name.to_owned(), u64::MAX)).into();
        let total = Counts { offered: 1 << 63, forwarded: 1 };
        let found = lost(Reading::new(), after, total, u64::MAX, true);
        assert!(found.iter().any(|drop| drop.packets == 1 << 57), "{found:?}");
        let row = "0 ffffffffffffffff 0\n".repeat(2);
        assert_eq!(softnet_counters(&row, &[0, 1])[1].1, u64::MAX);
        let table = "found drop\n1 ffffffffffffffff\n1 2\n";
        assert_eq!(conntrack_counters(table)[0].1, u64::MAX);
        let table = format!("CPU0 CPU1\nNET_RX: {} 1\n", u64::MAX);
        assert_eq!(softirqs(&table, &[0, 1])[0].1, u64::MAX);
    }

    #[test]
    fn drop_places_sum_to_the_loss() {
        let before = Reading::from([("d0 rx_dropped".into(), 7)]);
        let after = Reading::from([
            ("d0 rx_packets".into(), 940),
            ("d0 rx_dropped".into(), 57),
            ("ip InReceives".into(), 935),
            ("ip InHdrErrors".into(), 5),
            ("d1 tx_packets".into(), 700),
            ("d1 tx_dropped".into(), 30),
        ]);
        let total = Counts { offered: 1000, forwarded: 690 };
        let found = |has_firewall| {
            let drops = lost(before.clone(), after.clone(), total, 10, has_firewall);
            let sum: i64 = drops.iter().map(|drop| drop.packets).sum();
            assert_eq!(sum, total.lost());
            let pairs = drops.into_iter().map(|drop| (drop.place, drop.packets));
            pairs.collect::<Vec<(String, i64)>>()
        };
        let expected = [
            ("receive ring of d0 full".to_owned(), 50),
            ("IP input: bad header, address or protocol".to_owned(), 5),
            ("firewall".to_owned(), 200),
            ("output of d1: queue or ring of the peer full".to_owned(), 30),
            ("receiver of the testbed".to_owned(), 10),
            ("no counter tells".to_owned(), 15),
        ];
        assert_eq!(found(true), expected);
        assert_eq!(found(false).last().map(|drop| drop.1), Some(215));
    }
}
