//! Work on hosts that are held by a lease ends when the lease does.

use crate::error::BenchError;
use crate::lease::Watch;
use crate::{Live, Observer};

/// An observer that also ends the work when a lease is lost.
struct Holding<'a> {
    observer: &'a mut dyn Observer,
    watch: &'a Watch,
}

impl Observer for Holding<'_> {
    fn step(&mut self, name: &str) {
        self.observer.step(name);
    }

    fn live(&mut self, live: &Live) {
        self.observer.live(live);
    }

    fn trial(&mut self, said: &str) {
        self.observer.trial(said);
    }

    fn cancelled(&self) -> bool {
        self.observer.cancelled() || self.watch.lost().is_some()
    }
}

/// Does `work` while the hosts are ours. What comes of it when they were lost meanwhile is
/// worth nothing: another may have used them.
///
/// # Errors
/// Those of `work`, and the loss.
pub(super) fn while_held<T>(
    watch: Option<Watch>,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut dyn Observer) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let Some(watch) = watch else { return work(observer) };
    let done = work(&mut Holding { observer: &mut *observer, watch: &watch });
    match watch.lost() {
        Some(lost) if !observer.cancelled() => Err(lost),
        _ => done,
    }
}
