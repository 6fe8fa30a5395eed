//! Packets per second from memory to memory, one core: the acceptance variants, or with `locks`,
//! each kind of table locking; with `inet6`, in that family; with `few`, fewer rounds. `fwdlab
//! bench route` measures any variant.

use fwdlab_netio::affinity;
use fwdlab_packet::Family;
use fwdlab_router::bench::route::{Question, Variant, ratios, route};
use fwdlab_router::fib::Locking;
use std::time::Duration;

const ROUNDS: u32 = 15;
/// Length of a round, for either figure.
const ROUND: Duration = Duration::from_millis(100);

fn main() {
    let cpus = affinity::allowed_cpus().expect("CPUs");
    affinity::pin_thread(&cpus[cpus.len() - 1..]).expect("a CPU that is allowed");
    let has_argument = |word| std::env::args().any(|argument| argument == word);
    let family = if has_argument("inet6") { Family::Inet6 } else { Family::Inet };
    let variants = match has_argument("locks") {
        true => Locking::ALL.map(|locking| Variant { locking, ..Variant::plain(family) }).to_vec(),
        false => Variant::acceptance(family).to_vec(),
    };
    let rounds = if has_argument("few") { 3 } else { ROUNDS };
    let time = ROUND * rounds * 2;
    let question = Question { variants, frame_size: None, flows: 2000, time, rounds, seed: 1 };
    let figures = route(&question).expect("every packet is forwarded");
    println!("million packets a second, and ratio to the first: median (min to max)");
    for figure in &figures {
        println!("  {}", figure.variant.name());
        for (what, rates, first) in [
            ("whole", &figure.whole_per_second, &figures[0].whole_per_second),
            ("router alone", &figure.alone_per_second, &figures[0].alone_per_second),
        ] {
            let [low, median, high] = spread(rates).map(|rate| rate / 1e6);
            let ratios = spread(&ratios(rates, first)).map(|ratio| format!("{ratio:.2}"));
            let [ratio_low, ratio, ratio_high] = ratios;
            let rates = format!("{median:.1} ({low:.1} to {high:.1})");
            println!("    {what:14} {rates:24} {ratio} ({ratio_low} to {ratio_high})");
        }
    }
}

/// Minimum, median and maximum.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}
