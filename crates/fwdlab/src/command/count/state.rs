//! Kernels in the states that were counted.

pub(super) use crate::command::counted_guest::Boot;
use fwdlab_model::record::Executed;
use fwdlab_vm::calls::Calls;

/// A kernel in one state.
pub(super) struct State {
    /// Name of the file that was given.
    pub(super) file: String,
    /// The command that was executed before; `None` for the kernel before any change.
    pub(super) change: Option<String>,
    /// `uname -r`.
    pub(super) release: String,
    /// `uname -v`.
    pub(super) build: String,
    /// Counts of each boot; at least one.
    pub(super) boots: Vec<Boot>,
}

impl State {
    /// Release, change and calls of each boot; empty if calls were not followed.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (&str, Option<&str>, &Calls)> {
        let calls = self.boots.iter().filter_map(|boot| boot.calls.as_ref());
        calls.map(|calls| (self.release.as_str(), self.change.as_deref(), calls))
    }

    pub(super) fn executed(&self) -> Vec<&Executed> {
        self.boots.iter().map(|boot| &boot.executed).collect()
    }
}

/// Adds the boots of a kernel that was booted again to its states, the last ones of `states`.
pub(super) fn add_boot(states: &mut [State], again: Vec<State>) {
    let first = states.len().saturating_sub(again.len());
    for (state, again) in states[first..].iter_mut().zip(again) {
        state.boots.extend(again.boots);
    }
}
