//! Error rates of the functions named by samples of measured runs.
//!
//! Eleven blocks of two variants. Each run is sampled 119 times (0.6 s at 199 Hz) in functions of
//! known shares, and costs 1000 ns per packet with the scatter of the simulated runs.

use super::law::{Design, QUIET};
use super::runs::Runs;
use super::{Bar, Table};
use fwdlab_results::profile::Stacks;
use fwdlab_results::profile::compare::{Changes, Grouping, Measured, compare_blocks};
use fwdlab_results::stats::Criteria;

/// Blocks of an experiment.
const BLOCKS: u32 = 11;
/// Samples of a run.
const SAMPLES: usize = 119;
/// Number of functions, of equal shares.
const FUNCTIONS: usize = 25;
/// CPU time per packet of the baseline, nanoseconds.
const COST_NS: f64 = 1000.0;
/// The function that the candidate adds.
const ADDED: &str = "added";
/// Its CPU time per packet, nanoseconds.
const ADDED_NS: f64 = 100.0;

impl Table<'_> {
    /// Rows about the functions named for a difference.
    pub(super) fn blame(&mut self) {
        let design = Design::Pairs(BLOCKS);
        let is_sure = |interval: Option<(f64, f64)>| {
            interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
        };
        let any = move |runs: &mut Runs| {
            let found = compare(runs, 0.0);
            found.parts.iter().any(|part| is_sure(part.interval))
        };
        let question = "any function named, all alike";
        self.add(question, design, QUIET, Some(Bar::AtMost(0.05)), &any);
        let added = |runs: &mut Runs| {
            let found = compare(runs, ADDED_NS);
            found.parts.iter().find(|part| part.name == ADDED).and_then(|part| part.interval)
        };
        let names = move |runs: &mut Runs| is_sure(added(runs));
        let bar = Some(Bar::AtLeast(0.9));
        self.add("names the function of 100 ns", design, QUIET, bar, &names);
        let covers = move |runs: &mut Runs| {
            added(runs).is_some_and(|(low, high)| low <= ADDED_NS && ADDED_NS <= high)
        };
        let bar = Some(Bar::AtLeast(0.95));
        self.add("coverage of 95 %, a function of 100 ns", design, QUIET, bar, &covers);
    }
}

/// One experiment, whose candidate spends `added_ns` more per packet in an additional function.
fn compare(runs: &mut Runs, added_ns: f64) -> Changes {
    let mut sampled: [Vec<(u32, Measured)>; 2] = Default::default();
    for block in 0..BLOCKS {
        for (variant, more_ns) in [0.0, added_ns].into_iter().enumerate() {
            let run = run(runs, more_ns);
            sampled[variant].push((block, run));
        }
    }
    let [baseline, candidate] = &sampled;
    let found = compare_blocks(baseline, candidate, Grouping::Own, Criteria::default());
    found.unwrap_or_else(|error| unreachable!("both variants have samples: {error}"))
}

/// The samples of a run, each with its share of the CPU time per packet.
fn run(runs: &mut Runs, added_ns: f64) -> Measured {
    let cost_ns = (COST_NS + added_ns) / runs.next();
    let mut stacks = Stacks::default();
    for _ in 0..SAMPLES {
        let at_ns = runs.below((COST_NS + added_ns) as usize) as f64;
        let function = match at_ns < added_ns {
            true => ADDED.to_owned(),
            false => format!("f{}", runs.below(FUNCTIONS)),
        };
        stacks.add(vec![function.as_str().into()], 1);
    }
    Measured { stacks, packets: 1.0, per_count: cost_ns / SAMPLES as f64 }
}
