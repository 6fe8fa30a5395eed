//! Reasons not to trust an analysis as a whole.

use super::{Analysis, VariantResult};

impl Analysis {
    /// Returns the labels of the variants with runs but without a result, with the reason of the
    /// first run; empty for imported runs.
    pub fn without_result(&self) -> Vec<(&str, &str)> {
        let reason = |variant: &VariantResult| {
            let runs = self.runs.iter().filter(|run| run.variant == variant.index);
            let absences: Option<Vec<&str>> = runs.map(|run| run.absence(self.figure)).collect();
            absences?.first().copied()
        };
        let variants = self.variants.iter().filter(|_| self.archive.is_none());
        variants.filter_map(|variant| Some((variant.label.as_str(), reason(variant)?))).collect()
    }

    /// Returns true if a number of the analysis can't be trusted.
    pub fn has_fatal_warning(&self) -> bool {
        self.warnings.iter().any(|group| group.fatal)
    }
}
