//! QEMU's process: its start, its end, and a watchdog for stopped processes.
//!
//! A stopped process (SIGSTOP, a debugger, job control of a shell) does not respond, and clients of
//! its guest have timeouts of up to minutes. So a thread watches each process: it kills a process
//! that has been stopped for [`STOPPED`], which ends all waiting immediately, and records the
//! reason. It also kills a process whose guest KVM gave up: QEMU reports that and waits for someone
//! to inspect the guest.

use crate::error::VmError;
use fwdlab_netio::process;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// Package that contains QEMU.
pub(crate) const PACKAGE: &str = "qemu-system-x86";
/// Maximum time that QEMU may be stopped: longer than the wait for a batch of packets, whose
/// failure is more informative.
pub(crate) const STOPPED: Duration = Duration::from_secs(20);
/// Beginnings of QEMU's messages that KVM can't continue with a guest.
const GIVEN_UP: [&str; 2] = ["KVM internal error", "KVM: entry failed"];
/// Maximum time that QEMU may write after an interrupt.
const WRITING: Duration = Duration::from_secs(20);
/// Interval between two checks of the process.
const LOOK: Duration = Duration::from_secs(1);

/// Starts QEMU without input and output; it dies with the calling thread.
///
/// # Errors
/// If QEMU is missing.
pub(crate) fn spawn(command: &mut Command) -> Result<Child, VmError> {
    let command = process::die_with_us(command).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map_err(|error| missing(&error))
}

/// The error if QEMU can't be started.
pub(crate) fn missing(error: &io::Error) -> VmError {
    VmError::Program {
        program: QEMU.into(),
        why: error.to_string(),
        next: format!("install {PACKAGE}"),
    }
}

/// A QEMU that runs a guest. Dropping it ends QEMU.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    child: Mutex<Child>,
    /// Ends the watchdog.
    is_over: AtomicBool,
    was_stopped: AtomicBool,
    was_given_up: AtomicBool,
}

impl Shared {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Watches a child that writes to `log` from now on; it may be stopped for at most `patience`.
    pub(crate) fn watched(child: Child, patience: Duration, log: PathBuf) -> Process {
        let pid = child.id();
        let shared = Arc::new(Shared {
            child: Mutex::new(child),
            is_over: AtomicBool::new(false),
            was_stopped: AtomicBool::new(false),
            was_given_up: AtomicBool::new(false),
        });
        let thread_shared = shared.clone();
        let watch = std::thread::spawn(move || watch(pid, &thread_shared, patience, &log));
        Process { pid, shared, watch: Some(watch) }
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    /// Returns the exit status; `None` while the process runs.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.shared.child().try_wait().ok().flatten()
    }

    /// True if it was killed because it had been stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        self.shared.was_stopped.load(Ordering::Relaxed)
    }

    /// True if it was killed because KVM gave its guest up.
    pub(crate) fn was_given_up(&self) -> bool {
        self.shared.was_given_up.load(Ordering::Relaxed)
    }

    /// Switches the guest off: interrupts QEMU, so that it first writes buffered disk data, and
    /// kills it if it does not end.
    pub(crate) fn switch_off(&mut self) {
        // It may have ended by itself.
        let _ = process::interrupt(self.pid);
        let deadline = Instant::now() + WRITING;
        while self.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.end();
    }

    /// Kills the process; a second call does nothing.
    pub(crate) fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let mut child = self.shared.child();
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        drop(child);
        if let Some(watch) = self.watch.take() {
            watch.thread().unpark();
            // The thread has no result.
            let _ = watch.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Kills a process that has been stopped for too long, or whose guest KVM gave up.
fn watch(pid: u32, shared: &Shared, patience: Duration, log: &Path) {
    let mut stopped: Option<Instant> = None;
    while !shared.is_over.load(Ordering::Relaxed) {
        stopped = if is_stopped(pid) { stopped.or_else(|| Some(Instant::now())) } else { None };
        let is_stuck = stopped.is_some_and(|since| since.elapsed() >= patience);
        let is_given_up = given_up(log).is_some();
        if is_stuck || is_given_up {
            shared.was_stopped.store(is_stuck, Ordering::Relaxed);
            shared.was_given_up.store(is_given_up, Ordering::Relaxed);
            // `end` waits for the process later.
            let _ = shared.child().kill();
            return;
        }
        std::thread::park_timeout(LOOK.min(patience / 2));
    }
}

/// Returns the line in which QEMU reports that KVM gave its guest up; `None` without such a line.
pub(crate) fn given_up(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let mut lines = text.lines();
    lines.find(|line| GIVEN_UP.iter().any(|words| line.starts_with(words))).map(str::to_owned)
}

/// True for a process stopped by a signal or a debugger (proc(5), field 3).
fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Process {
        sleeper_with(Path::new("/nonexistent"))
    }

    fn sleeper_with(log: &Path) -> Process {
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        Process::watched(child, Duration::from_millis(300), log.to_owned())
    }

    fn signal(name: &str, process: &Process) {
        let pid = process.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill").success());
    }

    fn ends_within(process: &Process, time: Duration) -> bool {
        let began = Instant::now();
        while process.ended().is_none() && began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(10));
        }
        process.ended().is_some()
    }

    #[test]
    fn watch_kills_only_stopped_processes() {
        let process = sleeper();
        signal("-STOP", &process);
        assert!(ends_within(&process, Duration::from_secs(30)) && process.was_stopped());
        let process = sleeper();
        assert!(!ends_within(&process, Duration::from_millis(900)));
        assert!(!process.was_stopped());
    }

    #[test]
    fn watch_kills_guest_given_up_by_kvm() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("qemu.log");
        fs::write(&log, "waiting for connection\n").expect("a file");
        let process = sleeper_with(&log);
        assert!(!ends_within(&process, Duration::from_millis(600)));
        fs::write(&log, "waiting\nKVM internal error. Suberror: 1\nEAX=0\n").expect("a file");
        assert!(ends_within(&process, Duration::from_secs(30)) && process.was_given_up());
        assert!(!process.was_stopped());
        assert_eq!(given_up(&log).as_deref(), Some("KVM internal error. Suberror: 1"));
    }

    #[test]
    fn end_kills_stopped_process() {
        // A watch that does not end it first.
        let child = Command::new("sleep").arg("600").spawn().expect("sleep");
        let mut process = Process::watched(child, Duration::from_secs(600), "/nonexistent".into());
        signal("-STOP", &process);
        process.end();
        process.end();
        assert!(process.ended().is_some() && !process.was_stopped());
    }

    #[test]
    fn spawn_names_package_of_missing_program() {
        let error = spawn(&mut Command::new("no-such-qemu")).expect_err("none").to_string();
        assert!(error.contains(QEMU) && error.contains("install qemu-system-x86"), "{error}");
    }
}
