//! Claims that a README makes in words.

use super::{Block, Difference};
use fwdlab_results::store::{Claim, Claims};

/// Words that claim an improvement.
const BETTER: [&str; 7] =
    ["improvement", "improved", "faster", "performance increase", "gain", "better", "boost"];
/// Words that claim a degradation.
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
/// Words that claim equality.
const SAME: [&str; 6] =
    ["same performance", "no difference", "no impact", "no change", "identical", "equivalent"];

/// Returns the claims of a block.
pub fn claims(block: &Block) -> Claims {
    let set_claim = |set: &super::SetLine| match &set.difference {
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
        heading: sentence_claim(&block.heading),
        sets: block.sets.iter().skip(1).map(set_claim).collect(),
    }
}

/// Returns the claim of a sentence; `Claim::None` if it claims both directions.
fn sentence_claim(sentence: &str) -> Claim {
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

/// Returns true if the sentence contains a word that starts with `word`: `gains` matches `gain`,
/// `again` does not.
fn has_word(sentence: &str, word: &str) -> bool {
    sentence.match_indices(word).any(|(at, _)| {
        sentence[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric())
    })
}

/// Returns the first number before a `%` that is neither a confidence nor an error.
fn percent(sentence: &str) -> Option<f64> {
    sentence.match_indices('%').find_map(|(at, sign)| {
        if sentence[at + sign.len()..].trim_start().starts_with("confidence") {
            return None;
        }
        let before = sentence[..at].trim_end();
        let is_number_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
        let start = before.trim_end_matches(is_number_part).len();
        let is_error = before[..start].trim_end().ends_with("+/-");
        if is_error { None } else { before[start..].parse().ok() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_claim_follows_its_words() {
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
            assert_eq!(sentence_claim(sentence), claim, "{sentence}");
        }
    }
}
