//! Errors of reading a profile: each message has the line and the next step.

use super::Format;

/// Error for bytes that cannot be read as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No line belongs to a known format.
    #[error(
        "not a profile that fwdlab knows; give folded stacks, the text of `perf script`, \
         `pmcstat -G` or gprof, stacks of DTrace or bpftrace, or a flame graph (SVG)"
    )]
    Unrecognised,
    /// A recording that only its own program can read.
    #[error("a binary recording ({what}); {next}")]
    Binary {
        /// Kind of recording.
        what: &'static str,
        /// Command that converts it to text.
        next: &'static str,
    },
    /// A picture without the counts of a flame graph.
    #[error(
        "an SVG picture, but not a flame graph of flamegraph.pl or inferno: no rectangle has a \
         count; next step: give the stacks that it was drawn from"
    )]
    Picture,
    /// Lines of two formats.
    #[error(
        "line {line}: looks like {other}, but the lines before are {format}; \
         give one profile per file"
    )]
    Mixed {
        /// Line number, from 1.
        line: usize,
        /// Format of the lines before.
        format: Format,
        /// Format of this line.
        other: Format,
    },
    /// Most lines are in no known form.
    #[error(
        "line {line}: {count} of {all} lines are not {format}, the first is `{start}`; \
         next step: give the profile alone, as its program prints it"
    )]
    NotUnderstood {
        /// Number of the first such line, from 1.
        line: usize,
        /// Format of the other lines.
        format: Format,
        /// Number of these lines.
        count: usize,
        /// Number of lines with text.
        all: usize,
        /// Beginning of the first such line.
        start: String,
    },
    /// Most records cannot be used.
    #[error(
        "line {line}: most of the file would be left out: {kinds}, with {read} read as {format}; \
         next step: record counts of stacks"
    )]
    Unusable {
        /// Line number of the first such record, from 1.
        line: usize,
        /// Format of the file.
        format: Format,
        /// Kinds and numbers of these records.
        kinds: String,
        /// Number of records that were read.
        read: usize,
    },
    /// The format is known but there is no sample.
    #[error("{format}, but without a single sample; record for longer, or give the whole file")]
    Empty {
        /// The format.
        format: Format,
    },
}

impl ProfileError {
    /// Number of the faulty line, from 1. `None` if the error does not concern one line.
    pub fn line(&self) -> Option<usize> {
        match self {
            ProfileError::Mixed { line, .. }
            | ProfileError::NotUnderstood { line, .. }
            | ProfileError::Unusable { line, .. } => Some(*line),
            _ => None,
        }
    }
}
