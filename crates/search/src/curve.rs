//! Loss against load (RFC 2544, section 26.3): from the maximum load downwards, until two
//! consecutive trials lose nothing.

/// Consecutive lossless trials that end a curve.
const LOSSLESS: usize = 2;

/// A curve being measured.
#[derive(Clone, Debug)]
pub struct Curve {
    max_load: u64,
    step: f64,
    /// Number of completed loads.
    done: u32,
    lossless: usize,
}

impl Curve {
    /// Creates a curve from `max_load` in frames per second downwards, in steps of the share `step`
    /// of it.
    pub fn new(max_load: u64, step: f64) -> Curve {
        Curve { max_load, step, done: 0, lossless: 0 }
    }

    /// Returns the next load in frames per second; `None` when the curve is complete.
    pub fn next(&self) -> Option<u64> {
        let share = 1.0 - f64::from(self.done) * self.step;
        // A remainder of the last step that is due to rounding is not a load.
        let is_left = share > self.step * 1e-6 && self.lossless < LOSSLESS;
        let load = (self.max_load as f64 * share).round() as u64;
        (is_left && load > 0).then_some(load)
    }

    /// Records the loss ratio at the requested load; `None` if it could not be measured.
    pub fn record(&mut self, loss_ratio: Option<f64>) {
        self.done += 1;
        self.lossless = if loss_ratio == Some(0.0) { self.lossless + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(max_load: u64, step: f64, capacity: u64) -> Vec<u64> {
        let mut curve = Curve::new(max_load, step);
        let mut loads = Vec::new();
        while let Some(load) = curve.next() {
            loads.push(load);
            curve.record(Some(1.0 - capacity.min(load) as f64 / load as f64));
        }
        loads
    }

    #[test]
    fn curve_ends_after_two_consecutive_lossless_trials() {
        assert_eq!(loads(1000, 0.1, 750), [1000, 900, 800, 700, 600]);
        assert_eq!(loads(1000, 0.1, 5000), [1000, 900]);
        assert_eq!(loads(1000, 0.25, 1), [1000, 750, 500, 250]);
        assert_eq!(loads(10, 0.1, 0).len(), 10);
    }

    #[test]
    fn unmeasured_load_is_not_lossless() {
        let mut curve = Curve::new(100, 0.1);
        curve.record(Some(0.0));
        curve.record(None);
        curve.record(Some(0.0));
        assert_eq!(curve.next(), Some(70));
        curve.record(Some(0.0));
        assert_eq!(curve.next(), None);
    }
}
