//! What new flows beside it did to the traffic.

use super::{MethodPoint, MethodRun};
use crate::report::analysis::variants::SummaryResult;
use crate::stats::summary::median;
use fwdlab_model::record::{FloodTrial, MethodTrial};
use serde::Serialize;

/// The flood of a trial.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FloodPoint {
    /// Intended new flows a second.
    pub load: u64,
    /// Packets of it a second in the window: offered, and forwarded.
    pub pps: (f64, f64),
    /// Packets of it: offered, and forwarded.
    pub packets: (u64, u64),
    /// States in the device's table after the trial, where it tells.
    pub states: Option<u64>,
}

/// A variant beside one flood, over its runs.
#[derive(Clone, Debug, Serialize)]
pub struct FloodOutcome {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Intended load of the traffic, packets per second.
    pub load: u64,
    /// Intended new flows a second beside it.
    pub flood: u64,
    /// What was offered of these, packets per second: median of the runs.
    pub offered: Option<f64>,
    /// Share of these that was forwarded: median of the runs.
    pub passed: Option<f64>,
    /// States in the device's table afterwards: median of the runs in which it tells.
    pub states: Option<f64>,
    /// Share of the traffic that the device lost at least, over the runs.
    pub loss: Option<SummaryResult>,
    /// The same at most, with what may have been lost while others had the device's CPU: the
    /// median of the runs.
    pub loss_at_most: Option<f64>,
    /// Trials that say nothing of the device.
    pub invalid: usize,
}

/// What a variant's traffic bore, over all floods.
#[derive(Clone, Debug, Serialize)]
pub struct FloodSummary {
    /// Its label.
    pub label: String,
    /// Intended load of the traffic, packets per second.
    pub load: u64,
    /// Most that it lost of that load without a flood, in any run.
    pub without: Option<f64>,
    /// The greatest flood, new flows a second, up to which no run lost more than without one;
    /// none where the least one did harm, or it is not known what is lost without.
    pub harmless: Option<u64>,
    /// The least flood that made some run lose more than any did without one.
    pub harmful: Option<u64>,
    /// The greatest flood, and the share of the traffic that is lost beside it.
    pub greatest: Option<(u64, SummaryResult)>,
    /// Share of that flood that was forwarded.
    pub passed: Option<f64>,
}

/// The flood of a trial; none where nothing was meant to come beside its traffic.
pub(super) fn point(trial: &MethodTrial) -> Option<FloodPoint> {
    let FloodTrial { load, offered, forwarded, states } = *trial.flood.as_ref()?;
    let per_second = |packets: u64| packets as f64 * 1e9 / trial.window_ns.max(1) as f64;
    let pps = (per_second(offered), per_second(forwarded));
    Some(FloodPoint { load, pps, packets: (offered, forwarded), states })
}

/// A variant over its runs, flood by flood, the least first.
pub(super) fn flooded((variant, label): (usize, &str), runs: &[MethodRun]) -> Vec<FloodOutcome> {
    let own = runs.iter().filter(|run| run.variant == variant).flat_map(|run| &run.points);
    let all: Vec<(&MethodPoint, FloodPoint)> =
        own.filter_map(|point| Some((point, point.flood?))).collect();
    let mut floods: Vec<u64> = all.iter().map(|(_, flood)| flood.load).collect();
    floods.sort_unstable();
    floods.dedup();
    let of = |flood: u64| {
        let of_it: Vec<&(&MethodPoint, FloodPoint)> =
            all.iter().filter(|(_, found)| found.load == flood).collect();
        let told = || of_it.iter().filter(|(point, _)| point.invalid.is_none());
        let each = |get: &dyn Fn(&MethodPoint, &FloodPoint) -> Option<f64>| -> Vec<f64> {
            told().filter_map(|(point, found)| get(point, found)).collect()
        };
        let passed = |_: &MethodPoint, found: &FloodPoint| {
            let (offered, forwarded) = found.packets;
            (offered > 0).then(|| forwarded as f64 / offered as f64)
        };
        FloodOutcome {
            variant,
            label: label.to_owned(),
            load: of_it.first().map_or(0, |(point, _)| point.load),
            flood,
            offered: median(&each(&|_, found| Some(found.pps.0))),
            passed: median(&each(&passed)),
            states: median(&each(&|_, found| Some(found.states? as f64))),
            loss: SummaryResult::of(&each(&|point, _| point.loss_ratio)),
            loss_at_most: median(&each(&|point, _| point.loss_at_most)),
            invalid: of_it.len() - told().count(),
        }
    };
    floods.into_iter().map(of).collect()
}

/// What these rows of one variant say together.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A run beside floods: the load of each, the share of the traffic that is lost.
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

    fn said(runs: &[MethodRun]) -> (Vec<FloodOutcome>, FloodSummary) {
        let rows = flooded((0, "x"), runs);
        let borne = borne(&rows).expect("rows");
        (rows, borne)
    }

    #[test]
    fn a_flood_is_harmless_while_no_run_loses_more_than_without_one() {
        let first = run(0, &[(0, 0.01), (100, 0.01), (200, 0.01), (300, 0.5)]);
        let second = run(1, &[(0, 0.0), (100, 0.0), (200, 0.03), (300, 0.4)]);
        let (rows, borne) = said(&[first, second]);
        assert_eq!(rows.len(), 4);
        assert_eq!((borne.load, borne.without), (1000, Some(0.01)));
        assert_eq!((borne.harmless, borne.harmful), (Some(100), Some(200)), "one run of two");
        let (flood, loss) = borne.greatest.expect("a greatest one");
        assert_eq!((flood, loss.min, loss.max, loss.n), (300, 0.4, 0.5, 2));
        assert_eq!((rows[3].passed, rows[3].states), (Some(0.25), Some(3000.0)));
        assert_eq!(rows[0].passed, None, "nothing came");
    }

    #[test]
    fn a_flood_that_never_harms_and_one_that_always_does() {
        let (_, never) = said(&[run(0, &[(0, 0.0), (100, 0.0), (200, 0.0)])]);
        assert_eq!((never.harmless, never.harmful), (Some(200), None));
        let (_, always) = said(&[run(0, &[(0, 0.0), (100, 0.2), (200, 0.1)])]);
        assert_eq!((always.harmless, always.harmful), (None, Some(100)));
        let (_, unknown) = said(&[run(0, &[(100, 0.2)])]);
        assert_eq!((unknown.without, unknown.harmless), (None, None), "not known without one");
    }
}
