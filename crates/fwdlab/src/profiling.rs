//! Profiles of an experiment's variants: samples of the measured runs, and extra runs.
//!
//! An extra run is not a measurement: if it fails the results are not affected.

use crate::terminal::duration;
use anyhow::Result;
#[cfg(target_os = "linux")]
use fwdlab_bench::Sampled;
#[cfg(target_os = "linux")]
use fwdlab_bench::profiler::RawProfile;
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::{Plan, PlannedRun};
use fwdlab_results::profile;
use fwdlab_results::store::{ASKED, Store, StoredProfile};
use std::collections::BTreeSet;

/// Note for experiments with profile runs that are measured in shares.
pub(crate) const NOT_IN_SHARES: &str = "the profile runs that the experiment asks for are no part \
     of shares: after the merge, `fwdlab run` takes them on the machine where it is called";

/// A profile run to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingProfile {
    /// Index of the variant.
    pub(crate) variant: usize,
    /// Number of the run among the variant's profile runs, from 0.
    pub(crate) start: u16,
    /// Block after which it is taken.
    pub(crate) after_block: u32,
}

/// The profile runs of the plan that are missing in the store. Starts are spread over the blocks.
/// The variants of each start follow one another in an order drawn from the plan's seed, so that a
/// disturbance of the machine never hits the same variant every time.
///
/// # Errors
/// Fails if the store cannot be read.
pub(crate) fn missing(plan: &Plan, store: &Store) -> Result<Vec<PendingProfile>> {
    let Some(requested) = &plan.profile else { return Ok(Vec::new()) };
    let (starts, blocks) = (u32::from(requested.starts), plan.design.blocks);
    let requested = serde_json::to_string(requested)?;
    let stored = store.profiles()?;
    let is_there = |variant: usize, start: u16| {
        let mut records = stored.iter().map(|profile| &profile.record);
        records.any(|record| {
            (record.variant, record.start, record.run) == (variant, start, None)
                && record.facts.get(ASKED) == Some(&requested)
        })
    };
    let mut all: Vec<PendingProfile> = Vec::new();
    for start in 0..starts {
        let mut order = plan.order_of_profiles(start);
        order.retain(|&variant| !is_there(variant, start as u16));
        let after_block = (2 * start + 1) * blocks / (2 * starts);
        let pending = |variant| PendingProfile { variant, start: start as u16, after_block };
        all.extend(order.into_iter().map(pending));
    }
    if starts == 0 {
        let unsampled = unsampled(plan, store, &stored)?;
        let left = unsampled.into_iter().filter(|&variant| !is_there(variant, 0));
        all.extend(left.map(|variant| PendingProfile { variant, start: 0, after_block: blocks }));
    }
    Ok(all)
}

/// The variants whose runs are complete and contain no samples.
fn unsampled(plan: &Plan, store: &Store, stored: &[StoredProfile]) -> Result<BTreeSet<usize>> {
    let has_samples = |profile: &&StoredProfile| {
        profile.record.run.is_some() && profile.windows.iter().any(|folded| !folded.is_empty())
    };
    let sampled: BTreeSet<usize> =
        stored.iter().filter(has_samples).map(|profile| profile.record.variant).collect();
    let missing: BTreeSet<u32> = store.missing_runs(plan)?.into_iter().collect();
    let runs = plan.runs.iter().filter(|run| missing.contains(&run.index));
    let unmeasured: BTreeSet<usize> = runs.flat_map(|run| run.variants.clone()).collect();
    let is_left = |variant: &usize| !sampled.contains(variant) && !unmeasured.contains(variant);
    Ok((0..plan.variants.len()).filter(is_left).collect())
}

/// The number of profiles that follow the runs, and their duration; empty for none.
pub(crate) fn announcement(plan: &Plan, profiles: usize) -> String {
    match extent(plan, profiles).as_str() {
        "" => String::new(),
        extent => format!("then {extent}"),
    }
}

/// The number of profiles, and their duration; empty for none.
pub(crate) fn extent(plan: &Plan, profiles: usize) -> String {
    let (Some(requested), 1..) = (&plan.profile, profiles) else { return String::new() };
    let each_ns = plan.profile_ns(requested.duration_ns);
    let time = duration(each_ns.saturating_mul(profiles as u64));
    let what = if profiles == 1 { "a profile".to_owned() } else { format!("{profiles} profiles") };
    format!("{what}, about {time}")
}

/// The run that profiles a variant. Its index is above the indices of all runs of the plan, so that
/// its packets have their own identity.
pub(crate) fn run_of(plan: &Plan, pending: PendingProfile) -> PlannedRun {
    let PendingProfile { variant, start, .. } = pending;
    let index = plan.runs.len() + usize::from(start) * plan.variants.len() + variant;
    PlannedRun {
        index: u32::try_from(index).unwrap_or(u32::MAX),
        block: plan.design.blocks,
        variants: vec![variant],
    }
}

/// Stores a profile run: its samples folded, by window.
///
/// # Errors
/// Fails if the store cannot be written.
#[cfg(target_os = "linux")]
pub(crate) fn store_profile(
    store: &mut Store,
    plan: &Plan,
    record: &ProfileRecord,
    raw: &RawProfile,
) -> Result<()> {
    let record = with_facts(plan, record.clone())?;
    Ok(store.insert_profile(&profile::fold(record, &raw.text))?)
}

/// Stores the samples of a measured run, separately for each of its variants.
///
/// # Errors
/// Fails if the store cannot be written.
#[cfg(target_os = "linux")]
pub(crate) fn store_samples(store: &mut Store, plan: &Plan, sampled: &Sampled) -> Result<()> {
    for record in &sampled.records {
        let record = with_facts(plan, record.clone())?;
        store.insert_profile(&profile::fold_run(record, &sampled.raw.text))?;
    }
    Ok(())
}

/// The record with the plan's settings: a report is made from the store alone, later and elsewhere.
fn with_facts(plan: &Plan, mut record: ProfileRecord) -> Result<ProfileRecord> {
    let requested = plan.profile.clone().unwrap_or_default();
    record.facts.insert(ASKED.to_owned(), serde_json::to_string(&requested)?);
    record.facts.insert("icicle".to_owned(), requested.icicle.to_string());
    if let Some(own) = requested.subsystems {
        record.facts.insert("subsystems".to_owned(), own.text);
    }
    Ok(record)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use fwdlab_model::RunRecord;
    use fwdlab_model::record::Environment;
    use fwdlab_model::settings::TestbedKind;
    use fwdlab_results::store::Invocation;

    fn load(profile: &str) -> Plan {
        let text = format!(
            "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n[design]\nblocks = 4\n\
             {profile}"
        );
        fwdlab_model::load("x.toml", &text, &|_| Ok(Vec::new())).unwrap()
    }

    /// Variant, start and block of the missing profile runs, in the order of the variants.
    fn lacks(plan: &Plan, store: &Store) -> Vec<(usize, u16, u32)> {
        let missing = missing(plan, store).unwrap();
        let mut all: Vec<_> = missing
            .iter()
            .map(|pending| (pending.variant, pending.start, pending.after_block))
            .collect();
        all.sort_unstable_by_key(|&(variant, start, _)| (start, variant));
        all
    }

    fn adopted(directory: &tempfile::TempDir, plan: &Plan) -> Store {
        let mut store = Store::open(&directory.path().join("run.sqlite")).unwrap();
        store.adopt_plan(plan, "").unwrap();
        store.begin_invocation(&invocation()).unwrap();
        store
    }

    fn invocation() -> Invocation {
        Invocation {
            started_at: String::new(),
            bed: None,
            environment: Environment::default(),
            fwdlab_version: String::new(),
            testbed: TestbedKind::Sim,
            testbed_reason: String::new(),
            simulated: true,
        }
    }

    fn profile_run(variant: usize, start: u16) -> ProfileRecord {
        ProfileRecord { variant, start, ..ProfileRecord::default() }
    }

    #[test]
    fn profile_runs_are_missing_until_stored_or_settings_change() {
        let directory = tempfile::tempdir().unwrap();
        let plan = load("[profile]\nstarts = 2\n");
        let mut store = adopted(&directory, &plan);
        assert_eq!(lacks(&load(""), &store), []);
        let all = [(0, 0, 1), (1, 0, 1), (0, 1, 3), (1, 1, 3)];
        assert_eq!(lacks(&plan, &store), all, "spread over the blocks");
        let raw = RawProfile { text: "samples".into(), ..RawProfile::default() };
        store_profile(&mut store, &plan, &profile_run(1, 0), &raw).unwrap();
        assert_eq!(lacks(&plan, &store), [all[0], all[2], all[3]]);
        assert_eq!(
            lacks(&load("[profile]\nstarts = 1\nwindows = 9\n"), &store),
            [(0, 0, 2), (1, 0, 2)]
        );
        // Output without samples is stored as a remark.
        let [stored] = store.profiles().unwrap().try_into().unwrap();
        assert!(stored.record.remarks[0].contains("can't be read"), "{:?}", stored.record.remarks);
        // Other profiler settings discard the variant's older profile runs.
        let other = load("[profile]\nstarts = 1\nwindows = 9\n");
        store_profile(&mut store, &other, &profile_run(1, 4), &RawProfile::default()).unwrap();
        let stored = store.profiles().unwrap();
        assert_eq!(stored.iter().map(|p| p.record.start).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn variant_without_samples_is_profiled_once_after_its_runs() {
        let directory = tempfile::tempdir().unwrap();
        let plan = load("[profile]\n");
        let mut store = adopted(&directory, &plan);
        assert_eq!(lacks(&plan, &store), [], "its runs will be sampled");
        for run in &plan.runs {
            let record = RunRecord {
                run: run.index,
                block: run.block,
                variants: run.variants.clone(),
                ..RunRecord::default()
            };
            store.insert_run(&record).unwrap();
        }
        assert_eq!(lacks(&plan, &store), [(0, 0, 4), (1, 0, 4)]);
        let text =
            "swapper 0/0 [000] 0.000000005: 1 cpu-clock: \n\tffffffff81000004 f ([kernel])\n";
        let window = fwdlab_model::record::ProfileWindow { to_ns: 9, ..Default::default() };
        let record = ProfileRecord { run: Some(3), windows: vec![window], ..profile_run(0, 0) };
        let raw = RawProfile { text: text.into(), ..RawProfile::default() };
        let sampled = Sampled { records: vec![record.clone()], raw };
        store_samples(&mut store, &plan, &sampled).unwrap();
        store_samples(&mut store, &plan, &sampled).unwrap();
        assert_eq!(store.profiles().unwrap().len(), 1, "the same run's samples");
        assert_eq!(lacks(&plan, &store), [(1, 0, 4)]);
        // A failed sampler leaves its remark and no samples.
        let failed = ProfileRecord { run: Some(4), variant: 1, ..record };
        let sampled = Sampled { records: vec![failed], raw: RawProfile::default() };
        store_samples(&mut store, &plan, &sampled).unwrap();
        assert_eq!(lacks(&plan, &store), [(1, 0, 4)]);
    }

    #[test]
    fn variants_of_a_start_are_in_random_order() {
        let plan = load("[profile]\nstarts = 50\n");
        let directory = tempfile::tempdir().unwrap();
        let all = missing(&plan, &adopted(&directory, &plan)).unwrap();
        let first = all.chunks(2).filter(|start| start[0].variant == 0).count();
        assert!((10..=40).contains(&first), "{first} of 50 begin with the baseline");
        assert!(all.windows(2).all(|pair| pair[0].after_block <= pair[1].after_block));
    }

    #[test]
    fn profile_runs_have_distinct_identities() {
        let plan = load("[profile]\nstarts = 3\n");
        let mut indexes: Vec<u32> = plan.runs.iter().map(|run| run.index).collect();
        for (start, variant) in (0..3).flat_map(|start| [(start, 0), (start, 1)]) {
            indexes.push(run_of(&plan, PendingProfile { variant, start, after_block: 0 }).index);
        }
        let mut ids: Vec<u32> = indexes.iter().map(|&index| plan.run_id(index)).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), indexes.len());
    }
}
