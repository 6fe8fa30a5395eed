//! testpmd (DPDK): output of `show port stats` and the forward statistics that `stop` and `quit`
//! print.
//!
//! A run ends with its accumulated forward statistics. Its value is the rate received by all ports,
//! the mean of the `show port stats` that preceded, without the first, and without those before and
//! after the traffic; otherwise the number of packets received.
//! `--column` selects `tx` instead of `rx`, or packets; `--only` a port. Source: the testpmd user
//! guide, `app/test-pmd/config.c` (`nic_stats_display`) and `testpmd.c` (`fwd_stats_display`) of
//! DPDK.

use super::content::Content;
use super::{Benchmark, Fault, Format, Reader, Reading, Request};
use crate::quantity::Quantity;
use std::collections::BTreeMap;

pub(super) const READER: Reader =
    Reader { format: Format::Testpmd, file: "testpmd", recognises, read };

const NIC: &str = "NIC statistics for port";
const FORWARD: &str = "Forward statistics for port";
const ACCUMULATED: &str = "Accumulated forward statistics for all ports";
const FULL: &str = "print `show port stats` more often while packets are sent, or give --column \
                    rx_packets for packets per run";
const COLUMNS: [&str; 4] = ["rx_pps", "tx_pps", "rx_packets", "tx_packets"];

/// A block of statistics.
#[derive(Clone, Debug, Default)]
struct Stats {
    line: usize,
    values: BTreeMap<&'static str, f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nic(u32),
    Forward(u32),
    Accumulated,
}

/// A run in the order of the text.
#[derive(Debug, Default)]
struct Run {
    /// Statistics of `show port stats`, by port.
    shown: BTreeMap<u32, Vec<Stats>>,
    /// Forward statistics, by port.
    forwarded: BTreeMap<u32, Stats>,
    /// Accumulated forward statistics. `None` until the run ends.
    total: Option<Stats>,
}

fn recognises(content: &Content<'_>) -> bool {
    content.text().lines().any(|line| {
        [NIC, FORWARD, ACCUMULATED].iter().any(|title| line.contains(title))
            && line.trim_start().starts_with(['#', '-', '+'])
    })
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    if let Some(column) = request.column.filter(|column| !COLUMNS.contains(column)) {
        return Err(Fault::no_column(column, &COLUMNS));
    }
    let mut runs = runs(content.text())?;
    let mut reading = Reading::default();
    let is_open = runs.last().is_some_and(|run| run.total.is_none());
    if let Some(open) = runs.pop_if(|_| is_open) {
        // Statistics of an idle device, before the first run or after the last one.
        if runs.is_empty() || open.shown.values().flatten().any(|s| rate(s, "rx_pps") > 0.0) {
            let what = "the last run has no accumulated forward statistics";
            let next = "record the output until `stop` or `quit`, which end a run";
            return Err(Fault::new(what, next));
        }
    }
    let has_rates = |run: &Run| run.shown.values().any(|shown| shown.len() > 1);
    let column = match request.column {
        Some(column) => column,
        None if runs.iter().all(has_rates) => COLUMNS[0],
        None if !runs.iter().any(has_rates) => COLUMNS[2],
        None => {
            let what = "some runs have two `show port stats` or more, and some have not";
            return Err(Fault::new(what, "give --column rx_packets for packets per run"));
        }
    };
    let is_rate = column.ends_with("pps");
    let (quantity, what) = match column {
        "rx_pps" => (Quantity::PACKET_RATE, "received"),
        "tx_pps" => (Quantity::PACKET_RATE, "sent"),
        "rx_packets" => (Quantity::PACKETS, "received per run"),
        _ => (Quantity::PACKETS, "sent per run"),
    };
    for (number, run) in (1..).zip(&runs) {
        let of_ports = if is_rate {
            let left_out = run.outside_traffic().iter().sum::<usize>() * run.shown.len();
            reading.leave_out("port statistics outside the traffic or at its edges", left_out);
            run.rates(column, number)?
        } else {
            run.packets(column)
        };
        let sum: f64 = match (&run.total, is_rate) {
            (Some(total), false) => rate(total, column),
            _ => of_ports.values().sum(),
        };
        let ports = of_ports.into_iter().filter(|(_, value)| *value > 0.0);
        let ports = ports.map(|(port, value)| (format!("port {port}"), true, value));
        for (name, is_secondary, value) in ports.chain([("all ports".to_owned(), false, sum)]) {
            let empty = Benchmark::new(name, quantity.clone(), what);
            let benchmark = reading.benchmark(Benchmark { is_secondary, ..empty });
            benchmark.values.push(value);
        }
    }
    reading.benchmarks.retain(|one| !one.is_secondary || one.values.len() == runs.len());
    let shown = runs.iter().flat_map(|run| run.shown.values()).flatten().count();
    reading.parts = (shown > 0).then_some(("port statistics", shown));
    if !is_rate {
        let note =
            "testpmd prints no time of a run: packets are comparable if all runs took as long";
        reading.notes.push(note.to_owned());
    }
    Ok(reading)
}

impl Run {
    /// Numbers of statistics of each port to leave out at the start (behind the first one) and at the
    /// end: periods without packets at any port, and the period next to them, in which the
    /// traffic began or ended. Periods without packets between others are part of the run.
    fn outside_traffic(&self) -> [usize; 2] {
        let is_idle = |stats: &&Stats| rate(stats, "rx_pps") == 0.0 && rate(stats, "tx_pps") == 0.0;
        let later = self.shown.values().map(|shown| shown.get(1..).unwrap_or_default());
        let used: Vec<&[Stats]> =
            later.filter(|later| !later.iter().all(|stats| is_idle(&stats))).collect();
        let with_edge = |idle: usize| if idle == 0 { 0 } else { idle + 1 };
        let before = used.iter().map(|later| later.iter().take_while(is_idle).count()).min();
        let after = used.iter().map(|later| later.iter().rev().take_while(is_idle).count()).min();
        [before, after].map(|idle| with_edge(idle.unwrap_or_default()))
    }

    /// Mean rate of each port. The first statistics of a run are not of the run alone: their rate is
    /// 0, or since the statistics of the run before.
    fn rates(&self, column: &str, number: usize) -> Result<BTreeMap<u32, f64>, Fault> {
        let next = "give --column rx_packets for packets per run, or print them twice in each run";
        if self.shown.is_empty() {
            return Err(Fault::new(format!("run {number} has no `show port stats`"), next));
        }
        let [before, after] = self.outside_traffic();
        let mut rates = BTreeMap::new();
        for (port, shown) in &self.shown {
            let (Some(first), later @ [_, ..]) =
                (shown.first(), shown.get(1..).unwrap_or_default())
            else {
                let line = shown.first().map_or(1, |stats| stats.line);
                let what = format!("run {number} has one `show port stats` of port {port}");
                return Err(Fault::at(line, what, next));
            };
            let end = later.len().saturating_sub(after);
            let Some(within @ [_, ..]) = later.get(before..end) else {
                let what = format!("run {number} has no period of port {port} full of traffic");
                return Err(Fault::at(first.line, what, FULL));
            };
            let known: Option<Vec<f64>> =
                within.iter().map(|stats| stats.values.get(column).copied()).collect();
            let Some(known) = known else {
                let what = format!("port {port} has no `Throughput (since last show)`");
                return Err(Fault::at(first.line, what, next));
            };
            rates.insert(*port, known.iter().sum::<f64>() / known.len() as f64);
        }
        Ok(rates)
    }

    fn packets(&self, column: &str) -> BTreeMap<u32, f64> {
        self.forwarded.iter().map(|(port, stats)| (*port, rate(stats, column))).collect()
    }
}

fn rate(stats: &Stats, column: &str) -> f64 {
    stats.values.get(column).copied().unwrap_or_default()
}

/// Splits the text into runs; the last one may be open.
fn runs(text: &str) -> Result<Vec<Run>, Fault> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open: Option<(Open, Stats)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let title = match () {
            () if line.contains(ACCUMULATED) => Some(Open::Accumulated),
            () if line.contains(NIC) => port(line, NIC).map(Open::Nic),
            () if line.contains(FORWARD) => port(line, FORWARD).map(Open::Forward),
            () => None,
        };
        if let Some(title) = title {
            if let Some((_, stats)) = &open {
                return Err(unfinished(stats.line));
            }
            open = Some((title, Stats { line: number, ..Stats::default() }));
        } else if is_border(line) {
            let Some((title, stats)) = open.take() else { continue };
            if runs.last().is_none_or(|run| run.total.is_some()) {
                runs.push(Run::default());
            }
            let Some(run) = runs.last_mut() else { continue };
            match title {
                Open::Nic(port) => run.shown.entry(port).or_default().push(stats),
                Open::Forward(port) => {
                    run.forwarded.insert(port, stats);
                }
                Open::Accumulated => run.total = Some(stats),
            }
        } else if let Some((_, stats)) = &mut open {
            add(line, number, stats)?;
        }
    }
    match open {
        Some((_, stats)) => Err(unfinished(stats.line)),
        None => Ok(runs),
    }
}

fn unfinished(line: usize) -> Fault {
    Fault::at(line, "these statistics have no end", "record the output of testpmd whole")
}

fn port(line: &str, title: &str) -> Option<u32> {
    let (_, rest) = line.split_once(title)?;
    rest.split_whitespace().next()?.parse().ok()
}

/// True for the line that ends a block: one character, repeated.
fn is_border(line: &str) -> bool {
    let line = line.trim();
    line.len() > 40 && ['#', '-', '+'].iter().any(|border| line.chars().all(|c| c == *border))
}

/// Adds the values of a line: `RX-packets: 12  RX-missed: 0  RX-bytes: 720`.
fn add(line: &str, number: usize, stats: &mut Stats) -> Result<(), Fault> {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let name = match word {
            "RX-packets:" => "rx_packets",
            "TX-packets:" => "tx_packets",
            "Rx-pps:" => "rx_pps",
            "Tx-pps:" => "tx_pps",
            _ => continue,
        };
        let Some(value) = words.next().and_then(|value| value.parse::<u64>().ok()) else {
            return Err(Fault::at(number, format!("`{word}` has no number"), "record it again"));
        };
        stats.values.insert(name, value as f64);
    }
    Ok(())
}
