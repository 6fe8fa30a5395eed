//! Coverage of reported intervals in simulation: of many experiments the 95 % intervals cover the
//! truth in about 95 of 100.

use crate::support::{begun, plan, simulated};
use fwdlab_bench::testbed::sim::truth_pps;
use fwdlab_model::Plan;
use fwdlab_results::report::{Analysis, results_json};
use fwdlab_results::store::Store;

const EXPERIMENTS: u32 = 200;

fn experiment(seed: u32) -> Plan {
    plan(&format!(
        "version = 1\n[testbed]\nkind = \"sim\"\n\
         [testbed.sim]\nnoise = 0.03\ndrift = 0.5\neffect = {{ \"firewall=stateful\" = 0.95 }}\n\
         [[factor]]\nname = \"firewall\"\nlevels = [\"none\", \"stateful\"]\n\
         [trial]\nduration = \"300ms\"\n[design]\nblocks = 6\nseed = {seed}\n"
    ))
}

/// Runs the experiment, and reads the interval of the ratio from its `results.json`.
fn interval(plan: &Plan) -> (f64, f64) {
    let mut store = begun(Store::memory().expect("a store"), plan, "sim");
    for run in &plan.runs {
        store.insert_run(&simulated(plan, run)).expect("stored");
    }
    let results = results_json(&Analysis::of_store(&store).expect("an analysis")).expect("JSON");
    let comparison = &results["comparisons"][0]["outcome"]["compared"]["comparison"];
    let number = |name: &str| comparison[name].as_f64().expect("a number");
    assert_eq!(number("confidence"), 95.0);
    (number("low"), number("high"))
}

#[test]
fn reported_intervals_cover_the_simulated_truth() {
    let covered = (1..=EXPERIMENTS)
        .filter(|&seed| {
            let plan = experiment(seed);
            let truth = truth_pps(&plan, 1) / truth_pps(&plan, 0);
            let (low, high) = interval(&plan);
            low <= truth && truth <= high
        })
        .count();
    let share = 100.0 * covered as f64 / f64::from(EXPERIMENTS);
    println!("{share:.1} % of {EXPERIMENTS} intervals cover the truth");
    // Three standard errors of a share of 95 % of 200 are 4.6 %.
    assert!((90.0..=99.0).contains(&share), "{share} %");
}
