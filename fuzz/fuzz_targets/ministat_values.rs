//! ministat's value reader and renderer never panic, under the rules of any generation.

#![no_main]

use fwdlab_results::stats::ministat::{
    DataSet, Generation, Options, ReadOptions, read_values, render,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (generation, column, text) = input;
    let generation = Generation::ALL[usize::from(generation) % Generation::ALL.len()];
    let column = usize::from(column % 4) + 1;
    let read = ReadOptions { column, generation, ..ReadOptions::default() };
    if let Ok(values) = read_values(text, &read) {
        let set = |name: &str| DataSet { name: name.to_owned(), values: values.clone() };
        let sets = [set("once"), set("again")];
        let _ = render(&sets, &Options { generation, ..Options::default() });
    }
});
