//! Reports of trials for observers of a run.

use fwdlab_model::record::MethodTrial;
use fwdlab_model::units::format_pps;
use fwdlab_search::{Bounds, Forecast, Search};

/// Number of trials from one forecast to the next: a forecast takes some CPU time.
const FORECASTS: u32 = 5;

/// Report of a finished trial of a method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialReport {
    /// Number of the trial in its run, from 1.
    pub number: u32,
    /// Load of the trial, e.g. `812 kpps`.
    pub load: String,
    /// Result of the trial, e.g. `0.312 % lost`.
    pub result: String,
    /// Length of the window and packets offered, e.g. `1.00 s: 812000 offered`.
    pub extent: String,
    /// Reason why the trial does not count; `None` if it is valid.
    pub invalid: Option<String>,
    /// Invalid trials of the run so far.
    pub invalid_trials: u32,
    /// Bounds of each goal of a search so far, by the goal's name.
    pub bounds: Vec<(String, Bounds)>,
    /// Traffic of a search so far, and expected from here on; `None` for most trials.
    pub forecast: Option<Forecast>,
}

impl TrialReport {
    /// Returns the report of a valid trial.
    pub fn new(number: u32, trial: &MethodTrial) -> TrialReport {
        let load = match (trial.burst, trial.before, &trial.flood) {
            (_, _, Some(flood)) if flood.load == 0 => {
                format!("{} without a flood", format_pps(trial.load as f64))
            }
            (_, _, Some(flood)) => {
                let (load, flood) = (format_pps(trial.load as f64), format_pps(flood.load as f64));
                format!("{load} during a flood of {flood}")
            }
            (Some(frames), ..) => format!("a burst of {frames} frames"),
            (None, Some(before), _) => {
                format!("{}, then {}", format_pps(before as f64), format_pps(trial.load as f64))
            }
            (None, None, None) => format_pps(trial.load as f64),
        };
        let lost = trial.offered.saturating_sub(trial.forwarded);
        let share = 100.0 * lost as f64 / trial.offered.max(1) as f64;
        let seconds = trial.window_ns as f64 / 1e9;
        TrialReport {
            number,
            load,
            result: format!("{share:.3} % lost"),
            extent: format!("{seconds:.2} s: {} offered", trial.offered),
            ..TrialReport::default()
        }
    }

    /// Adds the bounds that a search has found so far and, to some reports, a forecast of its rest.
    #[must_use]
    pub fn with_bounds(mut self, search: &Search) -> TrialReport {
        self.bounds = search.bounds().map(|(goal, bounds)| (goal.name.clone(), bounds)).collect();
        let is_due = self.number.is_multiple_of(FORECASTS);
        self.forecast = if is_due { search.forecast() } else { None };
        self
    }

    /// Describes the trial in full, in one line.
    pub fn line(&self) -> String {
        let TrialReport { number, load, extent, result, invalid, .. } = self;
        let invalid = invalid.as_ref().map_or(String::new(), |why| format!(", invalid: {why}"));
        format!("trial {number}  {load}, {extent}, {result}{invalid}")
    }

    /// Describes the progress of the run's trials in one line: this trial, the bounds, the invalid
    /// trials.
    pub fn progress(&self) -> String {
        let TrialReport { number, load, result, invalid, .. } = self;
        let mut line = match invalid {
            Some(why) => format!("trial {number}  {load}: invalid, {why}"),
            None => format!("trial {number}  {load}: {result}"),
        };
        for (goal, bounds) in &self.bounds {
            let [lower, upper] =
                [bounds.lower, bounds.upper].map(|load| load.map(|load| format_pps(load as f64)));
            match (lower, upper) {
                (Some(lower), Some(upper)) => line += &format!("  {goal} {lower} to {upper}"),
                (Some(lower), None) => line += &format!("  {goal} from {lower}"),
                (None, Some(upper)) => line += &format!("  {goal} below {upper}"),
                (None, None) => {}
            }
        }
        match self.invalid_trials {
            0 => line,
            invalid => format!("{line}  {invalid} of {number} invalid"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_load_result_bounds_and_invalid_trials() {
        let trial = MethodTrial {
            load: 812_000,
            window_ns: 1_000_000_000,
            offered: 812_000,
            forwarded: 810_376,
            ..MethodTrial::default()
        };
        let valid = TrialReport::new(57, &trial);
        assert_eq!(valid.line(), "trial 57  812 kpps, 1.00 s: 812000 offered, 0.200 % lost");
        assert_eq!(valid.progress(), "trial 57  812 kpps: 0.200 % lost");
        let bounds = |lower, upper| Bounds { lower, upper, inverted: None };
        let bounds = vec![
            ("ndr".to_owned(), bounds(Some(790_000), Some(812_000))),
            ("pdr".to_owned(), bounds(Some(812_000), None)),
        ];
        let invalid = Some("others had the device's CPU for 12.1 ms within one sample".to_owned());
        let report = TrialReport { invalid, invalid_trials: 12, bounds, ..valid };
        assert_eq!(
            report.progress(),
            "trial 57  812 kpps: invalid, others had the device's CPU for 12.1 ms within one sample  \
             ndr 790 kpps to 812 kpps  pdr from 812 kpps  12 of 57 invalid"
        );
        assert!(report.line().ends_with(
            "0.200 % lost, invalid: others had the device's CPU for \
                                         12.1 ms within one sample"
        ));
    }
}
