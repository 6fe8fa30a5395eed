//! An OpenSSH server of a test: its own keys, port and files, ended with it.

use fwdlab_bench::host::{SshHost, SshSettings};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Time limit for every step of the tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    child: Child,
}

impl Server {
    /// Starts a server with `more` lines of configuration; `None` if sshd is missing.
    pub(crate) fn start(more: &str) -> Option<Server> {
        let program = ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"];
        let Some(program) = program.into_iter().find(|path| Path::new(path).exists()) else {
            fwdlab_testdata::skip("sshd is not installed");
            return None;
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fwdlab-sshd-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory");
        // The directory that the service's own unit creates before it starts.
        let _ = fs::create_dir("/run/sshd");
        for key in ["host", "other", "user"] {
            let file = directory.join(key);
            let generated = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(file)
                .status();
            assert!(generated.is_ok_and(|status| status.success()), "ssh-keygen");
        }
        let port = free_port();
        let child = spawn_sshd(program, &directory, port, more);
        let mut server = Server { directory, port, child };
        // Another process may have taken a port that was free a moment ago.
        for _ in 0..3 {
            if server.is_listening() {
                break;
            }
            let _ = server.child.kill();
            let _ = server.child.wait();
            server.port = free_port();
            server.child = spawn_sshd(program, &server.directory, server.port, more);
        }
        assert!(server.is_listening(), "sshd is not up: {}", server.log());
        server.knows_hosts("host");
        Some(server)
    }

    /// Returns true once it listens; false if it has ended.
    fn is_listening(&mut self) -> bool {
        let expected = format!("Server listening on 127.0.0.1 port {}.", self.port);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            if self.log().contains(&expected) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Writes the client's files; `key` is the host key that it knows, if any.
    pub(crate) fn knows_hosts(&self, key: &str) {
        let at = self.directory.display();
        let public = fs::read_to_string(self.directory.join(format!("{key}.pub")));
        let known = public.map(|public| format!("[127.0.0.1]:{} {public}", self.port));
        fs::write(self.directory.join("known"), known.unwrap_or_default()).expect("known hosts");
        let config = format!(
            "Host dut\n HostName 127.0.0.1\n Port {}\n IdentityFile {at}/user\n\
             IdentitiesOnly yes\n IdentityAgent none\n UserKnownHostsFile {at}/known\n\
             GlobalKnownHostsFile /dev/null\n",
            self.port
        );
        fs::write(self.directory.join("config"), config).expect("a configuration");
    }

    pub(crate) fn settings(&self) -> SshSettings {
        SshSettings { config: Some(self.directory.join("config")), ..SshSettings::default() }
    }

    pub(crate) fn host(&self) -> SshHost {
        SshHost::connect("dut", self.settings())
            .unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("sshd.log")).unwrap_or_default()
    }

    /// Number of accepted connections.
    pub(crate) fn logins(&self) -> usize {
        self.log().matches("Accepted publickey").count()
    }

    /// Processes of the server without the listening one: at least one per connection.
    pub(crate) fn children(&self) -> Vec<u32> {
        let mut pids = vec![self.child.id()];
        let mut next = 0;
        while let Some(parent) = pids.get(next).copied() {
            let of_parent = processes().into_iter().filter(|&pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
                after.split(' ').nth(1) == Some(parent.to_string().as_str())
                    && comm(pid).starts_with("sshd")
            });
            pids.extend(of_parent);
            next += 1;
        }
        pids.split_off(1)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for pid in self.children() {
            signal("KILL", pid);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Starts an sshd in a directory with its keys, with `more` lines of configuration.
fn spawn_sshd(program: &str, directory: &Path, port: u16, more: &str) -> Child {
    let at = directory.display();
    let config = format!(
        "{more}\nListenAddress 127.0.0.1:{port}\nHostKey {at}/host\nPidFile none\n\
         AuthorizedKeysFile {at}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
         KbdInteractiveAuthentication no\nLogLevel VERBOSE\n\
         SetEnv HOME={at}\n"
    );
    fs::write(directory.join("sshd_config"), config).expect("a configuration");
    let log = fs::File::create(directory.join("sshd.log")).expect("a log");
    Command::new(program)
        .args(["-D", "-e", "-f"])
        .arg(directory.join("sshd_config"))
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("sshd")
}

/// Returns a loopback port on which no one listens.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

pub(crate) fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
}

/// Waits until the condition holds; returns false if it never does.
pub(crate) fn until(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    condition()
}

/// A number of seconds that no other process sleeps: both sides are this machine, so every process
/// that names it is the program, its guard or the `ssh` that started it.
pub(crate) fn long_time() -> String {
    format!("8640{}.{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Processes that have this word among their arguments.
pub(crate) fn naming(word: &str) -> Vec<u32> {
    let names = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    processes().into_iter().filter(names).collect()
}

/// Returns true once a sleep of this time has begun.
pub(crate) fn sleeps(time: &str) -> bool {
    let line = format!("sleep\0{time}\0");
    processes().iter().any(|pid| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes())
    })
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}
