//! The trials beside the runs' own ones: rates that were searched for, loss against load, how
//! one load was held.

mod search;
mod soak;

use crate::document::{Block, Document, Figure};
use crate::report::analysis::Method;
use fwdlab_model::design::MethodKind;

/// Searches on their own, as a document.
pub fn searches<'a>(title: &str, method: &'a Method) -> Document<'a> {
    Document {
        title: title.to_owned(),
        conclusion: Vec::new(),
        blocks: vec![section(method, &method.pictures())],
        data: method,
        version: super::VERSION,
    }
}

/// The section of a report.
pub(super) fn section(method: &Method, pictures: &[(String, String)]) -> Block {
    let mut blocks: Vec<Block> = match method.kind {
        MethodKind::Mlrsearch => vec![Block::text(
            "Conditional throughput (RFC 9971) is the rate that the device forwards at the greatest \
             load at which a goal is held; the relevant bounds enclose that load. Medians over the \
             runs with a regular result. Beside them the same runs' forwarding rate at the maximum \
             offered load (FRMOL, RFC 2285), which is no throughput: packets were lost there.",
        )],
        MethodKind::LossCurve => vec![Block::text(
            "Packets lost at falling loads (RFC 2544, 26.3), until two trials in a row lost nothing.",
        )],
        _ => Vec::new(),
    };
    blocks.extend(table(method));
    blocks.extend(search::goals(method));
    blocks.extend(doubts(method));
    let (what, title): (&str, &str) = match method.kind {
        MethodKind::Mlrsearch => ("search", "How loads were found"),
        MethodKind::LossCurve => ("curve", "Loss against load"),
        _ => ("soak", "Loss over time"),
    };
    let own = pictures.iter().filter(|(name, _)| name.starts_with(&format!("{what}-")));
    blocks.extend(own.map(|(name, svg)| {
        Block::Figure(Figure { title: title.into(), file: Some(name.clone()), svg: svg.clone() })
    }));
    let heading = match method.kind {
        MethodKind::Mlrsearch => "Throughput",
        MethodKind::LossCurve => "Frame loss rate",
        _ => "Soak",
    };
    Block::section(heading, blocks)
}

/// What was found, a row each; none for a curve, which is a picture.
pub(super) fn table(method: &Method) -> Option<Block> {
    match method.kind {
        MethodKind::Mlrsearch => Some(search::table(&method.searched)),
        MethodKind::Soak => Some(soak::table(&method.soaked)),
        _ => None,
    }
}

/// Irregular results, drifting devices and trials that say nothing, each run by its number.
fn doubts(method: &Method) -> Option<Block> {
    let mut lines = Vec::new();
    for run in &method.runs {
        for found in &run.found {
            lines.extend(found.irregular.as_ref().map(|why| {
                format!("run {} ({}), {}: irregular, {why}", run.run, run.label, found.goal)
            }));
        }
        lines.extend(run.drift.map(|change| {
            format!(
                "run {} ({}): the device's rate changed by {} during the search, so that its \
                 bounds hold for no one moment",
                run.run,
                run.label,
                crate::format::signed_percent(change, 1)
            )
        }));
        let invalid: Vec<&str> =
            run.points.iter().filter_map(|point| point.invalid.as_deref()).collect();
        if let Some(first) = invalid.first() {
            let count = invalid.len();
            let (run, label) = (run.run, &run.label);
            lines.push(format!("run {run} ({label}): {count} invalid trials, e.g. {first}"));
        }
    }
    (!lines.is_empty()).then(|| Block::list(lines))
}
