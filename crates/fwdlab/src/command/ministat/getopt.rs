//! getopt(3) of the BSDs: options end at the first operand, letters may be combined, `--` ends the
//! options early.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Next part of a command line, as getopt parses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A letter without an argument.
    Flag(u8),
    /// A letter with its argument.
    Value(u8, &'a OsStr),
    /// An unknown letter.
    Illegal(u8),
    /// A letter whose argument is missing.
    Missing(u8),
    /// A complete long option, without its dashes.
    Long(&'a OsStr),
}

/// Iterator over the options of a command line.
pub(super) struct Getopt<'a> {
    /// Known letters in the syntax of getopt(3): a colon follows each letter that takes an
    /// argument.
    letters: &'static str,
    /// Long options to recognise; the original has none.
    long: &'static [&'static str],
    arguments: &'a [OsString],
    /// Remaining letters of a cluster.
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

    /// Operands after the options, once all options are parsed.
    pub(super) fn operands(&self) -> &'a [OsString] {
        self.arguments
    }

    /// Takes the next argument as the value of a long option.
    pub(super) fn argument(&mut self) -> Option<&'a OsStr> {
        let (first, rest) = self.arguments.split_first()?;
        self.arguments = rest;
        Some(first)
    }

    /// True if a letter takes an argument; `None` if it is unknown.
    fn takes_argument(&self, letter: u8) -> Option<bool> {
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
        match self.takes_argument(letter) {
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
    fn getopt_stops_at_the_first_operand() {
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
