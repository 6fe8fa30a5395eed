//! Estimate of the maximum forwarding rate, from overloaded trials. It only selects the next loads:
//! a wrong estimate costs trials.

use crate::normal;
use crate::trial::Measured;
use crate::trials::Trials;

/// Share of the width above which a loss means that the load is too high. A smaller loss shows that
/// packets are lost, not how many more the device could forward.
const EXPLAINED: f64 = 0.1;
/// Range around the lowest overloaded load within which other trials count equally, as shares.
const NEAR: (f64, f64) = (0.97, 1.05);

/// Estimate from single trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Capacity in frames per second.
    pub(crate) rate: f64,
    /// Its standard error as a share; `None` for a single sample.
    pub(crate) error: Option<f64>,
    /// The highest load at which most trials were not overloaded.
    pub(crate) passed: Option<u64>,
    /// The next higher load of a trial: from it on, most trials were overloaded.
    pub(crate) refused: u64,
    /// Number of trials near the onset of overload.
    pub(crate) near: usize,
    /// True if the passed load exceeds the forwarding rate at the refused one: the rate is a guess
    /// between both.
    pub(crate) contradicted: bool,
}

/// Returns the capacity from the trials around the onset of overload, and from those above that
/// agree with them. A trial that was not overloaded only shows that its load was not too high:
/// samples are taken as normal, some of them censored, and the mean is the most likely one.
pub(crate) fn capacity(trials: &Trials, width: f64) -> Option<Estimate> {
    let is_over = |measured: &Measured| measured.output.loss_ratio >= width * EXPLAINED;
    let mostly = |at: &[Measured]| 2 * at.iter().filter(|m| is_over(m)).count() >= at.len();
    let refused = trials.loads().rev().take_while(|(_, at)| mostly(at)).last()?.0;
    let passed = trials.loads().rev().map(|(load, _)| load).find(|load| *load < refused);
    let near = (refused as f64 * NEAR.0)..=(refused as f64 * NEAR.1);
    let is_near = |measured: &&Measured| near.contains(&(measured.trial.load as f64));
    let (mut over, mut free): (Vec<&Measured>, Vec<&Measured>) =
        trials.all().iter().filter(is_near).partition(|measured| is_over(measured));
    // Short trials may benefit from a buffer: the longest ones decide.
    let longest_ns = over.iter().map(|measured| measured.trial.duration_ns).max().unwrap_or(0);
    let is_long = |measured: &&Measured| 2 * measured.trial.duration_ns >= longest_ns;
    over.retain(is_long);
    free.retain(is_long);
    let mut samples: Vec<f64> = over.iter().map(|measured| measured.forwarding_rate()).collect();
    let middle = median(&mut samples);
    if middle <= 0.0 {
        let near = over.len() + free.len();
        return Some(Estimate {
            rate: 0.0,
            error: None,
            passed,
            refused,
            near,
            contradicted: false,
        });
    }
    let mut off: Vec<f64> = samples.iter().map(|sample| (sample / middle - 1.0).abs()).collect();
    // Beyond this a sample is not noise: the device stalled, or forwards less the more it receives.
    let far = (7.0 * median(&mut off)).max(2.0 * width);
    let others = trials.all().iter().filter(|m| !is_near(m) && is_over(m) && is_long(m));
    samples.extend(others.map(Measured::forwarding_rate));
    samples.retain(|sample| (sample / middle - 1.0).abs() <= far);
    samples.iter_mut().for_each(|sample| *sample /= middle);
    let least: Vec<f64> = free.iter().map(|m| m.trial.load as f64 / middle).collect();
    let (mean, deviation) = likeliest(&samples, &least, width / 50.0);
    let count = samples.len() as f64;
    let error = (samples.len() > 1).then_some(deviation / count.sqrt());
    let (rate, near) = (mean * middle, over.len() + free.len());
    let reach = rate * (1.0 + width.max(3.0 * deviation));
    let guess = passed.map(|load| load as f64).filter(|load| *load > reach);
    let contradicted = guess.is_some();
    let rate = guess.map_or(rate, |load| (load + refused as f64) / 2.0);
    Some(Estimate { rate, error, passed, refused, near, contradicted })
}

/// Returns mean and deviation of a normal distribution from samples and lower limits, by
/// expectation maximisation.
fn likeliest(samples: &[f64], least: &[f64], deviation_min: f64) -> (f64, f64) {
    let count = samples.len() as f64;
    let mut mean = samples.iter().sum::<f64>() / count;
    let square = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / count;
    let mut deviation = square.sqrt().max(deviation_min);
    for _ in 0..if least.is_empty() { 0 } else { 15 } {
        let (mut sum, mut square) = (samples.iter().sum::<f64>(), 0.0);
        let mut expected = Vec::with_capacity(least.len());
        for value in least {
            let z = (value - mean) / deviation;
            let hazard = normal::hazard(z);
            let rest = (1.0 + z * hazard - hazard * hazard).clamp(0.0, 1.0);
            expected.push(mean + deviation * hazard);
            square += deviation * deviation * rest;
        }
        sum += expected.iter().sum::<f64>();
        let all = count + least.len() as f64;
        mean = sum / all;
        square += samples.iter().chain(&expected).map(|v| (v - mean).powi(2)).sum::<f64>();
        deviation = (square / all).sqrt().max(deviation_min);
    }
    (mean, deviation)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}
