//! The readers of Linux's files and tools never panic, and no sum overflows.

#![no_main]

use fwdlab_bench::cpu;
use fwdlab_bench::dut::counters::{self, Reading};
use fwdlab_bench::dut::linux::interfaces::{Channels, feature_state, is_up, queue_interrupts};
use fwdlab_bench::dut::linux::{nft, scheduling};
use fwdlab_bench::dut::{self, Loss, Totals, drop_accounting, freebsd};
use fwdlab_bench::links::Links;
use fwdlab_model::record::Counts;
use fwdlab_model::settings::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let lines = text.lines().count();
    let mut all = counters::interface_counters(text, ["d0", "d1"]);
    all.extend(counters::snmp_counters(text));
    all.extend(counters::snmp6_counters(text));
    all.extend(counters::softnet_counters(text));
    locate_losses(all.into_iter().collect());
    let sums = counters::softnet_counters(text);
    let per_cpu = drop_accounting::softnet_counters(text, &[0, 1]);
    assert!((sums.len(), per_cpu.len()) == (2, 3));
    let _ = (drop_accounting::softirqs(text, &[0, 1]), drop_accounting::conntrack_counters(text));
    assert!(drop_accounting::queue_counters("d0", text).len() <= lines);
    assert!(drop_accounting::nft_counters(text).len() <= lines);
    assert!(cpu::times(text).len() <= lines);
    let numbers = queue_interrupts(text, "enp1s0", text);
    assert!(numbers.len() <= lines);
    let _ = (Channels::current(text).pairs(), nft::census(text, None), is_up(text));
    assert!(!feature_state(text, "rx-gro-list").is_empty());
    assert!(!scheduling::short_mask(text).is_empty());
});

/// Locates losses with counters that rose from zero, and with unchanged ones.
fn locate_losses(reading: Reading) {
    let links = Links::of_namespaces();
    let offered = reading.values().copied().max().unwrap_or(0);
    let total = Counts { offered, forwarded: 0 };
    let (settings, totals) = (
        &Settings::default(),
        Totals { passed: total, at_interfaces: total, directions: Default::default() },
    );
    let nothing = dut::Reading::default();
    let reading = dut::Reading { machine: reading, own: Vec::new() };
    for (before, after) in [(&nothing, &reading), (&reading, &reading)] {
        let loss = Loss { before, after, total, receiver: offered, settings };
        let _ = counters::compare(before, after, totals, &links);
        let _ = drop_accounting::drops(&loss, true, &links);
        let _ = freebsd::counters::drops(&loss, true, &links);
    }
}
