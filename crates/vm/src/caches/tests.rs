use super::*;
use crate::costs::FunctionCost;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::Write;
use std::process::{Command, Stdio};

/// A program around the model: reads a shape and lines, and prints for each line whether it was
/// cached.
const BEFORE: &str = "#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n\
                      #include <stdlib.h>\n#include <string.h>\n";
const AFTER: &str = "int main(void) { struct shape shape; struct cache cache; uint64_t line;\n\
    if (scanf(\"%lu %lu\", &shape.sets, &shape.ways) != 2 || !make_cache(&cache, &shape)) return 1;\n\
    while (scanf(\"%lu\", &line) == 1) putchar(use(&cache, line) ? '1' : '0');\n\
    return 0; }\n";

/// Compiles the model; `None` without a compiler, with a notice.
fn compiled(directory: &Path) -> Option<PathBuf> {
    let (source, program) = (directory.join("model.c"), directory.join("model"));
    let text = format!("{BEFORE}{}{AFTER}", include_str!("../plugin/caches.c"));
    std::fs::write(&source, text).unwrap();
    match Command::new("cc").arg("-O1").arg("-o").arg(&program).arg(&source).status() {
        Ok(status) => {
            assert!(status.success(), "the model does not compile");
            Some(program)
        }
        Err(error) => {
            fwdlab_testdata::skip(&format!("the model of caches is not compiled: cc: {error}"));
            None
        }
    }
}

/// Returns the model's result for accesses to these lines.
fn run_model(program: &Path, sets: u64, ways: u64, lines: &[u64]) -> Option<String> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the model starts");
    let words: Vec<String> = lines.iter().map(u64::to_string).collect();
    let mut input = child.stdin.take().unwrap();
    // It writes less than a pipe holds before it has read everything.
    let _ = writeln!(input, "{sets} {ways}\n{}", words.join("\n"));
    drop(input);
    let output = child.wait_with_output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Returns the result of a cache in its slowest form: each set is a list, most recently used first.
fn oracle(sets: u64, ways: u64, lines: &[u64]) -> String {
    let mut all: Vec<VecDeque<u64>> = vec![VecDeque::new(); sets as usize];
    let mut result = String::new();
    for line in lines {
        let set = &mut all[(line % sets) as usize];
        let at = set.iter().position(|known| known == line);
        at.map(|at| set.remove(at));
        set.push_front(*line);
        set.truncate(ways as usize);
        result.push(if at.is_some() { '1' } else { '0' });
    }
    result
}

#[test]
fn known_access_patterns_miss_as_expected() {
    let directory = tempfile::tempdir().unwrap();
    let Some(model) = compiled(directory.path()) else { return };
    let hits = |sets, ways, lines: &[u64]| {
        let result = run_model(&model, sets, ways, lines).expect("an answer");
        assert_eq!(result, oracle(sets, ways, lines));
        result.matches('1').count()
    };
    let rounds = |lines: &[u64], times| lines.repeat(times);
    // Lines that fit are missed once; one line more than a set has ways, in turns, always misses.
    let fits: Vec<u64> = (0..64).collect();
    assert_eq!(hits(8, 8, &rounds(&fits, 3)), 128);
    let one_more: Vec<u64> = (0..9).map(|n| 8 * n).collect();
    assert_eq!(hits(8, 8, &rounds(&one_more, 10)), 0);
    assert_eq!(hits(8, 8, &rounds(&one_more[..8], 10)), 72);
    // Sets are independent, and the most recently used line stays.
    assert_eq!(hits(2, 1, &[0, 1, 0, 1, 2, 0, 1]), 3);
    assert_eq!(hits(1, 2, &[1, 2, 1, 3, 1, 2]), 2);
    assert_eq!(run_model(&model, 3, 1, &[]), None, "no power of two");
    assert_eq!(run_model(&model, 4, 0, &[]), None, "no way");
}

#[test]
fn model_agrees_with_oracle() {
    let directory = tempfile::tempdir().unwrap();
    let Some(model) = compiled(directory.path()) else { return };
    let lines = proptest::collection::vec(0u64..200, 0..3000);
    let config = ProptestConfig { cases: 40, ..ProptestConfig::default() };
    proptest!(config, |(sets in 0u32..6, ways in 1u64..18, lines in lines)| {
        let sets = 1 << sets;
        let result = run_model(&model, sets, ways, &lines);
        prop_assert_eq!(result, Some(oracle(sets, ways, &lines)));
    });
}

#[test]
fn by_function_excludes_idle_misses() {
    let symbols = Symbols::of_kallsyms(
        "0000000000000100 T forward\n0000000000000200 T tick\n0000000000000300 T lookup\n",
    );
    let function = |name: &str, is_background| FunctionCost {
        name: name.into(),
        is_background,
        ..FunctionCost::default()
    };
    let functions =
        vec![function("forward", false), function("tick", true), function("lookup", false)];
    let costs = Costs { functions, ..Costs::default() };
    let misses = |words: [f64; 4]| Misses::of(words);
    let burst = |more: f64| BurstMisses {
        packets: 10,
        seen: vec![
            (0x104, misses([100.0, 20.0, 10.0, 0.0])),
            (0x200, misses([9.0, 9.0, 9.0, 9.0])),
            (0x310, misses([50.0, 0.0, 40.0 + more, 20.0])),
        ],
        idle: vec![(0x120, misses([10.0, 0.0, 0.0, 0.0]))],
        scale: 2.0,
    };
    let bursts = [burst(0.0), burst(500.0), burst(0.0)];
    let costs_by_function = by_function(Model::default(), &costs, &bursts, &symbols).unwrap();
    let expected = [
        ("lookup".to_owned(), misses([5.0, 0.0, 4.0, 2.0])),
        ("forward".to_owned(), misses([8.0, 2.0, 1.0, 0.0])),
    ];
    assert_eq!(costs_by_function.functions, expected);
    assert_eq!(costs_by_function.total, misses([13.0, 2.0, 5.0, 2.0]));
    let nothing = BurstMisses { seen: Vec::new(), ..burst(0.0) };
    assert!(by_function(Model::default(), &costs, &[nothing], &symbols).is_err());
}

#[test]
fn file_stores_shapes_and_since_subtracts_by_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = CacheFile::create(&directory.path().join("caches"), Model::default()).unwrap();
    assert!(file.begin().is_err(), "no plugin has it");
    let text = file.model.to_string();
    assert_eq!(text, "L1I 32 KiB 8-way, L1D 32 KiB 8-way, L2 1 MiB 16-way, lines of 64 bytes");
    let before = file.seen().unwrap();
    let shapes: Vec<u64> = (4..10).map(|word| quad(&before.bytes, 8 * word)).collect();
    assert_eq!(shapes, [64, 8, 64, 8, 1024, 16]);
    let write = |word: usize, value: u64| {
        file.file.write_all_at(&value.to_ne_bytes(), 8 * word as u64).unwrap();
    };
    let first = HEADER / 8;
    [0x100, 7, 3, 2, 1].iter().enumerate().for_each(|(at, value)| write(first + at, *value));
    let blocks = file.seen().unwrap().since(&before).unwrap();
    assert_eq!(blocks, [(0x100, Misses::of([7.0, 3.0, 2.0, 1.0]))]);
    write(Word::Overflow as usize, 1);
    assert!(file.seen().unwrap().since(&before).is_err(), "counts that lack something");
}
