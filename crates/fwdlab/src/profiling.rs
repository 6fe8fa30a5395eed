//! Profiles of an experiment's variants: which are to be taken, and where they go.
//!
//! A profile is not a measurement: it is taken after the last run, and if it fails the
//! results are not affected.

use crate::experiment::overhead_guess_ns;
use crate::terminal::duration;
use anyhow::Result;
#[cfg(target_os = "linux")]
use fwdlab_bench::profiler::RawProfile;
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::{Plan, PlannedRun};
use fwdlab_results::profile;
use fwdlab_results::store::{ASKED, Store};

/// Maximum number of repetitions of a profile run whose rate lies outside of the measured
/// runs' range.
pub(crate) const REPETITIONS: u16 = 2;

/// What is said where an experiment with profiles is measured share by share.
pub(crate) const NOT_IN_SHARES: &str = "the profiles that the experiment asks for are no part of \
     shares: after the merge, `fwdlab run` takes them on the machine where it is called";

/// A profile run to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Index of the variant.
    pub(crate) variant: usize,
    /// Which of its profile runs, from 0.
    pub(crate) start: u16,
}

/// The profile runs that the plan wants and the store lacks, start by start so that the
/// variants take turns; with `fresh` all of them.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn missing(plan: &Plan, store: &Store, fresh: bool) -> Result<Vec<Wanted>> {
    let Some(asked) = &plan.profile else { return Ok(Vec::new()) };
    let starts = asked.starts;
    let asked = serde_json::to_string(asked)?;
    let stored = store.profiles()?;
    let is_there = |wanted: &Wanted| {
        let mut records = stored.iter().map(|profile| &profile.record);
        records.any(|record| {
            (record.variant, record.start) == (wanted.variant, wanted.start)
                && record.facts.get(ASKED) == Some(&asked)
        })
    };
    let variants = 0..plan.variants.len();
    let all = (0..starts)
        .flat_map(|start| variants.clone().map(move |variant| Wanted { variant, start }));
    Ok(all.filter(|wanted| fresh || !is_there(wanted)).collect())
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

/// The run that profiles a variant, taken for the `repetition`th time: behind all runs of
/// the plan, so that its packets carry an identity of their own.
pub(crate) fn run_of(plan: &Plan, wanted: Wanted, repetition: u16) -> PlannedRun {
    let Wanted { variant, start } = wanted;
    let starts = plan.profile.as_ref().map_or(1, |asked| usize::from(asked.starts));
    let turn = usize::from(repetition) * starts + usize::from(start);
    let index = plan.runs.len() + turn * plan.variants.len() + variant;
    PlannedRun {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        block: plan.design.blocks,
        variants: vec![variant],
    }
}

/// Remark on a profile run whose rate lies outside of the measured runs'; none if it lies
/// within, or there are too few runs.
pub(crate) fn disagreement(record: &ProfileRecord, rates_pps: &[f64]) -> Option<String> {
    let found = profile::agreement(record, rates_pps).filter(|found| !found.holds())?;
    Some(format!("the profile run {}", found.sentence()))
}

#[cfg(target_os = "linux")]
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

#[cfg(all(test, target_os = "linux"))]
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
        let first = |variants: &[usize]| -> Vec<Wanted> {
            variants.iter().map(|&variant| Wanted { variant, start: 0 }).collect()
        };
        assert_eq!(lacks(&load(""), &store, false), []);
        assert_eq!(lacks(&plan, &store, false), first(&[0, 1]));
        let record = ProfileRecord { variant: 1, ..ProfileRecord::default() };
        let raw = RawProfile { text: "samples".into(), ..RawProfile::default() };
        store_profile(&mut store, &plan, &record, &raw).unwrap();
        assert_eq!(lacks(&plan, &store, false), first(&[0]));
        assert_eq!(lacks(&plan, &store, true), first(&[0, 1]));
        assert_eq!(lacks(&load("[profile]\nwindows = 9\n"), &store, false), first(&[0, 1]));
        // Output without samples is kept as a remark.
        let [kept] = store.profiles().unwrap().try_into().unwrap();
        assert!(kept.record.remarks[0].contains("can't be read"), "{:?}", kept.record.remarks);
    }

    #[test]
    fn several_starts_are_kept_beside_each_other_and_take_turns() {
        let directory = tempfile::tempdir().unwrap();
        let load = |starts: u16| {
            let text = format!(
                "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[profile]\n\
                 starts = {starts}\n"
            );
            fwdlab_model::load("x.toml", &text, &|_| Ok(Vec::new())).unwrap()
        };
        let plan = load(2);
        let mut store = Store::open(&directory.path().join("run.sqlite")).unwrap();
        let all = missing(&plan, &store, false).unwrap();
        let turns: Vec<_> = all.iter().map(|wanted| (wanted.start, wanted.variant)).collect();
        assert_eq!(turns, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        let raw = RawProfile::default();
        for Wanted { variant, start } in all {
            let record = ProfileRecord { variant, start, ..ProfileRecord::default() };
            store_profile(&mut store, &plan, &record, &raw).unwrap();
        }
        assert_eq!(missing(&plan, &store, false).unwrap(), []);
        let kept = |store: &Store| -> Vec<_> {
            let stored = store.profiles().unwrap();
            stored.iter().map(|p| (p.record.variant, p.record.start)).collect()
        };
        assert_eq!(kept(&store), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        // The profiler's options have changed: existing profiles of the variant are discarded.
        let record = ProfileRecord { variant: 1, start: 2, ..ProfileRecord::default() };
        store_profile(&mut store, &load(3), &record, &raw).unwrap();
        assert_eq!(kept(&store), [(0, 0), (0, 1), (1, 2)]);
    }

    #[test]
    fn the_runs_of_profiles_are_none_of_the_plan_and_each_has_an_identity() {
        let text = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[profile]\n\
                    starts = 3\n";
        let plan = fwdlab_model::load("x.toml", text, &|_| Ok(Vec::new())).unwrap();
        let mut indexes: Vec<u32> = plan.runs.iter().map(|run| run.index).collect();
        for repetition in 0..=REPETITIONS {
            for start in 0..3 {
                for variant in 0..2 {
                    indexes.push(run_of(&plan, Wanted { variant, start }, repetition).index);
                }
            }
        }
        let mut ids: Vec<u32> = indexes.iter().map(|&index| plan.run_id(index)).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), indexes.len());
    }
}
