//! Instructions per packet of each path through the router. They do not depend on the machine's
//! load, so a regression shows where packets per second hide it.
//!
//! `cargo bench -p fwdlab-router --bench instructions` (Debian's package `valgrind` counts the
//! instructions). Each case runs twice, in separate processes, with a number of batches and with
//! twice that number: the difference is the cost of the batches, without the set-up. It includes
//! generator, rings and sink, which the case `nothing` measures alone. The router's clock is
//! synthetic.
//!
//! The counts are compared with `instructions.txt`, and the benchmark fails beyond 5 % in either
//! direction; UPDATE=1 rewrites that file, only for cases whose names contain a word of the command
//! line if there are any. A different compiler gives different counts, and so does a different
//! libc, whose copy routine depends on the CPU.

use fwdlab_netio::frame::BATCH;
use fwdlab_packet::Family;
use fwdlab_router::bench::route::{Lab, Tables, Traffic, Variant};
use fwdlab_router::firewall::Standard;
use fwdlab_router::path::ForwardingPath;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::{env, fs};

/// Maximum relative difference from the file.
const TOLERANCE: f64 = 0.05;
/// Batches of the shorter run; all flows are known by then.
const BATCHES: usize = 400;
const FLOWS: u32 = 2000;
/// Time between batches on the synthetic clock: about 30 million packets per second.
const BATCH_NS: u64 = 2000;
/// Argument that makes this program the process to count.
const COUNTED: &str = "--counted";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [first, name, batches] = &words[..]
        && first == COUNTED
    {
        counted(name, batches.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    // `cargo test --benches` only checks that this compiles.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("SKIPPED: no valgrind (apt-get install valgrind)");
        let must = env::var("FWDLAB_CI").is_ok_and(|value| value == "1");
        return if must { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let cases = cases().into_iter().map(|case| case.name);
    let cases = cases.filter(|name| {
        filters.is_empty() || filters.iter().any(|word| name.contains(word.as_str()))
    });
    let table = table();
    let before = read(&fs::read_to_string(&table).unwrap_or_default());
    let known = |name: &str| before.iter().find(|(known, _)| known == name).map(|&(_, n)| n);
    let mut after = before.clone();
    let mut good = true;
    println!("instructions per packet, generator, rings and sink included");
    for name in cases {
        let packets = (BATCHES * BATCH) as f64;
        let count = (instructions(&name, 2 * BATCHES) - instructions(&name, BATCHES)) / packets;
        let verdict = match known(&name) {
            None => "not in the table".into(),
            Some(expected) => {
                let change = count / expected - 1.0;
                let within = change.abs() <= TOLERANCE;
                good &= within;
                let changed = if within { "" } else { "  CHANGED" };
                format!("{:+5.1} % of {expected:.1}{changed}", change * 100.0)
            }
        };
        good &= known(&name).is_some();
        println!("  {name:38} {count:8.1}  {verdict}");
        match after.iter_mut().find(|(other, _)| *other == name) {
            Some((_, place)) => *place = count,
            None => after.push((name, count)),
        }
    }
    if env::var("UPDATE").is_ok_and(|value| value == "1") {
        fs::write(&table, written(&after)).expect("a file that can be written");
        println!("{} is written anew", table.display());
        return ExitCode::SUCCESS;
    }
    if good {
        return ExitCode::SUCCESS;
    }
    println!("What was meant is kept with UPDATE=1.");
    ExitCode::FAILURE
}

/// A path through the router.
struct Case {
    name: String,
    variant: Variant,
    expiring: bool,
    /// No router at all.
    nothing: bool,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (family, called) in [(Family::Inet, "inet"), (Family::Inet6, "inet6")] {
        let plain = Variant::plain(family);
        let (expiring, nothing) = (false, false);
        let name = format!("{called} nothing");
        cases.push(Case { name, variant: plain, expiring, nothing: true });
        for path in ForwardingPath::IN_PROCESS {
            for (firewall, rules) in [
                (Standard::None, ""),
                (Standard::Stateless, " stateless"),
                (Standard::Stateful, " stateful_sharded"),
            ] {
                let name = format!("{called} {path}{rules}", path = path.name());
                let variant = Variant { path, firewall, ..plain };
                cases.push(Case { name, variant, expiring, nothing });
            }
        }
        let name = format!("{called} expired");
        cases.push(Case { name, variant: plain, expiring: true, nothing });
    }
    cases
}

/// Sends this many batches and nothing else.
fn counted(name: &str, batches: usize) {
    let case = cases().into_iter().find(|case| case.name == name).expect("a case of that name");
    let mut traffic = Traffic::new(case.variant.family, None, FLOWS).expect("a size");
    if case.expiring {
        traffic = traffic.expiring();
    }
    let mut lab = Lab::new(&case.variant, &mut Tables::new(1), Arc::new(traffic)).expect("a lab");
    let mut now_ns = 1_000_000_000;
    let mut tick = || {
        now_ns += BATCH_NS;
        now_ns
    };
    if case.nothing {
        lab.pass_around(batches);
    } else {
        lab.pass((FLOWS as usize).div_ceil(BATCH), &mut tick);
        lab.pass(batches, tick);
        lab.check().expect("every packet arrives");
    }
}

/// Returns the instructions of a whole process.
fn instructions(name: &str, batches: usize) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(env::current_exe().expect("this program"))
        .args([COUNTED, name, &batches.to_string()])
        .output()
        .expect("valgrind runs");
    let output_text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output_text}");
    // ==1234== I   refs:      12,345,678
    let line = output_text.lines().find_map(|line| line.split_once("refs:")).expect("a count");
    line.1.trim().replace(',', "").parse().expect("a number")
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt")
}

/// Parses the name and count of each line.
fn read(text: &str) -> Vec<(String, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name.trim().to_owned(), count.parse().ok()?))
    };
    lines.filter_map(pair).collect()
}

fn written(counts: &[(String, f64)]) -> String {
    let mut text = String::from(
        "# Instructions per packet, generator, rings and sink (\"nothing\") included:\n\
         # cargo bench -p fwdlab-router --bench instructions, with UPDATE=1 to write this.\n",
    );
    for (name, count) in counts {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name:38} {count:8.1}");
    }
    text
}
