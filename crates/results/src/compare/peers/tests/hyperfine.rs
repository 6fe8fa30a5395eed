//! hyperfine.

use super::*;
use crate::stats::Verdict;
use proptest::prelude::*;
use serde_json::json;

fn result(command: &str, times: &[f64]) -> serde_json::Value {
    json!({
        "command": command,
        "mean": 9.0, "stddev": 9.0, "median": 9.0, "user": 9.0, "system": 9.0, "min": 9.0, "max": 9.0,
        "times": times,
        "memory_usage_byte": times.iter().map(|time| (time * 1e6) as u64).collect::<Vec<u64>>(),
        "exit_codes": vec![0; times.len()],
    })
}

fn file(results: &[serde_json::Value]) -> String {
    format!("{:#}\n", json!({ "results": results }))
}

const SLOW: [f64; 5] = [2.0, 2.1, 1.9, 2.05, 1.95];
const FAST: [f64; 5] = [1.0, 1.05, 0.95, 1.025, 0.975];

#[test]
fn times_are_the_runs() {
    let input = usual(&file(&[result("route -n", &SLOW)])).unwrap();
    assert_eq!(input.variants[0].values(), SLOW);
    assert_eq!(input.variants[0].label, "a");
    assert_eq!(input.notes, ["dir/a.out: hyperfine, 5 runs of `route -n`, seconds"]);
    let memory = chosen(&file(&[result("x", &FAST)]), column("memory_usage_byte")).unwrap();
    assert_eq!(memory.variants[0].values()[0], 1e6);
    assert!(memory.notes[0].ends_with("bytes"), "{:?}", memory.notes);
}

#[test]
fn shorter_times_are_better() {
    let [slow, fast] = [&SLOW, &FAST].map(|times| file(&[result("x", times)]));
    let results = compared([&slow, &fast], &Question::default()).unwrap();
    assert_eq!(results.unit, "s");
    let crate::report::analysis::Outcome::Compared(answer) = &results.comparisons[0].outcome else {
        panic!("no answer");
    };
    // All times are halved, so the ratio of the geometric means is 1/2.
    assert!((answer.comparison.ratio - 0.5).abs() < 1e-12, "{}", answer.comparison.ratio);
    assert_eq!(answer.verdict, Verdict::Better);
    assert!(answer.sentence.contains("Welch's t on log values"), "{}", answer.sentence);
    let text = text_of(&results);
    for expected in ["All in seconds.", "2.00 s", "1.00 s", "-50.0", "better"] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    assert!(!text.contains("pps") && !text.contains("rate"), "{text}");
    let back = compared([&fast, &slow], &Question::default()).unwrap();
    let crate::report::analysis::Outcome::Compared(answer) = &back.comparisons[0].outcome else {
        panic!("no answer");
    };
    assert_eq!(answer.verdict, Verdict::Worse);
}

#[test]
fn several_commands_need_a_choice() {
    let two = file(&[result("old", &SLOW), result("new", &FAST)]);
    let one = file(&[result("new", &FAST)]);
    let refused = compared([&two, &one], &Question::default()).unwrap_err();
    assert_eq!(refused, "old: it has 2 benchmarks; give --only with one of `old`, `new`");
    let question = Question { only: Some("new".to_owned()), ..Question::default() };
    assert_eq!(compared([&two, &one], &question).unwrap().variants[0].values, FAST);
    let input = chosen(&two, only("new")).unwrap();
    assert_eq!(input.notes[1], "dir/a.out: left out: 5 runs of 1 other benchmarks");
    let wrong = chosen(&two, only("newer")).unwrap_err();
    assert!(wrong.ends_with("no benchmark `newer`; its benchmarks are `old`, `new`"), "{wrong}");
    let wrong = chosen(&two, only("odl")).unwrap_err();
    assert!(wrong.ends_with("no benchmark `odl`; did you mean `old`?"), "{wrong}");
    let column = chosen(&two, column("mean")).unwrap_err();
    assert!(column.contains("--column with one of times, memory_usage_byte"), "{column}");
}

#[test]
fn failed_runs_are_left_out_and_counted() {
    let mut failing = result("x", &SLOW);
    failing["exit_codes"] = json!([0, 1, 0, null, 0]);
    let input = usual(&file(&[failing.clone()])).unwrap();
    assert_eq!(input.variants[0].values(), [2.0, 1.9, 1.95]);
    assert_eq!(input.notes[1], "dir/a.out: left out: 2 runs with an exit code other than 0");
    failing["exit_codes"] = json!([1, 1, 0, null, 0]);
    let refused = error(&file(&[failing.clone()]));
    let expected =
        "most of the file would be left out: 3 runs with an exit code other than 0, with 2";
    assert!(refused.contains(expected), "{refused}");
    failing["exit_codes"] = json!([1, 1, 1, 1, 1]);
    let refused = error(&file(&[failing]));
    assert!(refused.contains("no run of hyperfine is usable (5 runs with an exit"), "{refused}");
}

#[test]
fn unusable_files_are_refused() {
    let whole = file(&[result("x", &SLOW)]);
    for end in [whole.len() / 3, whole.len() / 2, whole.len() - 3] {
        let cut = error(&whole[..end]);
        assert!(cut.contains("the file ends within JSON value 1; write the file again"), "{cut}");
    }
    let mut summary = result("x", &SLOW);
    summary.as_object_mut().unwrap().remove("times");
    let refused = error(&file(&[summary]));
    assert!(refused.contains("the result of `x` has no `times`"), "{refused}");
    assert!(error(&file(&[result("x", &[1.0])])).contains("one run of x of hyperfine does not"));
    assert!(error(&file(&[result("x", &[1.0, 0.0])])).contains("run 2 of x has the value 0"));
    let twice = file(&[result("x", &SLOW), result("x", &SLOW)]);
    assert!(error(&twice).contains("`x` was measured twice"));
    let mixed = format!("{whole}{{\"end\": {{}}}}");
    assert!(error(&mixed).contains("a JSON value without `results`"), "{}", error(&mixed));
}

#[test]
fn results_of_tools_and_lists_are_not_compared() {
    let one = file(&[result("x", &SLOW)]);
    let refused = compared([&one, "1\n2\n3\n"], &Question::default()).unwrap_err();
    assert!(refused.starts_with("old is of hyperfine, and not all files are"), "{refused}");
    let question = Question { column: Some("times".to_owned()), ..Question::default() };
    let refused = compared(["1\n2\n", "1\n2\n"], &question).unwrap_err();
    assert!(refused.contains("--only and --column select from results of other tools"));
}

proptest! {
    #[test]
    fn read_and_left_out_runs_are_all_that_were_written(
        runs in prop::collection::vec(prop::collection::vec((0.001..10.0f64, 0..2u8), 0..6), 1..5)
    ) {
        let results = runs.iter().enumerate().map(|(at, runs)| {
            let times: Vec<f64> = runs.iter().map(|(time, _)| *time).collect();
            let mut result = result(&format!("c{at}"), &times);
            result["exit_codes"] = runs.iter().map(|(_, code)| *code).collect::<Vec<u8>>().into();
            result
        });
        let reading = reading(&file(&results.collect::<Vec<_>>()));
        prop_assert_eq!(counted(&reading), runs.iter().map(Vec::len).sum::<usize>());
    }
}
