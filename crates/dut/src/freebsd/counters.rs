//! Counters of a FreeBSD kernel, under the names of a Linux DUT's counters.
//!
//! | name | from |
//! |---|---|
//! | `IF rx_packets`, `IF rx_errors`, `IF rx_dropped` | `netstat -I IF -bdnW`: Ipkts, Ierrs, Idrop |
//! | `IF tx_packets`, `IF tx_errors`, `IF tx_dropped` | Opkts, Oerrs, Drop |
//! | `ip InReceives` ... | `netstat -s -p ip`, see [`NAMES`]; `ip6` likewise |
//! | `netisr NAME dropped` | `netstat -Q`: QDrops of a protocol's queues |
//! | `irq NAME` | `vmstat -ai` |
//!
//! netstat prints JSON since FreeBSD 11 (libxo). On older releases, or if a field is missing, its
//! sentences are parsed; they have not changed since 4.4BSD. One command reads everything: over ssh
//! each command takes a round trip.
//!
//! `ip InReceives` is unreliable: packets tried on the fast path are counted twice (ip_input.c,
//! ip_fastfwd.c; observed on FreeBSD 13.2), including packets that the firewall then drops, whereas
//! `ip6 InReceives` counts once. Packets without a route also count as `NotForwardable`.

use super::interrupts;
use super::queues::driver;
use crate::counters::Reading;
use crate::drop_accounting::{Increments, clamp_count, with_unexplained};
use crate::links::Links;
use crate::{Loss, Totals};
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, CpuTime, DropPlace};
use serde_json::Value;
use std::collections::BTreeMap;

/// fwdlab's name, netstat's names in JSON, and the text of its sentences after the number. Entries
/// with the same name are summed.
pub const NAMES: &[(&str, &[&str], &str)] = &[
    ("InReceives", &["received-packets"], "total packet"),
    ("InHdrErrors", &["dropped-bad-checksum"], "bad header checksum"),
    ("InHdrErrors", &["dropped-below-minimum-size"], "with size smaller than minimum"),
    ("InHdrErrors", &["dropped-short-packets"], "with data size < data length"),
    ("InHdrErrors", &["dropped-too-long"], "with ip length > max ip packet size"),
    ("InHdrErrors", &["dropped-short-header-length"], "with header length < data size"),
    ("InHdrErrors", &["dropped-short-data"], "with data length < header length"),
    ("InHdrErrors", &["dropped-bad-options"], "with bad options"),
    ("InHdrErrors", &["dropped-bad-version"], "with incorrect version number"),
    ("InAddrErrors", &["discard-bad-address"], "datagram with bad address in header"),
    ("InUnknownProtos", &["dropped-unknown-protocol"], "packet for unknown"),
    ("ForwDatagrams", &["forwarded-packets"], "packet forwarded"),
    ("FastForwarded", &["fast-forwarded-packets"], FAST),
    (
        "NotForwardable",
        &["packets-cannot-forward", "packets-not-forwardable"],
        "packet not forwardable",
    ),
    ("OutDiscards", &["discard-no-mbufs"], "output packet dropped due to no bufs"),
    ("OutNoRoutes", &["discard-no-route"], "output packet discarded due to no route"),
];

/// Sentence in parentheses after FreeBSD's `forwarded`: `(120 packets fast forwarded)`.
const FAST: &str = "packet fast forwarded";

/// Script that prints the counters of the interfaces given as arguments, and of the machine; each
/// part follows a line with its name.
pub(super) const READ: &str = r#"for name; do echo "== $name"; netstat -I "$name" -bdnW || exit 1; done
for name in ip ip6; do echo "== $name"
netstat --libxo json -s -p $name 2>/dev/null || netstat -s -p $name || [ $name = ip6 ] || exit 1
echo; done
echo "== netisr"; netstat -Q 2>/dev/null
echo "== irq"; vmstat -ai 2>/dev/null
true"#;

/// Reads all counters of both interfaces.
///
/// # Errors
/// Fails if netstat fails.
pub fn read(host: &dyn Host, links: &Links) -> Result<Reading, BenchError> {
    let names = links.both().map(|link| link.interface.as_str());
    let text = host.run(&[&["/bin/sh", "-c", READ, "sh"][..], &names].concat(), "")?;
    let parts: BTreeMap<&str, &str> =
        text.split("== ").filter_map(|part| part.split_once('\n')).collect();
    let part = |name: &str| parts.get(name).copied().unwrap_or_default();
    let mut all = Reading::new();
    for name in names {
        let found = interface_counters(name, part(name));
        if found.is_empty() {
            return Err(BenchError::Program {
                command: format!("netstat -I {name} -bdnW"),
                host: host.name().into(),
                why: format!("no line of {name}'s link: {}", part(name).trim()),
            });
        }
        all.extend(found);
    }
    for protocol in ["ip", "ip6"] {
        let found = json_counters(protocol, part(protocol));
        // A kernel without IPv6 has no such statistics.
        all.extend(match found.is_empty() {
            false => found,
            true => text_counters(protocol, part(protocol)),
        });
    }
    all.extend(netisr_counters(part("netisr")));
    let totals = interrupts::parse(part("irq"));
    for (_, name, total) in totals {
        // All interrupts of a vtnet have the same name.
        let sum = all.entry(format!("irq {name}")).or_default();
        *sum = sum.saturating_add(total);
    }
    Ok(all)
}

/// Packets dropped because a protocol's queue was full, from `netstat -Q`.
pub fn netisr_counters(text: &str) -> Vec<(String, u64)> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(header) = lines.find(|row| row.first() == Some(&"WSID")) else { return Vec::new() };
    let column = |name: &str| header.iter().position(|known| *known == name);
    let (Some(name), Some(drops)) = (column("Name"), column("QDrops")) else { return Vec::new() };
    let mut all = Reading::new();
    for row in lines {
        if let (Some(name), Some(Ok(drops))) = (row.get(name), row.get(drops).map(|n| n.parse())) {
            let sum = all.entry(format!("netisr {name} dropped")).or_default();
            *sum = u64::saturating_add(*sum, drops);
        }
    }
    all.into_iter().collect()
}

/// Parses the link line of the interface from `netstat -I IF -bdnW`. Columns are counted from the
/// right: an interface without an address has one fewer.
pub fn interface_counters(interface: &str, text: &str) -> Vec<(String, u64)> {
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let Some(header) = rows.iter().find(|row| row.first() == Some(&"Name")) else {
        return Vec::new();
    };
    let is_link = |row: &&Vec<&str>| {
        let name = row.first().map_or("", |name| name.trim_end_matches('*'));
        name == interface && row.get(2).is_some_and(|network| network.starts_with("<Link"))
    };
    let Some(row) = rows.iter().find(is_link) else { return Vec::new() };
    let columns = [
        ("rx_packets", "Ipkts"),
        ("rx_errors", "Ierrs"),
        ("rx_dropped", "Idrop"),
        ("tx_packets", "Opkts"),
        ("tx_errors", "Oerrs"),
        ("tx_dropped", "Drop"),
    ];
    let value = |column: &str| {
        let from_right = header.len() - header.iter().position(|name| *name == column)?;
        row.get(row.len().checked_sub(from_right)?)?.parse().ok()
    };
    let named = columns
        .iter()
        .filter_map(|(name, column)| Some((format!("{interface} {name}"), value(column)?)));
    named.collect()
}

/// Statistics of a protocol from netstat's JSON.
pub fn json_counters(protocol: &str, text: &str) -> Vec<(String, u64)> {
    let Ok(json) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let Some(fields) = json.get("statistics").and_then(|all| all.get(protocol)) else {
        return Vec::new();
    };
    sums(protocol, |(_, fields_of, _)| {
        let field = fields_of.iter().find_map(|name| fields.get(name))?;
        // libxo writes numbers; some releases quote them.
        field.as_u64().or_else(|| field.as_str()?.parse().ok())
    })
}

/// The same statistics from netstat's sentences: `123 packets forwarded (120 packets fast
/// forwarded)`.
pub fn text_counters(protocol: &str, text: &str) -> Vec<(String, u64)> {
    let singular = |sentence: &str| {
        ["packets", "datagrams", "checksums"]
            .iter()
            .fold(sentence.to_owned(), |text, word| text.replace(word, &word[..word.len() - 1]))
    };
    let lines: Vec<(u64, String)> = text
        .split(['\n', '(', ')'])
        .filter_map(|line| line.trim().split_once(' '))
        .filter_map(|(number, rest)| Some((number.parse().ok()?, singular(rest))))
        .collect();
    sums(protocol, |(_, _, sentence)| {
        let line = lines.iter().find(|(_, rest)| rest.starts_with(sentence))?;
        Some(line.0)
    })
}

type Name = (&'static str, &'static [&'static str], &'static str);

fn sums(protocol: &str, value: impl Fn(&Name) -> Option<u64>) -> Vec<(String, u64)> {
    let mut all = Reading::new();
    for name in NAMES {
        if let Some(value) = value(name) {
            let sum = all.entry(format!("{protocol} {}", name.0)).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    all.into_iter().collect()
}

/// True for the driver of a virtual machine's interface: it counts packets it receives, but not
/// those that the hypervisor dropped for lack of room.
fn is_virtual(interface: &str) -> bool {
    ["vtnet", "vmx", "hn", "xn"].contains(&driver(interface).0)
}

/// Packets that vtnet(4) may not have counted yet: it counts them when the next ones are sent.
const VTNET_UNCOUNTED: u64 = 256;

/// Like [`compare`](crate::counters::compare), except that an interface of a virtual machine
/// may receive fewer packets than were offered: the difference is a drop place ([`drops`]).
pub fn compare(
    before: &crate::Reading,
    after: &crate::Reading,
    totals: Totals,
    links: &Links,
) -> Vec<Counter> {
    let mut all = crate::counters::compare(before, after, totals, links);
    let [ingress, egress] = links.both().map(|link| link.interface.as_str());
    let received = format!("{ingress} rx_packets + rx_dropped");
    let (sent, is_vtnet) = (format!("{egress} tx_packets"), driver(egress).0 == "vtnet");
    for counter in &mut all {
        let delta = counter.delta();
        counter.expected = counter.expected.filter(|&own_count| match &counter.name {
            name if *name == received && is_virtual(ingress) => delta > own_count,
            name if *name == sent && is_vtnet => delta.abs_diff(own_count) > VTNET_UNCOUNTED,
            _ => true,
        });
    }
    all
}

/// Places where packets of a run were lost along their path; the last one is the remainder.
pub fn drops(loss: &Loss<'_>, has_firewall: bool, links: &Links) -> Vec<DropPlace> {
    let (ingress, egress) = (links.ingress.interface.as_str(), links.egress.interface.as_str());
    let risen = Increments::in_machine(loss);
    let errors = risen.errors();
    let no_route = risen.ip("OutNoRoutes");
    let not_forwardable = (risen.ip("NotForwardable") - no_route).max(0);
    let (output, sent) = (risen.ip("OutDiscards"), risen.at(egress, "tx_packets"));
    let unsent = risen.at(egress, "tx_dropped") + risen.at(egress, "tx_errors");
    let netisr: i64 =
        ["ether", "ip", "ip6"].iter().map(|name| risen.of(&format!("netisr {name} dropped"))).sum();
    let [received, full, broken] =
        ["rx_packets", "rx_dropped", "rx_errors"].map(|column| risen.at(ingress, column));
    let outside = match is_virtual(ingress) {
        true => (clamp_count(loss.total.offered) - received - full - broken).max(0),
        false => 0,
    };
    let mut places = vec![
        (format!("on the way to {ingress}, which is virtual: its queue full"), outside),
        (format!("receive queues of {ingress} full"), full),
        (format!("errors at {ingress}"), broken),
        ("netisr queue full".to_owned(), netisr),
        errors.clone(),
        ("IP input: not forwardable".to_owned(), not_forwardable),
        ("no route".to_owned(), no_route),
        ("IP output: no buffers".to_owned(), output),
        (format!("output of {egress}: queue full"), unsent),
    ];
    if has_firewall {
        // The firewall dropped packets that were received and neither rejected nor passed on, but
        // at most the missing ones: not all received packets belong to the test.
        let between =
            received - netisr - errors.1 - not_forwardable - no_route - output - sent - unsent;
        let explained: i64 = places.iter().map(|(_, packets)| *packets).sum();
        let missing = loss.total.lost() - explained - clamp_count(loss.receiver);
        let is_known = loss.total.lost() != 0;
        let dropped = if is_known { between.min(missing) } else { between };
        places.insert(7, ("firewall".to_owned(), dropped.max(0)));
    }
    with_unexplained(places, loss)
}

/// CPU time of one CPU in ticks of the statistics clock (`kern.clockrate`, stathz).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// User programs.
    pub user: u64,
    /// User programs of low priority.
    pub nice: u64,
    /// The kernel.
    pub system: u64,
    /// Interrupts, which include a router's work.
    pub interrupt: u64,
    /// Idle time.
    pub idle: u64,
}

/// Times of each CPU in order, from `sysctl -n kern.cp_times`; `None` unless there are five numbers
/// per CPU.
pub fn cpu_times(text: &str) -> Option<Vec<CpuTicks>> {
    let words = text.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = words.collect::<Result<_, _>>().ok()?;
    let (cpus, rest) = numbers.as_chunks::<5>();
    (rest.is_empty() && !cpus.is_empty()).then(|| {
        let ticks = |&[user, nice, system, interrupt, idle]: &[u64; 5]| CpuTicks {
            user,
            nice,
            system,
            interrupt,
            idle,
        };
        cpus.iter().map(ticks).collect()
    })
}

/// Times of all CPUs from `kern.cp_times`, which counts at the rate `stathz` of `kern.clockrate`
/// (clocks(7)); FreeBSD's interrupt time corresponds to Linux's softirq time.
pub fn times(text: &str) -> Option<Vec<CpuTime>> {
    let (times, rates) = text.split_once('{')?;
    let rate = rates.split("stathz =").nth(1)?;
    let rate: String = rate.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let tick_ns = 1_000_000_000 / rate.parse::<u64>().ok().filter(|&rate| rate > 0)?;
    let cpus = cpu_times(times)?.into_iter().zip(0..);
    let times = cpus.map(|(ticks, cpu)| CpuTime {
        cpu,
        role: String::new(),
        user_ns: (ticks.user + ticks.nice) * tick_ns,
        system_ns: ticks.system * tick_ns,
        softirq_ns: ticks.interrupt * tick_ns,
        idle_ns: ticks.idle * tick_ns,
        stolen_ns: 0,
    });
    Some(times.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Totals;
    use crate::counters::compare;
    use crate::freebsd::tests::hp;
    use fwdlab_model::record::Counts;
    use fwdlab_model::settings::Settings;

    #[test]
    fn interface_counters_parse_with_and_without_an_address() {
        // Format of netstat(1) on FreeBSD 14.
        let text = "Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop\n\
            cxl0   1500 <Link#1>      00:07:43:2e:e4:70  1000     1    20      60000      900     2      54000     0     3\n\
            cxl0      - 198.18.0.0/24 198.18.0.10           5     -     -        300        5     -        300     -     -\n";
        let bare = text.replace("00:07:43:2e:e4:70", "").replace("cxl0 ", "cxl0*");
        for text in [text, &bare] {
            let found: Reading = interface_counters("cxl0", text).into_iter().collect();
            let expected = [
                ("cxl0 rx_dropped".to_owned(), 20),
                ("cxl0 rx_errors".to_owned(), 1),
                ("cxl0 rx_packets".to_owned(), 1000),
                ("cxl0 tx_dropped".to_owned(), 3),
                ("cxl0 tx_errors".to_owned(), 2),
                ("cxl0 tx_packets".to_owned(), 900),
            ];
            assert_eq!(found, Reading::from(expected), "{text}");
        }
        assert_eq!(interface_counters("cxl1", text), []);
        assert_eq!(interface_counters("cxl0", "netstat: nonsense"), []);
    }

    #[test]
    fn json_and_text_statistics_agree() {
        // Field names and sentences are from netstat's ip_stats() in FreeBSD 14.
        let json = r#"{"statistics": {"ip": {"received-packets": 1000, "dropped-bad-checksum": 2,
            "dropped-bad-version": 3, "forwarded-packets": 900, "fast-forwarded-packets": 890,
            "packets-cannot-forward": 4,
            "discard-no-route": "5", "discard-no-mbufs": 6, "dropped-unknown-protocol": 0}}}"#;
        let text = "ip:\n\t1000 total packets received\n\t2 bad header checksums\n\t3 with incorrect version number\n\t0 packets for unknown/unsupported protocol\n\t900 packets forwarded (890 packets fast forwarded)\n\t4 packets not forwardable\n\t6 output packets dropped due to no bufs, etc.\n\t5 output packets discarded due to no route\n";
        let found = json_counters("ip", json);
        assert_eq!(found, text_counters("ip", text));
        let found: Reading = found.into_iter().collect();
        assert_eq!((found["ip InHdrErrors"], found["ip OutNoRoutes"]), (5, 5));
        assert_eq!((found["ip ForwDatagrams"], found["ip NotForwardable"]), (900, 4));
        assert_eq!(found["ip FastForwarded"], 890);
        let one = text_counters("ip6", "ip6:\n\t1 total packet received\n\t1 packet forwarded\n");
        assert_eq!(one.len(), 2);
        assert_eq!(json_counters("ip", "{}"), []);
        assert_eq!(json_counters("ip", "netstat: illegal option"), []);
    }

    #[test]
    fn counters_have_expected_values_and_drops_sum_to_the_loss() {
        let before = Reading::from([("cxl0 rx_dropped".into(), 7), ("cxl0 rx_packets".into(), 0)]);
        let mut before = before;
        before.insert("cxl1 tx_packets".into(), 0);
        let after = Reading::from([
            ("cxl0 rx_packets".into(), 940),
            ("cxl0 rx_dropped".into(), 67),
            ("cxl1 tx_packets".into(), 700),
            ("cxl1 tx_dropped".into(), 30),
            // FreeBSD 13.2 counts twice on the fast path, and includes ssh's own packets.
            ("ip InReceives".into(), 935 * 2 + 321),
            ("ip OutNoRoutes".into(), 5),
            ("ip NotForwardable".into(), 5),
            ("netisr ip dropped".into(), 4),
        ]);
        let total = Counts { offered: 1000, forwarded: 690 };
        let [before, after] =
            [before, after].map(|machine| crate::Reading { machine, own: Vec::new() });
        let totals = Totals { passed: total, at_interfaces: total, ..Totals::default() };
        let counters = compare(&before, &after, totals, &hp());
        let sum = counters.iter().find(|counter| counter.name.contains('+')).expect("the sum");
        assert_eq!((sum.delta(), sum.expected), (1000, Some(1000)));
        let sent = counters.iter().find(|c| c.name == "cxl1 tx_packets").expect("sent");
        assert_eq!(sent.expected, Some(690));
        let settings = &Settings::default();
        let loss = Loss { before: &before, after: &after, total, receiver: 10, settings };
        let found = drops(&loss, true, &hp());
        assert_eq!(found.iter().map(|drop| drop.packets).sum::<i64>(), total.lost());
        let firewall = found.iter().find(|drop| drop.place == "firewall").expect("between");
        assert_eq!(firewall.packets, 940 - 4 - 5 - 700 - 30);
        assert_eq!(found.last().map(|drop| drop.packets), Some(0));
        assert!(found.iter().all(|drop| !drop.place.contains("not forwardable")), "{found:?}");
        let without = drops(&loss, false, &hp());
        assert!(without.iter().all(|drop| drop.place != "firewall"));
    }

    fn machine_readings(received: u64, sent: u64) -> [crate::Reading; 2] {
        let counters = |factor: u64| {
            Reading::from([
                ("vtnet1 rx_packets".into(), factor * received),
                ("vtnet2 tx_packets".into(), factor * sent),
                ("ip InReceives".into(), factor * (2 * received + 900)),
                ("ip ForwDatagrams".into(), factor * sent),
            ])
        };
        [0, 1].map(|factor| crate::Reading { machine: counters(factor), own: Vec::new() })
    }

    fn virtual_links() -> Links {
        let mut links = hp();
        links.ingress.interface = "vtnet1".into();
        links.egress.interface = "vtnet2".into();
        links
    }

    #[test]
    fn drops_at_a_full_tap_raise_no_doubt_and_spare_the_firewall() {
        let (links, settings) = (virtual_links(), Settings::default());
        let [before, after] = machine_readings(808_090, 808_000);
        let total = Counts { offered: 1_473_659, forwarded: 808_000 };
        let totals = Totals { passed: total, at_interfaces: total, ..Totals::default() };
        let sum = |counters: &[Counter]| {
            let sum = counters.iter().find(|counter| counter.name.contains('+'));
            sum.expect("the sum").expected
        };
        assert_eq!(sum(&super::compare(&before, &after, totals, &links)), None);
        // More packets than offered still raise a doubt.
        let few = Counts { offered: 1000, forwarded: 1000 };
        let few = Totals { passed: few, at_interfaces: few, ..Totals::default() };
        assert_eq!(sum(&super::compare(&before, &after, few, &links)), Some(1000));
        // Packets that vtnet has not counted yet raise no doubt.
        let sent = |forwarded| {
            let near = Counts { forwarded, ..total };
            let totals = Totals { at_interfaces: near, ..totals };
            let counters = super::compare(&before, &after, totals, &links);
            counters.iter().find(|c| c.name == "vtnet2 tx_packets").and_then(|c| c.expected)
        };
        assert_eq!([808_032, 808_257].map(sent), [None, Some(808_257)]);
        let loss = Loss { before: &before, after: &after, total, receiver: 0, settings: &settings };
        let found = drops(&loss, true, &links);
        let of =
            |word: &str| found.iter().find(|drop| drop.place.contains(word)).map(|d| d.packets);
        assert_eq!(of("is virtual"), Some(1_473_659 - 808_090));
        assert_eq!((of("firewall"), of("no counter")), (Some(90), Some(-0)));
        assert_eq!(found.iter().map(|drop| drop.packets).sum::<i64>(), total.lost());
    }

    #[test]
    fn netisr_drops_are_summed_over_workstreams() {
        // `netstat -Q` of FreeBSD 13.2, with drops and a second CPU.
        let text = "Configuration:\nSetting                        Current        Limit\nThread count                         1            1\n\nProtocols:\nName   Proto QLimit Policy Dispatch Flags\nip         1    256   flow  default   ---\n\nWorkstreams:\nWSID CPU   Name     Len WMark   Disp'd  HDisp'd   QDrops   Queued  Handled\n   0   0   ip         0     0      111        0        3        0      111\n   0   0   ether      0     0      112        0        0        0      112\n   1   1   ip         0     0        0        0        4        0        0\n";
        let found = netisr_counters(text);
        assert_eq!(found[1], ("netisr ip dropped".to_owned(), 7));
        assert_eq!(found.len(), 2);
        assert_eq!(netisr_counters("netstat: nonsense"), []);
    }

    #[test]
    fn cpu_times_require_five_numbers_per_cpu() {
        let found = cpu_times("116 0 85 4 30896 205 0 103 6 30787\n").expect("two CPUs");
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].user, found[1].interrupt, found[1].idle), (205, 6, 30787));
        for wrong in ["", "1 2 3 4", "1 2 3 4 x", "1 2 3 4 5 6"] {
            assert_eq!(cpu_times(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_converts_ticks_to_nanoseconds() {
        let text = "1 2 3 4 5 10 20 30 40 50\n{ hz = 1000, tick = 1000, profhz = 8128, stathz = \
                    100 }\n";
        let found = times(text).expect("two CPUs");
        assert_eq!((found[1].cpu, found[1].user_ns), (1, 300_000_000));
        assert_eq!((found[0].softirq_ns, found[0].idle_ns), (40_000_000, 50_000_000));
        // FreeBSD 13.2 prints everything on one line.
        let line = "5527 18 2256 145 14500 { hz = 100, tick = 10000, profhz = 8128, stathz = 127 }";
        let found = times(line).expect("one CPU");
        assert_eq!(crate::cpu::passed_ns(&found[0]), (5527 + 18 + 2256 + 145 + 14500) * 7_874_015);
        assert!(times("1 2 3\n{ stathz = 127 }").is_none());
    }
}
