//! Lookups per second of every algorithm, next to the rates that FreeBSD's commit f5baf8bb12f3
//! published for its own algorithms: tables of 8 and 700,000 IPv4 routes, 8 and 100,000 IPv6
//! routes, pinned to one CPU, in interleaved rounds. Numbers of routes as arguments select tables
//! of those sizes in both families instead; names of algorithms select those algorithms; `few` uses
//! eight destinations in place of 2048k.

use fwdlab_netio::affinity;
use fwdlab_packet::Family;
use fwdlab_router::bench::{
    Algorithm, DESTINATIONS, FibFigure, PUBLISHED_TABLES, Pattern, Question, Table, fib,
};
use std::time::Duration;

const ROUNDS: u32 = 9;

fn main() {
    let cpus = affinity::allowed_cpus().expect("CPUs");
    affinity::pin_thread(&cpus[cpus.len() - 1..]).expect("a CPU that is allowed");
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let named = |algorithm: &Algorithm| std::env::args().any(|word| word == algorithm.name());
    let mut algorithms: Vec<Algorithm> = Algorithm::ALL.into_iter().filter(named).collect();
    if algorithms.is_empty() {
        algorithms = Algorithm::ALL.to_vec();
    }
    let both_families =
        |routes| [Family::Inet, Family::Inet6].map(|family| Table { family, routes });
    let tables = match sizes.is_empty() {
        true => PUBLISHED_TABLES.to_vec(),
        false => sizes.into_iter().flat_map(both_families).collect(),
    };
    let few = std::env::args().any(|word| word == "few");
    for table in tables {
        let question = Question {
            tables: vec![table],
            algorithms: algorithms.clone(),
            destinations: if few { 8 } else { DESTINATIONS },
            time: Duration::from_millis(900),
            rounds: ROUNDS,
            seed: 1,
        };
        print(table, &fib(&question));
    }
}

/// Prints one line for each algorithm, with one column for each pattern.
fn print(table: Table, figures: &[FibFigure]) {
    let family = if table.family == Family::Inet { "IPv4" } else { "IPv6" };
    println!("{} {family} routes, million lookups a second: median (min to max)", table.routes);
    for figures in figures.chunks(Pattern::ALL.len()) {
        let first = &figures[0];
        print!("  {:15}", first.algorithm.name());
        for figure in figures {
            let [median, min, max] = spread(&figure.rates_per_second);
            let figure = format!("{} {median:.1} ({min:.1} to {max:.1})", figure.pattern.name());
            print!(" {figure:32}");
        }
        print!(
            "{:8.2} MB {:6.0} ms",
            first.memory_bytes as f64 / 1e6,
            first.build.as_secs_f64() * 1e3
        );
        if let Some(published) = first.published() {
            let millions = published.rate_per_second / 1e6;
            let ratio = spread(&first.rates_per_second)[0] / millions;
            print!("  {} {millions} (x {ratio:.2})", published.name);
        }
        println!();
    }
}

/// Median, minimum and maximum in millions.
fn spread(rates: &[f64]) -> [f64; 3] {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1]].map(|rate| rate / 1e6)
}
