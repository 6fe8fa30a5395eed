//! Positions of numbers on an x axis: linear if their labels fit, else logarithmic, else
//! equidistant.

use super::frame::LABEL_SIZE;
use super::text::width;

/// Maximum space beyond the outermost points of a line, in pixels.
pub(super) const MAX_INSET: f64 = 120.0;

/// Positions of levels in a plot, in pixels from its left end.
pub(super) struct Scale {
    values: Vec<f64>,
    /// Position of each level, in the order of the levels.
    pub(super) places: Vec<f64>,
    logarithmic: bool,
}

impl Scale {
    /// Places `levels` in `room` pixels.
    pub(super) fn place(levels: &[(f64, String)], room: f64) -> Scale {
        let widest = levels.iter().map(|(_, label)| width(label, LABEL_SIZE)).fold(0.0, f64::max);
        // Half of the outermost labels is beyond their points.
        let inset = (widest / 2.0).clamp(30.0, MAX_INSET);
        let needed = |i: usize| {
            (width(&levels[i].1, LABEL_SIZE) + width(&levels[i + 1].1, LABEL_SIZE)) / 2.0 + 10.0
        };
        let scaled = |values: Vec<f64>| -> Option<Vec<f64>> {
            let (low, high) = (values.first()?, values.last()?);
            let span = high - low;
            let positions: Vec<f64> =
                values.iter().map(|v| inset + (v - low) / span * (room - 2.0 * inset)).collect();
            let apart = positions.windows(2).enumerate().all(|(i, w)| w[1] - w[0] >= needed(i));
            (span > 0.0 && apart).then_some(positions)
        };
        let values: Vec<f64> = levels.iter().map(|(value, _)| *value).collect();
        if let Some(places) = scaled(values.clone()) {
            return Scale { values, places, logarithmic: false };
        }
        if let Some(places) = scaled(values.iter().map(|v| v.ln()).collect()) {
            return Scale { values, places, logarithmic: true };
        }
        let slot = room / levels.len().max(1) as f64;
        let places = (0..levels.len()).map(|i| (i as f64 + 0.5) * slot).collect();
        Scale { values, places, logarithmic: false }
    }

    /// Position of a number between two neighbouring levels. `None` beyond the levels, or if they
    /// are not ascending.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        if self.values.windows(2).any(|w| w[0] >= w[1]) {
            return None;
        }
        let right = self.values.iter().position(|&level| level >= value)?;
        if self.values[right] == value {
            return Some(self.places[right]);
        }
        let left = right.checked_sub(1)?;
        let along = |v: f64| if self.logarithmic { v.ln() } else { v };
        let (low, high) = (along(self.values[left]), along(self.values[right]));
        let share = (along(value) - low) / (high - low);
        Some(self.places[left] + share * (self.places[right] - self.places[left]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(levels: &[u32], room: f64) -> Scale {
        let levels: Vec<(f64, String)> =
            levels.iter().map(|&n| (f64::from(n), n.to_string())).collect();
        Scale::place(&levels, room)
    }

    #[test]
    fn scale_interpolates_between_levels() {
        let linear = scale(&[1, 2, 4, 8], 800.0);
        assert_eq!(linear.at(4.0), Some(linear.places[2]));
        assert_eq!(linear.at(3.0), Some((linear.places[1] + linear.places[2]) / 2.0));
        assert_eq!((linear.at(0.5), linear.at(9.0)), (None, None));
        let logarithmic = scale(&[1, 100, 10_000], 800.0);
        let middle = (logarithmic.places[0] + logarithmic.places[1]) / 2.0;
        assert!((logarithmic.at(10.0).unwrap() - middle).abs() < 1e-9);
        assert_eq!(scale(&[4, 2, 1], 800.0).at(2.0), None, "levels that fall");
    }
}
