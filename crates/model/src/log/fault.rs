//! Why some bytes are no log at all.

use std::fmt;

/// Why some bytes can't be a log. What is merely odd in a log is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// There is not one byte.
    Empty,
    /// A NUL byte: no text.
    Binary {
        /// Its line, from 1.
        line: usize,
        /// Its place in the data, from 0.
        offset: usize,
    },
    /// Text without one line of the expected kind.
    Foreign {
        /// What was looked for.
        wanted: &'static str,
        /// Lines that were read.
        lines: usize,
        /// The first line that is not blank, cut.
        first: String,
    },
}

impl LogError {
    /// Refuses what is no text.
    pub(super) fn unless_text(bytes: &[u8]) -> Result<(), Self> {
        if bytes.is_empty() {
            return Err(Self::Empty);
        }
        match memchr::memchr(0, bytes) {
            None => Ok(()),
            Some(offset) => {
                let line = memchr::memchr_iter(b'\n', &bytes[..offset]).count() + 1;
                Err(Self::Binary { line, offset })
            }
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                write!(
                    f,
                    "the log is empty: the generator never started, or its output went elsewhere; look for the run's other files or leave this run out"
                )
            }
            Self::Binary { line, offset } => {
                write!(
                    f,
                    "line {line}: a NUL byte at offset {offset}: this is no text; if it is compressed, unpack it first, if it was damaged, restore it from its source"
                )
            }
            Self::Foreign { wanted, lines, first } => {
                write!(
                    f,
                    "none of the {lines} lines is of {wanted} (line 1 on: {first:?}): name the right file"
                )
            }
        }
    }
}

impl std::error::Error for LogError {}
