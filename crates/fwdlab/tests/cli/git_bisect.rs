//! `--bisect`: a real `git bisect run` over small repositories, with a simulated router whose speed
//! is in a file of each commit.

use crate::support::{Ended, Lab, machine};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The level `stateful` is the commit under test, `none` the good one.
const EXPERIMENT: &str = "\
version = 1
title = \"A commit against the last release\"
[testbed]
kind = \"sim\"
[testbed.sim]
noise = 0.01
effect = { \"firewall=stateful\" = EFFECT }
[[factor]]
name = \"firewall\"
levels = [\"none\", \"stateful\"]
[design]
blocks = 10
";

/// A laboratory with an unreachable device: no name below .invalid exists (RFC 6761).
const UNREACHABLE: &str = r#"
version = 1
name = "far-away"
[[host]]
name = "generator"
roles = ["sender", "receiver"]
[[host.interface]]
name = "x0"
side = "sender"
addresses = ["198.18.0.13/24"]
[[host.interface]]
name = "x1"
side = "receiver"
addresses = ["198.19.0.13/24"]
[[host]]
name = "dut"
roles = ["dut"]
ssh = "root@dut.invalid"
[[host.interface]]
name = "y0"
side = "sender"
addresses = ["198.18.0.2/24"]
[[host.interface]]
name = "y1"
side = "receiver"
addresses = ["198.19.0.2/24"]
[[cable]]
a = "generator:x0"
b = "dut:y0"
[[cable]]
a = "generator:x1"
b = "dut:y1"
"#;

/// Runs git in the laboratory's repository, without the user's preferences.
fn git(lab: &Lab, arguments: &[&str]) -> Ended {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(lab.path("repo"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("FWDLAB", env!("CARGO_BIN_EXE_fwdlab"))
        .stdin(Stdio::null())
        .output()
        .expect("git starts");
    Ended::from(output)
}

/// A repository of 12 commits: the one with index `planted` is the first with `slow`; an earlier
/// one does not build. Starts a bisection. Returns also the commits' names.
fn repository(slow: &str, planted: usize) -> (Lab, Vec<String>) {
    let lab = Lab::new(EXPERIMENT);
    fs::create_dir(lab.path("repo")).expect("a directory");
    git(&lab, &["init", "-q"]).expect(0);
    let commits: Vec<String> = (0..12)
        .map(|number| {
            let effect = if number < planted { "1.0" } else { slow };
            lab.write("repo/effect", effect);
            lab.write("repo/number", &number.to_string());
            // git tests the middle one first.
            lab.write("repo/builds", if number == 5 { "no" } else { "yes" });
            git(&lab, &["add", "."]).expect(0);
            git(&lab, &["commit", "-q", "-m", &format!("commit {number}")]).expect(0);
            git(&lab, &["rev-parse", "HEAD"]).expect(0).stdout.trim().to_owned()
        })
        .collect();
    git(&lab, &["bisect", "start", &commits[11], &commits[0]]).expect(0);
    (lab, commits)
}

/// The script for each commit; `options` are fwdlab's.
fn script(options: &str) -> String {
    format!(
        "grep -q yes builds || exit 125
         sed \"s/EFFECT/$(cat effect)/\" ../x.toml > ../commit.toml
         exec \"$FWDLAB\" run ../commit.toml --quiet --no-report --out ../out {options}"
    )
}

fn bisect(lab: &Lab, options: &str) -> Ended {
    git(lab, &["bisect", "run", "sh", "-c", &script(options)])
}

/// The commit that git names; newer versions quote the word.
fn convicted(ended: &Ended) -> Option<String> {
    let text = ended.stdout.replace("'bad'", "bad");
    let line = text.lines().find(|line| line.ends_with(" is the first bad commit"))?;
    line.split(' ').next().map(str::to_owned)
}

#[test]
fn git_bisect_finds_the_slower_commit() {
    for planted in [3, 8] {
        let (lab, commits) = repository("0.9", planted);
        let found = bisect(&lab, "--bisect").expect(0);
        let named = convicted(&found).unwrap_or_default();
        assert_eq!(named, commits[planted], "{}\n{}", found.stdout, found.stderr);
    }
}

#[test]
fn git_bisect_convicts_no_commit_if_the_lab_is_unreachable() {
    let _machine = machine();
    let (lab, _) = repository("0.9", 8);
    let text = EXPERIMENT.replace("kind = \"sim\"", "kind = \"ssh\"\nlab = \"lab.toml\"");
    let (head, tail) = text.split_once("[testbed.sim]").expect("its table");
    let (_, rest) = tail.split_once("[[factor]]").expect("the factor");
    lab.write("x.toml", &format!("{head}[[factor]]{rest}"));
    lab.write("lab.toml", UNREACHABLE);
    let ended = bisect(&lab, "--bisect");
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("dut.invalid"), "{}", ended.stderr);
    assert!(ended.stderr.contains("128"), "{}", ended.stderr);
    assert_eq!(convicted(&ended), None, "{}", ended.stdout);
    let judged = git(&lab, &["bisect", "log"]).expect(0).stdout;
    assert_eq!(judged.matches("\ngit bisect bad").count(), 0, "{judged}");

    // The purpose of the option: without it git takes the same failure for a verdict.
    let ended = bisect(&lab, "--fail-on worse").expect(0);
    assert!(convicted(&ended).is_some(), "{}", ended.stdout);
}

#[test]
fn git_bisect_skips_inconclusive_commits() {
    // Too few blocks and too much noise: no verdict is possible.
    let (lab, _) = repository("0.99", 8);
    let text = EXPERIMENT.replace("noise = 0.01", "noise = 0.2").replace("= 10", "= 3");
    lab.write("x.toml", &text);
    let open = bisect(&lab, "--bisect");
    assert_eq!(convicted(&open), None, "{}", open.stdout);
    assert!(open.stdout.contains("There are only 'skip'ped commits left"), "{}", open.stdout);
}

#[test]
fn bisect_option_uses_git_exit_codes() {
    let lab = Lab::new(&EXPERIMENT.replace("EFFECT", "0.9"));
    lab.fwdlab(&["run", "x.toml", "--bisect", "--no-report"]).expect(1);
    lab.write("x.toml", &EXPERIMENT.replace("EFFECT", "1.0"));
    lab.fwdlab(&["run", "x.toml", "--bisect", "--no-report", "--out", "same"]).expect(0);
    // Mistakes in the command line, the file, and an experiment that compares nothing.
    let wrong = lab.fwdlab(&["run", "x.toml", "--bisect", "--no-such-option"]).expect(128);
    assert!(wrong.stderr.contains("--no-such-option"), "{}", wrong.stderr);
    lab.fwdlab(&["run", "nowhere.toml", "--bisect"]).expect(128);
    lab.write("x.toml", "version = 2");
    lab.fwdlab(&["run", "x.toml", "--bisect"]).expect(128);
    let alone = EXPERIMENT.replace("EFFECT", "1.0").replace("\"none\", ", "");
    lab.write("x.toml", &alone);
    let nothing = lab.fwdlab(&["run", "x.toml", "--bisect", "--no-report"]).expect(128);
    assert!(nothing.stderr.contains("nothing is compared"), "{}", nothing.stderr);
    // A path at which no directory can exist.
    let file = lab.path("file");
    fs::write(&file, "").expect("a file");
    lab.write("x.toml", &EXPERIMENT.replace("EFFECT", "1.0"));
    lab.fwdlab(&["run", "x.toml", "--bisect", "--out", "file"]).expect(128);
    assert!(Path::new(&file).is_file());
}

#[test]
fn bisect_option_discards_runs_of_another_commit() {
    let lab = Lab::new(&EXPERIMENT.replace("EFFECT", "1.0"));
    // The next commit has the same plan: the old store would report its runs as "stored already".
    let stored = |name: &str| lab.path("results/x").join(name).exists();
    for aside in 0..3 {
        let output = lab.fwdlab(&["run", "x.toml", "--bisect", "--no-report"]).expect(0).stderr;
        assert!(!output.contains("stored already"), "{output}");
        assert_eq!(stored("run.sqlite.1"), aside > 0);
        assert_eq!(stored("run.sqlite.2"), aside > 1);
    }
    let without = lab.fwdlab(&["run", "x.toml", "--no-report"]).expect(0);
    assert!(without.stderr.contains("stored already"), "{}", without.stderr);
}

#[test]
fn bisect_option_accepts_text_files() {
    let lab = Lab::new("");
    let figures =
        |around: u32| (0..12).map(|k| format!("{}\n", around + 10 * (k % 5))).collect::<String>();
    lab.write("good.pps", &figures(10_000));
    lab.write("same.pps", &figures(10_001));
    lab.write("slow.pps", &figures(9_000));
    lab.write("wild.pps", "6000\n9900\n13000\n");
    // A single number cannot answer for any commit: the script is wrong, not the commit.
    lab.write("one.pps", "9000\n");
    let answers =
        [("same.pps", 0), ("slow.pps", 1), ("wild.pps", 125), ("one.pps", 128), ("none", 128)];
    for (candidate, code) in answers {
        lab.fwdlab(&["compare", "good.pps", candidate, "--bisect"]).expect(code);
    }
    lab.fwdlab(&["compare", "slow.pps", "good.pps", "--bisect"]).expect(0);
    lab.fwdlab(&["compare", "good.pps", "slow.pps", "--bisect", "--margin", "20%"]).expect(0);
}
