//! Measures the import of an archive of 20,000 logs into stores, and a second import that finds
//! nothing changed. Uses all CPUs and a release build. The files were just written, so disk reads
//! play no part. Runs in the directory for temporary files (`TMPDIR`).

#[path = "../tests/it/archive_writer.rs"]
mod archive_writer;

use archive_writer::{CONFIGURATIONS, Form, Set, Writer};
use fwdlab_archive::assemble::Options;
use fwdlab_archive::import::{self, Job, Request, Summary};
use fwdlab_archive::scan::scan;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const BENCHES: u64 = 25;
const LABELS: u64 = 10;
const RUNS: usize = 5;
const SECONDS: usize = 85;
const REPETITIONS: usize = 5;

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let archive = directory.path().join("archive");
    write(&archive);
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let (mut cold, mut again) = (Vec::new(), Vec::new());
    let mut tally = Default::default();
    for repetition in 0..REPETITIONS {
        let stores = directory.path().join(format!("stores{repetition}"));
        let (seconds, first) = import(&archive, &stores, threads);
        cold.push(seconds);
        tally = first.tally;
        let (seconds, second) = import(&archive, &stores, threads);
        again.push(seconds);
        assert_eq!(second.tally.logs, 0, "the second import reads nothing");
        std::fs::remove_dir_all(stores).expect("stores that can be removed");
    }
    let (logs, mb) = (tally.logs as f64, tally.bytes as f64 / 1e6);
    println!("{logs} logs, {mb:.0} MB, {threads} threads, {REPETITIONS} repetitions");
    assert_eq!((tally.logs, tally.lists_equal), (20_000, 2000), "every published list comes out");
    let median = print_median("cold", &mut cold);
    println!("  {:.0} logs/s, {:.0} MB/s", logs / median, mb / median);
    print_median("again, nothing changed", &mut again);
}

/// Writes the archive, half of it in each format.
fn write(root: &Path) {
    let writer = Writer::new(root);
    for bench in 0..BENCHES {
        for label in 0..LABELS {
            let (path, name) = (format!("Xeon_{bench}_8Cores/T5/firewalls"), format!("r{label}"));
            let (form, raw) = if label % 2 == 0 { (Form::Old, "") } else { (Form::New, "RAW") };
            writer.set(&Set {
                bench: &path,
                label: &name,
                raw,
                configurations: CONFIGURATIONS.len(),
                runs: RUNS,
                seconds: SECONDS,
                form,
                seed: bench * LABELS + label,
            });
        }
    }
}

/// Scans and imports; returns the total time in seconds.
fn import(archive: &Path, stores: &Path, threads: NonZeroUsize) -> (f64, Summary) {
    let began = Instant::now();
    let sets = scan(archive).expect("a directory").sets.into_iter();
    let jobs: Vec<Job> = sets
        .map(|scanned| Job {
            set: scanned.set,
            store: stores.join(scanned.below).join("run.sqlite"),
            named: "archive".to_owned(),
        })
        .collect();
    let options = Options {
        rule: None,
        imported_at: "2026-01-01T00:00:00.000Z".to_owned(),
        fwdlab_version: "bench".to_owned(),
        named: String::new(),
    };
    let summary = import::import(&Request {
        jobs: &jobs,
        options: &options,
        threads,
        stop: &AtomicBool::new(false),
        read: &import::read,
        on_event: &|_| {},
    });
    (began.elapsed().as_secs_f64(), summary)
}

/// Prints median and range, and returns the median.
fn print_median(what: &str, seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(
        "{what}: median {median:.2} s ({:.2} to {:.2})",
        seconds[0],
        seconds[seconds.len() - 1]
    );
    median
}
