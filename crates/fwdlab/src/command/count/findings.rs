//! Totals of each kernel, and the cost of each function in all of them.

use super::counted::Counted;
use super::graphs::Drawn;
use super::labels::labels;
use super::misses::Modelled;
use fwdlab_packet::Family;
use fwdlab_vm::costs::{Costs, FunctionCost};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest difference of a function that counts as one, instructions a packet. Below it lies
/// what depends on the state that the boot left behind, such as how full a slab is: two boots
/// of one kernel differ by up to 0.3 there.
pub(super) const SHOWN: f64 = 0.5;

/// All counts, as `--json` prints them.
#[derive(Serialize)]
pub(super) struct Findings {
    pub(super) family: Family,
    pub(super) batch: u16,
    /// Boots of each kernel.
    pub(super) boots: u32,
    pub(super) kernels: Vec<Row>,
    pub(super) functions: Vec<Function>,
    /// Flame graphs; empty if calls were not followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<Drawn>,
    /// Misses; `None` if caches were not modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) caches: Option<Modelled>,
    /// Kernels that could not be counted, of three and more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<Failed>,
}

/// A kernel that could not be counted.
#[derive(Serialize)]
pub(super) struct Failed {
    pub(super) kernel: String,
    pub(super) why: String,
}

/// A kernel's totals, a packet each.
#[derive(Serialize)]
pub(super) struct Row {
    /// Its release, and the change.
    pub(super) kernel: String,
    /// The shortest name that distinguishes it from the others.
    pub(super) label: String,
    pub(super) file: String,
    pub(super) release: String,
    pub(super) change: Option<String>,
    pub(super) instructions: f64,
    /// Least and most of the bursts.
    pub(super) least: f64,
    pub(super) most: f64,
    /// Against the first, instructions a packet: the sum over the functions that differ;
    /// none for the first.
    pub(super) difference: Option<f64>,
    /// Number of functions that differ from the first kernel's.
    pub(super) differing: usize,
    pub(super) atomics: f64,
    pub(super) bytes: f64,
    pub(super) background: f64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) scattered: u64,
    pub(super) ready_s: f64,
    pub(super) took_s: f64,
}

/// A function's instructions a packet in each kernel.
#[derive(Serialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) instructions: Vec<f64>,
    /// Least and most of its bursts in each.
    pub(super) bursts: Vec<(f64, f64)>,
    pub(super) atomics: Vec<f64>,
    /// True where the bursts lie apart from those of the first kernel.
    pub(super) differs: Vec<bool>,
    /// True when it is executed by the idle guest, mostly.
    pub(super) background: bool,
}

impl Findings {
    pub(super) fn of(
        counted: Vec<Counted>,
        calls: Vec<Drawn>,
        (family, batch, boots): (Family, u16, u32),
    ) -> Findings {
        let costs: Vec<&Costs> =
            counted.iter().map(|counted| &counted.answer.found.costs).collect();
        let functions = functions(&costs, boots > 1);
        let is_alone = |release: &str| {
            let same = |c: &&Counted| c.change.is_none() && c.boot == 1 && c.release == release;
            counted.iter().filter(same).count() == 1
        };
        let labels = labels(&counted);
        let kernels = counted.iter().enumerate().map(|(number, counted)| {
            let costs = &counted.answer.found.costs;
            let total = costs.over(|function| !function.is_background);
            let differing = || functions.iter().filter(|f| f.differs[number] && !f.background);
            let difference = differing().map(|f| f.instructions[number] - f.instructions[0]);
            // Of nothing it is -0.
            let difference = difference.sum::<f64>() + 0.0;
            Row {
                kernel: {
                    let (release, file) = (&counted.release, &counted.file);
                    let alone = is_alone(release);
                    let mut name = release.clone();
                    if !alone {
                        name += &format!(" ({file})");
                    }
                    if boots > 1 {
                        name += &format!(", boot {}", counted.boot);
                    }
                    match &counted.change {
                        None => name,
                        Some(change) => format!("{name} after `{change}`"),
                    }
                },
                label: labels[number].clone(),
                file: counted.file.clone(),
                release: counted.release.clone(),
                change: counted.change.clone(),
                instructions: total.instructions,
                least: total.bursts.iter().copied().fold(f64::INFINITY, f64::min),
                most: total.bursts.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                difference: (number > 0).then_some(difference),
                differing: differing().count(),
                atomics: total.atomics,
                bytes: total.bytes,
                background: costs.background,
                packets: counted.answer.sent,
                lost: counted.answer.lost,
                scattered: counted.answer.scattered,
                ready_s: counted.ready.as_secs_f64(),
                took_s: counted.took.as_secs_f64(),
            }
        });
        let kernels = kernels.collect();
        let caches = Modelled::of(counted.iter().map(|c| c.answer.found.caches.as_ref()));
        let failed = Vec::new();
        Findings { family, batch, boots, kernels, functions, calls, caches, failed }
    }
}

/// All functions: of several kernels those that differ most first, else, and where it is
/// `repeated` boots that are looked at, the dearest.
fn functions(costs: &[&Costs], repeated: bool) -> Vec<Function> {
    let empty = FunctionCost::default();
    let by_name: Vec<BTreeMap<&str, &FunctionCost>> = costs
        .iter()
        .map(|costs| costs.functions.iter().map(|f| (f.name.as_str(), f)).collect())
        .collect();
    let names: BTreeSet<&str> =
        by_name.iter().flat_map(|functions| functions.keys().copied()).collect();
    let mut functions: Vec<Function> = names
        .into_iter()
        .map(|name| {
            let of = |figure: fn(&FunctionCost) -> f64| {
                by_name.iter().map(|f| figure(f.get(name).copied().unwrap_or(&empty))).collect()
            };
            let here = |n: usize| by_name[n].get(name).copied().unwrap_or(&empty);
            Function {
                name: name.to_owned(),
                instructions: of(|function| function.instructions),
                bursts: (0..by_name.len()).map(|n| here(n).range).collect(),
                atomics: of(|function| function.atomics),
                differs: (0..by_name.len())
                    .map(|n| {
                        let far = (here(n).instructions - here(0).instructions).abs() >= SHOWN;
                        far && here(n).differs(here(0))
                    })
                    .collect(),
                background: is_background(by_name.iter().filter_map(|f| f.get(name).copied())),
            }
        })
        .collect();
    let weight = |function: &Function| function.weight(repeated);
    functions.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
    functions
}

/// True if a function is of the background in one of the kernels, and in none beyond doubt of
/// packets. One that a kernel executes for packets and another only while it idles is a
/// difference between the two.
fn is_background<'a>(costs: impl Iterator<Item = &'a FunctionCost> + Clone) -> bool {
    costs.clone().any(|cost| cost.is_background) && !costs.clone().any(FunctionCost::is_of_packets)
}

impl Function {
    /// Sort key: the largest difference from the first kernel, or the cost.
    pub(super) fn weight(&self, repeated: bool) -> f64 {
        match self.instructions.as_slice() {
            [first, ..] if repeated => *first,
            [only] => *only,
            [first, ..] => {
                let differing = self.instructions.iter().zip(&self.differs).filter(|(_, d)| **d);
                differing.map(|(now, _)| (now - first).abs()).fold(0.0, f64::max)
            }
            [] => 0.0,
        }
    }
}
