//! The bed of an experiment: the named bed; otherwise the laboratory, if it has one; otherwise the
//! machine.

use fwdlab_model::Plan;
use fwdlab_results::facts::Facts;
use std::path::Path;

/// Folder for rows that concern all beds together: verdicts of an experiment that several beds
/// measured.
pub(crate) const ALL: &str = "all";

/// Returns the name of the bed, suitable for a folder: letters, digits, `.`, `-` and `_`.
pub(crate) fn name(plan: &Plan, facts: &Facts, stored: Option<&str>) -> String {
    let laboratory = plan.base.testbed.lab.as_deref().map(Path::new).and_then(Path::file_stem);
    let laboratory = laboratory.map(|stem| stem.to_string_lossy().into_owned());
    let name = stored.map(str::to_owned).or(laboratory);
    let name = name.unwrap_or_else(|| facts.machine.clone());
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.chars().map(plain).collect(),
    }
}
