//! The files of the repository: experiments, JSON Schema, reference.

use super::{golden, here};
use fwdlab_model::plan::Plan;
use fwdlab_model::schema::{reference, schema};
use fwdlab_model::settings::{Arrangement, DutKind, Family, TestbedKind};
use std::collections::BTreeMap;
use std::fs;

fn experiments() -> BTreeMap<String, Plan> {
    let mut plans = BTreeMap::new();
    for entry in fs::read_dir(here("../../experiments")).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let folder = path.parent().expect("a folder").to_path_buf();
            let loader =
                |file: &str| fs::read(folder.join(file)).map_err(|error| error.to_string());
            let plan = fwdlab_model::load(&path.display().to_string(), &text, &loader)
                .unwrap_or_else(|faults| panic!("{faults}"));
            plans.insert(plan.name.clone(), plan);
        }
    }
    plans
}

/// Cases: methods whose trials measure rates, and a guest that only counts.
#[test]
fn method_with_trials_times_a_guest() {
    let plans = experiments();
    let is_timed = |name: &str| plans[name].base.testbed.vm.is_timed;
    assert!(is_timed("vm-freebsd-connection-rate") && is_timed("vm-freebsd-rate"));
    assert!(!is_timed("vm-freebsd-fib"));
}

#[test]
fn experiments_can_be_planned() {
    let plans = experiments();
    for name in [
        "aa",
        "bidirectional-search",
        "demo",
        "families",
        "firewalls",
        "flows",
        "frame-sizes",
        "hundred-rules",
        "lab-freebsd-firewalls-revision",
        "lab-freebsd-kernels",
        "lab-freebsd-queues",
        "lab-generators",
        "lab-linux-kernels",
        "lab-linux-queues",
        "nft-rule-alternate",
        "queues",
        "router-and-linux",
        "router-demo",
        "router-fastpath",
        "router-fib",
        "router-fib-large",
        "router-harvest",
        "router-locks",
        "router-queues",
        "router-state",
        "routes",
        "sim",
        "tunable-x-queues",
        "tutorial",
    ] {
        let plan = plans.get(name).unwrap_or_else(|| panic!("{name}.toml is missing"));
        assert_ne!(plan.title, plan.name, "{name} has a title");
        assert!(plan.variants.len() >= 2, "{name}");
        let compared = (0..plan.variants.len()).filter(|&v| plan.baseline_of(v).is_some()).count();
        assert!(compared > 0, "{name} compares nothing");
        // No experiment here takes an hour.
        assert!(plan.estimate().total_ns < 3_600_000_000_000, "{name}");
    }
}

/// The files next to the experiments are valid laboratories, and the laboratories named by
/// experiments exist.
#[test]
fn laboratories_can_be_read() {
    let folder = here("../../experiments");
    let mut read = Vec::new();
    for entry in fs::read_dir(folder.join("labs")).expect("the folder exists") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("the file can be read");
        let lab = fwdlab_model::Lab::parse(&path.display().to_string(), &text)
            .unwrap_or_else(|faults| panic!("{faults}"));
        assert!(matches!(lab.hosts.len(), 2 | 3), "{}", lab.name);
        assert_eq!(lab.cables.len(), 2, "{}", lab.name);
        read.push(path.canonicalize().expect("a path"));
    }
    let plans = experiments();
    let named: Vec<&String> =
        plans.values().filter_map(|plan| plan.base.testbed.lab.as_ref()).collect();
    assert_eq!(named.len(), 8);
    for lab in named {
        let path = folder.join(lab).canonicalize().expect("the file exists");
        assert!(read.contains(&path), "{lab}");
    }
}

#[test]
fn experiments_in_memory_end_within_minutes() {
    let plans = experiments();
    let in_memory = |plan: &&Plan| plan.base.testbed.kind == TestbedKind::Memory;
    let found: Vec<&Plan> = plans.values().filter(in_memory).collect();
    assert_eq!(found.len(), 8);
    for plan in found {
        assert_eq!(plan.base.dut.kind, DutKind::Router, "{}", plan.name);
        assert!(plan.estimate().total_ns < 240_000_000_000, "{}", plan.name);
    }
    assert_eq!(plans["router-demo"].runs.len(), 16);
    assert!(plans["router-demo"].estimate().total_ns < 30_000_000_000);
}

#[test]
fn demo_ends_within_two_minutes() {
    let plans = experiments();
    let demo = &plans["demo"];
    assert_eq!((demo.variants.len(), demo.runs.len()), (6, 66));
    let estimate = demo.estimate();
    assert_eq!(estimate.run_ns, 1_700_050_000);
    assert!(estimate.total_ns < 120_000_000_000, "{estimate:?}");
    let six = demo.variants.iter().find(|v| v.settings.traffic.family == Family::Inet6);
    assert_eq!(six.map(|v| v.settings.traffic.frame_size.most()), Some(84));
    assert_eq!(demo.notes.len(), 1);
}

#[test]
fn queue_sweep_compares_queues_within_each_binding() {
    let plans = experiments();
    let queues = &plans["queues"];
    assert_eq!(queues.variants.len(), 16);
    assert_eq!(queues.base.testbed.arrangement, Arrangement::Closed);
    assert_eq!(queues.compare.baseline, [Some(0), None]);
    let bound = queues.variants.iter().find(|v| v.label == "8, bound").expect("the variant");
    let base = queues.baseline_of(bound.index).expect("a baseline");
    assert_eq!(queues.variants[base].label, "1, bound");
}

#[test]
fn schema_is_up_to_date() {
    let text = serde_json::to_string_pretty(&schema()).expect("a schema is JSON") + "\n";
    golden(&here("../../docs/experiment.schema.json"), &text);
}

#[test]
fn references_are_up_to_date() {
    for (name, reference) in
        [("EXPERIMENTS.md", reference()), ("LABS.md", fwdlab_model::lab::reference())]
    {
        let path = here("../../docs").join(name);
        let text = fs::read_to_string(&path).expect("the document exists");
        let (begin, end) = ("<!-- keys: begin -->\n", "<!-- keys: end -->");
        let head = text.find(begin).expect("the first mark") + begin.len();
        let tail = text.find(end).expect("the second mark");
        golden(&path, &format!("{}\n{reference}\n{}", &text[..head], &text[tail..]));
    }
}

#[test]
fn reference_contains_every_key_of_the_schema() {
    let text = fs::read_to_string(here("../../docs/EXPERIMENTS.md")).expect("the document exists");
    let schema = schema();
    let mut names = Vec::new();
    property_names(&schema, &mut names);
    assert!(names.len() > 50, "{} keys", names.len());
    for name in names {
        let row = format!("| `{name}` |");
        let heading = format!("{name}]");
        assert!(text.contains(&row) || text.contains(&heading), "`{name}` is not described");
    }
}

fn property_names(schema: &serde_json::Value, out: &mut Vec<String>) {
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        out.push(name.clone());
        property_names(value, out);
        property_names(&value["items"], out);
    }
}

#[test]
fn reference_examples_can_be_planned() {
    let text = fs::read_to_string(here("../../docs/EXPERIMENTS.md")).expect("the document exists");
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let example = block.split("```").next().unwrap_or_default();
        super::plan(example);
        count += 1;
    }
    assert!(count >= 1);
}
