//! A machine reached through OpenSSH's `ssh` program.
//!
//! The user's ssh configuration applies: names, ports, keys, agents, jump hosts, and strictness of
//! host key checking. There are no prompts: a request for a password or confirmation is an error.
//! All commands of a host share one connection (`master.rs`), each program has a guard on the
//! remote host (`remote.rs`), and each error names host, command and the last lines of output
//! (`hints.rs`). The remote host needs an OpenSSH server and a POSIX `/bin/sh` with the standard
//! utilities, as on Linux and the BSDs.
//!
//! Files are copied through `cat`, byte for byte: this needs neither an sftp server nor a second
//! way of quoting.
//!
//! Not supported: port forwarding, terminals, privilege escalation (sudo), waiting for a booting
//! machine. An idle connection sends keepalives every [`SshSettings::alive`]; [`SshHost::close`]
//! closes it when even these would disturb. The next command reopens it.

mod hints;
mod master;
mod remote;
mod session;
mod shell;

use super::{Host, Running};
use crate::error::BenchError;
use master::{GRACE, Master};
use session::{Mode, PipeBuffer, RemoteProgram, Session, skip_to_output};
use shell::Shell;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Settings of the connection to a host.
#[derive(Clone, Debug)]
pub struct SshSettings {
    /// Configuration file to use instead of the user's own (`ssh -F`).
    pub config: Option<PathBuf>,
    /// Time limit of a command, after which it is killed.
    pub deadline: Duration,
    /// Time limit for connecting, whole seconds.
    pub connect: Duration,
    /// Keepalive interval (`ServerAliveInterval`), whole seconds.
    pub alive: Duration,
    /// Unanswered keepalives after which the connection is closed (`ServerAliveCountMax`).
    pub alive_count: u32,
    /// True to run all commands in one remote shell instead of with one guard each: for an emulated
    /// machine, on which starting a program takes long.
    pub one_shell: bool,
    /// Parent directory for the connection's socket, instead of the directory for temporary files.
    pub directory: Option<PathBuf>,
}

impl Default for SshSettings {
    fn default() -> SshSettings {
        SshSettings {
            config: None,
            deadline: Duration::from_secs(60),
            connect: Duration::from_secs(10),
            alive: Duration::from_secs(5),
            alive_count: 3,
            one_shell: false,
            directory: None,
        }
    }
}

/// Minimum transfer rate in bytes per second, which extends the deadline of file copies.
const SLOWEST: u64 = 1_000_000;
/// Input size in bytes from which a separate session is faster: a shell reads a pipe byte by byte.
const LARGE: usize = 16 * 1024;

/// Script that writes to an existing file with a single write and without truncating it: for
/// sysctls and sysfs as well as for files.
const PUT: &str = r#"[ -e "$1" ] || { echo "No such file or directory" >&2; exit 1; }
exec dd of="$1" bs=65536 conv=notrunc"#;

/// Script that writes a new file next to the old one, then renames it.
const SEND: &str = r#"cat >"$1.part" && mv -f "$1.part" "$1" || { rm -f "$1.part"; exit 1; }"#;

/// A remote machine. Dropping it closes its connection, which ends the programs that run over it.
#[derive(Debug)]
pub struct SshHost {
    destination: String,
    settings: SshSettings,
    /// Dropped before the connection.
    shell: Shell,
    master: Master,
}

impl SshHost {
    /// Connects to `destination`: a name of the configuration, `user@host`, or
    /// `ssh://user@host:port`.
    ///
    /// # Errors
    /// Fails if the destination is invalid ([`BenchError::Refused`]), cannot be reached, has a
    /// changed host key, or denies login ([`BenchError::Environment`]).
    pub fn connect(destination: &str, settings: SshSettings) -> Result<SshHost, BenchError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:@%/[]+=,~".contains(c);
        if destination.is_empty()
            || destination.starts_with('-')
            || !destination.chars().all(is_plain)
        {
            return Err(BenchError::Refused(format!("`{destination}` is no host for ssh")));
        }
        let master = Master::open(destination, settings.clone())?;
        let (destination, shell) = (destination.to_owned(), Shell::default());
        Ok(SshHost { destination, settings, shell, master })
    }

    /// Closes the connection and ends the programs that run over it; the next command reopens it.
    pub fn close(&self) {
        self.shell.close();
        self.master.close();
    }

    /// Copies a file of this machine to the host, atomically.
    ///
    /// # Errors
    /// Fails if the file cannot be read here or written there.
    pub fn send_file(&self, local: &Path, remote: &str) -> Result<(), BenchError> {
        let file = File::open(local).map_err(|source| local_error(local, source))?;
        let size = file.metadata().map_err(|source| local_error(local, source))?.len();
        let argv = ["/bin/sh", "-c", SEND, "send", &operand(remote)];
        self.run_with_io(&argv, size, file.take(size), std::io::sink(), self.time_for(size))
    }

    /// Copies a file of the host to this machine, atomically.
    ///
    /// # Errors
    /// Fails if the file cannot be read there or written here.
    pub fn fetch_file(&self, remote: &str, local: &Path) -> Result<(), BenchError> {
        let remote = operand(remote);
        let size = self.run(&["wc", "-c", &remote], "")?;
        let size = size.split_whitespace().next().and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut part = local.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = File::create(&part).map_err(|source| local_error(&part, source))?;
        let fetched = self
            .run_with_io(&["cat", &remote], 0, std::io::empty(), file, self.time_for(size))
            .and_then(|()| fs::rename(&part, local).map_err(|source| local_error(local, source)));
        if fetched.is_err() {
            let _ = fs::remove_file(&part);
        }
        fetched
    }

    fn time_for(&self, bytes: u64) -> Duration {
        self.settings.deadline + Duration::from_secs(bytes / SLOWEST)
    }

    /// Runs a program to completion, with this input and output.
    fn run_with_io(
        &self,
        argv: &[&str],
        size: u64,
        mut input: impl Read + Send + 'static,
        mut output: impl Write + Send + 'static,
        deadline: Duration,
    ) -> Result<(), BenchError> {
        let until = Instant::now() + deadline;
        let (mut session, mut pipe, from) =
            Session::start(&self.master, &self.destination, argv, Mode::Run(size))?;
        // The pipe stays open after all input is written, because its end would end the program;
        // likewise if the input is shorter than announced.
        let (_end, held) = channel::<()>();
        std::thread::spawn(move || {
            if matches!(std::io::copy(&mut input, &mut pipe), Ok(written) if written == size) {
                let _ = held.recv();
            }
        });
        let (done, copied) = channel();
        let (shown, kept) = (PipeBuffer::default(), LAST_BYTES);
        let last = shown.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let result = match skip_to_output(&mut from) {
                true => copy(&mut from, &mut output, &shown, kept),
                false => Ok(()),
            };
            let _ = done.send(result);
        });
        let in_time = session.wait(until);
        let (errors, verdict) = session.verdict();
        let copied = copied.recv_timeout(GRACE);
        let last = last.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let message = if errors.trim().is_empty() { last.unwrap_or_default() } else { errors };
        if !in_time && verdict.is_none() {
            let lines = hints::last_lines(&message);
            let lines = if lines.is_empty() { "it said nothing".into() } else { lines };
            return Err(session.failed(format!("killed after {} s: {lines}", deadline.as_secs())));
        }
        if let Ok(Err(error)) = &copied {
            return Err(session.failed(format!("its output can't be kept: {error}")));
        }
        session.judge(&self.master, argv[0], verdict, &message)?;
        copied.map(|_| ()).map_err(|_| session.failed("its output did not end"))
    }

    fn output_of(&self, argv: &[&str], stdin: &str) -> Result<Vec<u8>, BenchError> {
        if self.settings.one_shell && stdin.len() < LARGE {
            let (host, deadline) = (self.destination.as_str(), self.settings.deadline);
            return self
                .shell
                .run(&self.master, host, argv, stdin, deadline)
                .map(String::into_bytes);
        }
        let output = PipeBuffer::default();
        let input = Cursor::new(stdin.to_owned().into_bytes());
        let deadline = self.time_for(stdin.len() as u64);
        self.run_with_io(argv, stdin.len() as u64, input, output.clone(), deadline)?;
        let bytes = output.0.lock().map(|mut bytes| std::mem::take(&mut *bytes));
        Ok(bytes.unwrap_or_default())
    }

    /// Turns an error of the program that accessed a file into an error of the file.
    fn of_file(&self, path: &str, error: BenchError) -> BenchError {
        let BenchError::Program { why, .. } = &error else { return error };
        use std::io::{Error, ErrorKind};
        let kinds = [
            ("No such file or directory", ErrorKind::NotFound),
            ("Permission denied", ErrorKind::PermissionDenied),
            ("Invalid argument", ErrorKind::InvalidInput),
            ("Is a directory", ErrorKind::IsADirectory),
        ];
        let source = match kinds.iter().find(|(text, _)| why.contains(text)) {
            Some((text, kind)) => Error::new(*kind, *text),
            None => Error::other(why.clone()),
        };
        BenchError::File { path: path.into(), host: self.destination.clone(), source }
    }
}

impl Host for SshHost {
    fn name(&self) -> &str {
        &self.destination
    }

    fn run(&self, argv: &[&str], stdin: &str) -> Result<String, BenchError> {
        Ok(String::from_utf8_lossy(&self.output_of(argv, stdin)?).into_owned())
    }

    fn feed(&self, argv: &[&str], file: &Path) -> Result<String, BenchError> {
        let input = File::open(file).map_err(|source| local_error(file, source))?;
        let size = input.metadata().map_err(|source| local_error(file, source))?.len();
        let output = PipeBuffer::default();
        self.run_with_io(argv, size, input.take(size), output.clone(), self.time_for(size))?;
        let bytes = output.0.lock().map(|mut bytes| std::mem::take(&mut *bytes));
        Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
    }

    fn spawn(&self, argv: &[&str]) -> Result<Box<dyn Running>, BenchError> {
        let (name, patience) = (self.name(), self.settings.deadline);
        Ok(Box::new(RemoteProgram::start(&self.master, name, argv, patience)?))
    }

    fn put(&self, path: &str, text: &str) -> Result<(), BenchError> {
        let argv = ["/bin/sh", "-c", PUT, "put", &operand(path)];
        let written = self.output_of(&argv, text).map(|_| ());
        written.map_err(|error| self.of_file(path, error))
    }

    fn send_file(&self, from: &Path, to: &str) -> Result<(), BenchError> {
        SshHost::send_file(self, from, to)
    }

    fn get(&self, path: &str) -> Result<String, BenchError> {
        let bytes = self.output_of(&["cat", &operand(path)], "");
        let bytes = bytes.map_err(|error| self.of_file(path, error))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(_) => {
                let source = std::io::Error::from(std::io::ErrorKind::InvalidData);
                let (path, host) = (path.into(), self.destination.clone());
                Err(BenchError::File { path, host, source })
            }
        }
    }
}

/// Returns a path that no program takes for an option.
fn operand(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

fn local_error(path: &Path, source: std::io::Error) -> BenchError {
    BenchError::File { path: path.display().to_string(), host: "this machine".into(), source }
}

/// Bytes of output to keep for a message.
const LAST_BYTES: usize = 4096;

/// Copies to the end, and keeps the last bytes in addition.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    last: &PipeBuffer,
    kept: usize,
) -> std::io::Result<()> {
    let mut buffer = [0; 65536];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return to.flush(),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..count])?;
        if let Ok(mut last) = last.0.lock() {
            last.extend_from_slice(&buffer[count.saturating_sub(kept)..count]);
            let surplus = last.len().saturating_sub(kept);
            last.drain(..surplus);
        }
    }
}
