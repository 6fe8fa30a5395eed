//! A stopping rule evaluated run by run decides like one that has all runs.

use crate::support::{fill, firewall, full_store, plan, record, store};
use fwdlab_model::Plan;
use fwdlab_model::plan::Stop;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Outcome, Stopping, StoppingWatch};
use fwdlab_results::stats::Verdict;
use fwdlab_results::store::Store;

const BLOCKS: u32 = 12;

/// Plan of none, stateless and stateful in blocks, with the first as baseline.
fn plan_stopped_by(stop: Stop) -> Plan {
    let mut plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], BLOCKS);
    plan.design.stop = Some(stop);
    plan
}

/// Numbers of different, equivalent and open comparisons, by the verdicts of a report.
fn verdicts(analysis: &Analysis) -> [usize; 3] {
    let mut found = [0; 3];
    for compared in &analysis.core.comparisons {
        let verdict = match &compared.outcome {
            Outcome::Compared(answer) => Some(answer.verdict),
            _ => None,
        };
        match verdict {
            Some(Verdict::Better | Verdict::Worse) => found[0] += 1,
            Some(Verdict::Equivalent) => found[1] += 1,
            _ => found[2] += 1,
        }
    }
    found
}

fn counts(stopping: &Stopping) -> [usize; 3] {
    [stopping.different, stopping.equivalent, stopping.open]
}

#[test]
fn stopping_watch_agrees_with_the_report() {
    for stop in [Stop::Planned, Stop::Open] {
        let plan = plan_stopped_by(stop);
        let mut store = store(&plan, []);
        let mut watch = StoppingWatch::begin(&plan, &store).unwrap().unwrap();
        assert_eq!(watch.stopping().blocks, 0);
        let whole = Analysis::of_store(&full_store(&plan)).unwrap();
        let mut decided_at = None;
        for index in 0..plan.runs.len() as u32 {
            let record = record(&plan, index);
            store.insert_run(&record).unwrap();
            watch.add(&record);
            let stopping = watch.stopping();
            assert_eq!(stopping.done, watch.is_done());
            assert_eq!(stopping.blocks, (index + 1) / 3);
            // Before and after the first look, and at the end.
            if [2, 11, 14, 23, 35].contains(&index) {
                let again = StoppingWatch::begin(&plan, &store).unwrap().unwrap();
                assert_eq!(stopping, again.stopping(), "{stop:?}, run {index}");
                let report = Analysis::of_store(&store).unwrap();
                assert_eq!(counts(stopping), verdicts(&report), "{stop:?}, run {index}");
            }
            decided_at = decided_at.or(stopping.done.then_some(stopping.blocks));
        }
        // A twentieth and a fifth slower, with noise of 1 %: detected early.
        assert!(decided_at.is_some_and(|blocks| blocks < BLOCKS), "{stop:?}: {decided_at:?}");
        assert_eq!(whole.core.stopping.as_ref(), Some(watch.stopping()));
    }
}

#[test]
fn stopping_watch_orders_late_runs_by_block() {
    let plan = plan_stopped_by(Stop::Open);
    let (late, first): (Vec<u32>, Vec<u32>) =
        (0..plan.runs.len() as u32).partition(|&index| plan.runs[index as usize].block % 3 == 1);
    let store = store(&plan, first);
    let mut watch = StoppingWatch::begin(&plan, &store).unwrap().unwrap();
    assert_eq!(watch.stopping().blocks, 1);
    let mut all = Store::memory().unwrap();
    fill(&mut all, &plan, 0..plan.runs.len() as u32);
    late.iter().rev().for_each(|&index| watch.add(&record(&plan, index)));
    let rebuilt = StoppingWatch::begin(&plan, &all).unwrap().unwrap();
    assert_eq!(watch.stopping(), rebuilt.stopping());
}

#[test]
fn stopping_watch_is_none_without_a_rule() {
    let plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], BLOCKS);
    // The plan of the store is not even read.
    let empty = Store::memory().unwrap();
    assert!(StoppingWatch::begin(&plan, &empty).unwrap().is_none());
}
