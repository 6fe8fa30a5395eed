//! Delays of packets: a histogram whose bucket widths are a fixed share of the value.
//!
//! Each octave has [`PARTS`] buckets of equal width (as in HdrHistogram, with 64 sub-buckets), so a
//! value read from a bucket's bounds is within 1/64 (1.6 %) of the true one. Below 128 ns every
//! nanosecond has its own bucket. Sum, minimum and maximum are exact and cover the same packets, so
//! mean and percentiles always describe the same set.

/// Buckets per octave.
pub const PARTS: usize = 64;
/// Total number of buckets: for every delay of up to 32 bits (4.29 s).
pub const BUCKETS: usize = (32 - PARTS.trailing_zeros() as usize + 1) * PARTS;

/// Delays of packets in nanoseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct Delays {
    counts: Vec<u64>,
    sum_ns: u64,
    min_ns: u32,
    max_ns: u32,
    /// Delay differences between consecutive packets of a flow; `None` if not measured.
    differences: Option<Box<Delays>>,
}

/// Returns the bucket of a delay.
#[inline]
pub fn bucket(delay_ns: u32) -> usize {
    let octave = (delay_ns | PARTS as u32).ilog2() - PARTS.ilog2();
    octave as usize * PARTS + (delay_ns >> octave) as usize
}

/// Returns the smallest and the greatest delay of a bucket, in nanoseconds.
///
/// # Panics
/// If `bucket` is [`BUCKETS`] or more.
pub fn bounds(bucket: usize) -> (u32, u32) {
    assert!(bucket < BUCKETS, "bucket {bucket} of {BUCKETS}");
    let octave = (bucket / PARTS).saturating_sub(1);
    let first = ((bucket - octave * PARTS) as u32) << octave;
    (first, first + ((1u32 << octave) - 1))
}

impl Default for Delays {
    fn default() -> Delays {
        let counts = vec![0; BUCKETS];
        Delays { counts, sum_ns: 0, min_ns: u32::MAX, max_ns: 0, differences: None }
    }
}

impl Delays {
    /// Creates delays from another counter's values: packets per bucket, and the sum, minimum and
    /// maximum of their delays.
    ///
    /// # Panics
    /// If there are more than [`BUCKETS`] buckets.
    pub fn of_parts(counts: &[u64], sum_ns: u64, min_ns: u32, max_ns: u32) -> Delays {
        let mut all = vec![0; BUCKETS];
        all[..counts.len()].copy_from_slice(counts);
        Delays { counts: all, sum_ns, min_ns, max_ns, differences: None }
    }

    /// Adds the absolute differences of delays, which were counted separately.
    pub fn with_differences(self, differences: Delays) -> Delays {
        Delays { differences: Some(Box::new(differences)), ..self }
    }

    /// Absolute differences between the delays of consecutive packets of a flow (RFC 3393,
    /// one-way-ipdv), in nanoseconds. A pair counts if one packet was sent directly after the other
    /// and both arrived. `None` if not measured.
    pub fn differences(&self) -> Option<&Delays> {
        self.differences.as_deref()
    }

    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, delay_ns: u32) {
        self.counts[bucket(delay_ns)] += 1;
        self.sum_ns += u64::from(delay_ns);
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
    }

    /// Adds the packets of another counter.
    pub fn merge(&mut self, other: &Delays) {
        for (sum, packets) in self.counts.iter_mut().zip(&other.counts) {
            *sum += packets;
        }
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        if let Some(others) = &other.differences {
            self.differences.get_or_insert_default().merge(others);
        }
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the delays, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the smallest and the greatest delay in nanoseconds; `None` without packets.
    pub fn range_ns(&self) -> Option<(u32, u32)> {
        (self.min_ns <= self.max_ns).then_some((self.min_ns, self.max_ns))
    }

    /// Returns the non-empty buckets with their numbers, in order.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, packets)| packets > 0)
    }
}

impl std::fmt::Debug for Delays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = self.range_ns();
        write!(f, "{} delays, {} ns in all, {range:?}", self.packets(), self.sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_have_no_gaps() {
        let mut next = 0u64;
        for number in 0..BUCKETS {
            let (first, last) = bounds(number);
            assert_eq!(u64::from(first), next, "bucket {number}");
            assert_eq!((bucket(first), bucket(last)), (number, number));
            let width = u64::from(last - first) + 1;
            assert!(width * PARTS as u64 <= u64::from(first).max(PARTS as u64), "{number}");
            next = u64::from(last) + 1;
        }
        assert_eq!(next, 1 << 32, "the last bucket ends with the last delay");
    }

    proptest! {
        #[test]
        fn merged_counters_equal_one_counter(
            one in prop::collection::vec(any::<u32>(), 0..50),
            other in prop::collection::vec(0..100_000u32, 0..50),
        ) {
            let count = |delays: &[u32]| {
                let mut counted = Delays::default();
                delays.iter().for_each(|&delay| counted.add(delay));
                counted
            };
            let all = [one.clone(), other.clone()].concat();
            let mut sum = count(&one);
            sum.merge(&count(&other));
            prop_assert_eq!(&sum, &count(&all));
            prop_assert_eq!(sum.packets(), all.len() as u64);
            prop_assert_eq!(sum.sum_ns(), all.iter().map(|&delay| u64::from(delay)).sum::<u64>());
            let range = all.iter().min().map(|&min| (min, *all.iter().max().expect("some")));
            prop_assert_eq!(sum.range_ns(), range);
            // The mean is within the histogram's bounds: both describe the same packets.
            let bound = |end: fn((u32, u32)) -> u32| -> u64 {
                sum.filled().map(|(at, packets)| packets * u64::from(end(bounds(at)))).sum()
            };
            prop_assert!(bound(|bounds| bounds.0) <= sum.sum_ns());
            prop_assert!(sum.sum_ns() <= bound(|bounds| bounds.1));
        }
    }
}
