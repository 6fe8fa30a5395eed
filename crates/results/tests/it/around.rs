//! Reports of the time before and after the windows.

use crate::support::{family, plan, record, store};
use fwdlab_model::record::{DrainEnd, Opening, RunRecord};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::report::{Analysis, files};

/// Four blocks of two families, with each run modified by `change`.
fn contents(change: impl Fn(&mut RunRecord)) -> fwdlab_results::store::Contents {
    let plan = plan(TestbedKind::Sim, vec![family()], vec![None], 4);
    let mut store = store(&plan, []);
    for run in 0..plan.runs.len() as u32 {
        let mut record = record(&plan, run);
        change(&mut record);
        store.insert_run(&record).unwrap();
    }
    store.contents().unwrap()
}

#[test]
fn report_shows_openings_and_drains_by_variant() {
    let opening = |run: &RunRecord| Opening {
        warmup_ns: 2_500_000_000,
        flows: 1_000_000,
        flows_sent: Some(1_000_000),
        states: Some(if run.run == 0 { 441_648 } else { 1_000_000 }),
        states_closing: Some(1_000_000),
        is_stateful: true,
        drained: Some(if run.run == 0 { DrainEnd::Limit } else { DrainEnd::Accounted }),
        unaccounted: Some(if run.run == 0 { 251 } else { 0 }),
        ..Opening::default()
    };
    let contents = contents(|run| run.trial.opening = opening(run));
    let analysis = Analysis::of(&contents);
    assert_eq!(analysis.openings.len(), 2);
    let early = analysis.openings.iter().find(|row| row.early == 1).expect("the run 0");
    assert_eq!((early.states, early.unaccounted), (Some(441_648), Some(251)));
    assert!(early.drained.contains("at its limit (1)"), "{}", early.drained);
    let files = files(&contents, &analysis).unwrap();
    for name in ["DETAILS.md", "index.html"] {
        let file = files.iter().find(|file| file.name == name).expect("a report");
        let text = String::from_utf8_lossy(&file.bytes).replace('\u{202f}', "");
        assert!(text.contains("Before and after the windows"), "{name}");
        assert!(text.contains("at its limit (1)"), "{name}");
    }
}

#[test]
fn records_without_openings_have_no_table() {
    assert!(Analysis::of(&contents(|_| {})).openings.is_empty());
}
