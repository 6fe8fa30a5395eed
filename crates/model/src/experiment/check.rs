//! Checks that involve several values.

use super::{Experiment, RUNS_MAX, VARIANTS_MAX};
use crate::design::Trial;
use crate::diagnostic::Diagnostic;
use crate::settings::{Arrangement, Settings};
use crate::spec::keys;
use crate::spec::{FactorSpec, Setting, Spec, format_ns};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// Checks that names and labels are unique, and that no setting belongs to two factors.
pub(super) fn factors(spec: &Spec, faults: &mut Vec<Diagnostic>) {
    let mut names: BTreeMap<&str, Range<usize>> = BTreeMap::new();
    let mut owners: BTreeMap<String, (usize, Range<usize>)> = BTreeMap::new();
    for (index, factor) in spec.factors.iter().enumerate() {
        let name = factor.name.get_ref().as_str();
        if let Some(first) = names.get(name) {
            faults.push(
                Diagnostic::new(factor.name.span(), format!("two factors are called `{name}`"))
                    .context(first.clone(), "the first")
                    .help("put all levels into one factor, or rename one"),
            );
            continue;
        }
        names.insert(name, factor.name.span());
        labels(factor, faults);
        for setting in factor.levels.iter().flat_map(|level| &level.settings) {
            let setting_name = setting.get_ref().name();
            match owners.get(&setting_name) {
                Some((owner, _)) if *owner == index => {}
                Some((owner, place)) => {
                    let other = spec.factors[*owner].name.get_ref();
                    let message = format!(
                        "`{setting_name}` is varied by two factors, `{other}` and `{name}`"
                    );
                    faults.push(
                        Diagnostic::new(setting.span(), message)
                            .context(place.clone(), "varied here too")
                            .help("one of the two would undo the other: put both into one factor"),
                    );
                }
                None => {
                    owners.insert(setting_name, (index, setting.span()));
                }
            }
        }
    }
}

fn labels(factor: &FactorSpec, faults: &mut Vec<Diagnostic>) {
    let mut labels: BTreeMap<&str, Range<usize>> = BTreeMap::new();
    for level in &factor.levels {
        let label = level.label.get_ref().as_str();
        match labels.get(label) {
            Some(first) => {
                let message =
                    format!("two levels of `{}` are called `{label}`", factor.name.get_ref());
                faults.push(
                    Diagnostic::new(level.label.span(), message)
                        .context(first.clone(), "the first")
                        .help("for an A/A comparison write two tables with labels of their own"),
                );
            }
            None => {
                labels.insert(label, level.label.span());
            }
        }
    }
}

/// Checks that the number of variants and runs is plausible.
pub(super) fn size(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let Some(last) = spec.factors.last() else { return };
    let levels = spec.factors.iter().map(|factor| factor.levels.len());
    let variants = levels.fold(1, usize::saturating_mul);
    let runs = variants.saturating_mul(experiment.design.blocks as usize);
    if variants > VARIANTS_MAX {
        let message =
            format!("the factors make {variants} variants; at most {VARIANTS_MAX} can be planned");
        faults.push(
            Diagnostic::new(last.name.span(), message)
                .help("leave levels out, or split the experiment"),
        );
    } else if runs > RUNS_MAX {
        let design = &spec.design;
        let written = match experiment.design.stop {
            Some(_) => design.max_blocks.as_ref().map(Spanned::span),
            None => design.blocks.as_ref().map(Spanned::span),
        };
        let span = written.or(design.stop.as_ref().map(Spanned::span)).unwrap_or(0..0);
        let message =
            format!("{variants} variants make {runs} runs; at most {RUNS_MAX} can be planned");
        faults.push(Diagnostic::new(span, message).help("plan fewer blocks"));
    }
}

/// Checks that the phases of a trial are consistent.
pub(super) fn trial(spec: &Spec, trial: &Trial, faults: &mut Vec<Diagnostic>) {
    if spec.trial.faulty {
        return;
    }
    let Trial { duration_ns, interval_ns, slice_ns, .. } = *trial;
    let written = &spec.trial;
    if !interval_ns.is_multiple_of(slice_ns) {
        let message = format!(
            "`interval` must be a multiple of `slice`: {} is none of {}",
            format_ns(interval_ns),
            format_ns(slice_ns)
        );
        faults.push(
            Diagnostic::new(first_written(&[&written.interval, &written.slice]), message)
                .help("reported samples are sums of raw ones"),
        );
    }
    for (least, what) in [(3 * slice_ns, "three slices"), (interval_ns, "one interval")] {
        if duration_ns < least {
            let message = format!(
                "`duration` must be at least {what}: {} is less than {}",
                format_ns(duration_ns),
                format_ns(least)
            );
            let place = first_written(&[&written.duration, &written.slice, &written.interval]);
            faults.push(Diagnostic::new(place, message).help("measure longer, or slice finer"));
            break;
        }
    }
}

/// Returns the place of the first of these that the user wrote.
fn first_written(written: &[&Option<Spanned<u64>>]) -> Range<usize> {
    written.iter().find_map(|value| value.as_ref()).map_or(0..0, Spanned::span)
}

const SECOND_NS: u64 = 1_000_000_000;

/// Checks that an alternation has settings to switch, and can switch them live.
pub(super) fn alternation(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let Some(alternate) = &spec.design.alternate else { return };
    let kind = experiment.base.dut.kind;
    if !kind.row().alternates {
        faults.push(
            Diagnostic::new(alternate.span(), format!("{} can't alternate", kind.row().words))
                .label("nothing of it can be switched while traffic flows")
                .help("remove `alternate` to measure each level in runs of its own"),
        );
        return;
    }
    let slice_ns = *alternate.get_ref();
    let variants = experiment.factors.iter().map(|f| f.settings.len()).product::<usize>();
    if variants < 2 && !spec.factors_incomplete && spec.factors.iter().all(|f| !f.incomplete) {
        faults.push(
            Diagnostic::new(alternate.span(), "there is nothing to alternate: one variant only")
                .help("add a [[factor]] with two levels, or remove `alternate`"),
        );
    }
    for factor in &spec.factors {
        for level in &factor.levels {
            let fixed = level.settings.iter().find(|setting| !setting.get_ref().is_live());
            let Some(fixed) = fixed else { continue };
            let message = format!(
                "level `{}` of `{}` can't alternate: `{}` needs a new start of the DUT",
                level.label.get_ref(),
                factor.name.get_ref(),
                fixed.get_ref().name()
            );
            let live: Vec<&str> = keys::settings()
                .filter(|key| key.vary == keys::Vary::Live)
                .map(|key| key.name)
                .collect();
            faults.push(
                Diagnostic::new(level.span.clone(), message)
                    .context(alternate.span(), "levels are switched while traffic flows")
                    .help(format!(
                        "remove `alternate` to measure it in separate runs; live are: {}",
                        live.join(", ")
                    )),
            );
        }
    }
    if spec.design.faulty || spec.trial.faulty {
        return;
    }
    let counted = slice_ns.saturating_sub(experiment.design.settle_ns);
    if counted < experiment.trial.slice_ns {
        let message = format!(
            "of each {} only {} would be counted: less than one raw slice of {}",
            format_ns(slice_ns),
            format_ns(counted),
            format_ns(experiment.trial.slice_ns)
        );
        faults.push(
            Diagnostic::new(alternate.span(), message)
                .help("lengthen `alternate`, or shorten `settle` or `slice`"),
        );
    }
    let cycle = slice_ns.saturating_mul(2 * variants as u64);
    if variants >= 2 && cycle > 0 && SECOND_NS.is_multiple_of(cycle) {
        let message = format!("a cycle of {} keeps step with the seconds", format_ns(cycle));
        faults.push(
            Diagnostic::new(alternate.span(), message)
                .label("whatever a machine does once a second would always hit the same variant")
                .help("write e.g. alternate = \"170ms\", or \"300ms\""),
        );
    }
    if variants >= 2 && experiment.trial.duration_ns < cycle {
        let place = spec.trial.duration.as_ref().map_or(alternate.span(), Spanned::span);
        let message = format!(
            "`duration` must hold a whole cycle A B B A: {} is less than {}",
            format_ns(experiment.trial.duration_ns),
            format_ns(cycle)
        );
        faults.push(
            Diagnostic::new(place, message)
                .help(format!("write e.g. duration = \"{}\"", format_ns(10 * cycle))),
        );
    }
}

/// Checks that every effect of the simulated device can apply.
pub(super) fn effects(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let factors = &spec.factors;
    if spec.factors_incomplete || factors.iter().any(|factor| factor.incomplete) {
        return;
    }
    for (effect, _) in &spec.effects {
        let Some((name, label)) = effect.get_ref().split_once('=') else {
            let message = format!("`{}` names no level", effect.get_ref());
            faults.push(
                Diagnostic::new(effect.span(), message)
                    .help("write a setting or factor and a label: \"firewall=stateful\""),
            );
            continue;
        };
        let factor = factors.iter().find(|factor| factor.name.get_ref() == name);
        let of_base = experiment.base.all().into_iter().find(|setting| setting.name() == name);
        let labels: Vec<String> = match (factor, &of_base) {
            (Some(factor), _) => {
                factor.levels.iter().map(|level| level.label.get_ref().clone()).collect()
            }
            (None, Some(setting)) => {
                let bundled = factors.iter().flat_map(|factor| &factor.levels);
                let bundled = bundled.flat_map(|level| &level.settings);
                let bundled = bundled.map(Spanned::get_ref).filter(|other| other.name() == name);
                bundled.chain([setting]).map(Setting::value).collect()
            }
            (None, None) => {
                let known = factors.iter().map(|factor| factor.name.get_ref().as_str());
                let known: Vec<&str> = known.chain(keys::settings().map(|key| key.name)).collect();
                faults.push(
                    Diagnostic::new(
                        effect.span(),
                        format!("`{name}` is neither a factor nor a setting"),
                    )
                    .suggest(name, &known, "known"),
                );
                continue;
            }
        };
        if !labels.iter().any(|known| known == label) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let message = format!("this effect never applies: no `{name}` is `{label}`");
            faults.push(Diagnostic::new(effect.span(), message).suggest(
                label,
                &labels,
                "in this experiment",
            ));
        }
    }
}

/// Checks that every variant's settings are compatible.
pub(super) fn variants(spec: &Spec, experiment: &Experiment, faults: &mut Vec<Diagnostic>) {
    let levels = spec.factors.iter().map(|factor| factor.levels.len());
    if levels.fold(1, usize::saturating_mul) > VARIANTS_MAX {
        return;
    }
    let mut reported: Vec<Range<usize>> = Vec::new();
    for combination in experiment.combinations() {
        let laid = spec
            .factors
            .iter()
            .zip(&combination)
            .flat_map(|(factor, &level)| &factor.levels[level].settings);
        let written: Vec<&Spanned<Setting>> = spec.settings.iter().chain(laid).collect();
        let mut settings: Settings = experiment.base.clone();
        written.iter().for_each(|setting| setting.get_ref().apply(&mut settings));
        if settings.testbed.arrangement == Arrangement::Open && settings.testbed.senders > 1 {
            let place = written.iter().rfind(|setting| setting.get_ref().key() == "senders");
            let span = place.map_or(0..0, |setting| setting.span());
            if !reported.contains(&span) {
                reported.push(span.clone());
                faults.push(
                    Diagnostic::new(
                        span,
                        format!(
                            "the open arrangement has one sender, not {}",
                            settings.testbed.senders
                        ),
                    )
                    .help("write senders = 1, or arrangement = \"closed\""),
                );
            }
        }
    }
}
