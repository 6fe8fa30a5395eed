//! Running programs with line-based input and output.

use super::output::Output;
use crate::error::BenchError;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A started program. Dropping it kills the program.
pub trait Running {
    /// Writes a line to the program's standard input.
    ///
    /// # Errors
    /// Fails if the program no longer reads.
    fn tell(&mut self, line: &str) -> Result<(), BenchError>;

    /// Next line of the program's standard output; `None` after the timeout, or if the program has
    /// exited.
    fn hear(&mut self, patience: Duration) -> Option<String>;

    /// Interrupts the program and the processes that it has started, like Ctrl-C.
    fn interrupt(&mut self);

    /// True if the program has exited.
    fn has_ended(&mut self) -> bool;

    /// Waits until the program exits; kills it after `patience`.
    fn wait(&mut self, patience: Duration) -> Ended;

    /// Ids of the program's threads with this name; empty for a program on another machine.
    fn threads(&self, _name: &str) -> Vec<u32> {
        Vec::new()
    }
}

/// Exit of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// True if it exited with status 0.
    pub well: bool,
    /// Exit code; `None` if a signal ended it, or on another machine.
    pub code: Option<i32>,
    /// Description of the exit status.
    pub status: String,
    /// Output on standard error.
    pub errors: String,
}

/// A program of this machine that leads a process group: Ctrl-C in a terminal does not reach
/// it, and signals reach the processes that a wrapper such as `sh -c` has started.
#[derive(Debug)]
pub struct Program {
    command: String,
    host: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<Output>,
}

/// Starts a program that does not outlive the calling thread.
///
/// # Errors
/// Describes the reason.
pub(super) fn start(argv: &[&str], stdin: Stdio) -> Result<Child, String> {
    spawn(Command::new(argv[0]), argv, stdin)
}

fn spawn(mut command: Command, argv: &[&str], stdin: Stdio) -> Result<Child, String> {
    fwdlab_netio::process::die_with_us(&mut command)
        .args(&argv[1..])
        .env("LC_ALL", "C")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("{} is not installed", argv[0]),
            _ => error.to_string(),
        })
}

impl Program {
    /// Starts a program of this machine.
    ///
    /// # Errors
    /// Fails if it is missing.
    pub fn start(host: &str, argv: &[&str]) -> Result<Program, BenchError> {
        let (command, host) = (argv.join(" "), host.to_owned());
        let mut grouped = Command::new(argv[0]);
        grouped.process_group(0);
        let mut child = spawn(grouped, argv, Stdio::piped()).map_err(|why| {
            BenchError::Program { command: command.clone(), host: host.clone(), why }
        })?;
        // Both outputs are read continuously, so the program never blocks on a full pipe.
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                for line in lines {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let errors = child.stderr.take().map(Output::read);
        let input = child.stdin.take();
        Ok(Program { command, host, child, input, lines, errors })
    }

    /// Kills the program with the processes that it has started. After it has exited, the processes
    /// that it left in the background live on.
    fn kill(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = fwdlab_netio::process::kill_group(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Running for Program {
    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let written = match &mut self.input {
            Some(input) => input.write_all(format!("{line}\n").as_bytes()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|error| BenchError::Program {
            command: self.command.clone(),
            host: self.host.clone(),
            why: format!("it does not take `{line}`: {error}"),
        })
    }

    fn hear(&mut self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    fn interrupt(&mut self) {
        // The number may belong to another process once the program is reaped.
        if let Ok(None) = self.child.try_wait() {
            let _ = fwdlab_netio::process::interrupt_group(self.child.id());
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn wait(&mut self, patience: Duration) -> Ended {
        let deadline = Instant::now() + patience;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(None) | Err(_) => break None,
            }
        };
        if status.is_none() {
            self.kill();
        }
        let errors = self.errors.take().map(Output::text).unwrap_or_default();
        let well = status.is_some_and(|status| status.success());
        let code = status.and_then(|status| status.code());
        let status = match status {
            Some(status) => status.to_string(),
            None => format!("it did not end within {} s and was killed", patience.as_secs()),
        };
        Ended { well, code, status, errors }
    }

    fn threads(&self, name: &str) -> Vec<u32> {
        crate::schedstat::tasks(&format!("/proc/{}/task", self.child.id()), name)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program with predefined answers, for tests.
#[derive(Clone, Debug, Default)]
pub struct FakeProgram {
    /// Answer to every line; `None` for a program that has exited.
    pub answer: Option<String>,
    /// Number of lines after which it is silent.
    pub lives_for: Option<usize>,
    /// Exit of the program.
    pub ended: Ended,
    /// Number of lines received.
    pub told: usize,
}

impl FakeProgram {
    /// A program that answers `answer` to every line and exits with `ended`.
    pub fn answering(answer: &str, ended: Ended) -> FakeProgram {
        FakeProgram { answer: Some(answer.into()), lives_for: None, ended, told: 0 }
    }
}

impl Running for FakeProgram {
    fn tell(&mut self, _line: &str) -> Result<(), BenchError> {
        self.told += 1;
        Ok(())
    }
    fn hear(&mut self, _patience: Duration) -> Option<String> {
        let alive = self.lives_for.is_none_or(|lines| self.told <= lines);
        self.answer.clone().filter(|_| alive)
    }
    fn interrupt(&mut self) {}
    fn has_ended(&mut self) -> bool {
        self.answer.is_none()
    }
    fn wait(&mut self, _patience: Duration) -> Ended {
        self.ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn program_exchanges_lines_and_can_be_interrupted() {
        let mut cat = Program::start("here", &["cat"]).expect("cat");
        cat.tell("one").expect("told");
        assert_eq!(cat.hear(PATIENCE).as_deref(), Some("one"));
        assert_eq!(cat.hear(Duration::from_millis(1)), None);
        cat.interrupt();
        let ended = cat.wait(PATIENCE);
        assert!(!ended.well && ended.status.contains("signal: 2"), "{ended:?}");
    }

    /// A program never outlives its laboratory: here the thread that started it exits without
    /// cleaning up.
    #[test]
    fn program_does_not_outlive_the_thread_that_started_it() {
        let started = std::thread::spawn(|| {
            let sleep = Program::start("here", &["sleep", "600"]).expect("sleep");
            let pid = sleep.child.id();
            std::mem::forget(sleep);
            pid
        });
        let stat = format!("/proc/{}/stat", started.join().expect("a process"));
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
        let deadline = Instant::now() + PATIENCE;
        while !is_gone() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(is_gone());
    }

    #[test]
    fn program_is_killed_after_the_timeout_and_a_missing_one_is_named() {
        let mut sleep = Program::start("here", &["sleep", "60"]).expect("sleep");
        let ended = sleep.wait(Duration::from_millis(20));
        assert!(!ended.well && ended.status.contains("was killed"), "{ended:?}");
        let missing = Program::start("here", &["no-such-program-anywhere"]);
        assert!(missing.expect_err("missing").to_string().contains("is not installed"));
        let mut sh = Program::start("here", &["sh", "-c", "echo why >&2; exit 3"]).expect("sh");
        let ended = sh.wait(PATIENCE);
        assert_eq!((ended.well, ended.code, ended.errors.as_str()), (false, Some(3), "why\n"));
    }

    #[test]
    fn wrapped_program_ends_and_one_in_the_background_does_not_block() {
        let started = Instant::now();
        let is_alive = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|text| !text.contains(") Z "))
        };
        let ends = |pid: &str| {
            while is_alive(pid) && started.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(2));
            }
            !is_alive(pid)
        };
        let run = |line: &str| {
            let mut sh = Program::start("here", &["sh", "-c", line]).expect("sh");
            let pid = sh.hear(PATIENCE).expect("a process id");
            (sh, pid)
        };
        let (mut wrapped, inner) = run("sh -c 'echo $$; exec sleep 60'; exit 7");
        wrapped.interrupt();
        wrapped.wait(PATIENCE);
        assert!(ends(&inner));
        let (mut killed, inner) = run("trap '' INT; sh -c 'echo $$; exec sleep 60'; exit 7");
        let ended = killed.wait(Duration::from_millis(20));
        assert!(ended.status.contains("was killed"), "{ended:?}");
        assert!(ends(&inner));
        let (mut sh, background) = run("sleep 60 & echo $!; echo why >&2");
        let ended = sh.wait(PATIENCE);
        assert_eq!((ended.well, ended.errors.as_str()), (true, "why\n"));
        drop(sh);
        assert!(is_alive(&background));
        let _ = Command::new("kill").args(["-9", &background]).status();
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
