//! `compare` and its output formats never panic, whatever the two files contain.

#![no_main]

use fwdlab_results::compare::{Question, compare_texts};
use fwdlab_results::document::FORMS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, bool)| {
    let (first, second, blocked) = input;
    let question = Question { blocked, ..Question::default() };
    if let Ok(results) = compare_texts(&question, &[("a.pps", first), ("b.csv", second)]) {
        for (input, text) in results.inputs.iter().zip([first, second]) {
            assert!(input.runs <= text.lines().count(), "a run has at least a line");
        }
        let document = results.document();
        let _ = FORMS.map(|form| (form.render)(&document, 60).is_ok());
    }
});
