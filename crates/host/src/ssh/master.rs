//! The ssh connection to a host, shared by all commands.
//!
//! `ssh` runs it as a background process (ControlMaster). It is opened separately before the first
//! command, to distinguish connection errors from command errors, and reopened after it is lost.

use super::hints::{self, ConnectionUse};
use crate::SshSettings;
use crate::error::BenchError;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Idle time in seconds after which the master exits, in case fwdlab was killed.
const PERSIST_S: u32 = 60;
/// A socket's path may have 103 bytes (FreeBSD's `sun_path`), of which `ssh` needs 17 for a
/// temporary name.
const LONGEST_PATH: usize = 103 - 17;
/// Time limit for the master to execute a request, or for the remote host to close a session.
pub(super) const GRACE: Duration = Duration::from_secs(3);

static COUNT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Master {
    destination: String,
    settings: SshSettings,
    directory: PathBuf,
    opening: Mutex<()>,
}

impl Master {
    /// Opens the connection.
    pub(super) fn open(destination: &str, settings: SshSettings) -> Result<Master, BenchError> {
        let parent = settings.directory.clone().unwrap_or_else(std::env::temp_dir);
        let directory = private_directory(&parent).map_err(|(path, source)| BenchError::File {
            path: path.display().to_string(),
            host: "this machine".into(),
            source,
        })?;
        let destination = destination.to_owned();
        let master = Master { destination, settings, directory, opening: Mutex::new(()) };
        master.ensure()?;
        Ok(master)
    }

    /// Start of every command line of `ssh`, up to and including the destination.
    pub(super) fn command(&self, more: &[&str]) -> Vec<String> {
        let settings = &self.settings;
        let mut words = vec!["ssh".to_owned()];
        if let Some(file) = &settings.config {
            words.extend(["-F".to_owned(), file.display().to_string()]);
        }
        // No terminal, no forwarding, no command but ours; otherwise the user's configuration
        // applies (above all host keys).
        words.extend(["-T", "-x", "-a"].map(String::from));
        words.extend(["-S".to_owned(), self.socket().display().to_string().replace('%', "%%")]);
        for option in [
            "BatchMode=yes".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "RemoteCommand=none".to_owned(),
            "EscapeChar=none".to_owned(),
            "LogLevel=INFO".to_owned(),
            format!("ConnectTimeout={}", settings.connect.as_secs().max(1)),
            format!("ServerAliveInterval={}", settings.alive.as_secs().max(1)),
            format!("ServerAliveCountMax={}", settings.alive_count.max(1)),
        ] {
            words.extend(["-o".to_owned(), option]);
        }
        words.extend(more.iter().map(|word| word.to_string()));
        words.extend(["--".to_owned(), self.destination.clone()]);
        words
    }

    /// Opens the connection unless it is open.
    pub(super) fn ensure(&self) -> Result<(), BenchError> {
        let _one_at_a_time = self.opening.lock();
        if UnixStream::connect(self.socket()).is_ok() {
            return Ok(());
        }
        // A killed master leaves its socket behind.
        let _ = fs::remove_file(self.socket());
        let host = self.destination.as_str();
        let failed = |why: &str| hints::connection(host, ConnectionUse::Opening, why, "");
        let (log, errors) = (self.log(), self.directory.join("errors"));
        let _ = fs::remove_file(&log);
        let stderr = File::create(&errors).map_err(|error| failed(&error.to_string()))?;
        let (persist, log) = (format!("ControlPersist={PERSIST_S}"), log.display().to_string());
        let more = ["-M", "-N", "-f", "-E", &log, "-o", &persist];
        let mut child = start(&self.command(&more), stderr.into()).map_err(|why| failed(&why))?;
        let patience = self.settings.connect + GRACE;
        let status = wait(&mut child, Instant::now() + patience);
        let output = || self.output() + &fs::read_to_string(&errors).unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(failed(&output())),
            None => {
                end(&mut child);
                let late = format!("{}\nthe connection timed out after {patience:?}", output());
                Err(failed(&late))
            }
        }
    }

    /// Output of the master, including its output from the background.
    pub(super) fn output(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Ends the connection and everything that runs over it.
    pub(super) fn close(&self) {
        let _one_at_a_time = self.opening.lock();
        if !self.socket().exists() {
            return;
        }
        let words = self.command(&["-O", "exit"]);
        if let Ok(mut child) = start(&words, Stdio::null())
            && wait(&mut child, Instant::now() + GRACE).is_none()
        {
            end(&mut child);
        }
        // Removing its socket is the last thing the master does.
        let deadline = Instant::now() + GRACE;
        while self.socket().exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.close();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A new directory for this user only, with a short path.
fn private_directory(parent: &Path) -> Result<PathBuf, (PathBuf, std::io::Error)> {
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fwdlab-ssh-{}-{number}", std::process::id());
        let mut path = parent.join(&name);
        if path.as_os_str().len() + "/s".len() > LONGEST_PATH {
            path = Path::new("/tmp").join(&name);
        }
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // Left behind by a process with the same process id.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err((path, error)),
        }
    }
}

/// Starts an `ssh` that prints nothing on standard output.
fn start(words: &[String], stderr: Stdio) -> Result<Child, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    fwdlab_netio::process::die_with_us(&mut command).spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "ssh is not installed on this machine".into(),
        _ => error.to_string(),
    })
}

/// Waits for a program's exit; `None` if it is still running at the deadline.
pub(super) fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Kills a program immediately.
pub(super) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
