//! Work on hosts that are held by a lease ends when the lease does.

use crate::error::BenchError;
use crate::lease::Watch;
use crate::{Live, Observer, TrialReport};
use fwdlab_model::record::Checkpoint;
use std::cell::OnceCell;

/// An observer that also ends the work when a lease is lost.
struct Holding<'a> {
    observer: &'a mut dyn Observer,
    /// Says why a lease is lost, while it is.
    watch: &'a dyn Fn() -> Option<BenchError>,
    /// The loss by which the work was ended: a thread that renews may have the lease again.
    lost: OnceCell<BenchError>,
}

impl Observer for Holding<'_> {
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

/// Does `work` while the hosts are ours. What comes of it when they were lost meanwhile is
/// worth nothing: another may have used them.
///
/// # Errors
/// Those of `work`, and the loss.
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
    let mut holding = Holding { observer: &mut *observer, watch, lost: OnceCell::new() };
    let done = work(&mut holding);
    match holding.lost.into_inner().or_else(watch) {
        Some(lost) if !observer.cancelled() => Err(lost),
        _ => done,
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

    /// The thread that renews may have the lease again before the work has ended: that the user
    /// interrupted it is not what is said then.
    #[test]
    fn work_that_a_loss_ended_says_so_although_the_lease_is_there_again() {
        let looks = Cell::new(0);
        let once = || {
            looks.set(looks.get() + 1);
            if looks.get() == 2 { environment() } else { None }
        };
        let done = watched(&once, &mut NoopObserver, |observer| {
            assert!(!observer.cancelled());
            assert!(observer.cancelled() && observer.cancelled(), "lost, and remembered");
            Err::<(), _>(BenchError::Interrupted)
        });
        assert!(matches!(done, Err(BenchError::Environment { .. })), "{done:?}");
        // Nothing is lost, or only after the last look.
        assert!(watched(&|| None, &mut NoopObserver, |_| Ok(7)).is_ok_and(|seven| seven == 7));
        let late = watched(&environment, &mut NoopObserver, |_| Ok(7));
        assert!(matches!(late, Err(BenchError::Environment { .. })), "{late:?}");
    }
}
