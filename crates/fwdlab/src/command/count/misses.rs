//! Misses of modelled caches, as a section of the document.

use fwdlab_results::counts::OF_A_MODEL;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Remark, Table};
use fwdlab_vm::caches::{CacheCosts, Misses};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Misses per packet below which a function is not shown.
const SHOWN: f64 = 0.05;

/// Misses per packet of each kernel.
#[derive(Serialize)]
pub(super) struct Modelled {
    /// Description of the caches.
    model: String,
    /// Totals, by kernel.
    kernels: Vec<MissCounts>,
    /// By function, sorted by [`Function::weight`], largest first.
    functions: Vec<Function>,
}

/// Misses per packet.
#[derive(Clone, Copy, Default, Serialize)]
struct MissCounts {
    references: f64,
    l1i: f64,
    l1d: f64,
    l2: f64,
}

impl MissCounts {
    fn of(misses: &Misses) -> MissCounts {
        let Misses { references, code, data, last } = *misses;
        MissCounts { references, l1i: code, l1d: data, l2: last }
    }

    fn sum(&self) -> f64 {
        self.l1i + self.l1d + self.l2
    }
}

/// A function's misses per packet in each kernel.
#[derive(Serialize)]
struct Function {
    name: String,
    kernels: Vec<MissCounts>,
}

impl Function {
    /// Sort key: the largest difference from the first kernel, or the misses of a single kernel.
    fn weight(&self) -> f64 {
        let [first, others @ ..] = self.kernels.as_slice() else { return 0.0 };
        match others {
            [] => first.sum(),
            _ => others.iter().map(|now| (now.sum() - first.sum()).abs()).fold(0.0, f64::max),
        }
    }
}

impl Modelled {
    /// Misses of each kernel; `None` if caches were not modelled.
    pub(super) fn of<'a>(
        kernels: impl Iterator<Item = Option<&'a CacheCosts>>,
    ) -> Option<Modelled> {
        let kernels = kernels.collect::<Option<Vec<&CacheCosts>>>()?;
        let model = kernels.first()?.model.to_string();
        let by_name: Vec<BTreeMap<&str, MissCounts>> = kernels
            .iter()
            .map(|costs| {
                costs.functions.iter().map(|(name, m)| (name.as_str(), MissCounts::of(m))).collect()
            })
            .collect();
        let names: BTreeSet<&str> =
            by_name.iter().flat_map(|known| known.keys().copied()).collect();
        let of = |name: &str| Function {
            name: name.to_owned(),
            kernels: by_name
                .iter()
                .map(|known| known.get(name).copied().unwrap_or_default())
                .collect(),
        };
        let mut functions: Vec<Function> = names.into_iter().map(of).collect();
        functions.retain(|function| function.kernels.iter().any(|missed| missed.sum() >= SHOWN));
        functions
            .sort_by(|a, b| b.weight().total_cmp(&a.weight()).then_with(|| a.name.cmp(&b.name)));
        let kernels = kernels.iter().map(|costs| MissCounts::of(&costs.total)).collect();
        Some(Modelled { model, kernels, functions })
    }

    /// The section of the document, with at most `functions` functions.
    pub(super) fn section(&self, kernels: Vec<&str>, functions: usize) -> Block {
        let number = |value: f64| Cell::number(value, Digits::Decimals(2));
        let named = |(at, name): (usize, &&str)| match kernels.len() {
            1 => (*name).to_owned(),
            _ => format!("({}) {name}", at + 1),
        };
        let names = kernels.iter().enumerate().map(named);
        let rows: Vec<(String, &MissCounts)> = names.zip(&self.kernels).collect();
        let totals = Table::of(&rows)
            .words("kernel", |(name, _)| Cell::text(name.as_str()))
            .numbers("reads and writes", move |(_, m)| number(m.references))
            .numbers("L1I misses", move |(_, m)| number(m.l1i))
            .numbers("L1D misses", move |(_, m)| number(m.l1d))
            .numbers("L2 misses", move |(_, m)| number(m.l2))
            .set(|table| table.name = Some("misses"))
            .block();
        let mut table = Table::of(self.functions.iter().take(functions))
            .words("function", |function: &Function| Cell::text(function.name.as_str()));
        // Names of kernels are long: columns of several kernels have the number of the row above.
        for at in 0..kernels.len() {
            let title = |what: &str| match kernels.len() {
                1 => format!("{what} misses"),
                _ => format!("{what} ({})", at + 1),
            };
            if kernels.len() == 1 {
                table = table.numbers(title("L1I"), move |f| number(f.kernels[at].l1i));
            }
            table = table
                .numbers(title("L1D"), move |f| number(f.kernels[at].l1d))
                .numbers(title("L2"), move |f| number(f.kernels[at].l2));
        }
        let caution = Block::remark(Remark::Caption, format!("{}. {OF_A_MODEL}", self.model));
        let by_function = table.set(|table| table.name = Some("missing functions")).block();
        Block::section("Misses a packet in modelled caches", vec![caution, totals, by_function])
    }
}
