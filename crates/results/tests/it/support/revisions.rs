//! Fabricated stores of machines and kernels, for histories.

#![allow(dead_code, reason = "each test binary uses a part")]

use crate::support::Random;
use fwdlab_model::record::{Counts, Environment, TrialRecord};
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::store::{Contents, Invocation, Store};
use std::collections::BTreeMap;

pub(crate) fn section(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Environment of an imported store.
pub(crate) fn archive(pairs: &[(&str, &str)]) -> Environment {
    Environment(BTreeMap::from([("archive".to_owned(), section(pairs))]))
}

/// Environment of a store that was measured on this machine.
pub(crate) fn machine(release: &str) -> Environment {
    let cpu = section(&[("model", "Example CPU @ 2.60GHz")]);
    let kernel = section(&[("release", release)]);
    Environment(BTreeMap::from([("cpu".to_owned(), cpu), ("kernel".to_owned(), kernel)]))
}

/// A store whose runs forward at `rate` of the variant's label, within about 1 %.
pub(crate) fn store(
    plan: &Plan,
    testbed: &str,
    date: &str,
    environment: Environment,
    rate: &dyn Fn(&str) -> f64,
) -> Contents {
    let mut store = Store::memory().unwrap();
    store.adopt_plan(plan, "").unwrap();
    let invocation = Invocation {
        started_at: date.to_owned(),
        fwdlab_version: "0.1.0 (0123abcd)".into(),
        testbed: testbed.parse().expect("a testbed"),
        testbed_reason: "a test".into(),
        simulated: testbed == "sim",
        bed: None,
        environment,
    };
    store.begin_invocation(&invocation).unwrap();
    let mut random = Random(plan.runs.len() as u64 + date.bytes().map(u64::from).sum::<u64>());
    for run in &plan.runs {
        let pps = rate(&plan.variants[run.variants[0]].label) * (1.0 + 0.008 * random.normal());
        let window = Counts { offered: 1 << 40, forwarded: (pps * 10.0) as u64 };
        store
            .insert_run(&RunRecord {
                run: run.index,
                block: run.block,
                variants: run.variants.clone(),
                run_id: run.index + 1,
                started_at: date.to_owned(),
                trial: TrialRecord {
                    window_ns: 10_000_000_000,
                    window,
                    total: window,
                    ..TrialRecord::default()
                },
                ..RunRecord::default()
            })
            .unwrap();
    }
    store.contents().unwrap()
}
