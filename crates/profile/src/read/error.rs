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
            ProfileError::Mixed { line, .. } => Some(*line),
            _ => None,
        }
    }
}
