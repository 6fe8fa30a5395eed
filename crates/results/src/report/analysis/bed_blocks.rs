//! Splits blocks by bed, so that a machine is compared only with itself.
//!
//! A share that continued on another machine leaves one block with runs of both. This module turns
//! such a block into one per bed, so that no comparison pairs runs of two machines.

use crate::store::{Contents, UNNAMED};
use std::collections::BTreeMap;

/// Returns the block of each run, and a remark if blocks were split.
pub(super) fn blocks(contents: &Contents) -> (Vec<u32>, Option<String>) {
    let planned = || contents.runs.iter().map(|run| run.block);
    let beds = contents.run_beds();
    if beds.iter().all(Option::is_none) {
        return (planned().collect(), None);
    }
    // The bed with most runs of a block keeps its number.
    let mut shares: BTreeMap<u32, BTreeMap<Option<&str>, usize>> = BTreeMap::new();
    for (block, bed) in planned().zip(&beds) {
        *shares.entry(block).or_default().entry(*bed).or_default() += 1;
    }
    let mut next = shares.keys().next_back().map_or(0, |most| most + 1);
    next = next.max(contents.plan.design.blocks);
    let mut numbers: BTreeMap<(u32, Option<&str>), u32> = BTreeMap::new();
    let mut split = Vec::new();
    for (&block, beds) in shares.iter().filter(|(_, beds)| beds.len() > 1) {
        let most = beds.iter().max_by_key(|(_, runs)| **runs).map(|(bed, _)| *bed);
        for &bed in beds.keys().filter(|bed| Some(**bed) != most) {
            numbers.insert((block, bed), next);
            next += 1;
        }
        split.push(block);
    }
    let number =
        |(block, bed): (u32, &Option<&str>)| numbers.get(&(block, *bed)).copied().unwrap_or(block);
    let blocks = planned().zip(&beds).map(number).collect();
    let remark = (!split.is_empty()).then(|| {
        let of = |block: &u32| match shares.get(block) {
            Some(beds) => {
                let beds = beds.keys().map(|bed| bed.unwrap_or(UNNAMED));
                format!("block {block} ({})", beds.collect::<Vec<&str>>().join(", "))
            }
            None => String::new(),
        };
        const NAMED: usize = 4;
        let named: Vec<String> = split.iter().take(NAMED).map(of).collect();
        let more = if split.len() > NAMED { " ..." } else { "" };
        format!(
            "measured on more than one bed: {}{more}; runs of a block are compared within each bed \
             alone",
            named.join(", ")
        )
    });
    (blocks, remark)
}
