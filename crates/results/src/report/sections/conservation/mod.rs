//! Packets offered, forwarded and lost, the receiver's checks, and the DUT's counters.

mod arrivals;
mod counters;
mod directions;
mod mixes;

pub use arrivals::{ArrivalResult, ArrivalsFound, SampledDamage};
pub use counters::CounterCheck;
pub use directions::DirectionRate;
pub use mixes::MixRates;

use super::{Context, DETAILS, Input, Section};
use crate::document::table::{Cell, Digits};
use crate::document::{Block, Table};
use crate::report::analysis::groups::groups;
use crate::store::Contents;
use fwdlab_model::RunRecord;
use fwdlab_model::record::Counts;
use serde::Serialize;

/// Counts of packets, over whole trials.
#[derive(Clone, Debug, Serialize)]
pub struct PacketCounts {
    /// Packets offered, forwarded, lost.
    pub conservation: Vec<Conservation>,
    /// Bit rates of variants with a mix of frame sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixRates>,
    /// Results per direction of variants with bidirectional traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<DirectionRate>,
    /// Results of the receiver's checks; `None` if packets were not checked.
    pub arrivals: Option<ArrivalResult>,
    /// The DUT's counters compared with the testbed's counts.
    pub counters: Vec<CounterCheck>,
}

/// Packets of all runs of one variant (in an alternation, of one set of variants), over whole
/// trials including the warm-up.
#[derive(Clone, Debug, Serialize)]
pub struct Conservation {
    /// Label.
    pub label: String,
    /// Number of runs.
    pub runs: usize,
    /// Packets that left the sender.
    pub offered: u64,
    /// Packets that arrived.
    pub forwarded: u64,
    /// Offered minus forwarded.
    pub lost: i64,
    /// Ratio of lost to offered packets.
    pub loss_ratio: f64,
    /// Packets of other runs.
    pub foreign: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
    /// Unsent packets of the windows; `None` at the maximum rate.
    pub unsent: Option<u64>,
}

impl Section for PacketCounts {
    fn analyse(input: &Input<'_>) -> PacketCounts {
        PacketCounts {
            conservation: conservation(input.contents),
            mixes: mixes::mixes(input.contents),
            directions: directions::directions(input.contents),
            arrivals: arrivals::arrivals(input.contents),
            counters: counters::counters(input.contents),
        }
    }

    fn document(&self, _: &Context<'_>) -> Vec<Block> {
        let mut blocks = table(&self.conservation);
        blocks.extend(mixes::table(&self.mixes));
        blocks.extend(directions::table(&self.directions));
        blocks.extend(self.arrivals.iter().flat_map(arrivals::blocks));
        blocks.extend(counters::table(&self.counters));
        vec![Block::section("Conservation", blocks).folded().on_page(DETAILS)]
    }

    fn summary(&self) -> Vec<Block> {
        let checked = self.arrivals.iter().map(|arrivals| &arrivals.checked);
        checked.map(|checked| Block::text(format!("On arrival {checked}."))).collect()
    }
}

/// Returns packet counts by variant (or set of variants that share streams).
fn conservation(contents: &Contents) -> Vec<Conservation> {
    groups(contents)
        .into_iter()
        .map(|(label, runs)| {
            let sum = |of: fn(&RunRecord) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
            let total = Counts {
                offered: sum(|run| run.trial.total.offered),
                forwarded: sum(|run| run.trial.total.forwarded),
            };
            let unsent: Option<Vec<u64>> = runs
                .iter()
                .map(|run| Some(run.trial.intended?.saturating_sub(run.trial.window.offered)))
                .collect();
            Conservation {
                label,
                runs: runs.len(),
                offered: total.offered,
                forwarded: total.forwarded,
                lost: total.lost(),
                loss_ratio: total.loss_ratio(),
                foreign: sum(|run| run.trial.foreign),
                unstamped: sum(|run| run.trial.unstamped),
                unsent: unsent.map(|unsent| unsent.iter().sum()),
            }
        })
        .collect()
}

/// Returns a table with one row per variant.
fn table(rows: &[Conservation]) -> Vec<Block> {
    let text = "Packets of the whole trials, warm-up included; lost is offered minus forwarded.";
    let table = Table::of(rows)
        .words("variant", |c| Cell::text(&c.label))
        .numbers("runs", |c| Cell::count(c.runs))
        .numbers("offered", |c| Cell::count(c.offered))
        .numbers("forwarded", |c| Cell::count(c.forwarded))
        .numbers("lost", |c| Cell::count(c.lost))
        .numbers("loss", |c| Cell::number(c.loss_ratio, Digits::Percent(2)))
        .numbers("unsent", |c| Cell::count(c.unsent))
        .numbers("others", |c| Cell::count(c.foreign))
        .about("packets with the stamp of another run")
        .numbers("no stamp", |c| Cell::count(c.unstamped))
        .about("UDP packets between the benchmark's addresses without a stamp");
    vec![Block::text(text), table.block()]
}
