//! Results that make the program fail (`--fail-on`), or that classify a commit for git
//! (`--bisect`).

use crate::error::CliError;
use crate::exit::Exit;
use crate::terminal;
use clap::ValueEnum;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Compared, Outcome};
use fwdlab_results::stats::Verdict;

/// Differences to fail on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Any variant is significantly slower, unless the loss is certainly within the margin
    Worse,
    /// Any variant is significantly slower or faster, unless the difference is certainly within the
    /// margin
    Different,
    /// A variant is not shown to be equivalent to its baseline
    NotEquivalent,
}

/// Exit code of an analysis, the same for every command that shows it: 4 if its results cannot be
/// trusted or a variant has no result, 1 if it found the difference given with `--fail-on`.
pub(crate) fn exit(analysis: &Analysis, fail_on: Option<FailOn>) -> Exit {
    if analysis.has_fatal_warning() {
        terminal::warn("some of these figures can't be trusted: see the warnings above");
        return Exit::Untrustworthy;
    }
    if let [(label, why), ..] = analysis.without_result().as_slice() {
        terminal::warn(&format!("{label} has no result: {why}"));
        return Exit::Untrustworthy;
    }
    exit_of(analysis.core.comparisons.iter(), fail_on)
}

/// Exit code of several results: a difference to fail on, else the last code that is not 0.
pub(crate) fn exit_of_several(exits: impl Iterator<Item = Exit>) -> Exit {
    exits.fold(Exit::Done, |all, one| match (all, one) {
        (Exit::Difference, _) | (_, Exit::Done) => all,
        (_, one) => one,
    })
}

/// Answer to `git bisect run`: bad if a variant is worse than its baseline, good if no variant can
/// be worse, otherwise neither.
///
/// # Errors
/// Fails if nothing is compared: then no commit is ever good or bad.
pub(crate) fn exit_for_git(comparisons: &[Compared]) -> anyhow::Result<Exit> {
    if comparisons.is_empty() {
        let what = "--bisect: nothing is compared\n  next step: give the experiment a level that is \
                    known to be good, as its baseline, beside the one under test";
        return Err(CliError::Mistake(what.into()).into());
    }
    let answered = comparisons.iter().filter(|compared| compared.outcome.is_answered());
    let exit = exit_of(answered, Some(FailOn::Worse));
    let is_known = |compared: &Compared| match &compared.outcome {
        Outcome::Compared(answer) => is_good(answer.verdict, answer.within_margin),
        Outcome::Counted(exact) => is_good(exact.verdict.into(), exact.within_margin),
        Outcome::Unanswerable { .. } => false,
    };
    let is_answer = exit != Exit::Done || comparisons.iter().all(is_known);
    Ok(if is_answer { exit } else { Exit::CannotTell })
}

/// True if a variant is known to be no worse than its baseline, or by less than the margin.
fn is_good(verdict: Verdict, within_margin: bool) -> bool {
    match verdict {
        Verdict::Better | Verdict::Equivalent => true,
        Verdict::Worse => within_margin,
        Verdict::Inconclusive | Verdict::NotJudged => false,
    }
}

/// Exit code of comparisons from any source: 4 if one of them depends on runs that cannot be
/// trusted, or if `fail_on` is given and one of them has no answer.
pub(crate) fn exit_of<'a>(
    comparisons: impl Iterator<Item = &'a Compared>,
    fail_on: Option<FailOn>,
) -> Exit {
    let comparisons: Vec<&Compared> = comparisons.collect();
    if let Some(compared) = comparisons.iter().find(|compared| compared.is_distrusted) {
        let (label, baseline) = (&compared.label, &compared.baseline_label);
        terminal::warn(&format!(
            "{label} against {baseline}: a store has warnings by which its figures can't be trusted"
        ));
        return Exit::Untrustworthy;
    }
    let outcomes: Vec<&Outcome> = comparisons.iter().map(|compared| &compared.outcome).collect();
    let is_doubtful = |outcome: &&Outcome| match outcome {
        Outcome::Compared(answer) => answer.comparison.doubtful.is_some(),
        Outcome::Counted(_) | Outcome::Unanswerable { .. } => false,
    };
    if outcomes.iter().any(is_doubtful) {
        terminal::warn(
            "most runs of some comparison were disturbed or limited by the generator: no verdict; \
             measure again on a quieter machine, or with fewer other programs",
        );
        return Exit::Untrustworthy;
    }
    let Some(fail_on) = fail_on else { return Exit::Done };
    let fails = outcomes.iter().any(|outcome| match outcome {
        Outcome::Compared(answer) => is_failure(fail_on, answer.verdict, answer.within_margin),
        Outcome::Counted(exact) => is_failure(fail_on, exact.verdict.into(), exact.within_margin),
        Outcome::Unanswerable { .. } => fail_on == FailOn::NotEquivalent,
    });
    let unanswered = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Unanswerable { reason } => Some(reason),
        Outcome::Compared(_) | Outcome::Counted(_) => None,
    });
    match unanswered {
        _ if fails => Exit::Difference,
        // A comparison without an answer must not pass.
        Some(reason) => {
            terminal::warn(&format!("a comparison has no answer: {reason}"));
            Exit::Untrustworthy
        }
        None => Exit::Done,
    }
}

/// True for a difference to fail on. A difference certainly within the margin is not one: with
/// enough runs the smallest difference is significant.
fn is_failure(fail_on: FailOn, verdict: Verdict, within_margin: bool) -> bool {
    let fails = match fail_on {
        FailOn::Worse => verdict == Verdict::Worse,
        FailOn::Different => matches!(verdict, Verdict::Better | Verdict::Worse),
        FailOn::NotEquivalent => true,
    };
    fails && !within_margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_results::stats::Unanswerable;

    #[test]
    fn fail_on_levels_are_increasingly_strict() {
        use Verdict::{Better, Inconclusive, Worse};
        let of = |fail_on| [Better, Worse, Inconclusive].map(|v| is_failure(fail_on, v, false));
        assert_eq!(of(FailOn::Worse), [false, true, false]);
        assert_eq!(of(FailOn::Different), [true, true, false]);
        assert_eq!(of(FailOn::NotEquivalent), [true, true, true]);
    }

    #[test]
    fn commit_is_good_bad_or_open() {
        use Verdict::{Better, Equivalent, Inconclusive, Worse};
        let all = [Better, Equivalent, Worse, Inconclusive];
        assert_eq!(all.map(|verdict| is_good(verdict, false)), [true, true, false, false]);
        assert_eq!(all.map(|verdict| is_good(verdict, true)), [true, true, true, false]);
        // Nothing is both good and bad; anything that is neither is open.
        let open = |verdict| !is_good(verdict, false) && !is_failure(FailOn::Worse, verdict, false);
        assert_eq!(all.map(open), [false, false, false, true]);
        let none = || {
            Compared::counted(
                (0, "base".into()),
                (1, "patch".into()),
                Err(Unanswerable::TooFew { what: "runs", have: 0, need: 1 }),
            )
        };
        assert_eq!(exit_for_git(&[none()]).unwrap(), Exit::CannotTell);
        assert_eq!(exit_of([none()].iter(), Some(FailOn::Worse)), Exit::Untrustworthy);
        let mut distrusted = none();
        distrusted.is_distrusted = true;
        assert_eq!(exit_of([distrusted].iter(), None), Exit::Untrustworthy);
        assert!(exit_for_git(&[]).is_err());
    }

    #[test]
    fn exit_of_several_is_a_difference_if_any() {
        use Exit::{Difference, Done, Untrustworthy};
        let of = |exits: &[Exit]| exit_of_several(exits.iter().copied());
        assert_eq!(of(&[Done, Untrustworthy, Done]), Untrustworthy);
        assert_eq!(of(&[Difference, Untrustworthy]), Difference);
        assert_eq!(of(&[Untrustworthy, Difference, Done]), Difference);
        assert_eq!(of(&[]), Done);
    }

    #[test]
    fn difference_within_the_margin_does_not_fail() {
        for fail_on in FailOn::value_variants() {
            assert!(!is_failure(*fail_on, Verdict::Worse, true));
            assert!(!is_failure(*fail_on, Verdict::Equivalent, true));
        }
    }
}
