//! Each format with values that were computed independently; cut and mixed files.

mod criterion;
mod csit;
mod go;
mod hyperfine;
mod iperf3;
mod moongen;
mod testpmd;
mod trex;

use super::{Choice, Reading, input, read};
use crate::compare::input::Input;
use crate::compare::{Question, Results, compare_texts};
use std::path::Path;

/// Input of a file, or the error.
fn chosen(text: &str, choice: Choice<'_>) -> Result<Input, String> {
    let input = input(Path::new("dir/a.out"), text, choice).map_err(|error| error.to_string())?;
    input.ok_or_else(|| "no known format".to_owned())
}

fn usual(text: &str) -> Result<Input, String> {
    chosen(text, Choice::default())
}

fn only(name: &str) -> Choice<'_> {
    Choice { only: Some(name), ..Choice::default() }
}

fn column(name: &str) -> Choice<'_> {
    Choice { column: Some(name), ..Choice::default() }
}

fn error(text: &str) -> String {
    usual(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
}

fn values(text: &str) -> Vec<f64> {
    usual(text).unwrap_or_else(|error| panic!("{error}")).variants[0].values()
}

fn reading(text: &str) -> Reading {
    let found = read(Path::new("a"), text, None).expect("a reading").expect("a known format");
    found.1
}

/// Runs that were read and left out.
fn counted(reading: &Reading) -> usize {
    let read: usize = reading.benchmarks.iter().map(|benchmark| benchmark.values.len()).sum();
    read + reading.left_out.iter().map(|(_, runs)| runs).sum::<usize>()
}

fn compared(texts: [&str; 2], question: &Question) -> Result<Results, String> {
    let texts = [("old", texts[0]), ("new", texts[1])];
    compare_texts(question, &texts).map_err(|error| error.to_string())
}

/// Whole text of a comparison.
fn text_of(results: &Results) -> String {
    let form = crate::document::FORMS.iter().find(|form| form.name == "text").expect("a form");
    (form.render)(&results.document(), 100).expect("text")
}

#[test]
fn other_texts_are_not_recognised() {
    for text in ["", "1\n2\n", "run,pps\n1,2\n", "# {\n1\n"] {
        assert_eq!(usual(text).err().as_deref(), Some("no known format"), "{text}");
    }
    let unknown = error("{\"a\": 1}");
    assert!(unknown.contains("dir/a.out: JSON of no known tool; give a list"), "{unknown}");
    assert!(unknown.contains("hyperfine --export-json"), "{unknown}");
}
