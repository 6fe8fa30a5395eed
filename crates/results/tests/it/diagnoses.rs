//! Diagnoses of runs in reports.

use crate::support::{alternation_plan, firewall, full_store, plan, record, store};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, RunRecord, Warning};
use fwdlab_results::report::{Analysis, files, show_json};
use fwdlab_results::stats::diagnostics::Diagnosis;
use fwdlab_results::store::Store;

/// Three firewalls in six blocks; the metric is the mean of the window.
fn sim_plan() -> Plan {
    plan(TestbedKind::Sim, vec![firewall()], vec![Some(0)], 6)
}

/// A store whose runs are modified by `change`.
fn modified_store(plan: &Plan, change: impl Fn(&mut RunRecord)) -> Store {
    let mut store = store(plan, []);
    for run in 0..plan.runs.len() as u32 {
        let mut record = record(plan, run);
        change(&mut record);
        store.insert_run(&record).unwrap();
    }
    store
}

/// Scales the samples of `record` by `factor` of their index.
fn scale(record: &mut RunRecord, factor: impl Fn(usize) -> f64) {
    for (i, sample) in record.trial.samples.iter_mut().enumerate() {
        sample.forwarded = (sample.forwarded as f64 * factor(i)) as u64;
    }
    record.trial.window.forwarded = record.trial.samples.iter().map(|s| s.forwarded).sum();
}

fn readme_and_page(store: &Store) -> [String; 2] {
    let contents = store.contents().unwrap();
    let files = files(&contents, &Analysis::of(&contents)).unwrap();
    let text = |name: &str| {
        let file = files.iter().find(|file| file.name == name).unwrap();
        String::from_utf8(file.bytes.clone()).unwrap()
    };
    // On pages, numbers are joined to their units.
    [text("README.md") + &text("DETAILS.md"), text("index.html").replace('\u{a0}', " ")]
}

#[test]
fn warm_up_in_the_window_is_reported() {
    let plan = sim_plan();
    let store = modified_store(&plan, |record| {
        if record.run == 7 {
            scale(record, |i| if i < 12 { 0.7 } else { 1.0 });
        }
    });
    let analysis = Analysis::of_store(&store).unwrap();
    assert_eq!(analysis.diagnostics.steadiness.len(), 18);
    let found: Vec<u32> = analysis
        .diagnostics
        .steadiness
        .iter()
        .filter(|s| s.sentence.is_some())
        .map(|s| s.run)
        .collect();
    assert_eq!(found, [7]);
    let run = &analysis.diagnostics.steadiness[7];
    assert!(run.steady.reached && run.steady.from.abs_diff(12) <= 1, "{run:?}");
    assert!((run.steady.head_ratio - 0.7).abs() < 0.03, "{run:?}");
    assert!((run.head_share - 0.3).abs() < 0.03, "{run:?}");
    // The compared value is unchanged; the steady one is additional.
    assert_eq!(run.value_pps, analysis.core.runs[7].value_pps);
    let gain = run.steady_pps.unwrap() / run.value_pps.unwrap();
    assert!((gain - 1.0 / 0.91).abs() < 0.01, "{gain}");
    for text in readme_and_page(&store) {
        assert!(text.contains("still warming up in the first 30 % of the window"), "{text}");
    }
    let json = show_json(&analysis).unwrap();
    assert_eq!(json["steadiness"][7]["steady"]["reached"], true);
    assert_eq!(json["steadiness"][6]["steady"]["from"], 0);
    assert_eq!(json["steadiness"][6]["steady_pps"], json["steadiness"][6]["value_pps"]);
}

#[test]
fn unsteady_run_has_no_steady_rate() {
    let store = modified_store(&sim_plan(), |record| {
        if record.run == 3 {
            scale(record, |i| if i < 20 { 1.0 } else { 0.6 });
        }
    });
    let analysis = Analysis::of_store(&store).unwrap();
    let run = &analysis.diagnostics.steadiness[3];
    assert!(!run.steady.reached && run.steady_pps.is_none() && run.value_pps.is_some());
    for text in readme_and_page(&store) {
        assert!(text.contains("run 3 (") && text.contains("the window never gets steady"));
    }
}

#[test]
fn outlier_is_reported_and_kept() {
    let store = modified_store(&sim_plan(), |record| {
        if record.run == 11 {
            scale(record, |_| 0.8);
        }
    });
    let analysis = Analysis::of_store(&store).unwrap();
    let [finding] = analysis.diagnostics.diagnoses.as_slice() else {
        panic!("{:?}", analysis.diagnostics.diagnoses)
    };
    let Diagnosis::Outlier(outlier) = &finding.evidence else { panic!("{finding:?}") };
    assert_eq!((outlier.runs.as_slice(), outlier.block), ([11].as_slice(), 3));
    assert!((outlier.deviation + 0.2).abs() < 0.05, "{outlier:?}");
    assert!(analysis.core.variants.iter().all(|variant| variant.values.len() == 6));
    for text in readme_and_page(&store) {
        assert!(text.contains("run 11 in block 3 lies") && text.contains("below where"), "{text}");
    }
    assert_eq!(show_json(&analysis).unwrap()["diagnoses"][0]["evidence"]["kind"], "outlier");
}

#[test]
fn drift_over_the_runs_is_reported() {
    let store = modified_store(&sim_plan(), |record| {
        let factor = 1.0 - 0.01 * f64::from(record.run);
        scale(record, |_| factor);
    });
    let analysis = Analysis::of_store(&store).unwrap();
    let kinds: Vec<&Diagnosis> =
        analysis.diagnostics.diagnoses.iter().map(|f| &f.evidence).collect();
    assert!(matches!(kinds[0], Diagnosis::Trend { slope, .. } if *slope < -0.008), "{kinds:?}");
    assert!(matches!(kinds[1], Diagnosis::Autocorrelation { .. }), "{kinds:?}");
    let order = analysis.core.order.unwrap();
    assert!(order.p < 1e-6 && order.lag1_p.unwrap() < 0.01, "{order:?}");
}

#[test]
fn generator_limited_runs_are_reported() {
    let plan = sim_plan();
    let store = modified_store(&plan, |record| {
        if record.variants == [0] && record.block > 1 {
            let warning = Warning::GeneratorLimited { forwarded_pps: 1e6, ceiling_pps: 1.05e6 };
            record.warnings.push(warning);
        }
    });
    let analysis = Analysis::of_store(&store).unwrap();
    let [finding] = analysis.diagnostics.diagnoses.as_slice() else {
        panic!("{:?}", analysis.diagnostics.diagnoses)
    };
    assert_eq!(
        finding.sentence,
        "none: 4 of 6 runs are at what sender and receiver can do (1.05 Mpps); the true rate may \
         be higher, and a ratio with it is a bound"
    );
}

#[test]
fn report_without_findings_lists_the_tests() {
    for text in readme_and_page(&full_store(&sim_plan())) {
        assert!(text.contains("Nothing was found."), "{text}");
        for what in ["Grubbs", "dip test", "trend", "steady state within each window"] {
            assert!(text.contains(what), "{what}");
        }
    }
    for text in readme_and_page(&store(&sim_plan(), 0..2)) {
        assert!(text.contains("Too few runs to look."), "{text}");
    }
}

#[test]
fn streams_have_no_steadiness() {
    let store = full_store(&alternation_plan(TestbedKind::Netns, 4));
    assert!(Analysis::of_store(&store).unwrap().diagnostics.steadiness.is_empty());
    for text in readme_and_page(&store) {
        assert!(text.contains("whose slices switch and settle by themselves"), "{text}");
    }
}

#[test]
fn runs_with_too_few_samples_are_counted_in_the_report() {
    let store = modified_store(&sim_plan(), |record| {
        if record.run < 2 {
            record.trial.samples.truncate(10);
        }
    });
    for text in readme_and_page(&store) {
        assert!(text.contains("2 of 18 runs have too few samples to judge"), "{text}");
    }
}
