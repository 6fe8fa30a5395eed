//! Output of BSD's gprof for made-up stacks.

use crate::random::Random;
use std::fmt::Write as _;

/// Functions along one chain of calls: name, self seconds, calls. Each calls only the next one.
const CHAIN: &[(&str, u64, u64)] = &[
    ("ether_input", 19_851, 857_361),
    ("netisr_dispatch_src", 10_066, 827_534),
    ("ip_input", 9_769, 821_314),
    ("ip_tryforward", 130_391, 821_314),
    ("ip_findroute", 16_365, 308_315),
    ("rtalloc1_fib", 43_523, 292_783),
    ("in_matroute", 79_973, 105_049),
    ("__rw_rlock", 159_488, 240_106),
];
/// Functions without a known caller.
const ALONE: &[(&str, u64)] = &[("rn_match", 15_972), ("bcmp", 54_902), ("bcopy", 48_472)];

/// Returns call graph and flat profile; the numbers depend on `name`.
pub(crate) fn text(name: &str) -> String {
    let mut random = Random::of(name);
    let mut vary = |seconds: u64| seconds - seconds / 10 + random.below(seconds / 5);
    let chain: Vec<(&str, u64, u64)> = CHAIN
        .iter()
        .map(|&(name, self_seconds, calls)| (name, vary(self_seconds), calls))
        .collect();
    let alone: Vec<(&str, u64)> =
        ALONE.iter().map(|&(name, self_seconds)| (name, vary(self_seconds))).collect();
    let chain_total: u64 = chain.iter().map(|(_, self_seconds, _)| self_seconds).sum();
    let total = chain_total + alone.iter().map(|(_, self_seconds)| self_seconds).sum::<u64>();
    let granularity = format!(
        "granularity: each sample hit covers 4 byte(s) for 0.00% of {total}.00 seconds\n\n"
    );

    let mut graph = String::new();
    let mut remaining = chain_total;
    for (at, &(name, self_seconds, calls)) in chain.iter().enumerate() {
        let caller = at.checked_sub(1).map(|caller| chain[caller].0);
        let (index, share) = (at + 1, 100.0 * remaining as f64 / total as f64);
        remaining -= self_seconds;
        let times = format!("{self_seconds}.00 {remaining:>8}.00");
        let _ = match caller {
            Some(caller) => {
                writeln!(graph, "             {times}  {calls}/{calls}      {caller} [{at}]")
            }
            None => writeln!(graph, "{}<spontaneous>", " ".repeat(53)),
        };
        let _ =
            writeln!(graph, "[{index}]     {share:.1} {times}  {calls}         {name} [{index}]");
        if let Some(&(callee, self_seconds, calls)) = chain.get(at + 1) {
            let _ = writeln!(
                graph,
                "             {self_seconds}.00 {:>8}.00  {calls}/{calls}      {callee} [{}]",
                remaining - self_seconds,
                index + 1
            );
        }
        graph += RULE;
    }
    let rows = chain.iter().map(|&(name, self_seconds, calls)| (name, self_seconds, calls));
    let mut rows: Vec<_> =
        rows.chain(alone.iter().map(|&(name, self_seconds)| (name, self_seconds, 0))).collect();
    for (at, &(name, self_seconds)) in (chain.len() + 1..).zip(&alone) {
        let share = 100.0 * self_seconds as f64 / total as f64;
        let _ = writeln!(graph, "{}<spontaneous>", " ".repeat(53));
        let _ = writeln!(
            graph,
            "[{at}]     {share:.1} {self_seconds}.00        0.00                 {name} [{at}]"
        );
        graph += RULE;
    }

    let index_of = |name: &str| rows.iter().position(|row| row.0 == name).map_or(0, |at| at + 1);
    let indices: Vec<usize> = rows.iter().map(|row| index_of(row.0)).collect();
    let mut indexed: Vec<_> = rows.drain(..).zip(indices).collect();
    indexed.sort_by_key(|((_, self_seconds, _), _)| std::cmp::Reverse(*self_seconds));
    let (mut flat, mut sum) = (String::new(), 0);
    for ((name, self_seconds, calls), index) in indexed {
        sum += self_seconds;
        let share = 100.0 * self_seconds as f64 / total as f64;
        let per_call = match calls {
            0 => "100.00%         ".to_owned(),
            calls => format!("{0:.2} {0:>8.2}", 1000.0 * self_seconds as f64 / calls as f64),
        };
        let _ = writeln!(
            flat,
            "{share:5.1} {sum:>7}.00 {self_seconds}.00 {calls:>8}  {per_call}  {name} [{index}]"
        );
    }
    format!(
        "call graph profile:\n\n{granularity}{}called/total       parents \nindex  %time    self \
         descendents  called+self    name    \tindex\n{}called/total       children\n\n{graph}\
         flat profile:\n\n{granularity}  %   cumulative   self              self     total\n time   \
         seconds   seconds    calls  ms/call  ms/call  name\n{flat}\nIndex by function name\n\n",
        " ".repeat(34),
        " ".repeat(34),
    )
}

const RULE: &str = "\n-----------------------------------------------\n\n";
