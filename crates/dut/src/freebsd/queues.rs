//! Number of queues of an interface: the tunables that set it, by driver and release.
//!
//! Sources: cxgbe(4), iflib(4), igb(4) and ixgbe(4) of FreeBSD 11, vtnet(4), and `dev.mce.N.conf`
//! of the driver mlx5en. Unlisted drivers are rejected rather than guessed at; `loader` in the
//! experiment sets their tunables by name.

use crate::counters::Reading;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::queues::{Direction, counter_name};
use std::collections::{BTreeMap, BTreeSet};

/// First release whose Intel, Broadcom and VMware drivers use iflib(4).
const IFLIB: u32 = 1_200_000;
/// First release whose cxgbe(4) tunables never have a speed in their names; in FreeBSD 12 some do
/// and some do not.
const CXGBE_ONE_NAME: u32 = 1_300_000;

/// Driver and unit number of an interface: (`cxl`, `0`) for `cxl0`.
pub fn driver(interface: &str) -> (&str, &str) {
    let parent = interface.split('.').next().unwrap_or(interface);
    let name = parent.trim_end_matches(|c: char| c.is_ascii_digit());
    parent.split_at(name.len())
}

/// Tunables that give `interface` this number of queues in each direction. Empty for one queue of
/// an unknown driver, and if `loader` itself sets tunables of an unknown driver.
///
/// # Errors
/// Fails if more than one queue is requested of an unknown driver.
pub fn tunables(
    interface: &str,
    queues: u16,
    release: u32,
    loader: &BTreeMap<String, String>,
) -> Result<Vec<(String, String)>, BenchError> {
    let (name, unit) = driver(interface);
    let names: Vec<String> = match name {
        "cxgbe" | "cxl" | "cc" if release < IFLIB => cxgbe(&["nrxq10g", "ntxq10g"]),
        "cxgbe" | "cxl" | "cc" if release < CXGBE_ONE_NAME => {
            cxgbe(&["nrxq10g", "ntxq10g", "nrxq", "ntxq"])
        }
        "cxgbe" | "cxl" | "cc" => cxgbe(&["nrxq", "ntxq"]),
        "vcxgbe" | "vcxl" | "vcc" => cxgbe(&["nrxq_vi", "ntxq_vi"]),
        "mce" => vec![format!("dev.mce.{unit}.conf.channels")],
        "vtnet" => vec![format!("hw.vtnet.{unit}.mq_max_pairs")],
        _ if is_iflib(name) && release >= IFLIB => ["override_nrxqs", "override_ntxqs"]
            .map(|last| format!("dev.{name}.{unit}.iflib.{last}"))
            .to_vec(),
        "igb" | "ix" | "ixv" => vec![format!("hw.{name}.num_queues")],
        "ixl" => vec!["hw.ixl.max_queues".into()],
        _ => {
            let prefixes = [format!("hw.{name}."), format!("dev.{name}.")];
            let is_set_by_loader =
                loader.keys().any(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)));
            if queues == 1 || is_set_by_loader {
                return Ok(Vec::new());
            }
            return Err(BenchError::Refused(format!(
                "queues = {queues}: how {interface} gets its queues is not known, for its driver \
                 `{name}` is none of cxgbe, mlx5en, vtnet and those of iflib(4)\n  next step: \
                 leave `queues` out and name its tunable in `loader`, e.g. \
                 loader = {{ \"hw.{name}.num_queues\" = \"{queues}\" }}"
            )));
        }
    };
    Ok(names.into_iter().map(|name| (name, queues.to_string())).collect())
}

fn cxgbe(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("hw.cxgbe.{name}")).collect()
}

fn is_iflib(driver: &str) -> bool {
    ["em", "igb", "igc", "ix", "ixv", "ixl", "iavf", "ice", "bnxt", "vmx"].contains(&driver)
}

/// Current number of queues of an interface, or of both directions if they differ; `None` if the
/// driver does not report it.
pub fn found(host: &dyn Host, interface: &str) -> Option<String> {
    let (name, unit) = driver(interface);
    let oid = |last: &str| {
        let oid = format!("dev.{name}.{unit}.{last}");
        Some(host.run(&["sysctl", "-n", &oid], "").ok()?.trim().to_owned())
    };
    match name {
        "cxgbe" | "cxl" | "cc" | "vcxgbe" | "vcxl" | "vcc" => {
            let (receive, transmit) = (oid("nrxq")?, oid("ntxq")?);
            Some(if receive == transmit { receive } else { format!("{receive} rx, {transmit} tx") })
        }
        "mce" => oid("conf.channels"),
        // No pair is active before the interface is first up.
        "vtnet" => oid("act_vq_pairs").filter(|pairs| pairs != "0").or_else(|| oid("req_vq_pairs")),
        _ => {
            let names = host.run(&["sysctl", "-N", &format!("dev.{name}.{unit}")], "").ok()?;
            Some(counted(&names)).filter(|count| *count > 0).map(|count| count.to_string())
        }
    }
}

/// Number of receive queues in the names of sysctls: `dev.ix.0.iflib.rxq03.cpu` (iflib(4)),
/// `dev.igb.0.queue3.rx_packets` (older drivers).
pub fn counted(names: &str) -> usize {
    let number = |part: &str| {
        let number = part.strip_prefix("rxq").or_else(|| part.strip_prefix("queue"))?;
        number.parse::<u16>().ok()
    };
    let queues = names.lines().filter_map(|name| name.split('.').find_map(number));
    queues.collect::<BTreeSet<u16>>().len()
}

/// Packets of each queue of `interface` since boot, under the names of
/// [`fwdlab_model::record::queues`], for drivers that count them by sysctl: igb(4) before FreeBSD
/// 12, ix(4), ixl(4), mlx5en (`mce`), vmx(4) and vtnet(4); cxgbe(4) counts sent packets only. The
/// other drivers of iflib(4) do not count them.
pub fn packets(host: &dyn Host, interface: &str) -> Reading {
    let (name, unit) = driver(interface);
    if !COUNTING.contains(&name) {
        return Reading::new();
    }
    let text = host.run(&["sysctl", &format!("dev.{name}.{unit}")], "").unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(": "));
    let found = pairs.filter_map(|(oid, value)| {
        let (direction, queue) = queue_of(oid)?;
        Some((counter_name(interface, direction, queue), value.trim().parse().ok()?))
    });
    let mut all = Reading::new();
    for (name, packets) in found {
        // cxgbe(4) counts sent packets in several sysctls, by the way they were sent.
        let sum: &mut u64 = all.entry(name).or_default();
        *sum = sum.saturating_add(packets);
    }
    all
}

/// Drivers whose sysctls count packets per queue.
const COUNTING: [&str; 12] =
    ["cc", "cxgbe", "cxl", "iavf", "igb", "ix", "ixl", "ixv", "mce", "vcxl", "vmx", "vtnet"];

/// Queue whose packets a sysctl counts: `dev.ix.0.queue3.rx_packets`, `dev.mce.0.rxstat3.packets`,
/// `dev.mce.0.txstat3tc0.packets`, `dev.vtnet.0.rxq3.ipackets` (`packets` before FreeBSD 13),
/// `dev.ixl.0.pf.rxq03.packets`, `dev.vmx.0.rxq3.hstats.ucast_packets`,
/// `dev.cxl.0.txq.3.txpkts1_pkts`.
fn queue_of(oid: &str) -> Option<(Direction, u16)> {
    let (receive, transmit) = (Direction::Receive, Direction::Transmit);
    let (beginning, what) = oid.rsplit_once('.')?;
    if let Some((beginning, queue)) = beginning.rsplit_once('.')
        && beginning.ends_with(".txq")
    {
        let is_packets = ["txpkt_wrs", "txpkts0_pkts", "txpkts1_pkts"].contains(&what);
        return Some((transmit, queue.parse().ok().filter(|_| is_packets)?));
    }
    let oid = oid.replace(".hstats.", ".");
    let mut last = oid.rsplitn(3, '.');
    let (what, queue) = (last.next()?, last.next()?);
    let forms = [
        ("queue", "", "rx_packets", receive),
        ("queue", "", "tx_packets", transmit),
        ("rxstat", "", "packets", receive),
        ("txstat", "tc0", "packets", transmit),
        ("rxq", "", "packets", receive),
        ("txq", "", "packets", transmit),
        ("rxq", "", "ipackets", receive),
        ("txq", "", "opackets", transmit),
        ("rxq", "", "ucast_packets", receive),
        ("txq", "", "ucast_packets", transmit),
    ];
    forms.into_iter().find_map(|(head, tail, packets, direction)| {
        let number = queue.strip_prefix(head)?.strip_suffix(tail)?;
        Some((direction, number.parse().ok().filter(|_| what == packets)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(interface: &str, release: u32) -> Vec<String> {
        let found = tunables(interface, 4, release, &BTreeMap::new()).expect("known");
        assert!(found.iter().all(|(_, value)| value == "4"));
        found.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn tunables_depend_on_driver_and_release() {
        assert_eq!(names("cxl1", 1_002_000), ["hw.cxgbe.nrxq10g", "hw.cxgbe.ntxq10g"]);
        assert_eq!(names("cc0", 1_400_097), ["hw.cxgbe.nrxq", "hw.cxgbe.ntxq"]);
        assert_eq!(names("cxl0", 1_200_015).len(), 4);
        assert_eq!(names("vcxl0", 1_400_097), ["hw.cxgbe.nrxq_vi", "hw.cxgbe.ntxq_vi"]);
        assert_eq!(
            names("ix1.100", 1_300_139),
            ["dev.ix.1.iflib.override_nrxqs", "dev.ix.1.iflib.override_ntxqs"]
        );
        assert_eq!(names("igb0", 1_100_000), ["hw.igb.num_queues"]);
        assert_eq!(names("mce0", 1_300_139), ["dev.mce.0.conf.channels"]);
        assert_eq!(names("vtnet2", 1_400_097), ["hw.vtnet.2.mq_max_pairs"]);
    }

    #[test]
    fn unknown_driver_error_names_the_workaround() {
        let mut loader = BTreeMap::new();
        let error = tunables("ena0", 4, 1_400_097, &loader).expect_err("unknown").to_string();
        assert!(error.contains("`ena`") && error.contains("`loader`"), "{error}");
        assert_eq!(tunables("ena0", 1, 1_400_097, &loader).expect("one").len(), 0);
        loader.insert("hw.ena.queues".into(), "4".into());
        assert_eq!(tunables("ena0", 4, 1_400_097, &loader).expect("spoken of").len(), 0);
    }

    #[test]
    fn queues_are_counted_from_sysctl_names() {
        let iflib = "dev.ix.0.iflib.rxq00.cpu\ndev.ix.0.iflib.rxq00.rxq_fl0.credits\ndev.ix.0.iflib.rxq01.cpu\ndev.ix.0.iflib.txq00.cpu\n";
        assert_eq!(counted(iflib), 2);
        assert_eq!(counted("dev.igb.0.queue0.rx_packets\ndev.igb.0.queue1.rx_packets\n"), 2);
        assert_eq!(counted("dev.re.0.mtu\n"), 0);
    }

    #[test]
    fn packets_of_all_send_methods_are_summed_per_queue() {
        let text = "dev.cxl.0.txq.1.txpkts1_pkts: 3\ndev.cxl.0.txq.1.txpkts0_pkts: 20\n\
                    dev.cxl.0.txq.1.txpkt_wrs: 100\ndev.cxl.0.txq.1.txpkts1_wrs: 7\n\
                    dev.cxl.0.txq.0.txpkt_wrs: 5\n";
        let mut host = fwdlab_host::FakeHost::default();
        host.outputs.insert("sysctl dev.cxl.0".into(), text.into());
        let found: Vec<(String, u64)> = packets(&host, "cxl0").into_iter().collect();
        let name = |queue| counter_name("cxl0", Direction::Transmit, queue);
        assert_eq!(found, [(name(0), 5), (name(1), 123)]);
        host.outputs.insert("sysctl dev.re.0".into(), text.into());
        assert!(packets(&host, "re0").is_empty());
    }

    #[test]
    fn queue_of_recognises_packet_counters() {
        let (rx, tx) = (Direction::Receive, Direction::Transmit);
        for (oid, expected) in [
            ("dev.ix.0.queue3.rx_packets", Some((rx, 3))),
            ("dev.ix.0.queue3.tx_packets", Some((tx, 3))),
            ("dev.mce.1.rxstat0.packets", Some((rx, 0))),
            ("dev.mce.1.txstat7tc0.packets", Some((tx, 7))),
            ("dev.vtnet.0.rxq1.packets", Some((rx, 1))),
            ("dev.vtnet.1.rxq0.ipackets", Some((rx, 0))),
            ("dev.vtnet.1.txq0.opackets", Some((tx, 0))),
            ("dev.vtnet.1.txq0.omcasts", None),
            ("dev.ixl.0.pf.rxq03.packets", Some((rx, 3))),
            ("dev.ixl.0.pf.txq12.packets", Some((tx, 12))),
            ("dev.vmx.0.rxq1.hstats.ucast_packets", Some((rx, 1))),
            ("dev.vmx.0.txq1.hstats.mcast_packets", None),
            ("dev.cxl.0.txq.3.txpkt_wrs", Some((tx, 3))),
            ("dev.cxl.0.txq.3.txpkts1_wrs", None),
            ("dev.cxl.0.rxq.3.rxcsum", None),
            ("dev.vtnet.0.rxq1.bytes", None),
            ("dev.ix.0.queue3.lro_queued", None),
            ("dev.ix.0.mac_stats.rx_packets", None),
        ] {
            assert_eq!(queue_of(oid), expected, "{oid}");
        }
    }
}
