//! Contradictions between runs and published claims.

use crate::stats::Verdict;
use crate::store::Claim;

/// Way in which a verdict on the same runs contradicts a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// Sameness was claimed, but nothing is shown. Absence of proof is not proof of absence.
    SamenessNotShown,
    /// Sameness was claimed, but there is a difference.
    NotTheSame,
    /// A difference was claimed, but nothing is shown.
    DifferenceNotShown,
    /// A difference was claimed, but the sets are equivalent.
    NoDifference,
    /// A difference was claimed, but it has the other sign.
    OtherWay,
    /// No difference was proven, but there is one.
    DifferenceMissed,
}

/// Returns the contradiction between a claim and a verdict on the same runs, if any. Sizes are not
/// compared.
pub(super) fn contradicts(claim: Claim, verdict: Verdict) -> Option<Contradiction> {
    use Contradiction::*;
    use Verdict::{Better, Equivalent, Inconclusive, NotJudged, Worse};
    match (claim, verdict) {
        (Claim::Same, Inconclusive | NotJudged) => Some(SamenessNotShown),
        (Claim::Same, Better | Worse) => Some(NotTheSame),
        (Claim::Better { .. } | Claim::Worse { .. }, Inconclusive | NotJudged) => {
            Some(DifferenceNotShown)
        }
        (Claim::Better { .. } | Claim::Worse { .. }, Equivalent) => Some(NoDifference),
        (Claim::Better { .. }, Worse) | (Claim::Worse { .. }, Better) => Some(OtherWay),
        (Claim::NotProven, Better | Worse) => Some(DifferenceMissed),
        (Claim::Same, Equivalent)
        | (Claim::Better { .. }, Better)
        | (Claim::Worse { .. }, Worse)
        | (Claim::NotProven, Equivalent | Inconclusive | NotJudged)
        | (Claim::None, _) => None,
    }
}

/// Result of today's comparison of the same runs, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modern<'a> {
    /// The effect, as `+4.5 %`.
    pub(super) effect: &'a str,
    /// Its interval, as `[-1.6 %, +11.0 %]`.
    pub(super) interval: &'a str,
    /// The smallest effect that would have been detected, as `8.9 %`.
    pub(super) detectable: &'a str,
}

impl Contradiction {
    /// Formats the contradiction as one sentence without a full stop. `published` is the wording of
    /// the claim.
    pub(super) fn sentence(self, published: &str, modern: Modern) -> String {
        let Modern { effect, interval, detectable } = modern;
        let finding = match self {
            Contradiction::SamenessNotShown => "these runs don't show that",
            Contradiction::NotTheSame => "these runs differ",
            Contradiction::DifferenceNotShown => "these runs leave that open",
            Contradiction::NoDifference => "these runs show no difference beyond the margin",
            Contradiction::OtherWay => "these runs show the opposite",
            Contradiction::DifferenceMissed => "these runs show one",
        };
        let missed = match self {
            Contradiction::SamenessNotShown | Contradiction::DifferenceNotShown => {
                format!(", an effect below {detectable} would have been missed")
            }
            _ => String::new(),
        };
        let published = published.trim().trim_end_matches(':').trim_end();
        format!("published: \"{published}\"; {finding}: {effect} {interval}{missed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_contradict_claims() {
        let better = Claim::Better { percent: None };
        for (claim, verdict, expected) in [
            (Claim::Same, Verdict::Inconclusive, Some(Contradiction::SamenessNotShown)),
            (Claim::Same, Verdict::Worse, Some(Contradiction::NotTheSame)),
            (Claim::Same, Verdict::Equivalent, None),
            (better, Verdict::Better, None),
            (better, Verdict::Worse, Some(Contradiction::OtherWay)),
            (better, Verdict::Equivalent, Some(Contradiction::NoDifference)),
            (better, Verdict::Inconclusive, Some(Contradiction::DifferenceNotShown)),
            (Claim::NotProven, Verdict::Inconclusive, None),
            (Claim::NotProven, Verdict::Better, Some(Contradiction::DifferenceMissed)),
            (Claim::None, Verdict::Better, None),
        ] {
            assert_eq!(contradicts(claim, verdict), expected, "{claim:?} and {verdict:?}");
        }
    }

    #[test]
    fn contradiction_formats_as_one_sentence() {
        let modern =
            Modern { effect: "+4.5 %", interval: "[-1.6 %, +11.0 %]", detectable: "8.9 %" };
        assert_eq!(
            Contradiction::SamenessNotShown
                .sentence("Same performance (at 95% confidence):", modern),
            "published: \"Same performance (at 95% confidence)\"; these runs don't show that: \
             +4.5 % [-1.6 %, +11.0 %], an effect below 8.9 % would have been missed"
        );
        assert_eq!(
            Contradiction::OtherWay.sentence("improvement", modern),
            "published: \"improvement\"; these runs show the opposite: +4.5 % [-1.6 %, +11.0 %]"
        );
    }
}
