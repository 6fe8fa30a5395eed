//! A guest's serial line: what it says is waited for; a panic is named.

use crate::error::VmError;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the kernels say when they die.
const PANICS: [&str; 6] = [
    "Kernel panic - not syncing",
    "BUG: unable to handle",
    "general protection fault",
    "panic: ",
    "Fatal trap",
    "No init found",
];
/// Lines that a message quotes.
const QUOTED: usize = 12;
/// What is kept for matching; the whole is in the log.
const KEPT: usize = 1 << 16;

/// The line. A thread of its own reads it all the time: what nobody takes away would stop
/// the guest as soon as a socket's few hundred messages are full.
#[derive(Debug)]
pub struct Console {
    stream: UnixStream,
    heard: Arc<(Mutex<Heard>, Condvar)>,
    log: PathBuf,
}

/// What was read and not yet matched.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    closed: bool,
}

impl Console {
    /// Connects to QEMU's socket of the serial line; all of it is in `log` too.
    ///
    /// # Errors
    /// When nobody listens there within `patience`.
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
        let heard = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        let (reader, shared) = (stream.try_clone().map_err(fail)?, heard.clone());
        // It ends when QEMU does.
        std::thread::spawn(move || listen(reader, &shared));
        Ok(Console { stream, heard, log: log.to_owned() })
    }

    /// Types a line.
    ///
    /// # Errors
    /// When the guest is gone.
    pub fn send(&self, line: &str) -> Result<(), VmError> {
        (&self.stream)
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|source| VmError::file(&self.log, source))
    }

    /// Waits until the guest says `expected`; returns what it said before.
    ///
    /// # Errors
    /// When it panics ([`VmError::Panic`]), says nothing of the kind within `patience`
    /// ([`VmError::Silent`]), or has ended.
    pub fn wait_for(&self, expected: &str, patience: Duration) -> Result<String, VmError> {
        let deadline = Instant::now() + patience;
        let (heard, news) = &*self.heard;
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(at) = heard.text.find(expected) {
                let rest = heard.text.split_off(at + expected.len());
                let said = std::mem::replace(&mut heard.text, rest);
                return Ok(said[..at].to_owned());
            }
            self.check(&heard)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(VmError::Silent {
                    expected: expected.to_owned(),
                    seconds: patience.as_secs(),
                    text: last_lines(&heard.text),
                    log: self.log.clone(),
                });
            }
            heard = news.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The error for a guest that has not moved for so many seconds, with its last words.
    pub(crate) fn hangs(&self, seconds: u64) -> VmError {
        let heard = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
        VmError::Hangs { seconds, text: last_lines(&heard.text), log: self.log.clone() }
    }

    /// Says whether the guest has died.
    ///
    /// # Errors
    /// When it has.
    pub fn look(&self) -> Result<(), VmError> {
        self.check(&self.heard.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check(&self, heard: &Heard) -> Result<(), VmError> {
        let text = &heard.text;
        match PANICS.iter().filter_map(|panic| text.find(panic)).min() {
            Some(at) => {
                let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
                let lines: Vec<&str> =
                    text[start..].lines().take(QUOTED).map(str::trim_end).collect();
                Err(VmError::Panic { text: lines.join("\n"), log: self.log.clone() })
            }
            None if heard.closed => Err(VmError::Ended {
                status: "its serial line was closed".into(),
                text: last_lines(text),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // Ends the reader, where QEMU has not.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads until the line is closed.
fn listen(mut stream: UnixStream, (heard, news): &(Mutex<Heard>, Condvar)) {
    let mut bytes = [0; 4096];
    loop {
        let read = match stream.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other.unwrap_or(0),
        };
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        heard.closed = read == 0;
        if heard.text.len() > 2 * KEPT {
            let from = heard.text.ceil_char_boundary(heard.text.len() - KEPT);
            heard.text.drain(..from);
        }
        news.notify_all();
        if heard.closed {
            return;
        }
    }
}

/// The last lines of a text that have words, on one line.
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
    fn what_is_expected_is_found_and_the_rest_kept() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"booting\nfwdlab: one\nfwdlab: two\n").unwrap();
        let said = console.wait_for("fwdlab: one", Duration::from_secs(5)).unwrap();
        assert_eq!(said, "booting\n");
        assert_eq!(console.wait_for("two", Duration::from_secs(5)).unwrap(), "\nfwdlab: ");
        console.send("go").unwrap();
        let mut bytes = [0; 3];
        guest.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"go\n");
    }

    #[test]
    fn a_panic_is_told_in_the_kernels_words() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"ok\n[ 1.0] Kernel panic - not syncing: VFS\r\nCall Trace:\r\n").unwrap();
        let error = console.wait_for("up", Duration::from_secs(5)).unwrap_err().to_string();
        assert!(error.starts_with(
            "the guest panicked: [ 1.0] Kernel panic - not syncing: VFS\nCall Trace:\n  next step:"
        ), "{error}");
    }

    #[test]
    fn silence_and_an_end_are_told_with_the_last_words() {
        let (console, mut guest, _directory) = line();
        guest.write_all(b"a\nb\n\nmounting root\n").unwrap();
        let error = console.wait_for("login:", Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("its last words: a | b | mounting root"), "{error}");
        drop(guest);
        let error = console.wait_for("login:", Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error, VmError::Ended { .. }), "{error}");
    }
}
