//! `fwdlab selftest`: error rates of the laboratory.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::selftest::machine::{self, Machine};
use crate::selftest::{self, ErrorRate, PromiseState, live, simulated, truth};
use crate::session::{self, Session};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::store::Store;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Measure the laboratory's own error rates.
///
/// Measures how often a difference is found where there is none, and how often one is missed: on
/// simulated runs, whose truth is known; with `--testbed netns` on this machine, with identical
/// variants and with known numbers of firewall rules, which also shows how long this machine takes
/// to detect a change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab selftest
  fwdlab selftest --comparisons 2000 --json
  fwdlab selftest --row history
  fwdlab selftest --aa --testbed netns --comparisons 100
  fwdlab selftest --truth")]
pub(crate) struct Arguments {
    /// A against A: false differences, power, intervals (the default)
    #[arg(long)]
    aa: bool,
    /// Devices of known truth on this machine instead: shapers, a stall, one rule; prints the
    /// laboratory's errors
    #[arg(long, conflicts_with_all = ["aa", "testbed", "comparisons", "row"])]
    truth: bool,
    /// Source of the runs
    #[arg(long, value_name = "KIND", default_value = "sim")]
    testbed: Testbed,
    /// Comparisons per rate [default: 10000 simulated, 100 on this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    comparisons: Option<u32>,
    /// Only simulated rows whose question, design or scatter contains this text
    #[arg(long, value_name = "TEXT", conflicts_with = "out")]
    row: Option<String>,
    /// Directory of this machine's runs
    #[arg(long, short, value_name = "DIR", default_value = "results/selftest")]
    out: PathBuf,
    /// Start again; the old store is kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// Show no progress, only the results
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    form: FormArguments,
}

/// Sources of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Testbed {
    /// The law of the simulated device
    Sim,
    /// Network namespaces of this machine's kernel
    Netns,
}

/// Progress bar with the rate being counted; on a terminal only.
fn rows_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {wide_msg} {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(simulated::ROWS).with_style(style)
}

/// Measures and prints the error rates.
///
/// # Errors
/// A failing or unsuitable testbed, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    if arguments.truth {
        return arguments.measure_truths();
    }
    let (rates, machine) = match arguments.testbed {
        Testbed::Sim => (arguments.simulate()?, None),
        Testbed::Netns => {
            let why = "--row selects rows of simulated runs, and --testbed netns has none\n  \
                       next step: omit one of the two";
            ensure!(arguments.row.is_none(), CliError::Mistake(why.into()));
            let machine = arguments.measure(TestbedKind::Netns)?;
            (machine.rates.clone(), Some(machine))
        }
    };
    let data = json!({ "rates": rates, "machine": machine });
    arguments.form.print(&selftest::document(&rates, machine.as_ref(), &data))?;
    let broken = rates.iter().any(|row| row.held == Some(PromiseState::No));
    Ok(if broken { Exit::Untrustworthy } else { Exit::Done })
}

impl Arguments {
    fn simulate(&self) -> Result<Vec<ErrorRate>> {
        let bar = if self.quiet { ProgressBar::hidden() } else { rows_bar() };
        let comparisons = u64::from(self.comparisons.unwrap_or(10_000));
        let filter = self.row.as_deref().unwrap_or_default();
        let rates = simulated::measure(comparisons, filter, &mut |row| {
            bar.inc(1);
            bar.set_message(row.to_owned());
        });
        bar.finish_and_clear();
        let why = format!(
            "no row contains \"{filter}\"\n  next step: use a word of docs/method/error-rates.md"
        );
        ensure!(!rates.is_empty(), CliError::Mistake(why));
        Ok(rates)
    }

    fn measure(&self, testbed: TestbedKind) -> Result<Machine> {
        let (plan, text) = machine::plan(self.comparisons.unwrap_or(100), testbed)
            .context("planning the self-test")?;
        let store = self.measure_missing(&plan, &text, &self.out)?;
        let mut found = machine::evaluate(&plan, &Analysis::of_store(&store)?);
        let (plan, text) = live::plan(testbed).context("planning the self-test")?;
        let store = self.measure_missing(&plan, &text, &self.out.join("live"))?;
        let contents = store.contents()?;
        found.live = Some(live::evaluate(&contents, &Analysis::of(&contents)));
        Ok(found)
    }

    /// Measures devices of known truth and prints the errors; exit code 4 if a promise is broken.
    fn measure_truths(&self) -> Result<Exit> {
        let (plan, text) = truth::plan().context("planning the self-test")?;
        let store = self.measure_missing(&plan, &text, &self.out.join("truth"))?;
        let report = truth::evaluate(&Analysis::of_store(&store)?);
        self.form.print(&selftest::of_truths(&report))?;
        let kept = !report.truths.is_empty() && report.truths.iter().all(truth::Truth::is_kept);
        Ok(if kept { Exit::Done } else { Exit::Untrustworthy })
    }

    /// Measures the runs of the plan that are missing from the store in `out`.
    fn measure_missing(&self, plan: &Plan, text: &str, out: &Path) -> Result<Store> {
        let (mut store, notice) = session::open_store(out, self.fresh)?;
        let session = Session {
            bed: None,
            revision: None,
            plan,
            directory: PathBuf::new(),
            calibrates: false,
            quiet: self.quiet,
            resume: self.command_line(),
            runs: plan.runs.len().to_string(),
            takes_profiles: false,
            wait: std::time::Duration::ZERO,
        };
        notice.into_iter().for_each(|notice| session.say(&notice));
        store.adopt_plan(plan, text)?;
        let missing = store.missing_runs(plan)?;
        if !missing.is_empty() {
            session.measure(&mut store, &missing, None)?;
        }
        Ok(store)
    }

    /// The command that continues this self-test.
    fn command_line(&self) -> String {
        let mut line = match self.truth {
            true => "fwdlab selftest --truth".to_owned(),
            false => "fwdlab selftest --aa --testbed netns".to_owned(),
        };
        if let Some(comparisons) = self.comparisons {
            line += &format!(" --comparisons {comparisons}");
        }
        if self.out != Path::new("results/selftest") {
            line += &format!(" --out {}", self.out.display());
        }
        line
    }
}
