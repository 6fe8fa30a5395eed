//! Bisection of the stored results of a history, without a new run.

use super::Arguments;
use super::report::BisectReport;
use crate::command::history;
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_results::history::{Detection, SeriesResult};
use fwdlab_search::bisect::{Noisy, Options};
use std::fs;

/// Minimum number of revisions to search.
const LEAST: usize = 3;

/// Reports where each series changed, and draws it with `--out`.
///
/// # Errors
/// If no path contains a store, if none of the series can be searched, or if a plot can't be
/// written.
pub(super) fn execute(arguments: &Arguments) -> Result<Exit> {
    let history = history::of(&arguments.stores, arguments.series.as_deref())?;
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    }
    let mut answers: Vec<BisectReport> = Vec::new();
    for series in &history.series {
        let Some(mut report) = posterior(series, arguments) else { continue };
        report.picture = (arguments.out.as_ref())
            .map(|out| out.join(format!("bisect-{}.svg", answers.len() + 1)));
        report.draw()?;
        answers.push(report);
    }
    if answers.is_empty() {
        let why = format!(
            "none of {} series has figures of {LEAST} revisions: there is nothing to search",
            history.series.len()
        );
        return Err(CliError::Mistake(why).into());
    }
    if arguments.json {
        let answers: Vec<_> = answers.iter().map(BisectReport::json).collect();
        terminal::print_json(&serde_json::json!({ "version": 1, "series": answers }))?;
        return Ok(Exit::Done);
    }
    let texts = answers.iter().map(|report| format!("{}\n{}", report.title, report.text()));
    terminal::print(&texts.collect::<Vec<_>>().join("\n\n"))?;
    Ok(Exit::Done)
}

/// The report of one series; `None` if the series is too short.
fn posterior(series: &SeriesResult, arguments: &Arguments) -> Option<BisectReport> {
    let points: Vec<_> = series.points.iter().filter(|point| !point.patched).collect();
    let figures: Vec<(usize, f64)> = (points.iter().enumerate())
        .flat_map(|(at, point)| point.values.iter().map(move |&value| (at, value)))
        .filter(|(_, value)| *value > 0.0)
        .collect();
    let seen = |at: usize| figures.iter().any(|figure| figure.0 == at);
    if points.len() < LEAST || !(0..points.len()).all(seen) {
        return None;
    }
    let Spread { run, between } = spread(&figures, points.len(), series);
    let layout = arguments.layout.unwrap_or(between);
    let options = Options {
        confidence: arguments.confidence / 100.0,
        known: arguments.change,
        layout,
        ..Options::new(points.len())
    };
    let search = Noisy::of_figures(options, &figures, run);
    let mut remarks = vec![format!(
        "what differs between revisions beside a change (layout, days): {:.2} %, {}",
        100.0 * layout,
        match arguments.layout {
            Some(_) => "as given",
            None => "from the differences of neighbours",
        }
    )];
    if let Detection::Done { detectable, .. } = series.detection {
        remarks.push(format!(
            "a step halfway of {:.2} % would have been seen nine times of ten",
            100.0 * detectable
        ));
    }
    if !series.caption.is_empty() {
        remarks.push(series.caption.clone());
    }
    let verdict = search.verdict();
    if let Some((before, after)) = verdict.pair().filter(|_| verdict.ending.is_some()) {
        let (before, after) = (&points[before].revision, &points[after].revision);
        remarks.push(format!("next step: measure {before} and {after} in one experiment"));
    }
    let label = |point: &&fwdlab_results::history::PointResult| match &point.told_apart_by {
        Some(by) => format!("{} ({by})", point.revision),
        None => point.revision.clone(),
    };
    Some(BisectReport {
        title: series.title.clone(),
        testbed: series.testbed.clone(),
        labels: points.iter().map(label).collect(),
        probabilities: search.probabilities(),
        runs: points.iter().map(|point| point.n).collect(),
        verdict,
        remarks,
        ..BisectReport::default()
    })
}

struct Spread {
    /// Standard deviation of a run's logarithm.
    run: f64,
    /// Additional standard deviation between revisions.
    between: f64,
}

/// Estimates the scatter of runs and of revisions. Without several runs of one revision the two
/// can't be separated, and all scatter is attributed to runs.
fn spread(figures: &[(usize, f64)], points: usize, series: &SeriesResult) -> Spread {
    let of = |at: usize| -> Vec<f64> {
        figures.iter().filter(|figure| figure.0 == at).map(|figure| figure.1.ln()).collect()
    };
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let groups: Vec<Vec<f64>> = (0..points).map(of).collect();
    let squares: f64 = (groups.iter())
        .map(|logs| logs.iter().map(|log| (log - mean(logs)).powi(2)).sum::<f64>())
        .sum();
    let freedom = figures.len() - points;
    // Neighbours differ only by noise, except at a change; the median of the differences ignores
    // changes. 0.6745 is the median of the absolute value of a standard normal variable.
    let mut steps: Vec<f64> =
        groups.windows(2).map(|two| (mean(&two[1]) - mean(&two[0])).abs()).collect();
    steps.sort_by(f64::total_cmp);
    let from_steps = steps[steps.len() / 2] / 0.6745 / 2.0_f64.sqrt();
    let noise = match series.detection {
        Detection::Done { noise, .. } => noise,
        _ => from_steps,
    };
    if freedom == 0 {
        return Spread { run: noise, between: 0.0 };
    }
    let run = (squares / freedom as f64).sqrt();
    let of_means = run.powi(2) * points as f64 / figures.len() as f64;
    Spread { run, between: (noise.powi(2) - of_means).max(0.0).sqrt() }
}
