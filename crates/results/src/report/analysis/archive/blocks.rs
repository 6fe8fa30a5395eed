//! The published ministat blocks, made again from the logs, and where the modern
//! analysis speaks against what was written above them.

use crate::archive::published::{
    Block, Claim, Modern, Outcome as Printed, Readme, claims, contradicts, reproduce,
};
use crate::report::analysis::comparisons::{Answer, Compared, Outcome};
use crate::store::{DocumentKind, Import};
use serde::Serialize;

/// A published block and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedBlock {
    /// The text above it.
    pub heading: String,
    /// Its line in the published text.
    pub line: usize,
    /// The block as it is printed from the logs' values; as published where its
    /// sets are not among the variants.
    pub text: String,
    /// True when it is equal to the published one to the byte, blanks that stand
    /// for tabs aside.
    pub exact: bool,
    /// What came of it, in one sentence.
    pub sentence: String,
    /// Where the modern analysis speaks against it.
    pub contradicted: Vec<Contradicted>,
}

/// A published claim that these runs don't bear out.
#[derive(Clone, Debug, Serialize)]
pub struct Contradicted {
    /// The variant that it is about, and its baseline.
    pub label: String,
    /// Why, in one sentence with the numbers.
    pub sentence: String,
}

/// All blocks of the published text. `values` are the variants' figures by the
/// archive's rule, in the order of the published lists.
pub(super) fn blocks(
    import: &Import,
    values: &[Vec<f64>],
    comparisons: &[Compared],
) -> Vec<PublishedBlock> {
    let groups = &import.about.groups;
    let variants: Vec<(&str, &[f64])> =
        groups.iter().zip(values).map(|(g, v)| (g.name.as_str(), v.as_slice())).collect();
    let readmes = import.documents.iter().filter(|d| d.kind == DocumentKind::Readme);
    readmes
        .flat_map(|document| Readme::parse(&String::from_utf8_lossy(&document.content)).blocks)
        .map(|block| published(&block, &variants, comparisons))
        .collect()
}

fn published(
    block: &Block,
    variants: &[(&str, &[f64])],
    comparisons: &[Compared],
) -> PublishedBlock {
    let found = reproduce(block, variants);
    let (exact, text, sentence) = match found.outcome {
        Printed::Exact { generations, text } => {
            let names: Vec<String> =
                generations.iter().map(|generation| generation.name().to_owned()).collect();
            let sentence = format!(
                "Equal to the published block to the byte, as ministat of {} prints it.",
                names.join(", ")
            );
            (true, text, sentence)
        }
        Printed::Differs { generation, text, first_difference, same_lines, lines } => {
            let shown = |line: Option<String>| line.unwrap_or_else(|| "(nothing)".to_owned());
            let sentence = format!(
                "Not equal: {same_lines} of {lines} published lines come out; closest is ministat \
                 of {}; in line {} there is \"{}\" where \"{}\" was published.",
                generation.name(),
                first_difference.line,
                shown(first_difference.computed).trim(),
                shown(first_difference.published).trim()
            );
            (false, text, sentence)
        }
        Printed::Unmatched { sets } => {
            let legends: Vec<&str> =
                sets.iter().filter_map(|set| Some(block.legends.get(*set)?.as_str())).collect();
            let sentence = format!(
                "As published: these sets are not among the variants of this import: {}.",
                legends.join(", ")
            );
            (false, block.text.clone() + "\n", sentence)
        }
        Printed::Unprintable(error) => {
            (false, block.text.clone() + "\n", format!("As published: {error}."))
        }
    };
    PublishedBlock {
        heading: block.heading.clone(),
        line: block.line,
        text,
        exact,
        sentence,
        contradicted: contradictions(block, &found.members, comparisons),
    }
}

/// Where the verdicts on the members of a block speak against its words or its
/// tests.
fn contradictions(
    block: &Block,
    members: &[Option<usize>],
    comparisons: &[Compared],
) -> Vec<Contradicted> {
    let claims = claims(block);
    let Some((Some(reference), others)) = members.split_first() else { return Vec::new() };
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
        // The sentence above stands for the block; its tests for each set.
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
