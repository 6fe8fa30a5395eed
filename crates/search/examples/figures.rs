//! The figures of docs/MLRSEARCH.md: trials and coverage over simulated devices.
//! `cargo run -p fwdlab-search --release --example figures -- 1000`
use fwdlab_search::simulated::{Device, Law};
use fwdlab_search::{Goal, Irregular, Limits, Search, run};

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let exact = Law::exact(1.0);
    let laws = [
        ("exact", exact),
        ("sigma 0.2 %", Law { sigma: 0.002, ..exact }),
        ("sigma 1 %", Law { sigma: 0.01, ..exact }),
        ("sigma 0.2 %, 10 % lossy", Law { sigma: 0.002, lossy: 0.1, ..exact }),
        ("sigma 0.2 %, 60 % lossy", Law { sigma: 0.002, lossy: 0.6, ..exact }),
        ("60 % lossy", Law { lossy: 0.6, ..exact }),
        ("30 % lossy", Law { lossy: 0.3, ..exact }),
        ("border 5 %", Law { border: 0.05, border_middle: 0.975, ..exact }),
        ("border 20 %", Law { border: 0.2, border_middle: 0.9, ..exact }),
        ("sigma 3 %", Law { sigma: 0.03, ..exact }),
        ("livelock", Law { livelock: 0.3, ..exact }),
        ("overhead 0.5 s", Law { overhead_s: 0.5, ..exact }),
    ];
    for (name, law) in laws {
        let mut trials = Vec::new();
        let (mut covered, mut bias, mut regular) = ([0; 2], [vec![], vec![]], [0; 2]);
        for seed in 0..count {
            let fixed = std::env::args().nth(2).is_some();
            // Log-uniform capacities, from 200,000 to 10 million.
            let at = (seed as f64 * 0.618_033_988_75).fract();
            let capacity = if fixed { 3.3e6 } else { 10_f64.powf(5.3 + 1.7 * at) };
            let law = Law { capacity, ..law };
            let mut device = Device::new(law, seed);
            let goals = ["ndr", "pdr"].map(|name| Goal::preset(name).unwrap()).to_vec();
            let search = Search::new(goals, Limits::between(9_001, 14_880_000)).unwrap();
            let result = run(search, |trial| Ok::<_, ()>(device.measure(trial))).unwrap();
            trials.push(device.trials);
            for (at, found) in result.goals.iter().enumerate() {
                let truth = law.truth(found.goal.loss_ratio);
                covered[at] += usize::from(match (truth, found.bounds.lower, found.bounds.upper) {
                    (Some(truth), Some(low), Some(high)) => {
                        low as f64 <= truth && truth <= high as f64
                    }
                    (None, ..) => found.irregular == Some(Irregular::NoLowerBound),
                    _ => false,
                });
                regular[at] += usize::from(found.is_regular());
                if let (Some(rate), Some(truth)) = (found.conditional_throughput, truth) {
                    bias[at].push(100.0 * (rate / (truth * (1.0 - found.goal.loss_ratio)) - 1.0));
                }
            }
        }
        trials.sort_unstable();
        let mean = trials.iter().sum::<usize>() as f64 / trials.len() as f64;
        let share = |count: usize| 100.0 * count as f64 / trials.len() as f64;
        let spread = |values: &[f64]| {
            let n = values.len().max(1) as f64;
            let mean = values.iter().sum::<f64>() / n;
            let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            format!("{mean:.3}+-{:.3}", square.sqrt())
        };
        println!(
            "{name:24} trials {}/{mean:.1}/{} covered {:.0} {:.0} % regular {:.0} {:.0} % bias {} {}",
            trials[0],
            trials[trials.len() - 1],
            share(covered[0]),
            share(covered[1]),
            share(regular[0]),
            share(regular[1]),
            spread(&bias[0]),
            spread(&bias[1]),
        );
    }
}
