//! Samples of a simulated device: the same text every time, under names that no kernel has.

use super::{Profiler, RawProfile, Sampling};
use fwdlab_model::record::ProfileCounter;
use std::fmt::Write;

/// A simulated profiler.
pub struct Simulated<'a> {
    clock: &'a dyn Fn() -> u64,
    frequency_hz: u32,
    /// True to use the weights with a firewall in [`STACKS`].
    firewall: bool,
    raw: RawProfile,
}

/// Each function with its callers, innermost first, and its weights without and with a firewall.
const STACKS: [(&[&str], u32, u32); 5] = [
    (&["simulated_receive", "simulated_poll"], 30, 20),
    (&["simulated_route_lookup", "simulated_forward", "simulated_poll"], 25, 18),
    (&["simulated_rewrite", "simulated_forward", "simulated_poll"], 15, 10),
    (&["simulated_firewall", "simulated_forward", "simulated_poll"], 0, 32),
    (&["simulated_transmit", "simulated_poll"], 30, 20),
];

impl<'a> Simulated<'a> {
    /// Returns a profiler with the simulation's clock, for a device with or without a firewall.
    pub fn new(clock: &'a dyn Fn() -> u64, plan: &Sampling, firewall: bool) -> Simulated<'a> {
        let raw = RawProfile {
            source: format!("simulated, not sampled, at {} Hz", plan.frequency_hz),
            event: "simulated-clock".into(),
            call_graph: "simulated".into(),
            counters: super::perf::COUNTED
                .map(|name| ProfileCounter::absent(name, "nothing runs in a simulation"))
                .into(),
            remarks: vec![
                "SIMULATED: these samples were written by a model, no CPU was looked at".into(),
            ],
            ..RawProfile::default()
        };
        Simulated { clock, frequency_hz: plan.frequency_hz, firewall, raw }
    }
}

impl Profiler for Simulated<'_> {
    fn start(&mut self) {
        self.raw.sampled_from_ns = (self.clock)();
    }

    fn stop(&mut self) {
        self.raw.sampled_to_ns = (self.clock)();
    }

    fn finish(mut self: Box<Self>) -> RawProfile {
        let period_ns = 1_000_000_000 / u64::from(self.frequency_hz.max(1));
        let weight = |&(_, plain, filtered): &(_, u32, u32)| {
            if self.firewall { filtered } else { plain }
        };
        let total: u32 = STACKS.iter().map(weight).sum();
        let mut at_ns = self.raw.sampled_from_ns;
        let mut step = 0;
        while at_ns < self.raw.sampled_to_ns {
            // Steps of 37 modulo 100 reach every hundredth once before any repeats.
            let mut place = (step * 37) % total;
            let stack = STACKS.iter().find(|stack| {
                let is_chosen = place < weight(stack);
                place = place.saturating_sub(weight(stack));
                is_chosen
            });
            if let Some(&(functions, ..)) = stack {
                write_sample(&mut self.raw.text, at_ns, period_ns, functions);
            }
            at_ns += period_ns;
            step = (step + 1) % total;
        }
        self.raw
    }
}

fn write_sample(text: &mut String, at_ns: u64, period_ns: u64, functions: &[&str]) {
    let (seconds, nanoseconds) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    let _ = writeln!(
        text,
        "simulated     1/1     [000] {seconds:5}.{nanoseconds:09}: {period_ns:10} simulated-clock: "
    );
    for (depth, function) in functions.iter().enumerate() {
        let _ =
            writeln!(text, "\t{:16x} {function}+0x{depth:x} ([simulated])", 0x1000 * (depth + 1));
    }
    text.push('\n');
}
