//! Stores of parts of one plan, put together to the store of the whole.
//!
//! All of them are looked through before anything is written: each holds the same plan, no run
//! is in two of them, and none lacks. Runs keep their invocations, and with these the beds that
//! they were measured on. Left out: merging what was planned apart. That is compared, not merged.

use super::atomic::StoreBuilder;
use super::{Store, StoreError};
use crate::plans::changes;
use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Runs that a message names of many that are missing.
const NAMED: usize = 6;

/// Stores that can't be put together.
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
        /// The one that differs.
        other: PathBuf,
        /// Its plan's hash.
        other_hash: String,
        /// What differs.
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
        /// How many.
        count: usize,
        /// Runs of the plan.
        planned: usize,
        /// Stores that were read.
        stores: usize,
        /// The runs with their blocks, the first ones.
        runs: String,
    },
    /// Runs of two kinds of testbeds, or simulated and measured ones.
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
        /// True when no packet was sent for it.
        simulated: bool,
        /// The one that differs.
        other: PathBuf,
    },
    /// A store that an import made.
    #[error(
        "{} was imported, and no run of it is of a plan of fwdlab's\n  next step: leave it out",
        path.display()
    )]
    Imported {
        /// The store.
        path: PathBuf,
    },
    /// There is a store already.
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

/// What was put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Stores that were read.
    pub stores: usize,
    /// Runs that they hold together.
    pub runs: usize,
    /// Runs that the plan asks for.
    pub planned: usize,
    /// Runs by bed; under an empty name those whose bed was not named.
    pub beds: BTreeMap<String, usize>,
}

/// Puts the stores `from` together to a new one at `to`, which appears as a whole or not at all.
/// The stores themselves stay as they are. With `partial` runs may be missing.
///
/// # Errors
/// What keeps them from being one experiment, by name; nothing is written then.
pub fn merge(from: &[PathBuf], to: &Path, partial: bool) -> Result<Merged, MergeError> {
    put_together(from, to, partial, false).map(|(merged, _)| merged)
}

/// The same in place of a store that is there, which is kept under the name that is returned.
/// Nobody else writes to it meanwhile, and it stays where it is until what takes its place is
/// complete.
///
/// # Errors
/// As [`merge`].
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
    anew: bool,
) -> Result<(Merged, Option<PathBuf>), MergeError> {
    let is_free = || match to.exists() && !anew {
        true => Err(MergeError::Exists { path: to.to_path_buf() }),
        false => Ok(()),
    };
    // Before all is read, and for good when nobody else can make one any more.
    is_free()?;
    let Some(first) = from.first() else {
        return Err(StoreError::Missing { path: to.to_path_buf() }.into());
    };
    let opened = Store::open_read_only(first)?;
    let (plan, experiment) = (opened.plan()?, opened.experiment()?);
    drop(opened);
    look_through(from, &plan, partial)?;

    let mut merged = Merged { stores: from.len(), planned: plan.runs.len(), ..Merged::default() };
    let mut whole = StoreBuilder::begin(to)?;
    is_free()?;
    whole.store().adopt_plan(&plan, &experiment)?;
    for path in from {
        copy(&Store::open_read_only(path)?, whole.store(), &mut merged)?;
    }
    let aside = whole.finish_beside()?;
    Ok((merged, aside))
}

/// Finds what keeps the stores from being one.
fn look_through(from: &[PathBuf], plan: &Plan, partial: bool) -> Result<(), MergeError> {
    let mut holders: HashMap<u32, &PathBuf> = HashMap::new();
    let mut measured: Option<(&PathBuf, TestbedKind, bool)> = None;
    for path in from {
        let store = Store::open_read_only(path)?;
        is_of_plan(&store, plan, &from[0])?;
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
    let lacking = plan.runs.iter().filter(|run| !holders.contains_key(&run.index));
    let lacking: Vec<String> =
        lacking.map(|run| format!("run {} (block {})", run.index, run.block)).collect();
    if lacking.is_empty() || partial {
        return Ok(());
    }
    let more = if lacking.len() > NAMED { " ..." } else { "" };
    let named = lacking[..lacking.len().min(NAMED)].join(", ");
    Err(MergeError::Missing {
        count: lacking.len(),
        planned: plan.runs.len(),
        stores: from.len(),
        runs: format!("{named}{more}"),
    })
}

/// Refuses a store of another plan than that of the store `first`.
fn is_of_plan(store: &Store, plan: &Plan, first: &Path) -> Result<(), MergeError> {
    // A plan is long and there may be a thousand stores: its hash is enough.
    if store.plan_hash()? == plan.hash {
        return Ok(());
    }
    let other = store.plan()?;
    // Sealed by a version that made the hash of more.
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
        // One that ended before its first run says nothing of any.
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
