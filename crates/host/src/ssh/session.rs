//! One remote program with its input and outputs.

use super::hints::{self, ConnectionUse};
use super::master::{self, GRACE, Master};
use super::remote::{self, GUARD, MARK, Verdict};
use crate::error::BenchError;
use crate::{Ended, Running, program, quote};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delivery of a program's input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    /// This number of bytes, before the program starts.
    Run(u64),
    /// Line by line, while the program runs.
    Talk,
}

/// An `ssh` that runs one program. Dropping it kills both.
#[derive(Debug)]
pub(super) struct Session {
    host: String,
    command: String,
    child: Child,
    /// Exit status of `ssh`.
    status: Option<ExitStatus>,
    errors: CollectedOutput,
}

impl Session {
    /// Starts `ssh` for a program.
    pub(super) fn start(
        master: &Master,
        host: &str,
        argv: &[&str],
        mode: Mode,
    ) -> Result<(Session, ChildStdin, ChildStdout), BenchError> {
        let command = hints::shortened(argv);
        let refused = |why| BenchError::Refused(format!("{command} on {host}: {why}"));
        quote(argv).map_err(refused)?;
        let (mode, size) = match mode {
            Mode::Run(size) => ("run", size.to_string()),
            Mode::Talk => ("talk", "0".to_owned()),
        };
        let guarded = [&["/bin/sh", "-c", GUARD, MARK, mode, &size], argv].concat();
        let line = quote(&guarded).map_err(refused)?;
        master.ensure()?;
        let mut words = master.command(&["-o", "ControlMaster=no"]);
        words.push(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let failed = |why| BenchError::Program { command: command.clone(), host: host.into(), why };
        let mut child = program::start(&words, Stdio::piped()).map_err(failed)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(input), Some(output), Some(errors)) => {
                let errors = CollectedOutput::start(errors);
                let host = host.to_owned();
                Ok((Session { host, command, child, status: None, errors }, input, output))
            }
            _ => Err(failed("its pipes are missing".into())),
        }
    }

    /// Waits until `ssh` exits; kills it and returns false at the deadline.
    pub(super) fn wait(&mut self, deadline: Instant) -> bool {
        self.status = master::wait(&mut self.child, deadline);
        if self.status.is_none() {
            master::end(&mut self.child);
        }
        self.status.is_some()
    }

    /// True if `ssh` has exited.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The program's standard error, and its exit.
    pub(super) fn verdict(&mut self) -> (String, Option<Verdict>) {
        remote::verdict(&self.errors.take(GRACE))
    }

    /// An error of the program with this description.
    pub(super) fn failed(&self, why: impl Into<String>) -> BenchError {
        let (command, host) = (self.command.clone(), self.host.clone());
        BenchError::Program { command, host, why: why.into() }
    }

    /// Returns an error unless the program exited with status 0. `output` is the program's last
    /// output.
    pub(super) fn judge(
        &self,
        master: &Master,
        program: &str,
        verdict: Option<Verdict>,
        output: &str,
    ) -> Result<(), BenchError> {
        let lines = hints::last_lines(output);
        let lines = if lines.is_empty() { lines } else { format!(": {lines}") };
        match verdict {
            Some(Verdict::Status(0)) => Ok(()),
            Some(Verdict::Status(status)) => {
                Err(self.failed(format!("exit status {status}{lines}")))
            }
            Some(Verdict::Missing) => Err(self.failed(format!("{program} is not installed"))),
            Some(Verdict::Short) => {
                Err(self.failed(format!("its input did not arrive as a whole{lines}")))
            }
            None => {
                // If the cause cannot be determined, the connection is more likely.
                let during = match self.status.and_then(|status| status.code()) {
                    None | Some(255) => ConnectionUse::Command(&self.command),
                    Some(_) => ConnectionUse::Other(&self.command),
                };
                Err(hints::connection(&self.host, during, &master.output(), output))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        master::end(&mut self.child);
    }
}

/// Skips the login shell's output, up to the program's own; false if the program's output never
/// starts.
pub(super) fn skip_to_output(output: &mut impl BufRead) -> bool {
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if remote::begins(&line) => return true,
            Ok(_) => {}
        }
    }
}

/// A remote program that exchanges lines.
#[derive(Debug)]
pub(super) struct RemoteProgram {
    session: Session,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    ended: Option<Ended>,
}

impl RemoteProgram {
    /// Starts the program and waits until it has begun.
    pub(super) fn start(
        master: &Master,
        host: &str,
        argv: &[&str],
        patience: Duration,
    ) -> Result<RemoteProgram, BenchError> {
        let (mut session, input, output) = Session::start(master, host, argv, Mode::Talk)?;
        let (ready, begun) = channel();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            if !skip_to_output(&mut output) || ready.send(()).is_err() {
                return;
            }
            drop(ready);
            let mut line = Vec::new();
            while matches!(output.read_until(b'\n', &mut line), Ok(1..)) {
                let end = line.iter().rposition(|b| !b"\r\n".contains(b)).map_or(0, |at| at + 1);
                if sender.send(String::from_utf8_lossy(&line[..end]).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        match begun.recv_timeout(patience) {
            Ok(()) => Ok(RemoteProgram { session, input: Some(input), lines, ended: None }),
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("it did not begin within {} s", patience.as_secs());
                Err(session.failed(why))
            }
            Err(RecvTimeoutError::Disconnected) => {
                session.wait(Instant::now() + GRACE);
                let (errors, verdict) = session.verdict();
                session.judge(master, argv[0], verdict, &errors)?;
                Err(session.failed("it ended before it began"))
            }
        }
    }

    /// Takes the standard error up to and including `end`, and returns the text before it; `None`
    /// if `end` does not arrive in time.
    pub(super) fn errors_until(&mut self, end: &str, until: Instant) -> Option<String> {
        loop {
            let is_over = self.session.errors.thread.is_finished() || Instant::now() >= until;
            if let Some(text) = self.session.errors.up_to(end) {
                return Some(text);
            }
            if is_over {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(text.as_bytes()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Running for RemoteProgram {
    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        if line.contains('\0') {
            return Err(self.session.failed("a line for it holds a NUL"));
        }
        let frames: String = line.split('\n').map(|line| format!("t{line}\n")).collect();
        self.write(&frames)
            .map_err(|error| self.session.failed(format!("it does not take `{line}`: {error}")))
    }

    fn hear(&mut self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    fn interrupt(&mut self) {
        let _ = self.write("i\n");
    }

    fn has_ended(&mut self) -> bool {
        self.ended.is_some() || self.session.has_ended()
    }

    fn wait(&mut self, patience: Duration) -> Ended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let in_time = self.session.wait(Instant::now() + patience);
        self.input = None; // ends the remote program if it is still running
        let (errors, verdict) = self.session.verdict();
        let status = match verdict {
            Some(Verdict::Status(status)) => format!("exit status: {status}"),
            Some(Verdict::Missing | Verdict::Short) => "it did not begin".into(),
            None if in_time => format!("the connection to {} was lost", self.session.host),
            None => format!("it did not end within {} s and was killed", patience.as_secs()),
        };
        let well = verdict == Some(Verdict::Status(0));
        self.ended.insert(Ended { well, status, errors, ..Ended::default() }).clone()
    }
}

/// Output of a pipe, collected by a thread.
#[derive(Debug)]
struct CollectedOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl CollectedOutput {
    fn start(mut pipe: impl Read + Send + 'static) -> CollectedOutput {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let mut sink = PipeBuffer(Arc::clone(&bytes));
        let thread = std::thread::spawn(move || {
            let _ = std::io::copy(&mut pipe, &mut sink);
        });
        CollectedOutput { bytes, thread }
    }

    /// Takes the bytes up to and including `end`; returns the text before it.
    fn up_to(&self, end: &str) -> Option<String> {
        let mut bytes = self.bytes.lock().ok()?;
        let at = bytes.windows(end.len()).position(|found| found == end.as_bytes())?;
        let text = String::from_utf8_lossy(&bytes[..at]).into_owned();
        bytes.drain(..at + end.len());
        Some(text)
    }

    /// Takes everything up to the pipe's end, or the bytes available after `patience`: the master
    /// may hold a pipe open as long as the network is silent.
    fn take(&mut self, patience: Duration) -> Vec<u8> {
        let deadline = Instant::now() + patience;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.bytes.lock().map(|mut bytes| std::mem::take(&mut *bytes)).unwrap_or_default()
    }
}

/// Bytes written by one thread and read by another.
#[derive(Clone, Debug, Default)]
pub(super) struct PipeBuffer(pub(super) Arc<Mutex<Vec<u8>>>);

impl Write for PipeBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut all = self.0.lock().map_err(|_| std::io::ErrorKind::Other)?;
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
