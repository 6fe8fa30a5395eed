//! Merging stores of parts of one plan into one store of the whole plan.
//!
//! All inputs are checked before anything is written: they have the same plan, no run is in two of
//! them, and no run is missing. Runs keep their invocations, and with them the beds that they were
//! measured on. Stores of different plans are compared, not merged.

use super::atomic::StoreBuilder;
use super::{Store, StoreError};
use crate::plans::changes;
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Maximum number of missing runs that a message names.
const NAMED: usize = 6;

/// Stores that can't be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Two stores hold different plans.
    #[error(
        "{} holds another plan (hash {other_hash}) than {} (hash {hash}): {differences}\n  next step: \
         merge stores of one plan; `fwdlab compare` holds those of several against each other",
        other.display(), path.display()
    )]
    Plans {
        /// The first store.
        path: PathBuf,
        /// Its plan's hash.
        hash: String,
        /// The store that differs.
        other: PathBuf,
        /// Its plan's hash.
        other_hash: String,
        /// The differences between the plans.
        differences: String,
    },
    /// A run is in two stores.
    #[error(
        "run {run} (block {block}) is in {} and in {}: every run counts once\n  next step: leave out \
         one of the two stores",
        path.display(), other.display()
    )]
    Twice {
        /// Index of the run.
        run: u32,
        /// Its block.
        block: u32,
        /// The first store.
        path: PathBuf,
        /// The second one.
        other: PathBuf,
    },
    /// Runs of the plan are in none of the stores.
    #[error(
        "{count} of {planned} runs are in none of the {stores} stores: {runs}\n  next step: measure \
         them (the command of their share goes on), or give --partial to merge what is there"
    )]
    Missing {
        /// Number of missing runs.
        count: usize,
        /// Number of input stores.
        planned: usize,
        /// The first missing runs with their blocks.
        stores: usize,
        /// The runs with their blocks, the first ones.
        runs: String,
    },
    /// Runs of two kinds of testbeds, or both simulated and measured runs.
    #[error(
        "{} was measured on testbed {testbed}{simulated}, {} was not: they can't be one experiment\n  \
         next step: leave out the stores of one of the two kinds",
        path.display(), other.display(), simulated = if *simulated { " (simulated)" } else { "" }
    )]
    Testbeds {
        /// The first store.
        path: PathBuf,
        /// Its testbed.
        testbed: TestbedKind,
        /// True if no packets were sent.
        simulated: bool,
        /// The store that differs.
        other: PathBuf,
    },
    /// A store created by an import.
    #[error(
        "{} was imported, and no run of it is of a plan of fwdlab's\n  next step: leave it out",
        path.display()
    )]
    Imported {
        /// The store.
        path: PathBuf,
    },
    /// The destination exists already.
    #[error(
        "{} is there already and was left as it is\n  next step: choose another directory, or give \
         --fresh, which moves it aside",
        path.display()
    )]
    Exists {
        /// The store.
        path: PathBuf,
    },
    /// A store that can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Summary of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of input stores.
    pub stores: usize,
    /// Number of runs in all of them.
    pub runs: usize,
    /// Number of runs in the plan.
    pub planned: usize,
    /// Number of runs by bed; runs without a named bed are under the empty name.
    pub beds: BTreeMap<String, usize>,
}

/// Merges the stores `from` into a new one at `to`, atomically. The inputs are not changed. With
/// `partial`, runs may be missing.
///
/// # Errors
/// The reason why the inputs are not one experiment; nothing is written then.
pub fn merge(from: &[PathBuf], to: &Path, partial: bool) -> Result<Merged, MergeError> {
    put_together(from, to, partial, false).map(|(merged, _)| merged)
}

/// Merges the stores `from` into `to`, and replaces an existing store. Returns the name under which
/// the old store is kept. Holds the lock of `to` while it writes; the old store stays in place
/// until the new one is complete.
///
/// # Errors
/// As for [`merge`].
pub fn merge_anew(
    from: &[PathBuf],
    to: &Path,
    partial: bool,
) -> Result<(Merged, Option<PathBuf>), MergeError> {
    put_together(from, to, partial, true)
}

fn put_together(
    from: &[PathBuf],
    to: &Path,
    partial: bool,
    replace: bool,
) -> Result<(Merged, Option<PathBuf>), MergeError> {
    let is_free = || match to.exists() && !replace {
        true => Err(MergeError::Exists { path: to.to_path_buf() }),
        false => Ok(()),
    };
    // Checked here to fail early, and again under the lock.
    is_free()?;
    let Some(first) = from.first() else {
        return Err(StoreError::Missing { path: to.to_path_buf() }.into());
    };
    let opened = Store::open_read_only(first)?;
    let (plan, experiment) = (opened.plan()?, opened.experiment()?);
    drop(opened);
    check_inputs(from, &plan, partial)?;

    let mut merged = Merged { stores: from.len(), planned: plan.runs.len(), ..Merged::default() };
    let mut builder = StoreBuilder::begin(to)?;
    is_free()?;
    builder.store().adopt_plan(&plan, &experiment)?;
    for path in from {
        copy(&Store::open_read_only(path)?, builder.store(), &mut merged)?;
    }
    let aside = builder.finish_beside()?;
    Ok((merged, aside))
}

/// Checks that the stores are parts of one experiment.
fn check_inputs(from: &[PathBuf], plan: &Plan, partial: bool) -> Result<(), MergeError> {
    let mut holders: HashMap<u32, &PathBuf> = HashMap::new();
    let mut measured: Option<(&PathBuf, TestbedKind, bool)> = None;
    for path in from {
        let store = Store::open_read_only(path)?;
        check_plan(&store, plan, &from[0])?;
        if store.import()?.is_some() {
            return Err(MergeError::Imported { path: path.clone() });
        }
        for run in store.recorded_runs()? {
            let block = plan.runs.get(run as usize).map_or(0, |planned| planned.block);
            if let Some(first) = holders.insert(run, path) {
                let (path, other) = (first.clone(), path.clone());
                return Err(MergeError::Twice { run, block, path, other });
            }
        }
        let used = store.run_invocations()?;
        let invocations =
            store.rows("SELECT * FROM invocation ORDER BY id", super::read::invocation)?;
        for stored in invocations.iter().filter(|stored| used.contains(&stored.id)) {
            let (kind, simulated) = (stored.invocation.testbed, stored.invocation.simulated);
            match measured {
                Some((_, first, was)) if (first, was) == (kind, simulated) => {}
                Some((first, testbed, simulated)) => {
                    let (path, other) = (first.clone(), path.clone());
                    return Err(MergeError::Testbeds { path, testbed, simulated, other });
                }
                None => measured = Some((path, kind, simulated)),
            }
        }
    }
    let missing = plan.runs.iter().filter(|run| !holders.contains_key(&run.index));
    let missing: Vec<String> =
        missing.map(|run| format!("run {} (block {})", run.index, run.block)).collect();
    if missing.is_empty() || partial {
        return Ok(());
    }
    let more = if missing.len() > NAMED { " ..." } else { "" };
    let named = missing[..missing.len().min(NAMED)].join(", ");
    Err(MergeError::Missing {
        count: missing.len(),
        planned: plan.runs.len(),
        stores: from.len(),
        runs: format!("{named}{more}"),
    })
}

/// Refuses a store whose plan differs from the plan of the store `first`.
fn check_plan(store: &Store, plan: &Plan, first: &Path) -> Result<(), MergeError> {
    // Plans are long and there may be a thousand stores: comparing hashes is enough.
    if store.plan_hash()? == plan.hash {
        return Ok(());
    }
    let other = store.plan()?;
    // An older version hashed more fields.
    if other.clone().sealed().hash == plan.clone().sealed().hash {
        return Ok(());
    }
    Err(MergeError::Plans {
        path: first.to_path_buf(),
        hash: plan.hash.clone(),
        other: store.path().to_path_buf(),
        other_hash: other.hash.clone(),
        differences: changes(plan, &other),
    })
}

/// Copies everything but the plan.
fn copy(from: &Store, to: &mut Store, merged: &mut Merged) -> Result<(), StoreError> {
    let mut runs: BTreeMap<i64, Vec<_>> = BTreeMap::new();
    for (run, invocation) in from.runs()?.into_iter().zip(from.run_invocations()?) {
        runs.entry(invocation).or_default().push(run);
    }
    for stored in from.invocations()? {
        // An invocation without runs has no information.
        let Some(runs) = runs.get(&stored.id) else { continue };
        to.begin_invocation(&stored.invocation)?;
        to.insert_runs(runs)?;
        merged.runs += runs.len();
        *merged.beds.entry(stored.invocation.bed.unwrap_or_default()).or_default() += runs.len();
    }
    let known = to.calibrations()?;
    for calibration in from.calibrations()?.iter().filter(|one| !known.contains(one)) {
        to.insert_calibration(calibration)?;
    }
    for profile in from.profiles()? {
        to.insert_profile(&profile)?;
    }
    Ok(())
}
