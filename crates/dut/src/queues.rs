//! Per-queue packet counters from `ethtool -S`; the counter names depend on the driver.
//!
//! Sources: the drivers' `get_strings` of Linux 6.1 to 6.18. Other drivers have no counters;
//! nothing is estimated. `virtio_net` since Linux 6.10 reports the packets of its queues only
//! through netlink (`NETDEV_CMD_QSTATS_GET`).

use super::counters::Reading;
use crate::links::Links;
use fwdlab_host::Host;
use fwdlab_model::record::queues::{Direction, counter_name};

/// Packets of each queue of both interfaces, under the names of [`fwdlab_model::record::queues`];
/// empty if the driver does not report them.
pub fn of_both(host: &dyn Host, links: &Links) -> Reading {
    let of = |interface: &str| {
        let text = host.run(&["ethtool", "-S", interface], "").unwrap_or_default();
        let name = |(direction, queue)| counter_name(interface, direction, queue);
        packets(&text).into_iter().map(|(key, n)| (name(key), n)).collect::<Reading>()
    };
    links.both().into_iter().flat_map(|link| of(&link.interface)).collect()
}

/// Packets by direction and queue.
pub fn packets(text: &str) -> Vec<((Direction, u16), u64)> {
    let pairs = text.lines().filter_map(|line| line.trim().rsplit_once(": "));
    let found: Vec<((Direction, u16), bool, u64)> = pairs
        .filter_map(|(name, value)| {
            let (direction, queue, is_xdp) = queue_of(name)?;
            Some(((direction, queue), is_xdp, value.trim().parse().ok()?))
        })
        .collect();
    // Drivers other than veth count the packets of an XDP program separately.
    let is_veth = text.lines().any(|line| line.trim_start().starts_with("peer_ifindex:"));
    let kept = found.iter().filter(|(_, is_xdp, _)| !is_xdp || is_veth);
    kept.map(|(key, _, packets)| (*key, *packets)).collect()
}

/// Queue of a packet counter, and true if the counter may include only an XDP program's packets:
///
/// | driver | names |
/// |---|---|
/// | igb, ixgbe, i40e (older), ice, iavf, virtio_net, gve | `rx_queue_0_packets`, `tx_queue_0_packets` |
/// | i40e | `rx-0.packets`, `tx-0.packets` |
/// | mlx4, mlx5, virtio_net (newer) | `rx0_packets`, `tx0_packets` |
/// | ena | `queue_0_rx_cnt`, `queue_0_tx_cnt` |
/// | veth | `rx_queue_0_xdp_packets`: packets polled, with or without an XDP program. Its peer counts the packets that it sends |
fn queue_of(name: &str) -> Option<(Direction, u16, bool)> {
    if let Some(rest) = name.strip_prefix("queue_") {
        let (queue, what) = rest.split_once('_')?;
        let direction = match what {
            "rx_cnt" => Direction::Receive,
            "tx_cnt" => Direction::Transmit,
            _ => return None,
        };
        return Some((direction, queue.parse().ok()?, false));
    }
    let (direction, rest) = match (name.strip_prefix("rx"), name.strip_prefix("tx")) {
        (Some(rest), _) => (Direction::Receive, rest),
        (_, Some(rest)) => (Direction::Transmit, rest),
        _ => return None,
    };
    let rest = rest.strip_prefix("_queue_").or(rest.strip_prefix('-')).unwrap_or(rest);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (queue, what) = rest.split_at(digits);
    let is_xdp = match what {
        "_packets" | ".packets" => false,
        "_xdp_packets" if direction == Direction::Receive => true,
        _ => return None,
    };
    Some((direction, queue.parse().ok()?, is_xdp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_packets_are_parsed_for_each_driver() {
        let (rx, tx) = (Direction::Receive, Direction::Transmit);
        let veth = "NIC statistics:\n     peer_ifindex: 6\n     rx_queue_0_xdp_packets: 12\n     \
                    rx_queue_0_drops: 3\n     rx_queue_11_xdp_packets: 0\n     \
                    tx_queue_0_xdp_xmit: 4\n";
        assert_eq!(packets(veth), [((rx, 0), 12), ((rx, 11), 0)]);
        let ixgbe = "     rx_packets: 99\n     tx_queue_1_packets: 5\n     tx_queue_1_bytes: 300\n\
                     \x20    rx_queue_1_packets: 6\n";
        assert_eq!(packets(ixgbe), [((tx, 1), 5), ((rx, 1), 6)]);
        let mlx5 = "     rx3_packets: 7\n     rx3_xdp_drop: 1\n     tx3_packets: 8\n     \
                    rx_prio0_packets: 2\n     rx3_xdp_tx_xmit: 2\n";
        assert_eq!(packets(mlx5), [((rx, 3), 7), ((tx, 3), 8)]);
        let virtio = "     rx_queue_0_packets: 5\n     rx_queue_0_xdp_packets: 0\n     \
                      tx_queue_0_packets: 4\n     tx_queue_0_xdp_tx: 0\n";
        assert_eq!(packets(virtio), [((rx, 0), 5), ((tx, 0), 4)]);
        let newer_virtio = "     rx0_drops: 0\n     rx0_xdp_packets: 0\n     rx0_kicks: 3\n";
        assert_eq!(packets(newer_virtio), []);
        assert_eq!(packets("     rx-2.packets: 7\n     tx-2.packets: 1\n").len(), 2);
        let ena = "     queue_4_rx_cnt: 9\n     queue_4_rx_bytes: 900\n     queue_4_tx_cnt: 2\n";
        assert_eq!(packets(ena), [((rx, 4), 9), ((tx, 4), 2)]);
        assert_eq!(packets("no stats available\n"), []);
    }
}
