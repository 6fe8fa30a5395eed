//! Ends work on leased hosts when the lease is lost.

use crate::error::BenchError;
use crate::lease::Watch;
use crate::{Live, Observer, TrialReport};
use fwdlab_model::record::Checkpoint;
use std::cell::OnceCell;

/// Observer that also cancels the work when a lease is lost.
struct LeaseObserver<'a> {
    observer: &'a mut dyn Observer,
    /// Returns the reason for a lost lease, as long as it is lost.
    watch: &'a dyn Fn() -> Option<BenchError>,
    /// The loss that ended the work, kept because the renewing thread may obtain the lease again.
    lost: OnceCell<BenchError>,
}

impl Observer for LeaseObserver<'_> {
    fn step(&mut self, name: &str) {
        self.observer.step(name);
    }

    fn live(&mut self, live: &Live) {
        self.observer.live(live);
    }

    fn trial(&mut self, report: &TrialReport) {
        self.observer.trial(report);
    }

    fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    fn checkpoint(&mut self, number: u32, checkpoint: &Checkpoint) {
        self.observer.checkpoint(number, checkpoint);
    }

    fn cancelled(&self) -> bool {
        if self.lost.get().is_none()
            && let Some(lost) = (self.watch)()
        {
            let _ = self.lost.set(lost);
        }
        self.observer.cancelled() || self.lost.get().is_some()
    }
}

/// Runs `work` while the hosts are leased. A result is worthless if the lease was lost during that
/// time: another process may have used the hosts.
///
/// # Errors
/// Returns errors of `work`, and the loss of the lease.
pub(super) fn with_lease<T>(
    watch: Option<Watch>,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut dyn Observer) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let Some(watch) = watch else { return work(observer) };
    watched(&|| watch.lost(), observer, work)
}

fn watched<T>(
    watch: &dyn Fn() -> Option<BenchError>,
    observer: &mut dyn Observer,
    work: impl FnOnce(&mut dyn Observer) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let mut holding = LeaseObserver { observer: &mut *observer, watch, lost: OnceCell::new() };
    let result = work(&mut holding);
    match holding.lost.into_inner().or_else(watch) {
        Some(lost) if !observer.cancelled() => Err(lost),
        _ => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoopObserver;
    use std::cell::Cell;

    fn environment() -> Option<BenchError> {
        Some(BenchError::environment("the lease is lost", "look"))
    }

    /// The renewing thread may have the lease again before the work has ended: even then the loss
    /// is reported, and not an interruption by the user.
    #[test]
    fn lost_lease_is_reported_after_it_is_renewed() {
        let checks = Cell::new(0);
        let once = || {
            checks.set(checks.get() + 1);
            if checks.get() == 2 { environment() } else { None }
        };
        let result = watched(&once, &mut NoopObserver, |observer| {
            assert!(!observer.cancelled());
            assert!(observer.cancelled() && observer.cancelled(), "lost, and remembered");
            Err::<(), _>(BenchError::Interrupted)
        });
        assert!(matches!(result, Err(BenchError::Environment { .. })), "{result:?}");
        // No loss, or a loss after the last check.
        assert!(watched(&|| None, &mut NoopObserver, |_| Ok(7)).is_ok_and(|seven| seven == 7));
        let late = watched(&environment, &mut NoopObserver, |_| Ok(7));
        assert!(matches!(late, Err(BenchError::Environment { .. })), "{late:?}");
    }
}
