//! `fwdlab route --socket`: serves commands on a Unix socket.

use super::control::{answer, next_line};
use crate::error::CliError;
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_netio::{landlock, rights};
use fwdlab_routerd::Running;
use rustix::fs::Mode;
use rustix::process::umask;
use std::fs;
use std::io::{BufReader, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, lchown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a client has to send a line and to read its answer: others wait for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Options of the socket.
#[derive(Debug, clap::Args)]
pub(super) struct SocketArguments {
    /// Serve `fwdlab route ctl` on this Unix socket
    #[arg(long, value_name = "FILE", conflicts_with_all = ["control", "check"])]
    socket: Option<PathBuf>,
    /// Permissions of the socket, in octal: who may write to it may command the router
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode, requires = "socket")]
    socket_mode: u32,
    /// Owner of the socket, by numbers or names
    #[arg(long, value_name = "USER[:GROUP]", requires = "socket")]
    socket_owner: Option<String>,
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "permissions are an octal number, such as 660".to_owned())
}

/// A command, and the place for its answer.
struct Order {
    line: Result<String, String>,
    answer: Sender<String>,
}

/// Commands from a socket.
pub(super) struct Socket {
    path: PathBuf,
    orders: Receiver<Order>,
}

/// After its start the router may not change files: the file remains, and the next router replaces
/// it.
impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Socket {
    /// Opens the socket, if one is requested, and listens from then on.
    ///
    /// # Errors
    /// If the file cannot be created, or another process listens there.
    pub(super) fn open(arguments: &SocketArguments) -> Result<Option<Socket>> {
        let Some(path) = &arguments.socket else { return Ok(None) };
        let shown = path.display();
        let listener = bind_with_mode(path, arguments.socket_mode)?;
        if let Some(owner) = &arguments.socket_owner {
            let (user, group) = ids(owner)?;
            lchown(path, user, group).with_context(|| format!("{shown}: changing the owner"))?;
        }
        let (sender, orders) = channel();
        thread::Builder::new().name("router/socket".into()).spawn(move || {
            // The router drops its privileges in other threads.
            let dropped = rights::drop_all().and_then(|()| landlock::write_only_in(&[]));
            if let Err(error) = dropped {
                terminal::note(&error.to_string());
                return;
            }
            for client in listener.incoming().flatten() {
                // A client that goes away costs nothing but its answer.
                let _ = serve(client, &sender);
            }
        })?;
        Ok(Some(Socket { path: path.clone(), orders }))
    }

    /// Answers commands for some time.
    pub(super) fn answer(&self, running: &mut Running, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(Order { line, answer: to }) = self.orders.recv_timeout(left) else {
                // No socket sends commands any more.
                thread::sleep(end.saturating_duration_since(Instant::now()));
                return;
            };
            let _ = to.send(answer(running, line));
        }
    }
}

/// Binds a socket that has its permissions from the beginning, so that no one else connects before.
fn bind_with_mode(path: &Path, mode: u32) -> Result<UnixListener> {
    let before = umask(Mode::from_raw_mode(0o777 & !mode));
    let bound = bind(path);
    umask(before);
    bound
}

fn bind(path: &Path) -> Result<UnixListener> {
    let shown = path.display();
    let bound = UnixListener::bind(path);
    let is_taken = bound.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
    if !is_taken {
        return bound.with_context(|| format!("{shown}: opening a socket"));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(CliError::Mistake(format!(
            "{shown}: another process listens there\n  next step: name another file, or end that \
             process"
        ))
        .into());
    }
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if !is_socket {
        return Err(CliError::Mistake(format!(
            "{shown}: the file exists and is no socket\n  next step: name another file"
        ))
        .into());
    }
    // Left by a router that has ended.
    fs::remove_file(path).with_context(|| format!("{shown}: removing an unused socket"))?;
    UnixListener::bind(path).with_context(|| format!("{shown}: opening a socket"))
}

/// Numbers of a user and a group, given as `USER[:GROUP]`.
fn ids(owner: &str) -> Result<(Option<u32>, Option<u32>)> {
    let (user, group) = owner.split_once(':').unwrap_or((owner, ""));
    let one = |name: &str, file: &str| -> Result<Option<u32>> {
        if name.is_empty() {
            return Ok(None);
        }
        if let Ok(number) = name.parse() {
            return Ok(Some(number));
        }
        let lines = fs::read_to_string(file).with_context(|| file.to_owned())?;
        let entry = lines.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
        });
        let what = || CliError::Mistake(format!("`{name}` is not in {file}"));
        Ok(Some(entry.ok_or_else(what)?))
    };
    Ok((one(user, "/etc/passwd")?, one(group, "/etc/group")?))
}

fn serve(client: UnixStream, orders: &Sender<Order>) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut input = BufReader::new(client.try_clone()?);
    let mut output = client;
    while let Some(line) = next_line(&mut input)? {
        let (sender, answer) = channel();
        if orders.send(Order { line, answer: sender }).is_err() {
            break;
        }
        let Ok(text) = answer.recv() else { break };
        output.write_all(text.as_bytes())?;
        output.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn owners_are_numbers_or_names() {
        assert_eq!(ids("7:9").expect("numbers"), (Some(7), Some(9)));
        assert_eq!(ids("root").expect("a name"), (Some(0), None));
        assert_eq!(ids(":root").expect("a name"), (None, Some(0)));
        assert!(ids("no such user").is_err());
        assert_eq!(mode("660"), Ok(0o660));
        assert!(mode("8").is_err() && mode("7777").is_err());
    }

    #[test]
    fn socket_has_its_mode_from_the_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let _listener = bind_with_mode(&path, 0o640).expect("a socket");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn sockets_of_ended_routers_are_replaced_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let first = bind(&path).expect("a socket");
        assert!(bind(&path).expect_err("taken").to_string().contains("next step"));
        drop(first);
        bind(&path).expect("an unused socket");
        let file = folder.path().join("file");
        fs::write(&file, "x").expect("a file");
        assert!(bind(&file).expect_err("a file").to_string().contains("is no socket"));
        assert_eq!(fs::read(&file).expect("it is left"), b"x");
    }
}
