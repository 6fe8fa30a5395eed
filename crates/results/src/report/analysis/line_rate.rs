//! The line rate of the links to a device, where one is known: declared, or negotiated by
//! hardware. Namespaces, memory and virtual cards have none, and no share of it.

use crate::store::Contents;
use fwdlab_model::units::{self, LINE_RATE, line_rate_of};

/// Packets per second that a variant's links take at most, in the directions in which it is sent
/// to together: frames with preamble and gap (L1). None where no line rate is known.
pub(super) fn line_pps(contents: &Contents, variant: usize) -> Option<f64> {
    line_pps_of(contents, variant, |_| true)
}

/// The same of those runs alone that are asked for, by their index in the plan.
pub(super) fn line_pps_of(
    contents: &Contents,
    variant: usize,
    is_asked: impl Fn(u32) -> bool,
) -> Option<f64> {
    let own = contents.runs.iter().filter(|run| run.variants.contains(&variant));
    let mut own = own.filter(|run| is_asked(run.run));
    let bps = own.find_map(|run| line_rate_of(run.facts.get(LINE_RATE)?))?;
    let traffic = &contents.plan.variants.get(variant)?.settings.traffic;
    Some(f64::from(traffic.directions.count()) * units::line_pps(bps, traffic.frame_size))
}
