//! A set with a patch next to the same set without it: blocks that contain both are reproduced, and
//! each variant is compared with its unpatched counterpart.

use crate::archive_writer::{Set, Writer};
use fwdlab_archive::assemble::Options;
use fwdlab_archive::import::{self, Job, Outcome, Request, Summary};
use fwdlab_archive::scan::scan;
use fwdlab_results::report::Analysis;
use fwdlab_results::stats::ministat::{self, DataSet};
use fwdlab_results::store::Store;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const PARENT: &str = "fbsd13-n311215";
const PATCHED: &str = "fbsd13-n311215.D58513";

/// Imports the sets with these labels from the archive below `directory`.
fn import(directory: &Path, labels: &[&str]) -> Summary {
    let sets = scan(&directory.join("archive")).expect("a directory").sets.into_iter();
    let jobs = sets.map(|scanned| Job {
        store: directory.join("stores").join(&scanned.set.place.label).join("run.sqlite"),
        set: scanned.set,
        named: "archive".into(),
    });
    let jobs: Vec<Job> =
        jobs.filter(|job| labels.contains(&job.set.place.label.as_str())).collect();
    let options = Options {
        rule: None,
        imported_at: "2026-01-01T00:00:00.000Z".into(),
        fwdlab_version: "test".into(),
        named: String::new(),
    };
    import::import(&Request {
        jobs: &jobs,
        options: &options,
        threads: NonZeroUsize::MIN,
        stop: &AtomicBool::new(false),
        read: &import::read,
        on_event: &|_| {},
    })
}

/// Writes both sets; the README of the patched one has a block that compares them.
fn write(directory: &Path) {
    let writer = Writer::new(&directory.join("archive"));
    let parent = Set { label: PARENT, ..Set::default() };
    let patched = Set { label: PATCHED, seed: 2, ..parent };
    let result = |set: &Set<'_>| format!("{}/results/{}", set.bench, set.label);
    let list = |set: &Set<'_>, name: &str| {
        writer.set(set);
        let path = writer.root.join(result(set)).join("altq.pps");
        let text = std::fs::read_to_string(path).expect("a list");
        let values = text.lines().map(|line| line.parse().expect("a number")).collect();
        DataSet { name: name.to_owned(), values }
    };
    let sets = [list(&parent, "pre-patch"), list(&patched, "post-patch")];
    let block = ministat::render(&sets, &ministat::Options::default()).expect("a block");
    let text = format!("# A patch\n\n### pre vs post patch\n\n```\n{block}```\n");
    writer.file(&format!("{}/README.md", result(&patched)), text);
    writer.file(&format!("{}/pre.data", result(&patched)), {
        let mut values = sets[0].values.clone();
        values.sort_by(f64::total_cmp);
        format!("altq {} {} {}\nnone 1 1 1\n", values[2], values[0], values[4])
    });
}

#[test]
fn import_compares_a_patched_set_with_its_parent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    write(directory);
    let store = directory.join("stores").join(PATCHED).join("run.sqlite");
    let analysis = || Analysis::of_store(&Store::open_read_only(&store).unwrap()).unwrap();

    // Alone, half of the block's runs are missing.
    let alone = import(directory, &[PATCHED]);
    assert_eq!((alone.tally.blocks_equal, alone.tally.blocks_unmatched), (0, 1));
    assert_eq!((alone.tally.rows_equal, alone.tally.rows_different), (0, 2));
    let archive = analysis().archive.expect("an archive");
    assert!(archive.patch.is_none());
    assert!(archive.blocks[0].sentence.contains("pre-patch"), "{}", archive.blocks[0].sentence);
    assert!(archive.blocks[0].sentence.contains("import both"), "{}", archive.blocks[0].sentence);

    let both = import(directory, &[PARENT, PATCHED]);
    let words: Vec<bool> =
        both.sets.iter().map(|set| matches!(set.outcome, Outcome::Updated(_))).collect();
    assert_eq!(words, [false, true], "only the patched set is imported again");
    assert_eq!((both.tally.blocks_equal, both.tally.blocks_unmatched), (1, 0));
    assert_eq!((both.tally.rows_equal, both.tally.rows_different), (1, 1));
    let archive = analysis().archive.expect("an archive");
    let sentence = &archive.blocks[0].sentence;
    assert!(archive.blocks[0].exact && sentence.contains(PARENT), "{sentence}");
    let reasons = &archive.tables[0].others;
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].starts_with("line 2 (none): no variant has its median"), "{reasons:?}");
    let patch = archive.patch.expect("a parent");
    assert_eq!(patch.unpatched, PARENT);
    assert_eq!(patch.command, format!("fwdlab compare ../{PARENT} ."));
    assert_eq!(patch.variants.len(), 2);
    assert!(patch.variants.iter().all(|variant| variant.outcome.is_answered()));

    let again = import(directory, &[PARENT, PATCHED]);
    assert!(again.sets.iter().all(|set| matches!(set.outcome, Outcome::Unchanged(_))));
}
