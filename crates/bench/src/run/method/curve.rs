//! Trials at loads that are known beforehand: a curve of falling loads (RFC 2544, 26.3), and one
//! load for long.

use super::{Trials, greatest_load};
use crate::error::BenchError;
use fwdlab_model::record::OwnTrial;
use fwdlab_search::{Curve, Trial as DutQueries};

/// How often a load is measured where sender or receiver spoil the trial.
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
            let asked = DutQueries { load, duration_ns: self.task.plan.trial.duration_ns };
            let loss = self.until_valid(asked)?;
            curve.record(loss);
            self.record.min_load = load;
        }
        Ok(())
    }

    pub(super) fn soak(&mut self, count: u32, own: &OwnTrial) -> Result<(), BenchError> {
        let load = own.load();
        (self.record.min_load, self.record.max_load) = (load, load);
        for _ in 0..count {
            let asked = DutQueries { load, duration_ns: self.task.plan.trial.duration_ns };
            let trial = self.measure(asked)?;
            self.report(trial.loss_bounds().err(), None);
        }
        Ok(())
    }

    /// Measures a load until sender and receiver spoil nothing, a few times at most; the share
    /// that was lost, at most.
    fn until_valid(&mut self, asked: DutQueries) -> Result<Option<f64>, BenchError> {
        for _ in 0..SPOILED {
            let found = self.measure(asked)?.loss_bounds();
            self.report(found.clone().err(), None);
            let found = found.ok();
            if found.is_some() || self.is_full() {
                return Ok(found.map(|(_, most)| most));
            }
        }
        Ok(None)
    }
}
