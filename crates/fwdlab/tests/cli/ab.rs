//! `fwdlab ab`: questions without a file, and files of questions.

use crate::support::{INSTANT, Lab, is_root, machine};

/// Every second packet is dropped.
const HALF: &str = "\
table inet half {
  chain forward {
    type filter hook forward priority 0; policy accept;
    numgen random mod 2 0 drop
  }
}
";

#[test]
fn ab_runs_and_verifies_commands_in_the_device() {
    if !is_root("commands that need the rights of root in a namespace") {
        return;
    }
    let _alone = machine();
    let lab = Lab::new(INSTANT);
    lab.write("half.nft", HALF);
    let short = ["--testbed", "netns", "--set", "trial.duration=300ms", "--no-calibration"];
    let arguments = ["ab", "", "nft -f half.nft", "--blocks", "3", "--json"];
    let shown = lab.fwdlab(&[&arguments[..], &short[..]].concat()).carried_out().json();
    let [compared] = shown["comparisons"].as_array().expect("comparisons").as_slice() else {
        panic!("one comparison: {shown}");
    };
    let ratio = compared["outcome"]["compared"]["comparison"]["ratio"].as_f64().expect("a ratio");
    // Half of them, times the effect of the machine's other work on three short runs.
    assert!((0.1..0.75).contains(&ratio), "half of the packets are dropped: {ratio}");

    // The same as a file, with a read-back of the command.
    let verify = "dut.verify=nft list tables";
    for (expect, is_there) in [("table inet half", true), ("table inet whole", false)] {
        let expect = format!("dut.expect={expect}");
        let set = ["--set", "factor.command.levels=[{label='B', setup=['nft -f half.nft']}]"];
        let read = ["--set", verify, "--set", &expect, "--set", "compare.baseline.command=B"];
        let run = ["run", "results/ab/ab.toml", "--out", "again", "--fresh", "--blocks", "1"];
        let ended = lab.fwdlab(&[&run[..], &set[..], &read[..], &short[..]].concat());
        if is_there {
            ended.carried_out();
        } else {
            let refused = ended.expect(3).stderr;
            assert!(refused.contains("prints `table inet half` after `setup`"), "{refused}");
        }
    }
}

#[test]
fn ab_refuses_another_question_in_the_same_store() {
    let lab = Lab::new(INSTANT);
    let arguments = |other: &str, more: &[&str]| {
        let arguments = ["ab", "", other, "--testbed", "sim", "--blocks", "2"];
        lab.fwdlab(&[&arguments[..], more].concat())
    };
    arguments("one", &[]).expect(0);
    let again = arguments("one", &[]).expect(0);
    assert!(again.stderr.contains("all of its 4 runs are stored already"), "{}", again.stderr);
    let refused = arguments("two", &[]).expect(2).stderr;
    assert!(refused.contains("holds the runs of other commands"), "{refused}");
    arguments("two", &["--fresh"]).expect(0);
    let text = std::fs::read_to_string(lab.path("results/ab/ab.toml")).expect("the file");
    assert!(text.contains("setup = [\"two\"]"), "{text}");
}

#[test]
fn ab_file_is_never_overwritten() {
    let lab = Lab::new(INSTANT);
    let listed = lab.fwdlab(&["new"]).expect(0).stdout;
    assert!(listed.contains("tunable") && listed.contains("laboratory"), "{listed}");
    lab.fwdlab(&["new", "tunable", "mine.toml", "--set", "design.blocks=3"]).expect(0);
    let planned = lab.fwdlab(&["plan", "mine.toml", "--testbed", "sim"]).expect(0).stdout;
    assert!(planned.contains("3 blocks"), "{planned}");
    let refused = lab.fwdlab(&["new", "tunable", "mine.toml"]).expect(2).stderr;
    assert!(refused.contains("mine.toml exists already"), "{refused}");
    lab.fwdlab(&["new", "laboratory", "rack/x.toml"]).expect(0);
    lab.fwdlab(&["plan", "rack/x.toml"]).expect(0);
}
