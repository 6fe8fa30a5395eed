//! Terminal output: results on standard output, everything else on standard
//! error. Colours follow `--color`, `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`
//! and are off when the output is not a terminal.

use anstyle::{AnsiColor, Style};
#[cfg(target_os = "linux")]
pub(crate) use fwdlab_results::text::cut;
use fwdlab_results::text::{self, Line, Tone};
use std::io::{self, Write};
use std::num::NonZeroU16;

/// Success, improvement.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Warnings.
pub(crate) const DOUBT: Style = AnsiColor::Yellow.on_default();
/// Failure, regression.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Headings.
pub(crate) const HEADING: Style = Style::new().bold();

/// Width if the output is not a terminal.
const DEFAULT_WIDTH: usize = 80;
/// Minimum width of the layout.
const MIN_WIDTH: usize = 20;

/// The use of colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless the environment specifies otherwise.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes it the choice of the whole program.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::AlwaysAnsi,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Prints results on standard output.
///
/// # Errors
/// Fails if they cannot be written; a broken pipe ends the program quietly.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints a machine-readable value on standard output.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    print(&format!("{value:#}"))
}

/// Prints a note on standard error. A failure to print it is ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    note(&format!("{}: {text}", styled("warning", DOUBT.bold())));
}

/// Prints an error.
pub(crate) fn error(text: &str) {
    note(&format!("{}: {text}", styled("error", BAD.bold())));
}

/// Text in a style.
pub(crate) fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// Lines of an answer, each in the style of its tone.
pub(crate) fn toned(lines: Vec<Line>) -> String {
    let style = |tone| match tone {
        Tone::Plain => None,
        Tone::Heading => Some(HEADING),
        Tone::Better => Some(GOOD),
        Tone::Worse => Some(BAD),
        Tone::Doubt => Some(DOUBT),
    };
    lines
        .into_iter()
        .map(|Line { text, tone }| match style(tone).filter(|_| !text.is_empty()) {
            Some(style) => styled(&text, style) + "\n",
            None => text + "\n",
        })
        .collect()
}

/// Columns of standard output: `COLUMNS` if set, else the terminal's, else 80.
pub(crate) fn width() -> usize {
    width_or(terminal_size::terminal_size_of(io::stdout()))
}

/// Columns of standard error.
pub(crate) fn width_of_stderr() -> usize {
    width_or(terminal_size::terminal_size_of(io::stderr()))
}

fn width_or(size: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<NonZeroU16>().ok());
    let width = match (columns, size) {
        (Some(columns), _) => usize::from(columns.get()),
        (None, Some((terminal_size::Width(columns), _))) if columns > 0 => usize::from(columns),
        _ => DEFAULT_WIDTH,
    };
    width.max(MIN_WIDTH)
}

/// A paragraph as lines of at most `width` columns, all but the first indented; longer words stay
/// whole. Styles take no columns.
pub(crate) fn wrap(paragraph: &str, width: usize, indent: &str) -> String {
    text::wrap(paragraph, width, indent).into_iter().map(|line| line + "\n").collect()
}

/// A human-readable duration: `800 ms`, `1.2 s`, `45 s`, `3 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        _ if whole < 60 => format!("{whole} s"),
        _ if whole < 3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_short() {
        let shown = [0, 8e8 as u64, 1_200_000_000, 45_000_000_000, 185_000_000_000].map(duration);
        assert_eq!(shown, ["0 ms", "800 ms", "1.2 s", "45 s", "3 min 5 s"]);
        assert_eq!(duration(7_810_000_000_000), "2 h 10 min");
        assert_eq!(duration(59_600_000_000), "1 min 0 s");
    }
}
