//! A real profile of this machine's kernel: its samples are in the window, have names, and show the
//! firewall if there is one.

use fwdlab_bench::probe::{Privilege, need_program};
use fwdlab_bench::profiler::RawProfile;
use fwdlab_bench::testbed::Paths;
use fwdlab_bench::{BenchError, NoopObserver, Observer, Runner, Task};
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::{Plan, PlannedRun, ProfilePlan};
use fwdlab_testdata::skip;
use std::sync::Mutex;

const EXPERIMENT: &str = r#"
version = 1
title = "profiles"
[testbed]
kind = "netns"
[[factor]]
name = "firewall"
levels = ["none", "stateful"]
[trial]
warmup = "100ms"
duration = "200ms"
[design]
blocks = 1
[profile]
duration = "2s"
windows = 4
"#;

fn open(plan: &Plan) -> Option<Runner> {
    if !fwdlab_netio::userns::is_root() {
        skip("profiles of the kernel need root");
        return None;
    }
    if let Err(error) = need_program("perf", "linux-perf") {
        skip(&error.to_string());
        return None;
    }
    let state = std::env::temp_dir().join(format!("fwdlab-profile-test-{}", std::process::id()));
    match Runner::open(
        plan,
        &Privilege::Root,
        &Paths { cache: state.clone(), state, ..Paths::default() },
    ) {
        Ok(testbed) => Some(testbed),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

/// One sample: process, time in nanoseconds, functions from the innermost.
struct ParsedSample {
    process: String,
    at_ns: u64,
    functions: Vec<String>,
}

/// Parses `comm pid/tid [cpu] seconds.nanoseconds: period event:` and its frames.
fn samples(text: &str) -> Vec<ParsedSample> {
    let mut all: Vec<ParsedSample> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(frame) = line.strip_prefix('\t') {
            let function = frame.split_whitespace().nth(1).unwrap_or_default().to_owned();
            all.last_mut().expect("frames follow a sample").functions.push(function);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let cpu = words.iter().position(|word| word.starts_with('[')).expect("a CPU");
        let (seconds, rest) = words[cpu + 1].trim_end_matches(':').split_once('.').expect("a time");
        assert_eq!(rest.len(), 9, "nanoseconds: {line}");
        let at_ns = seconds.parse::<u64>().expect("seconds") * 1_000_000_000
            + rest.parse::<u64>().expect("nanoseconds");
        all.push(ParsedSample { process: words[0].to_owned(), at_ns, functions: Vec::new() });
    }
    all
}

fn share(samples: &[ParsedSample], predicate: impl Fn(&ParsedSample) -> bool) -> f64 {
    samples.iter().filter(|sample| predicate(sample)).count() as f64 / samples.len().max(1) as f64
}

/// Observer that cancels as soon as traffic flows.
struct Cancel;

impl Observer for Cancel {
    fn cancelled(&self) -> bool {
        true
    }
}

fn run(
    testbed: &mut Runner,
    plan: &Plan,
    variant: usize,
    observer: &mut dyn Observer,
) -> Result<(ProfileRecord, RawProfile), BenchError> {
    let index = (plan.runs.len() + variant) as u32;
    let run = PlannedRun { index, block: 0, variants: vec![variant] };
    let task = Task { plan, run: &run, ceiling_pps: None };
    let profile: &ProfilePlan = plan.profile.as_ref().expect("a profile is asked for");
    testbed.profile(task, profile, observer)
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Drops of a firewall that drops every second address are attributed to the firewall.
#[test]
fn firewall_drops_are_attributed_to_the_firewall() {
    const RULES: &str = "table inet odd {
 counter lost { }
 chain forward {
  type filter hook forward priority 0;
  ip daddr & 0.0.0.1 == 0.0.0.1 counter name lost drop
 }
}
";
    let _guard = ONE_AT_A_TIME.lock();
    let text = "version = 1\n[testbed]\nkind = \"netns\"\n[dut]\nfirewall = \"odd.nft\"\n\
                [traffic]\nrate = \"20kpps\"\n[profile]\nduration = \"1s\"\n";
    let plan = fwdlab_model::load("odd.toml", text, &|_| Ok(RULES.into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let Some(mut testbed) = open(&plan) else { return };
    let (record, _) = run(&mut testbed, &plan, 0, &mut NoopObserver).expect("a profile run");
    let lost = record.total.lost();
    assert!(lost as f64 > 0.4 * record.total.offered as f64, "{:?}", record.total);
    let at = |place: &str| {
        let found = record.drops.iter().find(|drop| drop.place == place);
        found.map_or(0, |drop| drop.packets)
    };
    // A busy machine may lose some packets before they reach the firewall.
    assert!(at("firewall") as f64 > 0.8 * lost as f64, "{:?}", record.drops);
    assert_eq!(record.drops.iter().map(|drop| drop.packets).sum::<i64>(), lost);
    assert!(at("no counter tells").abs() <= 100, "{:?}", record.drops);
    let counted = record.counters.iter().find(|counter| counter.name == "nft lost");
    let counted = counted.and_then(|counter| counter.value).expect("the rule's counter");
    assert!(counted > 5000, "{counted} in a second of 10000");
}

#[test]
fn samples_are_in_the_window_with_names_and_firewall() {
    let _guard = ONE_AT_A_TIME.lock();
    let plan = fwdlab_model::load("profile.toml", EXPERIMENT, &|_| Err("no files".into()))
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let Some(mut testbed) = open(&plan) else { return };
    for (variant, has_firewall) in [(0, false), (1, true)] {
        let mut take = || run(&mut testbed, &plan, variant, &mut NoopObserver).expect("a profile");
        let stalled = |record: &ProfileRecord| {
            record.remarks.iter().any(|remark| remark.starts_with("no steady state"))
        };
        // If the host takes the machine away for a second, there is nothing to sample in that time.
        let (mut record, mut raw) = take();
        for _ in 0..3 {
            if stalled(&record) {
                (record, raw) = take();
            }
        }
        eprintln!("{:?}\n{:?}", record.remarks, record.drops);
        let samples = samples(&raw.text);
        // 2 s at 1999 Hz on each of the DUT's CPUs, which are never idle.
        assert!(samples.len() > 500, "{} samples: {:?}", samples.len(), record.remarks);

        let (from, to) = record.window_ns;
        assert!(to - from >= 2_000_000_000 && record.sampled_from_ns <= from);
        assert!(record.sampled_to_ns >= to);
        let inside = share(&samples, |sample| (from..=to).contains(&sample.at_ns));
        // Other work delays perf's end.
        assert!(inside >= 0.6, "{inside} of the samples lie in the window");
        assert_eq!(record.windows.len(), 4);
        // Other programs may take the CPU away for one of them.
        let forwarded: u64 = record.windows.iter().map(|window| window.forwarded).sum();
        assert!(forwarded > 4000, "{:?}", record.windows);

        // The DUT is its polling thread. Other programs may also have had the CPU, and programs
        // without a symbol table have no names.
        let dut: Vec<ParsedSample> =
            samples.into_iter().filter(|s| s.process.starts_with("napi/d0")).collect();
        let named = share(&dut, |s| s.functions.first().is_some_and(|f| f != "[unknown]"));
        assert!(named >= 0.9, "{named} of the {} samples have a name", dut.len());
        let share_of = |name| share(&dut, |s| s.functions.iter().any(|f| f.contains(name)));
        // ip_forward itself ends with a jump and is seldom among the callers.
        let forwarding = share_of("ip_");
        assert!(forwarding > 0.2, "{forwarding} of {} samples are in IPv4", dut.len());
        let tracking = share_of("nf_conntrack");
        assert_eq!(tracking > 0.01, has_firewall, "{tracking} are in nf_conntrack");
        assert!(has_firewall || tracking < 0.005, "{tracking} are in nf_conntrack");

        // Losses are found along the path, to the accuracy of the counters.
        let sum: i64 = record.drops.iter().map(|drop| drop.packets).sum();
        assert_eq!(sum, record.total.lost());
        let rest = record.drops.last().expect("the rest").packets;
        let allowed = 100 + record.total.offered / 500;
        assert!(rest.unsigned_abs() <= allowed, "{:?}", record.drops);
        let softirqs = record.counters.iter().find(|counter| counter.name == "softirq NET_RX");
        assert!(softirqs.is_some_and(|counter| counter.value.is_some()), "{:?}", record.counters);
    }
    let cancelled = run(&mut testbed, &plan, 0, &mut Cancel);
    assert!(matches!(cancelled, Err(BenchError::Interrupted)));
    // Neither files of perf nor a journal remain.
    let state = std::env::temp_dir().join(format!("fwdlab-profile-test-{}", std::process::id()));
    let left: Vec<String> = std::fs::read_dir(&state)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "lock")
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
