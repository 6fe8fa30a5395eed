//! `fwdlab import`, from the command line.

#[path = "../../../archive/tests/it/archive_writer.rs"]
mod archive_writer;

use crate::support::{INSTANT, Lab};
use archive_writer::{Set, Writer};

/// A directory with `archive/` in it: two sets of two configurations.
fn lab() -> Lab {
    let lab = Lab::new(INSTANT);
    let writer = Writer::new(&lab.path("archive"));
    writer.set(&Set::default());
    writer.set(&Set { label: "fbsd14", raw: "", seed: 2, ..Set::default() });
    lab
}

const FIRST: &str = "archive/Xeon_E5_8Cores/Chelsio_T5/firewalls/results/fbsd13";
const STORES: &str = "results/archive/Xeon_E5_8Cores/Chelsio_T5/firewalls";

#[test]
fn import_creates_stores_that_other_commands_read() {
    let lab = lab();
    let first = lab.fwdlab(&["import", "archive"]).expect(0);
    assert_eq!(first.stderr, "");
    for expected in ["fbsd13", "2 sets: 2 imported", "40 logs", "4 equal", "`fwdlab show"] {
        assert!(first.stdout.contains(expected), "no {expected:?} in\n{}", first.stdout);
    }
    assert!(lab.path(STORES).join("fbsd14/run.sqlite").is_file());
    let again = lab.fwdlab(&["import", "archive"]).expect(0).stdout;
    assert!(again.contains("2 sets: 2 unchanged") && !again.contains("logs/s"), "{again}");

    let shown = lab.fwdlab(&["show", "results/archive", "--json"]).expect(0).json();
    let sizes: Vec<_> = shown.as_array().expect("an array").iter().collect();
    assert_eq!(sizes.len(), 2);
    assert_eq!(crate::support::values_per_variant(sizes[0]), [5, 5]);
    let one = lab.fwdlab(&["show", &format!("{STORES}/fbsd13"), "--json"]).expect(0).json();
    assert_eq!(&one, sizes[0]);
    let table = lab.fwdlab(&["show", "results/archive"]).expect(0).stdout;
    for expected in ["firewalls/fbsd13", "firewalls/fbsd14", "2 stores; "] {
        assert!(table.contains(expected), "no {expected:?} in\n{table}");
    }
    let some = lab.fwdlab(&["show", "results/archive", "--filter", "FBSD14 xeon"]).expect(0).stdout;
    assert!(some.contains("fbsd14") && !some.contains("fbsd13"), "{some}");
    assert!(some.contains("1 of 2 stores; "), "{some}");
    for (option, value, stores) in [
        ("--machine", "xeon", 2),
        ("--machine", "atom", 0),
        ("--interface", "t5", 2),
        ("--topic", "FIREWALLS", 2),
        ("--family", "inet", 2),
        ("--family", "inet6", 0),
        ("--firewall", "nothing", 0),
    ] {
        let shown = lab.fwdlab(&["show", "results/archive", option, value, "--json"]);
        let found = shown.expect(0).json().as_array().map(Vec::len);
        assert_eq!(found, Some(stores), "{option} {value}");
    }
    let page = lab.fwdlab(&["show", "results/archive", "--format", "html"]).expect(0).stdout;
    assert!(page.contains("firewalls/fbsd14</td>") && page.contains("<script>"), "{page}");
    let none = ["show", "results/archive", "--filter", "fbsd15", "--json"];
    assert_eq!(lab.fwdlab(&none).expect(0).json().as_array().map(Vec::len), Some(0));
    let text = lab.fwdlab(&["show", "results/archive", "--full"]).expect(0).stdout;
    assert!(text.contains("fbsd13/run.sqlite\n") && text.contains("fbsd14/run.sqlite\n"), "{text}");
    let reports = lab.fwdlab(&["report", "results/archive"]).expect(0).stdout;
    let readmes: Vec<String> =
        ["fbsd13", "fbsd14"].map(|label| format!("{STORES}/{label}/README.md")).to_vec();
    let page = "results/archive/index.html";
    let linked: Vec<&str> = readmes.iter().map(String::as_str).chain([page]).collect();
    assert_eq!(reports.lines().collect::<Vec<_>>(), linked);
    // The page over all sets links to each of them, in both formats.
    for (page, file_name) in [(page, "index.html"), ("results/archive/README.md", "README.md")] {
        let text = std::fs::read_to_string(lab.path(page)).expect("a page");
        for label in ["fbsd13", "fbsd14"] {
            let link = format!("Xeon_E5_8Cores/Chelsio_T5/firewalls/{label}/{file_name}");
            assert!(text.contains(&link), "{link} is not in {page}");
            assert!(lab.path(&format!("results/archive/{link}")).is_file(), "{link}");
        }
    }
    assert!(readmes.iter().all(|readme| lab.path(readme).is_file()));
    let out = ["report", "results/archive", "--out", "pages"];
    let written = lab.fwdlab(&out).expect(0).stdout;
    assert!(written.starts_with("pages/Xeon_E5_8Cores/"), "{written}");
    assert!(written.ends_with("pages/index.html\n"), "{written}");
    assert!(lab.path("pages/index.html").is_file());
}

#[test]
fn import_of_one_set_creates_one_store() {
    let lab = lab();
    lab.fwdlab(&["import", FIRST]).expect(0);
    assert!(lab.path("results/fbsd13/run.sqlite").is_file());
    let store = ["import", FIRST, "--out", "some/where.sqlite", "--rule", "steady", "--json"];
    let json = lab.fwdlab(&store).expect(0).json();
    assert!(lab.path("some/where.sqlite").is_file());
    assert_eq!(json["sets"][0]["outcome"], "imported");
    assert_eq!(json["sets"][0]["machine"], "Xeon_E5_8Cores");
    assert_eq!(json["totals"]["lists"]["equal"], 2);
    assert_eq!(json["totals"]["logs"], 20);
}

#[test]
fn import_refuses_a_wrong_directory_with_a_next_step() {
    let lab = lab();
    let refused = |arguments: &[&str], expected: &[&str]| {
        let ended = lab.fwdlab(arguments).expect(2);
        assert_eq!(ended.stdout, "");
        for expected in expected {
            assert!(ended.stderr.contains(expected), "no {expected:?} in\n{}", ended.stderr);
        }
    };
    refused(&["import", "archive", "--out", "x.toml"], &["x.toml is a file", "2 sets", "fbsd13"]);
    refused(&["import", "archive", "--out", "archive/s"], &["inside archive", "--out"]);
    let inside = format!("{FIRST}/RAW");
    refused(&["import", &inside, "--out", &format!("{FIRST}/x")], &["inside", "--out"]);
    lab.write("archive/notes.txt", "nothing");
    refused(&["import", "nowhere"], &["nowhere can't be read"]);
    std::fs::create_dir(lab.path("empty")).expect("a directory");
    lab.write("empty/notes.txt", "nothing");
    refused(
        &["import", "empty"],
        &["empty: no result set among 1 files", "bench.*.receiver", "next step"],
    );
    assert!(!lab.path("results").exists() && !lab.path("archive/s").exists());
}

#[test]
fn import_names_refused_files_with_their_line() {
    let lab = lab();
    let raw = format!("{FIRST}/RAW");
    lab.write(&format!("{raw}/bench.altq.1.receiver"), "CMD: pkt-gen\n\0\n");
    lab.write(&format!("{raw}/bench.altq.2.sender"), "");
    let output = lab.fwdlab(&["import", "archive", "--list"]).expect(0).stdout;
    let flat = output.replace("\n    ", " ");
    assert!(flat.contains("RAW/bench.altq.1.receiver:2: a NUL byte"), "{output}");
    assert!(flat.contains("RAW/bench.altq.2.sender: the log is empty"), "{output}");
    assert!(flat.contains("1 different"), "{output}");

    // If nothing is left, that is a mistake.
    for entry in std::fs::read_dir(lab.path(&raw)).expect("a folder") {
        std::fs::write(entry.expect("an entry").path(), "").expect("a file");
    }
    let ended = lab.fwdlab(&["import", FIRST, "--out", "new.sqlite"]).expect(2);
    assert!(ended.stdout.contains("1 set: 1 refused"), "{}", ended.stdout);
    assert!(ended.stderr.contains("none of 1 sets could be read"), "{}", ended.stderr);
    assert!(!lab.path("new.sqlite").exists());
    // An older store stays unchanged.
    let before = std::fs::read(lab.path(STORES).join("fbsd13/run.sqlite")).expect("a store");
    lab.fwdlab(&["import", "archive"]).expect(0);
    let after = std::fs::read(lab.path(STORES).join("fbsd13/run.sqlite")).expect("a store");
    assert_eq!(before, after);
}

#[test]
fn import_fits_narrow_terminals() {
    let lab = lab().with("COLUMNS", "40");
    for line in lab.fwdlab(&["import", "archive"]).expect(0).stdout.lines() {
        let fits = line.chars().count() <= 40 || line.split_whitespace().count() <= 2;
        assert!(fits || line.contains('`'), "{line:?}");
    }
}
