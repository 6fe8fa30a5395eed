//! The answer as Markdown, with the table of verdicts that reports have.

use crate::compare::Results;
use crate::report::render_markdown;

/// Heading, notes, figures and verdicts.
///
/// # Errors
/// Never for an answer that was made by this crate, unless a template is broken.
pub fn markdown(results: &Results) -> Result<String, minijinja::Error> {
    let figure = results.figure.map(|figure| figure.description());
    render_markdown(
        "compare.md",
        minijinja::context! {
            a => minijinja::value::Serde(results),
            figure_description => figure,
        },
    )
}
