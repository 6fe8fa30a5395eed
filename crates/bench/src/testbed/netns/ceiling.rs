//! Ceiling measurement: sender straight into receiver, without a DUT.

use super::{Netns, receiver};
use crate::Observer;
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::testbed::Wanted;
use crate::trial::{self, Observed};
use crate::wiring::Wiring;
use fwdlab_model::plan::Trial;
use fwdlab_model::settings::{Arrangement, Settings};

impl Netns {
    /// One trial of the sender straight into the receiver, at the maximum rate.
    ///
    /// # Errors
    /// As [`crate::Runner::run`].
    pub fn ceiling(
        &self,
        settings: &Settings,
        placement: &Placement,
        trial: &Trial,
        run_id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Observed, BenchError> {
        let wiring = Wiring::up(&self.journal, settings.dut.queues, false)?;
        let wanted = Wanted { settings, run_id, rate_pps: None, limit: None, trial, threads: &[] };
        let mut traffic = self.arm(&wiring, placement, &wanted)?;
        if placement.arrangement == Arrangement::Open {
            // The receiver polls on the same CPU as with a DUT. If this is not permitted here, it
            // is not permitted with a DUT either.
            if let Err(error) = receiver::poll(&wiring, placement) {
                observer.step(&format!("ceiling with unbound polling: {error}"));
            }
        }
        let observed = trial::plain(&mut traffic, trial, observer)?;
        drop(traffic);
        wiring.down()?;
        Ok(observed)
    }
}
