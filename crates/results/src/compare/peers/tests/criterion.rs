//! criterion.rs.

use super::*;

const SAMPLE: &str =
    r#"{"sampling_mode":"Linear","iters":[10.0,20.0,30.0],"times":[1000.0,2100.0,2700.0]}"#;

#[test]
fn each_sample_is_a_run_by_its_time_per_iteration() {
    let input = usual(SAMPLE).unwrap();
    assert_eq!(input.variants[0].values(), [100.0, 105.0, 90.0]);
    assert_eq!(input.notes[0], "dir/a.out: criterion, 3 runs, ns/iteration");
    assert!(input.notes[1].contains("the samples are of one process"), "{:?}", input.notes);
}

#[test]
fn name_comes_from_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, name: &str| {
        let directory = directory.path().join(file);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("sample.json"), SAMPLE).unwrap();
        let id = format!(r#"{{"group_id":"{name}","full_id":"{name}/1","title":"t"}}"#);
        std::fs::write(directory.join("benchmark.json"), id).unwrap();
        directory.join("sample.json").to_string_lossy().into_owned()
    };
    let arguments = [write("base", "lookup"), write("new", "lookup"), write("c", "insert")];
    let compare = |at: [usize; 2]| {
        let arguments = at.map(|at| arguments[at].clone()).to_vec();
        crate::compare::compare(&Question { arguments, ..Question::default() })
    };
    let results = compare([0, 1]).unwrap();
    assert!(results.notes[0].contains("3 runs of `lookup/1`, ns/iteration"), "{:?}", results.notes);
    let refused = compare([0, 2]).unwrap_err().to_string();
    assert!(refused.contains("are different benchmarks"), "{refused}");
}

#[test]
fn estimates_and_broken_samples_are_refused() {
    let estimate = r#"{"point_estimate":1.0,"standard_error":0.1}"#;
    let estimates =
        format!(r#"{{"mean":{estimate},"median":{estimate},"std_dev":{estimate},"slope":null}}"#);
    let refused = error(&estimates);
    let expected = "criterion's estimates.json has estimates and no samples; give sample.json of \
                    the same directory";
    assert!(refused.ends_with(expected), "{refused}");
    assert!(error(&SAMPLE.replace(",30.0", "")).contains("2 numbers of iterations and 3 times"));
    assert!(error(&SAMPLE.replace("20.0", "\"x\"")).contains("`iters` is no list of numbers"));
    assert!(error(&SAMPLE.replace("20.0", "0")).contains("run 2 has the value inf"));
    assert!(error(&SAMPLE[..60]).contains("ends within JSON value 1"));
    assert!(error(&format!("{SAMPLE}{SAMPLE}")).contains("several JSON values"));
}
