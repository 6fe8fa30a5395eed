//! Two hosts with a router between them, each in a network namespace of its own: the hosts
//! have the kernel's stack, the router is `fwdlab route`.
//!
//! ```text
//! a: a0 10.1.0.2/24, 2001:db8:1::2/64 --- r0 [router] r1 --- b0 10.2.0.2/24, 2001:db8:2::2/64 :b
//! ```

use fwdlab_model::router::RouterStats;
use fwdlab_port::netns::NetNs;
use fwdlab_port::process::interrupt;
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What stands in any set-up.
const INTERFACES: &str = r#"
[[interface]]
name = "r0"
port = "$PORT"
addresses = ["10.1.0.1/24", "2001:db8:1::1/64", "fe80::1/64"]
[[interface]]
name = "r1"
port = "$PORT"
addresses = ["10.2.0.1/24", "2001:db8:2::1/64", "fe80::1/64"]
"#;

/// The hosts; the router runs once it was started.
pub(crate) struct Net {
    name: String,
    directory: tempfile::TempDir,
    router: Option<Child>,
}

impl Net {
    /// None, said aloud, where there can't be any.
    pub(crate) fn new(needed: &[&str]) -> Option<Net> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
        for program in needed.iter().chain(&["ip", "ethtool"]) {
            if Command::new(program).arg("-V").output().is_err() {
                assert!(!in_ci, "{program} is missing in CI");
                eprintln!("SKIPPED: no {program}");
                return None;
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("fwc{}-{number}", std::process::id());
        let directory = tempfile::tempdir().expect("a temporary directory");
        let net = Net { name, directory, router: None };
        if !net.stand() {
            assert!(!in_ci, "namespaces can't be made in CI");
            eprintln!("SKIPPED: network namespaces can't be made here (not root, or no ip)");
            return None;
        }
        Some(net)
    }

    /// The namespace of a host, or of the router (`r`).
    pub(crate) fn space(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    fn stand(&self) -> bool {
        let mut script = String::from("set -e\n");
        for host in ["a", "r", "b"] {
            script += &format!("ip netns add {0}\nip -n {0} link set lo up\n", self.space(host));
        }
        for (host, number) in [("a", 1), ("b", 2)] {
            let (own, router) = (self.space(host), self.space("r"));
            let port = number - 1;
            script += &format!(
                "ip link add {host}0 netns {own} type veth peer name r{port} netns {router}\n\
                 ip netns exec {router} sysctl -qw net.ipv6.conf.r{port}.disable_ipv6=1\n\
                 ip -n {own} address add 10.{number}.0.2/24 dev {host}0\n\
                 ip -n {own} address add 2001:db8:{number}::2/64 dev {host}0 nodad\n\
                 ip -n {own} link set {host}0 up\n\
                 ip -n {router} link set r{port} up\n\
                 ip -n {own} route add default via 10.{number}.0.1\n\
                 ip -n {own} route add default via 2001:db8:{number}::1\n"
            );
        }
        Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
    }

    /// Starts the router with ports of a kind and waits until packets pass.
    pub(crate) fn route(&mut self, port: &str, setup: &str) {
        let file = self.directory.path().join("router.toml");
        let text = format!("{setup}\n{}", INTERFACES.replace("$PORT", port));
        fs::write(&file, text).expect("a file");
        let child = Command::new("ip")
            .args(["netns", "exec", &self.space("r"), env!("CARGO_BIN_EXE_fwdlab")])
            .args(["route", &file.to_string_lossy(), "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        self.router = Some(child.expect("the router starts"));
        let begin = Instant::now();
        while !self.run("a", &["ping", "-c", "1", "-W", "1", "10.1.0.1"]).0 {
            assert!(begin.elapsed() < Duration::from_secs(30), "the router answers");
        }
    }

    /// Ends the router; its counters, and what it said.
    pub(crate) fn end(&mut self) -> (RouterStats, String) {
        let mut router = self.router.take().expect("it was started");
        interrupt(router.id()).expect("it runs");
        let (mut out, mut said) = (String::new(), String::new());
        let pipe = router.stdout.as_mut().expect("a pipe");
        pipe.read_to_string(&mut out).expect("text");
        router.stderr.as_mut().expect("a pipe").read_to_string(&mut said).expect("text");
        router.wait().expect("it ends");
        let stats = serde_json::from_str(out.trim());
        (stats.unwrap_or_else(|error| panic!("{error}: {out}{said}")), said)
    }

    /// Runs a program on a host: whether it ended well, and what it said.
    pub(crate) fn run(&self, host: &str, command: &[&str]) -> (bool, String) {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.space(host)])
            .args(command)
            .output()
            .expect("ip starts");
        let said = [&output.stdout[..], &output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// The same in the background.
    pub(crate) fn start(&self, host: &str, command: &[&str]) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &self.space(host)])
            .args(command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ip starts")
    }

    /// Does something in a host's namespace, on a thread of its own.
    pub(crate) fn on<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let space = NetNs::open(&self.space(host)).expect("it stands");
        std::thread::spawn(move || {
            space.enter().expect("root");
            work()
        })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if let Some(mut router) = self.router.take() {
            let _ = router.kill();
            let _ = router.wait();
        }
        for host in ["a", "r", "b"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.space(host)]).status();
        }
    }
}
