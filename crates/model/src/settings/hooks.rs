//! Commands of the user's around each run.

use super::{DutSettings, Revision};
use serde::{Deserialize, Serialize};

impl DutSettings {
    /// The revision that is read back when the DUT is configured; none where `setup` makes what
    /// is read back.
    pub fn configured_revision(&self) -> Option<&Revision> {
        self.remote.revision.as_ref().filter(|_| self.hooks.setup.is_empty())
    }
}

/// Commands around each run: words as a shell would divide them; nothing is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hooks {
    /// Before it, in their order.
    pub setup: Vec<String>,
    /// After it, and before `setup`.
    pub teardown: Vec<String>,
}

impl Hooks {
    /// True where there are none.
    pub fn is_default(&self) -> bool {
        *self == Hooks::default()
    }
}
