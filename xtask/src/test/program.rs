//! Runs one test program: collects its output line by line, its skips and its times.

use super::build::Program;
use super::levels::Level;
use super::libtest::{Listing, Outcome};
use super::skips;
use super::tally::Run;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Maximum time per program. The slowest one takes half of it on two busy CPUs.
const LIMIT: Duration = Duration::from_secs(45 * 60);
/// Interval of checks for a program's end.
const TICK: Duration = Duration::from_millis(20);
/// Time to wait for output after the end: a process started by a test may keep the pipe open.
const DRAIN: Duration = Duration::from_millis(500);
/// Clock ticks per second in `/proc`: `USER_HZ`, 100 on every platform of Linux in use.
const TICKS_PER_SECOND: u64 = 100;

enum Line {
    Out(String),
    Err(String),
}

/// Settings for all programs of a run.
pub(crate) struct Setting {
    /// Arguments for libtest.
    pub(crate) arguments: Vec<String>,
    /// Additional environment variables.
    pub(crate) environment: Vec<(&'static str, PathBuf)>,
    /// Directory for skip records.
    pub(crate) scratch: PathBuf,
}

/// Runs a program and prints its lines, prefixed with its name.
///
/// # Errors
/// Fails if the program cannot be started.
pub(crate) fn run(program: &Program, setting: &Setting) -> Result<Run> {
    let records = setting.scratch.join(program.name.replace(['/', ' '], "_"));
    let began = Instant::now();
    let mut child = Command::new(&program.file)
        .args(&setting.arguments)
        .envs(setting.environment.iter().map(|(name, value)| (name, value)))
        .env("RUST_TEST_THREADS", threads(program))
        .current_dir(&program.directory)
        .env("CARGO_MANIFEST_DIR", &program.directory)
        .env("FWDLAB_SKIPPED", &records)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.file.display()))?;
    let (sender, lines) = mpsc::channel();
    forward(child.stdout.take(), sender.clone(), Line::Out);
    forward(child.stderr.take(), sender, Line::Err);
    let mut listing = Listing::default();
    let mut show = |line: Line| show(&program.name, line, &mut listing, &records);
    let end = follow(&mut child, &lines, began, &mut show)?;
    Ok(Run {
        name: program.name.clone(),
        listing,
        skips: skips::read(&records),
        error: end.error,
        wall: began.elapsed(),
        cpu: end.cpu,
    })
}

/// Returns the number of tests to run at the same time. Guests compute, the hosts of a laboratory
/// wait and compute, most other tests wait for packets. `RUST_TEST_THREADS` of the caller takes
/// precedence.
fn threads(program: &Program) -> OsString {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match program.level {
        Level::Vm => cpus,
        Level::Lab => cpus + 1,
        _ => 2 * cpus,
    };
    std::env::var_os("RUST_TEST_THREADS").unwrap_or_else(|| threads.to_string().into())
}

/// Sends lines until the pipe closes.
fn forward(
    pipe: Option<impl Read + Send + 'static>,
    lines: Sender<Line>,
    wrap: impl Fn(String) -> Line + Send + 'static,
) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { return };
            if lines.send(wrap(String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    });
}

/// Prints a line; prints a passed test that reported a skip as skipped.
fn show(program: &str, line: Line, listing: &mut Listing, records: &Path) {
    match line {
        Line::Err(line) => eprintln!("{program}: {line}"),
        Line::Out(line) => match listing.read(&line) {
            Some((test, Outcome::Ok)) => match skips::reason(&skips::read(records), test) {
                Some(reason) => println!("{program}: test {test} ... skipped: {reason}"),
                None => println!("{program}: {line}"),
            },
            _ if line.is_empty() => {}
            _ => println!("{program}: {line}"),
        },
    }
}

struct End {
    error: Option<String>,
    cpu: Duration,
}

/// Shows lines until the program has ended and its pipes are empty.
fn follow(
    child: &mut Child,
    lines: &Receiver<Line>,
    began: Instant,
    show: &mut impl FnMut(Line),
) -> Result<End> {
    let mut cpu = Duration::ZERO;
    let mut killed = false;
    loop {
        let line = lines.recv_timeout(TICK);
        // The times of a zombie are final; they disappear when the parent waits for it.
        let stat = Stat::read(child.id());
        cpu = cpu.max(stat.as_ref().map_or(Duration::ZERO, |stat| stat.cpu));
        match line {
            Ok(line) => show(line),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stat.is_none_or(|stat| stat.is_zombie) {
            break;
        }
        if began.elapsed() > LIMIT && !killed {
            child.kill().context("cannot kill a program that exceeded its time limit")?;
            killed = true;
        }
    }
    let status = child.wait().context("cannot wait for a program")?;
    while let Ok(line) = lines.recv_timeout(DRAIN) {
        show(line);
    }
    let error = match killed {
        true => Some(format!("killed after {} minutes", LIMIT.as_secs() / 60)),
        false => error(status),
    };
    Ok(End { error, cpu })
}

fn error(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => Some(status.to_string()),
    }
}

/// A process in `/proc/PID/stat`, see proc_pid_stat(5).
struct Stat {
    is_zombie: bool,
    /// Time of the process and of the children that it waited for.
    cpu: Duration,
}

impl Stat {
    fn read(process: u32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name before it may contain anything, including parentheses.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok());
        Some(Stat {
            is_zombie: fields.first() == Some(&"Z"),
            cpu: Duration::from_millis(ticks.sum::<u64>() * 1000 / TICKS_PER_SECOND),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::Lane;
    use super::*;

    fn script(text: &str) -> (Run, tempfile::TempDir) {
        let scratch = tempfile::tempdir().expect("a directory");
        let program = Program {
            name: "script".to_owned(),
            file: "/bin/sh".into(),
            directory: scratch.path().to_owned(),
            level: Level::Unit,
            lane: Lane::Machine,
        };
        let setting = Setting {
            arguments: vec!["-c".to_owned(), text.to_owned()],
            environment: Vec::new(),
            scratch: scratch.path().to_owned(),
        };
        let run = run(&program, &setting).expect("sh runs");
        (run, scratch)
    }

    #[test]
    fn run_collects_output_skips_and_processor_time() {
        let (run, _scratch) = script(
            "printf 'script\\ta\\tskipped\\tno moon\\n' >> $FWDLAB_SKIPPED; echo 'test a ... ok'; \
             sh -c 'n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done'; echo 'test b ... ok'; \
             echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'",
        );
        let tally = run.tally();
        assert_eq!((tally.passed, tally.failed.len(), tally.skipped.len()), (1, 0, 1), "{tally:?}");
        // Includes the inner shell, which the outer one waited for.
        assert!(run.cpu > Duration::ZERO && run.cpu <= run.wall * 2, "{run:?}");
    }

    #[test]
    fn run_reports_a_fatal_signal_as_failure() {
        let (run, _scratch) = script("echo 'test a ... ok'; kill -SEGV $$");
        let tally = run.tally();
        assert_eq!((run.error.as_deref(), tally.passed), (Some("signal 11"), 1));
        assert_eq!(tally.failed.len(), 1);
    }

    #[test]
    fn run_does_not_wait_for_background_processes() {
        let (run, _scratch) = script("sleep 5 & echo 'test a ... ok'; exit 7");
        assert!(run.wall < Duration::from_secs(4), "{:?}", run.wall);
        assert_eq!((run.error.as_deref(), run.tally().passed), (Some("exit code 7"), 1));
    }

    #[test]
    fn stat_parse_accepts_any_process_name() {
        let text = "12 (a) Z (b) Z 1 1 1 0 -1 4 10 0 0 0 150 50 25 25 20 0 1 0 100";
        let stat = Stat::parse(text).expect("fields");
        assert!(stat.is_zombie);
        assert_eq!(stat.cpu, Duration::from_millis(2500));
    }
}
