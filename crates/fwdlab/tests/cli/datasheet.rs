//! `fwdlab datasheet`: missing parts are named, with the reason, and in the exit code.

use crate::support::Lab;
use serde_json::json;

/// The sheet of these parts of a simulated device, in the directory `sheet`.
const SHEET: [&str; 6] = ["datasheet", "--quiet", "--testbed", "sim", "--out", "sheet"];

#[test]
fn complete_sheet_exits_with_0() {
    let lab = Lab::new("");
    let sheet = lab.fwdlab(&[&SHEET[..], &["--only", "firewall,nat"]].concat()).expect(0).stdout;
    assert!(sheet.contains("Forwarding rate behind a firewall"), "{sheet}");
    assert!(!sheet.contains("issing") && sheet.contains("Measured parts: 2."), "{sheet}");
}

#[test]
fn part_that_the_experiment_excludes_is_named_with_the_code_of_a_mistake() {
    let lab = Lab::new("");
    let both = ["--only", "firewall,nat", "--set", "traffic.directions=both"];
    let command = [&SHEET[..], &both].concat();
    let flat = lab.fwdlab(&command).expect(2).stdout;
    let flat = flat.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Forwarding rate behind a firewall",
        "warning: part nat (Forwarding rate with address translation) is missing: ",
        "Missing parts: 1 of 2 (nat).",
    ] {
        assert!(flat.contains(part), "no {part:?} in\n{flat}");
    }
    let sheet = lab.fwdlab(&[&command[..], &["--json"]].concat()).expect(2).json();
    assert_eq!(sheet["missing"][0]["part"], "nat", "{sheet:#}");
    assert!(sheet["missing"][0]["why"].as_str().expect("text").contains("nat"), "{sheet:#}");
    assert_eq!(sheet["parts"].as_array().map(Vec::len), Some(1), "{sheet:#}");
}

#[test]
fn part_whose_store_cannot_be_written_is_named_with_the_code_of_the_environment() {
    let lab = Lab::new("");
    std::fs::create_dir(lab.path("sheet")).expect("a directory");
    lab.write("sheet/queues", "a file where a directory is needed");
    let command = [&SHEET[..], &["--only", "firewall,queues", "--json"]].concat();
    let sheet = lab.fwdlab(&command).expect(3).json();
    assert_eq!(sheet["missing"][0]["part"], "queues", "{sheet:#}");
    assert!(sheet["missing"][0]["why"].as_str().expect("text").contains("queues"), "{sheet:#}");
    let none = [&SHEET[..], &["--only", "queues", "--json"]].concat();
    assert_eq!(lab.fwdlab(&none).expect(3).json()["parts"], json!([]));
}
