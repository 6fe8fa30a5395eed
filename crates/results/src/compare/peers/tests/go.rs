//! go test -bench.

use super::*;
use proptest::prelude::*;

const OLD: &str = "\
goos: linux
goarch: amd64
pkg: example.org/route
cpu: Example CPU
BenchmarkLookup-8   \t 1000000\t      1000 ns/op\t      64 B/op\t       2 allocs/op
BenchmarkLookup-8   \t 1000000\t      1020 ns/op\t      64 B/op\t       2 allocs/op
BenchmarkInsert-8   \t  500000\t      2500 ns/op\t     128 B/op\t       3 allocs/op
BenchmarkLookup-8   \t 1000000\t       980 ns/op\t      64 B/op\t       2 allocs/op
PASS
ok  \texample.org/route\t4.2s
";
const LOOKUP: &str = "BenchmarkLookup-8";

#[test]
fn each_line_is_a_run_of_its_benchmark() {
    let input = chosen(OLD, only(LOOKUP)).unwrap();
    assert_eq!(input.variants[0].values(), [1000.0, 1020.0, 980.0]);
    let expected = [
        format!("dir/a.out: go test -bench, 3 runs of `{LOOKUP}`, ns/op"),
        "dir/a.out: left out: 1 runs of 1 other benchmarks".to_owned(),
        "dir/a.out: values in B/op, allocs/op are not read (--column)".to_owned(),
    ];
    assert_eq!(input.notes, expected);
    let memory = Choice { column: Some("B/op"), ..only(LOOKUP) };
    assert_eq!(chosen(OLD, memory).unwrap().variants[0].values(), [64.0; 3]);
    let some = format!("{OLD}BenchmarkAdd-8 10 5 ns/op\n");
    let input = chosen(&some, memory).unwrap();
    assert!(input.notes[1].contains("1 runs of benchmarks without B/op"), "{:?}", input.notes);
    let unknown = chosen(OLD, column("MB/s")).unwrap_err();
    assert!(unknown.contains("--column with one of ns/op, B/op, allocs/op"), "{unknown}");
}

#[test]
fn several_benchmarks_need_a_choice() {
    let refused = compared([OLD, OLD], &Question::default()).unwrap_err();
    assert!(refused.starts_with("old: it has 2 benchmarks; give --only with one of"), "{refused}");
    let two = format!("{OLD}{}", OLD.replace("example.org/route", "example.org/fib"));
    let input = chosen(&two, only("example.org/fib.BenchmarkLookup-8")).unwrap();
    assert_eq!(input.variants[0].values(), [1000.0, 1020.0, 980.0]);
    let other = OLD.replace("Lookup", "Remove").replace("BenchmarkInsert", "Other");
    let first = OLD.replace("BenchmarkInsert", "Other");
    let refused = compared([&first, &other], &Question::default()).unwrap_err();
    assert!(refused.contains("are different benchmarks"), "{refused}");
}

#[test]
fn runs_of_other_configurations_are_other_benchmarks() {
    let run = |ns: u32| format!("BenchmarkX-8 10 {ns} ns/op\n");
    let text = format!(
        "pkg: a\ncommit: 1\n{}commit: 2\nnote: x\n{}commit:\nnote:\n{}",
        run(10).repeat(2),
        run(20).repeat(2),
        run(30).repeat(2)
    );
    for (name, value) in [
        ("BenchmarkX-8 (commit: 1)", 10.0),
        ("BenchmarkX-8 (commit: 2, note: x)", 20.0),
        ("BenchmarkX-8", 30.0),
    ] {
        assert_eq!(chosen(&text, only(name)).unwrap().variants[0].values(), [value; 2], "{name}");
    }
    // A machine that only some runs name may be another one.
    let machines = format!("{}cpu: a\n{}", run(10).repeat(2), run(20).repeat(2));
    let named = chosen(&machines, only("BenchmarkX-8 (cpu: a)")).unwrap();
    assert_eq!(named.variants[0].values(), [20.0; 2]);
    // The same configuration in a file, and lines that are no configuration.
    let same = format!("commit: 1\n{}commit: 1\nx.go:12: log\ncoverage: 5%\n", run(10));
    let input = usual(&format!("{same}{}", run(11))).unwrap();
    assert_eq!(input.variants[0].values(), [10.0, 11.0]);
    let packages = format!("{}pkg: a\n{}", run(10).repeat(2), run(20).repeat(2));
    let named = chosen(&packages, only("a.BenchmarkX-8")).unwrap();
    assert_eq!(named.variants[0].values(), [20.0; 2]);
}

#[test]
fn fewer_nanoseconds_and_more_bytes_per_second_are_better() {
    let lines = |unit: &str, values: [u32; 4]| -> String {
        values.map(|value| format!("BenchmarkX 10 {value} {unit}\n")).concat()
    };
    let (few, many) = ([1000, 1001, 999, 1000], [2000, 2002, 1998, 2000]);
    for (unit, old, new) in [("ns/op", many, few), ("allocs/op", many, few), ("MB/s", few, many)] {
        let results = compared([&lines(unit, old), &lines(unit, new)], &Question::default());
        let text = text_of(&results.unwrap());
        assert!(text.contains("better") && text.contains(unit), "{unit}: {text}");
    }
    let custom = lines("hops/op", few);
    let refused = error(&custom);
    let step = "add a line `Unit hops/op better=higher` or `better=lower` to the file";
    assert!(refused.contains(step), "{refused}");
    assert_eq!(values(&format!("Unit hops/op better=lower\n{custom}")).len(), 4);
    let refused = compared([&lines("ns/op", few), &lines("MB/s", few)], &Question::default());
    assert!(refused.unwrap_err().contains("old (ns/op) and new (MB/s) are different quantities"));
}

#[test]
fn cut_and_mixed_lines_are_refused() {
    let text = "BenchmarkX 10 5 ns/op 7 B/op\nBenchmarkX 10 5 ns/op 7 B/op\n";
    for (end, expected) in [
        ("BenchmarkX 1", "dir/a.out:3: a run without a value"),
        ("BenchmarkX x 5 ns/op", "the number of iterations is missing"),
        ("BenchmarkX 10 5", "a value without a unit"),
        ("BenchmarkX 10 5 ns/", "this run has no value in ns/op, and others of it have"),
        ("BenchmarkX 10 5.x ns/op", "`5.x` is not a number"),
        ("cpu: a\ncpu: b\n", "`cpu` is `b` here and `a` before"),
    ] {
        let refused = error(&format!("{text}{end}"));
        assert!(refused.contains(expected), "{end}: {refused}");
    }
    let failed = format!("{text}--- FAIL: BenchmarkY\nBenchmarkY\n");
    assert_eq!(usual(&failed).unwrap().notes[1], "dir/a.out: left out: 1 failed benchmarks");
    let failed = format!("{text}{}", "--- FAIL: BenchmarkY\n".repeat(3));
    let refused = error(&failed);
    let expected = "most of the file would be left out: 3 failed benchmarks, with 2 read";
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(chosen(&failed, only("BenchmarkX")).unwrap().variants[0].values(), [5.0; 2]);
}

proptest! {
    #[test]
    fn read_runs_are_the_lines_that_were_written(
        runs in prop::collection::vec((0..4u8, 1..10_000u32), 1..40)
    ) {
        let lines = runs.iter().map(|(name, ns)| format!("Benchmark{name}X-2\t10\t{ns} ns/op\n"));
        let text: String = lines.collect();
        prop_assert_eq!(counted(&reading(&text)), runs.len());
    }
}
