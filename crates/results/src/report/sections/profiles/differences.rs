//! Differences between the profiles of two variants.

use super::source::Source;
use super::{Drawing, ProfileDifference, ProfileKind, SHOWN};
use crate::profile::compare::{Changes, CompareError, Grouping, compare, compare_blocks};
use crate::profile::draw::{Look, Side, difference};
use crate::report::analysis::VariantResult;
use crate::report::analysis::comparisons::criteria;
use crate::report::names::safe;
use fwdlab_model::Plan;

/// Confidence of intervals between windows or starts, in percent.
const CONFIDENCE: f64 = 95.0;

/// Compares two sources of one kind.
///
/// # Errors
/// The reason why no difference is claimed.
pub(super) fn differ(
    plan: &Plan,
    baseline: &Source,
    candidate: &Source,
    variants: &[VariantResult],
    drawing: &mut Drawing,
) -> Result<ProfileDifference, String> {
    if baseline.unit != candidate.unit {
        return Err(format!(
            "its profile is in {}, the baseline's in {}",
            candidate.unit, baseline.unit
        ));
    }
    let (from, to) = (&variants[baseline.variant], &variants[candidate.variant]);
    for (source, label) in [(baseline, &from.label), (candidate, &to.label)] {
        if let Some(found) = source.disagreement() {
            return Err(format!(
                "no difference to {} is claimed: a profile run of {label} {}",
                from.label,
                found.sentence()
            ));
        }
    }
    if candidate.kind == ProfileKind::Starts
        && let Some((a, b)) = candidate.load().zip(baseline.load())
        && let Some(why) = a.differs_from(&b)
    {
        return Err(format!(
            "no difference to {} is claimed: the profiles are of different loads ({why}): next \
             step: a `rate` in [profile] that both carry",
            from.label
        ));
    }
    let replicates = Replicates::of(plan, baseline, candidate);
    let by = |grouping| {
        replicates.compare(plan, [baseline, candidate], grouping).map_err(|error| error.to_string())
    };
    let mut functions = by(Grouping::Own)?;
    let subsystems = by(Grouping::Subsystems(&drawing.table))?;
    if replicates != Replicates::Blocks {
        functions.parts.truncate(2 * SHOWN);
    }
    let (before, after) = (baseline.whole(), candidate.whole());
    let look = Look {
        title: format!("{} against {}, per packet", to.label, from.label),
        subtitle: String::new(),
        unit: candidate.unit.clone(),
        is_icicle: drawing.is_icicle,
    };
    let side = |source: &Source, work| {
        let per_count = source.per_sample() / source.packets();
        Side { stacks: work, per_count }
    };
    let svg = difference(side(baseline, &before.work), side(candidate, &after.work), true, &look);
    let file = svg.ok().map(|svg| {
        let stem = format!("{}-against-{}", safe(&to.label), safe(&from.label));
        drawing.keep(&format!("{stem}{}", candidate.suffix()), svg)
    });
    Ok(ProfileDifference {
        label: to.label.clone(),
        baseline_label: from.label.clone(),
        kind: candidate.kind,
        unit: candidate.unit.clone(),
        scope: replicates.scope(baseline, candidate),
        functions,
        subsystems,
        file,
    })
}

/// Replicates of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replicates {
    /// Blocks of measured runs.
    Blocks,
    /// Runs of each variant: measured ones that share no blocks, or starts of the device.
    Runs,
    /// Parts of one run's window.
    Windows,
}

impl Replicates {
    fn of(plan: &Plan, baseline: &Source, candidate: &Source) -> Replicates {
        match candidate.kind {
            ProfileKind::Runs if !plan.design.sequential => Replicates::Blocks,
            _ if baseline.starts.len().min(candidate.starts.len()) > 1 => Replicates::Runs,
            _ => Replicates::Windows,
        }
    }

    fn compare(
        self,
        plan: &Plan,
        [baseline, candidate]: [&Source; 2],
        grouping: Grouping<'_>,
    ) -> Result<Changes, CompareError> {
        let lists = |a: Vec<_>, b: Vec<_>| compare(&a, &b, grouping, CONFIDENCE);
        match self {
            Replicates::Blocks => {
                let (a, b) = (baseline.by_block(), candidate.by_block());
                compare_blocks(&a, &b, grouping, criteria(plan))
            }
            Replicates::Runs => lists(baseline.by_start(), candidate.by_start()),
            Replicates::Windows => lists(baseline.by_window(), candidate.by_window()),
        }
    }

    /// Sentence about the intervals' scope; empty if there are none.
    fn scope(self, baseline: &Source, candidate: &Source) -> String {
        let (a, b) = (baseline.starts.len(), candidate.starts.len());
        match (self, candidate.kind) {
            (Replicates::Blocks, _) => format!(
                "Samples of the measured runs ({a} and {b}), {}. Intervals are over blocks, by the \
                 test that gives the verdict, and hold for all rows of a table together.",
                match baseline.has_account && candidate.has_account {
                    true => "shares times the CPU time that the kernel accounts to the device",
                    false => "each for the time that its event stands for",
                }
            ),
            (Replicates::Runs, ProfileKind::Runs) => {
                format!("Intervals are over measured runs ({a} and {b}; Welch).")
            }
            (Replicates::Runs, _) => {
                format!("Intervals are over starts of the device ({a} and {b}; Welch).")
            }
            (Replicates::Windows, ProfileKind::Published) => String::new(),
            (Replicates::Windows, _) => {
                "Intervals are over the parts of the windows: they hold for this start of each \
                 variant, and do not show how starts differ (`starts` in `[profile]` does)."
                    .to_owned()
            }
        }
    }
}
