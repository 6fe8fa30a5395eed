//! Sender straight into receiver, without a DUT: their rate and their share of the latency.

use super::{Netns, receiver};
use crate::Observer;
use crate::cpu::Placement;
use crate::error::BenchError;
use crate::testbed::{TrafficRequest, bidirectional};
use crate::trial::{self, Observed};
use crate::wiring::Wiring;
use fwdlab_model::plan::Trial;
use fwdlab_model::record::Latency;
use fwdlab_model::settings::{Arrangement, Directions, Settings};

impl Netns {
    /// Runs one trial of the sender straight into the receiver, at the maximum rate.
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
        let trial = (settings, trial, run_id);
        Ok(self.straight(trial, placement, None, observer)?.0)
    }

    /// Runs the same trial at a rate in packets per second, or at the maximum rate, and returns the
    /// packets' latency if they carry their sending time.
    pub(super) fn straight(
        &self,
        (settings, trial, run_id): (&Settings, &Trial, u32),
        placement: &Placement,
        rate_pps: Option<f64>,
        observer: &mut dyn Observer,
    ) -> Result<(Observed, Option<Latency>), BenchError> {
        let wiring = Wiring::up(&self.journal, settings.dut.queues, false)?;
        // Without the device no thread's CPU time matters; a trial at a rate measures latency.
        let timed = rate_pps.is_some();
        let is_both = settings.traffic.directions == Directions::Both;
        let request =
            TrafficRequest { rate_pps, timed, ..TrafficRequest::of(settings, run_id, trial) };
        let mut armed = bidirectional::armed(self.arm_all(&wiring, placement, &request)?);
        let traffic = armed.traffic();
        if placement.arrangement == Arrangement::Open && !timed {
            // The receiver polls on the same CPU as with a DUT. If this is not permitted here, it
            // is not permitted with a DUT either.
            if let Err(error) = receiver::poll(&wiring, placement, is_both) {
                observer.step(&format!("ceiling with unbound polling: {error}"));
            }
        }
        let observed = trial::plain(traffic, trial, rate_pps, observer)?;
        let delays = traffic.delays();
        drop(armed);
        wiring.down()?;
        Ok((observed, delays))
    }
}
