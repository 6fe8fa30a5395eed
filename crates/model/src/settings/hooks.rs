//! The user's commands around each run.

use super::{DutSettings, Revision};
use serde::{Deserialize, Serialize};

impl DutSettings {
    /// Returns the revision that is verified when the DUT is configured; `None` if `setup` creates
    /// the state to verify.
    pub fn configured_revision(&self) -> Option<&Revision> {
        self.remote.revision.as_ref().filter(|_| self.hooks.setup.is_empty())
    }
}

/// Commands around each run: words divided as by a shell; nothing is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hooks {
    /// Before the run, in order.
    pub setup: Vec<String>,
    /// After the run, and before `setup`.
    pub teardown: Vec<String>,
}

impl Hooks {
    /// True if there are no commands.
    pub fn is_default(&self) -> bool {
        *self == Hooks::default()
    }
}
