//! TRex: `get_stats()` of a stateless client as JSON. Each dump is a run: the packets per second
//! that all ports receive.
//!
//! Dumps of one run, whose counters continue from dump to dump, are refused, in any order. `--column`
//! selects another rate, or a counter for dumps that were written after the traffic; `--only` a port.
//! Source: `trex_port_stats.py` (`to_dict`) of cisco-system-traffic-generator/trex-core, and the
//! keys `total` and `global` of `get_stats()`.

use super::content::{Content, number};
use super::{Benchmark, Fault, Format, Reader, Reading, Request};
use crate::quantity::Quantity;
use serde_json::Value;

pub(super) const READER: Reader =
    Reader { format: Format::Trex, file: "TRex's get_stats()", recognises, read };

/// Members of a port, with quantity and meaning.
const COLUMNS: [(&str, Quantity, &str); 6] = [
    ("rx_pps", Quantity::PACKET_RATE, "received"),
    ("tx_pps", Quantity::PACKET_RATE, "sent"),
    ("rx_bps", Quantity::BIT_RATE, "received"),
    ("tx_bps", Quantity::BIT_RATE, "sent"),
    ("ipackets", Quantity::PACKETS, "received per run"),
    ("opackets", Quantity::PACKETS, "sent per run"),
];
/// Growth of the counters from the first to the last dump that no separate runs have.
const GROWTH: f64 = 1.5;
/// Ratio of the largest and the smallest step of counters that rise evenly.
const EVEN: f64 = 1.2;
/// Number of even steps that the counters of separate runs hardly have.
const MIN_STEPS: usize = 2;
/// The same if the dumps are in another order: sorting them leaves fewer orders to chance.
const MIN_STEPS_UNSORTED: usize = 4;

fn recognises(content: &Content<'_>) -> bool {
    content.has_value(|value| !ports(value).is_empty())
}

/// Ports of a dump, by number.
fn ports(dump: &Value) -> Vec<(&str, &Value)> {
    let Some(members) = dump.as_object() else { return Vec::new() };
    let is_port = |name: &str, port: &Value| {
        name.parse::<u32>().is_ok()
            && ["ipackets", "opackets"].iter().all(|c| port.get(c).is_some())
    };
    let ports = members.iter().filter(|(name, port)| is_port(name, port));
    let mut ports: Vec<(&str, &Value)> = ports.map(|(name, port)| (name.as_str(), port)).collect();
    ports.sort_by_key(|(name, _)| name.parse::<u32>().unwrap_or_default());
    ports
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let requested = request.column.unwrap_or(COLUMNS[0].0);
    let Some((column, quantity, what)) = COLUMNS.into_iter().find(|(name, ..)| *name == requested)
    else {
        return Err(Fault::no_column(requested, &COLUMNS.map(|(name, ..)| name)));
    };
    let mut dumps = Vec::new();
    for (at, dump) in (1..).zip(content.values()) {
        let found = ports(dump);
        if found.is_empty() {
            let what = format!("JSON value {at} has no ports of TRex");
            return Err(Fault::new(what, "give the files of different tools one by one"));
        }
        dumps.push(found);
    }
    refuse_samples(&dumps)?;
    let mut reading = Reading::default();
    let empty = |name: String, is_secondary| Benchmark {
        is_secondary,
        ..Benchmark::new(name, quantity.clone(), what)
    };
    for (at, found) in (1..).zip(&dumps) {
        let mut sum = 0.0;
        for (port, stats) in found {
            let Some(value) = stats.get(column).and_then(Value::as_f64) else {
                let what = format!("port {port} of dump {at} has no `{column}`");
                return Err(Fault::new(what, "give --column with another name"));
            };
            sum += value;
            // Ports that only send receive nothing.
            if value > 0.0 {
                let port = empty(format!("port {port}"), true);
                reading.benchmark(port).values.push(value);
            }
        }
        if sum <= 0.0 && quantity == Quantity::PACKET_RATE {
            let what = format!("`{column}` is 0 at every port of dump {at}");
            let next = "write get_stats() while packets are sent, or give --column ipackets for \
                        packets per run";
            return Err(Fault::new(what, next));
        }
        reading.benchmark(empty("all ports".to_owned(), false)).values.push(sum);
    }
    // A port that idles in some runs has no value per run.
    reading.benchmarks.retain(|one| !one.is_secondary || one.values.len() == dumps.len());
    Ok(reading)
}

/// Refuses dumps whose counters continue, which are samples of one run. Their order in the file may
/// be another one, e.g. by the names of concatenated files.
fn refuse_samples(dumps: &[Vec<(&str, &Value)>]) -> Result<(), Fault> {
    let mut counters: Vec<[f64; 2]> = dumps
        .iter()
        .map(|ports| {
            ["opackets", "ipackets"].map(|counter| {
                ports.iter().filter_map(|(_, port)| number(port, &format!("/{counter}"))).sum()
            })
        })
        .collect();
    let rises = |counters: &[[f64; 2]]| {
        counters.windows(2).all(|pair| (0..2).all(|counter| pair[1][counter] >= pair[0][counter]))
    };
    let is_sorted = rises(&counters);
    counters.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    if !rises(&counters) {
        return Ok(());
    }
    let least_steps = if is_sorted { MIN_STEPS } else { MIN_STEPS_UNSORTED };
    let continues = |counter: usize| {
        let steps = counters.windows(2).map(|pair| pair[1][counter] - pair[0][counter]);
        // The counters stand still between two dumps without traffic.
        let steps: Vec<f64> = steps.filter(|step| *step > 0.0).collect();
        let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
        let most = steps.iter().copied().fold(0.0, f64::max);
        let (first, last) = (counters[0][counter], counters[counters.len() - 1][counter]);
        last > GROWTH * first || steps.len() >= least_steps && most < EVEN * least
    };
    if counters.len() > 1 && continues(0) && continues(1) {
        let what = "the counters continue from dump to dump, as samples of one run do";
        let next = "write one dump per run, call clear_stats() before each run, and let all runs \
                    take equally long";
        return Err(Fault::new(what, next));
    }
    Ok(())
}
