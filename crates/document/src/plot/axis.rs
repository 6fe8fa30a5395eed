//! Linear and logarithmic axes: ticks at 1, 2 or 5 times a power of ten, with one unit prefix.

/// Target number of ticks.
const TICKS: f64 = 6.0;

/// A linear scale from `low` to `high`, in units without prefix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Unit with its prefix, e.g. `Mpps`.
    pub(super) unit: String,
    /// Value and label of each tick, in ascending order.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Axis from zero to a round number not below `max`.
    pub(super) fn from_zero(max: f64, unit: &str) -> Axis {
        // Smaller rates than a packet per hour count as zero.
        let max = if max.is_finite() && max > 1e-3 { max } else { 1.0 };
        let step = round_step(max / TICKS);
        Axis::with_step(0.0, (max / step).ceil() * step, step, unit)
    }

    /// Axis of round numbers around `min` to `max`, without zero: for drift.
    pub(super) fn around(min: f64, max: f64, unit: &str) -> Axis {
        if !(min.is_finite() && max.is_finite() && max > 1e-3) {
            return Axis::from_zero(0.0, unit);
        }
        // Equal values also need an axis: add a tenth on either side.
        let spread = if max - min > 1e-6 * max { max - min } else { 0.2 * max };
        let (min, max) = ((min - 0.05 * spread).max(0.0), max + 0.05 * spread);
        let step = round_step((max - min).max(spread) / TICKS);
        Axis::with_step((min / step).floor() * step, (max / step).ceil() * step, step, unit)
    }

    /// Logarithmic axis for positive values, from decade to decade, with labels by `print`.
    /// Positions on it are logarithms to base 10.
    pub(super) fn logarithmic(low: f64, high: f64, print: impl Fn(f64) -> String) -> Axis {
        let is_range = low > 0.0 && low <= high && high.is_finite();
        let (low, high) = if is_range { (low, high) } else { (1.0, 1.0) };
        let first = low.log10().floor();
        let last = high.log10().ceil().max(first + 1.0);
        // With few decades, the steps between them also have labels.
        let digits: &[f64] = if last - first <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = (0..=(last - first) as i32).map(|n| first + f64::from(n));
        let ticks = decades.flat_map(|decade| {
            digits.iter().map(move |digit| (decade + digit.log10(), digit * 10f64.powf(decade)))
        });
        let ticks = ticks.filter(|(at, _)| *at <= last + 1e-9);
        let ticks = ticks.map(|(at, value)| (at, print(value))).collect();
        Axis { low: first, high: last, unit: String::new(), ticks }
    }

    /// The same axis in another unit, of which `factor` make one of this unit: only the ticks
    /// differ.
    pub(super) fn converted(&self, factor: f64, unit: &str) -> Axis {
        let (low, high) = (self.low * factor, self.high * factor);
        Axis::with_step(low, high, round_step((high - low) / TICKS), unit)
    }

    /// Round numbers from `low` to `high`, at least `least` apart, without unit.
    pub(super) fn ticks_between(low: f64, high: f64, least: f64) -> Vec<(f64, String)> {
        // A third more than for rates: plots are wider than high.
        let step = round_step((high - low) / (1.5 * TICKS)).max(least);
        ticks(low, high, step, 1.0)
    }

    /// Position of a value, 0 at the low end and 1 at the high end.
    pub(super) fn position(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn with_step(low: f64, high: f64, step: f64, unit: &str) -> Axis {
        let (scale, prefix) = match high {
            // Words have no prefix.
            _ if unit.contains(' ') => (1.0, ""),
            h if h >= 1e12 => (1e12, "T"),
            h if h >= 1e9 => (1e9, "G"),
            h if h >= 1e6 => (1e6, "M"),
            h if h >= 1e3 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let ticks = ticks(low, high, step, scale);
        Axis { low, high, unit: format!("{prefix}{unit}"), ticks }
    }
}

/// Multiples of `step` from `low` to `high`, labelled in units of `scale`.
fn ticks(low: f64, high: f64, step: f64, scale: f64) -> Vec<(f64, String)> {
    // More decimals than the step's magnitude requires would always be zero.
    let decimals = (-(step / scale).log10().floor()).max(0.0) as usize;
    // Multiplied, not summed, so that the tenth tick is as exact as the first.
    let first = (low / step - 1e-6).ceil() as i64;
    let last = (high / step + 1e-6).floor() as i64;
    (first..=last)
        .map(|i| i as f64 * step)
        .map(|value| (value, format!("{:.decimals$}", value / scale)))
        .collect()
}

/// Smallest number not below `step` among 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powi(step.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|&round| round >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn axis_ticks_are_round_and_share_a_unit() {
        let axis = Axis::from_zero(14.88e6, "pps");
        assert_eq!((labels(&axis), axis.unit.as_str()), (vec!["0", "5", "10", "15"], "Mpps"));
        let axis = Axis::from_zero(790e3, "pps");
        assert_eq!(labels(&axis), ["0", "200", "400", "600", "800"]);
        assert_eq!(axis.unit, "kpps");
    }

    #[test]
    fn axis_without_data_has_a_range() {
        for max in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let axis = Axis::from_zero(max, "pps");
            assert_eq!((axis.low, axis.high, axis.unit.as_str()), (0.0, 1.0, "pps"));
        }
        assert!(Axis::around(5e6, 5e6, "pps").position(5e6) > 0.2);
    }

    proptest! {
        #[test]
        fn axis_has_few_distinct_ticks_for_any_range(max in 1.0..1e13f64, share in 0.0..1.0f64) {
            for axis in [Axis::from_zero(max, "pps"), Axis::around(share * max, max, "pps")] {
                prop_assert!(axis.high >= max && axis.low <= share * max);
                prop_assert!((2..=9).contains(&axis.ticks.len()), "{axis:?}");
                let mut distinct = labels(&axis);
                distinct.dedup();
                prop_assert_eq!(distinct.len(), axis.ticks.len());
            }
            let bits = Axis::from_zero(max, "pps").converted(512.0, "bit/s");
            prop_assert!(bits.ticks.len() >= 2);
        }
    }
}
