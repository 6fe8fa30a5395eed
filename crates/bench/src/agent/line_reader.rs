//! Reading lines with a timeout.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Lines of an input, read by a separate thread.
#[derive(Debug)]
pub(super) struct Lines(Receiver<String>);

/// Result of waiting for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    /// A line, without its line feed.
    Line(String),
    /// Timeout.
    Nothing,
    /// End of input.
    End,
}

impl Lines {
    /// Starts reading. The thread ends with the input.
    pub(super) fn of(input: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(input).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }

    /// Waits for the next line.
    pub(super) fn next(&self, patience: Duration) -> LineOutcome {
        match self.0.recv_timeout(patience) {
            Ok(line) => LineOutcome::Line(line),
            Err(RecvTimeoutError::Timeout) => LineOutcome::Nothing,
            Err(RecvTimeoutError::Disconnected) => LineOutcome::End,
        }
    }
}
