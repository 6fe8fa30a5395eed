//! Checks of an experiment with a virtual machine: what its emulated CPU can't tell.

use super::Experiment;
use crate::design::RunMetric;
use crate::diagnostic::Diagnostic;
use crate::settings::TestbedKind;
use crate::spec::Spec;

/// Time is measured where a CPU executes the device, instructions where it is emulated.
pub(super) fn judge(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let kind = spec.kind.as_ref().filter(|kind| *kind.get_ref() == TestbedKind::Vm);
    let figure = spec.compare.figure.as_ref();
    let Some(kind) = kind else {
        if let Some(figure) = figure.filter(|figure| *figure.get_ref() == RunMetric::Instructions) {
            faults.push(
                Diagnostic::new(figure.span(), "nobody counts instructions on this testbed")
                    .help("write kind = \"vm\" in [testbed], or leave `figure` out"),
            );
        }
        return;
    };
    if let Some(figure) = figure.filter(|figure| figure.get_ref().is_rate()) {
        faults.push(
            Diagnostic::new(figure.span(), "the time of an emulated CPU means nothing")
                .label("a rate")
                .help("leave `figure` out: instructions a packet are compared"),
        );
    }
    if experiment.design.alternate_ns.is_some()
        && let Some(alternate) = &spec.design.alternate
    {
        faults.push(
            Diagnostic::new(alternate.span(), "a virtual machine is not switched by the clock")
                .context(kind.span(), "the testbed")
                .help("leave `alternate` out: counts need no pairs of slices"),
        );
    }
    if let Some(stop) = &spec.design.stop {
        faults.push(
            Diagnostic::new(stop.span(), "`stop` decides by scatter, and counts repeat exactly")
                .context(kind.span(), "the testbed")
                .help("write blocks = 3 instead: as many boots as are to agree"),
        );
    }
    if let Some(place) = spec.profile.place.clone().filter(|_| experiment.profile.is_some()) {
        faults.push(
            Diagnostic::new(place, "no profiler samples a virtual machine")
                .context(kind.span(), "the testbed")
                .help("leave [profile] out: all instructions are counted by function anyway"),
        );
    }
}
