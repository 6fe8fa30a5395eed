//! Experiments that stop as soon as they are decided.

use crate::support::{INSTANT, Lab, plan, store, values_per_variant, without_version};
use fwdlab_results::store::Store;

/// One in five packets fewer, `max_blocks` blocks, a rule.
fn until_decided(rule: &str, max_blocks: u32) -> String {
    INSTANT.replace("blocks = 4", &format!("stop = \"{rule}\"\nmax_blocks = {max_blocks}"))
}

fn stored(lab: &Lab, directory: &str) -> usize {
    let path = lab.path(directory).join("run.sqlite");
    Store::open_read_only(&path).expect("a store").recorded_runs().expect("runs").len()
}

/// The text as one line, since the terminal wraps it.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn large_effect_stops_early_and_stays_stopped() {
    for rule in ["planned", "open"] {
        let lab = Lab::new(&until_decided(rule, 20));
        let run = lab.fwdlab(&["run", "x.toml"]).expect(0);
        let output = unwrapped(&run.stdout);
        assert!(output.contains("of at most 20 blocks: 1 different, 0 equivalent"), "{output}");
        assert!(output.contains("decided after") && !output.contains("incomplete"), "{output}");
        let runs = stored(&lab, "results/x");
        assert!((8..40).contains(&runs) && runs.is_multiple_of(2), "{rule}: {runs}");

        let again = lab.fwdlab(&["run", "x.toml"]).expect(0);
        assert!(again.stderr.contains("decided after"), "{}", again.stderr);
        assert!(!again.stderr.contains("testbed:"), "nothing was opened:\n{}", again.stderr);
        assert_eq!(stored(&lab, "results/x"), runs);
    }
}

#[test]
fn equal_variants_stop_as_equivalent() {
    let equal = |rule| until_decided(rule, 20).replace("0.8 }", "1.0 }").replace("0.01", "0.001");
    for rule in ["planned", "open"] {
        let lab = Lab::new(&equal(rule));
        let output = unwrapped(&lab.fwdlab(&["run", "x.toml"]).expect(0).stdout);
        assert!(output.contains("0 different, 1 equivalent, 0 not decided"), "{rule}: {output}");
        assert!(stored(&lab, "results/x") < 40);
    }
}

#[test]
fn undecided_experiment_runs_all_blocks() {
    let noisy = |rule| until_decided(rule, 6).replace("0.8 }", "1.0 }").replace("0.01", "0.3");
    for rule in ["planned", "open"] {
        let lab = Lab::new(&noisy(rule));
        let output = unwrapped(&lab.fwdlab(&["run", "x.toml"]).expect(0).stdout);
        assert!(
            output.contains("all 6 blocks are done: 0 different, 0 equivalent, 1 not decided"),
            "{rule}: {output}"
        );
        assert_eq!(stored(&lab, "results/x"), 12);
    }
}

#[test]
fn interruption_does_not_change_the_decision() {
    for rule in ["planned", "open"] {
        let text = until_decided(rule, 20);
        let lab = Lab::new(&text);
        let whole = lab.fwdlab(&["run", "x.toml", "--json"]).expect(0).json();
        let full = Store::open_read_only(&lab.path("results/x/run.sqlite")).expect("a store");
        // In the middle of the second block.
        let mut part = store(&lab.path("part/run.sqlite"), &plan(&text), "sim");
        for record in full.runs().expect("runs").iter().take(3) {
            part.insert_run(record).expect("stored");
        }
        drop(part);
        let resumed = lab.fwdlab(&["run", "x.toml", "--out", "part", "--json"]).expect(0);
        assert_eq!(without_version(resumed.json()), without_version(whole.clone()), "{rule}");
        assert_eq!(values_per_variant(&whole), [stored(&lab, "part") / 2; 2]);
    }
}

#[test]
fn blocks_can_be_added_to_open_rules_only() {
    // A difference that four blocks cannot show.
    let text = |rule: &str| {
        INSTANT.replace("stateful\" = 0.8", "stateful\" = 0.999").replace("blocks = 4", rule)
    };
    let lab = Lab::new(&text("stop = \"open\"\nmax_blocks = 4"));
    let first = lab.fwdlab(&["run", "x.toml"]).expect(0);
    assert!(first.stdout.contains("inconclusive"), "{}", first.stdout);
    let more = lab.fwdlab(&["run", "x.toml", "--blocks", "6"]).expect(0);
    assert!(more.stdout.contains("12 of 12 runs"), "{}", more.stdout);
    // Earlier runs are kept, and in their places.
    let again = lab.fwdlab(&["run", "x.toml", "--blocks", "6"]).expect(0);
    assert!(again.stderr.contains("all 6 blocks are done"), "{}", again.stderr);
    let fewer = lab.fwdlab(&["run", "x.toml"]).expect(2);
    assert!(fewer.stderr.contains("blocks: 6 and 4"), "{}", fewer.stderr);
    lab.write("x.toml", &text("stop = \"planned\"\nmax_blocks = 4"));
    lab.fwdlab(&["run", "x.toml", "--out", "planned"]).expect(0);
    let refused = lab.fwdlab(&["run", "x.toml", "--out", "planned", "--blocks", "6"]).expect(2);
    assert!(refused.stderr.contains("Blocks added after a look"), "{}", refused.stderr);
}

#[test]
fn renamed_experiment_continues_with_its_store() {
    let lab = Lab::new(INSTANT);
    lab.fwdlab(&["run", "x.toml"]).expect(0);
    lab.write("renamed.toml", INSTANT);
    let again = lab.fwdlab(&["run", "renamed.toml", "--out", "results/x"]).expect(0);
    assert!(again.stderr.contains("all of its 8 runs are stored already"), "{}", again.stderr);
}
