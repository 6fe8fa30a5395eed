//! Trials at loads that are known beforehand: a curve of falling loads (RFC 2544, 26.3), and a soak
//! at one load.

use super::{Trials, greatest_load};
use crate::error::BenchError;
use fwdlab_model::record::OwnTrial;
use fwdlab_search::{Curve, Trial as SearchTrial};

/// Maximum number of attempts at a load while sender or receiver spoil the trial.
const SPOILED: usize = 3;

impl Trials<'_, '_> {
    pub(super) fn curve(
        &mut self,
        step: f64,
        max: Option<u64>,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        let max_load = self.up_to(max, greatest_load(own, self.link));
        self.record.max_load = max_load;
        let mut curve = Curve::new(max_load, step);
        while let Some(load) = curve.next()
            && !self.is_full()
        {
            let request = SearchTrial { load, duration_ns: self.task.plan.trial.duration_ns };
            let loss = self.until_valid(request)?;
            curve.record(loss);
            self.record.min_load = load;
        }
        Ok(())
    }

    pub(super) fn soak(&mut self, count: u32, own: &OwnTrial) -> Result<(), BenchError> {
        let load = own.load();
        (self.record.min_load, self.record.max_load) = (load, load);
        for _ in 0..count {
            let request = SearchTrial { load, duration_ns: self.task.plan.trial.duration_ns };
            let trial = self.measure(request)?;
            self.report(trial.loss_bounds().err(), None);
        }
        Ok(())
    }

    /// Measures a load until sender and receiver do not spoil the trial, a few times at most;
    /// returns the upper bound of the share lost.
    fn until_valid(&mut self, request: SearchTrial) -> Result<Option<f64>, BenchError> {
        for _ in 0..SPOILED {
            let loss = self.measure(request)?.loss_bounds();
            self.report(loss.clone().err(), None);
            let loss = loss.ok();
            if loss.is_some() || self.is_full() {
                return Ok(loss.map(|(_, most)| most));
            }
        }
        Ok(None)
    }
}
