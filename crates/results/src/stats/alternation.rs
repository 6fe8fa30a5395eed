//! Levels switched live within one stream of traffic.
//!
//! A stream is a row of slices, the variants in mirrored order (A B B A; with
//! three variants A B C C B A). Each half of such a cycle holds every variant
//! once, within a fraction of a second, so that its log ratio is free of
//! whatever moves slower than that; the mirrored halves cancel a steady drift.
//!
//! - A slice's figure is the upper quartile of its raw samples' rates: time
//!   stolen from the DUT only ever lowers samples.
//! - A stream's effect is the median of its halves' log ratios.
//! - From three streams on, the stream is the unit: a t interval over stream
//!   effects, which holds across starts.
//! - One or two streams speak for their starts only. The standard error of the
//!   median is then the deviation of medians of resampled pairs, resampled in
//!   blocks of neighbours because neighbours resemble each other (circular
//!   block bootstrap; Politis and Romano, 1992). The block length follows from
//!   the pairs' own lag-1 correlation r: m^(1/3) (2r / (1 - r^2))^(2/3)
//!   (Carlstein, 1986, Annals of Statistics 14), and the degrees of freedom
//!   are the number of whole blocks less one.
//!
//! Left out: settings that need a restart, which can't be alternated.

use super::blocked::mean_estimate;
use super::comparison::{
    Comparison, Criteria, Layout, LogEstimate, Method, Scope, Sizes, Unanswerable, log_rate,
};
use super::diagnostics::lag1_autocorrelation;
use super::random::SplitMix64;
use super::summary::{mean, median, quantile, variance};
use fwdlab_model::record::Sample;
use std::collections::{BTreeMap, BTreeSet};

/// Quantile of a slice's samples that stands for the slice.
const SLICE_QUANTILE: f64 = 0.75;
/// Pairs that an interval within a stream needs.
const MIN_PAIRS: usize = 6;
/// Streams from which on they are the unit.
pub const MIN_STREAMS: usize = 3;
/// Resamples of the bootstrap: its own error is then 2 % of the standard error.
const RESAMPLES: usize = 1000;

/// One slice of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Number in the stream, from 0; says which half of which cycle it is.
    pub number: u32,
    /// Variant in force.
    pub variant: usize,
    /// Rates of its raw samples in packets per second, those of the switch left out.
    pub rates_pps: Vec<f64>,
}

/// The slices of a stream from its raw samples; invalid ones are left out.
pub fn slices_of(samples: &[Sample]) -> Vec<Slice> {
    let mut slices: BTreeMap<u32, Slice> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.valid && sample.duration_ns > 0) {
        let number = sample.slice;
        let slice = slices.entry(number).or_insert_with(|| Slice {
            number,
            variant: sample.variant,
            rates_pps: Vec::new(),
        });
        slice.rates_pps.push(sample.forwarded as f64 * 1e9 / sample.duration_ns as f64);
    }
    slices.into_values().collect()
}

/// Compares two variants over the streams in which they alternated: across
/// starts from three streams on, else for those starts only.
///
/// # Errors
/// No stream, fewer than six pairs of slices in one, or a variant that
/// forwarded nothing.
pub fn compare_alternation(
    streams: &[Vec<Slice>],
    baseline: usize,
    candidate: usize,
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let pairs: Vec<Pairs> = streams
        .iter()
        .map(|stream| Pairs::of(stream, baseline, candidate))
        .collect::<Result<_, _>>()?;
    let within: Vec<LogEstimate> =
        pairs.iter().map(|pairs| estimate_within(&pairs.log_ratios)).collect();
    let counted: usize = pairs.iter().map(|pairs| pairs.log_ratios.len()).sum();
    let left_out = pairs.iter().map(|pairs| pairs.left_out).sum();

    let (estimate, blocks, layout, scope) = match within[..] {
        [] => return Err(Unanswerable::TooFew { what: "streams", have: 0, need: 1 }),
        [one] => (one, counted, Layout::Pairs, Scope::ThisStart),
        [one, two] => {
            let both = LogEstimate {
                effect: (one.effect + two.effect) / 2.0,
                se: one.se.hypot(two.se) / 2.0,
                df: one.df.min(two.df),
            };
            (both, counted, Layout::Pairs, Scope::ThisStart)
        }
        _ => {
            debug_assert!(within.len() >= MIN_STREAMS);
            let effects: Vec<f64> = within.iter().map(|estimate| estimate.effect).collect();
            (mean_estimate(&effects), effects.len(), Layout::Streams, Scope::AcrossStarts)
        }
    };
    let sizes = Sizes { n_a: counted, n_b: counted, blocks, left_out, layout };
    Comparison::from_estimate(estimate, criteria, sizes, Method::Alternation, scope)
}

/// Each stream's effect, a natural log ratio: what the interval over streams is
/// made of.
///
/// # Errors
/// As [`compare_alternation`], but no stream is no error.
pub fn stream_effects(
    streams: &[Vec<Slice>],
    baseline: usize,
    candidate: usize,
) -> Result<Vec<f64>, Unanswerable> {
    let effect = |stream: &Vec<Slice>| {
        let pairs = Pairs::of(stream, baseline, candidate)?;
        Ok(median(&pairs.log_ratios).unwrap_or(f64::NAN))
    };
    streams.iter().map(effect).collect()
}

/// The halves of a stream's cycles that hold both variants.
struct Pairs {
    /// Candidate over baseline, natural logarithms, in order.
    log_ratios: Vec<f64>,
    /// Slices of the two variants that don't count.
    left_out: usize,
}

impl Pairs {
    fn of(stream: &[Slice], baseline: usize, candidate: usize) -> Result<Pairs, Unanswerable> {
        let variants: BTreeSet<usize> = stream.iter().map(|slice| slice.variant).collect();
        let per_half = variants.len().max(1) as u32;
        // Whole cycles only: an odd half would tilt the median under drift.
        let slices = stream.iter().map(|slice| slice.number + 1).max().unwrap_or(0);
        let halves = slices.div_ceil(per_half) / 2 * 2;

        let figures_of = |variant: usize| -> BTreeMap<u32, f64> {
            stream
                .iter()
                .filter(|slice| slice.variant == variant)
                .filter_map(|slice| {
                    let figure = quantile(&slice.rates_pps, SLICE_QUANTILE)?;
                    Some((slice.number / per_half, figure))
                })
                .collect()
        };
        let (a, b) = (figures_of(baseline), figures_of(candidate));
        for figures in [&a, &b] {
            // A slice may have lost its CPU altogether; a variant must not.
            let idle = figures.values().filter(|&&figure| figure <= 0.0).count();
            if 2 * idle > figures.len() {
                return Err(Unanswerable::NotPositive { rate: 0.0 });
            }
        }
        let mut log_ratios = Vec::new();
        for half in 0..halves {
            if let (Some(&in_a), Some(&in_b)) = (a.get(&half), b.get(&half))
                && in_a > 0.0
                && in_b > 0.0
            {
                log_ratios.push(log_rate(in_b)? - log_rate(in_a)?);
            }
        }
        let have = log_ratios.len();
        if have < MIN_PAIRS {
            let what = "pairs of neighbouring slices in each stream";
            return Err(Unanswerable::TooFew { what, have, need: MIN_PAIRS });
        }
        let offered = stream
            .iter()
            .filter(|slice| slice.variant == baseline || slice.variant == candidate)
            .count();
        Ok(Pairs { left_out: offered - 2 * have, log_ratios })
    }
}

/// Median of a stream's pairs with the standard error described above.
fn estimate_within(pairs: &[f64]) -> LogEstimate {
    let m = pairs.len();
    let r = lag1_autocorrelation(pairs).unwrap_or(0.0).clamp(0.0, 0.9);
    let length = (m as f64).cbrt() * (2.0 * r / (1.0 - r * r)).powf(2.0 / 3.0);
    let length = (length.ceil() as usize).clamp(1, m / 3);
    let mut random = SplitMix64::new(m as u64);
    let medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut resample = Vec::with_capacity(m + length);
            while resample.len() < m {
                let start = random.below(m);
                resample.extend((0..length).map(|i| pairs[(start + i) % m]));
            }
            resample.truncate(m);
            median(&resample).unwrap_or(f64::NAN)
        })
        .collect();
    let se = variance(&medians, mean(&medians)).sqrt();
    LogEstimate { effect: median(pairs).unwrap_or(f64::NAN), se, df: (m / length) as f64 - 1.0 }
}
