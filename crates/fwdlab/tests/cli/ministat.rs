//! `fwdlab ministat` compared with the original: arguments, messages, statuses.

use crate::support::{Ended, INSTANT, Lab};
use fwdlab_testdata::{larger, ministat_cases};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const GENERATIONS: [&str; 5] = ["fbsd10", "fbsd11.0", "fbsd12", "fbsd14", "fbsd15"];

/// A directory with a few files to compare.
fn lab() -> Lab {
    let lab = Lab::new(INSTANT);
    lab.write("a", "1\n2\n3\n4\n");
    lab.write("b", "5 50\n6 60\n7 70\n");
    lab.write("few", "1\n2\n");
    lab.write("bad", "1\n2,5,x\n3\n");
    symlink(env!("CARGO_BIN_EXE_fwdlab"), lab.path("ministat")).expect("a link");
    lab
}

fn ministat(lab: &Lab, arguments: &[&str]) -> Ended {
    lab.fwdlab(&[&["ministat"], arguments].concat())
}

/// Runs it with `input` on standard input.
fn with_input(lab: &Lab, input: &str, arguments: &[&str]) -> Ended {
    lab.write("input", input);
    let input = fs::File::open(lab.path("input")).expect("a file");
    let mut command = lab.command(&[&["ministat"], arguments].concat());
    Ended::from(command.stdin(Stdio::from(input)).output().expect("the program starts"))
}

#[test]
fn ministat_matches_every_generation() {
    let cases = ministat_cases().swap_remove(0);
    for generation in GENERATIONS {
        let (mut compared, mut wrong) = (0, Vec::new());
        for case in fs::read_dir(cases.path()).expect("cases") {
            let case = case.expect("a case").path();
            // Cases with a terminal need the larger set, whose script can make one.
            if case.join("tty").exists() {
                continue;
            }
            compared += 1;
            if let Err(difference) = matches(&case, generation) {
                wrong.push(difference);
            }
        }
        assert!(wrong.is_empty(), "{generation}: {}", wrong.join("\n"));
        assert!(compared > 170, "only {compared} cases");
    }
}

/// Runs a case from its files and compares status and output.
fn matches(case: &Path, generation: &str) -> Result<(), String> {
    let arguments = fs::read_to_string(case.join("cmd")).expect("arguments");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
    command.args(["ministat", "--generation", generation]).args(arguments.lines());
    command.current_dir(case).env("LC_ALL", "C").env("POSIXLY_CORRECT", "1").env_remove("COLUMNS");
    let lines = fs::read_to_string(case.join("env")).unwrap_or_default();
    command.envs(lines.lines().filter_map(|line| line.split_once('=')));
    let input = fs::File::open(case.join("stdin"));
    command.stdin(input.map_or_else(|_| Stdio::null(), Stdio::from));
    let output = command.output().expect("the program starts");
    let generation_file = format!("expected.{generation}");
    let generation_file =
        if case.join(&generation_file).is_file() { generation_file } else { "expected".to_owned() };
    let status =
        fs::read_to_string(case.join(format!("{generation_file}.exit"))).expect("a status");
    let printed = fs::read(case.join(generation_file)).expect("a text");
    // Some systems' printf writes a sign before "nan".
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("-nan", " nan");
    let same_status = output.status.code() == status.trim().parse().ok();
    if same_status && plain(&output.stdout) == plain(&printed) {
        return Ok(());
    }
    let (case, ours) = (case.display(), plain(&output.stdout));
    Err(format!("{case}: {} for {status}{ours}---\n{}", output.status, plain(&printed)))
}

#[test]
fn ministat_matches_every_generation_on_the_larger_set() {
    let Some(shared) = larger("conformance") else { return };
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        return fwdlab_testdata::skip("no python3 to check the larger set with");
    }
    let lab = lab();
    let check = |program: &Path, generation: &str| {
        let output = Command::new("python3")
            .arg(shared.join("check.py"))
            .args([program, &shared.join("ministat")])
            .args(["--gen", generation])
            .output()
            .expect("python3");
        let message = String::from_utf8_lossy(&output.stdout).into_owned();
        let passed = message.trim_end().lines().last().is_some_and(|last| {
            let count: u32 = last.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            count > 400 && last.ends_with(" passed 0 failed")
        });
        assert!(passed, "{generation}: {message}{}", String::from_utf8_lossy(&output.stderr));
    };
    // The link is the default generation, scripts are the others.
    let scripts = GENERATIONS.into_iter().filter(|&generation| generation != "fbsd14");
    for generation in scripts.clone() {
        let fwdlab = env!("CARGO_BIN_EXE_fwdlab");
        let script =
            format!("#!/bin/sh\nexec '{fwdlab}' ministat --generation {generation} \"$@\"\n");
        lab.write(generation, &script);
        let mode = PermissionsExt::from_mode(0o755);
        fs::set_permissions(lab.path(generation), mode).expect("a program");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| check(&lab.path("ministat"), "fbsd14"));
        for generation in scripts {
            let (check, lab) = (&check, &lab);
            scope.spawn(move || check(&lab.path(generation), generation));
        }
    });
}

#[test]
fn link_named_ministat_runs_the_command() {
    let lab = lab();
    let linked = |arguments: &[&str]| {
        let mut command = Command::new(lab.path("ministat"));
        let output = command.args(arguments).current_dir(lab.path("")).output();
        Ended::from(output.expect("the program starts"))
    };
    let ours = ministat(&lab, &["-s", "a", "b"]).expect(0);
    assert!(ours.stdout.starts_with("x a\n+ b\n+---"), "{}", ours.stdout);
    assert_eq!(linked(&["-s", "a", "b"]).expect(0).stdout, ours.stdout);
    let color = lab.fwdlab(&["--color", "never", "ministat", "-s", "--", "a", "b"]).expect(0);
    assert_eq!(color.stdout, ours.stdout);
    let old = linked(&["--generation", "fbsd10", "-n", "a"]).expect(0);
    assert_eq!(old.stdout, ministat(&lab, &["--generation=fbsd10", "-n", "a"]).expect(0).stdout);
    assert_ne!(old.stdout, linked(&["-n", "a"]).expect(0).stdout, "the median of four values");
}

#[test]
fn ministat_mistakes_print_only_the_original_message() {
    let lab = lab();
    for (arguments, status, message) in [
        (&["nosuch"][..], 2, "ministat: Cannot open nosuch: No such file or directory\n"),
        (&["--generation", "fbsd12", "nosuch"], 1, "ministat: Cannot open nosuch: No such"),
        (&["a", "-n"], 2, "ministat: Cannot open -n: No such file or directory\n"),
        (&["a", "few"], 2, "Dataset few must contain at least 3 data points\n"),
        (&["."], 2, "Dataset . must contain at least 3 data points\n"),
        (&["a", "bad"], 2, "ministat: Invalid data on line 2 in bad\n"),
        (
            &["--generation", "fbsd15", "bad"],
            2,
            "ministat: Invalid data \"2.5,x\" on line 2 in bad\n",
        ),
        (&["bad", "nosuch"], 2, "ministat: Cannot open nosuch: "),
        (&["--generation", "fbsd11.0", "bad", "nosuch"], 2, "ministat: Invalid data on line 2"),
        (&["-C", "3", "b"], 2, "Dataset b must contain at least 3 data points\n"),
        (&["-h"], 2, "ministat: illegal option -- h\nUnknown option\nUsage: ministat [-C column]"),
        (&["-w", "1", "a"], 2, "ministat: the width of the plot must be at least 2\n"),
        (&["--version"], 2, "ministat: illegal option -- -\nUnknown option\n"),
    ] {
        let ended = ministat(&lab, arguments).expect(status);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        let exact = message.ends_with('\n') && !message.contains("option");
        let stderr = &ended.stderr;
        assert!(if exact { stderr == message } else { stderr.starts_with(message) }, "{stderr}");
    }
    // A width matters only to a plot.
    ministat(&lab, &["-n", "-w", "0", "a"]).expect(0);
    assert!(ministat(&lab, &["-w0"]).stderr.starts_with("Dataset <stdin> must"));
}

#[test]
fn standard_input_has_the_name_of_its_generation() {
    let lab = lab();
    let input = "1\n2\n4\n";
    assert!(with_input(&lab, input, &["-A"]).expect(0).stdout.starts_with("x <stdin>\n"));
    assert!(with_input(&lab, input, &["-A", "-"]).expect(0).stdout.starts_with("x -\n"));
    let old = with_input(&lab, input, &["--generation", "fbsd12", "-A", "a", "-"]).expect(0);
    assert!(old.stdout.starts_with("x a\n+ <stdin>\n"), "{}", old.stdout);
    let again = with_input(&lab, input, &["-", "-"]).expect(2);
    assert_eq!(again.stderr, "Dataset - must contain at least 3 data points\n");
}

#[test]
fn file_names_and_tokens_may_be_any_bytes() {
    let lab = lab();
    let name = OsStr::from_bytes(b"\xff.pps");
    let run = |content: &[u8]| {
        fs::write(lab.path("").join(name), content).expect("a file");
        let mut command = lab.command(&["ministat", "--generation", "fbsd15", "-A"]);
        command.arg(name).output().expect("the program starts")
    };
    assert!(run(b"1\n2\n3\n").stdout.starts_with(b"x \xff.pps\n"));
    let refused = run(b"1\n\xfe\n");
    assert_eq!(refused.stderr, b"ministat: Invalid data \"\xfe\" on line 2 in \xff.pps\n");
}

#[test]
fn ministat_has_a_help_text() {
    let lab = lab();
    for help in [ministat(&lab, &["--help"]), lab.fwdlab(&["help", "ministat"])] {
        let help = help.expect(0).stdout;
        for part in ["-C COLUMN", "--generation NAME", "Usage: fwdlab ministat", "Examples:"] {
            assert!(help.contains(part), "{part} in {help}");
        }
    }
    assert!(lab.fwdlab(&["--help"]).expect(0).stdout.contains("  ministat "));
}
