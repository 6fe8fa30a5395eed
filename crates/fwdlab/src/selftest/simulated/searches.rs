//! Searches of simulated devices: throughput at a border that is wider than a search's interval,
//! and bisections of histories with wild runs.

use super::Table;
use crate::selftest::{Bar, Reference};
use fwdlab_results::stats::binomial::Rate;
use fwdlab_search::bisect::simulated::{History, search as bisect};
use fwdlab_search::bisect::{Ending, Options};
use fwdlab_search::simulated::{Device, Law};
use fwdlab_search::{Goal, GoalResult, Limits, Search, run};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of searches per row.
const SEARCHES: u64 = 400;
/// Maximum number of bisections per row.
const BISECTIONS: u64 = 300;
/// Names of the goals.
const GOALS: [&str; 2] = ["ndr", "pdr"];
/// Candidates of a bisection.
const CANDIDATES: usize = 128;

/// A device, and the results of the reference implementation: mean number of trials, and share of
/// bounds that contain the truth, NDR and PDR (MLRsearch 1.2.1, 1,000 devices, docs/MLRSEARCH.md).
struct Border {
    name: &'static str,
    law: Law,
    reference_trials: f64,
    reference_covered: [f64; 2],
}

fn borders() -> Vec<Border> {
    let exact = Law::exact(1.0);
    let border = |name, law, reference_trials, reference_covered| Border {
        name,
        law,
        reference_trials,
        reference_covered,
    };
    let below = |width: f64| Law { border: width, border_middle: 1.0 - width / 2.0, ..exact };
    vec![
        border("border 5 % wide", below(0.05), 91.9, [0.413, 1.0]),
        border("border 20 % wide", below(0.2), 123.4, [0.133, 1.0]),
        border("capacity scatters by 1 %", Law { sigma: 0.01, ..exact }, 74.8, [0.611, 0.609]),
        border("capacity scatters by 3 %", Law { sigma: 0.03, ..exact }, 89.5, [0.303, 0.295]),
    ]
}

/// Searches a device whose capacity follows from the seed; returns the device's law, the results
/// for the goals, and the number of trials.
fn search(law: Law, seed: u64) -> (Law, Vec<GoalResult>, usize) {
    // Capacities are spread evenly over the logarithm, from 200,000 to 10 million.
    let at = (seed as f64 * 0.618_033_988_75).fract();
    let law = Law { capacity: 10_f64.powf(5.3 + 1.7 * at), ..law };
    let mut device = Device::new(law, seed);
    let goals = GOALS.into_iter().filter_map(Goal::preset).collect();
    let search = Search::new(goals, Limits::between(9_001, 14_880_000));
    let search = search.unwrap_or_else(|faults| unreachable!("presets are valid: {faults:?}"));
    let Ok(result) = run(search, |trial| Ok::<_, std::convert::Infallible>(device.measure(trial)));
    (law, result.goals, device.trials)
}

/// True if the bounds of a goal contain the load at which half of all trials miss it.
fn covers(law: &Law, found: &GoalResult) -> bool {
    let bounds = (law.truth(found.goal.loss_ratio), found.bounds.lower, found.bounds.upper);
    matches!(bounds, (Some(truth), Some(lower), Some(upper))
        if lower as f64 <= truth && truth <= upper as f64)
}

impl Table<'_> {
    /// Rows about throughput searches.
    pub(super) fn searches(&mut self) {
        let searches = self.experiments.min(SEARCHES);
        for Border { name, law, reference_trials, reference_covered } in borders() {
            for (goal, share) in reference_covered.into_iter().enumerate() {
                let trials = AtomicU64::new(0);
                let covers = |seed| {
                    let (law, goals, count) = search(law, seed);
                    trials.fetch_add(count as u64, Ordering::Relaxed);
                    covers(&law, &goals[goal])
                };
                let goal = GOALS[goal].to_uppercase();
                let question = format!("search at a wide border: {goal} bounds contain the truth");
                // At borders wider than the goal, the search takes more trials than the reference.
                let is_known_limit = law.border > 0.0;
                let bar = (!is_known_limit).then_some(Bar::AtLeast(share));
                let design = "width 0.5 %".to_owned();
                let row = self.add_counted(&question, design, name.into(), bar, searches, &covers);
                if let Some(row) = row {
                    row.trials = Some(trials.into_inner() as f64 / searches as f64);
                    row.reference = Some(Reference { trials: reference_trials, share });
                    row.is_known_limit = is_known_limit;
                }
            }
        }
    }

    /// Rows about bisections.
    pub(super) fn bisections(&mut self) {
        let searches = self.experiments.min(BISECTIONS);
        for (noise, bad) in [
            ("CV 1 %", (0.0, 0.0)),
            ("CV 1 %, 5 % bad starts of 4 %", (0.05, 0.04)),
            ("CV 1 %, 2 % bad starts of 20 %", (0.02, 0.2)),
            ("CV 1 %, 10 % bad starts of 8 %", (0.1, 0.08)),
        ] {
            let history = History {
                candidates: CANDIDATES,
                changes: &[-0.02],
                scatter: 0.01,
                drift: 0.0,
                layout: 0.0,
                broken: 0.0,
                bad,
            };
            let options = Options::new(CANDIDATES);
            let confidence = options.confidence;
            let found = |seed: u64| bisect(history, options.clone(), seed);
            let design = || format!("{CANDIDATES} candidates, -2 %");
            let question = "bisection: names the change";
            let bar = Some(Bar::AtLeast(0.9));
            let names = |seed| found(seed).is_right();
            self.add_counted(question, design(), noise.into(), bar, searches, &names);
            let question = "bisection: right if it names one";
            let bar = Some(Bar::AtLeast(confidence));
            let right = |seed| {
                let found = found(seed);
                let ending = found.verdict.ending;
                let named = matches!(ending, Some(Ending::Found | Ending::Two));
                Rate { hits: u64::from(found.is_right()), of: u64::from(named) }
            };
            self.add_events((question, design(), noise.into()), bar, searches, &right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_an_exact_device_contain_the_truth() {
        let (law, goals, trials) = search(Law::exact(1.0), 1);
        assert!(goals.iter().all(|found| covers(&law, found)) && trials < 40, "{goals:?}");
        let truth = Law { capacity: 2.0 * law.capacity, ..law };
        assert!(!goals.iter().any(|found| covers(&truth, found)));
    }
}
