//! Planned looks with bounds that control the level.
//!
//! The level is spent look by look as proposed by Lan and DeMets (1983, Biometrika 70), with their
//! function in the style of O'Brien and Fleming: almost nothing early, so the last look costs
//! little more than a test without looks. The bounds are Student's t with its own degrees of
//! freedom at each look, exact for normal log ratios: converting bounds of the normal distribution
//! into quantiles of t would cross in 5.3 % of experiments at 5 %.
//!
//! In simulations of 10^6 experiments without effect for each of nine lengths of 6 to 60 blocks at
//! levels of 10, 5, 5/3 and 1 %, the shares that crossed a bound of [`bounds_of_t`] scatter around
//! the level as expected by chance (chi-square 43.1 of 36; the tests do it with fewer experiments).
//! Of experiments of at most 20 blocks, 4.96 % crossed at 5 %. By numpy 2.4.6, with 10^7
//! experiments of looks after 4, 5 and 6 blocks: 10.01 % at 10 %, 5.01 % at 5 %, 1.001 % at 1 %.
//!
//! Out of scope: looks that depend on the results of earlier ones.

use super::super::summary::Interval;
use super::{sparse_looks, student};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// First block at which a look is allowed: earlier looks would spend hardly any level.
const FIRST_LOOK: u32 = 4;
/// Looks of a full-length experiment.
const LOOKS: u32 = 5;
/// The smallest p-value that is distinguished from 0.
pub const SMALLEST_P: f64 = 1e-6;

/// Numbers of blocks after which the results are examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looks {
    /// Numbers of blocks, ascending; the last is the maximum.
    pub at: Vec<u32>,
}

impl Looks {
    /// Returns five equally spaced looks, fewer if `max_blocks` is small: none before four blocks
    /// except the last.
    pub fn of(max_blocks: u32) -> Looks {
        let mut at: Vec<u32> = (1..=LOOKS)
            .map(|look| (u64::from(max_blocks) * u64::from(look)).div_ceil(u64::from(LOOKS)) as u32)
            .filter(|&blocks| blocks >= FIRST_LOOK.min(max_blocks))
            .collect();
        at.dedup();
        Looks { at }
    }

    /// Returns the maximum number of blocks.
    pub fn max_blocks(&self) -> u32 {
        self.at.last().copied().unwrap_or(0)
    }

    /// Returns the number of looks due after `blocks` blocks.
    pub fn done(&self, blocks: u32) -> usize {
        self.at.iter().take_while(|&&at| at <= blocks).count()
    }

    /// Returns the first look after more than `blocks` blocks.
    pub fn next_after(&self, blocks: u32) -> Option<u32> {
        self.at.iter().copied().find(|&at| at > blocks)
    }
}

/// Returns the part of the two-sided level `alpha` that is spent after the share `fraction` of the
/// blocks (Lan and DeMets, their first function, each side spending its half).
pub fn spent(fraction: f64, alpha: f64) -> f64 {
    let normal = Normal::standard();
    let last = -normal.inverse_cdf(0.25 * alpha);
    (4.0 * normal.sf(last / fraction.sqrt())).min(alpha)
}

/// Returns two-sided bounds of |t| at `looks` that keep the level `alpha` exactly; infinite at a
/// look that has almost nothing to spend. `None` if a look is before the second block, looks are
/// not ascending, or `alpha` isn't between 0 and 1.
pub fn bounds_of_t(looks: &Looks, alpha: f64) -> Option<Vec<f64>> {
    bounds_until(looks, looks.at.len(), alpha)
}

/// Returns the bounds of a statistic with known variance: two-sided bounds of |z| at `fractions`
/// (ascending, in (0, 1]) of the information, the limits of the bounds of t (Armitage, McPherson
/// and Rowe, 1969, JRSS A 132). `None` for invalid arguments.
pub fn bounds(fractions: &[f64], alpha: f64) -> Option<Vec<f64>> {
    let rising = fractions.windows(2).all(|pair| pair[0] < pair[1]);
    let within = fractions.iter().all(|&fraction| fraction > 0.0 && fraction <= 1.0);
    if fractions.is_empty() || !(rising && within && alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let normal = Normal::standard();
    let mut bounds = Vec::with_capacity(fractions.len());
    // Paths that haven't crossed yet: positions on the scale of the score (z times the root of the
    // information) and their probabilities.
    let mut paths = vec![(0.0, 1.0)];
    let (mut at, mut already) = (0.0, 0.0);
    for &fraction in fractions {
        let step = (fraction - at).sqrt();
        let increment = spent(fraction, alpha) - already;
        let crossing = |score: f64| -> f64 {
            let both = |&(from, mass): &(f64, f64)| {
                mass * (normal.sf((score - from) / step) + normal.sf((score + from) / step))
            };
            paths.iter().map(both).sum()
        };
        let score = bisect(0.0, 40.0 * fraction.sqrt(), |score| crossing(score) < increment);
        bounds.push(score / fraction.sqrt());
        paths = simpson_nodes(score)
            .map(|(to, weight)| {
                let density =
                    |&(from, mass): &(f64, f64)| mass * (-0.5 * ((to - from) / step).powi(2)).exp();
                let norm = weight / (step * std::f64::consts::TAU.sqrt());
                (to, norm * paths.iter().map(density).sum::<f64>())
            })
            .collect();
        (at, already) = (fraction, spent(fraction, alpha));
    }
    Some(bounds)
}

/// Returns nodes and weights of Simpson's rule from `-end` to `end`.
fn simpson_nodes(end: f64) -> impl Iterator<Item = (f64, f64)> {
    const INTERVALS: i32 = 600;
    let step = 2.0 * end / f64::from(INTERVALS);
    (0..=INTERVALS).map(move |i| {
        let weight = match i {
            0 | INTERVALS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (f64::from(i) * step - end, weight * step / 3.0)
    })
}

/// Returns the interval of an estimate at a look that holds jointly with the intervals of the other
/// looks: the repeated confidence interval of Jennison and Turnbull (1989, JRSS B 51). It is valid
/// whether or not the experiment stops there.
pub fn interval(effect: f64, se: f64, bound: f64) -> Interval {
    // Without scatter the effect is known, even under an infinite bound.
    let half = if se == 0.0 { 0.0 } else { bound * se };
    Interval { low: effect - half, high: effect + half }
}

/// Returns the smallest level at which a bound would have been crossed at one of the looks done,
/// with statistics `t`: the repeated p-value, valid at any look. Relative accuracy 1e-5; at least
/// [`SMALLEST_P`]. `None` if the looks are invalid or fewer than the statistics.
pub fn repeated_p(looks: &Looks, t: &[f64]) -> Option<f64> {
    let mut at_least: f64 = 1.0;
    let mut nominal = Vec::with_capacity(t.len());
    for (&t, &at) in t.iter().zip(&looks.at) {
        let student = StudentsT::new(0.0, 1.0, f64::from(at) - 1.0).ok()?;
        let p = 2.0 * student.sf(t.abs());
        // Even without earlier looks, this one requires this much spent by now.
        let fraction = f64::from(at) / f64::from(looks.max_blocks());
        at_least = at_least.min(spending(fraction, p));
        nominal.push((student, p.max(f64::MIN_POSITIVE).ln()));
    }
    // Distance of the statistics beyond the bounds at the look where it is largest, in logarithms
    // of probabilities: nearly linear in the logarithm of the level.
    let beyond = |ln_alpha: f64| -> Option<f64> {
        let bounds = bounds_until(looks, t.len(), ln_alpha.exp())?;
        let excess = |(bound, (student, ln_p)): (f64, &(StudentsT, f64))| {
            (2.0 * student.sf(bound)).max(f64::MIN_POSITIVE).ln() - ln_p
        };
        bounds.into_iter().zip(&nominal).map(excess).max_by(f64::total_cmp)
    };
    let at_least = at_least.max(SMALLEST_P);
    let (mut low, most) = (at_least.ln(), 0.99f64.ln());
    if t.is_empty() || low >= most {
        return (t.len() <= looks.at.len()).then_some(1.0);
    }
    let mut under = beyond(low)?;
    if under >= 0.0 {
        return Some(at_least);
    }
    let (mut high, mut over, mut step) = (low, under, 0.15);
    while over < 0.0 {
        (low, under) = (high, over);
        if high >= most {
            return Some(1.0);
        }
        high = (high + step).min(most);
        step *= 2.0;
        over = beyond(high)?;
    }
    for _ in 0..40 {
        // Regula falsi with the Illinois remedy.
        let middle = (low * over - high * under) / (over - under);
        let beyond = beyond(middle)?;
        if beyond.abs() < 1e-6 || high - low < 1e-6 {
            return Some(middle.exp());
        }
        if beyond < 0.0 {
            (low, under, over) = (middle, beyond, 0.5 * over);
        } else {
            (high, over, under) = (middle, beyond, 0.5 * under);
        }
    }
    Some(high.exp())
}

/// Returns the level of which `spent` is spent at `fraction`: the inverse of [`spent`].
fn spending(fraction: f64, spent: f64) -> f64 {
    let normal = Normal::standard();
    let z = -normal.inverse_cdf((0.25 * spent).max(1e-300));
    (4.0 * normal.sf(z * fraction.sqrt())).min(1.0)
}

/// Returns the bounds of the first `done` looks, which don't depend on the others.
fn bounds_until(looks: &Looks, done: usize, alpha: f64) -> Option<Vec<f64>> {
    let rising = looks.at.windows(2).all(|pair| pair[0] < pair[1]);
    let sound = rising && looks.at.first().is_some_and(|&first| first >= 2);
    (sound && done <= looks.at.len() && alpha > 0.0 && alpha < 1.0).then(|| {
        let fraction = |&at: &u32| f64::from(at) / f64::from(looks.max_blocks());
        let spent: Vec<f64> =
            looks.at[..done].iter().map(|at| spent(fraction(at), alpha)).collect();
        match sparse_looks::suits(&looks.at) {
            true => sparse_looks::bounds(&looks.at, &spent),
            false => student::bounds(&looks.at, &spent),
        }
    })
}

/// Returns the place between `low` and `high` where `is_beyond` becomes true.
fn bisect(mut low: f64, mut high: f64, is_beyond: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if is_beyond(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::super::super::random::NormalNumbers;
    use super::*;

    #[test]
    fn looks_are_spread_and_not_too_early() {
        assert_eq!(Looks::of(20).at, [4, 8, 12, 16, 20]);
        assert_eq!(Looks::of(6).at, [4, 5, 6]);
        assert_eq!(Looks::of(3).at, [3]);
        assert_eq!(Looks::of(12).at, [5, 8, 10, 12]);
        for max_blocks in 2..200 {
            let looks = Looks::of(max_blocks);
            assert!(looks.at.windows(2).all(|pair| pair[0] < pair[1]), "{looks:?}");
            assert_eq!(looks.max_blocks(), max_blocks);
            assert!(looks.at[0] >= 4.min(max_blocks) && looks.at.len() <= 5, "{looks:?}");
        }
        let looks = Looks::of(20);
        assert_eq!((looks.done(3), looks.done(4), looks.done(19), looks.done(25)), (0, 1, 4, 5));
        assert_eq!((looks.next_after(0), looks.next_after(4)), (Some(4), Some(8)));
        assert_eq!(looks.next_after(20), None);
    }

    #[test]
    fn bounds_of_z_match_published_bounds() {
        // scipy 1.17.1: brentq over stats.multivariate_normal.cdf between the
        // bounds, look by look; R's ldbounds prints 4.877, 3.357, 2.680, 2.290
        // and 2.031.
        let known = [4.8768849, 3.3570117, 2.6802804, 2.2898159, 2.0310329];
        let ours = bounds(&[0.2, 0.4, 0.6, 0.8, 1.0], 0.05).unwrap();
        for (ours, known) in ours.iter().zip(known) {
            assert!((ours - known).abs() < 5e-6, "{ours} is not {known}");
        }
    }

    #[test]
    fn one_look_is_an_ordinary_test() {
        // scipy 1.17.1: norm.ppf(.975), t.ppf(.975, 2).
        assert!((bounds(&[1.0], 0.05).unwrap()[0] - 1.959963984540054).abs() < 1e-9);
        let of_t = bounds_of_t(&Looks::of(3), 0.05).unwrap();
        assert!((of_t[0] / 4.302652729696142 - 1.0).abs() < 1e-9, "{of_t:?}");
    }

    #[test]
    fn bounds_of_t_approach_bounds_of_z() {
        let of_t = bounds_of_t(&Looks::of(200), 0.05).unwrap();
        let of_z = bounds(&[0.2, 0.4, 0.6, 0.8, 1.0], 0.05).unwrap();
        for (&t, &z) in of_t.iter().zip(&of_z).skip(1) {
            assert!(t > z && t < 1.05 * z, "{of_t:?} {of_z:?}");
        }
    }

    const ALPHAS: [f64; 4] = [0.1, 0.05, 0.05 / 3.0, 0.01];

    /// Returns the number of experiments without effect whose |t| crosses a bound, by level: the
    /// same experiments for all levels.
    fn crossings(max_blocks: u32, experiments: u32, seed: u64) -> [u32; ALPHAS.len()] {
        let looks = Looks::of(max_blocks);
        let bounds = ALPHAS.map(|alpha| bounds_of_t(&looks, alpha).unwrap());
        let mut numbers = NormalNumbers::seeded(seed);
        let mut crossings = [0; ALPHAS.len()];
        for _ in 0..experiments {
            let (mut sum, mut squares, mut look) = (0.0, 0.0, 0);
            let mut has_crossed = [false; ALPHAS.len()];
            for block in 1..=max_blocks {
                let value = numbers.next();
                sum += value;
                squares += value * value;
                if looks.at[look] == block {
                    let n = f64::from(block);
                    let variance = (squares - sum * sum / n) / (n - 1.0);
                    let t = sum.abs() / (n * variance).sqrt();
                    for (has_crossed, bounds) in has_crossed.iter_mut().zip(&bounds) {
                        *has_crossed |= t >= bounds[look];
                    }
                    look += 1;
                }
            }
            for (count, has_crossed) in crossings.iter_mut().zip(has_crossed) {
                *count += u32::from(has_crossed);
            }
        }
        crossings
    }

    #[test]
    fn bounds_keep_the_level() {
        let experiments = 10_000;
        let lengths = [6, 7, 8, 10, 13, 20, 30, 45, 60, 100];
        let mut squares = [0.0; ALPHAS.len()];
        for max_blocks in lengths {
            let crossings = crossings(max_blocks, experiments, 20 + u64::from(max_blocks));
            for ((count, alpha), squares) in crossings.iter().zip(ALPHAS).zip(&mut squares) {
                let n = f64::from(experiments);
                let z = (f64::from(*count) - alpha * n) / (alpha * (1.0 - alpha) * n).sqrt();
                assert!(z.abs() < 4.0, "{max_blocks} at {alpha:.5}: {count}, {z:+.2} errors");
                *squares += z * z;
            }
        }
        // Of ten lengths chi-square exceeds 29.6 once in a thousand times.
        assert!(squares.iter().all(|&square| square < 29.6), "{squares:?}");
    }

    #[test]
    fn lower_level_widens_the_bounds() {
        for max_blocks in [6, 20] {
            let mut before: Option<Vec<f64>> = None;
            for alpha in [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-5] {
                let now = bounds_of_t(&Looks::of(max_blocks), alpha).unwrap();
                if let Some(before) = before {
                    assert!(now.iter().zip(&before).all(|(now, before)| now >= before), "{alpha}");
                }
                before = Some(now);
            }
        }
    }

    #[test]
    fn p_is_the_level_of_the_reached_bound() {
        let looks = Looks::of(12);
        for alpha in [0.3, 0.001] {
            let bounds = bounds_of_t(&looks, alpha).unwrap();
            for look in 1..bounds.len() {
                // Small at the earlier looks.
                let mut t = vec![0.1; look + 1];
                t[look] = -bounds[look];
                let p = repeated_p(&looks, &t).unwrap();
                assert!((p / alpha - 1.0).abs() < 1e-4, "look {look}: {p} is not {alpha}");
            }
            // A crossed bound stays crossed.
            let t = [0.1, bounds[1], 0.1, 0.1];
            let p = repeated_p(&looks, &t).unwrap();
            assert!((p / alpha - 1.0).abs() < 1e-4, "{p} is not {alpha}");
        }
    }

    #[test]
    fn p_of_extreme_statistics_is_bounded() {
        let looks = Looks::of(20);
        assert_eq!(repeated_p(&looks, &[]), Some(1.0));
        assert_eq!(repeated_p(&looks, &[0.0, 0.0]), Some(1.0));
        assert_eq!(repeated_p(&looks, &[f64::INFINITY]), Some(SMALLEST_P));
        assert!(repeated_p(&looks, &[1.0, 1e9]).unwrap() < 1e-5);
        assert_eq!(repeated_p(&looks, &[0.0; 6]), None);
        assert_eq!(bounds_of_t(&Looks { at: vec![1, 5] }, 0.05), None);
        assert_eq!(bounds(&[0.5, 0.2], 0.05), None);
        assert_eq!(bounds(&[0.5, 1.0], 1.0), None);
    }
}
