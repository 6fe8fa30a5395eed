//! Programs started by a test: fwdlab itself, and helpers.

#[path = "../support/ended.rs"]
mod ended;

pub(crate) use ended::Ended;

use crate::rack::PATIENCE;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// A running program.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) out: PathBuf,
    pub(crate) err: PathBuf,
}

impl Started {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Waits for its end, including the end of a search of many trials; fails if it does not end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + 3 * PATIENCE;
        let code = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status.code(),
                None if Instant::now() > deadline => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    panic!("it does not end; it said:\n{}", self.stderr());
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Ended { code, stdout: read(&self.out), stderr: read(&self.err) }
    }
}

pub(crate) fn run(argv: &[&str]) -> String {
    let output: Output = Command::new(argv[0]).args(&argv[1..]).output().expect("a program");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{argv:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").args([format!("-{name}"), pid.to_string()]).output();
}

/// Waits until the condition is true; returns false if it never is.
pub(crate) fn until(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}
