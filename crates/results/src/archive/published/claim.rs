//! What was claimed in words, and where the same runs don't bear it out.

use super::{Block, Difference};
use crate::stats::Verdict;
use serde::Serialize;

/// Words after which a change for the better is claimed.
const BETTER: [&str; 7] =
    ["improvement", "improved", "faster", "performance increase", "gain", "better", "boost"];
/// Words after which a change for the worse is claimed.
const WORSE: [&str; 8] = [
    "regression",
    "slower",
    "degradation",
    "degraded",
    "worse",
    "penalty",
    "performance drop",
    "performance decrease",
];
/// Words after which sameness is claimed.
const SAME: [&str; 6] =
    ["same performance", "no difference", "no impact", "no change", "identical", "equivalent"];

/// A claim about a variant against the first one. More packets are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Claim {
    /// It performs the same.
    Same,
    /// It is better.
    Better {
        /// By that much, in percent (positive).
        percent: Option<f64>,
    },
    /// It is worse.
    Worse {
        /// By that much, in percent (negative).
        percent: Option<f64>,
    },
    /// No difference was proven: says nothing about sameness.
    NotProven,
    /// Nothing is claimed.
    None,
}

/// The claims of a block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claims {
    /// What the sentence above it says.
    pub heading: Claim,
    /// What its tests say, for each set after the first.
    pub sets: Vec<Claim>,
}

/// What a block claims.
pub fn claims(block: &Block) -> Claims {
    let of_set = |set: &super::SetLine| match &set.difference {
        Some(Difference::NotProven) => Claim::NotProven,
        Some(Difference::Proven { change, percent, .. }) => {
            let number = |text: &str| text.parse::<f64>().ok().filter(|v| v.is_finite());
            match number(change) {
                Some(change) if change > 0.0 => Claim::Better { percent: number(percent) },
                Some(change) if change < 0.0 => Claim::Worse { percent: number(percent) },
                _ => Claim::None,
            }
        }
        None => Claim::None,
    };
    Claims {
        heading: of_sentence(&block.heading),
        sets: block.sets.iter().skip(1).map(of_set).collect(),
    }
}

/// How a verdict on the same runs speaks against a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Contradiction {
    /// Sameness was claimed; nothing is shown. Absence of proof is no proof of
    /// absence.
    SamenessNotShown,
    /// Sameness was claimed; there is a difference.
    NotTheSame,
    /// A difference was claimed; nothing is shown.
    DifferenceNotShown,
    /// A difference was claimed; they are equivalent.
    NoDifference,
    /// A difference was claimed; it goes the other way.
    OtherWay,
    /// No difference was proven; there is one.
    DifferenceMissed,
}

/// Whether a verdict on the same runs speaks against a claim. Sizes are not
/// compared.
pub fn contradicts(claim: Claim, verdict: Verdict) -> Option<Contradiction> {
    use Contradiction::*;
    use Verdict::{Better, Equivalent, Inconclusive, Worse};
    match (claim, verdict) {
        (Claim::Same, Inconclusive) => Some(SamenessNotShown),
        (Claim::Same, Better | Worse) => Some(NotTheSame),
        (Claim::Better { .. } | Claim::Worse { .. }, Inconclusive) => Some(DifferenceNotShown),
        (Claim::Better { .. } | Claim::Worse { .. }, Equivalent) => Some(NoDifference),
        (Claim::Better { .. }, Worse) | (Claim::Worse { .. }, Better) => Some(OtherWay),
        (Claim::NotProven, Better | Worse) => Some(DifferenceMissed),
        (Claim::Same, Equivalent)
        | (Claim::Better { .. }, Better)
        | (Claim::Worse { .. }, Worse)
        | (Claim::NotProven, Equivalent | Inconclusive)
        | (Claim::None, _) => None,
    }
}

/// What today's comparison of the same runs found, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modern<'a> {
    /// The effect, as `+4.5 %`.
    pub effect: &'a str,
    /// Its interval, as `[-1.6 %, +11.0 %]`.
    pub interval: &'a str,
    /// The smallest effect that would have been found, as `8.9 %`.
    pub detectable: &'a str,
}

impl Contradiction {
    /// The contradiction in one sentence without a full stop. `published` is the
    /// claim in its own words.
    pub fn sentence(self, published: &str, modern: Modern) -> String {
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

/// What a sentence claims; nothing where it speaks both ways.
fn of_sentence(sentence: &str) -> Claim {
    let sentence = sentence.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| has_word(&sentence, word));
    let negated = |words: &[&str]| {
        words.iter().any(|word| has_word(&sentence, &format!("no {word}")))
            || words.iter().any(|word| has_word(&sentence, &format!("without {word}")))
    };
    if has(&SAME) || negated(&BETTER) || negated(&WORSE) {
        return Claim::Same;
    }
    match (has(&BETTER), has(&WORSE)) {
        (true, false) => Claim::Better { percent: percent(&sentence).map(f64::abs) },
        (false, true) => Claim::Worse { percent: percent(&sentence).map(|value| -value.abs()) },
        _ => Claim::None,
    }
}

/// Whether the words stand there as such: `again` is no `gain`. What follows
/// may be an ending, as a plural's.
fn has_word(sentence: &str, word: &str) -> bool {
    sentence.match_indices(word).any(|(at, _)| {
        sentence[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric())
    })
}

/// The first number before a `%` that is no confidence and no error.
fn percent(sentence: &str) -> Option<f64> {
    sentence.match_indices('%').find_map(|(at, sign)| {
        if sentence[at + sign.len()..].trim_start().starts_with("confidence") {
            return None;
        }
        let before = sentence[..at].trim_end();
        let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
        let start = before.trim_end_matches(is_of_number).len();
        let is_error = before[..start].trim_end().ends_with("+/-");
        if is_error { None } else { before[start..].parse().ok() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_what_they_claim() {
        for (sentence, claim) in [
            (
                "Same performance (at 95% confidence) with D5330 and fastforwarding mode:",
                Claim::Same,
            ),
            ("No regression with pf", Claim::Same),
            ("Little regression (-3.3% +/- 1.5%) with ipfw", Claim::Worse { percent: Some(-3.3) }),
            ("Little regression ( -2.8% +/- 1%) with pf", Claim::Worse { percent: Some(-2.8) }),
            ("Regression of 5% (at 95% confidence)", Claim::Worse { percent: Some(-5.0) }),
            ("ministat status with ipfw improvement:", Claim::Better { percent: None }),
            ("Better by 12.5 %", Claim::Better { percent: Some(12.5) }),
            ("IPv4:", Claim::None),
            ("Improvement with pf, regression with ipfw", Claim::None),
            ("Once again at 95% confidence", Claim::None),
        ] {
            assert_eq!(of_sentence(sentence), claim, "{sentence}");
        }
    }

    #[test]
    fn absence_of_proof_is_no_proof_of_absence() {
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
    fn a_contradiction_is_one_sentence() {
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
