//! The stores that may tell how much blocks scatter.

use crate::stores::store_at;
use anyhow::{Context, Result};
use fwdlab_model::Plan;
use fwdlab_model::record::Environment;
use fwdlab_results::report::analysis::{Known, PowerAnalysis};
use fwdlab_results::store::{Store, StoreError};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is known before an experiment, and what follows from it.
#[derive(Debug, Serialize)]
pub(super) struct History {
    /// Stores that tell.
    pub(super) stores: Vec<Telling>,
    /// Stores that don't, and why.
    pub(super) unused: Vec<Unused>,
    /// What follows; none when nothing is known.
    #[serde(flatten)]
    pub(super) outlook: Option<PowerAnalysis>,
}

/// A store that tells the scatter.
#[derive(Debug, Serialize)]
pub(super) struct Telling {
    /// The store.
    pub(super) path: PathBuf,
    /// What it tells.
    #[serde(flatten)]
    pub(super) known: Known,
}

/// A store that tells nothing.
#[derive(Debug, Serialize)]
pub(super) struct Unused {
    /// The store.
    pub(super) path: PathBuf,
    /// Why.
    pub(super) why: String,
}

impl History {
    /// Reads the store in the directory `own`, if there is one, and those `named`.
    ///
    /// # Errors
    /// When a named store can't be read.
    pub(super) fn of(
        plan: &Plan,
        own: &Path,
        named: &[PathBuf],
        here: &Environment,
        is_pilot: bool,
    ) -> Result<History> {
        let mut history = History { stores: Vec::new(), unused: Vec::new(), outlook: None };
        let own = store_at(own);
        match Store::open_read_only(&own).and_then(|store| store.contents()) {
            Ok(contents) => history.add(own.clone(), Known::of(&contents, plan, here)),
            // Most experiments are planned before there is one.
            Err(StoreError::Missing { .. } | StoreError::NoPlan { .. }) => {}
            Err(_) if !own.exists() => {}
            Err(error) => history.add(own.clone(), Err(error)),
        }
        let mut seen = vec![canonical(&own)];
        for path in named.iter().map(|path| store_at(path)) {
            let place = canonical(&path);
            if seen.contains(&place) {
                continue;
            }
            seen.push(place);
            let contents = Store::open_read_only(&path)
                .and_then(|store| store.contents())
                .context("reading what --history names")?;
            history.add(path, Known::of(&contents, plan, here));
        }
        let known: Vec<&Known> = history.stores.iter().map(|telling| &telling.known).collect();
        history.outlook = PowerAnalysis::of(plan, &known, is_pilot);
        Ok(history)
    }

    fn add<E: std::fmt::Display>(&mut self, path: PathBuf, known: Result<Known, E>) {
        match known {
            Ok(known) => self.stores.push(Telling { path, known }),
            Err(why) => self.unused.push(Unused { path, why: why.to_string() }),
        }
    }
}

/// One store may be named in two ways.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
