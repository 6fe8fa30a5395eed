//! `[profile]` in the plan.

use super::plan;
use fwdlab_model::ProfilePlan;
use fwdlab_model::experiment::profile_of;
use fwdlab_model::profile::{CallGraph, Event, Subsystems};
use fwdlab_model::settings::Rate;
use fwdlab_model::spec;

#[test]
fn table_requests_a_profile_and_cpu_decides() {
    assert_eq!(plan("version = 1\n[profile]\n").profile, Some(ProfilePlan::default()));
    assert_eq!(plan("version = 1\n[profile]\ncpu = false\nwindows = 3\n").profile, None);
    let full = plan(
        "version = 1\n[profile]\nsampling = 97\nduration = \"2s\"\nwindows = 4\nstarts = 3\nrate = \"80%\"\nfrequency = 997\nevent = \"cycles\"\n\
         call_graph = \"dwarf\"\nicicle = true\nsubsystems = \"subsystems.txt\"\n",
    );
    let expected = ProfilePlan {
        sampling_hz: 97,
        duration_ns: 2_000_000_000,
        windows: 4,
        starts: 3,
        rate: Some(Rate::Ceiling(0.8)),
        frequency_hz: 997,
        event: Event::Cycles,
        call_graph: CallGraph::Dwarf,
        icicle: true,
        subsystems: Some(Subsystems {
            file: "subsystems.txt".into(),
            text: "nf_* firewall\n".into(),
        }),
    };
    assert_eq!(full.profile, Some(expected));
}

#[test]
fn override_keeps_the_other_profile_settings() {
    let written = |text: &str| {
        let (spec, faults) = spec::parse(text, &|_| Err("no files".into()));
        assert!(faults.is_empty());
        spec.expect("a file that can be read")
    };
    let off = written("version = 1\n[profile]\ncpu = false\nwindows = 3\n");
    assert_eq!(profile_of(&off, None), None);
    assert_eq!(profile_of(&off, Some(true)).map(|profile| profile.windows), Some(3));
    let silent = written("version = 1\n");
    assert_eq!(profile_of(&silent, Some(true)), Some(ProfilePlan::default()));
    assert_eq!(profile_of(&written("version = 1\n[profile]\n"), Some(false)), None);
}

/// perf's event names are the words of the file.
#[test]
fn events_are_named_as_in_the_file() {
    for event in [
        Event::Auto,
        Event::Cycles,
        Event::CpuClock,
        Event::Instructions,
        Event::CacheMisses,
        Event::BranchMisses,
    ] {
        let text = format!("version = 1\n[profile]\nevent = \"{}\"\n", event.name());
        assert_eq!(plan(&text).profile.map(|profile| profile.event), Some(event));
    }
}

/// Only profile runs have a separate load.
#[test]
fn rate_takes_a_profile_run() {
    let starts = |keys: &str| {
        plan(&format!("version = 1\n[profile]\n{keys}\n")).profile.expect("a profile").starts
    };
    for keys in ["", "sampling = 97", "duration = \"2s\"", "rate = \"50%\"\nstarts = 0"] {
        assert_eq!(starts(keys), 0, "{keys}");
    }
    assert_eq!(starts("rate = \"50%\""), 1);
}
