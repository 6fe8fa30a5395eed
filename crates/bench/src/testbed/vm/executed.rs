//! Converts counts of a machine into the record of its executed code.

use fwdlab_model::record::{Executed, ExecutedFunction, ExecutedStacks, Misses};
use fwdlab_vm::bursts::PacketCost;
use fwdlab_vm::caches::{self, CacheCosts};
use std::collections::BTreeMap;

/// Instructions per packet below which a function is not recorded.
const KEPT: f64 = 0.05;

/// Returns the record of the counts `found`. `batch` is the number of packets that arrive at the
/// machine simultaneously, `scattered` the number of batches that did not arrive so, and of all
/// batches.
pub fn executed(found: PacketCost, batch: u16, scattered: (u64, u64)) -> Executed {
    let costs = found.costs;
    let missed = found.caches.as_ref().map(misses).unwrap_or_default();
    let functions = costs
        .functions
        .into_iter()
        .filter(|function| function.bursts.iter().any(|instructions| instructions.abs() >= KEPT));
    Executed {
        packets: costs.packets,
        batch,
        scattered,
        background: costs.background,
        functions: functions
            .map(|function| ExecutedFunction {
                misses: missed.get(function.name.as_str()).copied(),
                name: function.name,
                bursts: function.bursts,
                atomics: function.atomics,
                bytes: function.bytes,
                idle: function.idle,
                is_background: function.is_background,
            })
            .collect(),
        stacks: found.calls.map(|calls| ExecutedStacks {
            folded: calls.folded(),
            unknown_share: calls.unknown_share(),
            unaccounted: calls.unaccounted,
        }),
        caches: found.caches.map(|caches| caches.model.to_string()).unwrap_or_default(),
    }
}

/// Misses of the modelled caches, by function.
fn misses(caches: &CacheCosts) -> BTreeMap<&str, Misses> {
    let of = caches.functions.iter().map(|(name, found)| {
        let caches::Misses { references, code, data, last } = *found;
        (name.as_str(), Misses { references, code, data, last })
    });
    of.collect()
}
