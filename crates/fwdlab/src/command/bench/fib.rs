//! `fwdlab bench fib`: lookups per second of the software router's tables.

use super::Spread;
use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal::{self, HEADING, styled, wrap};
use crate::value_enum;
use anyhow::Result;
use fwdlab_bench::BenchError;
use fwdlab_netio::affinity;
use fwdlab_packet::Family;
use fwdlab_router::bench::{
    self as tables, Algorithm, DESTINATIONS, FibFigure, PUBLISHED_TABLES, Pattern, Question, Table,
};
use fwdlab_router::routes::synthesis::ROUTES_MAX;
use serde_json::{Value, json};
use std::time::Duration;

/// Rounds in which the algorithms take turns.
const ROUNDS: u32 = 9;

/// Measure how many addresses per second the forwarding tables of the software router look up: on
/// one CPU, in rounds in which the algorithms take turns, with routes and destinations from a fixed
/// seed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab bench fib
  fwdlab bench fib --routes 100000 --family inet6
  fwdlab bench fib --fib poptrie --fib dir24_8 --seconds 5 --json")]
pub(crate) struct Arguments {
    /// Routes in the table [default: 8 and 700000 for inet, 8 and 100000 for inet6]
    #[arg(long, value_name = "N", value_parser = routes)]
    routes: Option<usize>,
    /// Address family [default: both]
    #[arg(long, value_parser = value_enum::any::<Family>())]
    family: Option<Family>,
    /// Algorithm, can be given several times [default: all]
    #[arg(long, value_parser = value_enum::any::<Algorithm>(), alias = "algorithm", value_name = "FIB")]
    fib: Vec<Algorithm>,
    /// Time for each algorithm, table and pattern, in seconds
    #[arg(long, default_value_t = 0.9, value_name = "S", value_parser = super::seconds)]
    seconds: f64,
    /// Number of addresses that are looked up repeatedly
    #[arg(long, default_value_t = DESTINATIONS as u32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    destinations: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn routes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(routes) if (1..=ROUTES_MAX).contains(&routes) => Ok(routes),
        _ => Err(format!("a number from 1 to {ROUTES_MAX}")),
    }
}

/// Measures, on the last CPU that the program may use.
///
/// # Errors
/// If none of the requested algorithms supports the family.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let question = question(arguments)?;
    let cpus = affinity::allowed_cpus().map_err(BenchError::from)?;
    affinity::pin_thread(&cpus[cpus.len().saturating_sub(1)..]).map_err(BenchError::from)?;
    let mut figures = Vec::new();
    for table in &question.tables {
        // One table at a time: each result is printed as soon as it is measured.
        let measured = tables::fib(&Question { tables: vec![*table], ..question.clone() });
        if !arguments.json {
            terminal::print(&text(*table, &measured, terminal::width()))?;
        }
        figures.extend(measured);
    }
    if arguments.json {
        terminal::print_json(&figures.iter().map(json).collect())?;
    }
    affinity::pin_thread(&cpus).map_err(BenchError::from)?;
    Ok(Exit::Done)
}

fn question(arguments: &Arguments) -> Result<Question> {
    let tables: Vec<Table> = match arguments.routes {
        Some(routes) => Family::ALL.map(|family| Table { family, routes }).into(),
        None => PUBLISHED_TABLES.into(),
    };
    let mut algorithms = arguments.fib.clone();
    if algorithms.is_empty() {
        algorithms = Algorithm::ALL.into();
    }
    let known = |table: &Table| algorithms.iter().any(|one| one.knows(table.family));
    let tables: Vec<Table> = tables
        .into_iter()
        .filter(|table| {
            arguments.family.is_none_or(|family| family == table.family) && known(table)
        })
        .collect();
    if tables.is_empty() {
        let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
        let why = format!("{} is for the other family only", names.join(", "));
        return Err(CliError::Mistake(why).into());
    }
    Ok(Question {
        tables,
        algorithms,
        destinations: arguments.destinations as usize,
        time: Duration::from_secs_f64(arguments.seconds),
        rounds: ROUNDS,
        seed: 1,
    })
}

/// A table with its algorithms, one line per pattern.
fn text(table: Table, figures: &[FibFigure], width: usize) -> String {
    let heading = format!("{} routes, {}", table.routes, table.family);
    let mut text =
        wrap(&format!("{}: million lookups a second", styled(&heading, HEADING)), width, "  ");
    for figure in figures {
        let Spread { median, min, max } = Spread::of(&figure.rates_per_second);
        let [median, min, max] = [median, min, max].map(|rate| rate / 1e6);
        let mut line = format!(
            "  {:14} {:6} median {median:6.1}  min {min:6.1}  max {max:6.1}",
            figure.algorithm.name(),
            figure.pattern.name(),
        );
        if figure.pattern == Pattern::Single {
            line += &format!("  {:.1} MB", figure.memory_bytes as f64 / 1e6);
            if let Some(published) = figure.published() {
                let millions = published.rate_per_second / 1e6;
                line += &format!("  (published: {} {millions:.1})", published.name);
            }
        }
        text += &wrap(&line, width, "                 ");
    }
    text
}

fn json(figure: &FibFigure) -> Value {
    let Spread { median, min, max } = Spread::of(&figure.rates_per_second);
    let published = figure.published().filter(|_| figure.pattern == Pattern::Single);
    json!({
        "family": figure.table.family,
        "routes": figure.table.routes,
        "algorithm": figure.algorithm.name(),
        "pattern": figure.pattern.name(),
        "rates_per_second": figure.rates_per_second,
        "median_per_second": median,
        "min_per_second": min,
        "max_per_second": max,
        "memory_bytes": figure.memory_bytes,
        "build_ns": figure.build.as_nanos() as u64,
        "published_per_second": published.map(|published| published.rate_per_second),
        "published_name": published.map(|published| published.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parsed;

    fn question_of(words: &[&str]) -> Result<Question> {
        question(&parsed(words)?)
    }

    #[test]
    fn question_selects_tables_by_family_size_and_algorithm() {
        let sizes = |words: &[&str]| {
            let tables = question_of(words).expect("a question").tables;
            tables.iter().map(|table| (table.family.name(), table.routes)).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]).len(), 4);
        assert_eq!(sizes(&["--family", "inet"]), [("inet", 8), ("inet", 700_000)]);
        assert_eq!(sizes(&["--routes", "50"]), [("inet", 50), ("inet6", 50)]);
        assert_eq!(sizes(&["--routes", "50", "--fib", "multibit"]), [("inet6", 50)]);
        assert!(question_of(&["--family", "inet6", "--fib", "dir24_8"]).is_err());
        assert!(question_of(&["--routes", "0"]).is_err());
        assert!(question_of(&["--routes", "1000001"]).is_err());
    }
}
