//! Network namespaces of hosts and of the router between them, which every test here uses.

use fwdlab_model::router::RouterStats;
use fwdlab_netio::process::interrupt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Prefix of the names of all namespaces of these tests, followed by the process ID.
const PREFIX: &str = "fwclients-";

/// The hosts; `r` is the router's, which runs after [`Spaces::route`]. Dropping it removes
/// everything. Remains of a killed test are removed before the next one begins.
pub(crate) struct Spaces {
    name: String,
    hosts: &'static [&'static str],
    directory: tempfile::TempDir,
    router: Option<Child>,
    /// Output of the router so far.
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// Returns `is_there`; if false, records a skip that names `what`, and fails in CI.
pub(crate) fn is_there(is_there: bool, what: &str) -> bool {
    if !is_there {
        fwdlab_testdata::skip(&format!("{what} is missing"));
    }
    is_there
}

impl Spaces {
    /// Creates the hosts' namespaces, and runs a shell script that fills them. `None` if that is
    /// impossible.
    pub(crate) fn stand(
        hosts: &'static [&'static str],
        links: impl Fn(&Spaces) -> String,
    ) -> Option<Spaces> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        clean_up_after_the_dead();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spaces =
            Spaces { name, hosts, directory, router: None, said: Arc::default(), listener: None };
        let all = hosts.iter().map(|host| spaces.space(host));
        let made = all.map(|space| format!("ip netns add {space}\nip -n {space} link set lo up\n"));
        let script = format!("set -e\n{}{}", made.collect::<String>(), links(&spaces));
        let status = Command::new("sh").args(["-c", &script]).status();
        let is_created = status.is_ok_and(|status| status.success());
        is_there(is_created, "the right to make network namespaces").then_some(spaces)
    }

    /// The namespace of a host.
    pub(crate) fn space(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    /// Path of a file of the test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command on a host.
    pub(crate) fn command(&self, host: &str, program: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host)]).args(program);
        command
    }

    /// Runs a program on a host; returns true if it succeeded, and its output.
    pub(crate) fn run(&self, host: &str, program: &[&str]) -> (bool, String) {
        let output = self.command(host, program).output().expect("ip starts");
        let text = [&output.stdout[..], &output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs `fwdlab route ctl`; returns true if it succeeded, and its output.
    pub(crate) fn ctl(&self, words: &str) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
        command.args(["route", "ctl"]).arg(self.file("socket")).args(words.split_whitespace());
        let output = command.output().expect("fwdlab starts");
        let text = [&output.stdout[..], &output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// The answer to a command of `fwdlab route ctl` as JSON.
    pub(crate) fn ctl_json(&self, words: &str) -> serde_json::Value {
        let (succeeded, output) = self.ctl(&format!("--json {words}"));
        assert!(succeeded, "{words}: {output}");
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }

    /// Writes the router's set-up, and starts the router.
    pub(crate) fn route(&mut self, setup: &str) {
        let file = self.write(setup);
        let (file, socket) = (file.to_string_lossy(), self.file("socket"));
        let socket = socket.to_string_lossy();
        let fwdlab = env!("CARGO_BIN_EXE_fwdlab");
        let program = [fwdlab, "route", &file, "--json", "--socket", &socket];
        let mut command = self.command("r", &program);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the router starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let output = Arc::<Mutex<String>>::default();
        self.said = Arc::clone(&output);
        self.listener = Some(std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.push_str(&line);
                output.push('\n');
            }
        }));
        self.router = Some(child);
    }

    /// Replaces the router's set-up atomically, since it may be read at any time.
    pub(crate) fn write(&self, setup: &str) -> PathBuf {
        let (file, new) = (self.file("router.toml"), self.file("router.toml.new"));
        fs::write(&new, setup).expect("a file");
        fs::rename(&new, &file).expect("a file of ours");
        file
    }

    /// Output of the router so far.
    pub(crate) fn output(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The router's process.
    pub(crate) fn router(&self) -> u32 {
        self.router.as_ref().expect("it was started").id()
    }

    /// Ends the router; returns its counters and its output.
    pub(crate) fn end(&mut self) -> (RouterStats, String) {
        let mut router = self.router.take().expect("it was started");
        interrupt(router.id()).expect("it runs");
        let mut out = String::new();
        router.stdout.as_mut().expect("a pipe").read_to_string(&mut out).expect("text");
        router.wait().expect("it ends");
        self.listener.take().expect("it listens").join().expect("text");
        let output = self.output();
        let stats = serde_json::from_str(out.trim());
        (stats.unwrap_or_else(|error| panic!("{error}: {out}{output}")), output)
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        if let Some(mut router) = self.router.take() {
            let _ = router.kill();
            let _ = router.wait();
        }
        self.hosts.iter().for_each(|host| remove(&self.space(host)));
    }
}

/// Removes namespaces of processes that no longer exist, and the processes in them.
fn clean_up_after_the_dead() {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&name);
        }
    }
}

/// Removes a namespace and ends the processes in it.
fn remove(space: &str) {
    let inside = Command::new("ip").args(["netns", "pids", space]).stderr(Stdio::null()).output();
    let inside = inside.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    for process in inside.unwrap_or_default().split_whitespace() {
        let _ = Command::new("kill").args(["-KILL", process]).stderr(Stdio::null()).status();
    }
    let _ = Command::new("ip").args(["netns", "delete", space]).stderr(Stdio::null()).status();
}
