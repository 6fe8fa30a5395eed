//! A guest's serial line: waits for expected output, and recognises panics.

use crate::error::VmError;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Messages of kernels that die.
const PANICS: [&str; 6] = [
    "Kernel panic - not syncing",
    "BUG: unable to handle",
    "general protection fault",
    "panic: ",
    "Fatal trap",
    "No init found",
];
/// Lines quoted in an error message.
const QUOTED: usize = 12;
/// Bytes kept for matching; the log contains everything.
const KEPT_BYTES: usize = 1 << 16;

/// The serial line. A separate thread reads it continuously: an unread socket is full after a few
/// hundred messages, and the guest would stop.
#[derive(Debug)]
pub struct Console {
    stream: UnixStream,
    output: Arc<(Mutex<Output>, Condvar)>,
    log: PathBuf,
}

/// Output not yet matched.
#[derive(Debug, Default)]
struct Output {
    text: String,
    closed: bool,
}

impl Console {
    /// Connects to QEMU's socket of the serial line; `log` also contains all output.
    ///
    /// # Errors
    /// If no process listens there within `patience`.
    pub fn connect(socket: &Path, log: &Path, patience: Duration) -> Result<Console, VmError> {
        let fail = |source| VmError::file(socket, source);
        let deadline = Instant::now() + patience;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(source) if Instant::now() >= deadline => return Err(fail(source)),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let output = Arc::new((Mutex::new(Output::default()), Condvar::new()));
        let (reader, shared) = (stream.try_clone().map_err(fail)?, output.clone());
        // The thread ends with QEMU.
        std::thread::spawn(move || listen(reader, &shared));
        Ok(Console { stream, output, log: log.to_owned() })
    }

    /// Types a line.
    ///
    /// # Errors
    /// If the guest is gone.
    pub fn send(&self, line: &str) -> Result<(), VmError> {
        (&self.stream)
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|source| VmError::file(&self.log, source))
    }

    /// Waits until the guest prints `expected`; returns the output before it.
    ///
    /// # Errors
    /// If the guest panics ([`VmError::Panic`]), does not print it within `patience`
    /// ([`VmError::Silent`]), or has ended.
    pub fn wait_for(&self, expected: &str, patience: Duration) -> Result<String, VmError> {
        let deadline = Instant::now() + patience;
        let (output, arrival) = &*self.output;
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = output.text.find(expected) {
                let rest = output.text.split_off(at + expected.len());
                let text = std::mem::replace(&mut output.text, rest);
                return Ok(text[..at].to_owned());
            }
            self.check(&output)?;
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(VmError::Silent {
                    expected: expected.to_owned(),
                    seconds: patience.as_secs(),
                    text: last_lines(&output.text),
                    log: self.log.clone(),
                });
            }
            output =
                arrival.wait_timeout(output, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the error for a guest that has hung for `seconds`, with its last words.
    pub(crate) fn hangs(&self, seconds: u64) -> VmError {
        let output = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        VmError::Hangs { seconds, text: last_lines(&output.text), log: self.log.clone() }
    }

    /// Checks whether the guest has died.
    ///
    /// # Errors
    /// If it has.
    pub fn look(&self) -> Result<(), VmError> {
        self.check(&self.output.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self, output: &Output) -> Result<(), VmError> {
        let text = &output.text;
        match PANICS.iter().filter_map(|panic| text.find(panic)).min() {
            Some(at) => {
                let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
                let lines: Vec<&str> =
                    text[start..].lines().take(QUOTED).map(str::trim_end).collect();
                Err(VmError::Panic { text: lines.join("\n"), log: self.log.clone() })
            }
            None if output.closed => Err(VmError::Ended {
                status: "its serial line was closed".into(),
                text: last_lines(text),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // Ends the reader if QEMU is still running.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads until the line is closed.
fn listen(mut stream: UnixStream, (output, arrival): &(Mutex<Output>, Condvar)) {
    let mut bytes = [0; 4096];
    loop {
        let read = match stream.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other.unwrap_or(0),
        };
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        output.closed = read == 0;
        if output.text.len() > 2 * KEPT_BYTES {
            let from = output.text.ceil_char_boundary(output.text.len() - KEPT_BYTES);
            output.text.drain(..from);
        }
        arrival.notify_all();
        if output.closed {
            return;
        }
    }
}

/// Returns the last non-empty lines of a text, joined into one.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => "none".to_owned(),
        n => lines[n.saturating_sub(3)..].join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn line() -> (Console, UnixStream, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("console");
        let listener = UnixListener::bind(&socket).unwrap();
        let log = directory.path().join("log");
        let console = Console::connect(&socket, &log, Duration::from_secs(5)).unwrap();
        (console, listener.accept().unwrap().0, directory)
    }

    #[test]
    fn wait_for_keeps_output_after_the_match() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"booting\nfwdlab: one\nfwdlab: two\n").unwrap();
        let text = console.wait_for("fwdlab: one", Duration::from_secs(5)).unwrap();
        assert_eq!(text, "booting\n");
        assert_eq!(console.wait_for("two", Duration::from_secs(5)).unwrap(), "\nfwdlab: ");
        console.send("go").unwrap();
        let mut bytes = [0; 3];
        guest.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"go\n");
    }

    #[test]
    fn wait_for_reports_panic_text() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"ok\n[ 1.0] Kernel panic - not syncing: VFS\r\nCall Trace:\r\n").unwrap();
        let error = console.wait_for("up", Duration::from_secs(5)).unwrap_err().to_string();
        assert!(error.starts_with(
            "the guest panicked: [ 1.0] Kernel panic - not syncing: VFS\nCall Trace:\n  next step:"
        ), "{error}");
    }

    #[test]
    fn wait_for_reports_last_words_of_silent_guest() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"begin\na\nb\n\nmounting root\n").unwrap();
        // One write arrives as a whole.
        console.wait_for("begin\n", Duration::from_secs(60)).unwrap();
        let error = console.wait_for("login:", Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("its last words: a | b | mounting root"), "{error}");
        drop(guest);
        let error = console.wait_for("login:", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, VmError::Ended { .. }), "{error}");
    }
}
