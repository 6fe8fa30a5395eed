//! Progress of an import: one line on a terminal, nothing elsewhere.

use crate::terminal;
use fwdlab_archive::import::{self, Event, Job};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum width for showing rate and bytes.
const WIDE: usize = 90;

/// The progress line.
pub(super) struct Bar {
    bar: ProgressBar,
    files: usize,
    passed: AtomicUsize,
}

impl Bar {
    /// Creates the line for the files of `jobs`.
    pub(super) fn of(jobs: &[Job]) -> Bar {
        let (files, bytes) = jobs
            .iter()
            .map(|job| import::size(&job.set))
            .fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let target = match dumb || !std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let template = match terminal::width_of_stderr() < WIDE {
            true => "[{bar:15}] {msg}  {eta} left",
            false => {
                "[{bar:20}] {msg} files  {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left"
            }
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("##-");
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_style(style);
        Bar { bar, files, passed: AtomicUsize::new(0) }
    }

    /// Shows an event.
    pub(super) fn on_event(&self, event: Event<'_>) {
        let Event::Passed { files, bytes } = event else { return };
        let passed = self.passed.fetch_add(files, Ordering::Relaxed) + files;
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{passed}/{}", self.files));
            self.bar.inc(bytes);
        }
    }

    /// Clears the line and shows nothing more.
    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
