//! The published ministat blocks, reproduced from the logs, and contradictions between the modern
//! analysis and the text above them.

use super::contradictions::{Modern, contradicts};
use crate::report::analysis::comparisons::{Answer, Compared, Outcome};
use crate::store::{Claim, Likeness, ReproducedBlock};
use serde::Serialize;

/// A published block and how far the logs reproduce it.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedBlock {
    /// The text above it.
    pub heading: String,
    /// Its line in the published text.
    pub line: usize,
    /// The block printed from the logs' values; as published if its sets are not among the
    /// variants.
    pub text: String,
    /// True if it equals the published block to the byte, except spaces in place of tabs.
    pub exact: bool,
    /// The result, in one sentence.
    pub sentence: String,
    /// Contradictions by the modern analysis.
    pub contradicted: Vec<Contradicted>,
}

/// A published claim that these runs don't support.
#[derive(Clone, Debug, Serialize)]
pub struct Contradicted {
    /// The variant of the claim, and its baseline.
    pub label: String,
    /// Reason, in one sentence with the numbers.
    pub sentence: String,
}

/// Builds the published blocks, with contradictions between their claims and the comparisons.
pub(super) fn blocks(
    reproduced: &[ReproducedBlock],
    comparisons: &[Compared],
) -> Vec<PublishedBlock> {
    let published = |block: &ReproducedBlock| PublishedBlock {
        heading: block.heading.clone(),
        line: block.line,
        text: block.text.clone(),
        exact: block.likeness == Likeness::Equal,
        sentence: block.sentence.clone(),
        contradicted: contradictions(block, comparisons),
    };
    reproduced.iter().map(published).collect()
}

/// Finds contradictions between the verdicts on the members of a block and its words or tests.
fn contradictions(block: &ReproducedBlock, comparisons: &[Compared]) -> Vec<Contradicted> {
    let claims = &block.claims;
    let Some((Some(reference), others)) = block.members.split_first() else { return Vec::new() };
    let mut contradicted = Vec::new();
    for (at, member) in others.iter().enumerate() {
        let Some(compared) = comparisons
            .iter()
            .find(|compared| Some(compared.variant) == *member && compared.baseline == *reference)
        else {
            continue;
        };
        let Outcome::Compared(answer) = &compared.outcome else { continue };
        let by_test = claims.sets.get(at).copied().unwrap_or(Claim::None);
        // The heading applies to the whole block, a test to its set.
        let heading = (claims.heading, quoted(&block.heading));
        let test = (by_test, tested(by_test));
        let label = format!("{} against {}", compared.label, compared.baseline_label);
        for (claim, words) in [heading, test] {
            if let Some(against) = contradicts(claim, answer.verdict) {
                contradicted.push(Contradicted {
                    label: label.clone(),
                    sentence: against.sentence(&words, modern(answer)),
                });
                break;
            }
        }
    }
    contradicted
}

fn modern(answer: &Answer) -> Modern<'_> {
    Modern {
        effect: &answer.shown.effect,
        interval: &answer.shown.interval,
        detectable: &answer.shown.mde,
    }
}

fn quoted(heading: &str) -> String {
    heading.trim().trim_end_matches(':').to_owned()
}

fn tested(claim: Claim) -> String {
    match claim {
        Claim::Better { percent: Some(percent) } | Claim::Worse { percent: Some(percent) } => {
            format!("Difference at 95.0% confidence: {percent}%")
        }
        _ => "Difference at 95.0% confidence".to_owned(),
    }
}
