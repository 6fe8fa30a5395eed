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
use fwdlab_model::record::{FloodTrial, MethodTrial};
use fwdlab_model::units::format_pps;
use fwdlab_search::Trial as Asked;

/// How often a load is measured where sender or receiver spoil the trial.
const SPOILED: usize = 3;

impl Trials<'_, '_> {
    pub(super) fn floods(
        &mut self,
        step: f64,
        max_load: u64,
        own: &Observed,
    ) -> Result<(), BenchError> {
        let intended = own.intended.unwrap_or(own.window.offered) as f64;
        let load = (intended * 1e9 / own.window_ns.max(1) as f64).round() as u64;
        (self.record.min_load, self.record.max_load) = (load, load);
        let duration_ns = self.task.plan.trial.duration_ns;
        for flood in flood_loads(step, max_load) {
            for _ in 0..SPOILED {
                if self.is_full() {
                    return Ok(());
                }
                let trial = self.flooded(Asked { load, duration_ns }, flood)?;
                let is_told = trial.loss_bounds().is_ok();
                self.record.trials.push(trial);
                if is_told {
                    break;
                }
            }
        }
        Ok(())
    }

    /// One trial beside so many new flows a second.
    fn flooded(&mut self, asked: Asked, flood: u64) -> Result<MethodTrial, BenchError> {
        let keeps_states = self.settings().dut.firewall.may_keep_states();
        if keeps_states {
            self.forget()?;
        }
        let planned = self.task.plan.trial;
        let slice_ns = planned.slice_ns.min(asked.duration_ns);
        let kind = Kind::Flood(flood);
        let wish = Wish { asked, kind, warmup_ns: planned.warmup_ns, slice_ns };
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

/// The load and what came beside it, in words.
pub(super) fn said(trial: &MethodTrial) -> String {
    let load = format_pps(trial.load as f64);
    match &trial.flood {
        Some(flood) if flood.load > 0 => {
            format!("{load} beside a flood of {}", format_pps(flood.load as f64))
        }
        _ => format!("{load} without a flood"),
    }
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
