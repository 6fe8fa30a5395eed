//! Origin of values in every file that can be separated from a report, and comparisons that it
//! prevents.

use crate::support::{family, fill, firewall, full_store, plan};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::compare::{Question, compare};
use fwdlab_results::report::{self, Analysis, files, show_json};
use fwdlab_results::stats::ministat::{Generation, ReadOptions, read_values};
use fwdlab_results::store::Store;

#[test]
fn every_file_with_rates_contains_its_label() {
    let store =
        full_store(&plan(TestbedKind::Sim, vec![firewall(), family()], vec![Some(0), None], 5));
    let analysis = Analysis::of_store(&store).unwrap();
    let label = analysis.core.label();
    assert!(label.simulated, "{label:?}");
    let comment = format!("{label}\n");
    for word in ["testbed: sim", "simulated: yes", "figure: ", "packets per second", "# fwdlab 0"] {
        assert!(comment.contains(word), "{comment}");
    }
    let mut lists = 0;
    for file in files(&store.contents().unwrap(), &analysis).unwrap() {
        let text = String::from_utf8_lossy(&file.bytes);
        if file.name.ends_with(".pps") || file.name == "gnuplot.data" {
            assert!(text.starts_with(&comment), "{}: {text}", file.name);
            lists += usize::from(file.name.ends_with(".pps"));
        }
        // All runs enter the verdicts, so the last column is empty.
        if file.name == "runs.csv" {
            let figure = serde_json::to_value(analysis.core.figure).unwrap();
            let end = format!(",sim,yes,{},{},", figure.as_str().unwrap(), label.version);
            assert!(text.lines().skip(1).all(|line| line.ends_with(&end)), "{text}");
        }
        if file.name == "results.json" {
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["testbed"]["simulated"], true);
            assert_eq!(json["testbed"]["kind"], "sim");
        }
        // ministat of every generation reads the same values as without the comment.
        if file.name == analysis.core.variants[0].file {
            let bare = text.replace(&comment, "");
            for generation in Generation::ALL {
                let options = ReadOptions { generation, ..ReadOptions::default() };
                let read = |text: &str| read_values(text.as_bytes(), &options).unwrap();
                assert_eq!(read(&text), read(&bare));
                assert_eq!(read(&text).len(), analysis.core.variants[0].values.len());
            }
        }
    }
    assert_eq!(lists, analysis.core.variants.len());
    let json = show_json(&analysis).unwrap();
    assert_eq!((&json["testbed"], &json["simulated"]), (&"sim".into(), &true.into()));
    assert_eq!((&json["version"], &json["unit"]), (&1.into(), &"packets per second".into()));
    assert!(json["caption"].as_str().unwrap().starts_with("SIMULATED"));
}

/// Lists and tables can be separated from their report; simulated values remain distinguishable
/// from measured ones.
#[test]
fn compare_rejects_lists_of_different_testbeds() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let compare_files = |arguments: &[&str]| {
        let named = arguments.iter().map(|name| at(name).to_string_lossy().into_owned());
        compare(&Question { arguments: named.collect(), ..Question::default() })
    };
    let error_of = |arguments: &[&str]| match compare_files(arguments) {
        Ok(results) => panic!("{arguments:?} answered: {:?}", results.comparisons),
        Err(error) => error.to_string(),
    };
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    let of = |kind| plan(kind, vec![firewall()], vec![Some(0)], 4);
    for (name, kind) in [("sim", TestbedKind::Sim), ("netns", TestbedKind::Netns)] {
        let plan = of(kind);
        let mut store = Store::open(&at(name).join("run.sqlite")).unwrap();
        fill(&mut store, &plan, 0..plan.runs.len() as u32);
        report::write(&store, &at(&format!("{name}-report"))).unwrap();
        for file in ["none.pps", "runs.csv"] {
            let from = at(&format!("{name}-report/{file}"));
            let text = std::fs::read_to_string(&from).unwrap();
            write(&format!("{name}-{file}"), &text);
            if file == "none.pps" {
                let bare: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
                write(&format!("{name}-bare.pps"), &(bare.join("\n") + "\n"));
                // As reports of earlier versions wrote it, with the results in the same directory.
                std::fs::write(from, bare.join("\n") + "\n").unwrap();
            }
        }
    }
    for arguments in [
        ["sim-none.pps", "netns-none.pps"],
        ["netns-none.pps", "sim-none.pps"],
        ["sim-report/none.pps", "netns-report/none.pps"],
        ["sim-none.pps", "netns-report/none.pps"],
        ["sim-none.pps", "netns:none"],
        ["sim-runs.csv:none", "netns-none.pps"],
        ["sim-runs.csv", "netns-runs.csv"],
        ["sim-report/runs.csv", "netns"],
    ] {
        let error = error_of(&arguments);
        assert!(error.contains("are of different testbeds"), "{arguments:?}: {error}");
        assert!(error.contains("simulated figures say nothing"), "{arguments:?}: {error}");
    }
    let mixed =
        ["sim-runs.csv", "netns-runs.csv"].map(|name| std::fs::read_to_string(at(name)).unwrap());
    let (_, second) = mixed[1].split_once('\n').unwrap();
    write("mixed.csv", &(mixed[0].clone() + second));
    let error = error_of(&["mixed.csv:none", "netns-none.pps"]);
    assert!(error.contains("one file holds figures of one testbed"), "{error}");
    // The origin of a list without a comment is unknown, which a note reports.
    let results = compare_files(&["sim-none.pps", "netns-bare.pps"]).unwrap();
    assert!(results.caption.starts_with("SIMULATED"), "{}", results.caption);
    let note = results.notes.iter().any(|note| note.contains("doesn't say where it was measured"));
    assert!(note, "{:?}", results.notes);
    assert_eq!((results.inputs[0].simulated, results.inputs[1].simulated), (Some(true), None));
}
