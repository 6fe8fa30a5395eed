//! Drift of a device's capacity during a search, from overloaded trials at the same load: the
//! forwarding rate against the time of measurement.

use crate::trial::Measured;
use crate::trials::Trials;
use serde::Serialize;

/// Minimum number of trials, and minimum distance of the slope from zero in standard errors: chance
/// exceeds them in fewer than one of ten thousand searches.
const TRIALS_MIN: usize = 8;
const ERRORS_MIN: f64 = 5.0;

/// A device with changing capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// Relative change over the whole search; negative if the device became slower.
    pub change: f64,
}

impl Drift {
    /// Returns the drift over all trials, if it is beyond chance and beyond `width`.
    pub(crate) fn of(trials: &Trials, width: f64) -> Option<Drift> {
        let mut points: Vec<(u64, f64, f64)> = trials
            .all()
            .iter()
            .enumerate()
            .filter(|(_, measured)| measured.output.loss_ratio > 0.0)
            .filter(|(_, measured)| measured.output.loss_ratio < 1.0)
            .map(|(index, m)| (m.trial.load, index as f64, Measured::forwarding_rate(m).ln()))
            .collect();
        points.sort_by_key(|(load, ..)| *load);
        let (mut xx, mut xy, mut yy, mut free) = (0.0, 0.0, 0.0, 0.0);
        for same in points.chunk_by(|a, b| a.0 == b.0) {
            let count = same.len() as f64;
            let mean_x = same.iter().map(|(_, x, _)| x).sum::<f64>() / count;
            let mean_y = same.iter().map(|(.., y)| y).sum::<f64>() / count;
            for (_, x, y) in same {
                xx += (x - mean_x).powi(2);
                xy += (x - mean_x) * (y - mean_y);
                yy += (y - mean_y).powi(2);
            }
            free += count - 1.0;
        }
        if points.len() < TRIALS_MIN || xx == 0.0 || free < TRIALS_MIN as f64 / 2.0 {
            return None;
        }
        let slope = xy / xx;
        let error = ((yy - slope * xy).max(0.0) / (free - 1.0) / xx).sqrt();
        // The slope is of logarithms: no device loses more than everything.
        let change = (slope * (trials.all().len() - 1) as f64).exp_m1();
        (slope.abs() > ERRORS_MIN * error && change.abs() > width).then_some(Drift { change })
    }
}
