//! Reasons not to rely on an analysis as a whole.

use super::{Analysis, VariantResult};

impl Analysis {
    /// Labels of the variants that ran and have no result, with why the first of their runs has
    /// none; empty for imported runs.
    pub fn without_result(&self) -> Vec<(&str, &str)> {
        let reason = |variant: &VariantResult| {
            let mut own = self.runs.iter().filter(|run| run.variant == variant.index);
            own.find_map(|run| run.left_out.as_deref())
        };
        let ran = self.variants.iter().filter(|v| v.values.is_empty() && self.archive.is_none());
        ran.filter_map(|variant| Some((variant.label.as_str(), reason(variant)?))).collect()
    }

    /// True when a number of it can't be trusted.
    pub fn has_fatal_warning(&self) -> bool {
        self.warnings.iter().any(|group| group.fatal)
    }
}
