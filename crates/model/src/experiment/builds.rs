//! `build_of`: levels that are builds of one revision, checked together with the design.

use crate::diagnostic::Diagnostic;
use crate::spec::{FactorSpec, Spec};

/// Checks that builds are distinguishable from revisions, and that the design can compare them.
pub(super) fn judge(spec: &Spec, faults: &mut Vec<Diagnostic>) {
    spec.factors.iter().for_each(|factor| names(factor, faults));
    let mut levels = spec.factors.iter().flat_map(|factor| &factor.levels);
    let Some(build) = levels.find_map(|level| level.build_of.as_ref()) else { return };
    let rule = spec.design.stop.as_ref().map(|stop| ("`stop`", stop.span()));
    let slices = spec.design.alternate.as_ref().map(|slice| ("`alternate`", slice.span()));
    for (name, span) in rule.into_iter().chain(slices) {
        faults.push(
            Diagnostic::new(span, format!("{name} knows nothing of builds"))
                .context(build.span(), "builds are compared over whole blocks")
                .help(format!("remove {name} and set the number of blocks: blocks = 10")),
        );
    }
}

/// Checks that a revision's name is not another level's name, and that it has at least two builds:
/// the scatter between builds requires them.
fn names(factor: &FactorSpec, faults: &mut Vec<Diagnostic>) {
    let builds =
        || factor.levels.iter().filter_map(|level| Some((level, level.build_of.as_ref()?)));
    for (_, revision) in builds() {
        let other = factor.levels.iter().find(|level| {
            level.label.get_ref() == revision.get_ref()
                && level.build_of.as_ref().map(|of| of.get_ref()) != Some(revision.get_ref())
        });
        if let Some(other) = other {
            let message = format!("`{}` is a separate level", revision.get_ref());
            faults.push(
                Diagnostic::new(revision.span(), message)
                    .context(other.label.span(), "this level is no build of that revision")
                    .help("write build_of into that level too, or name the revision otherwise"),
            );
            return;
        }
    }
    let mut first = builds();
    let Some((_, revision)) = first.next() else { return };
    let counts = |name: &str| builds().filter(|(_, of)| of.get_ref() == name).count();
    if !factor.incomplete && builds().all(|(_, of)| counts(of.get_ref()) < 2) {
        faults.push(
            Diagnostic::new(revision.span(), "no revision has two builds")
                .label("one build says nothing of how builds scatter")
                .help("add levels with the same build_of, or remove it"),
        );
    }
}
