//! Why bytes are no profile: each message names the line and the next step.

use super::Format;

/// Bytes that can't be read as a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No line looks like one of a profile.
    #[error(
        "not a profile that fwdlab knows; give folded stacks, the text of `perf script`, \
         `pmcstat -G` or gprof, stacks of DTrace or bpftrace, or a flame graph (SVG)"
    )]
    Unrecognised,
    /// A recording that only its own program can read.
    #[error("a binary recording ({what}); {next}")]
    Binary {
        /// What it is.
        what: &'static str,
        /// What makes text of it.
        next: &'static str,
    },
    /// Lines of two formats.
    #[error(
        "line {line}: looks like {other}, but the lines before are {format}; \
         give one profile per file"
    )]
    Mixed {
        /// The line, from 1.
        line: usize,
        /// What the lines before are.
        format: Format,
        /// What this line looks like.
        other: Format,
    },
    /// The format is known but there is nothing to count.
    #[error("{format}, but without a single sample; record for longer, or give the whole file")]
    Empty {
        /// The format.
        format: Format,
    },
}

impl ProfileError {
    /// The line that is at fault, from 1, where it is one line's.
    pub fn line(&self) -> Option<usize> {
        match self {
            ProfileError::Mixed { line, .. } => Some(*line),
            _ => None,
        }
    }
}
