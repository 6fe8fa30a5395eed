//! getopt(3) of the BSDs: options end at the first operand, letters may stand
//! together, `--` ends them early.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What getopt makes of the next part of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A letter without an argument.
    Flag(u8),
    /// A letter with its argument.
    Value(u8, &'a OsStr),
    /// A letter that isn't known.
    Illegal(u8),
    /// A letter whose argument is missing.
    Missing(u8),
    /// A long option as a whole, without its dashes.
    Long(&'a OsStr),
}

/// The options of a command line, one after the other.
pub(super) struct Getopt<'a> {
    /// As getopt(3) takes them: each known letter, followed by a colon if it
    /// wants an argument.
    letters: &'static str,
    /// Long options that are recognised; the original has none.
    long: &'static [&'static str],
    arguments: &'a [OsString],
    /// What is left of a cluster of letters.
    cluster: &'a [u8],
}

impl<'a> Getopt<'a> {
    pub(super) fn new(
        letters: &'static str,
        long: &'static [&'static str],
        arguments: &'a [OsString],
    ) -> Getopt<'a> {
        Getopt { letters, long, arguments, cluster: &[] }
    }

    /// What follows the options, once there are no more of them.
    pub(super) fn operands(&self) -> &'a [OsString] {
        self.arguments
    }

    /// The argument that a long option takes after a blank.
    pub(super) fn argument(&mut self) -> Option<&'a OsStr> {
        let (first, rest) = self.arguments.split_first()?;
        self.arguments = rest;
        Some(first)
    }

    /// Whether a letter is known, and whether it wants an argument.
    fn wants_argument(&self, letter: u8) -> Option<bool> {
        let letters = self.letters.as_bytes();
        let at = letters.iter().position(|&known| known == letter && letter != b':')?;
        Some(letters.get(at + 1) == Some(&b':'))
    }
}

impl<'a> Iterator for Getopt<'a> {
    type Item = Parsed<'a>;

    fn next(&mut self) -> Option<Parsed<'a>> {
        if self.cluster.is_empty() {
            let first = self.arguments.first()?.as_bytes();
            let letters = first.strip_prefix(b"-").filter(|letters| !letters.is_empty())?;
            self.arguments = &self.arguments[1..];
            if letters == b"-" {
                return None;
            }
            if let Some(name) = letters.strip_prefix(b"-") {
                let stem = name.split(|&byte| byte == b'=').next().unwrap_or_default();
                if self.long.iter().any(|known| known.as_bytes() == stem) {
                    return Some(Parsed::Long(OsStr::from_bytes(name)));
                }
            }
            self.cluster = letters;
        }
        let (&letter, rest) = self.cluster.split_first()?;
        self.cluster = rest;
        match self.wants_argument(letter) {
            None => Some(Parsed::Illegal(letter)),
            Some(false) => Some(Parsed::Flag(letter)),
            Some(true) if !rest.is_empty() => {
                self.cluster = &[];
                Some(Parsed::Value(letter, OsStr::from_bytes(rest)))
            }
            Some(true) => Some(match self.argument() {
                Some(argument) => Parsed::Value(letter, argument),
                None => Parsed::Missing(letter),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> (Vec<String>, Vec<String>) {
        let arguments: Vec<OsString> = line.iter().map(OsString::from).collect();
        let mut options = Getopt::new("nqc:", &["help"], &arguments);
        let seen = options.by_ref().map(|parsed| match parsed {
            Parsed::Flag(letter) => format!("{}", char::from(letter)),
            Parsed::Value(letter, value) => format!("{}={}", char::from(letter), value.display()),
            Parsed::Illegal(letter) => format!("illegal {}", char::from(letter)),
            Parsed::Missing(letter) => format!("missing {}", char::from(letter)),
            Parsed::Long(name) => format!("long {}", name.display()),
        });
        let seen = seen.collect();
        let operands = options.operands().iter().map(|o| o.display().to_string()).collect();
        (seen, operands)
    }

    #[test]
    fn parsing_stops_at_the_first_operand() {
        for (line, options, operands) in [
            (&["-n", "a", "-q"][..], &["n"][..], &["a", "-q"][..]),
            (&["-n", "-", "-q"], &["n"], &["-", "-q"]),
            (&["-n", "--", "-q"], &["n"], &["-q"]),
            (
                &["-nq", "-c80", "-c", "90", "-nc", "95"],
                &["n", "q", "c=80", "c=90", "n", "c=95"],
                &[],
            ),
            (&["-c", "--", "x"], &["c=--"], &["x"]),
            (&["-c"], &["missing c"], &[]),
            (&["-zn"], &["illegal z", "n"], &[]),
            (&["-:"], &["illegal :"], &[]),
            (&["--no"], &["illegal -", "n", "illegal o"], &[]),
            (&["--help", "--help=x", "--helpx"], &["long help", "long help=x", "illegal -"], &[]),
            (&["", "-n"], &[], &["", "-n"]),
        ] {
            let (seen, rest) = parse(line);
            assert!(seen.starts_with(&options.map_string()), "{line:?}: {seen:?}");
            assert_eq!(rest, operands.map_string(), "{line:?}");
        }
    }

    trait MapString {
        fn map_string(&self) -> Vec<String>;
    }

    impl MapString for [&str] {
        fn map_string(&self) -> Vec<String> {
            self.iter().map(ToString::to_string).collect()
        }
    }
}
