//! Cost of a packet: instructions by function, from bursts that repeat each other.
//!
//! The instructions of the idle guest in the same time are subtracted from each burst: timers run
//! by the clock, not by packets. A function of which the idle guest executes more in
//! [`BACKGROUND_TIME`] than a packet does belongs entirely to the background and is part of no
//! total: the limit does not depend on the speed of the host. A function's cost is the median over
//! the bursts, which excludes rare events (a timer's rare work, a worker that woke). The total is
//! the sum of the medians; the range of the bursts accompanies it.

use crate::counts::Executed;
use crate::symbols::Symbols;
use std::collections::BTreeMap;
use std::time::Duration;

/// Idle time that is compared with a packet. In it a guest's clock, with 250 to 1,000 ticks per
/// second, executes more of each function that interrupts and the idle loop share with packets.
pub const BACKGROUND_TIME: Duration = Duration::from_micros(750);

/// Name of everything that runs outside of the kernel.
pub const PROGRAMS: &str = "(programs)";
/// Name of code without a symbol.
pub const UNKNOWN: &str = "(unknown)";

/// A burst of packets and the code executed during it.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Forwarded packets.
    pub packets: u64,
    /// Code executed from the first to the last packet.
    pub executed: Vec<Executed>,
    /// Code executed by the idle guest.
    pub idle: Vec<Executed>,
    /// Time for which the idle guest was counted.
    pub idle_time: Duration,
    /// Length of the burst as a multiple of the idle time.
    pub scale: f64,
}

/// Cost of a packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Packets of each burst.
    pub packets: Vec<u64>,
    /// Instructions per packet of each burst, without the background.
    pub bursts: Vec<f64>,
    /// Instructions per packet: the sum over all functions except the background, as returned by
    /// [`Costs::over`].
    pub instructions: f64,
    /// Atomic instructions among them.
    pub atomics: f64,
    /// Bytes per packet moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions of the idle guest in the same time, per packet: median over the bursts.
    pub background: f64,
    /// Costs by function, the most expensive first.
    pub functions: Vec<FunctionCost>,
}

/// Cost of a packet in one function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionCost {
    /// Name of the function.
    pub name: String,
    /// Instructions per packet: median over the bursts.
    pub instructions: f64,
    /// Instructions per packet of each burst.
    pub bursts: Vec<f64>,
    /// Minimum and maximum of the bursts.
    pub range: (f64, f64),
    /// Atomic instructions per packet.
    pub atomics: f64,
    /// Bytes per packet moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions per packet that the idle guest executes in the same time: median over the
    /// bursts.
    pub idle: f64,
    /// True if the idle guest executes more in [`BACKGROUND_TIME`] than a packet does.
    pub is_background: bool,
}

/// Cost of a packet in a selection of functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// Instructions per packet: the sum of the functions' medians.
    pub instructions: f64,
    /// Atomic instructions among them.
    pub atomics: f64,
    /// Bytes per packet moved by repeated string instructions.
    pub bytes: f64,
    /// Instructions per packet of each burst, in the same functions.
    pub bursts: Vec<f64>,
}

impl Costs {
    /// Returns the total cost of the functions selected by `counts`.
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

/// Counts of a function in one burst, per packet.
#[derive(Clone, Copy, Default)]
struct Share {
    instructions: f64,
    atomics: f64,
    bytes: f64,
    /// Subtracted instructions.
    idle: f64,
    /// Instructions of the idle guest in [`BACKGROUND_TIME`].
    background: f64,
}

/// Returns the cost of a packet from `bursts`.
pub fn costs(bursts: &[Burst], symbols: &Symbols) -> Costs {
    let by_burst: Vec<BTreeMap<&str, Share>> =
        bursts.iter().map(|burst| shares(burst, symbols)).collect();
    let names: std::collections::BTreeSet<&str> =
        by_burst.iter().flat_map(|shares| shares.keys().copied()).collect();
    let mut functions: Vec<FunctionCost> = names
        .into_iter()
        .map(|name| {
            let values_of = |figure: fn(&Share) -> f64| -> Vec<f64> {
                by_burst.iter().map(|shares| shares.get(name).map_or(0.0, figure)).collect()
            };
            let instructions = values_of(|share| share.instructions);
            let least = instructions.iter().copied().fold(f64::INFINITY, f64::min);
            let most = instructions.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let background = values_of(|share| share.background).iter().sum::<f64>();
            FunctionCost {
                is_background: background > instructions.iter().sum(),
                name: name.to_owned(),
                instructions: median(instructions.clone()),
                bursts: instructions,
                range: (least, most),
                atomics: median(values_of(|share| share.atomics)),
                idle: median(values_of(|share| share.idle)),
                bytes: median(values_of(|share| share.bytes)),
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

/// Returns a burst by function, per packet, minus the background.
fn shares<'a>(burst: &Burst, symbols: &'a Symbols) -> BTreeMap<&'a str, Share> {
    let mut shares: BTreeMap<&str, Share> = BTreeMap::new();
    let packets = burst.packets.max(1) as f64;
    let background = BACKGROUND_TIME.as_secs_f64() / burst.idle_time.as_secs_f64();
    for (places, factor) in [(&burst.executed, 1.0), (&burst.idle, -burst.scale)] {
        for place in places {
            let name = match place.address {
                0 => PROGRAMS,
                address => symbols.name(address).unwrap_or(UNKNOWN),
            };
            let share = shares.entry(name).or_default();
            let instructions = place.instructions as f64 / packets;
            share.instructions += factor * instructions;
            if factor < 0.0 {
                share.idle -= factor * instructions;
                share.background += background * place.instructions as f64;
            }
            share.atomics += factor * place.atomics as f64 / packets;
            share.bytes += factor * place.bytes as f64 / packets;
        }
    }
    shares
}

/// Returns the median, the mean of the two middle values of an even number; 0 without values.
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
    fn costs_exclude_background_and_rare_events() {
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
            idle_time: Duration::from_millis(10),
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
        // A faster host has less background per packet, and the same functions in it.
        let faster = Burst { executed: vec![executed(0x200, 55)], scale: 1.0, ..burst(0) };
        assert!(super::costs(&[faster], &symbols).functions[0].is_background);
        let mut caused = burst(0);
        caused.executed.push(executed(0x240, 10));
        assert!(!super::costs(&[caused], &symbols).functions[1].is_background);
        // Sum and bursts cover the same functions, whichever they are.
        let total = costs.over(|function| function.name != "rare");
        assert_eq!((total.instructions, total.bursts), (102.0, vec![102.0; 3]));
    }
}
