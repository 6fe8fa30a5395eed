//! README.md and index.html: the analysis laid out by templates.
//!
//! The templates are part of the program. Undefined names are errors, and the
//! HTML is escaped; what comes from an experiment file can't become markup.

use super::analysis::{Analysis, RunSteadiness};
use super::format;
use fwdlab_model::units::format_pps;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

const README: &str = include_str!("../../templates/README.md.jinja");
const AROUND: &str = include_str!("../../templates/around.md.jinja");
const AROUND_HTML: &str = include_str!("../../templates/around.html.jinja");
const VERDICTS: &str = include_str!("../../templates/verdicts.md.jinja");
const COMPARE: &str = include_str!("../../templates/compare.md.jinja");
const HISTORY: &str = include_str!("../../templates/history.md.jinja");
const HTML: &str = include_str!("../../templates/index.html.jinja");
const ARCHIVE: &str = include_str!("../../templates/archive.md.jinja");
const ARCHIVE_HTML: &str = include_str!("../../templates/archive.html.jinja");
const DEVICE: &str = include_str!("../../templates/device.md.jinja");
const DEVICE_HTML: &str = include_str!("../../templates/device.html.jinja");
const PROFILES: &str = include_str!("../../templates/profiles.md.jinja");
const PROFILES_HTML: &str = include_str!("../../templates/profiles.html.jinja");
const STYLE: &str = include_str!("../../templates/style.css");

/// Warnings of one kind that the README spells out; all are in the HTML.
const README_WARNINGS: usize = 5;

/// Runs without a steady state that the README spells out, likewise.
const README_UNSTEADY: usize = 8;

/// The text of `README.md`.
pub(super) fn readme(analysis: &Analysis) -> Result<String, minijinja::Error> {
    environment()?.get_template("README.md")?.render(context! {
        a => Serde(analysis),
        figure_description => analysis.figure.description(),
        shown_warnings => README_WARNINGS,
        unsteady => Serde(unsteady(analysis)),
        shown_unsteady => README_UNSTEADY,
    })
}

/// The text of `index.html`, with the pictures (SVG) inside.
pub(super) fn html(
    analysis: &Analysis,
    graph: &str,
    order: &str,
) -> Result<String, minijinja::Error> {
    environment()?.get_template("index.html")?.render(context! {
        a => Serde(analysis),
        figure_description => analysis.figure.description(),
        unsteady => Serde(unsteady(analysis)),
        graph => inline(graph),
        order => inline(order),
        style => STYLE,
    })
}

/// The runs whose window is not all steady state.
fn unsteady(analysis: &Analysis) -> Vec<&RunSteadiness> {
    analysis.steadiness.iter().filter(|run| run.sentence.is_some()).collect()
}

/// A page in Markdown from one of the templates.
pub(crate) fn render_markdown(name: &str, context: Value) -> Result<String, minijinja::Error> {
    environment()?.get_template(name)?.render(context)
}

fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.set_auto_escape_callback(|name| {
        if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
    });
    environment.add_filter("pps", |rate: Option<f64>| rate.map_or("-".to_owned(), format_pps));
    environment.add_filter("whole", |number: Option<f64>| {
        number.map_or("-".to_owned(), |number| format!("{}", number.round()))
    });
    environment.add_filter("grouped", |number: Option<f64>| {
        number.map_or("-".to_owned(), |number| format::grouped(number.round() as i128))
    });
    environment
        .add_filter("count", |count: Option<i128>| count.map_or("-".to_owned(), format::grouped));
    environment.add_filter("percent", |share: Option<f64>, digits: usize| {
        share.map_or("-".to_owned(), |share| format::percent(share, digits))
    });
    environment.add_filter("signed_percent", |change: Option<f64>, digits: usize| {
        change.map_or("-".to_owned(), |change| format::signed_percent(change, digits))
    });
    environment.add_filter("decimals", |number: Option<f64>, digits: usize| {
        number.map_or("-".to_owned(), |number| format!("{number:.digits$}"))
    });
    environment.add_filter("significant", |number: Option<f64>| {
        number.map_or("-".to_owned(), format::significant)
    });
    environment.add_filter("signed", |number: f64| {
        let sign = if number < 0.0 { "-" } else { "+" };
        format!("{sign}{}", format::significant(number.abs()))
    });
    environment.add_filter("plain", |number: f64| number.to_string());
    environment.add_filter("p_value", format::p_value);
    environment.add_filter("md", |text: String| markdown(&text));
    environment.add_template("README.md", README)?;
    environment.add_template("verdicts.md", VERDICTS)?;
    environment.add_template("around.md", AROUND)?;
    environment.add_template("around.html", AROUND_HTML)?;
    environment.add_template("compare.md", COMPARE)?;
    environment.add_template("archive.md", ARCHIVE)?;
    environment.add_template("device.md", DEVICE)?;
    environment.add_template("device.html", DEVICE_HTML)?;
    environment.add_template("profiles.md", PROFILES)?;
    environment.add_template("profiles.html", PROFILES_HTML)?;
    environment.add_template("archive.html", ARCHIVE_HTML)?;
    environment.add_template("history.md", HISTORY)?;
    environment.add_template("index.html", HTML)?;
    Ok(environment)
}

/// Text that Markdown shows as it is, also inside a table.
fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '<' | '>' | '[' | ']' | '`' | '~' => escaped.extend(['\\', c]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// An SVG document as an element of a page: without its XML declaration.
fn inline(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_text() {
        assert_eq!(markdown("a|b *c*\n<d>"), "a\\|b \\*c\\* \\<d\\>");
        assert_eq!(inline("<?xml version=\"1.0\"?>\n<svg/>"), "<svg/>");
    }
}
