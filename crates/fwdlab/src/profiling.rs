//! Profiles of an experiment's variants: which are to be taken, and where they go.
//!
//! A profile is no measurement: it comes after the last run, touches none of them,
//! and when it fails the results stand.

use anyhow::{Context, Result};
use fwdlab_bench::profiler::RawProfile;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::{Plan, PlannedRun};
use fwdlab_results::store::Store;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the profiles, beside the store.
const DIRECTORY: &str = "profiles";

/// A profile as it lies beside the store, its samples apart from it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Hash of the plan.
    plan: String,
    /// How it was asked for.
    asked: ProfilePlan,
    /// What was found.
    record: ProfileRecord,
}

/// The variants that the plan wants profiled and that have no such profile yet; with
/// `fresh` all of them.
pub(crate) fn missing(plan: &Plan, store: &Store, fresh: bool) -> Vec<usize> {
    let Some(asked) = &plan.profile else { return Vec::new() };
    let is_there = |variant: usize| {
        let (_, json) = files(store.path(), variant);
        let kept = fs::read_to_string(json).ok().and_then(|text| serde_json::from_str(&text).ok());
        kept.is_some_and(|kept: Kept| kept.plan == plan.hash && kept.asked == *asked)
    };
    (0..plan.variants.len()).filter(|&variant| fresh || !is_there(variant)).collect()
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

/// Keeps a profile: the samples as `profiles/VARIANT.perf.txt` beside the store, all
/// else as `profiles/VARIANT.json`. This is the one place that knows where profiles
/// go; a table of the store would be filled here.
///
/// # Errors
/// When the files can't be written.
pub(crate) fn store_profile(
    store: &mut Store,
    plan: &Plan,
    record: &ProfileRecord,
    raw: &RawProfile,
) -> Result<()> {
    let (text, json) = files(store.path(), record.variant);
    let write = |path: &Path, text: &str| {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    };
    if let Some(directory) = text.parent() {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    }
    let asked = plan.profile.clone().unwrap_or_default();
    let kept = Kept { plan: plan.hash.clone(), asked, record: record.clone() };
    write(&text, &raw.text)?;
    // Last, since whoever finds it takes the profile for complete.
    write(&json, &(serde_json::to_string_pretty(&kept)? + "\n"))
}

/// The files of a variant: its samples, and all else.
fn files(store: &Path, variant: usize) -> (PathBuf, PathBuf) {
    let directory = store.with_file_name(DIRECTORY);
    (directory.join(format!("{variant}.perf.txt")), directory.join(format!("{variant}.json")))
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
            fwdlab_model::load("x.toml", &text, &|_| Ok(String::new())).unwrap()
        };
        let plan = load("[profile]\n");
        let mut store = Store::open(&directory.path().join("run.sqlite")).unwrap();
        assert_eq!(missing(&load(""), &store, false), Vec::<usize>::new());
        assert_eq!(missing(&plan, &store, false), [0, 1]);
        let record = ProfileRecord { variant: 1, ..ProfileRecord::default() };
        let raw = RawProfile { text: "samples".into(), ..RawProfile::default() };
        store_profile(&mut store, &plan, &record, &raw).unwrap();
        assert_eq!(missing(&plan, &store, false), [0]);
        assert_eq!(missing(&plan, &store, true), [0, 1]);
        assert_eq!(missing(&load("[profile]\nwindows = 9\n"), &store, false), [0, 1]);
        let text = fs::read_to_string(directory.path().join("profiles/1.perf.txt")).unwrap();
        assert_eq!(text, "samples");
    }

    #[test]
    fn the_run_of_a_profile_is_none_of_the_plan() {
        let plan = fwdlab_model::load("x.toml", "version = 1", &|_| Ok(String::new())).unwrap();
        let run = run_of(&plan, 0);
        assert!(plan.runs.iter().all(|other| plan.run_id(other.index) != plan.run_id(run.index)));
    }
}
