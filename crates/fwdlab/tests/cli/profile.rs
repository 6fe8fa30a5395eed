//! `fwdlab profile` and `fwdlab flamegraph`.

use crate::support::{INSTANT, Lab};
use std::io::Write;
use std::process::Stdio;

const BEFORE: &str = "\
swapper;do_idle;acpi_safe_halt 50
k;net_rx_action;ip_rcv 30
k;net_rx_action;ip_rcv;fib_table_lookup 15
perf;read 5
";
const AFTER: &str = "k;net_rx_action;ip_rcv 30\nk;net_rx_action;ip_rcv;fib_table_lookup 60\n";
const PERF: &str = "\
my proc 12 [000] 25220.000002:    2004008 cycles:P: 
\tffffffff81c0 ip_rcv+0x5b ([kernel.kallsyms])
\tffffffff81c1 net_rx_action+0x5b ([kernel.kallsyms])

";

fn lab() -> Lab {
    let lab = Lab::new(INSTANT);
    for (name, text) in [("before.txt", BEFORE), ("after.txt", AFTER), ("perf.txt", PERF)] {
        lab.write(name, text);
    }
    lab
}

#[track_caller]
fn has(text: &str, expected: &[&str]) {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in expected {
        assert!(flat.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn profile_shows_functions_subsystems_and_callers() {
    let lab = lab();
    let text = lab.fwdlab(&["profile", "before.txt"]).expect(0).stdout;
    has(&text, &["folded stacks, 100 samples: work 45.0 %, idle 50.0 %, harness 5.0 %"]);
    has(&text, &["ip_rcv 66.7 % 100.0 % 30 45", "fib_table_lookup 33.3 % 33.3 % 15 15"]);
    let with_idle =
        lab.fwdlab(&["profile", "before.txt", "--keep-idle", "--top", "1"]).expect(0).stdout;
    has(&with_idle, &["acpi_safe_halt 50.0 % 50.0 % 50 50", "more; --top shows them"]);
    let parts = ["profile", "before.txt", "--by", "subsystem"];
    has(&lab.fwdlab(&parts).expect(0).stdout, &["ip_input 66.7 % 100.0 % 30 45", "lookup 33.3 %"]);
    lab.write("mine.toml", "trie = [\"fib_*\"]\n");
    let mine = lab.fwdlab(&[&parts[..], &["--subsystems", "mine.toml"]].concat()).expect(0);
    has(&mine.stdout, &["trie 33.3 %"]);
    let around = lab.fwdlab(&["profile", "before.txt", "--function", "ip_rcv"]).expect(0).stdout;
    has(
        &around,
        &["net_rx_action caller 100.0 % 45", "ip_rcv function 100.0 % 45", "itself 66.7 % 30"],
    );
    let json = lab.fwdlab(&["profile", "perf.txt", "--json"]).expect(0).json();
    assert_eq!(json["summary"]["format"], "perf-script");
    assert_eq!(json["functions"][0]["name"], "ip_rcv");
}

#[test]
fn profiles_are_compared_per_packet() {
    let lab = lab();
    let files = ["profile", "before.txt", "after.txt"];
    let shares = lab.fwdlab(&files).expect(0).stdout;
    has(&shares, &["percent of the samples; give --packets", "fib_table_lookup 33.3 66.7 +33.3"]);
    let counted = [&files[..], &["--packets", "1e6", "--packets-other", "4e6"]].concat();
    let text = lab.fwdlab(&counted).expect(0).stdout;
    has(&text, &["samples per million packets", "ip_rcv 30.0 7.50 -22.5", "no interval"]);
    // Four times the samples for four times the packets is no difference.
    has(&text, &["all 45.0 22.5 -22.5"]);
    assert!(!text.contains("fib_table_lookup"), "{text}");
    lab.fwdlab(&[&files[..], &["--packets", "1e6"]].concat()).expect(2);
}

#[test]
fn flame_graphs_are_self_contained() {
    let lab = lab();
    let text = lab.fwdlab(&["flamegraph", "before.txt"]).expect(0).stdout;
    has(&text, &["before.flame.svg", "100 samples, 45.0 % of them work: ip_rcv 66.7 %"]);
    let svg = std::fs::read_to_string(lab.path("before.flame.svg")).unwrap();
    has(&svg, &["45 % of the samples are work; idle and harness left out", ">before.txt</text>"]);
    assert!(!svg.contains("acpi_safe_halt"));
    // A picture can be read as a profile again.
    let again = lab.fwdlab(&["profile", "before.flame.svg"]).expect(0).stdout;
    has(&again, &["a flame graph (SVG), 45 samples", "ip_rcv 66.7 % 100.0 % 30 45"]);
    let files = ["flamegraph", "before.txt", "after.txt", "--out", "d/diff.svg", "--json"];
    let counted = [&files[..], &["--packets", "1e6", "--packets-other", "4e6"]].concat();
    let json = lab.fwdlab(&counted).expect(0).json();
    assert_eq!(
        (json["file"].as_str(), json["other"]["total"].as_f64()),
        (Some("d/diff.svg"), Some(90.0))
    );
    let svg = std::fs::read_to_string(lab.path("d/diff.svg")).unwrap();
    has(&svg, &["after.txt less before.txt, per packet", "red: costs more", "per 10^"]);
    lab.fwdlab(&["flamegraph", "before.txt", "after.txt", "--out", "s.svg"]).expect(0);
    let svg = std::fs::read_to_string(lab.path("s.svg")).unwrap();
    has(&svg, &["as shares of the work, not per packet"]);
}

#[test]
fn profile_reads_standard_input() {
    let lab = lab();
    let mut child = lab
        .command(&["flamegraph", "-", "--out", "x.svg", "--title", "Mine"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(PERF.as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let svg = std::fs::read_to_string(lab.path("x.svg")).unwrap();
    has(&svg, &[">Mine</text>", "my proc (2,004,008 cycles, 100.00%)"]);
}

#[test]
fn profiles_of_different_events_are_not_compared() {
    let lab = lab();
    lab.write("misses.txt", &PERF.replace("cycles:P", "cache-misses"));
    let packets = ["--packets", "1e6", "--packets-other", "1e6"];
    for command in ["profile", "flamegraph"] {
        let ended = lab.fwdlab(&[command, "perf.txt", "misses.txt"]).expect(2);
        has(&ended.stderr, &["perf.txt counts cycles, misses.txt counts cache-misses: record"]);
        // Folded stacks do not contain their event.
        lab.fwdlab(&[command, "perf.txt", "after.txt"]).expect(0);
        let counted = [&[command, "perf.txt", "after.txt"][..], &packets].concat();
        has(&lab.fwdlab(&counted).expect(2).stderr, &["counts cycles, after.txt counts samples"]);
    }
    let shares = lab.fwdlab(&["profile", "perf.txt", "after.txt"]).expect(0).stdout;
    has(&shares, &["shares of cycles are compared with shares of samples"]);
}

#[test]
fn profile_reports_what_it_left_out_in_every_form() {
    let lab = lab();
    let second = PERF.replace("cycles:P", "cache-misses");
    lab.write("some.txt", &format!("{PERF}{second}what is this\n"));
    for form in ["text", "markdown", "html", "mail"] {
        let text = lab.fwdlab(&["profile", "some.txt", "--format", form]).expect(0).stdout;
        has(&text, &["1 samples of cache-misses", "lines not understood: 1, the first is line 9"]);
    }
    let json = lab.fwdlab(&["profile", "some.txt", "--json"]).expect(0).json();
    let summary = &json["summary"];
    assert_eq!(summary["left_out"][0]["kind"], "samples of cache-misses");
    assert_eq!(
        (&summary["left_out"][0]["count"], &summary["unknown"]["count"]),
        (&1.into(), &1.into())
    );
    assert_eq!((&summary["samples"], &summary["event"]), (&1.into(), &"cycles".into()));
    lab.write("most.txt", &format!("{PERF}{}", "what is this\n".repeat(9)));
    let ended = lab.fwdlab(&["profile", "most.txt"]).expect(2);
    has(
        &ended.stderr,
        &["most.txt:5: line 5: 9 of 12 lines are not text of perf script", "next step"],
    );
}

#[test]
fn profile_errors_have_place_and_next_step() {
    let lab = lab();
    lab.write("numbers.pps", "1000\n1001\n");
    lab.write("mixed.txt", &format!("{BEFORE}{PERF}"));
    lab.write("idle.txt", "swapper;do_idle 3\n");
    lab.write("bad.toml", "a = [\"b\"]\nc = 7\n");
    lab.write(
        "flat.txt",
        "flat profile:\n time   seconds   seconds  name\n 9.0  1.0  1.0  f [1]\n",
    );
    for (arguments, expected) in [
        (&["profile", "nowhere"][..], &["can't read nowhere", "name the text of a profile"][..]),
        (&["profile", "numbers.pps"], &["numbers.pps: not a profile", "perf script"]),
        (&["profile", "mixed.txt"], &["mixed.txt:5: ", "looks like text of perf script"]),
        (&["profile", "before.txt", "--function", "ip_rvc"], &["did you mean `ip_rcv`?"]),
        (&["profile", "before.txt", "--subsystems", "bad.toml"], &["bad.toml:2: ", "no list"]),
        (&["profile", "-", "-"], &["standard input is one profile"]),
        (&["flamegraph", "idle.txt"], &["nothing to draw", "--keep-idle"]),
        (&["flamegraph", "flat.txt"], &["has no stacks to draw", "fwdlab profile"]),
        (&["flamegraph", "before.txt", "--packets", "9"], &["required"]),
    ] {
        let ended = lab.fwdlab(arguments).expect(2);
        for expected in expected {
            assert!(
                ended.stderr.contains(expected),
                "{arguments:?}: no {expected:?} in\n{}",
                ended.stderr
            );
        }
    }
}
