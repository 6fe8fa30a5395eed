//! Error rates and power on this machine: real packets, a known truth.
//!
//! Six identical variants, and three with 1, 5 and 20 additional firewall rules, run in many short
//! blocks; [`BLOCKS`] consecutive blocks are one experiment. Any difference between identical
//! variants is a false difference; differences found in the others are power. The scatter and the
//! duration of runs give the time that this machine needs to find a change of a given size. A
//! second plan ([`super::live`]) does the same with levels switched live.
//!
//! The stores stay in the directory, so that an interrupted self-test continues, and `fwdlab
//! report` shows them like any other.

use super::detection::{BLOCKS, Detection, detections, seconds_between};
use super::live::Live;
use super::{Bar, ErrorRate};
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::RunResult;
use fwdlab_results::stats::binomial::Rate;
use fwdlab_results::stats::blocked::common_blocks;
use fwdlab_results::stats::summary::{Summary, median};
use fwdlab_results::stats::{BlockedRun, Comparison, Criteria, Verdict, compare_blocked};
use serde::Serialize;

/// Number of pairs of identical variants in each block; they share no runs.
const PAIRS: usize = 3;
/// Numbers of firewall rules of the slower variants.
const RULES: [u32; 3] = [1, 5, 20];
/// Minimum number of experiments for comparing the false differences with a bar.
const ENOUGH: u64 = 100;

/// The plan of runs in blocks with `comparisons` of identical variants.
///
/// # Errors
/// Never, unless the text below is broken.
pub(crate) fn plan(
    comparisons: u32,
    testbed: TestbedKind,
) -> Result<(Plan, String), fwdlab_model::Diagnostics> {
    let experiments = comparisons.div_ceil(PAIRS as u32).max(1);
    let same = (1..=2 * PAIRS).map(|n| format!("  {{ label = \"same {n}\" }},\n"));
    let slower = RULES.map(|rules| {
        let plural = if rules == 1 { "rule" } else { "rules" };
        format!("  {{ label = \"{rules} {plural}\", firewall = \"rules:{rules}\" }},\n")
    });
    let levels: String = same.chain(slower).collect();
    let text = format!(
        "version = 1\n\
         title = \"The laboratory against itself\"\n\n\
         [testbed]\nkind = \"{}\"\n\n\
         [dut]\nfirewall = \"rules:0\"\n\n\
         [[factor]]\nname = \"variant\"\nlevels = [\n{levels}]\n\n\
         [trial]\nwarmup = \"60ms\"\nduration = \"200ms\"\ninterval = \"100ms\"\nslice = \"10ms\"\n\n\
         [design]\nblocks = {}\n\n\
         [compare]\nbaseline = {{ variant = \"same 1\" }}\n",
        if testbed == TestbedKind::Sim { "sim" } else { "netns" },
        experiments * BLOCKS
    );
    let loader = |name: &str| Err(format!("no file {name} belongs to the self-test"));
    Ok((fwdlab_model::load("selftest.toml", &text, &loader)?, text))
}

/// Results of this machine's runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Caption on the validity of the testbed's rates.
    pub(crate) caption: String,
    /// Rates of false and true differences.
    pub(crate) rates: Vec<ErrorRate>,
    /// Costs of the rules over all blocks: label and comparison in one line.
    pub(crate) effects: Vec<(String, String)>,
    /// Median scatter of a block's log ratio within an experiment (0.01 = 1 %).
    pub(crate) scatter: f64,
    /// Total duration of a run in seconds; `None` if it is unknown.
    pub(crate) seconds_per_run: Option<f64>,
    /// Blocks and time that find a change with 90 % power.
    pub(crate) times: Vec<Detection>,
    /// The same with levels switched live; `None` if it was not measured.
    pub(crate) live: Option<Live>,
}

/// Counts the results of the runs of [`plan`].
pub(crate) fn evaluate(plan: &Plan, analysis: &Analysis) -> Machine {
    let experiments =
        analysis.core.runs.iter().map(|run| run.block / BLOCKS).max().map_or(0, |m| m + 1);
    let whole: Vec<Vec<&RunResult>> = (0..experiments)
        .map(|experiment| {
            analysis
                .core
                .runs
                .iter()
                .filter(|run| run.block / BLOCKS == experiment)
                .collect::<Vec<_>>()
        })
        .filter(|runs| runs.len() == BLOCKS as usize * plan.variants.len())
        .collect();
    let mut rates = vec![false_differences(&whole)];
    let slower = 2 * PAIRS..plan.variants.len();
    rates.extend(slower.clone().map(|variant| power(plan, &whole, variant)));
    let all: Vec<&RunResult> = analysis.core.runs.iter().collect();
    let effects = slower
        .filter_map(|variant| {
            let found = compare(&all, 0, variant)?;
            Some((plan.variants[variant].label.clone(), found.to_string()))
        })
        .collect();
    let scatter = scatter(&whole);
    let seconds_per_run = seconds_between(&analysis.core.runs);
    Machine {
        caption: analysis.core.testbed.caption.clone(),
        rates,
        effects,
        scatter,
        seconds_per_run,
        times: detections(scatter, seconds_per_run.map(|seconds| 2.0 * seconds)),
        live: None,
    }
}

fn compare(runs: &[&RunResult], a: usize, b: usize) -> Option<Comparison> {
    compare_blocked(&of(runs, a), &of(runs, b), Criteria::default()).ok()
}

fn of(runs: &[&RunResult], variant: usize) -> Vec<BlockedRun> {
    runs.iter()
        .filter(|run| run.variant == variant)
        .filter_map(|run| Some(BlockedRun { block: run.block, pps: run.value_pps? }))
        .collect()
}

fn layout() -> String {
    format!("{BLOCKS} blocks of 1 + 1")
}

fn false_differences(experiments: &[Vec<&RunResult>]) -> ErrorRate {
    let mut rate = Rate::default();
    for runs in experiments {
        for pair in 0..PAIRS {
            let Some(found) = compare(runs, 2 * pair, 2 * pair + 1) else { continue };
            rate.of += 1;
            rate.hits += u64::from(matches!(found.verdict(), Verdict::Better | Verdict::Worse));
        }
    }
    let bar = (rate.of >= ENOUGH).then_some(Bar::UpperLimitAtMost(0.12));
    ErrorRate::new("false difference", layout(), "this machine".to_owned(), rate).against(bar)
}

fn power(plan: &Plan, experiments: &[Vec<&RunResult>], variant: usize) -> ErrorRate {
    let mut rate = Rate::default();
    for runs in experiments {
        let Some(found) = compare(runs, 0, variant) else { continue };
        rate.of += 1;
        rate.hits += u64::from(found.verdict() == Verdict::Worse);
    }
    let question = format!("finds {}", plan.variants[variant].label);
    ErrorRate::new(&question, layout(), "this machine".to_owned(), rate)
}

/// Median over experiments of the standard deviation of a block's log ratio of identical variants:
/// an experiment is one session, and its machine may be quieter or busier than in the next one.
fn scatter(experiments: &[Vec<&RunResult>]) -> f64 {
    let each: Vec<f64> = experiments
        .iter()
        .flat_map(|runs| (0..PAIRS).map(move |pair| (runs, pair)))
        .filter_map(|(runs, pair)| {
            let blocks = common_blocks(&of(runs, 2 * pair), &of(runs, 2 * pair + 1)).ok()?;
            let ratios: Vec<f64> = blocks.iter().map(|block| block.b[0] - block.a[0]).collect();
            Summary::of(&ratios)?.sd
        })
        .collect();
    median(&each).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::detection::CHANGES;
    use crate::session::{Session, open_store};
    use std::path::PathBuf;

    #[test]
    fn machine_finds_rules_and_no_difference_of_identical_variants() {
        let directory = tempfile::tempdir().unwrap();
        let (plan, text) = plan(6, TestbedKind::Sim).unwrap();
        let (mut store, _) = open_store(directory.path(), false).unwrap();
        store.adopt_plan(&plan, &text).unwrap();
        let missing = store.missing_runs(&plan).unwrap();
        let session = Session {
            bed: None,
            revision: None,
            plan: &plan,
            directory: PathBuf::new(),
            calibrates: false,
            quiet: true,
            resume: String::new(),
            runs: plan.runs.len().to_string(),
            takes_profiles: false,
            wait: std::time::Duration::ZERO,
        };
        session.measure(&mut store, &missing, None).unwrap();

        let found = evaluate(&plan, &Analysis::of_store(&store).unwrap());
        // Two experiments of three pairs; on the simulated device twenty rules cost a third.
        assert_eq!(found.rates[0].rate.of, 6);
        assert!(found.rates[0].rate.hits <= 2, "{:?}", found.rates[0]);
        assert_eq!(found.rates[0].bar, None, "six are too few to promise anything");
        assert_eq!(found.rates[3].rate, Rate { hits: 2, of: 2 });
        assert_eq!(found.effects.len(), RULES.len());
        // Runs scatter by 2 %, ratios by sqrt(2) times as much.
        assert!((0.014..0.05).contains(&found.scatter), "{}", found.scatter);
        assert_eq!(found.times.len(), CHANGES.len());
        assert!(
            found
                .times
                .windows(2)
                .all(|pair| pair[0].blocks.is_none_or(|more| Some(more) > pair[1].blocks))
        );
    }
}
