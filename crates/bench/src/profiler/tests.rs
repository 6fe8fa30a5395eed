//! Failures of perf, tested on a scripted host.

use super::perf::{COUNTED, Perf};
use super::simulated::Simulated;
use super::*;
use crate::host::{Ended, FakeHost, FakeProgram};
use fwdlab_model::profile::{CallGraph, Event, ProfilePlan};
use std::cell::Cell;
use std::path::Path;

/// Output of perf 6.1 on Linux 6.18.
const SCRIPT: &str = "\
napi/d0-8    77/77    [001] 25351.476491979:     500250 cpu-clock: 
\tffffffff816a4844 ip_forward+0x34 ([kernel.kallsyms])
\tffffffff816a53e9 ip_rcv+0x99 ([kernel.kallsyms])

napi/d0-8    77/77    [001] 25351.476985189:     500250 cpu-clock: 
\tffffffff816a1215 fib_table_lookup+0x8c5 ([kernel.kallsyms])
\tffffffff81389be8 ip_rcv+0xf8 ([kernel.kallsyms])

";

const STAT: &str = "\
Events disabled
<not supported>,,cycles,0,100.00,,
12345,,instructions,202281646,100.00,,
<not counted>,,cache-misses,0,100.00,,
40,,context-switches,202281646,100.00,,
3,,cpu-migrations,202280805,100.00,,
";

fn success(errors: &str) -> Ended {
    Ended { well: true, code: Some(0), status: "exit status: 0".into(), errors: errors.into() }
}

fn failure(errors: &str) -> Ended {
    Ended { well: false, code: Some(255), status: "exit status: 255".into(), errors: errors.into() }
}

/// Returns a working host without a cycle counter.
fn machine() -> FakeHost {
    let outputs = [("perf stat", "<not supported>,,cycles,0,100.00,,\n"), ("perf script", SCRIPT)];
    let programs = [
        ("perf record", FakeProgram::answering("ack", success("[ perf record: Captured ]"))),
        ("perf stat", FakeProgram::answering("ack", failure(STAT))),
    ];
    FakeHost {
        outputs: outputs.map(|(key, text)| (key.into(), text.into())).into(),
        programs: programs.map(|(key, program)| (key.into(), program)).into(),
        ..FakeHost::default()
    }
}

/// Sampling of a profile run with the default settings.
fn full() -> Sampling {
    Sampling::from(&ProfilePlan::default())
}

fn profile(host: &FakeHost, plan: &Sampling) -> RawProfile {
    let now = Cell::new(0);
    let clock = || {
        now.set(now.get() + 1000);
        now.get()
    };
    let mut perf = Perf::prepare(host, &clock, plan, &[1, 3], Path::new("/run/x"));
    perf.start();
    perf.stop();
    let raw = Box::new(perf).finish();
    let commands = host.commands.lock().expect("commands");
    let last = &commands.last().expect("a command").0;
    assert_eq!(last, &["rm", "-f", "/run/x"], "the file is always removed");
    raw
}

fn remarks_of(host: &FakeHost) -> String {
    let raw = profile(host, &full());
    raw.remarks.join("\n")
}

#[test]
fn samples_counters_and_times_are_kept() {
    let host = machine();
    let raw = profile(&host, &full());
    assert_eq!(raw.text, SCRIPT);
    assert_eq!(raw.source, "perf, cpu-clock at 1999 Hz, frame pointers");
    assert_eq!((raw.sampled_from_ns, raw.sampled_to_ns), (1000, 2000));
    assert_eq!(raw.remarks.len(), 1, "{:?}", raw.remarks);
    assert!(raw.remarks[0].contains("counts no cycles"));
    let counter = |name: &str| {
        let found = raw.counters.iter().find(|counter| counter.name == name).expect(name);
        (found.value, found.why_absent.as_str())
    };
    assert_eq!(counter("cycles"), (None, "not supported by this machine"));
    assert_eq!(counter("instructions"), (Some(12345), ""));
    assert_eq!(counter("cache-misses"), (None, "not counted: no free counter"));
    assert_eq!(counter("branch-misses"), (None, "perf did not report it"));
    assert_eq!(counter("cpu-migrations"), (Some(3), ""));
    let commands = host.commands.lock().expect("commands");
    let record = commands.iter().find(|(words, _)| words[1] == "record").expect("a record");
    let line = record.0.join(" ");
    for part in
        ["-k CLOCK_MONOTONIC", "-C 1,3", "-F 1999", "--call-graph fp", "-e cpu-clock", "-o /run/x"]
    {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn cycles_are_sampled_if_counted_and_missing_events_fall_back_to_the_clock() {
    let mut host = machine();
    host.outputs.insert("perf stat".into(), "98765,,cycles,10,100.00,,\n".into());
    let plan = Sampling { call_graph: CallGraph::Dwarf, ..full() };
    let raw = profile(&host, &plan);
    assert_eq!((raw.event.as_str(), raw.call_graph.as_str()), ("cycles", "dwarf"));
    assert_eq!(raw.remarks, Vec::<String>::new());

    let plan = Sampling { event: Event::CacheMisses, ..full() };
    let raw = profile(&machine(), &plan);
    assert_eq!(raw.event, "cpu-clock");
    assert!(raw.remarks[0].starts_with("cache-misses can't be sampled"), "{:?}", raw.remarks);
    assert!(raw.remarks[0].contains("next step"));
}

#[test]
fn failed_start_of_perf_becomes_a_remark_with_a_next_step() {
    for (words, what, next) in [
        ("perf is not installed", "perf is missing", "linux-perf"),
        (
            "Error:\nAccess to performance monitoring and observability operations is limited.\n\
             Consider adjusting /proc/sys/kernel/perf_event_paranoid setting",
            "may not sample",
            "kernel.perf_event_paranoid=-1",
        ),
        ("error: unknown option `control'", "too old", "5.10"),
        ("Maximum frequency rate (1,000 Hz) exceeded.", "as often", "lower `frequency`"),
        ("Segmentation fault", "Segmentation fault", "fwdlab doctor"),
    ] {
        // Before any program runs ...
        let mut host = machine();
        host.failures.insert("perf stat".into(), words.into());
        let remarks = remarks_of(&host);
        assert!(remarks.contains(what) && remarks.contains(next), "{words}: {remarks}");
        // ... or while it gets ready.
        let mut host = machine();
        let dead = FakeProgram { ended: failure(words), ..FakeProgram::default() };
        host.programs.insert("perf record".into(), dead);
        let raw = profile(&host, &full());
        let remarks = raw.remarks.join("\n");
        assert!(remarks.contains(what) && remarks.contains(next), "{words}: {remarks}");
        assert_eq!((raw.text.as_str(), raw.sampled_from_ns), ("", 0));
        assert_eq!(raw.counters.len(), COUNTED.len());
        assert!(raw.counters.iter().all(|counter| counter.value.is_none()));
    }
}

#[test]
fn event_without_sampling_support_falls_back_to_the_clock() {
    let mut host = machine();
    host.outputs.insert("perf stat".into(), "98765,,cycles,10,100.00,,\n".into());
    let words = "Error:\ncycles: PMU Hardware doesn't support sampling/overflow-interrupts. Try \
                 'perf stat'\nThe cycles event is not supported.";
    let dead = FakeProgram { ended: failure(words), ..FakeProgram::default() };
    host.programs.insert("perf record".into(), dead);
    // The fake also fails for the clock: both attempts are made, the last one is reported.
    let raw = profile(&host, &full());
    assert_eq!(raw.event, "cpu-clock");
    assert!(raw.remarks.iter().any(|remark| remark.contains("counts no cycles")));
    let commands = host.commands.lock().expect("commands");
    assert_eq!(commands.iter().filter(|(words, _)| words[1] == "record").count(), 2);
}

#[test]
fn dying_perf_and_full_disk_keep_earlier_samples() {
    let mut host = machine();
    let dies = FakeProgram {
        lives_for: Some(2),
        ..FakeProgram::answering("ack", failure("Terminated by signal 9"))
    };
    host.programs.insert("perf record".into(), dies);
    let raw = profile(&host, &full());
    let remarks = raw.remarks.join("\n");
    assert!(remarks.contains("before the window did"), "{remarks}");
    assert!(remarks.contains("Terminated by signal 9"), "{remarks}");
    assert_eq!(raw.text, SCRIPT);

    let mut host = machine();
    let words = "failed to write perf data, error: No space left on device\n";
    let full = Ended { status: "it was killed".into(), ..failure(words) };
    host.programs.insert("perf record".into(), FakeProgram::answering("ack", full));
    let broken = "0x4e50 [0]: failed to process type: 0 [Invalid argument]";
    host.failures.insert("perf script".into(), broken.into());
    let remarks = remarks_of(&host);
    assert!(remarks.contains("did not fit on the disk"), "{remarks}");
    assert!(remarks.contains("cut off"), "{remarks}");
    assert!(remarks.contains("no sample"), "{remarks}");
}

#[test]
fn hidden_names_and_missing_samples_become_remarks() {
    let mut host = machine();
    let hidden = SCRIPT.replace("ip_forward+0x34", "[unknown]").replace("ip_rcv+0x99", "[unknown]");
    host.outputs.insert("perf script".into(), hidden);
    host.files.lock().expect("files").insert("/proc/sys/kernel/kptr_restrict".into(), "2".into());
    let remarks = remarks_of(&host);
    assert!(
        remarks.contains("2 of 4 frames") && remarks.contains("kptr_restrict = 2"),
        "{remarks}"
    );

    let mut host = machine();
    host.outputs.insert("perf script".into(), String::new());
    assert!(remarks_of(&host).contains("no sample"));

    let mut host = machine();
    let stats = "Aggregated stats:\n     SAMPLE events:    75  (22.1%)\n       LOST events:     3  ( 0.9%)\n";
    host.outputs.insert("perf report".into(), stats.into());
    assert!(remarks_of(&host).contains("no room for some samples, 3 times"));
}

#[test]
fn probe_reports_missing_requirements() {
    let file = Path::new("/run/probe");
    let summary = probe::attempt(&machine(), file).expect("a probe");
    assert!(summary.starts_with("2 samples") && summary.contains("no cycles"), "{summary}");
    let mut host = machine();
    host.failures.insert("perf record".into(), "perf is not installed".into());
    assert!(probe::attempt(&host, file).expect_err("no perf").contains("linux-perf"));
    let mut host = machine();
    host.outputs.insert("perf script".into(), SCRIPT.replace("ip_forward+0x34", "[unknown]"));
    assert!(probe::attempt(&host, file).expect_err("no names").contains("kptr_restrict"));
    let mut host = machine();
    host.outputs.insert("perf script".into(), String::new());
    assert!(probe::attempt(&host, file).expect_err("no samples").contains("no sample"));
}

#[test]
fn simulated_profile_is_labelled_and_includes_the_firewall() {
    let now = Cell::new(5_000_000_000);
    let clock = || now.get();
    let sample = |firewall| {
        now.set(5_000_000_000);
        let mut simulated = Simulated::new(&clock, &full(), firewall);
        simulated.start();
        now.set(6_000_000_000);
        simulated.stop();
        Box::new(simulated).finish()
    };
    let (plain, filtered) = (sample(false), sample(true));
    assert_eq!(plain, sample(false), "the same every time");
    assert!(plain.source.contains("simulated") && plain.remarks[0].contains("SIMULATED"));
    assert!(!plain.text.contains("simulated_firewall"));
    let census = Census::of(&filtered.text);
    assert!((1999..=2000).contains(&census.samples), "{census:?}");
    assert_eq!(Census::of(SCRIPT).in_programs, 0);
    let program = "sh 1/1 [000] 1.000000000: 5 cpu-clock: \n\t  4010 main+0x1 (/bin/sh)\n\n";
    assert_eq!(Census::of(&format!("{SCRIPT}{program}")).in_programs, 1);
    // 32 of 100 by the table of weights.
    let share = filtered.text.matches("simulated_firewall").count() as f64 / 1999.0;
    assert!((share - 0.32).abs() < 0.005, "{share}");
}
