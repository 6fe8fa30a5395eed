//! The command line of ministat: its options, and the messages for invalid ones.

use super::Failure;
use super::getopt::{Getopt, Parsed};
use fwdlab_results::stats::ministat::{
    CONFIDENCES, Generation, MAX_SETS, Options, ReadOptions, number,
};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

const LETTERS: &str = "AC:c:d:snqw:";
/// Long options of fwdlab: the original has none.
const LONG: &[&str] = &["generation", "help"];

/// Request of a command line.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// The help, which the original lacks.
    Help,
    /// Statistics as text.
    Text {
        /// Options of the output; their width is set later.
        options: Options,
        /// The width; `None` if it is not given.
        width: Option<i32>,
        /// Location of the values.
        columns: ReadOptions,
        /// The files; empty for standard input.
        files: Vec<OsString>,
    },
}

impl Request {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// The first mistake, with the original's message and the usage.
    pub(super) fn parse(arguments: &[OsString]) -> Result<Request, Failure> {
        // The known letters depend on the generation.
        let generation = generation(arguments)?;
        let usage = |message: &str| Failure::usage(message, generation);
        let mut text = Options { generation, ..Options::default() };
        let mut columns = ReadOptions { generation, ..ReadOptions::default() };
        let (mut width, mut confidence) = (None, None);
        let mut options = Getopt::new(LETTERS, LONG, arguments);
        while let Some(parsed) = options.next() {
            match parsed {
                Parsed::Flag(b'A') => text.no_plot = true,
                Parsed::Flag(b'n') => (text.no_plot, text.no_tests) = (true, true),
                Parsed::Flag(b's') => text.separate_bars = true,
                Parsed::Flag(b'q') if generation >= Generation::Fbsd14 => text.quiet = true,
                Parsed::Value(b'C', value) => {
                    let column = integer(value).ok_or_else(|| usage("Invalid column number."))?;
                    columns.column = usize::try_from(column)
                        .ok()
                        .filter(|&column| column > 0)
                        .ok_or_else(|| usage("Column number should be positive."))?;
                }
                Parsed::Value(b'c', value) => {
                    let value = float(value).ok_or_else(|| usage("Not a floating point number"))?;
                    // An unsupported level after a supported one changes nothing.
                    confidence = CONFIDENCES.into_iter().find(|&c| c == value).or(confidence);
                    text.confidence =
                        confidence.ok_or_else(|| usage("No support for confidence level"))?;
                }
                Parsed::Value(b'd', value) => {
                    if value.is_empty() {
                        return Err(usage("Can't use empty delimiter string"));
                    }
                    columns.delimiters = value.as_bytes().to_vec();
                }
                Parsed::Value(b'w', value) => {
                    let given =
                        integer(value).ok_or_else(|| usage("Invalid width, not a number."))?;
                    if given < 0 {
                        return Err(usage("Unable to move beyond left margin."));
                    }
                    width = Some(given);
                }
                Parsed::Long(name) if name == "help" => return Ok(Request::Help),
                // Already parsed by `generation`: skipped here.
                Parsed::Long(name) if name.as_bytes().contains(&b'=') => {}
                Parsed::Long(_) => {
                    let _ = options.argument();
                }
                Parsed::Flag(letter) | Parsed::Value(letter, _) | Parsed::Illegal(letter) => {
                    return Err(unknown(b"illegal option", letter, generation));
                }
                Parsed::Missing(letter) => {
                    return Err(unknown(b"option requires an argument", letter, generation));
                }
            }
        }
        let files = options.operands().to_vec();
        if files.len() > MAX_SETS {
            return Err(usage("Too many datasets."));
        }
        Ok(Request::Text { options: text, width, columns, files })
    }
}

/// The generation that the options select, the last one if there are several.
fn generation(arguments: &[OsString]) -> Result<Generation, Failure> {
    let mut generation = Generation::default();
    let mut options = Getopt::new(LETTERS, LONG, arguments);
    while let Some(parsed) = options.next() {
        let Parsed::Long(name) = parsed else { continue };
        let Some(rest) = name.as_bytes().strip_prefix(b"generation") else { continue };
        let value = match rest.strip_prefix(b"=") {
            Some(value) => Some(OsStr::from_bytes(value)),
            None => options.argument(),
        };
        let known = value.and_then(OsStr::to_str).and_then(Generation::by_name);
        generation = known.ok_or_else(|| {
            let names = Generation::ALL.map(Generation::name).join(", ");
            let message = format!("--generation is one of {names}");
            Failure::usage(&message, Generation::default())
        })?;
    }
    Ok(generation)
}

/// getopt's own message, followed by the program's.
fn unknown(what: &[u8], letter: u8, generation: Generation) -> Failure {
    let line = [b"ministat: ", what, b" -- ", &[letter], b"\nUnknown option"].concat();
    Failure::usage_of_bytes(&line, generation)
}

/// Parses a complete text as strtod(3) does; the empty text is 0.
fn float(text: &OsStr) -> Option<f64> {
    if text.is_empty() { Some(0.0) } else { number(text.as_bytes()) }
}

/// Parses a complete text as strtol(3) does in base 10. The original keeps the lower half of a
/// long.
fn integer(text: &OsStr) -> Option<i32> {
    let (value, rest) = leading_integer(text.as_bytes());
    rest.is_empty().then_some(value)
}

/// Parses the beginning of a text as strtol(3) does; returns the value and the rest.
pub(super) fn leading_integer(text: &[u8]) -> (i32, &[u8]) {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let (negative, digits) = match text[start..].split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, &text[start..]),
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return (0, text);
    }
    let value = digits[..count].iter().fold(0i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        value.saturating_mul(10).saturating_add(if negative { -digit } else { digit })
    });
    (value as i32, &digits[count..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Request, Failure> {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        Request::parse(&arguments)
    }

    /// Standard error for an invalid line.
    fn refusal(line: &[&str]) -> String {
        match parse(line) {
            Err(Failure { status: 2, message }) => String::from_utf8(message).unwrap(),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn parse_reads_options_like_the_original() {
        let line = ["-sAqw40", "-C", " +2", "-c0x5f", "-d", ",;", "a", "-n"];
        let Ok(Request::Text { options, width, columns, files }) = parse(&line) else {
            panic!("not understood")
        };
        assert!(options.separate_bars && options.no_plot && options.quiet && !options.no_tests);
        assert_eq!((width, columns.column, options.confidence), (Some(40), 2, 95.0));
        assert_eq!(columns.delimiters, b",;");
        assert_eq!(files, ["a", "-n"]);
    }

    #[test]
    fn parse_keeps_the_last_supported_confidence() {
        let confidence = |line: &[&str]| match parse(line) {
            Ok(Request::Text { options, .. }) => options.confidence,
            other => panic!("{other:?}"),
        };
        assert_eq!(confidence(&["-c", "80", "-c", "97"]), 80.0);
        assert_eq!(confidence(&["-c", "80", "-c", "9.9e1"]), 99.0);
        assert!(
            refusal(&["-c", "97", "-c", "80"]).starts_with("No support for confidence level\n")
        );
    }

    #[test]
    fn parse_reports_mistakes_like_the_original() {
        for (line, message) in [
            (&["-C", "1x"][..], "Invalid column number."),
            (&["-C", " "], "Invalid column number."),
            (&["-C", ""], "Column number should be positive."),
            (&["-C-1"], "Column number should be positive."),
            (&["-c", "x"], "Not a floating point number"),
            (&["-c", ""], "No support for confidence level"),
            (&["-d", ""], "Can't use empty delimiter string"),
            (&["-w", "10x"], "Invalid width, not a number."),
            (&["-w", "-1"], "Unable to move beyond left margin."),
            (&["-h"], "ministat: illegal option -- h\nUnknown option"),
            (&["-nw"], "ministat: option requires an argument -- w\nUnknown option"),
            (&["a", "b", "c", "d", "e", "f", "g", "h"], "Too many datasets."),
        ] {
            let stderr = refusal(line);
            let usage = "\nUsage: ministat [-C column] [-c confidence] [-d delimiter(s)] [-Anqs] ";
            assert!(stderr.starts_with(&format!("{message}{usage}")), "{line:?}: {stderr}");
        }
    }

    #[test]
    fn parse_accepts_the_letters_of_the_generation() {
        let stderr = refusal(&["-q", "--generation", "fbsd12"]);
        assert!(stderr.starts_with("ministat: illegal option -- q\nUnknown option\n"), "{stderr}");
        assert!(stderr.contains(" [-Ans] ") && !stderr.contains("-q :"), "{stderr}");
        let stderr = refusal(&["--generation=fbsd15", "-z"]);
        assert!(stderr.contains("Usage: ministat [-Anqs] [-C column] "), "{stderr}");
        assert!(refusal(&["--generation=fbsd9"]).starts_with("--generation is one of fbsd10, "));
        assert!(refusal(&["--generation"]).starts_with("--generation is one of fbsd10, "));
        let late = parse(&["a", "--generation", "fbsd9"]);
        assert!(matches!(late, Ok(Request::Text { files, .. }) if files.len() == 3));
    }

    #[test]
    fn integer_parses_like_strtol() {
        for (text, value) in [
            ("", Some(0)),
            ("\t-7", Some(-7)),
            ("4294967298", Some(2)),
            ("99999999999999999999", Some(-1)),
            ("- 7", None),
            ("+", None),
            ("0x10", None),
        ] {
            assert_eq!(integer(OsStr::new(text)), value, "{text:?}");
        }
    }
}
