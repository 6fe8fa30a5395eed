//! A running program: reads its lines, checks that it is alive, keeps its last output.

use fwdlab_host::error::BenchError;
use fwdlab_host::{Ended, Host, Running};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of lines that an error quotes.
const LAST: usize = 5;

/// Result of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineOutcome {
    Line(String),
    Silence,
    Ended,
}

/// A running program with its last lines.
pub(super) struct ProgramIo {
    running: Box<dyn Running>,
    command: String,
    host: String,
    last: VecDeque<String>,
}

impl ProgramIo {
    /// Starts a program and also reads its standard error: some generators report there. The words
    /// are passed as arguments, without interpretation by a shell.
    ///
    /// # Errors
    /// The errors of [`Host::spawn`].
    pub(super) fn start(host: &dyn Host, words: &[String]) -> Result<ProgramIo, BenchError> {
        let mut argv = vec!["sh", "-c", "exec \"$@\" 2>&1", "sh"];
        argv.extend(words.iter().map(String::as_str));
        let running = host.spawn(&argv)?;
        let (command, host) = (words.join(" "), host.name().to_owned());
        Ok(ProgramIo { running, command, host, last: VecDeque::new() })
    }

    /// Waits for the next line.
    pub(super) fn hear(&mut self, patience: Duration) -> LineOutcome {
        let begin = Instant::now();
        match self.running.hear(patience) {
            Some(line) => {
                if self.last.len() == LAST {
                    self.last.pop_front();
                }
                self.last.push_back(line.clone());
                LineOutcome::Line(line)
            }
            // Only a program that has exited returns before the timeout.
            None if begin.elapsed() < patience => LineOutcome::Ended,
            None => LineOutcome::Silence,
        }
    }

    /// Reads until `is_it` accepts a line, and returns the line.
    ///
    /// # Errors
    /// Fails if the program exits first or `patience` runs out.
    pub(super) fn hear_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut accepts: impl FnMut(&str) -> bool,
    ) -> Result<String, BenchError> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.hear(left.max(Duration::from_millis(1))) {
                LineOutcome::Line(line) if accepts(&line) => return Ok(line),
                LineOutcome::Line(_) if !left.is_zero() => {}
                LineOutcome::Ended => return Err(self.died()),
                LineOutcome::Line(_) | LineOutcome::Silence => {
                    let seconds = patience.as_secs_f64();
                    return Err(
                        self.error(&format!("it did not print `{what}` within {seconds:.1} s"))
                    );
                }
            }
        }
    }

    /// Like [`Running::tell`].
    ///
    /// # Errors
    /// Fails if the program no longer reads.
    pub(super) fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        self.running.tell(line)
    }

    /// Like [`Running::interrupt`].
    pub(super) fn interrupt(&mut self) {
        self.running.interrupt();
    }

    /// Like [`Running::wait`].
    pub(super) fn wait(&mut self, patience: Duration) -> Ended {
        self.running.wait(patience)
    }

    /// An error of this program that quotes its last lines.
    pub(super) fn error(&self, why: &str) -> BenchError {
        let last = self.last.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let last = last.collect::<Vec<_>>().join("; ");
        let why = match last.is_empty() {
            true => format!("{why}; it said nothing"),
            false => format!("{why}; its last lines: {last}"),
        };
        BenchError::Program { command: self.command.clone(), host: self.host.clone(), why }
    }

    /// Error for a program that should still be running.
    pub(super) fn died(&mut self) -> BenchError {
        let ended = self.running.wait(Duration::from_secs(1));
        self.error(&format!("it ended before its time ({})", ended.status))
    }
}
