//! Searches that were given up because no trial was valid.

use super::MethodRecord;
use crate::units::format_pps;
use fwdlab_search::Ending;

impl MethodRecord {
    /// Returns why a search with repeatedly invalid trials was given up, and the remedy; `None` for
    /// every other search.
    pub fn given_up(&self) -> Option<String> {
        let Some(Ending::Unmeasurable { why, .. }) = &self.ended else { return None };
        let last = self.trials.last()?;
        let load = format_pps(last.load as f64);
        let next = match last.remedy() {
            "" => String::new(),
            remedy => format!("; next step: {remedy}"),
        };
        Some(format!("no valid trial at {load}: {why}{next}"))
    }
}
