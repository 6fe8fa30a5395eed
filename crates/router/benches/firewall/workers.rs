//! One worker compared with two workers of one router.

use super::{Path, ROUNDS, Run, frames, spread, table};
use fwdlab_netio::affinity;
use fwdlab_packet::Flows;
use fwdlab_router::firewall::{Ruleset, SharedFirewall, Standard, StateConfig, StateTable};
use fwdlab_router::path::NoFirewall;
use std::sync::Barrier;
use std::thread;

/// Compares each kind with one worker and then with two, in turns; `cpus` are the allowed CPUs.
pub(super) fn compare(cpus: &[u16]) {
    let Some(cpus) = cpus.last_chunk::<2>() else {
        println!("one CPU: there is nothing to compare");
        return;
    };
    println!("million packets a second of one worker, of two, and ratio: medians (min to max)");
    for (sources, destinations) in [(20, 100), (1000, 1000)] {
        let flows = Flows { sources, destinations };
        let frames = frames(flows);
        let halves: Vec<&[[u8; 60]]> = frames.chunks(frames.len() / 2).collect();
        println!("{} flows", flows.count());
        for (name, kind) in [
            ("plain", None),
            ("uncached", Some((StateTable::Sharded, false))),
            ("sharded", Some((StateTable::Sharded, true))),
            ("global", Some((StateTable::Global, false))),
        ] {
            let (mut one, mut two, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            let (mut alone, mut pair) = (workers(kind, 1), workers(kind, 2));
            for _ in 0..ROUNDS {
                one.push(together(&mut alone, &[&frames], cpus));
                two.push(together(&mut pair, &halves, cpus));
                ratios.push(two[two.len() - 1] / one[one.len() - 1]);
            }
            let text = |values: &mut Vec<f64>, unit: f64| {
                let [low, median, high] = spread(values).map(|value| value / unit);
                format!("{median:.2} ({low:.2} to {high:.2})")
            };
            let [one, two] = [&mut one, &mut two].map(|rates| text(rates, 1e6));
            println!("  {name:10} {one:24} {two:24} {}", text(&mut ratios, 1.0));
        }
    }
}

/// Workers that share a table, and states if there are any.
fn workers(kind: Option<(StateTable, bool)>, count: usize) -> Vec<Box<dyn Run>> {
    let table = table();
    let wall = kind.map(|(kind, flow_cache)| {
        let config = StateConfig { kind, flow_cache, seed: Some(1), ..StateConfig::default() };
        let rules = Ruleset::standard(Standard::Stateful);
        SharedFirewall::new(&rules, &config).expect("sound rules")
    });
    let one = |_| match &wall {
        None => Path::boxed(NoFirewall, &table),
        Some(wall) => Path::boxed(wall.filter(), &table),
    };
    (0..count).map(one).collect()
}

/// Packets per second of all workers, each with its own frames.
fn together(workers: &mut [Box<dyn Run>], frames: &[&[[u8; 60]]], cpus: &[u16; 2]) -> f64 {
    let ready = Barrier::new(workers.len());
    thread::scope(|scope| {
        let ready = &ready;
        let all = workers.iter_mut().zip(frames).zip(cpus);
        let running: Vec<_> = all
            .map(|((run, frames), cpu)| {
                scope.spawn(move || {
                    affinity::pin_thread(&[*cpu]).expect("a CPU that is allowed");
                    run.whole(frames);
                    ready.wait();
                    run.round(frames)
                })
            })
            .collect();
        running.into_iter().map(|one| one.join().expect("no panic")).sum()
    })
}
