//! One remote shell that runs all commands of a host.
//!
//! A separate session per command costs a server session, a login shell and a guard: about ten
//! programs, which take seconds on an emulated machine. Here a command costs a fork. The shell
//! reads its commands line by line; an exec in a subshell isolates commands from each other, and a
//! line on each output marks the end of a command and contains its status.
//!
//! Limits: background processes of a command end with the shell, not with the command, and trailing
//! white space (`\r`) of each line of output is removed.

use super::hints::{self, ConnectionUse};
use super::master::{GRACE, Master};
use super::remote::Verdict;
use super::session::RemoteProgram;
use crate::error::BenchError;
use crate::quote::words;
use crate::{Ended, Running};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Start of the lines that mark the end of a command.
const MARK: &str = "fwdlab-shell";

/// The shell, started by the first command.
#[derive(Debug, Default)]
pub(super) struct Shell(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    program: RemoteProgram,
    /// Number of commands so far.
    count: u64,
}

/// Output and exit of a command.
struct CommandResult {
    output: String,
    errors: String,
    verdict: Verdict,
}

impl Shell {
    /// Runs a command to completion with `stdin` as its input; returns its output.
    ///
    /// # Errors
    /// The errors of [`Host::run`](crate::Host::run); fails if the shell has exited, in which
    /// case the next command starts another one.
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
        // If the shell reads nothing, its exit below gives the reason.
        let _ = open.program.tell(&script(open.count, argv[0], &words, stdin));
        let Ok(result) = open.answer(until) else {
            let is_late = Instant::now() >= until && !open.program.has_ended();
            let patience = if is_late { Duration::ZERO } else { GRACE };
            let Ended { errors, .. } = open.program.wait(patience);
            if is_late {
                let lines = hints::last_lines(&errors);
                let lines = if lines.is_empty() { "it said nothing".into() } else { lines };
                return failed(format!("killed after {} s: {lines}", deadline.as_secs()));
            }
            let during = ConnectionUse::Command(&command);
            return Err(hints::connection(host, during, &master.output(), &errors));
        };
        *shell = Some(open);
        let last = if result.errors.trim().is_empty() { &result.output } else { &result.errors };
        let lines = hints::last_lines(last);
        let lines = if lines.is_empty() { lines } else { format!(": {lines}") };
        match result.verdict {
            Verdict::Status(0) => Ok(result.output),
            Verdict::Status(status) => failed(format!("exit status {status}{lines}")),
            Verdict::Missing | Verdict::Short => failed(format!("{} is not installed", argv[0])),
        }
    }

    /// Ends the shell; the next command starts another one.
    pub(super) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
    }
}

impl Open {
    /// Result of the last command; an error if it does not finish in time.
    fn answer(&mut self, until: Instant) -> Result<CommandResult, ()> {
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
        Ok(CommandResult { output: lines.join("\n"), errors, verdict })
    }
}

/// Lines that run a command (`words`, in the syntax of sh) and report its exit.
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
