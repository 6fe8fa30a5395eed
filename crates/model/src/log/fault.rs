//! Errors for input that is not a log.

use std::fmt;

/// Reason why some bytes cannot be a log. Oddities within a log are not errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// Empty input.
    Empty,
    /// A NUL byte: not text.
    Binary {
        /// Its line, from 1.
        line: usize,
        /// Offset in the data, from 0.
        offset: usize,
    },
    /// Text without any line of the expected kind.
    Foreign {
        /// Expected kind.
        wanted: &'static str,
        /// Number of lines.
        lines: usize,
        /// The first non-blank line, truncated.
        first: String,
    },
}

impl LogError {
    /// Refuses input that is not text.
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
            Self::Empty => f.write_str(
                "the log is empty: the generator never started, or its output went elsewhere; \
                 look for the run's other files or leave this run out",
            ),
            Self::Binary { line, offset } => write!(
                f,
                "line {line}: a NUL byte at offset {offset}: this is no text; \
                 if it is compressed, unpack it first, if it was damaged, restore it"
            ),
            Self::Foreign { wanted, lines, first } => write!(
                f,
                "none of the {lines} lines is of the kind {wanted} (the first: {first:?}); \
                 name a file of that kind"
            ),
        }
    }
}

impl std::error::Error for LogError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_the_place_and_the_next_step() {
        assert_eq!(LogError::unless_text(b"text"), Ok(()));
        let binary = LogError::unless_text(b"a\nb\n\0\n").unwrap_err();
        assert_eq!(binary, LogError::Binary { line: 3, offset: 4 });
        for (error, words) in [
            (LogError::unless_text(b"").unwrap_err(), ["empty", "leave this run out"]),
            (binary, ["line 3", "unpack it"]),
            (
                LogError::Foreign { wanted: "pkt-gen", lines: 2, first: "hello".to_owned() },
                ["\"hello\"", "of that kind"],
            ),
        ] {
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
    }
}
