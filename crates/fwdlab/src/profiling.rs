//! Profiles of an experiment's variants: which are to be taken, and where they go.
//!
//! A profile is no measurement: it comes after the last run, touches none of them,
//! and when it fails the results stand.

use crate::command::plan::overhead_guess_ns;
use crate::terminal::duration;
use anyhow::Result;
use fwdlab_bench::profiler::RawProfile;
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::{Plan, PlannedRun};
use fwdlab_results::profile;
use fwdlab_results::store::Store;

/// Fact of a profile that says how it was asked for, as JSON.
const ASKED: &str = "asked";

/// The variants that the plan wants profiled and that have no such profile yet; with
/// `fresh` all of them.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn missing(plan: &Plan, store: &Store, fresh: bool) -> Result<Vec<usize>> {
    let Some(asked) = &plan.profile else { return Ok(Vec::new()) };
    let asked = serde_json::to_string(asked)?;
    let stored = store.profiles()?;
    let is_there = |variant: usize| {
        let mut own = stored.iter().filter(|profile| profile.record.variant == variant);
        own.any(|profile| profile.record.facts.get(ASKED) == Some(&asked))
    };
    Ok((0..plan.variants.len()).filter(|&variant| fresh || !is_there(variant)).collect())
}

/// Says how many profiles follow the runs, and how long they take; empty for none.
pub(crate) fn announcement(plan: &Plan, profiles: usize) -> String {
    match extent(plan, profiles).as_str() {
        "" => String::new(),
        extent => format!("then {extent}"),
    }
}

/// How many profiles there are, and how long they take; empty for none.
pub(crate) fn extent(plan: &Plan, profiles: usize) -> String {
    let (Some(asked), 1..) = (&plan.profile, profiles) else { return String::new() };
    let each_ns = plan.trial.warmup_ns + asked.duration_ns + overhead_guess_ns(plan);
    let time = duration(each_ns.saturating_mul(profiles as u64));
    let what = if profiles == 1 { "a profile".to_owned() } else { format!("{profiles} profiles") };
    format!("{what}, about {time}")
}

/// The run that profiles a variant: behind all runs of the plan, so that its packets
/// carry an identity of their own.
pub(crate) fn run_of(plan: &Plan, variant: usize) -> PlannedRun {
    let index = plan.runs.len().saturating_add(variant);
    PlannedRun {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        block: plan.design.blocks,
        variants: vec![variant],
    }
}

/// Keeps a profile in the store: its samples folded, by window.
///
/// # Errors
/// When the store can't be written.
pub(crate) fn store_profile(
    store: &mut Store,
    plan: &Plan,
    record: &ProfileRecord,
    raw: &RawProfile,
) -> Result<()> {
    let mut record = record.clone();
    let asked = plan.profile.clone().unwrap_or_default();
    record.facts.insert(ASKED.to_owned(), serde_json::to_string(&asked)?);
    // A report is made of the store alone, later and elsewhere.
    record.facts.insert("icicle".to_owned(), asked.icicle.to_string());
    if let Some(own) = asked.subsystems {
        record.facts.insert("subsystems".to_owned(), own.text);
    }
    Ok(store.insert_profile(&profile::fold(record, &raw.text))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_missing_until_something_else_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let load = |profile: &str| {
            let text =
                format!("version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n{profile}");
            fwdlab_model::load("x.toml", &text, &|_| Ok(Vec::new())).unwrap()
        };
        let plan = load("[profile]\n");
        let mut store = Store::open(&directory.path().join("run.sqlite")).unwrap();
        let lacks = |plan: &Plan, store: &Store, fresh| missing(plan, store, fresh).unwrap();
        assert_eq!(lacks(&load(""), &store, false), Vec::<usize>::new());
        assert_eq!(lacks(&plan, &store, false), [0, 1]);
        let record = ProfileRecord { variant: 1, ..ProfileRecord::default() };
        let raw = RawProfile { text: "samples".into(), ..RawProfile::default() };
        store_profile(&mut store, &plan, &record, &raw).unwrap();
        assert_eq!(lacks(&plan, &store, false), [0]);
        assert_eq!(lacks(&plan, &store, true), [0, 1]);
        assert_eq!(lacks(&load("[profile]\nwindows = 9\n"), &store, false), [0, 1]);
        // Text that holds no samples is kept as a remark.
        let [kept] = store.profiles().unwrap().try_into().unwrap();
        assert!(kept.record.remarks[0].contains("can't be read"), "{:?}", kept.record.remarks);
    }

    #[test]
    fn the_run_of_a_profile_is_none_of_the_plan() {
        let plan = fwdlab_model::load("x.toml", "version = 1", &|_| Ok(Vec::new())).unwrap();
        let run = run_of(&plan, 0);
        assert!(plan.runs.iter().all(|other| plan.run_id(other.index) != plan.run_id(run.index)));
    }
}
