//! The list of all runs.

use crate::document::table::Cell;
use crate::document::{Block, DetailLevel, Table};
use crate::report::analysis::RunResult;
use crate::report::results::Analysis;
use crate::report::sections::{Counts, DETAILS};

/// Returns a section with one row per run, only in forms without limits: `runs.csv` contains every
/// run.
pub(super) fn section(analysis: &Analysis) -> Block {
    let runs = &analysis.core.runs;
    let table = match &analysis.counts {
        Some(_) => Counts::runs(runs),
        None => rated(runs),
    };
    let title = format!("All {} in their order", runs.len());
    let list = Block::section(title, vec![Block::Table(table)]).folded();
    let section = Block::section("Runs", vec![list]).folded().on_page(DETAILS);
    Block::Where(DetailLevel::All, vec![section])
}

/// Formats the value of a run, with a mark if comparisons exclude it: a search without a regular
/// result also has a value.
fn compared(run: &RunResult) -> Cell {
    match (run.value_pps, &run.left_out) {
        (Some(pps), Some(_)) => {
            Cell::Values(format!("({pps:.0}) left out").into(), vec![pps.into()])
        }
        (value, _) => Cell::rate(value),
    }
}

fn rated(runs: &[RunResult]) -> Table {
    Table::of(runs)
        .numbers("run", |r| Cell::count(r.run))
        .numbers("block", |r| Cell::count(r.block))
        .words("variant", |r| Cell::text(&r.label))
        .words("started", |r| Cell::text(&r.started_at))
        .numbers("compared", compared)
        .numbers("mean", |r| Cell::rate(r.mean_pps))
        .numbers("p90", |r| Cell::rate(r.p90_pps))
        .numbers("offered pps", |r| Cell::rate(r.offered_pps))
        .numbers("offered", |r| Cell::count(r.offered))
        .numbers("forwarded", |r| Cell::count(r.forwarded))
        .numbers("warnings", |r| Cell::count(r.warnings))
        .table()
}
