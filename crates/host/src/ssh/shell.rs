//! One shell on the other side that runs all commands of a host.
//!
//! A command of its own costs a session of the server, a login shell and a guard: some ten
//! programs, which take seconds on a machine that is emulated. Here it costs a fork. The shell
//! reads its commands line by line; an exec in a subshell leaves nothing of one to the next,
//! and a line on each output says where it ends, and how.
//!
//! Limits: what a command leaves in the background is not ended with it but with the shell,
//! and of each line of output white space before its end (`\r`) is cut off.

use super::hints::{self, During};
use super::master::{GRACE, Master};
use super::remote::Verdict;
use super::session::RemoteProgram;
use crate::error::BenchError;
use crate::quote::words;
use crate::{Ended, Running};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Begins the lines that say how a command ended.
const MARK: &str = "fwdlab-shell";

/// The shell, from the first command on.
#[derive(Debug, Default)]
pub(super) struct Shell(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    program: RemoteProgram,
    /// Commands so far.
    count: u64,
}

/// What a command wrote, and how it ended.
struct Said {
    output: String,
    errors: String,
    verdict: Verdict,
}

impl Shell {
    /// Runs a command to its end with `stdin` as its input; returns its output.
    ///
    /// # Errors
    /// As [`Host::run`](crate::host::Host::run); also when the shell is gone, with which the
    /// next command begins another.
    pub(super) fn run(
        &self,
        master: &Master,
        host: &str,
        argv: &[&str],
        stdin: &str,
        deadline: Duration,
    ) -> Result<String, BenchError> {
        let command = hints::shortened(argv);
        let words = words(argv)
            .map_err(|why| BenchError::Refused(format!("{command} on {host}: {why}")))?;
        let until = Instant::now() + deadline;
        let mut shell = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut open = match shell.take() {
            Some(open) => open,
            None => {
                let program = RemoteProgram::start(master, host, &["/bin/sh"], deadline)?;
                Open { program, count: 0 }
            }
        };
        let failed = |why: String| {
            let (command, host) = (command.clone(), host.to_owned());
            Err(BenchError::Program { command, host, why })
        };
        open.count += 1;
        // Where it takes nothing, its end below says why.
        let _ = open.program.tell(&script(open.count, argv[0], &words, stdin));
        let Ok(said) = open.answer(until) else {
            let is_late = Instant::now() >= until && !open.program.has_ended();
            let patience = if is_late { Duration::ZERO } else { GRACE };
            let Ended { errors, .. } = open.program.wait(patience);
            if is_late {
                let lines = hints::last_lines(&errors);
                let lines = if lines.is_empty() { "it said nothing".into() } else { lines };
                return failed(format!("killed after {} s: {lines}", deadline.as_secs()));
            }
            let during = During::Command(&command);
            return Err(hints::connection(host, during, &master.said(), &errors));
        };
        *shell = Some(open);
        let last = if said.errors.trim().is_empty() { &said.output } else { &said.errors };
        let lines = hints::last_lines(last);
        let lines = if lines.is_empty() { lines } else { format!(": {lines}") };
        match said.verdict {
            Verdict::Status(0) => Ok(said.output),
            Verdict::Status(status) => failed(format!("exit status {status}{lines}")),
            Verdict::Missing | Verdict::Short => failed(format!("{} is not installed", argv[0])),
        }
    }

    /// Ends it; the next command begins another.
    pub(super) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }
}

impl Open {
    /// What the last command says; none when it does not end in time.
    fn answer(&mut self, until: Instant) -> Result<Said, ()> {
        let mark = format!("{MARK} {} ", self.count);
        let mut lines = Vec::new();
        let verdict = loop {
            let line = self.program.hear(until.saturating_duration_since(Instant::now()));
            let line = line.ok_or(())?;
            match line.strip_prefix(&mark) {
                Some("missing") => break Verdict::Missing,
                Some(status) => break Verdict::Status(status.parse().map_err(drop)?),
                None => lines.push(line),
            }
        };
        let errors = self.program.errors_until(&format!("\n{mark}\n"), until).ok_or(())?;
        Ok(Said { output: lines.join("\n"), errors, verdict })
    }
}

/// The lines that run a command (`words`, as sh reads them) and say how it ended.
fn script(count: u64, program: &str, words: &str, stdin: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let run = match stdin {
        "" => format!("({words}) </dev/null"),
        text => format!("printf %s {} | ({words})", quoted(text)),
    };
    format!(
        "if command -v {} >/dev/null 2>&1; then {run}; s=$?; else s=missing; fi\n\
         printf '\\n{MARK} {count} \\n' >&2; printf '\\n{MARK} {count} %s\\n' \"$s\"",
        quoted(program)
    )
}
