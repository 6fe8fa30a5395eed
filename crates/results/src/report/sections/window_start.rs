//! Flows and states at the start of the windows, and reasons for the ends of drains.

use super::{Context, DETAILS, Input, Section};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::groups::groups;
use crate::stats::summary::median;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::record::DrainEnd;
use serde::Serialize;

/// Window starts and drains of one variant's runs.
#[derive(Clone, Debug, Serialize)]
pub struct WindowStart {
    /// Label of the variant.
    pub label: String,
    /// Number of runs.
    pub runs: usize,
    /// Median length of the warm-up, seconds.
    pub warmup_s: f64,
    /// Flows of the traffic.
    pub flows: u32,
    /// Minimum number of flows received at the start; `None` if they were not counted.
    pub received: Option<u32>,
    /// Minimum number of the device's states at the start; `None` if it has none, or did not report
    /// them.
    pub states: Option<u64>,
    /// Minimum number of states at the end of a window.
    pub states_closing: Option<u64>,
    /// Number of runs with missing or uncounted flows at the start.
    pub early: usize,
    /// Reasons for the end of drains, with the number of runs.
    pub drained: String,
    /// Maximum of packets unaccounted for in a run; `None` if the device does not report drops.
    pub unaccounted: Option<i64>,
}

impl Section for Vec<WindowStart> {
    fn analyse(input: &Input<'_>) -> Vec<WindowStart> {
        openings(input.contents)
    }

    fn document(&self, _: &Context<'_>) -> Vec<Block> {
        if self.is_empty() {
            return Vec::new();
        }
        let text = "The smallest numbers of flows and states of any run when its window opened, \
                    and the reason why the drain ended. States are of the device under test.";
        let table = Table::of(self)
            .words("variant", |o| Cell::text(&o.label))
            .numbers("runs", |o| Cell::count(o.runs))
            .numbers("warm-up, s", |o| Cell::number(o.warmup_s, Digits::Decimals(2)))
            .numbers("flows", |o| Cell::count(o.flows))
            .numbers("received", |o| match o.received {
                Some(received) => Cell::count(received),
                None => Cell::text("not counted"),
            })
            .numbers("states", |o| Cell::count(o.states))
            .numbers("states at closing", |o| Cell::count(o.states_closing))
            .numbers("not all there", |o| Cell::count(o.early))
            .words("the drain ended", |o| Cell::text(&o.drained))
            .numbers("unaccounted", |o| Cell::count(o.unaccounted));
        let blocks = vec![Block::text(text), table.block()];
        vec![Block::section("Before and after the windows", blocks).folded().on_page(DETAILS)]
    }
}

/// Returns the window starts of every variant; empty if the records don't contain them.
fn openings(contents: &Contents) -> Vec<WindowStart> {
    let of = |(label, runs): (String, Vec<&RunRecord>)| {
        let opened: Vec<_> = runs.iter().map(|run| &run.trial.opening).collect();
        let opened: Vec<_> = opened.into_iter().filter(|opening| opening.flows > 0).collect();
        let warmups: Vec<f64> = opened.iter().map(|o| o.warmup_ns as f64 / 1e9).collect();
        Some(WindowStart {
            label,
            runs: opened.len(),
            warmup_s: median(&warmups)?,
            flows: opened.iter().map(|o| o.flows).max()?,
            received: opened.iter().filter_map(|o| o.flows_received).min(),
            states: opened.iter().filter_map(|o| o.states).min(),
            states_closing: opened.iter().filter_map(|o| o.states_closing).min(),
            early: opened.iter().filter(|o| o.missing().is_some() || !o.is_known()).count(),
            drained: drained(&opened.iter().filter_map(|o| o.drained).collect::<Vec<_>>()),
            unaccounted: opened.iter().filter_map(|o| o.unaccounted).max(),
        })
    };
    groups(contents).into_iter().filter_map(of).collect()
}

fn drained(ends: &[DrainEnd]) -> String {
    let all = [DrainEnd::Accounted, DrainEnd::Silence, DrainEnd::Limit];
    let counts = all.iter().map(|end| (end, ends.iter().filter(|other| *other == end).count()));
    let counts: Vec<(&DrainEnd, usize)> = counts.filter(|(_, count)| *count > 0).collect();
    let reasons = counts.iter().map(|(end, count)| match counts.len() {
        1 => end.words().to_owned(),
        _ => format!("{} ({count})", end.words()),
    });
    reasons.collect::<Vec<_>>().join(", ")
}
