//! Two hosts with a router between them, each in its own network namespace: the hosts use the
//! kernel's stack, the router is `fwdlab route`.
//!
//! ```text
//! a: a0 10.1.0.2/24, 2001:db8:1::2/64 --- r0 [router] r1 --- b0 10.2.0.2/24, 2001:db8:2::2/64 :b
//! ```

use crate::spaces::{Spaces, is_there};
use fwdlab_netio::netns::NetNs;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Interfaces of any set-up.
const INTERFACES: &str = r#"
[[interface]]
name = "r0"
port = "$PORT"
$NEAR
addresses = ["10.1.0.1/24", "2001:db8:1::1/64", "fe80::1/64"]
[[interface]]
name = "r1"
port = "$PORT"
addresses = ["10.2.0.1/24", "2001:db8:2::1/64", "fe80::1/64"]
"#;

/// The hosts `a` and `b`, and the router's host.
pub(crate) struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;

    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl DerefMut for Net {
    fn deref_mut(&mut self) -> &mut Spaces {
        &mut self.0
    }
}

impl Net {
    /// Returns `None`, with a recorded skip, if a requirement is missing.
    pub(crate) fn new(needed: &[&str]) -> Option<Net> {
        let mut programs = needed.iter().chain(&["ip", "ethtool"]);
        let is_here = |program: &&str| Command::new(program).arg("-V").output().is_ok();
        programs.all(|program| is_there(is_here(program), program)).then_some(())?;
        Spaces::stand(&["a", "r", "b"], links).map(Net)
    }

    /// Starts the router with ports of a kind and waits until packets pass.
    pub(crate) fn route(&mut self, port: &str, setup: &str) {
        self.route_with(port, setup, "");
    }

    /// As [`Net::route`], with more keys for the interface near `a`.
    pub(crate) fn route_with(&mut self, port: &str, setup: &str, near: &str) {
        let interfaces = INTERFACES.replace("$PORT", port).replace("$NEAR", near);
        self.0.route(&format!("{setup}\n{interfaces}"));
        let begin = Instant::now();
        while !self.run("a", &["ping", "-c", "1", "-W", "1", "10.1.0.1"]).0 {
            assert!(begin.elapsed() < Duration::from_secs(30), "the router answers");
        }
    }

    /// Runs a program on a host in the background and discards its output.
    pub(crate) fn start(&self, host: &str, program: &[&str]) -> Child {
        let mut command = self.command(host, program);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ip starts")
    }

    /// Runs `work` in a host's namespace, on a separate thread.
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

/// A shell script that makes their links.
fn links(spaces: &Spaces) -> String {
    let mut script = String::new();
    for (host, number) in [("a", 1), ("b", 2)] {
        let (own, router) = (spaces.space(host), spaces.space("r"));
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
    script
}
