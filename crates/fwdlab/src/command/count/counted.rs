//! Counts of one kernel.

use fwdlab_vm::calls::Calls;
use fwdlab_vm::forwarding::Answer;
use std::time::Duration;

/// Counts of one kernel in one state.
pub(super) struct Counted {
    /// Name of the file that was given.
    pub(super) file: String,
    /// Number of the boot, from 1 on.
    pub(super) boot: u32,
    /// The command that was executed before; `None` for the kernel as it booted.
    pub(super) change: Option<String>,
    /// `uname -r`.
    pub(super) release: String,
    /// `uname -v`.
    pub(super) build: String,
    pub(super) answer: Answer,
    /// From the start to a guest that forwards.
    pub(super) ready: Duration,
    /// Time of the counting.
    pub(super) took: Duration,
}

impl Counted {
    /// Its release, the change and its calls; `None` if calls were not followed.
    pub(super) fn stacks(&self) -> Option<(&str, Option<&str>, &Calls)> {
        Some((&self.release, self.change.as_deref(), self.answer.found.calls.as_ref()?))
    }
}
