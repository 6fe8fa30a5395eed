//! An observer of one run that also stores its checkpoints.

use crate::progress::Progress;
use fwdlab_bench::{Live, Observer, TrialReport};
use fwdlab_model::record::Checkpoint;
use fwdlab_results::store::{Store, StoreError};

/// Shows the progress of a run, and stores each trial that its method finishes.
pub(super) struct Keeping<'a, 'p> {
    progress: &'a mut Progress<'p>,
    store: &'a mut Store,
    run: u32,
    /// Error of the store; it ends the run.
    failed: Option<StoreError>,
}

impl<'a, 'p> Keeping<'a, 'p> {
    /// Creates an observer of the run with this index in the plan.
    pub(super) fn new(progress: &'a mut Progress<'p>, store: &'a mut Store, run: u32) -> Self {
        Keeping { progress, store, run, failed: None }
    }

    /// Ends the observation.
    ///
    /// # Errors
    /// Fails if a checkpoint could not be stored.
    pub(super) fn end(self) -> Result<(), StoreError> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Observer for Keeping<'_, '_> {
    fn step(&mut self, name: &str) {
        self.progress.step(name);
    }

    fn live(&mut self, live: &Live) {
        self.progress.live(live);
    }

    fn trial(&mut self, report: &TrialReport) {
        self.progress.trial(report);
    }

    fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn checkpoint(&mut self, number: u32, checkpoint: &Checkpoint) {
        let stored = self.store.insert_checkpoint(self.run, number, checkpoint);
        self.failed = self.failed.take().or(stored.err());
    }

    fn cancelled(&self) -> bool {
        self.failed.is_some() || self.progress.cancelled()
    }
}
