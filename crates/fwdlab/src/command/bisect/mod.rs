//! `fwdlab bisect`: which of many revisions changed the rate.

mod confirm;
mod course;
mod told;

use crate::command::compare::margin;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{self, Loaded, Overrides};
use crate::session::{self, Course as _, Session};
use crate::terminal;
use anyhow::Result;
use course::Search;
use fwdlab_model::Plan;
use fwdlab_model::plan::RunMetric;
use fwdlab_search::bisect::{Bisection, Ending, Exact, Noisy, Options, Step};
use std::path::{Path, PathBuf};
use told::Told;

/// Counts of instructions repeat within a few tenths of a percent, bursts aside those of most
/// functions to the digit: ends that differ by less than this share are alike.
const RESOLUTION: f64 = 0.001;

/// Find the revision that changed the rate, among the levels of a factor in their order.
///
/// Each step is one ordinary run of one level, and a probability of each level to be the first
/// with the change follows from all of them. When one is sure enough, it and its predecessor are
/// compared in an ordinary experiment, and only what that confirms is called convicted. What was
/// measured is kept: the same command goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab bisect experiments/bisect-sim.toml --along revision
  fwdlab bisect kernels.toml --along kernel --change=-2% --cap 400
  fwdlab bisect builds.toml --along build --layout 0.5% --json")]
pub(crate) struct Arguments {
    /// The experiment file; - is standard input
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    /// The factor whose levels are the candidates, from good to bad
    #[arg(long, value_name = "FACTOR")]
    along: String,
    /// Directory of the store, the picture and the confirming experiment
    /// [default: results/NAME-bisect]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin anew; the old stores are kept as run.sqlite.1
    #[arg(long)]
    fresh: bool,
    /// --blocks is the number of blocks of the confirming experiment
    #[command(flatten)]
    overrides: Overrides,
    /// The most runs of the search
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(8..=5000))]
    cap: u32,
    /// How sure the answer must be before it is confirmed
    #[arg(long, value_name = "PERCENT", default_value = "96", value_parser = super::compare::confidence)]
    confidence: f64,
    /// The change that is looked for, where it is known from elsewhere (--change=-2%): then the
    /// ends need not show first that they differ, and fewer runs do
    #[arg(long, value_name = "PERCENT", value_parser = change)]
    change: Option<f64>,
    /// What another layout in memory does to a build's rate (standard deviation)
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    layout: Option<f64>,
    /// Don't measure what sender and receiver reach without a DUT
    #[arg(long)]
    no_calibration: bool,
    /// Don't confirm: nobody is convicted
    #[arg(long)]
    no_confirm: bool,
    /// Show no progress, only the answer
    #[arg(long, short)]
    quiet: bool,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Searches.
///
/// # Errors
/// Faults of the file, a store that belongs to another search, whatever the testbed lacks or
/// meets, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let cap = arguments.cap as usize;
    let of_search = Overrides {
        blocks: Some(arguments.cap + course::FAILURES as u32),
        ..arguments.overrides.clone()
    };
    let Loaded { plan, text } = experiment::load(&arguments.experiment, &of_search)?;
    let factor = factor(&plan, &arguments.along)?;
    let count = plan.variants.len();
    let name = format!("{}-bisect", plan.name);
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(name));
    let (mut store, said) = session::open_store(&out, arguments.fresh)?;
    said.into_iter().for_each(|said| arguments.say(&said));
    store.adopt_plan(&plan, &text)?;
    let engine = match plan.metric() {
        RunMetric::Instructions => Bisection::Exact(Exact::new(count, RESOLUTION)),
        _ => Bisection::Noisy(Box::new(Noisy::new(Options {
            cap,
            confidence: arguments.confidence / 100.0,
            known: arguments.change,
            layout: arguments.layout.unwrap_or(0.0),
            seed: plan.design.seed,
            ..Options::new(count)
        }))),
    };
    let mut search = Search::new(&plan, engine, &store.runs()?, !arguments.quiet);
    let of = |index: usize| plan.variants[index].label.as_str();
    arguments.say(&format!(
        "{}: {}\n{count} candidates from {} to {}, at most {cap} runs{}",
        plan.name,
        plan.title,
        of(0),
        of(count - 1),
        match search.engine.runs() {
            0 => String::new(),
            runs => format!("; {runs} are stored already"),
        }
    ));
    if search.next().is_some() {
        let session = Session {
            plan: &plan,
            directory: experiment::beside(&arguments.experiment),
            calibrates: !arguments.no_calibration,
            quiet: true,
            resume: arguments.command_line(),
            runs: format!("at most {cap}"),
            profiles: Vec::new(),
        };
        session.follow(&mut store, &mut search)?;
    }
    drop(store);
    if let Some(why) = &search.broken {
        let why = format!(
            "candidates fail one after the other, so that it is the laboratory that is to blame \
             and none of them: {why}\n  next step: look after it, then go on with\n  {}",
            arguments.command_line()
        );
        return Err(CliError::Environment(why).into());
    }
    let verdict = search.engine.verdict();
    let mut told = Told::new(&plan, &search, verdict, &out);
    told.draw()?;
    if !arguments.no_confirm {
        for pair in told.pairs() {
            let confirmed = confirm::confirm(arguments, &text, factor, pair, &out)?;
            told.confirmed.push(confirmed);
        }
    }
    match arguments.json {
        true => terminal::print_json(&told.json())?,
        false => terminal::print(&told.text())?,
    }
    Ok(match search.engine.next() {
        Step::Done(Ending::EndLacks) => Exit::Environment,
        _ => Exit::Done,
    })
}

/// The place of the factor `name`, which alone has several levels.
fn factor(plan: &Plan, name: &str) -> Result<usize> {
    let named: Vec<&str> = plan.factors.iter().map(|factor| factor.name.as_str()).collect();
    let Some(place) = named.iter().position(|factor| *factor == name) else {
        let known = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
        return mistake(format!(
            "--along {name}: no such factor in the experiment; it has {known}"
        ));
    };
    let others = plan.factors.iter().filter(|factor| factor.name != name);
    if let Some(other) = others.into_iter().find(|factor| factor.levels.len() > 1) {
        return mistake(format!(
            "--along {name}: {} has {} levels too\n  next step: leave one of them, the one in \
             which the change was seen",
            other.name,
            other.levels.len()
        ));
    }
    if plan.factors[place].levels.len() < 3 {
        return mistake(format!(
            "--along {name}: between two levels there is nothing to search\n  next step: compare \
             them with `fwdlab run`"
        ));
    }
    if plan.design.alternate_ns.is_some() {
        return mistake(
            "a bisection measures one level a run: leave `alternate` out of [design]".to_owned(),
        );
    }
    Ok(place)
}

fn mistake<T>(why: String) -> Result<T> {
    Err(CliError::Mistake(why).into())
}

/// A change as a ratio, with its sign.
fn change(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim_end().parse().ok());
    number
        .filter(|percent: &f64| *percent > -100.0 && *percent < 1000.0 && *percent != 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a change is a percentage with its sign, written such as -2%".to_owned())
}

impl Arguments {
    /// Says something unless asked to be quiet.
    fn say(&self, text: &str) {
        if !self.quiet {
            terminal::note(text);
        }
    }

    /// The command that goes on.
    fn command_line(&self) -> String {
        let line = self.overrides.command_line("bisect", &self.experiment, self.out.as_deref());
        let along = experiment::quoted(&self.along);
        let mut line = format!("{line} --along {along} --cap {}", self.cap);
        line += &format!(" --confidence {}", self.confidence);
        for (name, value) in [("change", self.change), ("layout", self.layout)] {
            if let Some(value) = value {
                line += &format!(" --{name}={}%", 100.0 * value);
            }
        }
        let options =
            [(" --no-calibration", self.no_calibration), (" --no-confirm", self.no_confirm)];
        let given = options.iter().filter(|(_, given)| *given);
        given.fold(line, |line, (option, _)| line + option)
    }
}
