//! Packets by queue of the DUT and variant, and the real effect of a factor over queues.

use super::quality::groups;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::plan::Factor;
use fwdlab_model::record::queues::{Direction, QueuePackets, of_counters};
use serde::Serialize;
use std::collections::BTreeMap;

/// Packets by queue of one interface in one direction, over all runs of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct QueueShares {
    /// Label of the variant.
    pub label: String,
    /// Interface; `worker` for a router's workers.
    pub interface: String,
    /// `receive` or `transmit`.
    pub direction: String,
    /// Number of queues.
    pub queues: usize,
    /// Number of queues with packets in every run.
    pub used: usize,
    /// Share of each queue, 0 to 1, from queue 0.
    pub shares: Vec<f64>,
    /// The shares as printed.
    pub shown: String,
}

/// Returns the queues of every variant; empty if no interface has several queues in any run.
pub(super) fn queues(contents: &Contents) -> Vec<QueueShares> {
    let mut all = Vec::new();
    for (label, runs) in groups(contents) {
        let mut sums: BTreeMap<(String, Direction), (Vec<u64>, usize)> = BTreeMap::new();
        for found in runs.iter().flat_map(|run| of_counters(&run.trial.counters)) {
            let used = found.used();
            let (sum, fewest) = sums
                .entry((found.interface, found.direction))
                .or_insert_with(|| (Vec::new(), usize::MAX));
            sum.resize(sum.len().max(found.packets.len()), 0);
            sum.iter_mut().zip(&found.packets).for_each(|(sum, packets)| *sum += packets);
            *fewest = (*fewest).min(used);
        }
        all.extend(sums.into_iter().map(|((interface, direction), (packets, used))| {
            let queues = QueuePackets { interface, direction, packets };
            let shares = queues.shares();
            let shown: Vec<String> =
                shares.iter().map(|share| format!("{:.1}", 100.0 * share)).collect();
            QueueShares {
                label: label.clone(),
                interface: queues.interface,
                direction: direction.name().to_owned(),
                queues: shares.len(),
                used,
                shown: format!("{} %", shown.join(" / ")),
                shares,
            }
        }));
    }
    match all.iter().any(|row| row.queues > 1) {
        true => all,
        false => Vec::new(),
    }
}

/// Returns true if a factor's levels set the DUT's queues and nothing else.
pub(super) fn is_of_queues(factor: &Factor) -> bool {
    factor.levels.iter().all(|level| {
        !level.changes.is_empty() && level.changes.iter().all(|change| change.setting == "queues")
    })
}

/// Returns a factor's displayed name: the quantity that really varied, if the runs' counters show
/// that it was not the receive queues.
pub(super) fn shown_name(contents: &Contents, factor: &Factor) -> String {
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
pub(super) fn not_swept(run: &RunRecord, level: u32) -> Option<String> {
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
