//! Stored runs survive any end of the program.

use crate::support::{Ended, INSTANT, Lab, plan, store, values_per_variant, without_version};
use fwdlab_model::{RunRecord, Warning};
use fwdlab_results::store::Store;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Number of kills before the program may end. Five find likely failures; raise it to twenty to
/// look for rare ones.
const KILLS: usize = 5;
/// Enough that some are left after all kills, each of which lets at most three pass.
const RUNS: usize = 4 * KILLS;

/// Short runs in real time: about 0.1 s each.
fn slow() -> String {
    INSTANT
        .replace("noise = 0.01", "noise = 0.01\nrealtime = true")
        .replace("blocks = 4", &format!("blocks = {}", RUNS / 2))
        + "[trial]\nwarmup = \"10ms\"\nduration = \"60ms\"\ndrain = \"20ms\"\ninterval = \"20ms\"\nslice = \"5ms\"\n"
}

fn start(lab: &Lab) -> Child {
    let mut command = lab.command(&["run", "x.toml"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until the first run is stored; returns the output so far.
fn wait_for_a_run(child: &mut Child) -> (BufReader<std::process::ChildStderr>, String) {
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut output = String::new();
    while !output.lines().any(|line| line.starts_with("block ")) {
        assert!(stderr.read_line(&mut output).expect("readable") > 0, "ended early:\n{output}");
    }
    (stderr, output)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a living child");
}

fn stored(lab: &Lab) -> Vec<RunRecord> {
    match Store::open_read_only(&lab.path("results/x/run.sqlite")) {
        Ok(store) => store.runs().expect("a store that can be read"),
        // Killed before there was a store.
        Err(_) => Vec::new(),
    }
}

#[test]
fn killed_run_continues_where_it_stopped() {
    let lab = Lab::new(&slow());
    // Any instants will do; these are spread over starting and measuring.
    let mut random: u32 = 2463534242;
    let mut before: Vec<RunRecord> = Vec::new();
    for _ in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let mut child = start(&lab);
        std::thread::sleep(Duration::from_millis(u64::from(20 + random % 330)));
        child.kill().expect("a living child");
        child.wait().expect("its end");
        let now = stored(&lab);
        assert!(now.len() >= before.len(), "runs were lost");
        assert!(before.iter().all(|record| now.contains(record)), "a stored run was changed");
        before = now;
    }
    assert!(before.len() < RUNS, "too fast a machine: plan more runs");

    let run = lab.fwdlab(&["run", "x.toml"]).expect(0);
    let carried_out = run.stderr.lines().filter(|line| line.starts_with("block ")).count();
    assert_eq!(carried_out, RUNS - before.len(), "exactly the missing runs:\n{}", run.stderr);
    let shown = lab.fwdlab(&["show", "results/x", "--json"]).expect(0).json();
    assert_eq!(values_per_variant(&shown), [RUNS / 2, RUNS / 2]);
    let all = stored(&lab);
    let indices: Vec<u32> = all.iter().map(|record| record.run).collect();
    assert_eq!(indices, (0..RUNS as u32).collect::<Vec<_>>());
    assert!(before.iter().all(|record| all.contains(record)), "a stored run was changed");
}

#[test]
fn resumed_simulation_equals_an_uninterrupted_one() {
    let lab = Lab::new(INSTANT);
    let whole = lab.fwdlab(&["run", "x.toml", "--json"]).expect(0).json();
    // A store without its last runs, as an interruption leaves it.
    let full = Store::open_read_only(&lab.path("results/x/run.sqlite")).expect("a store");
    let mut part = store(&lab.path("part/run.sqlite"), &plan(INSTANT), "sim");
    for record in full.runs().expect("runs").iter().take(3) {
        part.insert_run(record).expect("stored");
    }
    drop(part);
    let resumed = lab.fwdlab(&["run", "x.toml", "--out", "part", "--json"]).expect(0);
    assert!(resumed.stderr.contains("3 of 8 runs are stored already, 5 are left"));
    assert_eq!(without_version(resumed.json()), without_version(whole));
}

/// A search of short trials in real time: some 60 of 20 ms.
const SEARCH: &str = "\
version = 1
[testbed]
kind = \"sim\"
[testbed.sim]
capacity = \"200kpps\"
realtime = true
[trial]
warmup = \"0s\"
duration = \"60ms\"
drain = \"0s\"
interval = \"20ms\"
slice = \"5ms\"
[method]
kind = \"mlrsearch\"
[[method.goal]]
name = \"short\"
initial_trial = \"20ms\"
final_trial = \"20ms\"
duration_sum = \"420ms\"
width = \"1%\"
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[design]
blocks = 1
";

/// Number of trials of unfinished runs in the store.
fn unfinished(lab: &Lab) -> u64 {
    let store = Store::open_read_only(&lab.path("results/x/run.sqlite"));
    store.and_then(|store| store.unfinished_trials()).unwrap_or(0)
}

/// Records without the marks of attempts, and the number of trials of earlier attempts.
fn without_attempts(lab: &Lab) -> (Vec<RunRecord>, u32) {
    let (mut records, mut continued) = (stored(lab), 0);
    for record in &mut records {
        record.started_at.clear();
        record.warnings.retain(|warning| match warning {
            Warning::Continued { trials, .. } => {
                continued += trials;
                false
            }
            _ => true,
        });
    }
    (records, continued)
}

#[test]
fn search_killed_within_a_run_continues_to_the_uninterrupted_result() {
    let whole = Lab::new(SEARCH);
    whole.fwdlab(&["run", "x.toml"]).expect(0);
    let lab = Lab::new(SEARCH);
    let (mut stored_trials, mut stops) = (0, 0);
    for number in [Signal::KILL, Signal::INT, Signal::KILL, Signal::TERM] {
        let mut child = start(&lab);
        // A few trials further than the last attempt.
        let deadline = Instant::now() + Duration::from_secs(20);
        while unfinished(&lab) < stored_trials + 3 && stored(&lab).is_empty() {
            assert!(Instant::now() < deadline, "no trial was stored");
            std::thread::sleep(Duration::from_millis(2));
        }
        signal(&child, number);
        let mut output = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut output).expect("readable");
        child.wait().expect("its end");
        if !stored(&lab).is_empty() {
            break;
        }
        let now = unfinished(&lab);
        assert!(now >= stored_trials + 3, "{now} after {stored_trials}");
        if stored_trials > 0 {
            assert!(
                output.contains(&format!("continues after {stored_trials} stored trials")),
                "{output}"
            );
        }
        if number != Signal::KILL {
            let finished = format!("0 of 2 runs are stored and {now} trials of another run");
            assert!(output.contains(&finished), "{output}");
        }
        (stored_trials, stops) = (now, stops + 1);
    }
    assert!(stops > 1, "too fast a machine: plan longer trials");
    // An unfinished run is not a result.
    assert!(stored(&lab).is_empty());
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert_eq!(unfinished(&lab), 0);
    let (records, continued) = without_attempts(&lab);
    assert_eq!(u64::from(continued), stored_trials);
    assert_eq!(records, without_attempts(&whole).0);
    let shown = lab.fwdlab(&["show", "results/x", "-v"]).expect(0).stdout;
    assert!(shown.contains("continued"), "{shown}");
}

#[test]
fn signal_ends_the_run_cleanly_and_prints_the_resume_command() {
    for number in [Signal::INT, Signal::TERM] {
        let lab = Lab::new(&slow());
        let mut child = start(&lab);
        let (mut stderr, _) = wait_for_a_run(&mut child);
        signal(&child, number);
        let mut output = String::new();
        stderr.read_to_string(&mut output).expect("readable");
        assert_eq!(child.wait().expect("its end").code(), Some(130), "{output}");
        let count = stored(&lab).len();
        assert!((1..RUNS).contains(&count), "{count}");
        assert!(output.contains(&format!("{count} of {RUNS} runs are stored")), "{output}");
        assert!(output.contains("fwdlab run x.toml"), "{output}");
        lab.fwdlab(&["run", "x.toml"]).expect(0);
        assert_eq!(stored(&lab).len(), RUNS);
    }
}

#[test]
fn store_refuses_a_second_writer() {
    let lab = Lab::new(&slow());
    let mut first = start(&lab);
    let (mut stderr, _) = wait_for_a_run(&mut first);
    let second = lab.fwdlab(&["run", "x.toml"]).expect(3);
    assert!(second.stderr.contains(&format!("process {}", first.id())), "{}", second.stderr);
    // Reading is possible during the run.
    let shown = lab.fwdlab(&["show", "results/x", "--json"]).expect(0).json();
    assert!(values_per_variant(&shown).iter().sum::<usize>() >= 1);
    let mut output = String::new();
    stderr.read_to_string(&mut output).expect("readable");
    let first = Ended::from(first.wait_with_output().expect("its end")).expect(0);
    assert!(first.stdout.contains(&format!("{RUNS} of {RUNS} runs")), "{}", first.stdout);
}
