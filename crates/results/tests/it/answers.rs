//! Results of `fwdlab compare`: golden files of every form, agreement with reports, and errors.

use crate::golden::golden;
use crate::support::{Random, alternation_plan, family, fill, firewall, plan, routed};
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::compare::{CompareError, Question, Results, compare, compare_texts};
use fwdlab_results::document::form::{
    bencher, csv, github_action_benchmark, json, junit, markdown, text,
};
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::stats::{
    Adjustment, Comparison, Criteria, Method, compare_blocked, compare_unblocked,
};
use fwdlab_results::stats::{BlockedRun, Verdict};
use fwdlab_results::store::Store;
use proptest::prelude::*;
use std::path::Path;
use tempfile::TempDir;

/// A directory with files to compare.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> &Files {
        std::fs::write(self.at(name), text).unwrap();
        self
    }

    /// A store with all runs of `plan`, in a separate directory.
    fn store(&self, name: &str, plan: &Plan) -> Store {
        let mut store =
            Store::open(Path::new(&self.at(name)).join("run.sqlite").as_path()).unwrap();
        fill(&mut store, plan, 0..plan.runs.len() as u32);
        store
    }

    fn compare(
        &self,
        arguments: &[&str],
        change: impl Fn(&mut Question),
    ) -> Result<Results, CompareError> {
        let arguments = arguments.iter().map(|argument| self.at(argument)).collect();
        let mut question = Question { arguments, ..Question::default() };
        change(&mut question);
        compare(&question)
    }

    fn results_of(&self, arguments: &[&str]) -> Results {
        self.compare(arguments, |_| ()).unwrap()
    }

    /// Error of an invalid comparison, without the directory's name.
    fn error_of(&self, arguments: &[&str], change: impl Fn(&mut Question)) -> String {
        match self.compare(arguments, change) {
            Ok(results) => panic!("answered: {:?}", results.comparisons),
            Err(error) => self.plain(&error.to_string()),
        }
    }

    fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.0.path().display()), "")
    }

    /// Compares all forms with `tests/golden/compare/<name>.*`; `UPDATE=1` rewrites the files.
    fn golden(&self, name: &str, results: &Results) {
        // File names must not depend on the machine.
        let results = self.without_directory(results);
        for (form, text) in [
            ("txt", text::render(&results.document(), 100)),
            ("40.txt", text::render(&results.document(), 40)),
            ("md", markdown::render(&results.document())),
            ("csv", csv::render(&results.document())),
            ("json", json::render(&results.document()).unwrap()),
            ("junit.xml", junit::render(&results.document())),
            ("bencher.json", bencher::render(&results.document()).unwrap()),
            (
                "github-action-benchmark.json",
                github_action_benchmark::render(&results.document()).unwrap(),
            ),
        ] {
            golden(&format!("compare/{name}.{form}"), &text);
        }
    }

    fn without_directory(&self, results: &Results) -> Results {
        let mut results = results.clone();
        results.asked = self.plain(&results.asked);
        results.inputs.iter_mut().for_each(|input| input.path = self.plain(&input.path));
        results.notes.iter_mut().for_each(|note| *note = self.plain(note));
        results.variants.iter_mut().for_each(|variant| variant.label = self.plain(&variant.label));
        for compared in &mut results.comparisons {
            compared.label = self.plain(&compared.label);
            compared.baseline_label = self.plain(&compared.baseline_label);
        }
        results
    }
}

fn list(seed: u64, n: usize, centre: f64) -> (Vec<f64>, String) {
    let mut random = Random(seed);
    let values: Vec<f64> =
        (0..n).map(|_| (centre * (1.0 + 0.01 * random.normal())).round()).collect();
    let text = values.iter().map(|value| format!("{value}\n")).collect();
    (values, text)
}

fn numbers(results: &Results) -> Vec<Comparison> {
    let number = |outcome: &Outcome| match outcome {
        Outcome::Compared(answer) => answer.comparison.clone(),
        other => panic!("no answer: {other:?}"),
    };
    results.comparisons.iter().map(|compared| number(&compared.outcome)).collect()
}

fn netns_plan(blocks: u32) -> Plan {
    plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], blocks)
}

#[test]
fn compare_treats_lists_as_independent_samples() {
    let files = Files::new();
    let (a, text_a) = list(1, 8, 1e6);
    let (b, text_b) = list(2, 9, 0.95e6);
    let (_, text_c) = list(3, 8, 1e6);
    files.write("old.pps", &text_a).write("new.pps", &text_b).write("same.txt", &text_c);
    let results = files.results_of(&["old.pps", "new.pps"]);
    let expected = compare_unblocked(&a, &b, Criteria::default()).unwrap();
    assert_eq!(numbers(&results), [expected.of_list()]);
    let three = files.results_of(&["old.pps", "new.pps", "same.txt"]);
    files.golden("lists", &three);
    let verdicts: Vec<Verdict> = numbers(&three).iter().map(Comparison::verdict).collect();
    assert_eq!(verdicts[0], Verdict::Worse);
    assert!(verdicts[1] != Verdict::Worse && verdicts[1] != Verdict::Better);
}

#[test]
fn compare_blocked_treats_lines_as_blocks() {
    let files = Files::new();
    let (a, text_a) = list(1, 8, 1e6);
    let (b, text_b) = list(2, 8, 0.97e6);
    files.write("a", &text_a).write("b", &text_b).write("short", "1000000\n1010000\n");
    let results = files.compare(&["a", "b"], |question| question.blocked = true).unwrap();
    let blocked = |values: &[f64]| -> Vec<BlockedRun> {
        (0..).zip(values).map(|(block, &pps)| BlockedRun { block, pps }).collect()
    };
    let expected = compare_blocked(&blocked(&a), &blocked(&b), Criteria::default()).unwrap();
    assert_eq!(expected.method, Method::Exact { assignments: 256 });
    // The lines are not known to be separate starts.
    assert_eq!(numbers(&results), [expected.of_list()]);
    let error = files.error_of(&["a", "short"], |question| question.blocked = true);
    assert!(error.contains("a has 8, short has 2"), "{error}");
}

#[test]
fn compare_of_a_store_agrees_with_its_report() {
    let files = Files::new();
    for (name, plan) in [
        ("netns", netns_plan(8)),
        ("mean", plan(TestbedKind::Sim, vec![firewall()], vec![Some(0)], 8)),
        ("streams", alternation_plan(TestbedKind::Netns, 4)),
    ] {
        let store = files.store(name, &plan);
        let analysis = Analysis::of_store(&store).unwrap();
        let results = files.results_of(&[name]);
        assert_eq!(results.comparisons.len(), analysis.core.comparisons.len(), "{name}");
        for (result, reported) in results.comparisons.iter().zip(&analysis.core.comparisons) {
            assert_eq!(
                (&result.label, &result.baseline_label),
                (&reported.label, &reported.baseline_label)
            );
            let (Outcome::Compared(result), Outcome::Compared(reported)) =
                (&result.outcome, &reported.outcome)
            else {
                panic!("no answer in {name}");
            };
            assert_eq!(result.comparison, reported.comparison, "{name}");
        }
        for variant in &results.variants {
            let reported =
                analysis.core.variants.iter().find(|v| v.label == variant.label).unwrap();
            assert_eq!(variant.values, reported.values, "{name}");
        }
        files.golden(name, &results);
    }
}

#[test]
fn variants_of_one_store_are_compared_in_blocks() {
    let files = Files::new();
    files.store("s", &netns_plan(8));
    let results =
        files.results_of(&["s:none, inet", "s:stateful, inet", "s/run.sqlite:none, inet6"]);
    assert_eq!(results.asked, "2 variants against none, inet");
    assert!(numbers(&results).iter().all(|c| c.blocks == 8 && c.family == 2), "{results:?}");
    assert_eq!(results.notes, [""; 0]);
    let whole = files.results_of(&["s"]);
    // The same effect; the interval is for two comparisons instead of four.
    let same = |c: &Comparison| (c.ratio, c.equivalence_low > c.low, c.n_a, c.n_b);
    let of_store = numbers(&whole).into_iter().zip(&whole.comparisons);
    let of_store: Vec<_> =
        of_store.filter(|(_, compared)| compared.label == "stateful, inet").collect();
    assert_eq!(same(&of_store[0].0), same(&numbers(&results)[0]));
    let joint = |c: &Comparison| c.joint_confidence;
    assert_eq!((joint(&of_store[0].0), joint(&numbers(&results)[0])), (98.75, 97.5));
}

#[test]
fn baseline_option_replaces_the_plans_baseline() {
    let files = Files::new();
    files.store("s", &netns_plan(7));
    let other = |question: &mut Question| question.baseline = Some("stateless, inet".into());
    let results = files.compare(&["s"], other).unwrap();
    assert_eq!(results.comparisons.len(), 5);
    assert!(results.comparisons.iter().all(|c| c.baseline_label == "stateless, inet"));
    let slip = |question: &mut Question| question.baseline = Some("stateles, inet".into());
    let error = files.error_of(&["s"], slip);
    assert!(error.ends_with("did you mean `stateless, inet`?"), "{error}");
    let error = files.error_of(&["s:none, inet", "s:none, inet6"], other);
    assert!(error.contains("the first one is the baseline"), "{error}");
}

#[test]
fn compare_matches_variants_of_stores_by_label() {
    let files = Files::new();
    let mut plan = netns_plan(6);
    files.store("a", &plan);
    plan.design.seed = 2;
    plan.title = "another day".into();
    plan.hash = "other".into();
    files.store("b", &plan);
    let results = files.results_of(&["a", "b"]);
    assert_eq!(results.comparisons.len(), 6);
    assert!(numbers(&results).iter().all(|c| c.method == Method::BothTests && c.family == 6));
    assert!(results.notes[0].contains("drift of the machine"), "{:?}", results.notes);
    let labels = (&results.comparisons[0].label, &results.comparisons[0].baseline_label);
    assert_eq!(files.plain(labels.0), "none, inet (b)");
    assert_eq!(files.plain(labels.1), "none, inet (a)");

    plan.trial.duration_ns = 5_000_000_000;
    for variant in &mut plan.variants {
        variant.settings.dut.queues = 4;
    }
    plan.hash = "third".into();
    files.store("c", &plan);
    let error = files.error_of(&["a", "c"], |_| ());
    for expected in ["window: 2 s and 5 s", "queues: 1 and 4", "a/run.sqlite:LABEL"] {
        assert!(error.contains(expected), "{error}");
    }
    let single = files.results_of(&["a:none, inet", "c:none, inet"]);
    assert_eq!(single.comparisons.len(), 1);
    let error = files.error_of(&["a", "c:none, inet"], |_| ());
    assert!(error.contains("holds 6 variants, but other arguments name one"), "{error}");
    assert!(error.contains("`none, inet`, `none, inet6`"), "{error}");
}

#[test]
fn compare_rejects_different_testbeds() {
    let files = Files::new();
    let of = |kind| plan(kind, vec![firewall()], vec![Some(0)], 4);
    files.store("sim", &of(TestbedKind::Sim));
    files.store("netns", &of(TestbedKind::Netns));
    for arguments in [["sim", "netns"], ["netns:none", "sim:none"]] {
        let error = files.error_of(&arguments, |_| ());
        assert!(error.contains("are of different testbeds"), "{error}");
        assert!(error.contains("simulated figures say nothing"), "{error}");
    }
    files.store("memory", &routed(of(TestbedKind::Memory)));
    files.store("routed", &routed(of(TestbedKind::Netns)));
    let error = files.error_of(&["memory", "routed"], |_| ());
    assert!(error.contains("are of different testbeds"), "{error}");
    assert!(error.contains("packets in memory cost what no packet"), "{error}");
    let (_, text) = list(1, 5, 1e6);
    files.write("a.pps", &text);
    let results = files.results_of(&["netns:none", "a.pps"]);
    let note = results.notes.iter().any(|note| note.contains("doesn't say where it was measured"));
    assert!(note, "{:?}", results.notes);
    assert!(results.caption.starts_with("virtual testbed"), "{}", results.caption);
}

#[test]
fn compare_of_runs_csv_agrees_with_its_store() {
    let files = Files::new();
    let store = files.store("s", &netns_plan(8));
    report::write(&store, &files.0.path().join("report")).unwrap();
    let (table, stored) = (files.results_of(&["report/runs.csv"]), files.results_of(&["s"]));
    assert_eq!(table.inputs[0].testbed.as_deref(), Some("netns"));
    for (a, b) in numbers(&table).iter().zip(numbers(&stored)) {
        assert_eq!((a.method, a.blocks, a.verdict()), (b.method, b.blocks, b.verdict()));
        assert!((a.ratio - b.ratio).abs() < 1e-6, "{} {}", a.ratio, b.ratio);
    }
    // The table alone has variants and blocks, but no baseline.
    let text = std::fs::read_to_string(files.at("report/runs.csv")).unwrap();
    files.write("runs.csv", &text);
    let error = files.error_of(&["runs.csv"], |_| ());
    assert!(error.contains("give --baseline with one of `"), "{error}");
    let alone = files.results_of(&["runs.csv:none, inet", "runs.csv:stateful, inet"]);
    assert_eq!(numbers(&alone)[0].blocks, 8);
    // Results of other runs are ignored.
    let shorter = text.trim_end().rsplit_once('\n').map_or("", |(head, _)| head);
    files.write("report/runs.csv", shorter);
    let error = files.error_of(&["report/runs.csv"], |_| ());
    assert!(error.contains("nothing says which variant is the baseline"), "{error}");
}

#[test]
fn compare_rejects_different_units() {
    let files = Files::new();
    files.write("mpps", "1.01\n1.02\n").write("pps", "1010000\n1020000\n");
    let error = files.error_of(&["mpps", "pps"], |_| ());
    for expected in ["mpps (median 1.0", "pps (median 1015000)", "packets per second in both"] {
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn comparisons_of_one_command_are_one_family() {
    let files = Files::new();
    let names = ["a", "b", "c", "d"];
    for (seed, name) in (1..).zip(names) {
        files.write(name, &list(seed, 8, 1e6 - 8e3 * seed as f64).1);
    }
    let holm = numbers(&files.results_of(&names));
    let lenient = |question: &mut Question| {
        question.adjustment = Adjustment::BenjaminiHochberg;
        question.confidence = Some(90.0);
        question.margin = Some(0.05);
    };
    let results = files.compare(&names, lenient).unwrap();
    assert_eq!((results.confidence, results.margin, results.family), (90.0, 0.05, 3));
    for (strict, lenient) in holm.iter().zip(numbers(&results)) {
        assert_eq!((strict.family, lenient.family), (3, 3));
        assert_eq!(lenient.adjustment, Adjustment::BenjaminiHochberg);
        assert!(strict.p <= lenient.p_adjusted && lenient.p_adjusted <= strict.p_adjusted);
    }
}

#[test]
fn compare_keeps_the_order_of_many_comparisons() {
    let values: Vec<Vec<f64>> = (0..100).map(|seed| list(seed, 6, 1e6).0).collect();
    let texts: Vec<(String, String)> = (0..)
        .zip(&values)
        .map(|(i, values)| {
            let lines: Vec<String> = values.iter().map(f64::to_string).collect();
            (format!("v{i}.pps"), lines.join("\n"))
        })
        .collect();
    let results = compare_texts(&Question::default(), &texts).unwrap();
    assert_eq!(results.comparisons.len(), 99);
    let criteria = Criteria { family: 99, ..Criteria::default() };
    for (i, result) in (1..).zip(numbers(&results)) {
        let alone = compare_unblocked(&values[0], &values[i], criteria).unwrap();
        assert_eq!(results.comparisons[i - 1].label, format!("v{i}"));
        assert_eq!((result.ratio, result.p, result.mde), (alone.ratio, alone.p, alone.mde));
    }
}

#[test]
fn compare_rejects_invalid_arguments() {
    let files = Files::new();
    files.store("s", &netns_plan(2));
    files.write("a.pps", "1000\n1001\n").write("binary", "\u{0}").write("one", "5\n");
    std::fs::write(files.at("binary"), [0xff, 0xfe, 0x00]).unwrap();
    std::fs::create_dir(files.at("empty")).unwrap();
    for (arguments, expected) in [
        (&["a.pps"][..], "a.pps alone names one variant; name another one"),
        (&["s:none, inet"], "alone names one variant"),
        (&["a.pps", "a.pps"], "`a` is named twice"),
        (&["s", "s"], "this file is named twice"),
        (&["a.pps:x", "a.pps"], "holds one list of figures and no variant `x`"),
        (&["s:nonne, inet", "a.pps"], "did you mean `none, inet`?"),
        (&["s:completely else", "a.pps"], "its variants are `none, inet`, `none, inet6`"),
        (&["empty", "a.pps"], "this directory holds no store (run.sqlite)"),
        (&["nowhere", "a.pps"], "there is no file `nowhere`"),
        (&["binary", "a.pps"], "is neither text nor a store"),
        (&["one", "a.pps"], "one run does not show the scatter"),
    ] {
        let error = files.error_of(arguments, |_| ());
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn too_few_runs_make_only_their_comparison_unanswerable() {
    let files = Files::new();
    let plan = netns_plan(4);
    let mut store = Store::open(Path::new(&files.at("s"))).unwrap();
    let runs = plan.runs.iter().filter(|run| run.block < 3);
    let most: Vec<u32> =
        runs.filter(|run| run.variants != [2] || run.block == 0).map(|run| run.index).collect();
    fill(&mut store, &plan, most);
    let results = files.results_of(&["s"]);
    let unanswered = |outcome: &Outcome| matches!(outcome, Outcome::Unanswerable { .. });
    let missing: Vec<&str> = results
        .comparisons
        .iter()
        .filter(|compared| unanswered(&compared.outcome))
        .map(|compared| compared.label.as_str())
        .collect();
    assert_eq!(missing, [plan.variants[2].label.as_str()]);
    assert!(results.notes[0].contains("incomplete"), "{:?}", results.notes);
    let document = results.document();
    let shown = text::render(&document, 80);
    assert!(shown.contains("no answer: too few blocks"), "{shown}");
    assert!(csv::render(&document).contains("too few blocks"));
    assert!(markdown::render(&document).contains("no answer: too few blocks"));
}

#[test]
fn text_fits_into_forty_columns() {
    let files = Files::new();
    files.store("s", &netns_plan(7));
    for line in text::render(&files.results_of(&["s"]).document(), 40).lines() {
        let one_word = line.split_whitespace().count() <= 1;
        assert!(one_word || line.chars().count() <= 40, "{line:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn compare_texts_reads_only_finite_positive_rates(a in "[0-9a-z#,.;:\" \t\n-]{0,60}", b in ".{0,40}") {
        if let Ok(results) = compare_texts(&Question::default(), &[("a", &a), ("b", &b)]) {
            for variant in &results.variants {
                prop_assert!(variant.values.len() >= 2);
                prop_assert!(variant.values.iter().all(|v| v.is_finite() && *v > 0.0));
            }
        }
    }

    #[test]
    fn compare_averages_samples_of_a_run(
        a in prop::collection::vec(1000.0..2000.0f64, 3..8),
        b in prop::collection::vec(1000.0..2000.0f64, 3..8),
    ) {
        let samples = |values: &[f64]| -> String {
            let mut text = "run,second,pps\n".to_owned();
            for (run, value) in values.iter().enumerate() {
                for (second, part) in [0.5, 1.5, 1.0].iter().enumerate() {
                    text += &format!("{run},{second},{}\n", value * part);
                }
            }
            text
        };
        let texts = [("a", samples(&a)), ("b", samples(&b))];
        let results = compare_texts(&Question::default(), &texts).unwrap();
        let result = &numbers(&results)[0];
        let expected = compare_unblocked(&a, &b, Criteria::default()).unwrap();
        prop_assert_eq!((result.n_a, result.n_b), (a.len(), b.len()));
        prop_assert!((result.p - expected.p).abs() < 1e-9);
        prop_assert!((result.low - expected.low).abs() < 1e-9);
    }
}
