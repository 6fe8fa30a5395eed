//! No file makes the reader of ministat's values panic, nor the text made of them.

#![no_main]

use fwdlab_results::stats::ministat::{DataSet, Options, ReadOptions, read_values, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(values) = read_values(text, &ReadOptions::default()) {
        let set = |name: &str| DataSet { name: name.to_owned(), values: values.clone() };
        let sets = [set("once"), set("again")];
        let _ = render(&sets, &Options::default());
    }
});
