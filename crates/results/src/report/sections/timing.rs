//! Stolen time, the order of the runs, and time outside the traffic.

use super::{Context, DETAILS, Input, Section};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Figure, Table};
use crate::format::{p_value, signed_percent};
use crate::plot::{Draw, Drawing, Quantity, Strip};
use crate::report::analysis::Core;
use crate::report::analysis::groups::groups;
use crate::stats::summary::median;
use crate::store::Contents;
use serde::Serialize;

/// Stolen time, and time outside the traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// CPU time that the hypervisor took from the measured CPUs.
    pub steal: Vec<Steal>,
    /// Time outside the traffic.
    pub overhead: Vec<Overhead>,
}

/// Time of a step of a run outside the traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Overhead {
    /// Step, e.g. `namespaces`; `all together` for the sum of a run.
    pub step: String,
    /// Median over the runs, milliseconds.
    pub median_ms: f64,
    /// The longest, milliseconds.
    pub max_ms: f64,
}

/// Steal of measured CPUs in the runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Steal {
    /// Label.
    pub label: String,
    /// Number of runs.
    pub runs: usize,
    /// Mean share of the window, 0 to 1, over runs and measured CPUs.
    pub mean_share: f64,
    /// The largest share of one CPU in one run.
    pub max_share: f64,
}

impl Section for Timing {
    fn analyse(input: &Input<'_>) -> Timing {
        Timing { steal: steal(input.contents), overhead: overhead(input.contents) }
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        let section = match context.core.figure.is_rate() {
            true => Block::section("Stolen time and order", self.time(context)),
            false => Block::section("Order", self.in_order(context)),
        };
        vec![section.folded().on_page(DETAILS)]
    }
}

impl Timing {
    /// Returns the stolen time, the drift, and the order of the runs.
    fn time(&self, context: &Context<'_>) -> Vec<Block> {
        let mut blocks = match self.steal.is_empty() {
            true => vec![Block::text("Stolen time was not observed.")],
            false => {
                let text = "Time that the hypervisor took from the measured CPUs, as a share of the \
                            window:";
                let table = Table::of(&self.steal)
                    .words("variant", |s| Cell::text(&s.label))
                    .numbers("runs", |s| Cell::count(s.runs))
                    .numbers("mean", |s| Cell::number(s.mean_share, Digits::Percent(2)))
                    .numbers("worst CPU and run", |s| {
                        Cell::number(s.max_share, Digits::Percent(2))
                    });
                vec![Block::text(text), table.block()]
            }
        };
        if let Some(order) = &context.core.order {
            let lag1 = order.lag1.map_or("-".to_owned(), |lag1| format!("{lag1:.2}"));
            let lag1_p = order.lag1_p.map_or(String::new(), |p| format!(" (p {})", p_value(p)));
            blocks.push(Block::text(format!(
                "From run to run, variants' differences taken out: trend {} per run (p {}), \
                 correlation of neighbours {lag1}{lag1_p}.",
                signed_percent(order.slope, 3),
                p_value(order.p)
            )));
        }
        blocks.extend(self.in_order(context));
        blocks
    }

    /// Returns the plot of the runs in order, and the time outside their traffic.
    fn in_order(&self, context: &Context<'_>) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !context.core.runs.is_empty() {
            let title = "Runs in their order".to_owned();
            blocks.push(Block::Figure(Figure {
                title,
                file: None,
                drawing: context.order.clone(),
            }));
        }
        if !self.overhead.is_empty() {
            let table = Table::of(&self.overhead)
                .words("step", |o| Cell::text(&o.step))
                .numbers("median", |o| Cell::number(o.median_ms, Digits::Decimals(1)))
                .numbers("longest", |o| Cell::number(o.max_ms, Digits::Decimals(1)));
            let text = "Time of a run outside its traffic, in milliseconds:";
            blocks.extend([Block::text(text), table.block()]);
        }
        blocks
    }
}

/// Draws all runs in order of execution, which shows drift.
pub(in crate::report) fn order_plot(core: &Core) -> Drawing {
    let variants = core.variants.iter().map(|variant| variant.label.clone()).collect();
    let runs = core.runs.iter().filter_map(|run| Some((run.block, run.variant, run.value()?)));
    let runs: Vec<(u32, usize, f64)> = runs.collect();
    let y = if core.figure.is_rate() { Quantity::Rate } else { Quantity::Instructions };
    Strip { y, ..Strip::of_runs("Runs in their order", variants, &runs) }.drawing()
}

/// Returns the steal; empty if no CPU was observed.
fn steal(contents: &Contents) -> Vec<Steal> {
    groups(contents)
        .into_iter()
        .filter_map(|(label, runs)| {
            let shares: Vec<f64> = runs
                .iter()
                .filter(|run| run.trial.window_ns > 0)
                .flat_map(|run| {
                    let window_ns = run.trial.window_ns as f64;
                    let measured = run.trial.cpus.iter().filter(|cpu| cpu.role != "other");
                    measured.map(move |cpu| cpu.stolen_ns as f64 / window_ns)
                })
                .collect();
            (!shares.is_empty()).then(|| Steal {
                label,
                runs: runs.len(),
                mean_share: shares.iter().sum::<f64>() / shares.len() as f64,
                max_share: shares.iter().copied().fold(0.0, f64::max),
            })
        })
        .collect()
}

/// Returns the time outside the traffic by step, in the order of a run, followed by the sum.
fn overhead(contents: &Contents) -> Vec<Overhead> {
    let mut steps: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add = |step: &str, ns: u64| {
        let ms = ns as f64 / 1e6;
        match steps.iter_mut().find(|(name, _)| name == step) {
            Some((_, times)) => times.push(ms),
            None => steps.push((step.to_owned(), vec![ms])),
        }
    };
    for run in contents.runs.iter().filter(|run| !run.overhead_ns.is_empty()) {
        run.overhead_ns.iter().for_each(|(step, ns)| add(step, *ns));
        // Added after the steps of the first run, so that it is last.
        add("all together", run.overhead_ns.iter().map(|(_, ns)| ns).sum());
    }
    let row = |(step, times): (String, Vec<f64>)| Overhead {
        step,
        median_ms: median(&times).unwrap_or(0.0),
        max_ms: times.iter().copied().fold(0.0, f64::max),
    };
    steps.into_iter().map(row).collect()
}
