//! `[compare]`: baselines of the comparisons.

use super::Experiment;
use crate::design::{Compare, RunMetric};
use crate::diagnostic::Diagnostic;
use crate::spec::{FactorSpec, LevelSpec, Spec};
use toml::Spanned;

pub(super) fn compare_of(spec: &Spec, faults: &mut Vec<Diagnostic>) -> Compare {
    let baseline = match &spec.compare.baseline {
        Some(written) => written_baseline(spec, written, faults),
        None => default_baseline(spec),
    };
    Compare {
        baseline,
        confidence: spec.compare.confidence.unwrap_or(95.0),
        margin: spec.compare.margin.unwrap_or(0.02),
        figure: spec.compare.figure.as_ref().map(|figure| *figure.get_ref()),
        adjust: spec.compare.adjust.unwrap_or_default(),
    }
}

/// Checks the metric. The best tenth of a paced run is the sender's own best, regardless of the
/// device's losses, and therefore meaningless.
pub(super) fn figure(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let Some(written) = spec.compare.figure.as_ref() else { return };
    if *written.get_ref() != RunMetric::P90 {
        return;
    }
    let is_paced = |combination: &Vec<usize>| {
        let mut settings = experiment.base.clone();
        for (factor, &level) in experiment.factors.iter().zip(combination) {
            factor.settings[level].iter().for_each(|setting| setting.apply(&mut settings));
        }
        settings.is_paced()
    };
    if experiment.combinations().iter().any(is_paced) {
        faults.push(
            Diagnostic::new(written.span(), "`p90` says nothing where packets come at a rate")
                .label("the best tenth of such a run is the sender's, not the device's")
                .help("remove `figure`: what was delivered of the load is compared then"),
        );
    }
}

/// Returns the first level of one factor. Differences between address families and frame sizes are
/// rarely of interest, so they are compared only if nothing else is.
fn default_baseline(spec: &Spec) -> Vec<Option<usize>> {
    let dull =
        |factor: &&FactorSpec, names: &[&str]| names.contains(&factor.name.get_ref().as_str());
    let names = || spec.factors.iter();
    let compared = names()
        .find(|factor| !dull(factor, &["family", "frame_size"]))
        .or_else(|| names().find(|factor| !dull(factor, &["family"])))
        .or_else(|| names().next())
        .map(|factor| factor.name.get_ref().clone());
    names().map(|factor| (Some(factor.name.get_ref()) == compared.as_ref()).then_some(0)).collect()
}

/// Returns the levels that the user specifies; other factors are not compared across.
fn written_baseline(
    spec: &Spec,
    written: &[(Spanned<String>, Spanned<String>)],
    faults: &mut Vec<Diagnostic>,
) -> Vec<Option<usize>> {
    let mut baseline = vec![None; spec.factors.len()];
    let names: Vec<&str> =
        spec.factors.iter().map(|factor| factor.name.get_ref().as_str()).collect();
    for (name, label) in written {
        let Some(index) = names.iter().position(|known| known == name.get_ref()) else {
            if !spec.factors_incomplete {
                let message =
                    format!("the baseline names `{}`, which is no factor", name.get_ref());
                let fault = Diagnostic::new(name.span(), message);
                faults.push(match names.as_slice() {
                    [] => fault.help("this experiment has no [[factor]]"),
                    _ => fault.suggest(name.get_ref(), &names, "factors"),
                });
            }
            continue;
        };
        let factor = &spec.factors[index];
        let labels: Vec<&str> =
            factor.levels.iter().map(|level| level.label.get_ref().as_str()).collect();
        // A revision with builds is referred to by its own name.
        let is_revision = |level: &LevelSpec| {
            level.build_of.as_ref().is_some_and(|of| of.get_ref() == label.get_ref())
        };
        baseline[index] = (labels.iter().position(|known| known == label.get_ref()))
            .or_else(|| factor.levels.iter().position(is_revision));
        if baseline[index].is_none() && !factor.incomplete {
            let message = format!("`{}` is no level of `{}`", label.get_ref(), name.get_ref());
            faults.push(
                Diagnostic::new(label.span(), message)
                    .context(factor.name.span(), "the factor")
                    .suggest(label.get_ref(), &labels, "levels"),
            );
        }
    }
    baseline
}
