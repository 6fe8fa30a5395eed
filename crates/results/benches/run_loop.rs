//! CPU time of a run outside of the testbed: choosing it, storing it, evaluating the stopping rule.
//! Measured for the thread, including flushing to disk; it must not grow with the number of blocks.
//! Simulated runs are not flushed one by one, runs in namespaces are (the first rows).
//!
//! `cargo bench -p fwdlab-results --bench run_loop`

#[path = "../tests/it/support/mod.rs"]
mod support;

use fwdlab_model::plan::Stop;
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::report::analysis::StoppingWatch;
use fwdlab_results::store::Store;
use std::collections::HashSet;
use support::{firewall, invocation, plan, record};

const BLOCKS: [u32; 5] = [100, 200, 400, 800, 10_000];

/// Two variants in blocks; the comparison never satisfies the stopping rule.
fn pair(kind: TestbedKind, blocks: u32, stop: Option<Stop>) -> Plan {
    let mut factor = firewall();
    factor.levels.truncate(2);
    let mut plan = plan(kind, vec![factor], vec![Some(0)], blocks);
    plan.design.stop = stop;
    plan.compare.margin = 1e-9;
    plan
}

/// CPU time of this thread so far in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// Record with equal rates for both variants, so that the stopping rule never decides.
fn undecided_record(plan: &Plan, index: u32) -> RunRecord {
    let even = record(plan, index / 2 * 2);
    let planned = &plan.runs[index as usize];
    let mut record = RunRecord { run: index, variants: planned.variants.clone(), ..even };
    record.trial.samples.iter_mut().for_each(|sample| sample.variant = planned.variants[0]);
    record.trial.window.forwarded += u64::from(index % 2) * u64::from(index % 7) * 1000;
    record
}

/// Runs the session's loop around a testbed without cost; returns the CPU time in nanoseconds.
fn run_session(kind: TestbedKind, plan: &Plan) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let records: Vec<RunRecord> =
        (0..plan.runs.len() as u32).map(|index| undecided_record(plan, index)).collect();
    let began = cpu_ns();
    let mut store = Store::open(&directory.path().join("run.sqlite")).expect("a store");
    store.adopt_plan(plan, "").expect("a plan");
    let missing: HashSet<u32> =
        store.missing_runs(plan).expect("missing runs").into_iter().collect();
    let mut watch = StoppingWatch::begin(plan, &store).expect("a watch");
    store.begin_invocation(&invocation(kind)).expect("an invocation");
    let mut block = None;
    for run in plan.runs.iter().filter(|run| missing.contains(&run.index)) {
        if block != Some(run.block) && watch.as_ref().is_some_and(StoppingWatch::is_done) {
            panic!("decided before block {}", run.block);
        }
        block = Some(run.block);
        let record = &records[run.index as usize];
        store.insert_run(record).expect("a run is kept");
        if let Some(watch) = &mut watch {
            watch.add(record);
        }
    }
    cpu_ns() - began
}

fn main() {
    // `cargo test --benches` only checks that it runs.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    println!("{:8} {:>7} {:>9} {:>9} {:>9}", "stop", "blocks", "CPU s", "us a run", "relative");
    for (name, kind, stop) in [
        ("flushed", TestbedKind::Netns, None),
        ("-", TestbedKind::Sim, None),
        ("planned", TestbedKind::Sim, Some(Stop::Planned)),
        ("open", TestbedKind::Sim, Some(Stop::Open)),
    ] {
        let mut first = None;
        for blocks in BLOCKS.into_iter().take(if is_test { 1 } else { BLOCKS.len() }) {
            let plan = pair(kind, blocks, stop);
            let ns = run_session(kind, &plan) as f64;
            let each = ns / plan.runs.len() as f64;
            let relative = each / *first.get_or_insert(each);
            let (seconds, us) = (ns / 1e9, each / 1e3);
            println!("{name:8} {blocks:>7} {seconds:>9.3} {us:>9.1} {relative:>9.2}");
        }
    }
}
