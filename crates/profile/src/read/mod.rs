//! Reads profiles: detects the format by content, with one file per format.
//!
//! Readers skip lines that they cannot parse: they count them and keep the first ones with their
//! numbers. A truncated file is read to its end, with a remark. Lines of another format are an
//! error: reading them would silently sum two profiles.

mod bpftrace;
mod detect;
mod dtrace;
mod error;
mod folded;
mod gprof;
mod perf;
mod perf_header;
mod pmcstat;
mod svg;
mod svg_elements;

use super::flat::FlatProfile;
use super::samples::{Samples, Weight};
use super::stacks::Stacks;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

pub use error::ProfileError;

/// Formats of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `root;caller;function 12`, the output of stackcollapse scripts and inferno.
    Folded,
    /// `perf script` of Linux.
    PerfScript,
    /// Call graphs of FreeBSD's `pmcstat -G`.
    PmcstatGraph,
    /// Flat profile and call graph of gprof(1), as for the output of `pmcstat -g`.
    Gprof,
    /// Aggregations of stacks from DTrace.
    Dtrace,
    /// Maps of stacks from bpftrace.
    Bpftrace,
    /// A flame graph from flamegraph.pl or inferno.
    FlameGraph,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Folded => "folded stacks",
            Format::PerfScript => "text of perf script",
            Format::PmcstatGraph => "a call graph of pmcstat -G",
            Format::Gprof => "text of gprof",
            Format::Dtrace => "stacks of DTrace",
            Format::Bpftrace => "stacks of bpftrace",
            Format::FlameGraph => "a flame graph (SVG)",
        })
    }
}

/// A parsed profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Input format.
    pub format: Format,
    /// Samples, stacks or functions.
    pub content: Content,
    /// Unit of the counts, in the plural: `samples` unless the file specifies another.
    pub unit: String,
    /// Lines that could not be parsed.
    pub unknown: Unknown,
    /// Remarks for the user: truncated, omitted or estimated data.
    pub remarks: Vec<String>,
}

/// Content of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Samples with stack, time and CPU.
    Samples(Samples),
    /// Stacks with counts.
    Stacks(Stacks),
    /// Functions and the calls between them, without stacks.
    Flat(FlatProfile),
}

/// Lines that a reader could not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// Number of lines.
    pub count: usize,
    /// The first lines: number (from 1) and beginning of the text.
    pub first: Vec<(usize, String)>,
}

impl Profile {
    /// Stacks, each sample counting as one. `None` if the profile has only functions.
    pub fn stacks(&self) -> Option<Cow<'_, Stacks>> {
        match &self.content {
            Content::Samples(samples) => Some(Cow::Owned(samples.stacks(Weight::Sample))),
            Content::Stacks(stacks) => Some(Cow::Borrowed(stacks)),
            Content::Flat(_) => None,
        }
    }
}

/// Reads a profile in any of the formats.
///
/// Fails for bytes that are not a profile, lines of two formats, and a profile without samples.
pub fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
    refuse_binary(bytes)?;
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let format = detect::format(text).ok_or(ProfileError::Unrecognised)?;
    let mut notes = Notes::new(format);
    let content = match format {
        Format::Folded => Content::Stacks(folded::read(text, &mut notes)),
        Format::PerfScript => Content::Samples(perf::read(text, &mut notes)),
        Format::PmcstatGraph => Content::Stacks(pmcstat::read(text, &mut notes)),
        Format::Gprof => Content::Flat(gprof::read(text, &mut notes)),
        Format::Dtrace => Content::Stacks(dtrace::read(text, &mut notes)),
        Format::Bpftrace => Content::Stacks(bpftrace::read(text, &mut notes)),
        Format::FlameGraph => Content::Stacks(svg::read(text, &mut notes)),
    };
    let empty = match &content {
        Content::Samples(samples) => samples.is_empty(),
        Content::Stacks(stacks) => stacks.is_empty(),
        Content::Flat(flat) => flat.functions.is_empty(),
    };
    // Reported first, because mixed formats can be the reason for an empty result.
    if let Some((line, other)) = notes.foreign {
        return Err(ProfileError::Mixed { line, format, other });
    }
    if empty {
        return Err(ProfileError::Empty { format });
    }
    if format != Format::FlameGraph && !text.ends_with('\n') {
        notes.remark("the last line has no line feed: the file may be cut off there");
    }
    let Notes { unit, unknown, remarks, .. } = notes;
    Ok(Profile { format, content, unit, unknown, remarks })
}

fn refuse_binary(bytes: &[u8]) -> Result<(), ProfileError> {
    const BINARY: [(&[u8], &str, &str); 4] = [
        (b"PERFILE2", "perf.data", "write it as text: perf script -i FILE"),
        (b"\x1f\x8b", "compressed by gzip", "decompress it: gzip -dc FILE"),
        (b"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it: zstd -dc FILE"),
        (b"gmon", "gmon.out of gprof", "write it as text: gprof PROGRAM FILE"),
    ];
    match BINARY.into_iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        Some((_, what, next)) => Err(ProfileError::Binary { what, next }),
        None => Ok(()),
    }
}

/// A reader's output in addition to its result.
#[derive(Debug)]
struct Notes {
    format: Format,
    unit: String,
    unknown: Unknown,
    remarks: Vec<String>,
    /// First line that belongs to another format.
    foreign: Option<(usize, Format)>,
}

impl Notes {
    fn new(format: Format) -> Notes {
        let (unknown, remarks) = (Unknown::default(), Vec::new());
        Notes { format, unit: "samples".to_owned(), unknown, remarks, foreign: None }
    }

    /// Counts a line that could not be parsed; `number` from 1.
    fn unknown(&mut self, number: usize, line: &str) {
        /// Number of lines kept, enough to recognise their kind.
        const KEPT: usize = 5;
        const KEPT_CHARS: usize = 60;
        self.unknown.count += 1;
        if self.unknown.first.len() < KEPT {
            let start = line.trim().chars().take(KEPT_CHARS).collect();
            self.unknown.first.push((number, start));
        }
        if self.foreign.is_none() {
            let other = detect::signature(line).filter(|other| *other != self.format);
            self.foreign = other.map(|other| (number, other));
        }
    }

    fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }
}

/// Lines with their numbers, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Removes the offset from a symbol: `ip_rcv+0x4f`, `ip_rcv+79`.
fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once('+') {
        Some((name, offset)) if !name.is_empty() => {
            let digits = offset.strip_prefix("0x").unwrap_or(offset);
            let is_offset = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
            if is_offset { name } else { symbol }
        }
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_offset_strips_only_offsets() {
        for (symbol, name) in [
            ("ip_rcv+0x4f", "ip_rcv"),
            ("ip_rcv+79", "ip_rcv"),
            ("ip_rcv", "ip_rcv"),
            ("+0x4f", "+0x4f"),
            ("operator+", "operator+"),
            ("a+size", "a+size"),
        ] {
            assert_eq!(without_offset(symbol), name);
        }
    }

    #[test]
    fn read_rejects_other_text_and_binaries() {
        for text in ["", "\n\n", "1000000\n1010000\n", "# a comment\n", "version = \"x\"\n"] {
            assert_eq!(read(text.as_bytes()), Err(ProfileError::Unrecognised), "{text:?}");
        }
        let binary = read(b"PERFILE2\0\0").unwrap_err().to_string();
        assert!(binary.contains("perf script -i FILE"), "{binary}");
        assert!(matches!(read(b"a;b 0\n"), Err(ProfileError::Empty { format: Format::Folded })));
    }

    #[test]
    fn read_rejects_mixed_formats_with_the_line() {
        let perf = "sh 1 [000] 2.5:  1 cycles: \n\t  ffff81 ip_rcv+0x1 ([kernel])\n\n";
        let folded = "a;b 1\na;c 2\n";
        let error = read(format!("{perf}{folded}").as_bytes()).unwrap_err();
        assert_eq!(error.line(), Some(4));
        assert!(error.to_string().contains("line 4: looks like folded stacks"), "{error}");
        let error = read(format!("{folded}{perf}").as_bytes()).unwrap_err();
        assert_eq!(error.line(), Some(3));
    }

    proptest! {
        #[test]
        fn read_never_panics_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn read_never_panics_on_pieces_of_profiles(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
            junk in "\\PC{0,6}",
        ) {
            let text = pieces.join("") + &junk;
            let profile = read(text.as_bytes());
            if let Some(stacks) = profile.as_ref().ok().and_then(Profile::stacks) {
                prop_assert!(stacks.total() > 0);
                // The result survives writing and reading again, below an extra root, because the
                // pieces may make a root look like anything.
                let folded: String =
                    stacks.folded().lines().map(|line| format!("r;{line}\n")).collect();
                let again = read(folded.as_bytes()).unwrap();
                prop_assert_eq!(again.stacks().unwrap().total(), stacks.total());
            }
        }
    }

    const PIECES: &[&str] = &[
        "a;b 3\n",
        "a;b",
        " 12",
        "sh 1 [000] 2.5:  1 cycles: ",
        "\n",
        "\t  ffff81 f+0x1 (k)\n",
        "@ EVENT [4 samples]\n\n",
        "50.00%  [2]   f @ /k\n",
        " 100.0%  [2]    g\n",
        "@[\n",
        "    f+1\n",
        "]: 7\n",
        ", sh]: 5\n",
        "@[sh]: 3\n",
        "              kernel`f+0x1\n",
        "              9\n",
        "flat profile:\n",
        " 10.0  12.00 12.00   3  4.0 5.0  f [1]\n",
        "call graph profile:\n",
        "[1]   80.2 10.00  2.00  3  f [1]\n",
        "   1.00  2.00  3/3  g [2]\n",
        "-----\n",
        "<svg ",
        "<g><title>f (10 samples, 5%)</title>",
        "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\"/>",
        "<rect x=\"1%\" y=\"2\" width=\"3%\" fg:x=\"1\" fg:w=\"9\"",
        "</g>",
        "&#x110000;",
        "&amp;",
        "%",
        ";",
        "\u{fffd}",
    ];
}
