//! Rates at which the change detector of a history alarms without a change, and finds a change:
//! points of simulated series.

use super::residuals::ARCHIVE;
use super::{Table, count, count_events};
use crate::selftest::{Bar, ErrorRate};
use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::stats::change_points::{change_points, change_points_among, least_cost};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Number of series per row; more would only narrow its interval.
const SERIES: u64 = 4000;
/// Number of series of a history.
const FAMILY: usize = 60;
/// Scatter between points, as a ratio.
const CV: f64 = 0.01;
/// Maximum distance, in points, of a change that counts as found.
const TOLERANCE: usize = 1;
/// Seeds of these rows are disjoint from the seeds of other rows.
const FIRST_ROW: u64 = 1 << 16;
/// Seeds of other series differ in this bit.
const OTHER: u64 = 1 << 63;

/// Distribution of the points.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Points {
    Independent,
    /// Correlation of each point with the previous one.
    Autoregressive(f64),
    T3,
    /// Two of a hundred are 5 to 10 standard deviations lower.
    Outliers,
    Archive,
    /// Three of ten are three standard deviations lower.
    TwoModes,
    /// The same, with modes that scatter by 0.3.
    SharpModes,
    /// A lower tail: exponential.
    LowerTail,
    /// Independent points whose scatter grows fourfold along the series.
    Growing,
    /// Half of the variance drifts: AR(1) with a correlation of 0.9.
    Drift,
    /// Independent points around a level that walks by 0.3 standard deviations per point.
    Walk,
}

impl Points {
    fn name(self) -> String {
        match self {
            Points::Independent => "independent points".into(),
            Points::Autoregressive(phi) => format!("AR(1), phi {phi}"),
            Points::T3 => "heavy tails (t3)".into(),
            Points::Outliers => "2 % outliers".into(),
            Points::Archive => "residuals of the archive".into(),
            Points::TwoModes => "two modes".into(),
            Points::SharpModes => "two sharp modes".into(),
            Points::LowerTail => "exponential lower tail".into(),
            Points::Growing => "scatter grows fourfold".into(),
            Points::Drift => "level drifts, half of the variance, phi 0.9".into(),
            Points::Walk => "level walks, 0.3 of the scatter per point".into(),
        }
    }

    /// Draws `n` points with standard deviation 1 (outliers excepted).
    fn draw(self, n: usize, random: &mut Xoshiro256StarStar) -> Vec<f64> {
        let mut last = normal(random);
        (0..n)
            .map(|i| match self {
                Points::Independent => normal(random),
                Points::Autoregressive(phi) => {
                    last = phi * last + (1.0 - phi * phi).sqrt() * normal(random);
                    last
                }
                Points::T3 => {
                    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                    normal(random) / squares.sqrt()
                }
                Points::Outliers => {
                    let depth = 5.0 + 5.0 * unit(random);
                    normal(random) - if unit(random) < 0.02 { depth } else { 0.0 }
                }
                Points::TwoModes => normal(random) - mode(random),
                Points::SharpModes => 0.3 * normal(random) - mode(random),
                Points::LowerTail => (1.0 - unit(random)).ln(),
                Points::Growing => 4_f64.powf(i as f64 / n as f64) / 2.0 * normal(random),
                Points::Drift => {
                    last = 0.9 * last + 0.19_f64.sqrt() * normal(random);
                    (last + normal(random)) / std::f64::consts::SQRT_2
                }
                Points::Walk => {
                    last += 0.3 * normal(random);
                    last + normal(random)
                }
                Points::Archive => {
                    let at = (unit(random) * ARCHIVE.len() as f64) as usize;
                    ARCHIVE[at.min(ARCHIVE.len() - 1)]
                }
            })
            .collect()
    }
}

fn unit(random: &mut Xoshiro256StarStar) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Distance of a point's mode: three of ten points are three standard deviations lower.
fn mode(random: &mut Xoshiro256StarStar) -> f64 {
    if unit(random) < 0.3 { 3.0 } else { 0.0 }
}

/// A normal number, by Box and Muller's method.
fn normal(random: &mut Xoshiro256StarStar) -> f64 {
    let radius = (-2.0 * (1.0 - unit(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

/// Logarithms of a series with steps at these points and of these sizes.
fn logs(points: Points, n: usize, seed: u64, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let drawn = points.draw(n, &mut random);
    let value = |(i, noise): (usize, &f64)| {
        let level: f64 = steps.iter().filter(|(at, _)| *at <= i).map(|(_, step)| step).sum();
        1e6_f64.ln() + level + CV * noise
    };
    drawn.iter().enumerate().map(value).collect()
}

/// A detector of change points.
type Detector = fn(&[f64]) -> Vec<usize>;

fn detect(logs: &[f64]) -> Vec<usize> {
    change_points(logs).map(|division| division.change_points).unwrap_or_default()
}

/// Detects without the allowances of [`change_points`]: the classic practice.
fn detect_least_cost(logs: &[f64]) -> Vec<usize> {
    least_cost(logs).map(|(change_points, _, _)| change_points).unwrap_or_default()
}

/// Returns one event, which may have happened.
fn event(happened: bool) -> Rate {
    Rate { hits: u64::from(happened), of: 1 }
}

/// True if a flat series changes at a level that holds jointly for [`FAMILY`] series.
fn fails(points: Points, n: usize, seed: u64) -> bool {
    let logs = logs(points, n, seed, &[]);
    let Ok(division) = change_points(&logs) else { return false };
    let among_all = change_points_among(&division.values, &division.noise, FAMILY);
    !division.change_points.is_empty() && among_all.is_ok_and(|changes| !changes.is_empty())
}

impl Table<'_> {
    /// Rows about `fwdlab history`.
    pub(super) fn history(&mut self) {
        for n in [20, 50, 100] {
            // A few points cannot show their correlation: nothing is promised.
            let correlated =
                |min_points: usize, limit: f64| (n >= min_points).then_some(Bar::AtMost(limit));
            for (points, bar) in [
                (Points::Independent, Some(Bar::AtMost(0.06))),
                (Points::Autoregressive(0.3), correlated(50, 0.1)),
                (Points::Autoregressive(0.6), correlated(100, 0.07)),
                (Points::T3, Some(Bar::AtMost(0.06))),
                (Points::Outliers, Some(Bar::AtMost(0.06))),
                (Points::Archive, Some(Bar::AtMost(0.09))),
                (Points::TwoModes, Some(Bar::AtMost(0.1))),
                (Points::LowerTail, Some(Bar::AtMost(0.1))),
            ] {
                self.add_alarms("history: a series without a change alarms", n, points, bar);
            }
        }
        for points in [Points::Independent, Points::Archive] {
            let (question, n) = ("history: any of 60 flat series fails", 20);
            let design = format!("{n} points");
            let Some(row) = self.begin(question, &design, &points.name()) else { continue };
            let histories = (self.experiments.min(SERIES) / 20).max(2);
            let fails = count(FIRST_ROW + row, histories, &|seed| {
                (0..FAMILY as u64).any(|one| fails(points, n, seed * FAMILY as u64 + one))
            });
            let bar = Some(Bar::AtMost(0.1)).filter(|_| points == Points::Independent);
            let row = ErrorRate::new(question, design, points.name(), fails).against(bar);
            self.rows.push(row);
        }
        for (step, points, bar) in [
            (0.02, Points::Independent, Some(0.78)),
            (0.02, Points::Outliers, Some(0.78)),
            (0.02, Points::Archive, Some(0.69)),
            (0.02, Points::Autoregressive(0.3), None),
            (0.02, Points::Autoregressive(0.6), None),
            (0.02, Points::T3, None),
            (0.03, Points::Independent, Some(0.9)),
            (0.03, Points::Outliers, Some(0.85)),
            (0.03, Points::Archive, Some(0.8)),
        ] {
            let (percent, n, step) = (100.0 * step, 100, f64::ln_1p(step));
            let question = format!("history: finds two steps of {percent:.0} %, F1 within a point");
            let bar = bar.map(Bar::AtLeast);
            self.add_history(&question, n, points, bar, &|seed, detect| {
                let steps = [(20 + seed as usize % 25, step), (60 + seed as usize % 20, -step)];
                let places = detect(&logs(points, n, seed, &steps));
                let near = |at: usize| places.iter().any(|p| p.abs_diff(at) <= TOLERANCE);
                let hits = steps.iter().filter(|(at, _)| near(*at)).count();
                // F1 is twice the correct changes divided by the sum of marked and true changes.
                Rate { hits: 2 * hits as u64, of: (places.len() + steps.len()) as u64 }
            });
        }
    }

    /// Rows about histories of unsteady beds.
    pub(super) fn unsteady_histories(&mut self) {
        for (points, limits) in [
            (Points::Growing, [0.1, 0.1, 0.1]),
            (Points::Drift, [0.15, 0.3, 0.35]),
            (Points::Walk, [0.15, 0.45, 0.45]),
        ] {
            for (n, limit) in [20, 50, 100].into_iter().zip(limits) {
                let question = "history: an unsteady bed without a change alarms";
                self.add_alarms(question, n, points, Some(Bar::AtMost(limit)));
            }
        }
        let laws = [
            (Points::Independent, [None, Some(0.95), Some(0.95)]),
            (Points::Growing, [None, Some(0.95), Some(0.95)]),
            (Points::Drift, [None, Some(0.95), Some(0.95)]),
            (Points::Walk, [None, Some(0.85), Some(0.8)]),
        ];
        for (points, bars) in laws {
            for (n, bar) in [20, 50, 100].into_iter().zip(bars) {
                self.add_step(0.04, n, points, bar.map(Bar::AtLeast));
            }
        }
        for n in [20, 50] {
            self.add_step(0.02, n, Points::Independent, None);
        }
        for (n, points, bar) in [
            (20, Points::Independent, Some(0.9)),
            (50, Points::Independent, Some(0.9)),
            (100, Points::Independent, Some(0.9)),
            (50, Points::Growing, None),
            (50, Points::Walk, None),
        ] {
            let question = "history: finds the step that another series printed";
            let bar = bar.map(Bar::AtLeast);
            self.add_history(question, n, points, bar, &|seed, detect| {
                let printed = change_points(&logs(points, n, seed ^ OTHER, &[]));
                let step = printed.map_or(0.0, |division| division.detectable());
                event(!detect(&logs(points, n, seed, &[(n / 2, step)])).is_empty())
            });
        }
    }

    /// Rows about series of two modes that hardly scatter.
    pub(super) fn sharp_modes(&mut self) {
        for n in [20, 50, 100] {
            let bar = Some(Bar::AtMost(0.1));
            self.add_alarms(
                "history: a series without a change alarms",
                n,
                Points::SharpModes,
                bar,
            );
        }
        for (n, bar) in [(50, 0.8), (100, 0.9)] {
            self.add_step(0.04, n, Points::SharpModes, Some(Bar::AtLeast(bar)));
        }
    }

    /// Adds a row: share of flat series with change points.
    fn add_alarms(&mut self, question: &str, n: usize, points: Points, bar: Option<Bar>) {
        self.add_history(question, n, points, bar, &|seed, detect| {
            event(!detect(&logs(points, n, seed, &[])).is_empty())
        });
    }

    /// Adds a row: share of series whose step, in the middle half, is found.
    fn add_step(&mut self, step: f64, n: usize, points: Points, bar: Option<Bar>) {
        let question = format!("history: finds a step of {:.0} % within two points", 100.0 * step);
        self.add_history(&question, n, points, bar, &|seed, detect| {
            let at = n / 4 + seed as usize % (n / 2);
            let places = detect(&logs(points, n, seed, &[(at, step.ln_1p())]));
            event(places.iter().any(|place| place.abs_diff(at) <= 2))
        });
    }

    /// Adds a row about series of `n` points, with and without the allowances.
    fn add_history(
        &mut self,
        question: &str,
        n: usize,
        points: Points,
        bar: Option<Bar>,
        events: &(dyn Fn(u64, Detector) -> Rate + Sync),
    ) {
        let design = format!("{n} points");
        let Some(row) = self.begin(question, &design, &points.name()) else { return };
        let series = self.experiments.min(SERIES);
        let count =
            |detect: Detector| count_events(FIRST_ROW + row, series, &|seed| events(seed, detect));
        let rate = ErrorRate::new(question, design, points.name(), count(detect)).against(bar);
        self.rows.push(ErrorRate { classic: Some(count(detect_least_cost).share()), ..rate });
    }
}
