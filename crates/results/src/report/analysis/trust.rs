//! Reasons not to rely on an analysis as a whole.

use super::{Analysis, VariantResult};

impl Analysis {
    /// Labels of the variants that ran and have no result, with why the first of their runs has
    /// none; empty for imported runs.
    pub fn without_result(&self) -> Vec<(&str, &str)> {
        let reason = |variant: &VariantResult| {
            let own = self.runs.iter().filter(|run| run.variant == variant.index);
            let absences: Option<Vec<&str>> = own.map(|run| run.absence(self.figure)).collect();
            absences?.first().copied()
        };
        let variants = self.variants.iter().filter(|_| self.archive.is_none());
        variants.filter_map(|variant| Some((variant.label.as_str(), reason(variant)?))).collect()
    }

    /// True when a number of it can't be trusted.
    pub fn has_fatal_warning(&self) -> bool {
        self.warnings.iter().any(|group| group.fatal)
    }
}
