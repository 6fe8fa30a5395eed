//! Reads profiles: detects the format by content, with one file per format.
//!
//! Readers skip what they cannot parse or use: they count it by kind, with the first lines, and
//! every output contains the counts. A truncated file is read to its end, with a remark. Lines of
//! another format are an error, because reading them would silently sum two profiles; so is a file
//! of which most would be left out.

mod bpftrace;
mod detect;
mod dtrace;
mod error;
mod folded;
mod gprof;
mod notes;
mod perf;
mod perf_frame;
mod perf_header;
#[cfg(test)]
mod perf_property;
mod pmcstat;
mod svg;
mod svg_elements;
#[cfg(test)]
mod tests;

use super::flat::FlatProfile;
use super::samples::{Samples, Weight};
use super::stacks::Stacks;
use notes::Notes;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

pub use error::ProfileError;
pub(super) use folded::parse as parse_folded;
pub(super) use notes::sentences;
pub use notes::{LeftOut, Unknown, is_majority};

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
    /// Sampled event, e.g. `cycles:u`. `None` if the file does not contain it.
    pub event: Option<String>,
    /// Lines that could not be parsed.
    pub unknown: Unknown,
    /// Parts that were recognised but left out.
    pub left_out: Vec<LeftOut>,
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

impl Profile {
    /// Stacks; a sample counts as its period, or as one if the file has no period. `None` if the
    /// profile has only functions.
    pub fn stacks(&self) -> Option<Cow<'_, Stacks>> {
        match &self.content {
            Content::Samples(samples) => Some(Cow::Owned(samples.stacks(Weight::Period))),
            Content::Stacks(stacks) => Some(Cow::Borrowed(stacks)),
            Content::Flat(_) => None,
        }
    }

    /// Number of samples. `None` if the profile has only their sums.
    pub fn samples(&self) -> Option<usize> {
        match &self.content {
            Content::Samples(samples) => Some(samples.len()),
            Content::Stacks(_) | Content::Flat(_) => None,
        }
    }

    /// Everything that was left out, and all remarks, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        sentences(&self.remarks, &self.left_out, &self.unknown)
    }
}

/// Reads a profile in any of the formats.
///
/// Fails for bytes that are not a profile, lines of two formats, a profile without samples, and a
/// file of which most would be left out.
pub fn read(bytes: &[u8]) -> Result<Profile, ProfileError> {
    refuse_binary(bytes)?;
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    read_as(detect::format(text).ok_or(ProfileError::Unrecognised)?, text)
}

fn read_as(format: Format, text: &str) -> Result<Profile, ProfileError> {
    let mut notes = Notes::new(format);
    let content = match format {
        Format::Folded => Content::Stacks(folded::read(text, &mut notes)),
        Format::PerfScript => Content::Samples(perf::read(text, &mut notes)),
        Format::PmcstatGraph => Content::Stacks(pmcstat::read(text, &mut notes)),
        Format::Gprof => Content::Flat(gprof::read(text, &mut notes)),
        Format::Dtrace => Content::Stacks(dtrace::read(text, &mut notes)),
        Format::Bpftrace => Content::Stacks(bpftrace::read(text, &mut notes)),
        Format::FlameGraph => Content::Stacks(svg::read(text, &mut notes)?),
    };
    let is_empty = match &content {
        Content::Samples(samples) => samples.is_empty(),
        Content::Stacks(stacks) => stacks.is_empty(),
        Content::Flat(flat) => flat.functions.is_empty(),
    };
    notes.check(text, is_empty)?;
    if format != Format::FlameGraph && !text.ends_with('\n') {
        notes.remark("the last line has no line feed: the file may be cut off there");
    }
    let Notes { unit, event, unknown, left_out, remarks, .. } = notes;
    Ok(Profile { format, content, unit, event, unknown, left_out, remarks })
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

/// Lines with their numbers, from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
