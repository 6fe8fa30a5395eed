//! Progress of consecutive stages, such as the boots of guests.

use super::{TIME, bar, is_dumb, joined, passing};
use crate::terminal::{self, cut};
use indicatif::ProgressBar;
use std::io::IsTerminal;

/// Consecutive stages, such as a guest's boot: on a terminal one line with the current stage and
/// its elapsed time, elsewhere one line for each as it begins.
pub(crate) struct Stage {
    bar: Option<ProgressBar>,
    what: String,
}

impl Stage {
    /// Shows nothing yet.
    pub(crate) fn new() -> Stage {
        let bar = (!is_dumb() && std::io::stderr().is_terminal()).then(|| {
            let bar = bar();
            passing(&bar, true);
            bar
        });
        Stage { bar, what: String::new() }
    }

    /// A stage begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.what = what.to_owned();
        match &self.bar {
            None => terminal::note(what),
            Some(bar) => {
                bar.reset_elapsed();
                self.detail("");
            }
        }
    }

    /// Shows progress within the stage; on a terminal only.
    pub(crate) fn detail(&self, text: &str) {
        if let Some(bar) = &self.bar {
            let width = terminal::width_of_stderr() - 1;
            bar.set_message(cut(&joined(&[&self.what, text]), width.saturating_sub(TIME)));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
