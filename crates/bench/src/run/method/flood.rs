//! What becomes of the traffic while new flows come beside it: a flood, as a denial of service
//! is, of packets that each have a flow of their own.
//!
//! Each trial begins with an empty table. The traffic warms up alone, so that its flows have
//! their states; the flood begins when the window opens and ends when it closes. Its packets
//! belong to another run id and are counted apart, so the trial's own counts are the traffic's.

use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use crate::testbed::FloodWanted;
use crate::trial::Observed;
use fwdlab_model::design::method::flood_loads;
use fwdlab_model::record::{FloodTrial, MethodTrial, OwnTrial};
use fwdlab_search::Trial as DutQueries;

/// How often a load is measured where sender or receiver spoil the trial.
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

    /// The request of a trial during which `flood` new flows come a second.
    fn flooding(&self, load: u64, flood: u64) -> Wish {
        let planned = self.task.plan.trial;
        let asked = DutQueries { load, duration_ns: planned.duration_ns };
        let (kind, slice_ns) = (Kind::Flood(flood), planned.slice_ns.min(asked.duration_ns));
        Wish { asked, kind, warmup_ns: planned.warmup_ns, slice_ns }
    }

    /// One trial with new flows, into an empty table.
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

/// What the senders are asked for; none where no flow is to come.
pub(super) fn wanted(load: u64, duration_ns: u64) -> Option<FloodWanted> {
    let packets = (load as f64 * duration_ns as f64 / 1e9).ceil() as u64;
    (load > 0).then_some(FloodWanted { rate_pps: load as f64, packets })
}

/// What was seen of the flood.
pub(super) fn of_trial(load: u64, observed: &Observed) -> FloodTrial {
    let counts = observed.flood;
    FloodTrial { load, offered: counts.offered, forwarded: counts.forwarded, states: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_as_many_packets_as_the_window_holds() {
        assert_eq!(wanted(0, 1_000_000_000), None);
        let found = wanted(30_000, 500_000_000).expect("some");
        assert_eq!((found.rate_pps, found.packets), (30_000.0, 15_000));
    }
}
