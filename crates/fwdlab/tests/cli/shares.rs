//! Shares of an experiment, each measured by its own process, and their merge.

use crate::support::{INSTANT, Lab};
use fwdlab_results::store::Store;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs in the store, each with number, rate and bed.
fn runs(lab: &Lab, store: &str) -> Vec<(u32, u64, Option<String>)> {
    let contents = Store::open_read_only(&lab.path(store)).unwrap().contents().unwrap();
    let beds = contents.run_beds().into_iter().map(|bed| bed.map(str::to_owned));
    let figures = contents.runs.iter().map(|run| (run.run, run.trial.window.forwarded));
    figures.zip(beds).map(|((run, forwarded), bed)| (run, forwarded, bed)).collect()
}

#[test]
fn merged_shares_equal_a_single_measurement() {
    let lab = Lab::new(INSTANT);
    for (share, bed) in [("1/2", "rack1"), ("2/2", "rack2")] {
        let ended = lab.fwdlab(&["run", "x.toml", "--share", share, "--bed", bed]).expect(0);
        assert!(ended.stderr.contains("4 of its 4 runs are left"), "{}", ended.stderr);
        assert!(ended.stdout.is_empty(), "a part has no verdict: {}", ended.stdout);
    }
    // A part is not an experiment: only the tree of shares itself names it.
    lab.fwdlab(&["export", "results", "--parquet", "tables"]).expect(2);
    let again = lab.fwdlab(&["run", "x.toml", "--share", "2/2", "--bed", "rack9"]).expect(0);
    assert!(again.stderr.contains("0 of its 4 runs are left"), "{}", again.stderr);

    let shares = "results/x/.shares";
    let missing = ["merge", "results/x/.shares/00001-of-00002", "--out", "part"];
    let refused = lab.fwdlab(&missing).expect(2);
    assert!(
        refused.stderr.contains("4 of 8 runs are in none of the 1 stores"),
        "{}",
        refused.stderr
    );
    let partial = [&missing[..], &["--partial"]].concat();
    assert!(lab.fwdlab(&partial).expect(0).stdout.starts_with("4 of 8 runs of 1 stores are in "));

    let merged = lab.fwdlab(&["merge", shares, "--out", "results/x", "--json"]).expect(0).json();
    assert_eq!((&merged["runs"], &merged["planned"]), (&8.into(), &8.into()));
    assert_eq!(merged["beds"][1], serde_json::json!({ "bed": "rack2", "runs": 4 }));
    lab.fwdlab(&["run", "x.toml", "--out", "whole", "--quiet"]).expect(0);
    let (parts, whole) = (runs(&lab, "results/x/run.sqlite"), runs(&lab, "whole/run.sqlite"));
    for (part, one) in parts.iter().zip(&whole) {
        assert_eq!((part.0, part.1), (one.0, one.1), "a simulated run is the same wherever");
    }
    assert_eq!(parts.len(), whole.len());
    let beds = |bed: &str| parts.iter().filter(|run| run.2.as_deref() == Some(bed)).count();
    assert_eq!((beds("rack1"), beds("rack2")), (4, 4));

    // The store continues like any other: nothing is missing.
    let ended = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(ended.stderr.contains("all of its 8 runs are stored already"), "{}", ended.stderr);
    assert!(ended.stdout.contains("2 beds (rack1 and rack2)"), "{}", ended.stdout);
    let refused = lab.fwdlab(&["merge", shares, "--out", "results/x"]).expect(2);
    assert!(refused.stderr.contains("--fresh"), "{}", refused.stderr);
    lab.fwdlab(&["merge", shares, "--out", "results/x", "--fresh"]).expect(0);
    assert!(lab.path("results/x/run.sqlite.1").exists());
}

#[test]
fn export_puts_each_run_in_the_folder_of_its_bed() {
    let lab = Lab::new(INSTANT);
    for (share, bed) in [("1/2", "rack1"), ("2/2", "rack2")] {
        lab.fwdlab(&["run", "x.toml", "--share", share, "--bed", bed, "--quiet"]).expect(0);
    }
    lab.fwdlab(&["merge", "results/x/.shares", "--out", "results/x"]).expect(0);
    lab.fwdlab(&["export", "results", "--parquet", "tables"]).expect(0);
    for (table, beds) in [("runs", 3), ("verdicts", 3)] {
        let folders = std::fs::read_dir(lab.path("tables/current").join(table)).unwrap();
        let mut names: Vec<String> =
            folders.map(|f| f.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, ["bed=all", "bed=rack1", "bed=rack2"][..beds]);
    }
    let history = lab.fwdlab(&["history", "results"]).expect(0);
    assert!(history.stdout.contains("bed rack1"), "{}", history.stdout);
    assert!(history.stdout.contains("bed rack2"), "{}", history.stdout);
}

#[test]
fn shares_of_other_revisions_are_not_merged() {
    let lab = Lab::new(INSTANT);
    for (share, revision) in [("1/2", "a1"), ("2/2", "b2")] {
        let line = ["run", "x.toml", "--share", share, "--revision", revision, "--quiet"];
        lab.fwdlab(&line).expect(0);
    }
    let refused = lab.fwdlab(&["merge", "results/x/.shares", "--out", "results/x"]).expect(2);
    for words in ["runs of revision a1", "of revision b2", "each revision separately"] {
        assert!(refused.stderr.contains(words), "no `{words}` in {}", refused.stderr);
    }
    assert!(!lab.path("results/x/run.sqlite").exists());
}

#[test]
fn indivisible_experiments_are_refused_with_a_next_step() {
    let early = INSTANT.replace("blocks = 4", "stop = \"open\"\nmax_blocks = 8");
    let lab = Lab::new(&early);
    let refused = lab.fwdlab(&["run", "x.toml", "--share", "1/2"]).expect(2);
    assert!(refused.stderr.contains("leave `stop` out of [design]"), "{}", refused.stderr);
    let lab = Lab::new(INSTANT);
    for wrong in [["--share", "3/2"], ["--share", "x"], ["--bed", "a b"]] {
        lab.fwdlab(&["run", "x.toml", wrong[0], wrong[1]]).expect(2);
    }
    lab.fwdlab(&["run", "x.toml", "--share", "1/2", "--fail-on", "worse"]).expect(2);
}

/// Two processes measure one share: the second waits, and measures nothing again.
#[test]
fn second_process_waits_for_the_same_share() {
    let slow = INSTANT.replace("noise = 0.01", "noise = 0.01\nrealtime = true")
        + "[trial]\nwarmup = \"10ms\"\nduration = \"200ms\"\ndrain = \"20ms\"\n";
    let lab = Lab::new(&slow);
    let line = ["run", "x.toml", "--share", "1/1", "--bed", "rack1"];
    let start = |log: &str| {
        let log = std::fs::File::create(lab.path(log)).unwrap();
        lab.command(&line).stderr(log).stdout(Stdio::null()).spawn().unwrap()
    };
    let wait_for = |log: &str, words: &str| {
        let log_text = || std::fs::read_to_string(lab.path(log)).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !log_text().contains(words) {
            assert!(Instant::now() < until, "no `{words}` in {}", log_text());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // The first process is stopped until the second one waits, however long that takes to begin.
    let mut first = start("first");
    wait_for("first", "8 of its 8 runs are left");
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &first.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let mut second = start("second");
    wait_for("second", "share 1 of 1 waits: ");
    signal("-CONT");
    assert!(first.wait().unwrap().success());
    assert!(second.wait().unwrap().success());
    wait_for("second", "0 of its 8 runs are left");
    assert_eq!(runs(&lab, "results/x/.shares/00001-of-00001/run.sqlite").len(), 8);
    // Another division of the same blocks.
    let refused = lab.fwdlab(&["run", "x.toml", "--share", "1/2"]).expect(2);
    assert!(refused.stderr.contains("otherwise than share 1 of 1"), "{}", refused.stderr);
    for option in [["--format", "json"], ["--notify-command", "true"], ["--no-report", "-q"]] {
        lab.fwdlab(&[&line[..], &option].concat()).expect(2);
    }
}

#[test]
fn submit_without_a_queue_prints_the_next_step() {
    let lab = Lab::new(INSTANT).with("PATH", "/nowhere");
    let refused = lab.fwdlab(&["submit", "x.toml"]).expect(3);
    assert!(refused.stderr.contains("can't start sbatch"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--share 1/4"), "{}", refused.stderr);
    let refused = lab.fwdlab(&["submit", "x.toml", "--status"]).expect(2);
    assert!(refused.stderr.contains("no share of x was handed in yet"), "{}", refused.stderr);
    let refused = lab.fwdlab(&["submit", "-"]).expect(2);
    assert!(refused.stderr.contains("name a file"), "{}", refused.stderr);
}

/// Calls of Slurm's programs, for which scripts stand in: a job is in the queue while a file
/// contains its name.
#[test]
fn cancel_skips_forgotten_jobs_and_sets_unreadable_records_aside() {
    let lab = Lab::new(&(INSTANT.to_owned() + "[profile]\nstarts = 1\n"));
    let at = lab.path("").display().to_string();
    let program = |name: &str, script: String| {
        lab.write(name, &format!("#!/bin/sh\ncd {at}\n{script}\n"));
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(lab.path(name), executable).unwrap();
    };
    program("sbatch", "echo x >>count; wc -l <count | tee -a queue".into());
    let forgotten = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1";
    program(
        "squeue",
        format!(
            "for last; do :; done; grep -qx \"$last\" queue || {{ {forgotten}; }}\n\
             echo \"${{last}}_1|PENDING||Resources\""
        ),
    );
    program("scancel", "echo \"$*\" >>cancelled; echo 'not yours' >&2; [ ! -e deny ]".into());
    let path = std::env::var("PATH").unwrap_or_default();
    let lab = lab.with("PATH", &format!("{at}:{path}"));
    let options = ["--sbatch=--partition=a b", "--at-once", "2", "--no-calibration"];
    let submit = [&["submit", "x.toml"][..], &options].concat();
    let handed_in = lab.fwdlab(&submit).expect(0);
    let again = "submit x.toml --at-once 2 --sbatch='--partition=a b' --no-calibration --status";
    assert!(handed_in.stdout.contains(again), "{}", handed_in.stdout);
    assert!(handed_in.stderr.contains("are no part of shares"), "{}", handed_in.stderr);
    // The array of shares has ended and is forgotten; the merge waits.
    lab.write("queue", "2\n");
    lab.write("deny", "");
    let cancel = ["submit", "x.toml", "--cancel", "--json"];
    let refused = lab.fwdlab(&cancel).expect(3);
    for words in ["scancel refused: not yours", "which of the jobs 2 are left"] {
        assert!(refused.stderr.contains(words), "no `{words}` in {}", refused.stderr);
    }
    std::fs::remove_file(lab.path("deny")).unwrap();
    assert_eq!(lab.fwdlab(&cancel).expect(0).json()["cancelled"], serde_json::json!(["2"]));
    assert_eq!(std::fs::read_to_string(lab.path("cancelled")).unwrap(), "2\n2\n");
    lab.write("queue", "");
    assert_eq!(lab.fwdlab(&cancel).expect(0).json()["cancelled"], serde_json::json!([]));
    // A record of another version, and an invalid record.
    let record = "results/x/.shares/submission.json";
    let of_today = std::fs::read_to_string(lab.path(record)).unwrap();
    for text in [of_today.replace("\"version\": 1", "\"version\": 2"), "{".to_owned()] {
        lab.write(record, &text);
        let refused = lab.fwdlab(&submit).expect(3);
        assert!(refused.stderr.contains("then give --fresh"), "{}", refused.stderr);
        lab.fwdlab(&[&submit[..], &["--fresh"]].concat()).expect(0);
        lab.write("queue", "");
    }
    assert!(lab.path("results/x/.shares.2").exists());
    // Shares of another division that were measured manually.
    std::fs::create_dir(lab.path("results/x/.shares/00001-of-00002")).unwrap();
    let refused = lab.fwdlab(&submit).expect(2);
    assert!(refused.stderr.contains("otherwise than share 1 of 2"), "{}", refused.stderr);
}
