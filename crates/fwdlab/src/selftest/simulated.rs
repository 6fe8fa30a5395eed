//! Error rates on simulated runs: the law and the truth are known.
//!
//! The runs come from the law of the simulated testbed, one start after the
//! other; no packets are simulated, because an error rate needs tens of
//! thousands of experiments. Every experiment has a seed of its own, so that
//! the rates are the same on every machine, whatever the number of threads.

use super::{Bar, Measured};
use fwdlab_bench::testbed::sim::RunLaw;
use fwdlab_model::settings::SimSettings;
use fwdlab_results::stats::alternation::Slice;
use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::stats::summary::t_quantile;
use fwdlab_results::stats::{
    Adjustment, BlockedRun, Comparison, Criteria, Verdict, adjust_family, compare_alternation,
    compare_blocked, compare_unblocked,
};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Scatter between runs that all designs are tried with: 1 %, the median of
/// real forwarding benchmarks.
const CV: f64 = 0.01;

/// How runs scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Noise {
    /// Share of the variance that drifts from run to run, and its correlation.
    drift: f64,
    phi: f64,
    /// Share of degraded runs, and how much slower they are.
    contamination: f64,
    depth: f64,
    tails: Tails,
}

/// Distribution of the part that doesn't drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tails {
    Normal,
    /// Student's t with 3 degrees of freedom, of the same variance.
    T3,
}

const QUIET: Noise =
    Noise { drift: 0.0, phi: 0.9, contamination: 0.0, depth: 0.04, tails: Tails::Normal };

impl Noise {
    /// Every law that false differences are counted under.
    fn all() -> Vec<Noise> {
        let mut all = vec![QUIET];
        for phi in [0.9, 0.98] {
            all.extend([0.25, 0.5, 0.75].map(|drift| Noise { drift, phi, ..QUIET }));
        }
        all.push(Noise { contamination: 0.05, ..QUIET });
        all.push(Noise { contamination: 0.05, drift: 0.5, ..QUIET });
        all.push(Noise { tails: Tails::T3, ..QUIET });
        all
    }

    fn name(&self) -> String {
        let mut parts = Vec::new();
        if self.drift > 0.0 {
            parts.push(format!("drift {:.0} %, phi {}", 100.0 * self.drift, self.phi));
        }
        if self.contamination > 0.0 {
            parts.push(format!("{:.0} % bad starts", 100.0 * self.contamination));
        }
        if self.tails == Tails::T3 {
            parts.push("heavy tails (t3)".to_owned());
        }
        if parts.is_empty() { "independent runs".to_owned() } else { parts.join(", ") }
    }
}

/// How runs are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Design {
    /// Blocks of one run each, in random order.
    Pairs(u32),
    /// Blocks of two and two runs, in random order.
    Fours(u32),
    /// Two lists in one random order, without blocks.
    Lists(u32),
    /// Streams of so many slices.
    Streams { streams: u32, slices: u32 },
}

impl Design {
    fn name(self) -> String {
        match self {
            Design::Pairs(n) => format!("{n} blocks of 1 + 1"),
            Design::Fours(n) => format!("{n} blocks of 2 + 2"),
            Design::Lists(n) => format!("{n} + {n} without blocks"),
            Design::Streams { streams, slices } => format!("{streams} streams of {slices} slices"),
        }
    }

    /// Runs of each variant.
    fn runs(self) -> u32 {
        match self {
            Design::Pairs(n) | Design::Lists(n) => n,
            Design::Fours(n) => 2 * n,
            Design::Streams { streams, .. } => streams,
        }
    }
}

/// The runs of one simulated experiment, rates relative to the baseline's truth.
struct Runs {
    law: RunLaw,
    noise: Noise,
    random: Xoshiro256StarStar,
}

impl Runs {
    fn new(noise: Noise, seed: u64) -> Runs {
        let Noise { drift, phi, contamination, depth, .. } = noise;
        let sim = SimSettings {
            noise: CV,
            drift,
            phi,
            contamination,
            contamination_depth: depth,
            ..SimSettings::default()
        };
        Runs {
            law: RunLaw::new(&sim, seed),
            noise,
            random: Xoshiro256StarStar::seed_from_u64(seed ^ 0x5eed),
        }
    }

    fn next(&mut self) -> f64 {
        let factor = self.law.factor();
        match self.noise.tails {
            Tails::Normal => factor,
            // Normal over the root of chi-square / 3; variance 3 made 1.
            Tails::T3 => {
                let squares: f64 = (0..3).map(|_| (self.law.factor().ln() / CV).powi(2)).sum();
                (factor.ln() / squares.sqrt()).exp()
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.random.next_u64()) * bound as u128) >> 64) as usize
    }

    /// One experiment whose candidate is `ratio` times as fast.
    fn compare(&mut self, design: Design, ratio: f64, criteria: Criteria) -> Option<Comparison> {
        match design {
            Design::Pairs(n) => self.compare_blocks(n, 1, ratio, criteria),
            Design::Fours(n) => self.compare_blocks(n, 2, ratio, criteria),
            Design::Lists(n) => {
                let (a, b) = self.lists(n as usize, ratio);
                compare_unblocked(&a, &b, criteria).ok()
            }
            Design::Streams { streams, slices } => {
                let streams: Vec<Vec<Slice>> =
                    (0..streams).map(|_| self.stream(slices, ratio)).collect();
                compare_alternation(&streams, 0, 1, criteria).ok()
            }
        }
    }

    fn compare_blocks(
        &mut self,
        blocks: u32,
        each: usize,
        ratio: f64,
        criteria: Criteria,
    ) -> Option<Comparison> {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            for is_candidate in self.order(each) {
                let pps = self.next();
                if is_candidate {
                    b.push(BlockedRun { block, pps: ratio * pps });
                } else {
                    a.push(BlockedRun { block, pps });
                }
            }
        }
        compare_blocked(&a, &b, criteria).ok()
    }

    /// Random order of so many runs of each variant; true is the candidate.
    fn order(&mut self, each: usize) -> Vec<bool> {
        let mut order: Vec<bool> = (0..2 * each).map(|run| run < each).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }

    fn lists(&mut self, each: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for is_candidate in self.order(each) {
            let pps = self.next();
            if is_candidate { b.push(ratio * pps) } else { a.push(pps) }
        }
        (a, b)
    }

    /// A stream A B B A. Its start has an own rate; its slices scatter, and drift
    /// with a correlation of 0.8 from one to the next, half of the variance.
    fn stream(&mut self, slices: u32, ratio: f64) -> Vec<Slice> {
        let start = self.next();
        // What a start does to one variant and not to the other.
        let sim = SimSettings { noise: 0.25 * CV, ..SimSettings::default() };
        let apart = RunLaw::new(&sim, self.random.next_u64()).factor();
        let sim = SimSettings { noise: 2.0 * CV, drift: 0.5, phi: 0.8, ..sim };
        let mut within = RunLaw::new(&sim, self.random.next_u64());
        (0..slices)
            .map(|number| {
                let variant = usize::from(matches!(number % 4, 1 | 2));
                let truth = if variant == 1 { ratio * apart } else { 1.0 };
                Slice { number, variant, rates_pps: vec![start * truth * within.factor()] }
            })
            .collect()
    }

    /// The classic practice: all runs of one, then all of the other, pooled t.
    fn classic_finds(&mut self, each: u32, truth: f64) -> bool {
        let mut list = |ratio: f64| (0..each).map(|_| ratio * self.next()).collect::<Vec<f64>>();
        let (a, b) = (list(1.0), list(truth));
        let n = f64::from(each);
        let mean = |list: &[f64]| list.iter().sum::<f64>() / n;
        let (mean_a, mean_b) = (mean(&a), mean(&b));
        let squares =
            |list: &[f64], mean: f64| list.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let df = 2.0 * n - 2.0;
        let pooled = (squares(&a, mean_a) + squares(&b, mean_b)) / df;
        let error = (pooled * 2.0 / n).sqrt();
        t_quantile(95.0, df).is_some_and(|t| (mean_b - mean_a).abs() > t * error)
    }
}

fn is_difference(comparison: &Comparison) -> bool {
    matches!(comparison.verdict(), Verdict::Better | Verdict::Worse)
}

/// Counts over `experiments` seeds, on all CPUs. The seeds of different rows
/// differ by `row`.
fn count(row: u64, experiments: u64, happens: &(dyn Fn(u64) -> bool + Sync)) -> Rate {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let hits = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || {
                    (part..experiments)
                        .step_by(threads as usize)
                        .filter(|experiment| happens((row << 32) | experiment))
                        .count() as u64
                })
            })
            .collect();
        // A panic of a part is a bug; it goes on here.
        parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .sum()
    });
    Rate { hits, of: experiments }
}

/// Everything that is promised of simulated runs, measured; `told` hears of each
/// row before it is counted.
pub(crate) fn measure(experiments: u64, told: &mut dyn FnMut(&str)) -> Vec<Measured> {
    let mut table = Table { experiments, rows: Vec::new(), told };
    for noise in Noise::all() {
        table.false_differences(noise);
    }
    for noise in
        [QUIET, Noise { tails: Tails::T3, ..QUIET }, Noise { contamination: 0.05, ..QUIET }]
    {
        table.coverage(noise);
    }
    table.power();
    table.equivalence();
    table.families();
    table.rows
}

struct Table<'a> {
    experiments: u64,
    rows: Vec<Measured>,
    told: &'a mut dyn FnMut(&str),
}

/// Upper limit that a rate of 5 % must stay below to be called kept.
const SIZE: Bar = Bar::UpperLimitAtMost(0.062);

impl Table<'_> {
    fn add(
        &mut self,
        question: &str,
        design: Design,
        noise: Noise,
        bar: Option<Bar>,
        happens: &(dyn Fn(&mut Runs) -> bool + Sync),
    ) -> &mut Measured {
        (self.told)(&format!("{question}: {}, {}", design.name(), noise.name()));
        let row = self.rows.len() as u64;
        let rate = count(row, self.experiments, &|seed| happens(&mut Runs::new(noise, seed)));
        let measured = Measured::new(question, design.name(), noise.name(), rate).against(bar);
        self.rows.push(measured);
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    fn false_differences(&mut self, noise: Noise) {
        let designs = [
            Design::Pairs(6),
            Design::Pairs(10),
            Design::Pairs(20),
            Design::Fours(5),
            Design::Lists(10),
            Design::Streams { streams: 5, slices: 24 },
        ];
        for design in designs {
            let finds = |runs: &mut Runs| {
                runs.compare(design, 1.0, Criteria::default()).is_some_and(|c| is_difference(&c))
            };
            // So many show the classic practice well enough.
            let experiments = self.experiments.min(4000);
            let classic = |seed| Runs::new(noise, seed).classic_finds(design.runs(), 1.0);
            let classic = count(self.rows.len() as u64, experiments, &classic);
            let row = self.add("false difference", design, noise, Some(SIZE), &finds);
            if !matches!(design, Design::Streams { .. }) {
                row.classic = Some(classic.share());
            }
        }
    }

    /// Does the 95 % interval hold a true loss of 3 %.
    fn coverage(&mut self, noise: Noise) {
        let truth = 0.97;
        for design in [Design::Pairs(6), Design::Pairs(10), Design::Pairs(20), Design::Lists(10)] {
            let covers = |runs: &mut Runs| {
                runs.compare(design, truth, Criteria::default())
                    .is_some_and(|c| c.low <= truth && truth <= c.high)
            };
            self.add("coverage of 95 %", design, noise, Some(Bar::Within(0.935, 0.965)), &covers);
        }
    }

    fn power(&mut self) {
        let asked = [
            (0.98, Design::Pairs(8), Some(Bar::AtLeast(0.9))),
            (0.97, Design::Pairs(6), Some(Bar::AtLeast(0.9))),
            (0.99, Design::Pairs(23), Some(Bar::AtLeast(0.9))),
            (0.98, Design::Pairs(5), None),
        ];
        for (truth, design, bar) in asked {
            let finds = |runs: &mut Runs| {
                runs.compare(design, truth, Criteria::default())
                    .is_some_and(|c| c.verdict() == Verdict::Worse)
            };
            let question = format!("finds a loss of {:.0} %", 100.0 * (1.0 - truth));
            let classic = |seed| Runs::new(QUIET, seed).classic_finds(design.runs(), truth);
            let classic = count(self.rows.len() as u64, self.experiments, &classic);
            self.add(&question, design, QUIET, bar, &finds).classic = Some(classic.share());
        }
    }

    fn equivalence(&mut self) {
        for (design, margin) in [
            (Design::Lists(20), 0.01),
            (Design::Fours(10), 0.01),
            (Design::Pairs(20), 0.01),
            (Design::Pairs(10), 0.02),
        ] {
            let criteria = Criteria { margin, ..Criteria::default() };
            let equivalent = |runs: &mut Runs, truth: f64| {
                runs.compare(design, truth, criteria).is_some_and(|c| c.is_within_margin())
            };
            let percent = 100.0 * margin;
            let question = format!("equivalent within {percent} %, though at the margin");
            let at_margin = 1.0 + margin;
            self.add(&question, design, QUIET, Some(Bar::AtMost(0.05)), &|runs| {
                equivalent(runs, at_margin)
            });
            let question = format!("equivalent within {percent} %, and the same");
            let bar = (design == Design::Lists(20)).then_some(Bar::AtLeast(0.85));
            self.add(&question, design, QUIET, bar, &|runs| equivalent(runs, 1.0));
        }
    }

    /// Any false difference among 20 variants against one baseline.
    fn families(&mut self) {
        const VARIANTS: usize = 20;
        for blocks in [5, 10, 20] {
            let errs = |runs: &mut Runs| runs.family_errs(blocks, VARIANTS);
            let question = format!("any false one of {VARIANTS} variants");
            let bar = Some(Bar::AtMost(0.05));
            self.add(&question, Design::Pairs(blocks), QUIET, bar, &errs);
        }
    }
}

impl Runs {
    fn family_errs(&mut self, blocks: u32, variants: usize) -> bool {
        let criteria = Criteria { family: variants, ..Criteria::default() };
        let mut all: Vec<Vec<BlockedRun>> = vec![Vec::new(); variants + 1];
        for block in 0..blocks {
            // The law doesn't know the order: every run of a block is alike.
            for runs in &mut all {
                runs.push(BlockedRun { block, pps: self.next() });
            }
        }
        let baseline = all.swap_remove(0);
        let mut family: Vec<Comparison> = all
            .iter()
            .filter_map(|candidate| compare_blocked(&baseline, candidate, criteria).ok())
            .collect();
        adjust_family(&mut family, Adjustment::Holm);
        family.iter().any(is_difference)
    }
}
