//! Trials of a search: one line that is rewritten on a terminal, elsewhere a few lines.

use super::{bar, is_dumb};
use crate::terminal::{self, cut};
use fwdlab_bench::TrialReport;
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Time between two lines if lines are not rewritten.
const BETWEEN: Duration = Duration::from_secs(30);

/// Decides which trials get a line if lines are not rewritten: one every half minute, and the first
/// invalid one with its reason.
pub(super) struct Pace {
    last: Instant,
    has_invalid: bool,
}

impl Pace {
    /// Of trials that begin now.
    pub(super) fn new() -> Pace {
        Pace { last: Instant::now(), has_invalid: false }
    }

    /// True if the trial gets a line.
    pub(super) fn is_due(&mut self, report: &TrialReport) -> bool {
        let is_first = report.invalid.is_some() && !std::mem::replace(&mut self.has_invalid, true);
        let is_due = is_first || self.last.elapsed() >= BETWEEN;
        if is_due {
            self.last = Instant::now();
        }
        is_due
    }
}

/// Trials of a search outside any run.
pub(crate) struct Trials {
    shown: Shown,
}

enum Shown {
    Nothing,
    Lines(Pace),
    Bar(ProgressBar),
}

impl Trials {
    /// Shows nothing yet, and nothing at all if `quiet`.
    pub(crate) fn new(quiet: bool) -> Trials {
        let shown = match () {
            () if quiet => Shown::Nothing,
            () if is_dumb() || !std::io::stderr().is_terminal() => Shown::Lines(Pace::new()),
            () => Shown::Bar(bar()),
        };
        Trials { shown }
    }

    /// Shows a trial that has ended, after the name of its search.
    pub(crate) fn show(&mut self, search: &str, report: &TrialReport) {
        let line = || format!("{search}{}", report.progress());
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines(pace) => {
                if pace.is_due(report) {
                    terminal::note(&line());
                }
            }
            Shown::Bar(bar) => bar.set_message(cut(&line(), terminal::width_of_stderr() - 1)),
        }
    }
}

impl Drop for Trials {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_shows_the_first_invalid_trial() {
        let invalid = TrialReport { invalid: Some("busy".into()), ..TrialReport::default() };
        let mut pace = Pace::new();
        assert!(!pace.is_due(&TrialReport::default()));
        assert!(pace.is_due(&invalid));
        assert!(!pace.is_due(&invalid) && !pace.is_due(&TrialReport::default()));
        pace.last = Instant::now().checked_sub(BETWEEN).expect("a machine that is up");
        assert!(pace.is_due(&TrialReport::default()));
    }
}
