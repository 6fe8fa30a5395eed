//! `fwdlab export`: tables of stores, and the queries of docs/QUERIES.md run on them.

use crate::support::{INSTANT, Lab};
use std::process::{Command, Stdio};

/// The queries of the document.
fn questions() -> Vec<String> {
    let text = include_str!("../../../../docs/QUERIES.md");
    let blocks = text.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// Runs each query and prints its number of rows.
const ASK: &str = "\
import sys, duckdb
for question in sys.stdin.read().split('\\0'):
    print(len(duckdb.sql(question).fetchall()))
";

/// A Python with DuckDB: `FWDLAB_DUCKDB`, else `python3` if it has the module.
fn python() -> Option<String> {
    let python = std::env::var("FWDLAB_DUCKDB").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import duckdb"]).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let next = "pip install duckdb, or FWDLAB_DUCKDB=PYTHON";
    fwdlab_testdata::skip(&format!("{python} has no DuckDB ({next})"));
    None
}

#[test]
fn documented_queries_return_rows() {
    let lab = Lab::new(INSTANT);
    for out in ["results/one", "results/deep/two"] {
        lab.fwdlab(&["run", "x.toml", "--out", out, "--quiet"]).expect(0);
    }
    let ended = lab.fwdlab(&["export", "results", "--parquet", "tables", "--json"]).expect(0);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&summary["stores"], &summary["runs"]), (&2.into(), &16.into()), "{summary}");
    assert_eq!(
        summary["files"], 8,
        "two stores of one bed and month are one file a table: {summary}"
    );
    let Some(python) = python() else { return };
    let questions = questions();
    assert!(questions.len() >= 7, "{questions:?}");
    let mut child = Command::new(python)
        .args(["-c", ASK])
        .current_dir(lab.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), questions.join("\0").as_bytes())
        .expect("asked");
    let output = child.wait_with_output().expect("answers");
    assert!(output.status.success(), "a question fails");
    let rows: Vec<usize> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert_eq!(rows.len(), questions.len());
    // Two variants of one bed; a verdict of each store rests on 8 runs; simulated runs are not
    // doubtful.
    let by = |words: &str| {
        let place = questions.iter().position(|question| question.contains(words));
        rows[place.unwrap_or_else(|| panic!("no question has {words}"))]
    };
    assert_eq!(by("dut.firewall"), 2);
    assert_eq!(by("stddev_samp"), 1);
    assert_eq!(by("IN (v.variant, v.baseline)"), 16);
    assert_eq!(by("e.plan, r.label"), 2);
}

#[test]
fn export_names_invalid_stores() {
    let lab = Lab::new(INSTANT);
    let ended = lab.fwdlab(&["export", "nothing", "--parquet", "tables"]).expect(2);
    assert!(ended.stderr.contains("nothing"), "{}", ended.stderr);
    let ended = lab.fwdlab(&["export", ".", "--parquet", "t", "--since", "yesterday"]).expect(2);
    assert!(ended.stderr.contains("2024-01-31"), "{}", ended.stderr);
    lab.fwdlab(&["run", "x.toml", "--out", "results/one", "--quiet"]).expect(0);
    std::fs::create_dir_all(lab.path("results/two")).expect("a folder");
    lab.write("results/two/run.sqlite", "no store");
    let ended = lab.fwdlab(&["export", "results", "--parquet", "tables"]).expect(0);
    assert!(ended.stderr.contains("left out") && ended.stderr.contains("two"), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("1 stores (1 read)"), "{}", ended.stdout);
    let other = "elsewhere/one";
    lab.fwdlab(&["run", "x.toml", "--out", other, "--quiet"]).expect(0);
    let ended = lab.fwdlab(&["export", "elsewhere", "--parquet", "tables"]).expect(2);
    assert!(ended.stderr.contains("already") && ended.stderr.contains(other), "{}", ended.stderr);
    // Stores that are named without their directory.
    let tables = lab.path("bare").to_string_lossy().into_owned();
    for (folder, code) in [("results/one", 0), ("elsewhere/one", 2)] {
        let mut command = lab.command(&["export", "run.sqlite", "--parquet", &tables]);
        let ended = command.current_dir(lab.path(folder)).output().expect("fwdlab");
        assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    lab.write("file", "");
    let ended = lab.fwdlab(&["export", "results/one", "--parquet", "file"]).expect(3);
    assert!(ended.stderr.contains("can't write"), "{}", ended.stderr);
}
