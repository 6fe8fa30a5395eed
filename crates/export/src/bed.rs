//! What an experiment ran on: the laboratory where it has one, else the machine.

use fwdlab_model::Plan;
use fwdlab_results::facts::Facts;
use std::path::Path;

/// The name of the bed, fit for a folder: letters, digits, `.`, `-` and `_`.
pub(crate) fn name(plan: &Plan, facts: &Facts) -> String {
    let laboratory = plan.base.testbed.lab.as_deref().map(Path::new).and_then(Path::file_stem);
    let name = laboratory.map(|stem| stem.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| facts.machine.clone());
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.chars().map(plain).collect(),
    }
}
