//! How long packets took through the device: a histogram of a trial's window.

use fwdlab_packet::arrivals::{Delays, delays};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Packets beyond a percentile without which it is a matter of a few packets' luck.
const BEYOND: f64 = 10.0;

/// The one-way delays of a window's packets (RFC 7679), nanoseconds: from the time at which
/// each was due at the sender until the receiver saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Sum of all delays.
    pub sum_ns: u64,
    /// The smallest one.
    pub min_ns: u32,
    /// The greatest one.
    pub max_ns: u32,
    /// Packets by bucket ([`delays::bounds`]): those buckets that have some, in order.
    pub buckets: Vec<(u16, u64)>,
    /// The same of the absolute differences between the delays of a flow's consecutive packets
    /// (RFC 3393): of each pair that arrived whole. None where they were not looked at, or there
    /// was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<Box<Latency>>,
}

impl Latency {
    /// What a receiver has counted; none if no packet came.
    pub fn of(counted: &Delays) -> Option<Latency> {
        let (min_ns, max_ns) = counted.range_ns()?;
        let buckets = counted.filled().map(|(bucket, packets)| (bucket as u16, packets));
        let differences = counted.differences().and_then(Latency::of).map(Box::new);
        let (sum_ns, buckets) = (counted.sum_ns(), buckets.collect());
        Some(Latency { sum_ns, min_ns, max_ns, buckets, differences })
    }

    /// With another trial's packets.
    pub fn merged(&self, other: &Latency) -> Latency {
        let mut buckets: BTreeMap<u16, u64> = self.buckets.iter().copied().collect();
        for &(bucket, packets) in &other.buckets {
            *buckets.entry(bucket).or_default() += packets;
        }
        Latency {
            sum_ns: self.sum_ns + other.sum_ns,
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
            buckets: buckets.into_iter().collect(),
            differences: match (&self.differences, &other.differences) {
                (Some(one), Some(other)) => Some(Box::new(one.merged(other))),
                (some, none) => some.clone().or_else(|| none.clone()),
            },
        }
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.buckets.iter().map(|(_, packets)| packets).sum()
    }

    /// Mean delay, nanoseconds, of the same packets that the percentiles are of.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.packets().max(1) as f64
    }

    /// The delay that this share of the packets does not exceed, nanoseconds, within 0.8 %: the
    /// middle of its bucket. None where fewer than ten packets lie beyond it.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let packets = self.packets();
        if (1.0 - share) * (packets as f64) < BEYOND - 1e-6 {
            return None;
        }
        let wanted = ((share * packets as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, packets)| {
            sum += packets;
            sum >= wanted
        })?;
        let (first, last) = delays::bounds(usize::from(*bucket).min(delays::BUCKETS - 1));
        let middle = (f64::from(first) + f64::from(last)) / 2.0;
        Some(middle.clamp(f64::from(self.min_ns), f64::from(self.max_ns)))
    }
}

/// The delays of one trial's packets, and what the trial was for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyTrial {
    /// Its load over the rate that was found before.
    pub share: f64,
    /// The delays.
    pub delays: Latency,
}

/// The instrument's own part at a load: the same sender straight into the same receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The load, packets per second.
    pub load: u64,
    /// The delays.
    pub delays: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the sorted delays themselves.
        #[test]
        fn percentiles_and_mean_are_those_of_the_packets(
            mut all in prop::collection::vec(0..3_000_000_000u32, 10..2000),
            share in 0.0..0.999f64,
        ) {
            let mut counted = Delays::default();
            all.iter().for_each(|&delay| counted.add(delay));
            let latency = Latency::of(&counted).expect("packets");
            all.sort_unstable();
            let mean = all.iter().map(|&delay| f64::from(delay)).sum::<f64>() / all.len() as f64;
            let (one, other) = all.split_at(all.len() / 2);
            let of = |part: &[u32]| {
                let mut counted = Delays::default();
                part.iter().for_each(|&delay| counted.add(delay));
                Latency::of(&counted).expect("packets")
            };
            prop_assert_eq!(&of(one).merged(&of(other)), &latency);
            prop_assert!((latency.mean_ns() - mean).abs() <= 1e-9 * mean);
            let beyond = (1.0 - share) * all.len() as f64;
            let Some(found) = latency.quantile_ns(share) else {
                prop_assert!(beyond < 10.0);
                return Ok(());
            };
            prop_assert!(beyond > 9.9);
            let at = ((share * all.len() as f64).ceil() as usize).max(1) - 1;
            let truth = f64::from(all[at]);
            prop_assert!((found - truth).abs() <= truth / 127.0 + 0.5, "{found} for {truth}");
        }
    }

    #[test]
    fn nothing_is_said_of_no_packets_nor_of_a_handful() {
        assert_eq!(Latency::of(&Delays::default()), None);
        let mut counted = Delays::default();
        (0..1000).for_each(|delay| counted.add(delay));
        let latency = Latency::of(&counted).expect("packets");
        assert!(latency.quantile_ns(0.99).is_some());
        assert_eq!(latency.quantile_ns(0.999), None, "one packet lies beyond");
    }
}
