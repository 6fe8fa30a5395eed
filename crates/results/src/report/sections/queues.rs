//! Packets by queue of the DUT and variant.

use super::{Context, DETAILS, Input, Section};
use crate::document::table::Cell;
use crate::document::{Block, Inline, Table};
use crate::report::analysis::groups::groups;
use crate::store::Contents;
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

impl Section for Vec<QueueShares> {
    fn analyse(input: &Input<'_>) -> Vec<QueueShares> {
        shares_of_queues(input.contents)
    }

    fn document(&self, _: &Context<'_>) -> Vec<Block> {
        if self.is_empty() {
            return Vec::new();
        }
        let text = "Share of each queue of the device under test, from queue 0, over all runs of a \
                    variant; a queue counts as used if it had packets in every run.";
        let table = Table::of(self)
            .words("variant", |q| Cell::text(&q.label))
            .words("interface", |q| Cell::text(format!("{} {}", q.interface, q.direction)))
            .numbers("queues", |q| Cell::count(q.queues))
            .numbers("used", |q| match q.used < q.queues {
                true => Cell::text(Inline::default().strong(q.used.to_string())),
                false => Cell::count(q.used),
            })
            .words("shares", |q| Cell::text(&q.shown));
        let blocks = vec![Block::text(text), table.block()];
        vec![Block::section("Packets by queue", blocks).folded().on_page(DETAILS)]
    }
}

/// Returns the queues of every variant; empty if no interface has several queues in any run.
fn shares_of_queues(contents: &Contents) -> Vec<QueueShares> {
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
