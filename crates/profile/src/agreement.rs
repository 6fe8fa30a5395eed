//! Checks whether a profile run is representative of the measured runs.
//!
//! A profile is one start of the device, and a bad start can cost more per packet than any measured
//! run; its stacks then do not explain the measurement. The comparable quantity is the rate: the
//! profile run's own mean rate and the mean rates of the measured runs of its variant, without any
//! correction, because samples of a profile are not corrected either.

use fwdlab_model::record::{ProfileRecord, RunRecord};
use fwdlab_model::units::format_pps;
use fwdlab_stats::Summary;
use serde::Serialize;

/// Number of measured runs below which their range is not informative.
const RUNS: usize = 3;
/// Share of the rate that the sampler itself may cost. In a virtual machine a sample takes 21 us,
/// so 1999 of them per second take 4 %.
pub const SAMPLER: f64 = 0.05;

/// Rate of a profile run compared with the measured runs, packets per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Rate of the profile run.
    pub rate_pps: f64,
    /// Number of measured runs.
    pub runs: usize,
    /// Number of measured runs that were slower.
    pub slower: usize,
    /// Rate of the slowest measured run.
    pub slowest_pps: f64,
    /// Rate of the fastest measured run.
    pub fastest_pps: f64,
}

/// Compares a profile run with the mean rates of the measured runs of its variant. `None` if either
/// has no usable rate.
pub fn agreement(record: &ProfileRecord, rates_pps: &[f64]) -> Option<Agreement> {
    if record.rate.is_some() {
        // Runs at a set rate are not comparable with measured runs.
        return None;
    }
    let rate_pps = rate_of_profile(record)?;
    let summary = Summary::of(rates_pps)?;
    if rates_pps.len() < RUNS {
        return None;
    }
    Some(Agreement {
        rate_pps,
        runs: rates_pps.len(),
        slower: rates_pps.iter().filter(|&&rate| rate < rate_pps).count(),
        slowest_pps: summary.min,
        fastest_pps: summary.max,
    })
}

impl Agreement {
    /// Returns true if the rate is within the range of the measured runs, allowing for the cost of
    /// the sampler.
    pub fn holds(&self) -> bool {
        let slowest_pps = self.slowest_pps * (1.0 - SAMPLER);
        (slowest_pps..=self.fastest_pps).contains(&self.rate_pps)
    }

    /// Relative distance of the rate from the nearest measured run; 0 within the range.
    pub fn excess(&self) -> f64 {
        let above = self.rate_pps / self.fastest_pps - 1.0;
        let below = self.slowest_pps / self.rate_pps - 1.0;
        above.max(below).max(0.0)
    }

    /// Position of the rate, in words.
    pub fn sentence(&self) -> String {
        let runs = self.runs;
        let place = match self.slower {
            0 if self.holds() => format!("as the slowest of the {runs} measured runs"),
            0 => format!("slower than any of the {runs} measured runs"),
            all if all == runs => format!("faster than any of the {runs} measured runs"),
            slower => format!("faster than {slower} of the {runs} measured runs"),
        };
        format!(
            "ran at {}, {place} ({} to {})",
            format_pps(self.rate_pps),
            format_pps(self.slowest_pps),
            format_pps(self.fastest_pps)
        )
    }
}

/// Mean rate of a profile run over its windows, packets per second. `None` if nothing was
/// forwarded.
fn rate_of_profile(record: &ProfileRecord) -> Option<f64> {
    let packets: u64 = record.windows.iter().map(|window| window.forwarded).sum();
    let spans = record.windows.iter().map(|window| window.to_ns.saturating_sub(window.from_ns));
    rate(packets, spans.sum())
}

/// Uncorrected mean rates of the runs of a variant, packets per second. In an alternation: of the
/// variant's slices.
pub fn measured_rates(runs: &[RunRecord], variant: usize) -> Vec<f64> {
    let of_run = |run: &RunRecord| {
        let trial = &run.trial;
        if run.variants == [variant] {
            return rate(trial.window.forwarded, trial.window_ns);
        }
        let samples = || trial.samples.iter().filter(|s| s.valid && s.variant == variant);
        rate(samples().map(|s| s.forwarded).sum(), samples().map(|s| s.duration_ns).sum())
    };
    runs.iter().filter_map(of_run).collect()
}

fn rate(packets: u64, time_ns: u64) -> Option<f64> {
    (packets > 0 && time_ns > 0).then(|| packets as f64 * 1e9 / time_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::{Counts, ProfileWindow, Sample, TrialRecord};
    use fwdlab_model::settings::Rate;

    fn profile(forwarded: u64) -> ProfileRecord {
        let window = |n: u64| ProfileWindow {
            from_ns: n * 500_000_000,
            to_ns: (n + 1) * 500_000_000,
            offered: 2 * forwarded,
            forwarded: forwarded / 2,
        };
        ProfileRecord { windows: vec![window(0), window(1)], ..ProfileRecord::default() }
    }

    #[test]
    fn agreement_reports_position_in_measured_range() {
        let rates = [1.3e6, 1.2e6, 1.4e6, 1.25e6];
        for (forwarded, holds, words) in [
            (1_300_002, true, "faster than 3 of the 4 measured runs (1.20 Mpps to 1.40 Mpps)"),
            (1_190_000, true, "ran at 1.19 Mpps, as the slowest of the 4 measured runs"),
            (1_130_000, false, "slower than any of the 4 measured runs"),
            (1_400_002, false, "faster than any of the 4 measured runs"),
        ] {
            let found = agreement(&profile(forwarded), &rates).expect("both ran");
            assert_eq!(found.holds(), holds, "{found:?}");
            assert!(found.sentence().contains(words), "{}", found.sentence());
        }
        let stated = ProfileRecord { rate: Some(Rate::Pps(1e6)), ..profile(1_000_000) };
        assert_eq!(agreement(&stated, &rates), None, "it was not to run as they did");
        // Two runs have no usable range, and a profile without packets has no rate.
        assert_eq!(agreement(&profile(1_300_000), &rates[..2]), None);
        assert_eq!(agreement(&ProfileRecord::default(), &rates), None);
    }

    #[test]
    fn measured_rates_selects_runs_and_slices_of_the_variant() {
        let run = |variants: Vec<usize>, samples: Vec<Sample>| RunRecord {
            variants,
            trial: TrialRecord {
                window_ns: 2_000_000_000,
                window: Counts { offered: 9000, forwarded: 3000 },
                samples,
                ..TrialRecord::default()
            },
            ..RunRecord::default()
        };
        let sample = |variant, forwarded, valid| Sample {
            duration_ns: 100_000_000,
            forwarded,
            variant,
            valid,
            ..Sample::default()
        };
        let stream = vec![
            sample(0, 100, true),
            sample(1, 70, true),
            sample(1, 1, false),
            sample(1, 90, true),
        ];
        let runs = [run(vec![0], vec![]), run(vec![1], vec![]), run(vec![0, 1], stream)];
        assert_eq!(measured_rates(&runs, 0), [1500.0, 1000.0]);
        assert_eq!(measured_rates(&runs, 1), [1500.0, 800.0]);
        assert_eq!(measured_rates(&runs, 2), [0.0; 0]);
    }
}
