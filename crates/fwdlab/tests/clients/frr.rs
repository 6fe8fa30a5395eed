//! A router between two networks that speak OSPF and BGP. FRR runs on all three hosts; the one in
//! the middle is the router's host.
//!
//! ```text
//!                              h: FRR on r0, r1, r2
//!                                       |
//! lo 10.100.0.1/24 a: a0 --- r0 [router] r1 --- b0 :b lo 10.101.0.1/24
//!                                       r2 --- b1
//! ```
//!
//! The links are 10.N.0.0/24 and 2001:db8:N::/64; the router has the first address of each.

use crate::spaces::{Spaces, is_there};
use fwdlab_netio::process::signal_hangup;
use std::fmt::Write;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Directory of the daemons in Debian's package.
const DAEMONS: &str = "/usr/lib/frr";
/// Each link: the host, its interface, the number of the network.
const LINKS: [(&str, &str, u8); 3] = [("a", "a0", 1), ("b", "b0", 2), ("b", "b1", 3)];
/// Maximum time until neighbours have met.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// The namespaces and their processes.
pub(crate) struct Frr {
    spaces: Spaces,
    programs: Vec<Child>,
}

impl Deref for Frr {
    type Target = Spaces;

    fn deref(&self) -> &Spaces {
        &self.spaces
    }
}

impl DerefMut for Frr {
    fn deref_mut(&mut self) -> &mut Spaces {
        &mut self.spaces
    }
}

impl Frr {
    /// Returns `None`, with a recorded skip, if the requirements are missing.
    pub(crate) fn new() -> Option<Frr> {
        let zebra = Path::new(DAEMONS).join("zebra");
        is_there(zebra.exists(), "zebra of Debian's package frr").then_some(())?;
        Frr::without_daemons()
    }

    /// As [`Frr::new`], for tests without daemons.
    pub(crate) fn without_daemons() -> Option<Frr> {
        let spaces = Spaces::stand(&["a", "r", "h", "b"], links)?;
        // The daemons run as another user.
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(spaces.file(""), all).expect("a directory of ours");
        Some(Frr { spaces, programs: Vec::new() })
    }

    /// The set-up of the router, with more lines before it.
    pub(crate) fn setup(&self, more: &str, port: &str) -> String {
        let mut text = format!("{more}\n[host]\nnamespace = \"{}\"\n", self.space("h"));
        for (at, (_, _, network)) in LINKS.iter().enumerate() {
            let _ = write!(
                text,
                "[[interface]]\nname = \"r{at}\"\nport = \"{port}\"\n\
                 addresses = [\"10.{network}.0.1/24\", \"2001:db8:{network}::1/64\"]\n"
            );
        }
        text
    }

    /// Starts the router and waits for its devices.
    pub(crate) fn route(&mut self, setup: &str) {
        self.spaces.route(setup);
        // zebra is notified of changes while it starts, but sometimes ignores them.
        self.until("the host's devices stand", |frr| {
            let addresses = frr.ip("h", &["-6", "address", "show", "dev", "r2", "scope", "link"]);
            addresses.status.success() && !addresses.stdout.is_empty()
        });
    }

    /// Makes the router read its file again, and waits until it reports the new set-up.
    pub(crate) fn reload(&self, setup: &str) {
        let answers = |frr: &Frr| frr.output().matches("continues").count();
        let before = answers(self);
        self.write(setup);
        signal_hangup(self.router()).expect("it runs");
        self.until("it goes on", |frr| answers(frr) > before);
    }

    /// Starts FRR daemons on a host, each with its configuration; zebra first.
    pub(crate) fn start(&mut self, host: &str, daemons: &[(&str, &str)]) {
        let directory = self.file(host);
        fs::create_dir(&directory).expect("a directory");
        let chown = Command::new("chown").arg("frr:frr").arg(&directory).status();
        assert!(chown.is_ok_and(|status| status.success()), "FRR's user");
        for (daemon, configuration) in daemons {
            let file = |ending: &str| directory.join(format!("{daemon}.{ending}"));
            fs::write(file("conf"), configuration).expect("a file");
            let child = Command::new("ip")
                .args(["netns", "exec", &self.space(host)])
                .arg(Path::new(DAEMONS).join(daemon))
                .arg("-f")
                .arg(file("conf"))
                .arg("-i")
                .arg(file("pid"))
                .arg("-z")
                .arg(directory.join("zserv.api"))
                .arg("--vty_socket")
                .arg(&directory)
                .args(["--log", &format!("file:{}", file("log").display())])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            self.programs.push(child.expect("ip starts"));
            if *daemon == "zebra" {
                let socket = directory.join("zserv.api");
                self.until("zebra listens", |_| socket.exists());
            }
        }
    }

    /// Runs ip(8) in a namespace.
    pub(crate) fn ip(&self, host: &str, arguments: &[&str]) -> Output {
        let space = self.space(host);
        let output = Command::new("ip").args(["-n", &space]).args(arguments).output();
        output.expect("ip starts")
    }

    /// Runs a program on a host in the background, with readable output.
    pub(crate) fn begin(&self, host: &str, program: &[&str]) -> Child {
        self.command(host, program).stdout(Stdio::piped()).spawn().expect("ip starts")
    }

    /// Waits until a condition is true.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Frr) -> bool) -> Duration {
        self.within(PATIENCE, what, is_so)
    }

    /// Waits until a condition is true, for at most `patience`.
    pub(crate) fn within(
        &self,
        patience: Duration,
        what: &str,
        is_so: impl Fn(&Frr) -> bool,
    ) -> Duration {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < patience, "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
        begin.elapsed()
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for mut program in self.programs.drain(..) {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// A shell script that makes their links.
fn links(spaces: &Spaces) -> String {
    let mut script = String::new();
    let router = spaces.space("r");
    for (port, (host, device, network)) in LINKS.iter().enumerate() {
        let own = spaces.space(host);
        let _ = write!(
            script,
            "ip link add {device} netns {own} type veth peer name r{port} netns {router}\n\
             ip netns exec {router} sysctl -qw net.ipv6.conf.r{port}.disable_ipv6=1\n\
             ip -n {own} address add 10.{network}.0.2/24 dev {device}\n\
             ip -n {own} address add 2001:db8:{network}::2/64 dev {device} nodad\n\
             ip -n {own} link set {device} up\n\
             ip -n {router} link set r{port} up\n"
        );
    }
    for (host, network) in [("a", 100), ("b", 101)] {
        let own = spaces.space(host);
        let _ = write!(
            script,
            "ip -n {own} address add 10.{network}.0.1/24 dev lo\n\
             ip -n {own} address add 2001:db8:{network}::1/64 dev lo\n"
        );
    }
    script
}

/// OSPF configurations of both families for some interfaces, each with its cost, and for `lo`.
pub(crate) fn ospf(id: &str, interfaces: &[(&str, u32)]) -> [(&'static str, String); 3] {
    let (mut inet, mut inet6) = (String::new(), String::new());
    for (name, cost) in interfaces {
        for (text, ospf) in [(&mut inet, "ip ospf"), (&mut inet6, "ipv6 ospf6")] {
            let _ = write!(
                text,
                "interface {name}\n {ospf} area 0.0.0.0\n {ospf} hello-interval 1\n \
                 {ospf} dead-interval 3\n {ospf} cost {cost}\nexit\n"
            );
        }
    }
    inet += &format!(
        "interface lo\n ip ospf area 0.0.0.0\n ip ospf passive\nexit\nrouter ospf\n \
         ospf router-id {id}\n timers throttle spf 10 50 500\nexit\n"
    );
    inet6 += &format!(
        "interface lo\n ipv6 ospf6 area 0.0.0.0\n ipv6 ospf6 passive\nexit\nrouter ospf6\n \
         ospf6 router-id {id}\n timers throttle spf 10 50 500\nexit\n"
    );
    [("zebra", String::new()), ("ospfd", inet), ("ospf6d", inet6)]
}
