//! A table of samples that a command printed on the system under test during a trial: the `.during`
//! file of netbenches.

use super::command::Command;
use super::fault::LogError;
use super::lines::{NumberedLine, keep, lines, shown, text};

/// Such a table, from `nstat` or a command with similar output: a line of names, then lines with
/// the same number of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DuringLog {
    /// The command line (`DURING_CMD on HOST: ...`).
    pub command: Option<Command>,
    /// The names of the columns in one text, because names may contain blanks (`TCP Est`).
    pub heading: Option<String>,
    /// The samples, in order; all rows are as long as the first.
    pub rows: Vec<Vec<f64>>,
    /// The first lines of unknown kinds.
    pub unknown: Vec<NumberedLine>,
    /// Number of these lines.
    pub unknown_count: usize,
}

impl DuringLog {
    /// Reads a table.
    ///
    /// # Errors
    /// [`LogError`] for empty input, for binary data, and for text that does not begin with the
    /// command.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogError> {
        LogError::unless_text(bytes)?;
        let mut log = Self::default();
        let mut count = 0;
        for line in lines(bytes) {
            count = line.number;
            if line.bytes.is_empty() {
                continue;
            }
            if log.command.is_none() {
                log.command = Command::parse(&line, b"DURING_CMD");
                if log.command.is_none() {
                    let first = shown(line.bytes);
                    return Err(LogError::Foreign { wanted: "DURING_CMD", lines: count, first });
                }
            } else if line.is_too_long() || log.read(line.bytes).is_none() {
                keep(&mut log.unknown, &mut log.unknown_count, line.number, line.bytes);
            }
        }
        if log.command.is_none() {
            let first = String::new();
            return Err(LogError::Foreign { wanted: "DURING_CMD", lines: count, first });
        }
        Ok(log)
    }

    /// Returns `None` for a line that is neither names nor numbers. The names may be repeated,
    /// because such tools print them once per screen.
    fn read(&mut self, line: &[u8]) -> Option<()> {
        let line = text(line);
        let numbers: Option<Vec<f64>> = line
            .split_ascii_whitespace()
            .map(|word| word.parse().ok().filter(|number: &f64| number.is_finite()))
            .collect();
        match (numbers, &self.heading) {
            (Some(numbers), Some(_)) => {
                let length = self.rows.first().map_or(numbers.len(), Vec::len);
                (numbers.len() == length).then(|| self.rows.push(numbers))
            }
            (None, Some(heading)) => (*heading == line).then_some(()),
            (Some(_), None) => None,
            (None, None) => {
                self.heading = Some(line);
                Some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_heading_is_not_a_row() {
        let text = "DURING_CMD on r1: nstat\n a b c\n 1 2\n a b c\n3 4\n5\n x\nnan 1\n";
        let log = DuringLog::parse(text.as_bytes()).unwrap();
        assert_eq!(log.rows, [[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(log.heading.as_deref(), Some(" a b c"));
        assert_eq!(log.unknown.iter().map(|line| line.number).collect::<Vec<_>>(), [6, 7, 8]);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "\n", "CMD: pkt-gen\n", "a b c\n1 2 3\n"] {
            assert!(DuringLog::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
