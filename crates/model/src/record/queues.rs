//! Packets of each queue of the DUT: counters with systematic names.

use super::Counter;
use fwdlab_packet::named;
use std::collections::BTreeMap;

named! {
    /// Direction of packets through a queue.
    pub enum Direction {
        /// Into the DUT.
        Receive = "receive",
        /// Out of it.
        Transmit = "transmit",
    }
}

impl Direction {
    fn short(self) -> &'static str {
        match self {
            Direction::Receive => "rx",
            Direction::Transmit => "tx",
        }
    }
}

/// Returns the name of the counter of one queue's packets, e.g. `d0 rx queue 3`. The packets of a
/// router's worker are counted as a queue of the interface `worker`.
pub fn counter_name(interface: &str, direction: Direction, queue: u16) -> String {
    format!("{interface} {} queue {queue}", direction.short())
}

/// Returns interface, direction and queue of a counter with such a name.
pub fn parse_name(name: &str) -> Option<(&str, Direction, u16)> {
    let (head, queue) = name.rsplit_once(" queue ")?;
    let (interface, short) = head.rsplit_once(' ')?;
    let direction = Direction::ALL.into_iter().find(|direction| direction.short() == short)?;
    Some((interface, direction, queue.parse().ok()?))
}

/// The queues of one interface in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePackets {
    /// Interface.
    pub interface: String,
    /// Direction.
    pub direction: Direction,
    /// Packets by queue, from queue 0.
    pub packets: Vec<u64>,
}

impl QueuePackets {
    /// Returns the queues without a packet, if others have some.
    pub fn idle(&self) -> Vec<u16> {
        let any = self.packets.iter().any(|&packets| packets > 0);
        let queues = (0..).zip(&self.packets).filter(|(_, packets)| any && **packets == 0);
        queues.map(|(queue, _)| queue).collect()
    }

    /// Returns the number of queues with packets.
    pub fn used(&self) -> usize {
        self.packets.iter().filter(|&&packets| packets > 0).count()
    }

    /// Returns each queue's share of all packets, 0 to 1.
    pub fn shares(&self) -> Vec<f64> {
        let total: u64 = self.packets.iter().sum();
        self.packets.iter().map(|&packets| packets as f64 / total.max(1) as f64).collect()
    }
}

/// Returns the queues among a run's counters, by interface and direction.
pub fn of_counters(counters: &[Counter]) -> Vec<QueuePackets> {
    let mut found: BTreeMap<(&str, Direction), BTreeMap<u16, u64>> = BTreeMap::new();
    for counter in counters {
        if let Some((interface, direction, queue)) = parse_name(&counter.name) {
            found.entry((interface, direction)).or_default().insert(queue, counter.delta());
        }
    }
    let queues = found.into_iter().map(|((interface, direction), packets)| {
        let last = packets.keys().next_back().copied().unwrap_or(0);
        QueuePackets {
            interface: interface.to_owned(),
            direction,
            packets: (0..=last).map(|queue| packets.get(&queue).copied().unwrap_or(0)).collect(),
        }
    });
    queues.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_round_trip_and_counters_are_grouped() {
        let name = counter_name("ix0.5", Direction::Transmit, 12);
        assert_eq!(parse_name(&name), Some(("ix0.5", Direction::Transmit, 12)));
        for other in ["d0 rx_packets", "rx queue 1", "d0 up queue 1", "d0 rx queue x"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
        let counter = |queue, packets: u64| Counter {
            name: counter_name("d0", Direction::Receive, queue),
            before: 10,
            after: 10 + packets,
            expected: None,
        };
        let found = of_counters(&[counter(2, 30), counter(0, 90), counter(1, 0)]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].packets.clone(), found[0].idle()), (vec![90, 0, 30], vec![1]));
        assert_eq!((found[0].used(), found[0].shares()), (2, vec![0.75, 0.0, 0.25]));
        // Without any packet no queue is idle relative to another.
        assert_eq!(of_counters(&[counter(0, 0), counter(1, 0)])[0].idle(), [0u16; 0]);
    }
}
