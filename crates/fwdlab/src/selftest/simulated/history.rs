//! Rates at which the change detector of a history alarms without a change, and finds a change:
//! points of simulated series.

use super::residuals::ARCHIVE;
use super::{Table, count};
use crate::selftest::{Bar, ErrorRate};
use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::stats::change_points::{change_points, change_points_among};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// A lower tail: exponential.
    LowerTail,
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
            Points::LowerTail => "exponential lower tail".into(),
        }
    }

    /// Draws `n` points with standard deviation 1 (outliers excepted).
    fn draw(self, n: usize, random: &mut Xoshiro256StarStar) -> Vec<f64> {
        let mut last = normal(random);
        (0..n)
            .map(|_| match self {
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
                Points::TwoModes => normal(random) - if unit(random) < 0.3 { 3.0 } else { 0.0 },
                Points::LowerTail => (1.0 - unit(random)).ln(),
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

fn found(points: Points, n: usize, seed: u64, steps: &[(usize, f64)]) -> Vec<usize> {
    let logs = logs(points, n, seed, steps);
    change_points(&logs).map(|division| division.change_points).unwrap_or_default()
}

/// True if a flat series changes at a level that holds jointly for [`FAMILY`] series.
fn fails(points: Points, n: usize, seed: u64) -> bool {
    let logs = logs(points, n, seed, &[]);
    let Ok(division) = change_points(&logs) else { return false };
    let among_all = change_points_among(&division.values, division.spread, FAMILY);
    !division.change_points.is_empty() && among_all.is_ok_and(|changes| !changes.is_empty())
}

impl Table<'_> {
    /// Rows about `fwdlab history`.
    pub(super) fn history(&mut self) {
        let series = self.experiments.min(SERIES);
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
                let question = "history: a series without a change alarms";
                let seed = self.seed_of(question, n, points);
                let alarms = count(seed, series, &|seed| !found(points, n, seed, &[]).is_empty());
                self.push_row(question, n, points, alarms, bar);
            }
        }
        for points in [Points::Independent, Points::Archive] {
            let question = "history: any of 60 flat series fails";
            let seed = self.seed_of(question, 20, points);
            let histories = (series / 20).max(2);
            let fails = count(seed, histories, &|seed| {
                (0..FAMILY as u64).any(|one| fails(points, 20, seed * FAMILY as u64 + one))
            });
            let bar = Some(Bar::AtMost(0.1)).filter(|_| points == Points::Independent);
            self.push_row(question, 20, points, fails, bar);
        }
        for (step, bars) in [
            (
                0.02_f64,
                [(Points::Independent, 0.78), (Points::Outliers, 0.78), (Points::Archive, 0.69)],
            ),
            (0.03, [(Points::Independent, 0.9), (Points::Outliers, 0.85), (Points::Archive, 0.8)]),
        ] {
            for (points, bar) in bars {
                let percent = 100.0 * step;
                let question =
                    format!("history: finds two steps of {percent:.0} %, F1 within a point");
                let seed = self.seed_of(&question, 100, points);
                let (right, counted) = (AtomicU64::new(0), AtomicU64::new(0));
                count(seed, series, &|seed| {
                    let (first, second) = (20 + seed as usize % 25, 60 + seed as usize % 20);
                    let steps = [(first, step.ln_1p()), (second, -step.ln_1p())];
                    let places = found(points, 100, seed, &steps);
                    let near = |at: usize| places.iter().any(|p| p.abs_diff(at) <= TOLERANCE);
                    let hits = steps.iter().filter(|(at, _)| near(*at)).count();
                    right.fetch_add(2 * hits as u64, Ordering::Relaxed);
                    counted.fetch_add((places.len() + steps.len()) as u64, Ordering::Relaxed);
                    hits > 0
                });
                // F1 is twice the correct changes divided by the sum of marked and true changes.
                let rate = Rate { hits: right.into_inner(), of: counted.into_inner() };
                self.push_row(&question, 100, points, rate, Some(Bar::AtLeast(bar)));
            }
        }
    }

    fn seed_of(&mut self, question: &str, n: usize, points: Points) -> u64 {
        (self.report_row)(&format!("{question}: {n} points, {}", points.name()));
        FIRST_ROW + self.rows.len() as u64
    }

    fn push_row(&mut self, question: &str, n: usize, points: Points, rate: Rate, bar: Option<Bar>) {
        let design = format!("{n} points");
        let row = ErrorRate::new(question, design, points.name(), rate).against(bar);
        self.rows.push(row);
    }
}
