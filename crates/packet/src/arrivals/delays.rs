//! How long packets took: a histogram whose buckets are a fixed share of the value wide.
//!
//! Each octave has [`PARTS`] buckets of equal width (as in HdrHistogram, with 64 sub-buckets),
//! so whatever is read from a bucket's bounds is within 1/64 (1.6 %) of the truth; below 128 ns
//! every nanosecond has its own. Sum, smallest and greatest are kept exactly, of the same
//! packets: mean and percentiles can't be of different ones.

/// Buckets of an octave.
pub const PARTS: usize = 64;
/// Buckets in all: for every delay that has 32 bits, to 4.29 s.
pub const BUCKETS: usize = (32 - PARTS.trailing_zeros() as usize + 1) * PARTS;

/// The delays of packets, nanoseconds.
#[derive(Clone, PartialEq, Eq)]
pub struct Delays {
    counts: Vec<u64>,
    sum_ns: u64,
    min_ns: u32,
    max_ns: u32,
    /// By how much those of a flow's consecutive packets differ, where that was looked at.
    differences: Option<Box<Delays>>,
}

/// The bucket that a delay falls into.
#[inline]
pub fn bucket(delay_ns: u32) -> usize {
    let octave = (delay_ns | PARTS as u32).ilog2() - PARTS.ilog2();
    octave as usize * PARTS + (delay_ns >> octave) as usize
}

/// The smallest and the greatest delay that fall into a bucket, nanoseconds.
///
/// # Panics
/// With a number of [`BUCKETS`] or above.
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
    /// Those that another counter kept: packets by bucket, the sum of their delays, the
    /// smallest and the greatest.
    ///
    /// # Panics
    /// With more than [`BUCKETS`] buckets.
    pub fn of_parts(counts: &[u64], sum_ns: u64, min_ns: u32, max_ns: u32) -> Delays {
        let mut all = vec![0; BUCKETS];
        all[..counts.len()].copy_from_slice(counts);
        Delays { counts: all, sum_ns, min_ns, max_ns, differences: None }
    }

    /// The same with the absolute differences of delays, which were counted beside them.
    pub fn with_differences(self, differences: Delays) -> Delays {
        Delays { differences: Some(Box::new(differences)), ..self }
    }

    /// The absolute differences between the delays of consecutive packets of a flow (RFC 3393,
    /// one-way-ipdv), nanoseconds: of packets of which one was sent directly after the other, and
    /// that both arrived. None where they were not looked at.
    pub fn differences(&self) -> Option<&Delays> {
        self.differences.as_deref()
    }

    /// One more packet.
    #[inline]
    pub fn add(&mut self, delay_ns: u32) {
        self.counts[bucket(delay_ns)] += 1;
        self.sum_ns += u64::from(delay_ns);
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
    }

    /// The packets of another counter as well.
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

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of their delays, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The smallest and the greatest delay, nanoseconds; none without packets.
    pub fn range_ns(&self) -> Option<(u32, u32)> {
        (self.min_ns <= self.max_ns).then_some((self.min_ns, self.max_ns))
    }

    /// The buckets that hold packets, with their numbers, in order.
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
    fn buckets_follow_each_other_without_gaps() {
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
        fn what_is_counted_apart_is_the_same_together(
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
            // The mean lies within what the histogram allows: they are of the same packets.
            let bound = |end: fn((u32, u32)) -> u32| -> u64 {
                sum.filled().map(|(at, packets)| packets * u64::from(end(bounds(at)))).sum()
            };
            prop_assert!(bound(|bounds| bounds.0) <= sum.sum_ns());
            prop_assert!(sum.sum_ns() <= bound(|bounds| bounds.1));
        }
    }
}
