//! Lab files: `tests/labs/NAME.toml` is drawn as `NAME.txt`, the faults of
//! `tests/lab-faults/NAME.toml` match `NAME.txt`.

use super::{golden, here};
use fwdlab_model::Lab;
use fwdlab_model::lab::{Role, Side, System};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(here(folder)).expect("the folder exists");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| (path.clone(), fs::read_to_string(&path).expect("a file")))
        .collect()
}

fn lab(name: &str) -> Lab {
    let text = fs::read_to_string(here("tests/labs").join(name)).expect("a file");
    Lab::parse(name, &text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn labs_are_drawn_in_eighty_columns() {
    let files = files("tests/labs");
    assert_eq!(files.len(), 3);
    for (path, text) in files {
        let lab = Lab::parse("lab.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let drawn = lab.draw();
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        golden(&path.with_extension("txt"), &drawn);
    }
}

#[test]
fn faulty_labs_match_their_golden_text() {
    let files = files("tests/lab-faults");
    assert!(files.len() >= 6);
    for (path, text) in files {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let faults = Lab::parse(name, &text).expect_err("the file is faulty");
        golden(&path.with_extension("txt"), &faults.render(false));
    }
}

#[test]
fn lab_fields_have_the_values_of_the_file() {
    let two = lab("two.toml");
    let host = two.host("r630").expect("the host");
    assert_eq!(host.roles, [Role::Sender, Role::Receiver]);
    assert_eq!(host.system, Some(System::FreeBsd));
    let sides: Vec<Side> = host.interfaces.iter().map(|interface| interface.side).collect();
    assert_eq!(sides, [Side::Sender, Side::Receiver]);
    let cable = &two.cables[1];
    assert_eq!(
        (cable.dut.to_string(), cable.far.to_string()),
        ("dut:cxl1".into(), "r630:vcxl1".into())
    );
    let power = two.host("dut").and_then(|dut| dut.power_cycle.clone()).expect("a command");
    assert_eq!((power[0].as_str(), power.len()), ("ipmitool", 5));

    let three = lab("three.toml");
    assert_eq!(three.ssh.connect_ns, Some(5_000_000_000));
    assert_eq!((three.ssh.alive_ns, three.ssh.config.as_deref()), (None, Some("ssh_config")));
    let counter = three.host("counter").expect("the host");
    assert_eq!(counter.interfaces[0].side, Side::Receiver, "its role says it");
    let json = serde_json::to_value(&three).expect("JSON");
    assert_eq!(json["hosts"][1]["interfaces"][0]["addresses"][1], "2001:2::2/64");
    assert_eq!(json["cables"][0]["far"]["host"], "generator");
}

/// Each change to a valid file causes one fault, and the text identifies it.
#[test]
fn single_faults_are_reported_alone() {
    let right = fs::read_to_string(here("tests/labs/two.toml")).expect("a file");
    for (from, to, message, hint) in [
        ("\"198.18.0.2/24\"", "\"10.0.0.2/24\"", "10.0.0.2/24 is not for benchmarks", "RFC 2544"),
        ("198.18.0.2/24", "198.18.0.10/24", "two interfaces have the address", "the first"),
        ("00:07:43:2f:fe:b1", "00:07:43:2e:e4:70", "two interfaces have the MAC", "the first"),
        ("\"r630:vcxl0\"", "\"r639:vcxl0\"", "no host `r639`", "did you mean `r630`?"),
        ("\"r630:vcxl0\"", "\"r630:vxcl0\"", "no interface `vxcl0`", "did you mean"),
        ("\"dut:cxl0\"", "\"dut:cxl1\"", "on different sides", "the receiver's side"),
        ("\"r630\"", "\"dut\"", "two hosts are called `dut`", "the first"),
        (
            "roles = [\"dut\"]",
            "roles = [\"sender\"]",
            "no host is the device under test",
            "[\"dut\"]",
        ),
        (
            "roles = [\"sender\", \"receiver\"]",
            "roles = [\"receiver\"]",
            "no host is the sender",
            "",
        ),
        ("198.18.0.2/24", "198.18.7.2/24", "in different networks", "same prefix"),
        ("[[cable]]", "[[wire]]", "unknown key `wire`", "did you mean `cable`?"),
        ("version = 1", "version = \"1\"", "the integer 1", ""),
        ("b = \"dut:cxl0\"\nswitch", "b = \"dut:cxl0\"\nswich", "unknown key `swich`", "`switch`?"),
        ("side = \"receiver\"", "", "which side is `vcxl1` on?", "side = \"sender\" or"),
    ] {
        assert!(right.contains(from), "{from}");
        let text = right.replacen(from, to, 1);
        let faults = Lab::parse("lab.toml", &text).expect_err(from);
        let shown = faults.render(false);
        assert!(shown.contains(message) && shown.contains(hint), "{message} / {hint} in\n{shown}");
    }
}

#[test]
fn other_addresses_require_allow_addresses() {
    let right = fs::read_to_string(here("tests/labs/two.toml")).expect("a file");
    let other = right.replace("198.18.", "10.18.");
    let faults = Lab::parse("lab.toml", &other).expect_err("faulty");
    assert_eq!(faults.list.len(), 2, "{faults}");
    assert!(Lab::parse("lab.toml", &format!("allow_addresses = true\n{other}")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any deletion from a file, or insertion into it, gives a lab or a list of faults.
    #[test]
    fn reading_never_panics(
        which in 0usize..3,
        cut in 0usize..2000,
        length in 0usize..60,
        noise in prop_oneof![Just(String::new()), "[\\[\\]\"=a-z0-9:/.é\n]{0,8}", "\\PC{0,6}"],
    ) {
        let name = ["two.toml", "three.toml", "four.toml"][which];
        let text = fs::read_to_string(here("tests/labs").join(name)).expect("a file");
        let inside = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let (from, to) = (inside(cut), inside(cut + length));
        let text = format!("{}{noise}{}", &text[..from], &text[to..]);
        match Lab::parse("lab.toml", &text) {
            Ok(lab) => prop_assert!(!lab.draw().is_empty()),
            Err(faults) => {
                prop_assert!(!faults.list.is_empty());
                prop_assert!(faults.render(false).contains("error"));
            }
        }
    }
}

/// The example of the document is valid, and its diagram there matches the output.
#[test]
fn document_shows_the_drawn_diagram() {
    let path = here("../../docs/LABS.md");
    let document = fs::read_to_string(&path).expect("the document exists");
    let block = |language: &str| {
        let start =
            document.find(&format!("```{language}\n")).expect("a block") + language.len() + 4;
        (start, start + document[start..].find("```").expect("its end"))
    };
    let (from, to) = block("toml");
    let lab =
        Lab::parse("lab.toml", &document[from..to]).unwrap_or_else(|faults| panic!("{faults}"));
    let (from, to) = block("text");
    let drawn = format!("{}{}{}", &document[..from], lab.draw(), &document[to..]);
    golden(&path, &drawn);
}
