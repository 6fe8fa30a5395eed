//! Imports of archives on disk into stores: files found, read, left unchanged and refused.

use crate::archive_writer::{Form, Set, Writer};
use fwdlab_archive::assemble::{Options, Rule};
use fwdlab_archive::found::FoundFile;
use fwdlab_archive::import::{self, Event, Job, LARGEST, Outcome, Request, Summary};
use fwdlab_archive::scan::{Scan, scan};
use fwdlab_results::store::{Status, Store};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// An archive with a directory for stores.
struct Lab {
    directory: tempfile::TempDir,
    rule: Option<Rule>,
    version: &'static str,
}

/// Result of an import.
struct Imported {
    summary: Summary,
    jobs: Vec<Job>,
    /// Names of the files that were opened, sorted.
    opened: Vec<String>,
}

impl Lab {
    fn new() -> Lab {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("archive")).expect("a directory");
        Lab { directory, rule: None, version: "test" }
    }

    fn archive(&self) -> PathBuf {
        self.directory.path().join("archive")
    }

    fn writer(&self) -> Writer {
        Writer::new(&self.archive())
    }

    fn scan(&self) -> Scan {
        scan(&self.archive()).expect("a directory that can be read")
    }

    fn import(&self) -> Imported {
        let scan = self.scan();
        let store = |below: &Path| self.directory.path().join("stores").join(below);
        let jobs = scan.sets.into_iter().map(|scanned| Job {
            set: scanned.set,
            store: store(&scanned.below).join("run.sqlite"),
            named: "archive".into(),
        });
        self.import_jobs(jobs.collect(), &AtomicBool::new(false))
    }

    fn import_jobs(&self, jobs: Vec<Job>, stop: &AtomicBool) -> Imported {
        let opened = Mutex::new(Vec::new());
        let (passed, bytes_passed) = (AtomicUsize::new(0), AtomicU64::new(0));
        let options = Options {
            rule: self.rule,
            imported_at: "2026-01-01T00:00:00.000Z".into(),
            fwdlab_version: self.version.into(),
            named: String::new(),
        };
        let read = |file: &FoundFile| {
            opened.lock().unwrap().push(file.name.clone());
            import::read(file)
        };
        let on_event = |event: Event<'_>| {
            if let Event::Passed { files, bytes } = event {
                passed.fetch_add(files, Ordering::Relaxed);
                bytes_passed.fetch_add(bytes, Ordering::Relaxed);
            }
        };
        let summary = import::import(&Request {
            jobs: &jobs,
            options: &options,
            threads: NonZeroUsize::new(2).unwrap(),
            stop,
            read: &read,
            on_event: &on_event,
        });
        let mut opened = opened.into_inner().unwrap();
        opened.sort();
        if !stop.load(Ordering::Relaxed) {
            let sizes = jobs.iter().map(|job| import::size(&job.set));
            let all = sizes.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!((passed.into_inner(), bytes_passed.into_inner()), all);
        }
        Imported { summary, jobs, opened }
    }
}

impl Imported {
    fn outcome(&self, label: &str) -> &Outcome {
        let job = self.jobs.iter().position(|job| job.set.place.label == label);
        &self.summary.sets[job.unwrap_or_else(|| panic!("no set {label}"))].outcome
    }

    fn words(&self) -> Vec<&'static str> {
        let sets = self.summary.sets.iter();
        sets.map(|set| match set.outcome {
            Outcome::Imported(_) => "imported",
            Outcome::Updated(_) => "updated",
            Outcome::Unchanged(_) => "unchanged",
            Outcome::Refused(_) => "refused",
            Outcome::Failed(_) => "failed",
            Outcome::NotReached => "not reached",
        })
        .collect()
    }

    /// Returns the reason why a file of the set was refused.
    #[track_caller]
    fn refused(&self, label: &str, base: &str) -> String {
        let outcome = self.outcome(label);
        let files = match outcome {
            Outcome::Refused(refused) => &refused.files,
            outcome => &outcome.known().expect("stored").refused,
        };
        let found = files.iter().find(|(name, _)| name.ends_with(base));
        found.unwrap_or_else(|| panic!("{base} is not refused: {outcome:?}")).1.clone()
    }
}

/// Returns every path of a tree with its size, times and mode.
fn listing(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, u32)> {
    let mut all = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let about = fs::symlink_metadata(&path).expect("metadata");
        if about.is_dir() {
            todo.extend(fs::read_dir(&path).expect("a directory").map(|e| e.unwrap().path()));
        }
        all.insert(path, (about.size(), about.mtime(), about.mtime_nsec(), about.mode()));
    }
    all
}

#[test]
fn import_rereads_only_changed_sets() {
    let lab = Lab::new();
    let writer = lab.writer();
    writer.set(&Set::default());
    let other = Set { label: "fbsd14", raw: "", form: Form::Old, seed: 2, ..Set::default() };
    let raw = writer.set(&other);
    writer.file("README.md", "ten years");
    let before = listing(&lab.archive());

    let first = lab.import();
    assert_eq!(first.words(), ["imported", "imported"]);
    let tally = &first.summary.tally;
    assert_eq!((tally.logs, tally.runs, tally.failed, tally.refused), (40, 20, 0, 0));
    assert_eq!((tally.lists_equal, tally.lists_different, tally.lists_absent), (4, 0, 0));
    assert_eq!(lab.scan().other.files, 1);

    let again = lab.import();
    assert_eq!(again.words(), ["unchanged", "unchanged"]);
    assert_eq!(again.opened, [""; 0]);
    assert_eq!(again.outcome("fbsd14").known().unwrap().tally.logs, 20);
    assert_eq!(listing(&lab.archive()), before);

    writer.file(&format!("{raw}/bench.altq.3.receiver"), "nothing of use\n");
    let changed = lab.import();
    assert_eq!(changed.words(), ["unchanged", "updated"]);
    assert!(changed.opened.iter().all(|name| !name.contains("fbsd13")), "{:?}", changed.opened);
    assert_eq!(lab.import().words(), ["unchanged", "unchanged"]);

    fs::remove_file(lab.archive().join(raw).join("bench.altq.3.receiver")).unwrap();
    assert_eq!(lab.import().words(), ["unchanged", "updated"]);
}

#[test]
fn import_rereads_after_a_change_of_rule_or_version() {
    let mut lab = Lab::new();
    lab.writer().set(&Set::default());
    assert_eq!(lab.import().words(), ["imported"]);
    lab.rule = Some(Rule::Netbenches);
    assert_eq!(lab.import().words(), ["unchanged"]);
    lab.rule = Some(Rule::Steady);
    assert_eq!(lab.import().words(), ["updated"]);
    assert_eq!(lab.import().words(), ["unchanged"]);
    lab.version = "next";
    assert_eq!(lab.import().words(), ["updated"]);
}

#[test]
fn scan_finds_a_set_from_any_of_its_folders() {
    let lab = Lab::new();
    lab.writer().set(&Set::default());
    let bench = "Xeon_E5_8Cores/Chelsio_T5/firewalls";
    for (directory, below) in [
        ("", "Xeon_E5_8Cores/Chelsio_T5/firewalls/fbsd13"),
        ("Xeon_E5_8Cores", "Chelsio_T5/firewalls/fbsd13"),
        (bench, "fbsd13"),
        (&format!("{bench}/results"), "fbsd13"),
        (&format!("{bench}/results/fbsd13"), "fbsd13"),
        (&format!("{bench}/results/fbsd13/RAW"), "fbsd13"),
    ] {
        let found = scan(&lab.archive().join(directory)).unwrap();
        let [only] = found.sets.as_slice() else { panic!("{directory}: {found:?}") };
        assert_eq!(only.below, Path::new(below), "{directory}");
        let place = &only.set.place;
        let parts = [&place.machine, &place.interface, &place.topic, &place.label];
        assert_eq!(parts, ["Xeon_E5_8Cores", "Chelsio_T5", "firewalls", "fbsd13"], "{directory}");
        let names: Vec<&str> = only.set.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names[0], "results/fbsd13/RAW/bench.altq.1.receiver");
        assert!(names.contains(&"results/fbsd13/altq.pps"), "{directory}");
        assert!(names.is_sorted());
        let trees: Vec<&str> = only.set.configurations.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(trees, ["altq", "forwarding"], "{directory}");
        assert_eq!(only.set.configurations[0].files[0].name, "configs/altq/etc/rc.conf");
        let lab: Vec<&str> = only.set.lab.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(lab, ["../../bench-lab-2nodes.config"], "{directory}");
    }
}

#[test]
fn import_accepts_a_plain_folder_of_logs() {
    let lab = Lab::new();
    let raw = lab.writer().set(&Set { bench: "somewhere", label: "x", ..Set::default() });
    let plain = lab.directory.path().join("plain");
    fs::rename(lab.archive().join(raw), &plain).unwrap();
    let found = scan(&plain).unwrap();
    let set = &found.sets[0].set;
    assert_eq!((set.place.label.as_str(), set.place.machine.as_str()), ("plain", ""));
    assert_eq!(set.files[0].name, "bench.altq.1.receiver");
    assert_eq!(found.sets[0].below, Path::new("plain"));
    let job = Job { set: set.clone(), store: lab.archive().join("s"), named: "plain".into() };
    let imported = lab.import_jobs(vec![job], &AtomicBool::new(false));
    assert_eq!(imported.words(), ["imported"]);
    assert_eq!(imported.summary.tally.lists_absent, 2);
}

#[test]
fn scan_reads_the_origin_of_a_copy() {
    let lab = Lab::new();
    let writer = lab.writer();
    writer.set(&Set { bench: "000-copy", ..Set::default() });
    writer.file("000-copy/machine/bench-lab-3nodes.config", "x\n");
    writer.file("000-copy/SOURCE.json", r#"{"topic": "A_2Cores/em/ipsec", "label": "fbsd13"}"#);
    let set = &lab.scan().sets[0].set;
    let place = &set.place;
    assert_eq!([&place.machine, &place.interface, &place.topic], ["A_2Cores", "em", "ipsec"]);
    let names: Vec<&str> = set.lab.iter().map(|file| file.name.as_str()).collect();
    assert!(names.contains(&"machine/bench-lab-3nodes.config"), "{names:?}");
    for broken in ["{", "[]", "{\"topic\": 1}"] {
        writer.file("000-copy/SOURCE.json", broken);
        assert_eq!(lab.scan().sets[0].set.place.topic, "000-copy", "{broken}");
    }
}

#[test]
fn scan_makes_a_set_of_each_log_folder() {
    let lab = Lab::new();
    for (raw, seed) in [("RAW", 1), ("PMC", 2), ("PMC/on", 3)] {
        lab.writer().set(&Set { raw, seed, ..Set::default() });
    }
    let found = lab.scan();
    let labels: Vec<&str> = found.sets.iter().map(|s| s.set.place.label.as_str()).collect();
    assert_eq!(labels, ["fbsd13", "fbsd13/PMC", "fbsd13/PMC/on"]);
    let published = |i: usize| found.sets[i].set.files.iter().any(|f| f.name.ends_with(".pps"));
    assert_eq!([published(0), published(1), published(2)], [true, false, false]);
    assert_eq!(lab.import().words(), ["imported"; 3]);
}

#[test]
fn scan_reports_duplicate_logs() {
    let lab = Lab::new();
    lab.writer().set(&Set { raw: "", ..Set::default() });
    lab.writer().set(&Set::default());
    let found = lab.scan();
    let labels: Vec<&str> = found.sets.iter().map(|s| s.set.place.label.as_str()).collect();
    assert_eq!(labels, ["fbsd13", "fbsd13/RAW"]);
    let [(path, why)] = found.problems.as_slice() else { panic!("{:?}", found.problems) };
    assert!(path.ends_with("results/fbsd13/bench.altq.1.receiver"), "{path:?}");
    assert!(why.contains("RAW/bench.altq.1.receiver") && why.contains("remove one"), "{why}");
}

#[test]
fn import_refuses_bad_logs_and_keeps_the_rest() {
    let lab = Lab::new();
    let writer = lab.writer();
    let raw = writer.set(&Set { runs: 9, ..Set::default() });
    let good = fs::read(lab.archive().join(format!("{raw}/bench.altq.1.receiver"))).unwrap();
    let put =
        |name: &str, content: &[u8]| writer.file(&format!("{raw}/bench.altq.{name}"), content);
    put("1.receiver", b"");
    put("2.receiver", b"CMD: pkt-gen\n\0\x7fELF\0\0");
    put("3.receiver", &good[..good.len() / 2]);
    put("4.receiver", "x".repeat(8 << 20).as_bytes());
    put("5.receiver", &[&b"\xff\xfe\xe9 latin\n"[..], &good].concat());
    let wide: Vec<u8> = good.iter().flat_map(|&byte| [byte, 0]).collect();
    put("6.receiver", &wide);
    put("07.receiver", &good);
    let huge = put("8.receiver", b"");
    fs::File::options().write(true).open(&huge).unwrap().set_len(LARGEST + 1).unwrap();

    let imported = lab.import();
    assert_eq!(imported.words(), ["imported"]);
    let refused = |base: &str| imported.refused("fbsd13", base);
    assert!(refused("altq.1.receiver").contains("empty"));
    assert!(refused("altq.2.receiver").starts_with("line 2: a NUL byte"));
    assert!(refused("altq.4.receiver").contains("none of the 1 lines"));
    assert!(refused("altq.6.receiver").starts_with("line 1: a NUL byte"));
    // In the C locale 07 sorts before 7.
    let duplicate = refused("altq.7.receiver");
    assert!(
        duplicate.contains("same run as results/fbsd13/RAW/bench.altq.07.receiver"),
        "{duplicate}"
    );
    assert!(refused("altq.8.receiver").contains("larger than 64 MiB"));
    let known = imported.outcome("fbsd13").known().unwrap();
    assert_eq!(known.refused.len(), 6, "{:?}", known.refused);
    let store = Store::open_read_only(&imported.jobs[0].store).unwrap();
    let sources = store.sources().unwrap();
    let refused = sources.iter().filter(|source| source.status == Status::Refused);
    assert_eq!(refused.count(), 6);
    assert_eq!(lab.import().words(), ["unchanged"]);
}

#[test]
fn scan_counts_files_outside_sets() {
    let lab = Lab::new();
    let writer = lab.writer();
    writer.file("src/main.c", "int main;");
    writer.file(".git/HEAD", "ref");
    writer.file("notes/bench.1.txt", "");
    let found = lab.scan();
    assert!(found.sets.is_empty() && found.problems.is_empty(), "{found:?}");
    assert_eq!((found.other.files, found.other.bytes), (2, 9));
    assert!(scan(&lab.archive().join("src/main.c")).is_err());
    assert!(scan(&lab.archive().join("nowhere")).is_err());

    let raw = writer.set(&Set { runs: 1, configurations: 1, ..Set::default() });
    writer.file(&format!("{raw}/bench.altq.1.receiver"), "");
    writer.file(&format!("{raw}/bench.altq.1.sender"), "");
    let imported = lab.import();
    assert_eq!(imported.words(), ["refused"]);
    assert!(imported.refused("fbsd13", "bench.altq.1.receiver").contains("empty"));
    assert!(!imported.jobs[0].store.exists());
}

#[test]
fn scan_follows_links_once() {
    let lab = Lab::new();
    let writer = lab.writer();
    let raw = lab.archive().join(writer.set(&Set::default()));
    let outside = lab.directory.path().join("outside");
    Writer::new(&outside).set(&Set { label: "fbsd15", ..Set::default() });
    for (target, link) in [
        (lab.archive(), raw.join("loop")),
        (PathBuf::from("/"), lab.archive().join("everything")),
        (raw.clone(), lab.archive().join("a-second-name")),
        (raw.join("bench.altq.1.receiver"), raw.join("bench.altq.6.receiver")),
        (PathBuf::from("nowhere"), raw.join("bench.altq.7.receiver")),
        (outside, lab.archive().join("z-more")),
    ] {
        symlink(target, link).unwrap();
    }
    let fifo = raw.join("bench.altq.8.receiver");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());

    let found = lab.scan();
    let labels: Vec<&str> = found.sets.iter().map(|s| s.set.place.label.as_str()).collect();
    assert_eq!(labels, ["fbsd13", "fbsd15"]);
    assert_eq!(found.sets[0].set.files.len(), 25, "{:?}", found.sets[0].set.files);
    let problem = |end: &str| {
        let mut problems = found.problems.iter().filter(|(path, _)| path.ends_with(end));
        problems
            .next()
            .unwrap_or_else(|| panic!("nothing on {end}: {:?}", found.problems))
            .1
            .as_str()
    };
    assert!(problem("loop").contains("read already"));
    assert!(problem("everything").contains("holds this one"));
    assert!(problem("a-second-name").contains("read already"));
    assert!(problem("bench.altq.6.receiver").contains("met already"));
    assert!(problem("bench.altq.7.receiver").contains("No such file"));
    assert!(problem("bench.altq.8.receiver").contains("not opened"));
    assert_eq!(found.problems.len(), 6);
    assert_eq!(lab.import().words(), ["imported", "imported"]);
}

#[test]
fn import_refuses_a_shared_or_foreign_store_file() {
    let lab = Lab::new();
    lab.writer().set(&Set::default());
    lab.writer().set(&Set { label: "fbsd14", ..Set::default() });
    let sets: Vec<_> = lab.scan().sets.into_iter().map(|scanned| scanned.set).collect();
    let store = lab.directory.path().join("one.sqlite");
    let job = |set: usize, store: &Path| Job {
        set: sets[set].clone(),
        store: store.to_path_buf(),
        named: "archive".into(),
    };
    let never = AtomicBool::new(false);
    let both = lab.import_jobs(vec![job(0, &store), job(1, &store)], &never);
    assert_eq!(both.words(), ["refused", "refused"]);
    let Outcome::Refused(why) = both.outcome("fbsd13") else { unreachable!() };
    assert!(why.why.contains("would be the store of fbsd14"), "{why}");
    assert!(!store.exists());

    fs::write(&store, "my diary, which is no store, and longer than its header has to be").unwrap();
    let foreign = fs::read(&store).unwrap();
    let one = lab.import_jobs(vec![job(0, &store)], &never);
    assert_eq!(one.words(), ["refused"]);
    assert_eq!((one.opened.len(), fs::read(&store).unwrap()), (0, foreign));

    let own = lab.directory.path().join("own.sqlite");
    drop(Store::open(&own).unwrap());
    let own = lab.import_jobs(vec![job(0, &own)], &never);
    assert_ne!(own.words(), ["imported"]);

    let stopped = lab.import_jobs(vec![job(0, &store)], &AtomicBool::new(true));
    assert_eq!(stopped.words(), ["not reached"]);
}

#[test]
fn import_reproduces_five_experiments() {
    for archive in fwdlab_testdata::archives() {
        let lab = Lab::new();
        let found = scan(archive.path()).unwrap();
        assert_eq!((found.sets.len(), found.problems.len()), (5, 0), "{:?}", found.problems);
        let machines = found.sets.iter().filter(|s| !s.set.place.machine.is_empty()).count();
        assert_eq!(machines, 5);
        let stores = lab.directory.path().join("stores");
        let jobs = || {
            let sets = found.sets.iter();
            sets.map(|scanned| Job {
                set: scanned.set.clone(),
                store: stores.join(&scanned.below).join("run.sqlite"),
                named: "archive".into(),
            })
            .collect::<Vec<_>>()
        };
        let first = lab.import_jobs(jobs(), &AtomicBool::new(false));
        assert_eq!(first.words(), ["imported"; 5]);
        let tally = &first.summary.tally;
        assert_eq!((tally.logs, tally.runs, tally.failed, tally.refused), (440, 220, 0, 0));
        assert_eq!((tally.lists_equal, tally.lists_different, tally.lists_absent), (38, 0, 0));
        let again = lab.import_jobs(jobs(), &AtomicBool::new(false));
        assert_eq!((again.words(), again.opened.len()), (vec!["unchanged"; 5], 0));
    }
}

#[test]
fn complete_adds_reproductions_to_older_stores() {
    let lab = Lab::new();
    lab.writer().set(&Set::default());
    let imported = lab.import();
    let store = Store::open_read_only(&imported.jobs[0].store).unwrap();
    let kept = store.contents().unwrap();
    let found = kept.import.as_ref().unwrap().about.reproductions.as_ref().expect("kept");
    assert!(found.lists.contains(&Some(true)), "{found:?}");
    let mut older = kept.clone();
    older.import.as_mut().unwrap().about.reproductions = None;
    fwdlab_archive::complete(&mut older);
    assert_eq!(older, kept);
}
