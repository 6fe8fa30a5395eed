//! Levels switched live within one stream of traffic.
//!
//! A stream is a sequence of slices, with the variants in mirrored order (A B B A; with three
//! variants A B C C B A). Each half of such a cycle contains every variant once, within a fraction
//! of a second, so slower changes cancel in its log ratio; the mirrored halves cancel a steady
//! drift.
//!
//! - A slice's figure is its mean rate over the time that the device had ([`super::stolen_time`]).
//!   Its capacity is the upper quartile of its samples: a second comparison, which does not decide.
//! - A stream's effect is the logarithm of the ratio of the two variants' mean rates over those
//!   halves. The effect on capacity is the median of the halves' log ratios: a device that
//!   occasionally stalls affects the former and not the latter.
//! - From three streams on, the stream is the unit: a t interval over stream effects, which is
//!   valid across starts.
//! - The result of one or two streams applies to their starts only. The standard error of the
//!   effect is then the deviation of effects of resampled pairs, resampled in blocks of neighbours
//!   because neighbours are similar (circular block bootstrap; Politis and Romano, 1992). The block
//!   length follows from the pairs' own lag-1 correlation r: m^(1/3) (2r / (1 - r^2))^(2/3)
//!   (Carlstein, 1986, Annals of Statistics 14), and the degrees of freedom are the number of whole
//!   blocks minus one.
//!
//! Out of scope: settings that require a restart, which cannot be alternated.

use crate::blocked::mean_estimate;
use crate::comparison::{
    Capacity, Comparison, Criteria, Layout, LogEstimate, Method, Scope, Sizes, Unanswerable,
};
use crate::diagnostics::lag1_autocorrelation;
use crate::random::SplitMix64;
use crate::stolen_time::{Roles, StolenTime};
use crate::summary::{mean, median, quantile, variance};
use fwdlab_model::record::Sample;
use std::collections::{BTreeMap, BTreeSet};

/// Quantile of a slice's samples that defines its capacity.
const CAPACITY_QUANTILE: f64 = 0.75;
/// Minimum number of pairs for an interval within a stream.
const MIN_PAIRS: usize = 6;
/// Number of streams from which on the stream is the unit.
pub const MIN_STREAMS: usize = 3;
/// Resamples of the bootstrap: its own error is then 2 % of the standard error.
const RESAMPLES: usize = 1000;

/// One slice of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Number in the stream, from 0; determines the cycle and its half.
    pub number: u32,
    /// Current variant.
    pub variant: usize,
    /// Mean rate of its samples over the time that the device had, without those of the switch, in
    /// packets per second.
    pub pps: f64,
    /// Capacity: the upper quartile of its samples' rates.
    pub capacity_pps: f64,
}

/// Returns the slices of a stream from its raw samples, without invalid ones and without slices in
/// which the device had hardly any time. At a paced rate (packets per second) a slice's figure is
/// the share of its packets that were forwarded, at that rate.
pub fn slices_of(samples: &[Sample], roles: Roles, intended_pps: Option<f64>) -> Vec<Slice> {
    let mut slices: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.valid && sample.duration_ns > 0) {
        slices.entry(sample.slice).or_default().push(sample);
    }
    let slice = |(number, samples): (u32, Vec<&Sample>)| {
        let taken = StolenTime::of(samples.iter().copied(), roles);
        let packets: u64 = samples.iter().map(|sample| sample.forwarded).sum();
        let offered: u64 = samples.iter().map(|sample| sample.offered).sum();
        let rate = |sample: &&Sample| sample.forwarded as f64 * 1e9 / sample.duration_ns as f64;
        let rates: Vec<f64> = samples.iter().map(rate).collect();
        Some(Slice {
            number,
            variant: samples.first()?.variant,
            pps: match intended_pps {
                Some(_) if offered == 0 => return None,
                Some(intended) => intended * packets as f64 / offered as f64,
                None => taken.rate_pps(packets, taken.duration_ns)?,
            },
            capacity_pps: quantile(&rates, CAPACITY_QUANTILE)?,
        })
    };
    slices.into_iter().filter_map(slice).collect()
}

/// Compares two variants over the streams in which they alternated: across starts from three
/// streams on, otherwise for those starts only.
///
/// # Errors
/// No stream, fewer than six pairs of slices in one, or a variant that forwarded nothing.
pub fn compare_alternation(
    streams: &[Vec<Slice>],
    baseline: usize,
    candidate: usize,
    criteria: Criteria,
) -> Result<Comparison, Unanswerable> {
    let of = |figure| compare_by(streams, baseline, candidate, criteria, figure);
    let capacity = of(StreamFigure::Capacity).ok().as_ref().map(Capacity::of);
    Ok(Comparison { capacity, ..of(StreamFigure::Rate)? })
}

/// Compares one figure of the slices.
fn compare_by(
    streams: &[Vec<Slice>],
    baseline: usize,
    candidate: usize,
    criteria: Criteria,
    figure: StreamFigure,
) -> Result<Comparison, Unanswerable> {
    let pairs: Vec<Pairs> = streams
        .iter()
        .map(|stream| Pairs::of(stream, baseline, candidate, figure))
        .collect::<Result<_, _>>()?;
    let within: Vec<LogEstimate> =
        pairs.iter().map(|pairs| estimate_within(&pairs.of_halves, figure)).collect();
    let counted: usize = pairs.iter().map(|pairs| pairs.of_halves.len()).sum();
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

/// Returns each stream's effect, a natural log ratio: the values behind the interval over streams.
///
/// # Errors
/// Same as [`compare_alternation`], except that no stream is not an error.
pub fn stream_effects(
    streams: &[Vec<Slice>],
    baseline: usize,
    candidate: usize,
) -> Result<Vec<f64>, Unanswerable> {
    let effect = |stream: &Vec<Slice>| {
        let pairs = Pairs::of(stream, baseline, candidate, StreamFigure::Rate)?;
        Ok(StreamFigure::Rate.effect(&pairs.of_halves))
    };
    streams.iter().map(effect).collect()
}

/// Figure of a stream's slices that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamFigure {
    /// Rates: the device's actual performance.
    Rate,
    /// Capacities: the device's possible performance.
    Capacity,
}

impl StreamFigure {
    fn of(self, slice: &Slice) -> f64 {
        match self {
            StreamFigure::Rate => slice.pps,
            StreamFigure::Capacity => slice.capacity_pps,
        }
    }

    /// Returns the natural log ratio of candidate to baseline over pairs (baseline, candidate).
    fn effect(self, pairs: &[(f64, f64)]) -> f64 {
        match self {
            StreamFigure::Rate => {
                let (a, b) =
                    pairs.iter().fold((0.0, 0.0), |(a, b), (in_a, in_b)| (a + in_a, b + in_b));
                (b / a).ln()
            }
            StreamFigure::Capacity => {
                let ratios: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
                median(&ratios).unwrap_or(f64::NAN)
            }
        }
    }
}

/// Halves of a stream's cycles that contain both variants.
struct Pairs {
    /// Figures of baseline and candidate, in order.
    of_halves: Vec<(f64, f64)>,
    /// Slices of the two variants that are not used.
    left_out: usize,
}

impl Pairs {
    fn of(
        stream: &[Slice],
        baseline: usize,
        candidate: usize,
        figure: StreamFigure,
    ) -> Result<Pairs, Unanswerable> {
        let variants: BTreeSet<usize> = stream.iter().map(|slice| slice.variant).collect();
        let per_half = variants.len().max(1) as u32;
        // Only whole cycles: an odd half would bias the effect under drift.
        let slices = stream.iter().map(|slice| slice.number + 1).max().unwrap_or(0);
        let halves = slices.div_ceil(per_half) / 2 * 2;

        let figures_of = |variant: usize| -> BTreeMap<u32, f64> {
            stream
                .iter()
                .filter(|slice| slice.variant == variant)
                .map(|slice| (slice.number / per_half, figure.of(slice)))
                .collect()
        };
        let (a, b) = (figures_of(baseline), figures_of(candidate));
        for figures in [&a, &b] {
            // A slice may contain a long stall; a variant must forward something.
            let idle = figures.values().filter(|&&figure| figure <= 0.0).count();
            if 2 * idle > figures.len() {
                return Err(Unanswerable::NotPositive { rate: 0.0 });
            }
        }
        let of_halves: Vec<(f64, f64)> = (0..halves)
            .filter_map(|half| Some((*a.get(&half)?, *b.get(&half)?)))
            // A half with nothing forwarded in one slice has no ratio: capacity cannot use it.
            .filter(|(a, b)| figure == StreamFigure::Rate || (*a > 0.0 && *b > 0.0))
            .collect();
        let have = of_halves.len();
        if have < MIN_PAIRS {
            let what = "pairs of neighbouring slices in each stream";
            return Err(Unanswerable::TooFew { what, have, need: MIN_PAIRS });
        }
        let offered = stream
            .iter()
            .filter(|slice| slice.variant == baseline || slice.variant == candidate)
            .count();
        Ok(Pairs { left_out: offered - 2 * have, of_halves })
    }
}

/// Returns a stream's effect with the standard error described above.
fn estimate_within(pairs: &[(f64, f64)], figure: StreamFigure) -> LogEstimate {
    let m = pairs.len();
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let r = lag1_autocorrelation(&differences).unwrap_or(0.0).clamp(0.0, 0.9);
    let length = (m as f64).cbrt() * (2.0 * r / (1.0 - r * r)).powf(2.0 / 3.0);
    let length = (length.ceil() as usize).clamp(1, m / 3);
    let mut random = SplitMix64::new(m as u64);
    let effects: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut resample = Vec::with_capacity(m + length);
            while resample.len() < m {
                let start = random.below(m);
                resample.extend((0..length).map(|i| pairs[(start + i) % m]));
            }
            resample.truncate(m);
            figure.effect(&resample)
        })
        .collect();
    let se = variance(&effects, mean(&effects)).sqrt();
    LogEstimate { effect: figure.effect(pairs), se, df: (m / length) as f64 - 1.0 }
}
