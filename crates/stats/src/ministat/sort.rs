//! Sorting of a set's values: small sets directly, big ones on two threads.

use std::thread;

/// Number of values from which on threads pay off.
const MANY: usize = 1 << 16;
/// Number of values that are sampled to find the median.
const SAMPLE: usize = 1001;

/// Sorts in ascending order, NaN last; zeros of either sign keep their order.
pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    if values.len() < MANY {
        // NaN last: a total order, which the sort requires for longer inputs.
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
        return values;
    }
    sorted_by_keys(values)
}

/// Sorts by integer keys, which compare faster. Mapping a vector in place, as `collect` does here,
/// needs no additional memory.
fn sorted_by_keys(values: Vec<f64>) -> Vec<f64> {
    let zeros = zeros_of_both_signs(&values);
    let first = values.first().copied().map_or(0, key);
    let mut varying = 0;
    let mut keys: Vec<u64> =
        values.into_iter().map(key).inspect(|key| varying |= key ^ first).collect();
    let bits = Bits::of(varying);
    if keys.is_sorted() {
        // Nothing to do, and splitting would undo it.
    } else if bits.are_few(keys.len()) {
        bits.sort(&mut keys);
    } else {
        let (low, high) = halves(&mut keys);
        thread::scope(|scope| {
            scope.spawn(|| low.sort_unstable());
            high.sort_unstable();
        });
    }
    let mut sorted: Vec<f64> = keys.into_iter().map(value).collect();
    let first = sorted.partition_point(|&value| value < 0.0);
    sorted[first..first + zeros.len()].copy_from_slice(&zeros);
    sorted
}

/// Returns the zeros in their order, empty if there is nothing to distinguish.
fn zeros_of_both_signs(values: &[f64]) -> Vec<f64> {
    let minus = (-0.0f64).to_bits();
    if !values.iter().any(|value| value.to_bits() == minus) {
        return Vec::new();
    }
    values.iter().copied().filter(|&value| value == 0.0).collect()
}

/// Bits in which keys differ: whole numbers leave the lower ones unused.
struct Bits {
    lowest: u32,
    count: u32,
}

impl Bits {
    fn of(varying: u64) -> Bits {
        let lowest = varying.trailing_zeros();
        Bits { lowest, count: (u64::BITS - varying.leading_zeros()).saturating_sub(lowest) }
    }

    /// True if a counter for each combination is small compared with `keys` keys.
    fn are_few(&self, keys: usize) -> bool {
        self.count < usize::BITS && 1 << self.count <= keys / 2 && u32::try_from(keys).is_ok()
    }

    /// Sorts by counting the occurrences of each combination.
    fn sort(&self, keys: &mut [u64]) {
        let Some(&first) = keys.first() else { return };
        let mask = (1 << self.count) - 1;
        let mut counts = vec![0u32; 1 << self.count];
        for key in keys.iter() {
            counts[(key >> self.lowest & mask) as usize] += 1;
        }
        let common = first & !(mask << self.lowest);
        let mut rest = keys;
        for (combination, &count) in (0..).zip(&counts) {
            let (equal, behind) = std::mem::take(&mut rest).split_at_mut(count as usize);
            equal.fill(common | combination << self.lowest);
            rest = behind;
        }
    }
}

/// Splits into keys below another one and the rest, about half of them each.
fn halves(keys: &mut [u64]) -> (&mut [u64], &mut [u64]) {
    let mut sample: Vec<u64> =
        keys.iter().copied().step_by((keys.len() / SAMPLE).max(1)).take(SAMPLE).collect();
    sample.sort_unstable();
    let pivot = sample[sample.len() / 2];
    let mut below = 0;
    for at in 0..keys.len() {
        let key = keys[at];
        keys.swap(at, below);
        // No branch, which half of the keys would mispredict.
        below += usize::from(key < pivot);
    }
    keys.split_at_mut(below)
}

/// Returns an integer that orders like the value, NaN last.
fn key(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = value.to_bits();
    // Negative values are reversed, the others are placed above them.
    if value.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Returns the value of a key.
fn value(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        #[test]
        fn key_sort_matches_the_plain_sort(
            values in prop::collection::vec(
                prop_oneof![
                    any::<f64>(), Just(f64::NAN), Just(0.0), Just(-0.0), Just(1.0),
                    Just(f64::INFINITY), Just(f64::NEG_INFINITY),
                ],
                3..200,
            )
        ) {
            // All NaNs are equivalent.
            let values: Vec<f64> =
                values.iter().map(|v| if v.is_nan() { value(u64::MAX) } else { *v }).collect();
            prop_assert_eq!(bits(&sorted_by_keys(values.clone())), bits(&sorted(values)));
        }
    }

    #[test]
    fn many_values_are_sorted_in_any_input_order() {
        let count = 2 * MANY as u64;
        let orders: [fn(u64) -> f64; 7] = [
            |n| n as f64,
            |n| -(n as f64),
            |n| (n * 2654435761 % 1000003) as f64,
            |n| (n % 2) as f64 - 0.5,
            |n| (n * 7 % 1001) as f64 + 1024.0,
            |n| if n % 3 == 0 { f64::INFINITY } else { -1e-300 * (n % 5 + 1) as f64 },
            |_| 7.0,
        ];
        for order in orders {
            let values: Vec<f64> = (0..count).map(order).collect();
            let mut expected = values.clone();
            expected.sort_by(f64::total_cmp);
            assert_eq!(sorted(values), expected);
        }
    }
}
