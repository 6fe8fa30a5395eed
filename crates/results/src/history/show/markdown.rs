//! The history as a page in Markdown.

use super::text::{odd, status};
use super::{CAUTION, totals};
use crate::history::results::History;
use crate::report::render_markdown;
use minijinja::value::Serde;

/// A page with the summary, and for each series its figure (a file of `figures`,
/// in the order of the series; none leaves them out), changes and points.
///
/// # Errors
/// Never for a history that was made by this crate, unless a template is broken.
pub fn markdown(history: &History, figures: &[String]) -> Result<String, minijinja::Error> {
    let status: Vec<String> = history.series.iter().map(status).collect();
    let odd: Vec<Vec<String>> =
        history.series.iter().map(|series| series.apart.iter().map(odd).collect()).collect();
    let context = minijinja::context! {
        h => Serde(history),
        figures => Serde(figures),
        status => status,
        odd => odd,
        totals => totals(history),
        caution => CAUTION,
    };
    render_markdown("history.md", context)
}
