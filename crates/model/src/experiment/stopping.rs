//! `[design] stop`: a rule that may end the experiment early, checked together with the settings
//! that it affects.

use super::Experiment;
use crate::design::Stop;
use crate::diagnostic::Diagnostic;
use crate::spec::Spec;

/// Checks that no other setting contradicts the rule, and that it has comparisons to decide.
pub(super) fn judge(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let Some(stop) = &spec.design.stop else { return without_rule(spec, faults) };
    if let Some(alternate) = &spec.design.alternate {
        faults.push(
            Diagnostic::new(stop.span(), "an alternation has a fixed number of streams")
                .context(alternate.span(), "one stream holds all variants")
                .help("remove `stop` and set the number of streams: blocks = 10"),
        );
        return;
    }
    if let Some(blocks) = &spec.design.blocks {
        let fault = Diagnostic::new(blocks.span(), "with `stop` the number of blocks is not fixed")
            .context(stop.span(), "this rule may end the experiment early");
        faults.push(match &spec.design.max_blocks {
            Some(_) => fault.help("remove `blocks`: `max_blocks` says how many at most"),
            None => {
                let blocks = (*blocks.get_ref()).max(Stop::BLOCKS_MIN);
                fault.help(format!("write max_blocks instead: max_blocks = {blocks}"))
            }
        });
    }
    if decides_nothing(spec, experiment) {
        let fault = Diagnostic::new(stop.span(), "nothing is compared, so `stop` decides nothing");
        faults.push(if experiment.factors.iter().all(|factor| factor.settings.len() < 2) {
            fault.help("add a [[factor]] with two levels, or write blocks = 5 instead of `stop`")
        } else {
            fault.help("name a factor of two levels in `baseline`, or remove `baseline`")
        });
    }
}

/// Checks that, without a rule, `blocks` gives the number of blocks.
fn without_rule(spec: &Spec, faults: &mut Vec<Diagnostic>) {
    // A rule that could not be read is already a fault.
    if let Some(max_blocks) = &spec.design.max_blocks
        && !spec.design.faulty
    {
        let help = match &spec.design.alternate {
            Some(_) => format!("write blocks = {}", max_blocks.get_ref()),
            None => format!("add stop = \"planned\", or write blocks = {}", max_blocks.get_ref()),
        };
        faults.push(
            Diagnostic::new(max_blocks.span(), "`max_blocks` has a meaning only beside `stop`")
                .help(help),
        );
    }
}

/// True if every variant is a baseline. A factor or baseline that could not be read is already a
/// fault, and may have been intended for comparison.
fn decides_nothing(spec: &Spec, experiment: &Experiment) -> bool {
    let baseline = &experiment.compare.baseline;
    let written = spec.compare.baseline.as_ref();
    let unread = spec.factors_incomplete
        || spec.factors.iter().any(|factor| factor.incomplete)
        || written.is_some_and(|names| names.len() != baseline.iter().flatten().count());
    let compared = |(factor, base): (&super::ExperimentFactor, &Option<usize>)| {
        base.is_some() && factor.settings.len() > 1
    };
    !unread && !experiment.factors.iter().zip(baseline).any(compared)
}
