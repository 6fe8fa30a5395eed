//! What a packet costs: instructions by function, of bursts that repeat each other.
//!
//! From each burst is subtracted what the idle guest executed in as much time: timers run
//! by the clock, not by packets. A function of which more than half is subtracted belongs to
//! the background altogether and enters no total. A function's cost is the median over the
//! bursts, which leaves out what happened once (a timer's rare work, a worker that woke),
//! and the total is the sum of the medians; the range of the bursts stands beside it.

use crate::counts::Executed;
use crate::symbols::Symbols;
use std::collections::BTreeMap;

/// Name of everything that runs outside of the kernel.
pub const PROGRAMS: &str = "(programs)";
/// Name of what no symbol is known for.
pub const UNKNOWN: &str = "(unknown)";

/// A burst of packets and what was executed meanwhile.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Packets that were forwarded.
    pub packets: u64,
    /// What was executed from the first to the last of them.
    pub executed: Vec<Executed>,
    /// What the idle guest executed.
    pub idle: Vec<Executed>,
    /// Length of the burst as a multiple of the idle time.
    pub scale: f64,
}

/// What a packet costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Packets of each burst.
    pub packets: Vec<u64>,
    /// Instructions per packet of each burst, without the background.
    pub bursts: Vec<f64>,
    /// Instructions per packet: the sum over the functions but those of the background, as
    /// [`Costs::over`] gives it.
    pub instructions: f64,
    /// Atomic ones among them.
    pub atomics: f64,
    /// Bytes a packet that repeated string instructions move.
    pub bytes: f64,
    /// Instructions of the idle guest in as much time, a packet: median over the bursts.
    pub background: f64,
    /// By function, dearest first.
    pub functions: Vec<FunctionCost>,
}

/// What a packet costs in one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionCost {
    /// Its name.
    pub name: String,
    /// Instructions per packet: median over the bursts.
    pub instructions: f64,
    /// Instructions per packet of each burst.
    pub bursts: Vec<f64>,
    /// Least and most of the bursts.
    pub range: (f64, f64),
    /// Atomic instructions per packet.
    pub atomics: f64,
    /// Bytes a packet that repeated string instructions move.
    pub bytes: f64,
    /// Instructions per packet that the idle guest executes in as much time: median over the
    /// bursts.
    pub idle: f64,
    /// True if the idle guest executes more than half as much.
    pub is_background: bool,
}

/// What a packet costs in some of the functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// Instructions per packet: the sum of the functions' medians.
    pub instructions: f64,
    /// Atomic ones among them.
    pub atomics: f64,
    /// Bytes a packet that repeated string instructions move.
    pub bytes: f64,
    /// Instructions per packet of each burst, in the same functions.
    pub bursts: Vec<f64>,
}

impl Costs {
    /// What the functions that `counts` names cost together.
    pub fn over(&self, counts: impl Fn(&FunctionCost) -> bool) -> Total {
        let mut total = Total { bursts: vec![0.0; self.packets.len()], ..Total::default() };
        for function in self.functions.iter().filter(|function| counts(function)) {
            total.instructions += function.instructions;
            total.atomics += function.atomics;
            total.bytes += function.bytes;
            for (sum, burst) in total.bursts.iter_mut().zip(&function.bursts) {
                *sum += burst;
            }
        }
        total
    }
}

/// Three figures of a function in one burst, a packet each.
#[derive(Clone, Copy, Default)]
struct Share {
    instructions: f64,
    atomics: f64,
    bytes: f64,
    /// Instructions before anything was subtracted, and what was.
    gross: f64,
    idle: f64,
}

/// What a packet costs by what was executed in `bursts`.
pub fn costs(bursts: &[Burst], symbols: &Symbols) -> Costs {
    let by_burst: Vec<BTreeMap<&str, Share>> =
        bursts.iter().map(|burst| shares(burst, symbols)).collect();
    let names: std::collections::BTreeSet<&str> =
        by_burst.iter().flat_map(|shares| shares.keys().copied()).collect();
    let mut functions: Vec<FunctionCost> = names
        .into_iter()
        .map(|name| {
            let of = |figure: fn(&Share) -> f64| -> Vec<f64> {
                by_burst.iter().map(|shares| shares.get(name).map_or(0.0, figure)).collect()
            };
            let instructions = of(|share| share.instructions);
            let least = instructions.iter().copied().fold(f64::INFINITY, f64::min);
            let most = instructions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (gross, idle) = (of(|share| share.gross), of(|share| share.idle));
            FunctionCost {
                is_background: 2.0 * idle.iter().sum::<f64>() > gross.iter().sum(),
                name: name.to_owned(),
                instructions: median(instructions.clone()),
                bursts: instructions,
                range: (least, most),
                atomics: median(of(|share| share.atomics)),
                idle: median(idle),
                bytes: median(of(|share| share.bytes)),
            }
        })
        .collect();
    functions.sort_by(|a, b| {
        b.instructions.total_cmp(&a.instructions).then_with(|| a.name.cmp(&b.name))
    });
    let background = bursts.iter().map(|burst| {
        let idle: u64 = burst.idle.iter().map(|place| place.instructions).sum();
        idle as f64 * burst.scale / burst.packets.max(1) as f64
    });
    let costs = Costs {
        packets: bursts.iter().map(|burst| burst.packets).collect(),
        background: median(background.collect()),
        functions,
        ..Costs::default()
    };
    let Total { instructions, atomics, bytes, bursts } = costs.over(|f| !f.is_background);
    Costs { instructions, atomics, bytes, bursts, ..costs }
}

/// A burst by function, a packet each, without what idles.
fn shares<'a>(burst: &Burst, symbols: &'a Symbols) -> BTreeMap<&'a str, Share> {
    let mut shares: BTreeMap<&str, Share> = BTreeMap::new();
    let packets = burst.packets.max(1) as f64;
    for (places, factor) in [(&burst.executed, 1.0), (&burst.idle, -burst.scale)] {
        for place in places {
            let name = match place.address {
                0 => PROGRAMS,
                address => symbols.name(address).unwrap_or(UNKNOWN),
            };
            let share = shares.entry(name).or_default();
            let instructions = place.instructions as f64 / packets;
            share.instructions += factor * instructions;
            match factor > 0.0 {
                true => share.gross += instructions,
                false => share.idle -= factor * instructions,
            }
            share.atomics += factor * place.atomics as f64 / packets;
            share.bytes += factor * place.bytes as f64 / packets;
        }
    }
    shares
}

/// The middle value, the mean of the two middle ones of an even number; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(address: u64, instructions: u64) -> Executed {
        Executed { address, instructions, atomics: instructions / 10, bytes: 0 }
    }

    #[test]
    fn what_idles_and_what_happened_once_is_no_cost_of_a_packet() {
        let symbols = Symbols::of_kallsyms(
            "0000000000000100 T forward\n0000000000000200 T tick\n0000000000000300 T rare\n",
        );
        let burst = |rare| Burst {
            packets: 10,
            executed: vec![
                executed(0x100, 900),
                executed(0x140, 100),
                executed(0x200, 90),
                executed(0x300, rare),
            ],
            idle: vec![executed(0x200, 35)],
            scale: 2.0,
        };
        let costs = costs(&[burst(0), burst(50), burst(0)], &symbols);
        assert_eq!(costs.bursts, [100.0, 105.0, 100.0]);
        assert_eq!((costs.instructions, costs.background), (100.0, 7.0));
        assert_eq!(costs.atomics, 10.0);
        let named: Vec<(&str, f64)> =
            costs.functions.iter().map(|f| (f.name.as_str(), f.instructions)).collect();
        assert_eq!(named, [("forward", 100.0), ("tick", 2.0), ("rare", 0.0)]);
        assert_eq!(costs.functions[2].range, (0.0, 5.0));
        assert!(costs.functions[1].is_background && !costs.functions[0].is_background);
        // Sum and bursts are of the same functions, whichever they are.
        let total = costs.over(|function| function.name != "rare");
        assert_eq!((total.instructions, total.bursts), (102.0, vec![102.0; 3]));
    }
}
