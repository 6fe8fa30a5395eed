//! Compares the reader of comma-separated records with a state machine of RFC 4180 that reads
//! character by character, and with Python's csv module.

use super::{Separator, records};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::io::Write;
use std::process::{Command, Stdio};

/// Records by fields; `None` if quotes are unbalanced.
type Rows = Option<Vec<Vec<String>>>;

fn read(text: &str) -> Rows {
    let (separator, records) = records(text).ok()?;
    assert_eq!(separator, Separator::Comma);
    let fields = |record: super::Record<'_>| {
        record.fields.into_iter().map(std::borrow::Cow::into_owned).collect()
    };
    Some(records.into_iter().map(fields).collect())
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Begin,
    Plain,
    Quoted,
    QuoteInQuoted,
}

fn oracle(text: &str) -> Rows {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut state = State::Begin;
    for c in text.chars().chain((!text.ends_with('\n')).then_some('\n')) {
        match (state, c) {
            (State::Quoted, '"') => state = State::QuoteInQuoted,
            (State::Quoted, c) => field.push(c),
            (State::QuoteInQuoted, '"') => {
                field.push('"');
                state = State::Quoted;
            }
            (State::Begin, '"') => state = State::Quoted,
            (_, ',') => {
                row.push(std::mem::take(&mut field));
                state = State::Begin;
            }
            (_, '\n') => {
                let is_empty = state == State::Begin && row.is_empty();
                row.push(std::mem::take(&mut field));
                let row = std::mem::take(&mut row);
                rows.extend((!is_empty).then_some(row));
                state = State::Begin;
            }
            (State::QuoteInQuoted, _) => return None,
            (State::Begin | State::Plain, c) => {
                field.push(c);
                state = State::Plain;
            }
        }
    }
    (state == State::Begin).then_some(rows)
}

/// Texts after a first line with a comma, of few characters, so that quotes meet often.
fn texts() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => Just('"'), 3 => Just(','), 3 => Just('\n'), 2 => Just('a'), 2 => Just('1')
    ];
    prop::collection::vec(character, 0..30)
        .prop_map(|text| format!("a,b\n{}", text.into_iter().collect::<String>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn records_match_a_state_machine_of_rfc_4180(text in texts()) {
        prop_assert_eq!(read(&text), oracle(&text));
    }
}

const SCRIPT: &str = "
import csv, io, json, sys
def rows(text):
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=''), strict=True) if row]
    except csv.Error:
        return None
json.dump([rows(text) for text in json.load(sys.stdin)], sys.stdout)
";

#[test]
fn records_match_the_csv_module_of_python() {
    let child = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return fwdlab_testdata::skip("no python3 to compare with");
    };
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut text = || texts().new_tree(&mut runner).expect("a text").current();
    let texts: Vec<String> = (0..2000).map(|_| text()).collect();
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&serde_json::to_vec(&texts).expect("JSON")).expect("python reads");
    drop(input);
    let output = child.wait_with_output().expect("python ends");
    let expected: Vec<Rows> = serde_json::from_slice(&output.stdout).expect("rows");
    assert_eq!(expected.len(), texts.len());
    for (text, expected) in texts.iter().zip(expected) {
        assert_eq!(read(text), expected, "{text:?}");
    }
}
