//! A single figure for a log: the archive's rule, and the steady state.
//!
//! The archive's scripts drop the first 15 and the last 10 lines of a log, take the remaining rates
//! above zero, and print their median with eight significant digits (`bench-lab-ministat.sh`). The
//! other rule detects the traffic itself: from the start of the steady state to the stop of the
//! sender.

use crate::cformat::general;
use crate::steady::{SteadyOptions, steady};
pub use fwdlab_model::plan::Rule;
use fwdlab_model::record::Sample;

/// Minimum number of rates within the archive's lines; with fewer, the scripts print nothing and
/// the run has failed.
pub const FEWEST_RATES: usize = 3;
/// Share of the usual rate below which traffic is beginning or ending.
const TRAFFIC: f64 = 0.5;
/// Significant digits of the scripts' output (`%.8g`).
const DIGITS: usize = 8;

/// Returns the archive's figure of a log in packets per second: the median of the samples that its
/// rule keeps ([`Sample::valid`]), rounded as its scripts print it. With `upper` the upper of two
/// middle values replaces their mean, as in ministat before 2016. `None` for a failed run.
pub fn netbenches_pps(samples: &[Sample], upper: bool) -> Option<f64> {
    let kept = samples.iter().filter(|sample| sample.valid);
    let mut rates: Vec<u64> = kept.filter_map(printed_pps).filter(|rate| *rate > 0).collect();
    if rates.len() < FEWEST_RATES {
        return None;
    }
    rates.sort_unstable();
    let (middle, is_even) = (rates.len() / 2, rates.len().is_multiple_of(2));
    let median = match is_even && !upper {
        true => (rates[middle - 1] as f64 + rates[middle] as f64) / 2.0,
        false => rates[middle] as f64,
    };
    Some(as_printed(median))
}

/// Returns the mean rate of a log's steady state in packets per second: without the samples before
/// and after the traffic (below half the median), and without the warm-up, if any. `None` without
/// traffic.
pub fn steady_pps(samples: &[Sample]) -> Option<f64> {
    let samples = steady_samples(samples);
    let packets: u64 = samples.iter().map(|sample| sample.forwarded).sum();
    let duration_ns: u64 = samples.iter().map(|sample| sample.duration_ns).sum();
    (packets > 0 && duration_ns > 0).then(|| packets as f64 * 1e9 / duration_ns as f64)
}

/// Returns the samples of a log with traffic, after the warm-up if there is one that ends.
pub fn steady_samples(samples: &[Sample]) -> &[Sample] {
    let traffic = traffic(samples);
    let rates: Vec<f64> = traffic.iter().map(rate_pps).collect();
    match steady(&rates, SteadyOptions::default()) {
        Some(found) if found.reached => &traffic[found.from..],
        _ => traffic,
    }
}

/// Returns the samples from the first to the last one with at least half the usual rate: the first
/// and the last second of a blast are not complete seconds.
pub fn traffic(samples: &[Sample]) -> &[Sample] {
    let mut rates: Vec<f64> = samples.iter().map(rate_pps).filter(|rate| *rate > 0.0).collect();
    rates.sort_by(f64::total_cmp);
    let Some(usual) = rates.get(rates.len() / 2) else { return &[] };
    let flows = |sample: &Sample| rate_pps(sample) >= TRAFFIC * usual;
    let first = samples.iter().position(flows).unwrap_or(0);
    let last = samples.iter().rposition(flows).map_or(first, |last| last + 1);
    &samples[first..last]
}

/// Rounds a figure as `%.8g` prints it.
pub fn as_printed(value: f64) -> f64 {
    printed(value).parse().unwrap_or(value)
}

/// Formats a figure as `%.8g`.
pub fn printed(value: f64) -> String {
    general(value, DIGITS)
}

/// Returns packets over microseconds, rounded half up, as pkt-gen computes its output.
fn printed_pps(sample: &Sample) -> Option<u64> {
    let us = u128::from(sample.duration_ns / 1000);
    let rate = (u128::from(sample.forwarded) * 1_000_000 + us / 2).checked_div(us)?;
    u64::try_from(rate).ok()
}

fn rate_pps(sample: &Sample) -> f64 {
    match sample.duration_ns {
        0 => 0.0,
        ns => sample.forwarded as f64 * 1e9 / ns as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(rates: &[u64], valid: std::ops::Range<usize>) -> Vec<Sample> {
        let sample = |(i, &forwarded): (usize, &u64)| Sample {
            at_ns: i as u64 * 1_000_000_000,
            duration_ns: 1_000_000_000,
            forwarded,
            valid: valid.contains(&i),
            ..Sample::default()
        };
        rates.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn archive_median_matches_both_generations() {
        let log = samples(&[9, 1, 2, 3, 5, 0, 9], 1..6);
        assert_eq!(netbenches_pps(&log, false), Some(2.5));
        assert_eq!(netbenches_pps(&log, true), Some(3.0));
        assert_eq!(netbenches_pps(&samples(&[1, 2, 3, 4], 0..3), true), Some(2.0));
    }

    #[test]
    fn figures_have_eight_digits_as_in_the_scripts() {
        let log = samples(&[123_456_789, 123_456_789, 123_456_789], 0..3);
        assert_eq!(netbenches_pps(&log, false), Some(123_456_790.0));
        assert_eq!(printed(2_460_830.75), "2460830.8");
    }

    #[test]
    fn fewer_than_three_rates_are_a_failed_run() {
        assert_eq!(netbenches_pps(&samples(&[5, 5, 0, 0], 0..4), false), None);
        assert_eq!(netbenches_pps(&[], false), None);
        assert_eq!(steady_pps(&samples(&[0, 0, 0], 0..3)), None);
    }

    #[test]
    fn rates_are_rounded_as_in_pkt_gen() {
        let mut log = samples(&[1_200_222, 1_193_211, 1_202_006], 0..3);
        for (sample, us) in log.iter_mut().zip([1_000_925_u64, 1_001_963, 1_001_999]) {
            sample.duration_ns = us * 1000;
        }
        let printed: Vec<u64> = log.iter().filter_map(printed_pps).collect();
        assert_eq!(printed, [1_199_113, 1_190_873, 1_199_608]);
    }

    #[test]
    fn steady_state_excludes_start_and_end() {
        let mut rates = vec![0, 0, 300];
        rates.extend(std::iter::repeat_n(1000, 30));
        rates.push(120);
        assert_eq!(steady_pps(&samples(&rates, 0..0)), Some(1000.0));
    }
}
