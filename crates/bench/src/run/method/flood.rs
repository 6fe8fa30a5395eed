//! Traffic during a flood of new flows: as in a denial of service, every packet of the flood has a
//! flow of its own.
//!
//! Each trial begins with an empty table. The traffic warms up alone, so that its flows have
//! states; the flood begins when the window opens and ends when it closes. Packets of the flood
//! carry another run id and are counted separately, so the trial's own counts contain the traffic
//! only.

use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use crate::testbed::FloodRequest;
use crate::trial::Observed;
use fwdlab_model::design::method::flood_loads;
use fwdlab_model::record::{FloodTrial, MethodTrial, OwnTrial};
use fwdlab_search::Trial as SearchTrial;

/// Maximum number of attempts at a load while sender or receiver spoil the trial.
const SPOILED: usize = 3;

impl Trials<'_, '_> {
    pub(super) fn floods(
        &mut self,
        step: f64,
        max_load: u64,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        let load = own.load();
        (self.record.min_load, self.record.max_load) = (load, load);
        for flood in flood_loads(step, max_load) {
            for _ in 0..SPOILED {
                if self.is_full() {
                    return Ok(());
                }
                let trial = self.take(self.flooding(load, flood), Trials::flooded)?;
                let fault = trial.loss_bounds().err();
                self.report(fault.clone(), None);
                if fault.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Request for a trial during which `flood` new flows per second arrive.
    fn flooding(&self, load: u64, flood: u64) -> Wish {
        let planned = self.task.plan.trial;
        let request = SearchTrial { load, duration_ns: planned.duration_ns };
        let (kind, slice_ns) = (Kind::Flood(flood), planned.slice_ns.min(request.duration_ns));
        Wish { asked: request, kind, warmup_ns: planned.warmup_ns, slice_ns }
    }

    /// Runs one trial with new flows, into an empty table.
    fn flooded(&mut self, wish: Wish) -> Result<MethodTrial, BenchError> {
        let keeps_states = self.settings().dut.firewall.may_keep_states();
        if keeps_states {
            self.forget()?;
        }
        let (mut trial, _) = self.observe(wish)?;
        if let Some(flood) = trial.flood.as_mut().filter(|_| keeps_states) {
            flood.states = self.states();
        }
        Ok(trial)
    }
}

/// Flood that the senders must produce; `None` for a load of zero.
pub(super) fn flood_request(load: u64, duration_ns: u64) -> Option<FloodRequest> {
    let packets = (load as f64 * duration_ns as f64 / 1e9).ceil() as u64;
    (load > 0).then_some(FloodRequest { rate_pps: load as f64, packets })
}

/// Record of the flood in a trial.
pub(super) fn of_trial(load: u64, observed: &Observed) -> FloodTrial {
    let counts = observed.flood;
    FloodTrial { load, offered: counts.offered, forwarded: counts.forwarded, states: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_packets_follow_from_rate_and_duration() {
        assert_eq!(flood_request(0, 1_000_000_000), None);
        let flood = flood_request(30_000, 500_000_000).expect("some");
        assert_eq!((flood.rate_pps, flood.packets), (30_000.0, 15_000));
    }
}
