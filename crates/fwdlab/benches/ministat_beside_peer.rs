//! `fwdlab ministat` beside Debian's ministat, on the same ten million values,
//! in one session.
//!
//! `cargo bench -p fwdlab --bench ministat_beside_peer` (Debian's package
//! `ministat` has the peer, `time` measures memory and time on the CPUs, which other
//! work on the machine changes little). Pairs of runs in
//! alternating order; the ratio is taken within the pair. Both write to a file,
//! and what they write must be the same, byte for byte.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const VALUES: u32 = 10_000_000;
const PAIRS: usize = 3;
/// Seed of all the values.
const SEED: u64 = 20_150_715;

fn main() {
    // `cargo test --benches` only wants to know that this compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if Command::new("ministat").arg("-h").stderr(Stdio::null()).status().is_err() {
        println!("SKIPPED: no ministat (apt-get install ministat)");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kinds = [("six decimals", 6), ("whole numbers", 0)];
    for (label, decimals) in kinds {
        let values = directory.path().join("values");
        write_values(&values, decimals);
        for options in ["-n", "-A", "-s"] {
            compare(label, options, &values, directory.path());
        }
    }
}

/// Writes values like a noisy run's rates: sums of twelve uniform numbers.
fn write_values(path: &Path, decimals: usize) {
    let mut state = SEED;
    let mut uniform = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
    };
    let mut text = String::new();
    for _ in 0..VALUES {
        let noise = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        writeln!(text, "{:.decimals$}", 8e5 + 3e4 * noise).expect("a line");
    }
    fs::write(path, text).expect("a file of values");
}

/// What a run took.
struct Cost {
    seconds: f64,
    /// Seconds on all CPUs together and the peak of the resident set in bytes
    /// for each value; none without time(1).
    resources: Option<(f64, f64)>,
}

fn compare(label: &str, options: &str, values: &Path, directory: &Path) {
    let ours = || {
        let fwdlab = [env!("CARGO_BIN_EXE_fwdlab"), "ministat", "--generation", "debian"];
        run(&[&fwdlab[..], &[options]].concat(), values, &directory.join("ours"))
    };
    let theirs = || run(&["ministat", options], values, &directory.join("theirs"));
    let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if pair % 2 == 0 {
            our_costs.push(ours());
            their_costs.push(theirs());
        } else {
            their_costs.push(theirs());
            our_costs.push(ours());
        }
        let same = fs::read(directory.join("ours")).ok() == fs::read(directory.join("theirs")).ok();
        assert!(same, "the texts differ");
    }
    let pairs = our_costs.iter().zip(&their_costs);
    let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours.seconds / theirs.seconds).collect();
    let seconds = |costs: &[Cost]| costs.iter().map(|cost| cost.seconds).collect::<Vec<_>>();
    println!(
        "{label}, {options}: ours {} s, {}; ministat {} s, {}; ratio {}",
        spread(&seconds(&our_costs)),
        resources(&our_costs),
        spread(&seconds(&their_costs)),
        resources(&their_costs),
        spread(&ratios),
    );
}

fn run(command: &[&str], values: &Path, output: &PathBuf) -> Cost {
    let peak = output.with_extension("peak");
    let time = Path::new("/usr/bin/time");
    let mut program = if time.exists() {
        let mut program = Command::new(time);
        program.args(["-f", "%U %S %M", "-o"]).arg(&peak).arg(command[0]);
        program
    } else {
        Command::new(command[0])
    };
    program.args(&command[1..]).arg(values);
    program.stdout(File::create(output).expect("an output file"));
    let begin = Instant::now();
    let status = program.status().expect("the program starts");
    let seconds = begin.elapsed().as_secs_f64();
    assert!(status.success(), "{command:?}");
    let resources = fs::read_to_string(peak).ok().and_then(|text| {
        let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        let (user, system, kibibytes) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some((user + system, kibibytes * 1024.0 / f64::from(VALUES)))
    });
    Cost { seconds, resources }
}

/// Median of the time on the CPUs, and the largest peak of memory.
fn resources(costs: &[Cost]) -> String {
    let known: Vec<(f64, f64)> = costs.iter().filter_map(|cost| cost.resources).collect();
    if known.is_empty() {
        return "no time(1)".into();
    }
    let mut cpu: Vec<f64> = known.iter().map(|known| known.0).collect();
    cpu.sort_by(f64::total_cmp);
    let peak = known.iter().map(|known| known.1).fold(0.0, f64::max);
    format!("{:.2} s of CPU, {peak:.1} bytes a value", cpu[cpu.len() / 2])
}

/// `median (min to max)`.
fn spread(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
    format!("{:.3} ({first:.3} to {last:.3})", sorted[sorted.len() / 2])
}
