//! Latency of packets through the device: a histogram of a trial's window.

use fwdlab_packet::arrivals::{Delays, delays};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Minimum number of packets beyond a percentile; with fewer it depends on a few packets' luck.
const BEYOND: f64 = 10.0;

/// One-way delays of a window's packets (RFC 7679) in nanoseconds: from the time at which each was
/// due at the sender until the receiver saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Sum of all delays.
    pub sum_ns: u64,
    /// The smallest delay.
    pub min_ns: u32,
    /// The greatest delay.
    pub max_ns: u32,
    /// Non-empty buckets in order: number ([`delays::bounds`]) and packets.
    pub buckets: Vec<(u16, u64)>,
    /// Absolute differences between the delays of a flow's consecutive packets (RFC 3393), of each
    /// pair that arrived intact. `None` if not measured, or without such pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<Box<Latency>>,
}

impl Latency {
    /// Returns the delays that a receiver counted; `None` without packets.
    pub fn of(counted: &Delays) -> Option<Latency> {
        let (min_ns, max_ns) = counted.range_ns()?;
        let buckets = counted.filled().map(|(bucket, packets)| (bucket as u16, packets));
        let differences = counted.differences().and_then(Latency::of).map(Box::new);
        let (sum_ns, buckets) = (counted.sum_ns(), buckets.collect());
        Some(Latency { sum_ns, min_ns, max_ns, buckets, differences })
    }

    /// Returns the delays combined with another trial's.
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

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.buckets.iter().map(|(_, packets)| packets).sum()
    }

    /// Returns the mean delay in nanoseconds, of the same packets as the percentiles.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.packets().max(1) as f64
    }

    /// Returns the delay that this share of the packets does not exceed, in nanoseconds, within 0.8
    /// %: the middle of its bucket. `None` if fewer than ten packets are beyond it.
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let packets = self.packets();
        if (1.0 - share) * (packets as f64) < BEYOND - 1e-6 {
            return None;
        }
        let rank = ((share * packets as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, packets)| {
            sum += packets;
            sum >= rank
        })?;
        let (first, last) = delays::bounds(usize::from(*bucket).min(delays::BUCKETS - 1));
        let middle = (f64::from(first) + f64::from(last)) / 2.0;
        Some(middle.clamp(f64::from(self.min_ns), f64::from(self.max_ns)))
    }
}

/// Delays of one trial's packets, with its load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyTrial {
    /// Load as a share of the rate found before.
    pub share: f64,
    /// The delays.
    pub delays: Latency,
}

/// The instrument's own latency at a load: the same sender directly into the same receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Load in packets per second.
    pub load: u64,
    /// The delays.
    pub delays: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with the sorted delays themselves.
        #[test]
        fn percentiles_and_mean_match_the_packets(
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
    fn too_few_packets_have_no_percentiles() {
        assert_eq!(Latency::of(&Delays::default()), None);
        let mut counted = Delays::default();
        (0..1000).for_each(|delay| counted.add(delay));
        let latency = Latency::of(&counted).expect("packets");
        assert!(latency.quantile_ns(0.99).is_some());
        assert_eq!(latency.quantile_ns(0.999), None, "one packet lies beyond");
    }
}
