//! Choice of the next trial. The RFC leaves it open; any choice that ends with bounds is correct,
//! and a good one needs few trials.
//!
//! First the device is located by single trials: at the maximum load, then just above the rate it
//! forwarded there, until forwarding rates agree (`locate`). Then a grid is laid with the threshold
//! of the strictest goal in the middle of a cell, and each goal measures both ends of the cell that
//! contains its threshold (`candidate`). If a class contradicts the estimate, the class is
//! believed: the search continues beyond it in growing steps, and halves the interval between two
//! bounds. The lowest load that any goal requests is measured until it is decided, because an upper
//! bound found late at a low load would invalidate the results above it.

use crate::bounds::Bounds;
use crate::classify::Class;
use crate::estimate::{self, Estimate};
use crate::goal::Goal;
use crate::grid::Grid;
use crate::limits::Limits;
use crate::trial::Trial;
use crate::trials::Trials;

/// Growth of the steps above a lower bound.
const GROWTH_UP: f64 = 4.0;
/// Growth of the steps below an upper bound that no overload explains.
const GROWTH_DOWN: f64 = 40.0;
/// Maximum number of trials to locate the device, and the factor below the width at which the
/// estimate's error permits fewer.
const LOCATING: usize = 6;
const ENOUGH: f64 = 5.0;
/// The same for a device that forwards less the more it receives.
const LOCATING_MAX: usize = 24;
/// Distance above the estimate at which the device is tested, in widths: an upper bound there is
/// one for a goal that tolerates as much loss as its width.
const ABOVE: f64 = 1.5;
/// Maximum distance of a trial from a grid load to become one, in cells.
const ASIDE: f64 = 0.1;

/// State of a strategy in addition to the trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strategy {
    grid: Option<Grid>,
    /// The goal and load being decided.
    focus: Option<(usize, u64)>,
}

impl Strategy {
    /// Returns the next trial for the goals that are still `open` (by number); `None` if there is
    /// none.
    pub(crate) fn next(
        &mut self,
        trials: &Trials,
        limits: &Limits,
        open: &[usize],
    ) -> Option<Trial> {
        let goals = trials.goals();
        let width = goals.iter().map(|goal| goal.width).fold(1.0, f64::min);
        if self.grid.is_none() {
            let duration_ns = goals.iter().map(|goal| goal.initial_ns).min()?;
            if let Some(load) = locate(trials, limits, width) {
                return Some(Trial { load, duration_ns });
            }
            let strictest = goals.iter().map(|goal| goal.loss_ratio).fold(1.0, f64::min);
            let found = estimate::capacity(trials, width);
            let threshold = found.map_or(f64::INFINITY, |found| found.rate / (1.0 - strictest));
            let anchor = anchor(threshold * (1.0 - width / 2.0), trials, width);
            self.grid = Some(Grid::around(anchor, limits.min_load, limits.max_load, width));
        }
        let (grid, focus) = (self.grid.as_ref()?, self.focus.take());
        let is_on = |(goal, load): &(usize, u64)| {
            let bounds = Bounds::of(trials, *goal);
            open.contains(goal)
                && trials.class(*goal, *load) == Class::Undecided
                && bounds.upper.is_none_or(|upper| *load < upper)
        };
        let focus = focus.filter(is_on).or_else(|| {
            let capacity = estimate::capacity(trials, width);
            open.iter()
                .filter_map(|goal| Some((*goal, candidate(grid, trials, *goal, capacity, limits)?)))
                .min_by_key(|(_, load)| *load)
        })?;
        self.focus = Some(focus);
        let (goal, load) = focus;
        Some(Trial { load, duration_ns: duration_ns(&goals[goal], trials, load) })
    }
}

/// Returns the duration of the next trial at a load for a goal: first a short one, which may refute
/// the load, then full-length ones.
fn duration_ns(goal: &Goal, trials: &Trials, load: u64) -> u64 {
    let was_tried =
        trials.at(load).iter().any(|measured| measured.trial.duration_ns >= goal.initial_ns);
    if was_tried { goal.final_ns } else { goal.initial_ns }
}

/// Returns the load of a trial that improves the estimate of the capacity; `None` if it is good.
fn locate(trials: &Trials, limits: &Limits, width: f64) -> Option<u64> {
    let Limits { min_load, max_load, .. } = *limits;
    let count = trials.all().len();
    if count == 0 {
        return Some(max_load);
    }
    let found = estimate::capacity(trials, width)?;
    let Estimate { rate, error, refused, .. } = found;
    if rate < min_load as f64 || count >= LOCATING_MAX {
        return None;
    }
    let target = match found.passed.map(|passed| passed as f64) {
        // More passed than expected: continue towards the refused load.
        Some(passed) if found.contradicted => {
            if refused as f64 <= passed * (1.0 + 3.0 * width) {
                return None;
            }
            middle(passed, refused as f64)
        }
        _ if found.near >= LOCATING || error.is_some_and(|error| error <= width / ENOUGH) => {
            return None;
        }
        _ => rate * (1.0 + ABOVE * width),
    };
    let load = (target.round() as u64).clamp(min_load, max_load);
    // A load that was already tried is as good as one close to it.
    let is_close = |tried: &u64| (*tried as f64 / load as f64 - 1.0).abs() <= width / 4.0;
    Some(trials.loads().map(|(tried, _)| tried).find(is_close).unwrap_or(load))
}

/// Returns the anchor of the grid: `target`, or an already tried load if one of the grid would be
/// close to it, so that its trials count.
fn anchor(target: f64, trials: &Trials, width: f64) -> f64 {
    let is_close = |load: f64| {
        let steps = (load / target).ln() / -(1.0 - width).ln();
        steps.abs() < 8.0 && (steps - steps.round()).abs() <= ASIDE
    };
    trials.loads().map(|(load, _)| load as f64).find(|load| is_close(*load)).unwrap_or(target)
}

/// Returns the middle of two loads: of their logarithms if they are far apart.
fn middle(lower: f64, upper: f64) -> f64 {
    if upper > 2.0 * lower { (lower * upper).sqrt() } else { (lower + upper) / 2.0 }
}

/// Returns the load that a goal would measure next.
fn candidate(
    grid: &Grid,
    trials: &Trials,
    number: usize,
    capacity: Option<Estimate>,
    limits: &Limits,
) -> Option<u64> {
    let goal = &trials.goals()[number];
    let Bounds { lower, upper, .. } = Bounds::of(trials, number);
    let (max, width) = (limits.max_load as f64, goal.width);
    // Above the maximum load all are the same.
    let most = max * (1.0 + width / 2.0);
    let threshold = capacity.map_or(most, |found| (found.rate / (1.0 - goal.loss_ratio)).min(most));
    let target = match (lower.map(|load| load as f64), upper.map(|load| load as f64)) {
        // Below the expected threshold: the next cell, then far down.
        (lower, Some(upper)) if upper <= threshold => {
            let under = threshold - upper;
            let on = if under < width * upper { width * upper } else { GROWTH_DOWN * under };
            (upper - on).max(lower.map_or(0.0, |lower| middle(lower, upper)))
        }
        // Above it: the next cell, then further up.
        (Some(lower), upper) if lower >= threshold => {
            let on = lower + (GROWTH_UP - 1.0) * (lower - threshold);
            let on = on.max(grid.within(lower as u64, width) as f64);
            on.min(upper.map_or(max, |upper| middle(lower, upper)))
        }
        // The cell of the threshold: its lower end, then its upper one.
        (lower, _) => {
            let below = threshold * (1.0 - width / 2.0);
            match lower {
                Some(lower) if lower >= below * (1.0 - width / 4.0) => {
                    grid.within(lower as u64, width) as f64
                }
                _ => below,
            }
        }
    };
    grid.nearest(target, lower, upper)
}
