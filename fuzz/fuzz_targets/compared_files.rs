//! No two files make `compare` panic, nor the forms that its answer is shown in.

#![no_main]

use fwdlab_results::compare::{Question, compare_texts, csv, json, markdown, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, bool)| {
    let (first, second, blocked) = input;
    let question = Question { blocked, ..Question::default() };
    if let Ok(results) = compare_texts(&question, &[("a.pps", first), ("b.csv", second)]) {
        let _ = text(&results, 60);
        let _ = (csv(&results), json(&results), markdown(&results));
    }
});
