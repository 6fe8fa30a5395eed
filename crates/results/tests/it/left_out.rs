//! Runs left out of verdicts enter no statistic of reports, comparisons, histories and catalogues.

use crate::revisions::{archive, machine, store as revision_store};
use crate::support::{firewall, full_store, plan, queues, record};
use fwdlab_model::plan::{Factor, Level};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, Warning};
use fwdlab_results::catalogue::Entry;
use fwdlab_results::compare::{Question, Results, compare, compare_store};
use fwdlab_results::history::Collector;
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::{Analysis, files};
use fwdlab_results::store::{Contents, Store};
use std::path::Path;
use tempfile::TempDir;

/// Two firewalls and none in eight blocks. The sender falls short in one run of the last firewall.
fn short_store() -> (Plan, Store) {
    let plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 8);
    let mut store = crate::support::store(&plan, []);
    for index in 0..plan.runs.len() as u32 {
        let mut run = record(&plan, index);
        if run.block == 2 && run.variants == [2] {
            run.trial.window.forwarded /= 10;
            run.warnings = vec![Warning::Unsent { intended: 2000, offered: 1000 }];
        }
        store.insert_run(&run).unwrap();
    }
    (plan, store)
}

fn results_of(path: &Path) -> Results {
    let arguments = vec![path.to_string_lossy().into_owned()];
    compare(&Question { arguments, ..Question::default() }).unwrap()
}

#[test]
fn compare_summarises_included_runs() {
    let (_, store) = short_store();
    let analysis = Analysis::of_store(&store).unwrap();
    let results = compare_store(&Question::default(), &store).unwrap();
    for (variant, reported) in results.variants.iter().zip(&analysis.core.variants) {
        assert_eq!(variant.values, reported.values, "{}", variant.label);
    }
    assert_eq!(results.variants[2].values.len(), 7);
    for (result, reported) in results.comparisons.iter().zip(&analysis.core.comparisons) {
        let (Outcome::Compared(result), Outcome::Compared(reported)) =
            (&result.outcome, &reported.outcome)
        else {
            panic!("no answer");
        };
        assert_eq!(result.comparison, reported.comparison);
    }
}

#[test]
fn compare_summarises_all_builds_of_a_revision() {
    let level = |label: &str, revision: &str| Level {
        label: label.into(),
        number: None,
        changes: Vec::new(),
        build_of: Some(revision.into()),
    };
    let levels =
        [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")].map(|(l, r)| level(l, r)).to_vec();
    let factor = Factor { name: "kernel".into(), levels };
    let plan = plan(TestbedKind::Netns, vec![factor], vec![Some(0)], 6);
    let store = full_store(&plan);
    let analysis = Analysis::of_store(&store).unwrap();
    let results = compare_store(&Question::default(), &store).unwrap();
    let labels: Vec<&str> = results.variants.iter().map(|v| v.label.as_str()).collect();
    assert_eq!(labels, ["a", "b"]);
    for (variant, builds) in results.variants.iter().zip(analysis.core.variants.chunks(2)) {
        let values: Vec<f64> = builds.iter().flat_map(|build| build.values.clone()).collect();
        assert_eq!(variant.values, values, "{}", variant.label);
    }
}

#[test]
fn table_with_marked_runs_matches_its_results() {
    let (_, store) = short_store();
    let contents = store.contents().unwrap();
    let directory = TempDir::new().unwrap();
    for file in files(&contents, &Analysis::of(&contents)).unwrap() {
        if ["runs.csv", "results.json"].contains(&file.name.as_str()) {
            std::fs::write(directory.path().join(&file.name), &file.bytes).unwrap();
        }
    }
    let results = results_of(&directory.path().join("runs.csv"));
    let is_rejected = |note: &String| note.contains("not used");
    assert!(!results.notes.iter().any(is_rejected), "{:?}", results.notes);
    assert_eq!(results.comparisons.len(), 2, "the baseline is known from the results");
    assert_eq!(results.variants[2].values.len(), 7);
}

#[test]
fn diagnostics_exclude_left_out_runs() {
    let (_, store) = short_store();
    let contents = store.contents().unwrap();
    let analysis = Analysis::of(&contents);
    let found = &analysis.diagnostics.diagnoses;
    assert!(!found.iter().any(|one| one.sentence.contains("it counts like")), "{found:?}");
    let files = files(&contents, &analysis).unwrap();
    let text: String = files
        .iter()
        .filter(|file| file.name.ends_with(".md"))
        .map(|file| String::from_utf8_lossy(&file.bytes))
        .collect();
    assert!(text.contains("The run left out of the comparisons is excluded."), "{text}");
    assert!(!text.contains("No run was excluded."), "{text}");
}

#[test]
fn size_rates_and_scaling_laws_exclude_left_out_runs() {
    use fwdlab_model::plan::Change;
    let level = |bytes: &str| Level {
        label: bytes.into(),
        number: None,
        changes: vec![Change { setting: "frame_size".into(), value: bytes.into(), live: true }],
        build_of: None,
    };
    let factor = Factor { name: "frame_size".into(), levels: ["64", "128"].map(level).to_vec() };
    let plan = plan(TestbedKind::Netns, vec![factor, queues()], vec![Some(0), None], 6);
    let mut whole = full_store(&plan).contents().unwrap();
    let results = |contents: &Contents| {
        let analysis = Analysis::of(contents);
        let sizes = analysis.sizes.as_ref().expect("two sizes");
        let point = &sizes.series[0].points[0];
        assert_eq!(analysis.scaling.len(), 1);
        (point.runs, point.rate, format!("{:?}", analysis.scaling[0].series))
    };
    let index = whole.runs.iter().position(|run| run.variants == [0] && run.block == 3).unwrap();
    let mut absent = whole.clone();
    absent.runs.remove(index);
    absent.run_invocations.remove(index);
    let run = &mut whole.runs[index];
    run.trial.window.forwarded /= 10;
    run.warnings = vec![Warning::Unsent { intended: 2000, offered: 1000 }];
    assert_eq!(results(&whole), results(&absent));
}

#[test]
fn history_and_catalogue_exclude_left_out_runs() {
    let (_, store) = short_store();
    let contents = store.contents().unwrap();
    let mut collector = Collector::new();
    collector.add(Path::new("s/run.sqlite"), &contents);
    let history = collector.finish();
    let runs: Vec<usize> = history.series.iter().map(|one| one.points[0].n).collect();
    assert_eq!(runs.iter().sum::<usize>(), 23, "{runs:?}");
    assert_eq!(history.notes, ["s/run.sqlite: 1 run is left out, as in its report"]);
    let entry = Entry::of(Path::new("s/run.sqlite"), Path::new(""), &contents);
    assert_eq!(entry.rates.iter().map(|rate| rate.n).collect::<Vec<usize>>(), [8, 8, 7]);
}

#[test]
fn history_excludes_distrusted_stores() {
    let plan = plan(TestbedKind::Netns, Vec::new(), Vec::new(), 5);
    let mut contents =
        revision_store(&plan, "netns", "2026-01-01T00:00:00Z", machine("6.1.0"), &|_| 1e6);
    contents.runs[0].warnings = vec![Warning::NotConserved { offered: 10, forwarded: 11 }];
    let mut collector = Collector::new();
    collector.add(Path::new("s/run.sqlite"), &contents);
    let history = collector.finish();
    assert_eq!(history.series.len(), 0);
    assert!(history.notes[0].contains("not to be trusted, it is left out"), "{:?}", history.notes);
}

#[test]
fn agreement_ends_with_its_changes() {
    let plan = plan(TestbedKind::Netns, Vec::new(), Vec::new(), 5);
    let mut collector = Collector::new();
    for machine in ["Atom", "Xeon"] {
        for i in 0..10 {
            let date = format!("2016-{:02}-01T00:00:00Z", i + 1);
            let label = format!("r{}", 299_000 + 1000 * i);
            let names = [
                ("machine", machine),
                ("interface", "Chelsio"),
                ("topic", "queues"),
                ("label", &label),
                ("started", &date),
            ];
            let rate = if i < 5 { 1e6 } else { 0.8e6 };
            let contents = revision_store(&plan, "archive", &date, archive(&names), &|_| rate);
            collector.add(Path::new(&format!("{machine}/{label}/run.sqlite")), &contents);
        }
    }
    let mut history = collector.finish();
    assert_eq!((history.counts.changes, history.agreements.len()), (2, 1));
    let mut since = history.clone();
    since.keep_since("2016-06-01");
    assert_eq!((since.counts.changes, since.agreements.len()), (2, 1));
    history.keep_since("2016-07-01");
    assert_eq!((history.counts.series, history.counts.changes), (2, 0));
    assert_eq!(history.agreements, []);
}
