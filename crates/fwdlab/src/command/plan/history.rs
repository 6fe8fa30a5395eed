//! Stores from which the scatter of blocks can be estimated.

use crate::stores::store_at;
use anyhow::{Context, Result};
use fwdlab_model::Plan;
use fwdlab_model::plan::Estimate;
use fwdlab_model::record::Environment;
use fwdlab_results::report::analysis::{KnownScatter, PowerAnalysis};
use fwdlab_results::store::{Store, StoreError};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Scatter known before an experiment, and the resulting power analysis.
#[derive(Debug, Serialize)]
pub(super) struct History {
    /// Stores with usable runs.
    pub(super) stores: Vec<UsableStore>,
    /// Stores without usable runs, with the reason.
    pub(super) unused: Vec<UnusedStore>,
    /// The power analysis; `None` if no scatter is known.
    #[serde(flatten)]
    pub(super) outlook: Option<PowerAnalysis>,
}

/// A store with usable runs.
#[derive(Debug, Serialize)]
pub(super) struct UsableStore {
    /// The store.
    pub(super) path: PathBuf,
    /// Scatter of its runs.
    #[serde(flatten)]
    pub(super) known: KnownScatter,
}

/// A store without usable runs.
#[derive(Debug, Serialize)]
pub(super) struct UnusedStore {
    /// The store.
    pub(super) path: PathBuf,
    /// The reason.
    pub(super) why: String,
}

impl History {
    /// Reads the store in `directory`, if there is one, and the stores `named`.
    ///
    /// # Errors
    /// If a named store can't be read.
    pub(super) fn of(
        plan: &Plan,
        directory: &Path,
        named: &[PathBuf],
        here: &Environment,
        is_pilot: bool,
    ) -> Result<History> {
        let mut history = History { stores: Vec::new(), unused: Vec::new(), outlook: None };
        let own_store = store_at(directory);
        match Store::open_read_only(&own_store).and_then(|store| store.contents()) {
            Ok(contents) => history.add(own_store.clone(), KnownScatter::of(&contents, plan, here)),
            // Most experiments are planned before they have a store.
            Err(StoreError::Missing { .. } | StoreError::NoPlan { .. }) => {}
            Err(_) if !own_store.exists() => {}
            Err(error) => history.add(own_store.clone(), Err(error)),
        }
        let mut seen = vec![canonical(&own_store)];
        for path in named.iter().map(|path| store_at(path)) {
            let place = canonical(&path);
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            let contents = Store::open_read_only(&path)
                .and_then(|store| store.contents())
                .context("reading what --history names")?;
            history.add(path, KnownScatter::of(&contents, plan, here));
        }
        let known: Vec<&KnownScatter> = history.stores.iter().map(|usable| &usable.known).collect();
        history.outlook = PowerAnalysis::of(plan, &known, is_pilot);
        Ok(history)
    }

    /// Returns the estimate of the plan's time. The time of a search depends on the device, so it
    /// is taken from earlier runs if there are any.
    pub(super) fn estimate(&self, plan: &Plan) -> Estimate {
        let estimate = plan.estimate();
        let measured = self.stores.iter().find_map(|store| store.known.run_ns);
        let measured = measured.filter(|_| estimate.is_open);
        measured.map_or(estimate, |run_ns| estimate.with_measured_runs(run_ns))
    }

    fn add<E: std::fmt::Display>(&mut self, path: PathBuf, known: Result<KnownScatter, E>) {
        match known {
            Ok(known) => self.stores.push(UsableStore { path, known }),
            Err(why) => self.unused.push(UnusedStore { path, why: why.to_string() }),
        }
    }
}

/// Resolves links, since a store may have several names.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
