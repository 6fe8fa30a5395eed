//! Comparison of one kernel's instruction counts under several QEMUs.
//!
//! Only functions that handle packets are compared: functions called from the poll of a data
//! interface, according to the stacks of `fwdlab count --calls`. Clock ticks and softirqs depend on
//! real time, so their functions differ from one boot to the next even under the same QEMU, and so
//! do a few functions that handle packets, such as checks of free memory. Therefore a function
//! differs only if all bursts of one QEMU are above all bursts of another.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Caller of all functions that handle received packets (`drivers/net/virtio_net.c`).
const RECEIVES: &str = "virtnet_poll";
/// Share of a function's instructions that must be below [`RECEIVES`].
const SHARE: f64 = 0.999;
/// Largest difference between two QEMUs, instructions per packet.
const LIMIT: f64 = 0.1;
/// Minimum number of compared functions: fewer cannot be the path of a packet.
const FEWEST: usize = 40;

/// Instructions per packet by function, under one QEMU.
pub(crate) struct Counts {
    system: String,
    total: f64,
    functions: BTreeMap<String, Cost>,
}

/// Instructions per packet in one function.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Median of the bursts of the first boot.
    median: f64,
    /// Smallest burst of all boots.
    least: f64,
    /// Largest burst of all boots.
    most: f64,
}

/// Comparison of the functions that all systems execute.
struct Comparison {
    /// The totals and the functions whose medians are not within [`LIMIT`].
    table: String,
    /// Number of functions whose medians are within [`LIMIT`].
    agreeing: usize,
    /// Number of functions whose bursts are more than [`LIMIT`] apart.
    differing: usize,
}

impl Counts {
    /// Reads the output of `fwdlab count --calls --json` for one kernel.
    ///
    /// # Errors
    /// Fails if a file cannot be read or contains no counts.
    pub(crate) fn read(system: &str, json: &Path, folded: &Path) -> Result<Counts> {
        let read = |path: &Path| fs::read_to_string(path).context(path.display().to_string());
        let json: Value = serde_json::from_str(&read(json)?)?;
        let folded = read(folded)?;
        let pure = forwarding(&folded);
        let functions = json["functions"].as_array().context("no functions were counted")?;
        let cost = |row: &Value| {
            let name = row["name"].as_str()?;
            let [median, least, most] =
                [&row["instructions"][0], &row["bursts"][0][0], &row["bursts"][0][1]]
                    .map(Value::as_f64);
            let cost = Cost { median: median?, least: least?, most: most? };
            pure.contains(name).then(|| (name.to_owned(), cost))
        };
        let functions = functions.iter().filter_map(cost).collect();
        let total = json["kernels"][0]["instructions"].as_f64().context("no kernel was counted")?;
        Ok(Counts { system: system.to_owned(), total, functions })
    }

    /// Adds the bursts of another boot in the same system.
    pub(crate) fn add(&mut self, boot: &Counts) {
        for (name, cost) in &mut self.functions {
            if let Some(other) = boot.functions.get(name) {
                cost.least = cost.least.min(other.least);
                cost.most = cost.most.max(other.most);
            }
        }
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

/// Returns true if a function differs between two systems by more than [`LIMIT`].
pub(crate) fn differ(counts: &[Counts]) -> bool {
    Comparison::new(counts).differing > 0
}

/// Prints the totals and every function whose medians differ.
///
/// # Errors
/// Fails if the bursts of a function differ by more than [`LIMIT`], or too few functions agree.
pub(crate) fn compare(counts: &[Counts]) -> Result<()> {
    let Comparison { table, agreeing, differing } = Comparison::new(counts);
    print!("{table}");
    ensure!(differing == 0, "{differing} functions differ by more than {LIMIT} instructions");
    ensure!(agreeing >= FEWEST, "only {agreeing} functions agree within {LIMIT} instructions");
    println!("{agreeing} functions agree within {LIMIT} instructions per packet");
    Ok(())
}

impl Comparison {
    fn new(counts: &[Counts]) -> Comparison {
        let row = |name: &str, values: Vec<String>| {
            let values = values.iter().map(|value| format!("{value:>22}")).collect::<String>();
            format!("{name:30}{values}\n")
        };
        let systems = counts.iter().map(|c| c.system.clone()).collect();
        let totals = counts.iter().map(|c| format!("{:.1}", c.total)).collect();
        let table = row("instructions per packet", systems) + &row("total", totals);
        let mut found = Comparison { table, agreeing: 0, differing: 0 };
        let Some(first) = counts.first() else { return found };
        for name in first.functions.keys() {
            let costs: Option<Vec<Cost>> =
                counts.iter().map(|c| c.functions.get(name).copied()).collect();
            let Some(costs) = costs else { continue };
            let largest = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::MIN, f64::max);
            let smallest = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::MAX, f64::min);
            if largest(|c| c.median) - smallest(|c| c.median) <= LIMIT {
                found.agreeing += 1;
                continue;
            }
            let is_apart = largest(|c| c.least) - smallest(|c| c.most) > LIMIT;
            found.differing += usize::from(is_apart);
            let text = |c: &Cost| format!("{:.2} [{:.2}, {:.2}]", c.median, c.least, c.most);
            found.table += &row(name, costs.iter().map(text).collect());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_selects_functions_below_the_poll() {
        let folded = "a;virtnet_poll;ip_rcv 900\n\
                      a;virtnet_poll;ktime_get 50\n\
                      tick;ktime_get 50\n\
                      a;virtnet_poll 5\n\
                      tick;update 10\nnonsense\n";
        assert_eq!(forwarding(folded), BTreeSet::from(["ip_rcv"]));
    }

    fn counts(system: &str, ip_rcv: [f64; 3], only: &str) -> Counts {
        let costs = [("ip_rcv", ip_rcv), ("ip_forward", [126.0; 3]), (only, [1.0; 3])];
        let functions = costs
            .map(|(name, [least, median, most])| (name.to_owned(), Cost { median, least, most }));
        Counts { system: system.to_owned(), total: 200.0, functions: functions.into() }
    }

    #[test]
    fn comparison_names_differing_functions() {
        let [a, b] = [counts("a", [80.0; 3], "x"), counts("b", [80.05; 3], "y")];
        let found = Comparison::new(&[a, b, counts("c", [80.15, 80.2, 80.2], "z")]);
        assert_eq!((found.agreeing, found.differing), (1, 1));
        let row = found.table.lines().find(|line| line.starts_with("ip_rcv")).expect("a row");
        assert!(row.contains("80.05 [80.05, 80.05]") && row.contains("80.20 [80.15, 80.20]"));
        assert!(!found.table.contains("ip_forward"), "{}", found.table);
        assert!(compare(&[counts("a", [80.0; 3], "x")]).is_err(), "too few");
    }

    #[test]
    fn comparison_shows_but_accepts_a_scattering_function() {
        let bursts = |b| [counts("a", b, "x"), counts("b", [80.0; 3], "y")];
        let found = Comparison::new(&bursts([80.0, 80.2, 80.3]));
        assert_eq!((found.agreeing, found.differing), (1, 0));
        assert!(found.table.contains("ip_rcv"), "{}", found.table);

        let mut boots = bursts([80.2; 3]);
        assert!(differ(&boots));
        boots[0].add(&counts("a", [80.0; 3], "x"));
        assert!(!differ(&boots));
    }
}
