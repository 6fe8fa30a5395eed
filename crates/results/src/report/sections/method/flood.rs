//! Effect of a flood of new flows on the traffic.

use super::connections::per_second;
use super::{MethodPoint, MethodRun};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::format::percent;
use crate::report::analysis::SummaryResult;
use crate::stats::summary::median;
use fwdlab_model::record::{FloodTrial, MethodTrial};
use fwdlab_model::units::format_pps;
use serde::Serialize;

/// The flood in a trial.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FloodPoint {
    /// Intended new flows per second.
    pub load: u64,
    /// Its packets per second in the window: offered and forwarded.
    pub pps: (f64, f64),
    /// Its packets: offered and forwarded.
    pub packets: (u64, u64),
    /// States in the device's table after the trial; `None` if the device does not report them.
    pub states: Option<u64>,
}

/// Results of a variant under one flood, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct FloodOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Intended load of the traffic, packets per second.
    pub load: u64,
    /// Intended new flows per second.
    pub flood: u64,
    /// Offered rate of the flood, packets per second: median of the runs.
    pub offered: Option<f64>,
    /// Forwarded share of the flood: median of the runs.
    pub passed: Option<f64>,
    /// States in the device's table afterwards: median of the runs that report them.
    pub states: Option<f64>,
    /// Minimum share of the traffic that the device lost, over the runs.
    pub loss: Option<SummaryResult>,
    /// Maximum share, including possible losses while other programs used the device's CPU: the
    /// median of the runs.
    pub loss_at_most: Option<f64>,
    /// Number of invalid trials.
    pub invalid: usize,
}

/// Summary of a variant over all floods.
#[derive(Clone, Debug, Serialize)]
pub struct FloodSummary {
    /// Its label.
    pub label: String,
    /// Intended load of the traffic, packets per second.
    pub load: u64,
    /// Largest loss in any run at that load without a flood.
    pub without: Option<f64>,
    /// The largest flood, in new flows per second, up to which no run lost more than without a
    /// flood; `None` if the smallest flood did harm, or the loss without a flood is unknown.
    pub harmless: Option<u64>,
    /// The smallest flood with a run that lost more than any run without a flood.
    pub harmful: Option<u64>,
    /// The largest flood, and the share of the traffic that is lost under it.
    pub greatest: Option<(u64, SummaryResult)>,
    /// Forwarded share of that flood.
    pub passed: Option<f64>,
}

/// Returns the flood of a trial; `None` if the trial has no flood.
pub(super) fn point(trial: &MethodTrial) -> Option<FloodPoint> {
    let FloodTrial { load, offered, forwarded, states } = *trial.flood.as_ref()?;
    let per_second = |packets: u64| packets as f64 * 1e9 / trial.window_ns.max(1) as f64;
    let pps = (per_second(offered), per_second(forwarded));
    Some(FloodPoint { load, pps, packets: (offered, forwarded), states })
}

/// Summarises a variant over its runs by flood, smallest first.
pub(super) fn flooded((variant, label): (usize, &str), runs: &[MethodRun]) -> Vec<FloodOutcome> {
    let points = runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.points);
    let all: Vec<(&MethodPoint, FloodPoint)> =
        points.filter_map(|point| Some((point, point.flood?))).collect();
    let mut floods: Vec<u64> = all.iter().map(|(_, flood)| flood.load).collect();
    floods.sort_unstable();
    floods.dedup();
    let of = |flood: u64| {
        let trials: Vec<&(&MethodPoint, FloodPoint)> =
            all.iter().filter(|(_, found)| found.load == flood).collect();
        let valid = || trials.iter().filter(|(point, _)| point.invalid.is_none());
        let each = |get: &dyn Fn(&MethodPoint, &FloodPoint) -> Option<f64>| -> Vec<f64> {
            valid().filter_map(|(point, found)| get(point, found)).collect()
        };
        let passed = |_: &MethodPoint, found: &FloodPoint| {
            let (offered, forwarded) = found.packets;
            (offered > 0).then(|| forwarded as f64 / offered as f64)
        };
        FloodOutcome {
            variant,
            label: label.to_owned(),
            load: trials.first().map_or(0, |(point, _)| point.load),
            flood,
            offered: median(&each(&|_, found| Some(found.pps.0))),
            passed: median(&each(&passed)),
            states: median(&each(&|_, found| Some(found.states? as f64))),
            loss: SummaryResult::of(&each(&|point, _| point.loss_ratio)),
            loss_at_most: median(&each(&|point, _| point.loss_at_most)),
            invalid: trials.len() - valid().count(),
        }
    };
    floods.into_iter().map(of).collect()
}

/// Summarises the rows of one variant.
pub(super) fn borne(rows: &[FloodOutcome]) -> Option<FloodSummary> {
    let first = rows.first()?;
    let without = rows.iter().find(|row| row.flood == 0).and_then(|row| row.loss);
    let without = without.map(|loss| loss.max);
    let floods = || rows.iter().filter(|row| row.flood > 0 && row.loss.is_some());
    let harms = |row: &&FloodOutcome| {
        row.loss.zip(without).is_some_and(|(loss, without)| loss.max > without)
    };
    let harmful = floods().find(harms).map(|row| row.flood);
    let below = floods().take_while(|row| harmful.is_none_or(|least| row.flood < least));
    let harmless = without.and_then(|_| below.map(|row| row.flood).max());
    let greatest = floods().next_back();
    Some(FloodSummary {
        label: first.label.clone(),
        load: first.load,
        without,
        harmless,
        harmful,
        greatest: greatest.and_then(|row| Some((row.flood, row.loss?))),
        passed: greatest.and_then(|row| row.passed),
    })
}

/// Returns a table with one row per variant and flood.
pub(super) fn table(rows: &[FloodOutcome]) -> Block {
    let lost = |value: Option<f64>| Cell::number(value, Digits::Percent(2));
    Table::of(rows)
        .words("variant", |row| Cell::text(&row.label))
        .numbers("flood", |row| Cell::rate(row.flood as f64))
        .numbers("flood offered", |row| Cell::rate(row.offered))
        .numbers("flood forwarded", |row| Cell::number(row.passed, Digits::Percent(1)))
        .numbers("states", |row| row.states.map_or(Cell::None, |n| Cell::count(n as u64)))
        .numbers("traffic", |row| Cell::rate(row.load as f64))
        .numbers("lost", move |row| lost(row.loss.map(|found| found.median)))
        .numbers("minimum", move |row| lost(row.loss.map(|found| found.min)))
        .numbers("maximum", move |row| lost(row.loss.map(|found| found.max)))
        .numbers("lost at most", move |row| lost(row.loss_at_most))
        .numbers("runs", |row| Cell::count(row.loss.map_or(0, |found| found.n) as u64))
        .numbers("invalid", |row| Cell::count(row.invalid as u64))
        .with_words(|row, line| {
            line.name = format!("{}, flood {}", row.label, format_pps(row.flood as f64));
            line.words.push(match &row.loss {
                Some(found) => format!("{} of the traffic lost", percent(found.median, 2)),
                None => "no valid trial".to_owned(),
            });
        })
        .set(|table| table.name = Some("flood"))
        .block()
}

/// States the effect of floods on a variant's traffic, without the variant's name.
pub(super) fn sentence(row: &FloodSummary) -> String {
    let Some((greatest, loss)) = &row.greatest else {
        return "no valid trial during a flood".to_owned();
    };
    let per_second = |flows: u64| format!("{} new flows a second", per_second(flows as f64));
    let traffic = format_pps(row.load as f64);
    let without = match row.without {
        Some(0.0) => "nothing".to_owned(),
        Some(loss) => format!("no more than the {} that it loses anyway", percent(loss, 2)),
        None => return format!("it is not known what traffic at {traffic} loses without a flood"),
    };
    let harm = match (row.harmless, row.harmful) {
        (Some(flows), _) => {
            format!(
                "traffic at {traffic} loses {without} during floods of up to {}",
                per_second(flows)
            )
        }
        (None, harmful) => format!(
            "traffic at {traffic} loses more under any flood of at least {}",
            per_second(harmful.unwrap_or(*greatest))
        ),
    };
    let most = format!(
        "{} ({} to {}, n = {}) during {}",
        percent(loss.median, 1),
        percent(loss.min, 1),
        percent(loss.max, 1),
        loss.n,
        per_second(*greatest)
    );
    let passed = row
        .passed
        .map_or(String::new(), |passed| format!(", of which {} get through", percent(passed, 1)));
    match row.harmful {
        Some(_) => format!("{harm}, and {most}{passed}"),
        None => format!("{harm}{passed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with the given floods: the load of each, and the lost share of the traffic.
    fn run(number: u32, losses: &[(u64, f64)]) -> MethodRun {
        let points = losses.iter().map(|&(flood, loss)| {
            let forwarded = (1000.0 * (1.0 - loss)).round() as u64;
            let trial = MethodTrial {
                load: 1000,
                duration_ns: 1_000_000_000,
                window_ns: 1_000_000_000,
                offered: 1000,
                forwarded,
                flood: Some(FloodTrial {
                    load: flood,
                    offered: flood,
                    forwarded: flood / 4,
                    states: Some(10 * flood),
                }),
                ..MethodTrial::default()
            };
            super::super::point(&trial, &[])
        });
        MethodRun { points: points.collect(), ..MethodRun::of((0, "x"), number) }
    }

    fn summarise(runs: &[MethodRun]) -> (Vec<FloodOutcome>, FloodSummary) {
        let rows = flooded((0, "x"), runs);
        let summary = borne(&rows).expect("rows");
        (rows, summary)
    }

    #[test]
    fn flood_is_harmless_up_to_unflooded_loss() {
        let first = run(0, &[(0, 0.01), (100, 0.01), (200, 0.01), (300, 0.5)]);
        let second = run(1, &[(0, 0.0), (100, 0.0), (200, 0.03), (300, 0.4)]);
        let (rows, summary) = summarise(&[first, second]);
        assert_eq!(rows.len(), 4);
        assert_eq!((summary.load, summary.without), (1000, Some(0.01)));
        assert_eq!((summary.harmless, summary.harmful), (Some(100), Some(200)), "one run of two");
        let (flood, loss) = summary.greatest.expect("a greatest one");
        assert_eq!((flood, loss.min, loss.max, loss.n), (300, 0.4, 0.5, 2));
        assert_eq!((rows[3].passed, rows[3].states), (Some(0.25), Some(3000.0)));
        assert_eq!(rows[0].passed, None, "nothing came");
    }

    #[test]
    fn floods_without_and_with_constant_harm() {
        let (_, never) = summarise(&[run(0, &[(0, 0.0), (100, 0.0), (200, 0.0)])]);
        assert_eq!((never.harmless, never.harmful), (Some(200), None));
        let (_, always) = summarise(&[run(0, &[(0, 0.0), (100, 0.2), (200, 0.1)])]);
        assert_eq!((always.harmless, always.harmful), (None, Some(100)));
        let (_, unknown) = summarise(&[run(0, &[(100, 0.2)])]);
        assert_eq!((unknown.without, unknown.harmless), (None, None), "not known without one");
    }
}
