//! The real effect of a factor over queues.

use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::plan::Factor;
use fwdlab_model::record::queues::{Direction, of_counters};

/// Returns true if a factor's levels set the DUT's queues and nothing else.
pub(in crate::report) fn is_of_queues(factor: &Factor) -> bool {
    factor.levels.iter().all(|level| {
        !level.changes.is_empty() && level.changes.iter().all(|change| change.setting == "queues")
    })
}

/// Returns a factor's displayed name: the quantity that really varied, if the runs' counters show
/// that it was not the receive queues.
pub(in crate::report) fn shown_name(contents: &Contents, factor: &Factor) -> String {
    let is_idle = |run: &RunRecord| {
        let mut found = of_counters(&run.trial.counters).into_iter();
        found.any(|queues| queues.direction == Direction::Receive && !queues.idle().is_empty())
    };
    match is_of_queues(factor) && contents.runs.iter().any(is_idle) {
        true => format!("{} (transmit queues: receive queues were idle)", factor.name),
        false => factor.name.clone(),
    }
}

/// Returns the reason why a run at `level` queues is not a point of a scalability law, phrased to
/// follow a number of queues; `None` if it is one, or if its counters don't show it.
pub(in crate::report) fn not_swept(run: &RunRecord, level: u32) -> Option<String> {
    let found = of_counters(&run.trial.counters);
    let received = found.iter().find(|queues| {
        queues.direction == Direction::Receive && queues.packets.len() == level as usize
    });
    if received.is_some_and(|queues| !queues.idle().is_empty()) {
        return Some("were not all received at".to_owned());
    }
    let roles = run.trial.cpus.iter().filter(|cpu| cpu.role.contains("dut"));
    match roles.count() {
        cpus if cpus > 0 && (level as usize) > cpus => {
            Some(format!("shared {cpus} CPU{}", if cpus == 1 { "" } else { "s" }))
        }
        _ => None,
    }
}
