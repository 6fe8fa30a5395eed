//! `fwdlab search`: highest rates within the tolerated loss, of an experiment's variants or of
//! anything that a program measures.

use super::{run, send};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::progress::Trials;
use crate::signal::Stop;
use anyhow::{Context, Result};
use clap::{Args as _, FromArgMatches as _};
use fwdlab_bench::TrialReport;
use fwdlab_model::record::{MethodRecord, MethodTrial, tolerated};
use fwdlab_model::spec::link_bps;
use fwdlab_model::units::{FRAME_MAX, FRAME_MIN, FrameSize, line_pps};
use fwdlab_results::report;
use fwdlab_results::report::sections::{GoalFound, Method, MethodRun};
use fwdlab_search::{Ending, Goal, Limits, Outcome, PRESETS, Search, Step, Trial};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Search for the highest rates within the tolerated packet loss (RFC 9971).
///
/// With an experiment file, each run of its variants is a search, and the report compares the rates
/// found. Without one, a program after `--` carries out each trial. In its arguments {load} is
/// replaced with packets per second and {seconds} with the length of the trial. It prints the
/// numbers of packets offered and forwarded: two numbers on its last line, or a JSON object with
/// `offered` and `forwarded`. A trial whose program fails is invalid and is repeated.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab search experiments/firewalls.toml
  fwdlab search experiments/firewalls.toml --goal pdr --blocks 10
  fwdlab search --max-load 14.88Mpps -- ./trial.sh {load} {seconds}
  fwdlab search --link-speed 10Gbit/s --frame-size 64 -- ./trial.sh {load} {seconds}
  fwdlab search --goal ndr --width 1 --seconds 0.5 --max-load 2Mpps --repeats 10 --json -- \\
      ssh rack ./one-trial --pps {load} --time {seconds}")]
pub(crate) struct Arguments {
    /// The experiment file (- is standard input); not needed if a program measures
    #[arg(value_name = "EXPERIMENT.toml", required_unless_present = "program")]
    experiment: Option<PathBuf>,
    /// Goal of the search; may be given several times
    #[arg(long, value_name = "GOAL", value_delimiter = ',', value_parser = PRESETS, default_value = "ndr,pdr")]
    goal: Vec<String>,
    /// Directory of store and report of an experiment [default: results/NAME-search]
    #[arg(long, short, value_name = "DIR", conflicts_with = "program")]
    out: Option<PathBuf>,
    /// Number of blocks; overrides the file
    #[arg(long, value_name = "N", conflicts_with = "program")]
    blocks: Option<u32>,
    /// Override a value of the experiment file, such as trial.duration=5s; may be given several
    /// times
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "program")]
    set: Vec<String>,
    /// Show no progress, only the results
    #[arg(long, short)]
    quiet: bool,
    /// Minimum load [default: a thousandth of the maximum]
    #[arg(long, value_name = "RATE", value_parser = send::rate, requires = "program")]
    min_load: Option<f64>,
    /// Maximum load [default: the line rate]
    #[arg(long, value_name = "RATE", value_parser = send::rate, requires = "program")]
    max_load: Option<f64>,
    /// Speed of the link that carries the program's load, such as 10Gbit/s; the sum of several
    /// links
    #[arg(long, value_name = "RATE", value_parser = link_bps, requires_all = ["program", "frame_size"])]
    link_speed: Option<u64>,
    /// Size of the program's frames with FCS, at least 64, or a mix, such as imix
    #[arg(long, value_name = "BYTES", value_parser = frame_size, requires = "program")]
    frame_size: Option<FrameSize>,
    /// Length of the program's full-length trials, in seconds; the durations that decide about a
    /// load keep their ratio to it
    #[arg(long, value_name = "S", value_parser = send::seconds, requires = "program")]
    seconds: Option<Duration>,
    /// Maximum width of the result interval, in percent
    #[arg(long, value_name = "PERCENT", requires = "program")]
    width: Option<f64>,
    /// Number of searches, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, requires = "program", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    #[command(flatten)]
    form: FormArguments,
    /// Program that carries out a trial, with its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "experiment")]
    program: Vec<String>,
}

/// Runs the search.
///
/// # Errors
/// Mistakes in the arguments, errors of a run, an interruption.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    match &arguments.experiment {
        Some(experiment) => of_experiment(arguments, experiment),
        None => of_program(arguments),
    }
}

/// Runs the experiment as `fwdlab run` does, with a search in each run.
fn of_experiment(arguments: &Arguments, experiment: &std::path::Path) -> Result<Exit> {
    let name = experiment.file_stem().unwrap_or_default().to_string_lossy();
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from("results").join(format!("{name}-search")));
    let mut line: Vec<std::ffi::OsString> = vec!["run".into(), experiment.into()];
    line.extend(["--out".into(), out.into_os_string()]);
    line.extend(["--search".into(), arguments.goal.join(",").into()]);
    line.extend(arguments.blocks.iter().flat_map(|n| ["--blocks".into(), n.to_string().into()]));
    line.extend(arguments.set.iter().flat_map(|set| ["--set".into(), set.into()]));
    line.extend(arguments.quiet.then(|| "--quiet".into()));
    line.extend(arguments.form.name().iter().flat_map(|name| ["--format".into(), name.into()]));
    let command = run::Arguments::augment_args(clap::Command::new("run"));
    let run = run::Arguments::from_arg_matches(&command.try_get_matches_from(line)?)?;
    run::execute(&run)
}

fn of_program(arguments: &Arguments) -> Result<Exit> {
    let stop = Stop::on_signals().context("listening to signals")?;
    let goals: Vec<Goal> = arguments.goal.iter().filter_map(|name| goal(arguments, name)).collect();
    let line = arguments.link_speed.zip(arguments.frame_size);
    let link = line.map(|(bps, frame)| line_pps(bps, frame) as u64);
    let requested = arguments.max_load.map(|load| load.round() as u64);
    let Some(max_load) = requested.into_iter().chain(link).min() else {
        let why =
            "a program's loads have no end: give --max-load, or --link-speed and --frame-size";
        return Err(CliError::Mistake(why.to_owned()).into());
    };
    let least = goals.iter().map(Goal::least_load).max().unwrap_or(1);
    let min_load = match arguments.min_load {
        Some(load) => load.round() as u64,
        None => (max_load / 1000).max(least),
    };
    let limits = Limits { link, ..Limits::between(min_load, max_load) };
    let (mut records, mut failed) = (Vec::new(), None);
    for number in 1..=arguments.repeats {
        let search = Search::new(goals.clone(), limits.clone()).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            CliError::Mistake(lines.join("\n"))
        })?;
        let of = if arguments.repeats > 1 {
            format!("search {number} of {}, ", arguments.repeats)
        } else {
            String::new()
        };
        match carry_out(arguments, search, &limits, &of, &stop) {
            Ok(record) => records.push(record),
            // Searches that are finished are printed first.
            Err(error) if !records.is_empty() => failed = Some(error),
            Err(error) => return Err(error),
        }
        if stop.requested() || failed.is_some() {
            break;
        }
    }
    let label = arguments.program.first().map_or("", String::as_str);
    let method = Method::of_searches(label, &goals, &records, arguments.frame_size, requested);
    arguments.form.print(&report::searches("Throughput search", &method))?;
    if let Some(error) = failed {
        return Err(error);
    }
    let has_rates = |run: &MethodRun| run.found.iter().all(GoalFound::has_rate);
    Ok(match method.runs.iter().all(has_rates) {
        _ if stop.requested() => Exit::Interrupted,
        true => Exit::Done,
        false => Exit::Untrustworthy,
    })
}

/// Parses a frame size, or a mix of sizes.
fn frame_size(text: &str) -> Result<FrameSize, String> {
    match text.parse::<u16>() {
        Ok(bytes) if (FRAME_MIN..=FRAME_MAX).contains(&bytes) => Ok(FrameSize::of(bytes)),
        Ok(_) => Err(format!("a frame has {FRAME_MIN} to {FRAME_MAX} bytes")),
        Err(_) => FrameSize::parse(text),
    }
}

/// The named goal, with the requested lengths and width.
fn goal(arguments: &Arguments, name: &str) -> Option<Goal> {
    let mut goal = Goal::preset(name)?;
    if let Some(percent) = arguments.width {
        goal.width = percent / 100.0;
    }
    if let Some(seconds) = arguments.seconds {
        let longer = seconds.as_nanos() as f64 / goal.final_ns as f64;
        let scaled = |ns: u64| (ns as f64 * longer).round().max(1.0) as u64;
        goal.initial_ns = scaled(goal.initial_ns);
        goal.final_ns = scaled(goal.final_ns);
        goal.sum_ns = scaled(goal.sum_ns);
    }
    Some(goal)
}

fn carry_out(
    arguments: &Arguments,
    mut search: Search,
    limits: &Limits,
    of: &str,
    stop: &Stop,
) -> Result<MethodRecord> {
    let began = Instant::now();
    let mut record = MethodRecord {
        min_load: limits.min_load,
        max_load: limits.max_load,
        link: limits.link,
        ..MethodRecord::default()
    };
    let mut shown = Trials::new(arguments.quiet);
    let mut invalid_trials = 0;
    let tolerated =
        tolerated(&search.result().goals.iter().map(|g| g.goal.clone()).collect::<Vec<_>>());
    while let Step::Measure(request) = search.next() {
        let at_ns = began.elapsed().as_nanos() as u64;
        let measured = measure(&arguments.program, request);
        // The program may have been interrupted, too.
        if stop.requested() {
            search.end(Ending::Cancelled);
            break;
        }
        let trial = MethodTrial { at_ns, ..measured? };
        let outcome = trial.outcome(tolerated);
        let invalid = match &outcome {
            Outcome::Valid(_) => None,
            Outcome::Invalid(why) => Some(why.clone()),
        };
        invalid_trials += u32::from(invalid.is_some());
        search.record(outcome);
        let report = TrialReport::new(record.trials.len() as u32 + 1, &trial);
        let report = TrialReport { invalid, invalid_trials, ..report };
        shown.show(of, &report.with_bounds(&search));
        record.trials.push(trial);
    }
    record.ended = search.ending().cloned();
    Ok(record)
}

/// Carries out one trial with the program.
fn measure(program: &[String], request: Trial) -> Result<MethodTrial> {
    let seconds = request.duration_ns as f64 / 1e9;
    let filled = |word: &String| {
        word.replace("{load}", &request.load.to_string())
            .replace("{seconds}", &format!("{seconds}"))
    };
    let words: Vec<String> = program.iter().map(filled).collect();
    let output = Command::new(&words[0]).args(&words[1..]).output().map_err(|error| {
        CliError::Mistake(format!("{}: {error}\n  next step: name a program after `--`", words[0]))
    })?;
    let trial = MethodTrial {
        load: request.load,
        duration_ns: request.duration_ns,
        window_ns: request.duration_ns,
        ..MethodTrial::default()
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or_default();
        return Ok(MethodTrial { invalid: Some(format!("{}: {last}", output.status)), ..trial });
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    match counts(&stdout) {
        Ok((offered, forwarded)) => {
            Ok(MethodTrial { offered, forwarded: without_strays(offered, forwarded), ..trial })
        }
        Err(what) => Err(CliError::Mistake(format!(
            "{} {what}: `{}`\n  next step: let its last line be `OFFERED FORWARDED`, or a JSON \
             object with `offered` and `forwarded`",
            words[0],
            stdout.lines().last().unwrap_or_default()
        ))
        .into()),
    }
}

/// Maximum number of foreign packets on a live link that a generator may count as its own, and
/// their maximum share of the packets offered: T-Rex counts up to 12 more than it sent in 13 % of
/// published trials.
const STRAYS: (u64, f64) = (16, 1e-5);

/// Forwarded packets without the few that the generator did not send. A larger surplus makes the
/// trial invalid.
fn without_strays(offered: u64, forwarded: u64) -> u64 {
    let most = STRAYS.0.max((offered as f64 * STRAYS.1) as u64);
    let is_stray = forwarded > offered && forwarded - offered <= most.min(offered / 100);
    if is_stray { offered } else { forwarded }
}

/// Packets offered and forwarded, from the last line of a program's output or from all of it. The
/// error describes the output.
fn counts(output: &str) -> Result<(u64, u64), String> {
    let none = || "printed no counts".to_owned();
    let last = output.trim_end().lines().last().ok_or_else(none)?;
    let object = [last, output].into_iter().find_map(|text| {
        let value: Value = serde_json::from_str(text).ok()?;
        value.is_object().then_some(value)
    });
    if let Some(object) = object {
        let count = |name: &str| {
            let value = object.get(name).ok_or_else(|| format!("printed no `{name}`"))?;
            whole(value).ok_or_else(|| format!("printed a value of `{name}` that is no count"))
        };
        return Ok((count("offered")?, count("forwarded")?));
    }
    let number = |word: &str| {
        let float = || whole(&serde_json::from_str(word).ok()?);
        word.parse().ok().or_else(float)
    };
    let mut words = last.split_whitespace().map(number);
    match (words.next(), words.next(), words.next()) {
        (Some(Some(offered)), Some(Some(forwarded)), None) => Ok((offered, forwarded)),
        _ => Err(none()),
    }
}

/// The number, if it is a whole one; programs also write `10000.0`.
fn whole(value: &Value) -> Option<u64> {
    /// Up to here a float represents every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || value.as_f64().filter(|x| x.fract() == 0.0 && (0.0..=EXACT).contains(x));
    value.as_u64().or_else(|| float().map(|x| x as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_strays_removes_a_small_surplus() {
        assert_eq!(without_strays(1_000_000, 1_000_012), 1_000_000);
        assert_eq!(without_strays(1_000_000, 999_000), 999_000);
        assert_eq!(without_strays(1_000_000, 1_000_017), 1_000_017);
        assert_eq!(without_strays(100, 102), 102);
    }

    #[test]
    fn counts_reads_the_last_line_or_a_json_object() {
        assert_eq!(counts("hello\n1000 990\n"), Ok((1000, 990)));
        assert_eq!(counts("{\"offered\": 5, \"forwarded\": 4}"), Ok((5, 4)));
        assert_eq!(counts("{\n\"offered\": 5,\n\"forwarded\": 4\n}\n"), Ok((5, 4)));
        for wrong in ["", "1000", "1 2 3", "a b", "1000 -1", "1.5 1"] {
            assert_eq!(counts(wrong).unwrap_err(), "printed no counts", "{wrong}");
        }
    }

    #[test]
    fn counts_accepts_whole_numbers_written_as_floats() {
        assert_eq!(counts("{\"offered\": 2e3, \"forwarded\": 1980.0}"), Ok((2000, 1980)));
        assert_eq!(counts("2000.0 1.98e3\n"), Ok((2000, 1980)));
        for (wrong, expected) in [
            ("{\"offered\": 5}", "printed no `forwarded`"),
            (
                "{\"offered\": 5.5, \"forwarded\": 4}",
                "printed a value of `offered` that is no count",
            ),
            (
                "{\"offered\": 5, \"forwarded\": -4}",
                "printed a value of `forwarded` that is no count",
            ),
            (
                "{\"offered\": 1e17, \"forwarded\": 4}",
                "printed a value of `offered` that is no count",
            ),
        ] {
            assert_eq!(counts(wrong).unwrap_err(), expected);
        }
    }
}
