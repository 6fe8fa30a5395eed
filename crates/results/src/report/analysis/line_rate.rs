//! The line rate of the links to a device, if it is known: declared, or negotiated by hardware.
//! Namespaces, memory and virtual cards have no line rate.

use crate::store::Contents;
use fwdlab_model::units::{self, LINE_RATE, line_rate_of};

/// Returns the maximum rate of a variant's links in packets per second, summed over the directions
/// of its traffic: frames with preamble and gap (L1). `None` if the line rate is unknown.
pub(in crate::report) fn line_pps(contents: &Contents, variant: usize) -> Option<f64> {
    line_pps_of(contents, variant, |_| true)
}

/// As [`line_pps`], from the selected runs only, by their index in the plan.
pub(in crate::report) fn line_pps_of(
    contents: &Contents,
    variant: usize,
    is_selected: impl Fn(u32) -> bool,
) -> Option<f64> {
    let runs = contents.runs.iter().filter(|run| run.variants.contains(&variant));
    let mut runs = runs.filter(|run| is_selected(run.run));
    let bps = runs.find_map(|run| line_rate_of(run.facts.get(LINE_RATE)?))?;
    let traffic = &contents.plan.variants.get(variant)?.settings.traffic;
    Some(f64::from(traffic.directions.count()) * units::line_pps(bps, traffic.frame_size))
}
