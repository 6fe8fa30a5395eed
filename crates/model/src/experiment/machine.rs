//! Checks of an experiment with a virtual machine: limits of counting instructions.

use super::Experiment;
use crate::design::RunMetric;
use crate::diagnostic::Diagnostic;
use crate::settings::{Accel, TestbedKind};
use crate::spec::{Setting, Spec};
use toml::Spanned;

/// True if the file requires a rate of a virtual machine, or a method with its own trials: packets
/// then come over taps.
pub(super) fn is_timed(spec: &Spec) -> bool {
    let is_vm = spec.kind.as_ref().is_some_and(|kind| *kind.get_ref() == TestbedKind::Vm);
    is_vm
        && match &spec.compare.figure {
            Some(figure) => figure.get_ref().is_rate(),
            None => super::method::method_of(spec).is_some(),
        }
}

/// Checks that time is measured only if a CPU executes the device, and instructions only if it is
/// emulated.
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
    let is_timed = experiment.base.testbed.vm.is_timed;
    let levels = spec.factors.iter().flat_map(|factor| &factor.levels);
    let written = spec.settings.iter().chain(levels.flat_map(|level| &level.settings));
    let kvm = Accel::Kvm.name();
    let is_kvm = |setting: &&Spanned<Setting>| {
        let setting = setting.get_ref();
        setting.key() == "accel" && setting.value() == kvm
    };
    if let Some(accel) = written.clone().find(is_kvm).filter(|_| !is_timed) {
        faults.push(
            Diagnostic::new(accel.span(), "the CPU itself counts no instructions")
                .context(kind.span(), "instructions are counted on this testbed")
                .help("leave `accel` out, or write figure = \"mean\" in [compare] for a rate"),
        );
    }
    if experiment.design.alternate_ns.is_some()
        && let Some(alternate) = &spec.design.alternate
    {
        faults.push(
            Diagnostic::new(alternate.span(), "a virtual machine is not switched by the clock")
                .context(kind.span(), "the testbed")
                .help("leave `alternate` out: each run is set up by itself there"),
        );
    }
    if let Some(stop) = spec.design.stop.as_ref().filter(|_| !is_timed) {
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
                .help(match is_timed {
                    true => {
                        "leave [profile] out, or `figure`: instructions are counted by function"
                    }
                    false => "leave [profile] out: all instructions are counted by function anyway",
                }),
        );
    }
}
