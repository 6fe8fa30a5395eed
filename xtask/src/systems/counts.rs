//! Counts of one kernel under several QEMUs, side by side.
//!
//! The packets' own functions are compared: those that are executed below the poll of a data
//! interface, as the stacks of `fwdlab count --calls` show. Clock ticks and softirqs come by real
//! time, so that their functions differ from one run to the next under the same QEMU, too.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Caller of everything that is done for received packets (`drivers/net/virtio_net.c`).
const RECEIVES: &str = "virtnet_poll";
/// Share of a function's instructions that must be below [`RECEIVES`].
const SHARE: f64 = 0.999;
/// Largest difference between two QEMUs, instructions per packet.
const LIMIT: f64 = 0.1;
/// Fewest functions to compare: fewer were not the path of a packet.
const FEWEST: usize = 40;

/// Instructions per packet by function, under one QEMU.
pub(crate) struct Counts {
    system: String,
    total: f64,
    functions: BTreeMap<String, f64>,
}

impl Counts {
    /// Reads what `fwdlab count --calls --json` has written of one kernel.
    ///
    /// # Errors
    /// When a file can't be read or contains no counts.
    pub(crate) fn read(system: &str, json: &Path, folded: &Path) -> Result<Counts> {
        let read = |path: &Path| fs::read_to_string(path).context(path.display().to_string());
        let json: Value = serde_json::from_str(&read(json)?)?;
        let folded = read(folded)?;
        let pure = forwarding(&folded);
        let functions = json["functions"].as_array().context("no functions were counted")?;
        let cost = |row: &Value| {
            let name = row["name"].as_str()?;
            let is_pure = pure.contains(name);
            is_pure.then_some((name.to_owned(), row["instructions"][0].as_f64()?))
        };
        let functions = functions.iter().filter_map(cost).collect();
        let total = json["kernels"][0]["instructions"].as_f64().context("no kernel was counted")?;
        Ok(Counts { system: system.to_owned(), total, functions })
    }
}

/// Functions whose instructions are nearly all below [`RECEIVES`], from folded stacks.
fn forwarding(folded: &str) -> BTreeSet<&str> {
    let mut shares: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (stack, count) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
        let (Ok(count), Some(leaf)) = (count.parse::<f64>(), stack.rsplit(';').next()) else {
            continue;
        };
        let (below, all) = shares.entry(leaf).or_default();
        *all += count;
        if leaf != RECEIVES && stack.split(';').any(|frame| frame == RECEIVES) {
            *below += count;
        }
    }
    let pure = shares.into_iter().filter(|(_, (below, all))| *below >= SHARE * all);
    pure.map(|(function, _)| function).collect()
}

/// Prints the totals and every function that differs, and fails if one does.
///
/// # Errors
/// When a function differs by more than [`LIMIT`], or too few can be compared.
pub(crate) fn compare(counts: &[Counts]) -> Result<()> {
    let (table, compared, differing) = table(counts);
    print!("{table}");
    ensure!(compared >= FEWEST, "only {compared} functions can be compared");
    ensure!(differing == 0, "{differing} functions differ by more than {LIMIT} instructions");
    println!("{compared} functions agree within {LIMIT} instructions per packet");
    Ok(())
}

/// Totals, the functions that differ, how many were compared, how many differ.
fn table(counts: &[Counts]) -> (String, usize, usize) {
    let row = |name: &str, values: Vec<String>| {
        let values = values.iter().map(|value| format!("{value:>12}")).collect::<String>();
        format!("{name:40}{values}\n")
    };
    let mut table =
        row("instructions per packet", counts.iter().map(|c| c.system.clone()).collect());
    table += &row("total", counts.iter().map(|c| format!("{:.1}", c.total)).collect());
    let Some((first, others)) = counts.split_first() else { return (table, 0, 0) };
    let in_all = first
        .functions
        .keys()
        .filter(|name| others.iter().all(|other| other.functions.contains_key(*name)));
    let names: Vec<&String> = in_all.collect();
    let mut differing = 0;
    for name in &names {
        let values: Vec<f64> = counts.iter().map(|c| c.functions[*name]).collect();
        let (least, most) = values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)));
        if most - least > LIMIT {
            differing += 1;
            table += &row(name, values.iter().map(|value| format!("{value:.2}")).collect());
        }
    }
    (table, names.len(), differing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_packets_are_those_below_the_poll() {
        let folded = "a;virtnet_poll;ip_rcv 900\n\
                      a;virtnet_poll;ktime_get 50\n\
                      tick;ktime_get 50\n\
                      a;virtnet_poll 5\n\
                      tick;update 10\nnonsense\n";
        assert_eq!(forwarding(folded), BTreeSet::from(["ip_rcv"]));
    }

    fn counts(system: &str, ip_rcv: f64, only: &str) -> Counts {
        let functions = [("ip_rcv", ip_rcv), ("ip_forward", 126.0), (only, 1.0)];
        let functions = functions.map(|(name, cost)| (name.to_owned(), cost));
        Counts { system: system.to_owned(), total: 200.0, functions: functions.into() }
    }

    #[test]
    fn functions_that_differ_are_named_with_their_counts() {
        let (text, compared, differing) =
            table(&[counts("a", 80.0, "x"), counts("b", 80.05, "y"), counts("c", 80.2, "z")]);
        assert_eq!((compared, differing), (2, 1));
        let row = text.lines().find(|line| line.starts_with("ip_rcv")).expect("a row");
        let cells: Vec<&str> = row.split_ascii_whitespace().collect();
        assert_eq!(cells, ["ip_rcv", "80.00", "80.05", "80.20"]);
        assert!(!text.contains("ip_forward"), "{text}");
        assert!(compare(&[counts("a", 80.0, "x")]).is_err(), "too few");
    }
}
