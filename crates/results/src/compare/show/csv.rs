//! The answer as a table for spreadsheets (RFC 4180, lines end in LF).

use crate::compare::Results;
use crate::report::analysis::Outcome;
use crate::report::csv_line;

const HEADER: [&str; 20] = [
    "baseline",
    "candidate",
    "ratio",
    "low",
    "high",
    "p",
    "p_adjusted",
    "n_baseline",
    "n_candidate",
    "blocks",
    "left_out",
    "mde",
    "confidence",
    "margin",
    "family",
    "adjustment",
    "method",
    "scope",
    "verdict",
    "reason",
];

/// A line per comparison: ratios of rates, candidate over baseline. One without
/// an answer has its reason and no numbers.
pub fn csv(results: &Results) -> String {
    let mut text = csv_line(HEADER.map(str::to_owned));
    for compared in &results.comparisons {
        let mut fields = vec![compared.baseline_label.clone(), compared.label.clone()];
        match &compared.outcome {
            Outcome::Compared(answer) => {
                let c = &answer.comparison;
                // Digits as in JSON, and a p-value of 1e-9 stays one.
                fields.extend([c.ratio, c.low, c.high, c.p, c.p_adjusted].map(number));
                fields.extend([c.n_a, c.n_b, c.blocks, c.left_out].map(|n| n.to_string()));
                fields.extend([c.mde, c.confidence, c.margin].map(number));
                fields.extend([
                    c.family.to_string(),
                    c.adjustment.to_string(),
                    c.method.to_string(),
                    c.scope.to_string(),
                    answer.verdict.to_string(),
                    String::new(),
                ]);
            }
            Outcome::Unanswerable { reason } => {
                fields.resize(HEADER.len() - 1, String::new());
                fields.push(reason.clone());
            }
        }
        text.push_str(&csv_line(fields));
    }
    text
}

fn number(value: f64) -> String {
    format!("{value:.9e}").parse::<f64>().map_or(String::new(), |rounded| rounded.to_string())
}
