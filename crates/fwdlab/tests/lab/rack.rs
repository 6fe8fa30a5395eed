//! A laboratory of three hosts that are network namespaces of this machine, each with its own sshd.
//! Everything in a test ends with it, even if it fails.

use crate::program::{Ended, Started, run, signal, until};
use fwdlab_model::RunRecord;
use fwdlab_results::store::Store;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Maximum time for any step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

static COUNT: AtomicU32 = AtomicU32::new(0);
/// Number of existing laboratories, and a signal to tests that wait for a place.
static SEATS: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
/// Three laboratories simultaneously, which spend three quarters of their time waiting. More would
/// starve each other.
const AT_A_TIME: u32 = 3;

/// A place for a laboratory, released when dropped.
struct Seat;

impl Seat {
    /// Waits for a place.
    fn take() -> Seat {
        let (taken, freed) = &SEATS;
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = freed.wait_while(taken, |taken| *taken >= AT_A_TIME);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Seat
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (taken, freed) = &SEATS;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        freed.notify_one();
    }
}

/// The hosts, by their names in the lab file.
pub(crate) const HOSTS: [&str; 3] = ["sender", "dut", "receiver"];

pub(crate) struct Rack {
    directory: TempDir,
    prefix: String,
    number: u32,
    _seat: Seat,
}

impl Rack {
    /// Builds one; `None` if this machine does not permit it, which fails in CI.
    pub(crate) fn build() -> Option<Rack> {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let seat = Seat::take();
        clean_up_after_the_dead();
        if let Err(why) = possible(number) {
            fwdlab_testdata::skip(&format!("no laboratory of namespaces here: {why}"));
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        // Named like fwdlab's own namespaces: the next run removes the remains of a killed test.
        let prefix = format!("fwdlab-{}-{}-{number}", std::process::id(), start_time());
        let rack = Rack { directory, prefix, number, _seat: seat };
        rack.wire();
        for key in ["host", "other", "user"] {
            let file = rack.path(key);
            run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &text(&file)]);
        }
        rack.knows("host");
        rack.write("lab.toml", &rack.lab(""));
        for host in HOSTS {
            rack.write(&format!("{host}.conf"), &rack.sshd(host, ""));
            rack.write(&format!("{host}.boot"), &rack.boot_script(host, ""));
            for folder in ["bin", "srv", "lib"] {
                fs::create_dir(rack.path(&format!("{host}.{folder}"))).expect("a directory");
            }
        }
        rack.commands_of_the_dut();
        HOSTS.iter().for_each(|host| rack.boot(host));
        Some(rack)
    }

    /// The lab file, with more lines for the DUT.
    pub(crate) fn lab(&self, of_dut: &str) -> String {
        format!(
            r#"version = 1
name = "namespaces"
[ssh]
config = "ssh_config"
connect = "20s"
alive = "1s"
deadline = "10s"
[[host]]
name = "sender"
roles = ["sender"]
ssh = "sender"
[[host.interface]]
name = "gen0"
[[host]]
name = "dut"
roles = ["dut"]
ssh = "dut"
{of_dut}
[[host.interface]]
name = "in0"
side = "sender"
[[host.interface]]
name = "out0"
side = "receiver"
[[host]]
name = "receiver"
roles = ["receiver"]
ssh = "receiver"
[[host.interface]]
name = "cnt0"
[[cable]]
a = "sender:gen0"
b = "dut:in0"
[[cable]]
a = "receiver:cnt0"
b = "dut:out0"
"#
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// Namespace of a host.
    pub(crate) fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Runs sh in a host's namespace.
    pub(crate) fn on(&self, host: &str, script: &str) -> String {
        run(&["ip", "netns", "exec", &self.namespace(host), "sh", "-c", script])
    }

    /// Runs sh in the environment of a host's sshd, including its `/run`.
    pub(crate) fn inside(&self, host: &str, script: &str) -> String {
        let argv = self.within(host, script);
        run(&argv.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The command that runs a script there.
    fn within(&self, host: &str, script: &str) -> Vec<String> {
        let all = self.processes(host);
        let listener = all.iter().find(|(_, line)| is_listener(line)).expect("an sshd");
        let pid = listener.0.to_string();
        ["nsenter", "-t", &pid, "-m", "-n", "sh", "-c", script].map(str::to_owned).to_vec()
    }

    /// Asserts that the state of the DUT is unchanged, line by line.
    #[track_caller]
    pub(crate) fn expect_state_of_the_dut(&self, before: &str) {
        let after = self.state_of_the_dut();
        let more = |these: &str, those: &str| {
            let known: Vec<&str> = those.lines().collect();
            let lines = these.lines().filter(|line| !known.contains(line));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let (gone, new) = (more(before, &after), more(&after, before));
        assert!(gone.is_empty() && new.is_empty(), "gone: {gone:#?}\nnew: {new:#?}");
    }

    /// The state of the DUT that an experiment may change.
    pub(crate) fn state_of_the_dut(&self) -> String {
        self.on(
            "dut",
            "ip -o link | sed 's/^[0-9]*: //; s/ qdisc .*//'; ip -o addr show dev in0
             ip -o addr show dev out0; ip route; ip -6 route show table all | grep -v adm0
             ip neigh show nud permanent; nft list ruleset
             sysctl -a 2>/dev/null | grep -E '^net[.]ipv[46][.](conf|ip_forward)'
             ethtool -k in0; ethtool -k out0; ethtool -l in0",
        )
    }

    /// Starts a host's sshd, and waits until it listens.
    pub(crate) fn boot(&self, host: &str) {
        let script = self.path(&format!("{host}.boot"));
        let log = fs::File::create(self.path(&format!("{host}.boot.log"))).expect("a log");
        let mut command = Command::new("setsid");
        command.args(["ip", "netns", "exec", &self.namespace(host), "sh"]).arg(script);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        drop(child.expect("a host"));
        let listens = || self.on(host, "ss -Hltn 'sport = :22'").contains(":22");
        assert!(until(PATIENCE, listens), "{host} is not up: {}", self.log(host));
    }

    /// Processes in a host's namespace, with their command lines.
    pub(crate) fn processes(&self, host: &str) -> Vec<(u32, String)> {
        let output = Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output();
        let output = output.expect("ip");
        let pids = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = pids.split_whitespace().flat_map(str::parse).map(|pid: u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        });
        named.collect()
    }

    /// Processes of connections to a host.
    pub(crate) fn connections(&self, host: &str) -> Vec<u32> {
        let all = self.processes(host).into_iter();
        let is_one = |line: &str| line.starts_with("sshd") && !is_listener(line);
        all.filter(|(_, line)| is_one(line)).map(|(pid, _)| pid).collect()
    }

    /// Kills the connections to a host; its sshd keeps listening.
    pub(crate) fn cut(&self, host: &str) -> usize {
        self.connections(host).into_iter().map(|pid| signal("KILL", pid)).count()
    }

    /// Ends everything on a host.
    pub(crate) fn switch_off(&self, host: &str) {
        let listener = |(pid, line): &(u32, String)| is_listener(line).then_some(*pid);
        self.processes(host).iter().filter_map(listener).for_each(|pid| signal("KILL", pid));
        self.cut(host);
        assert!(until(PATIENCE, || self.processes(host).is_empty()), "{host} goes on");
    }

    /// Reboots the DUT without notice.
    pub(crate) fn reboot(&self) {
        let argv = self.within("dut", &self.at("dut.bin/reboot"));
        // It dies with everything else there.
        let _ = Command::new(&argv[0]).args(&argv[1..]).output();
    }

    /// Reboots and power cycles of the DUT.
    pub(crate) fn boots(&self) -> String {
        fs::read_to_string(self.path("boots")).unwrap_or_default()
    }

    /// Stored runs.
    pub(crate) fn runs(&self) -> Vec<RunRecord> {
        let store = Store::open_read_only(&self.path("results/x/run.sqlite"));
        store.expect("a store").runs().expect("runs")
    }

    /// The experiment's report.
    pub(crate) fn report(&self) -> String {
        let pages = ["README.md", "DETAILS.md"]
            .map(|name| fs::read_to_string(self.path("results/x").join(name)).expect("a report"));
        pages.concat()
    }

    /// The absolute path of a file.
    pub(crate) fn at(&self, name: &str) -> String {
        text(&self.path(name))
    }

    pub(crate) fn write_program(&self, name: &str, script: &str) {
        self.write(name, script);
        run(&["chmod", "755", &self.at(name)]);
    }

    pub(crate) fn log(&self, host: &str) -> String {
        let read = |name: String| fs::read_to_string(self.path(&name)).unwrap_or_default();
        read(format!("{host}.boot.log")) + &read(format!("{host}.log"))
    }

    /// Writes the client's files; `key` is the host key that it expects.
    pub(crate) fn knows(&self, key: &str) {
        let public = fs::read_to_string(self.path(&format!("{key}.pub"))).expect("a key");
        let (mut known, mut config) = (String::new(), String::new());
        for (number, host) in HOSTS.iter().enumerate() {
            let [address, _] = self.addresses(number);
            known += &format!("{address} {public}");
            config += &format!("Host {host}\n HostName {address}\n");
        }
        let at = self.directory.path().display();
        self.write("known", &known);
        config += &format!(
            "Host *\n User root\n IdentityFile {at}/user\n IdentitiesOnly yes\n IdentityAgent \
             none\n UserKnownHostsFile {at}/known\n GlobalKnownHostsFile /dev/null\n"
        );
        self.write("ssh_config", &config);
    }

    /// Configuration of a host's sshd, with more lines.
    pub(crate) fn sshd(&self, host: &str, more: &str) -> String {
        let at = self.directory.path().display();
        let path = std::env::var("PATH").unwrap_or_default();
        format!(
            "{more}\nHostKey {at}/host\nPidFile none\nAuthorizedKeysFile {at}/user.pub\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nKbdInteractiveAuthentication no\n\
             SetEnv HOME={at} PATH={at}/{host}.bin:{path}:/usr/sbin:/sbin\n"
        )
    }

    /// The program, in the laboratory's directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fwdlab"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").env_remove("COLUMNS");
        command
    }

    /// Runs the program to its end, which must come in time.
    pub(crate) fn fwdlab(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Starts the program with output to files.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        let (out, err) = (self.path("stdout"), self.path("stderr"));
        let mut command = self.command(arguments);
        command.stdout(fs::File::create(&out).expect("a file"));
        command.stderr(fs::File::create(&err).expect("a file"));
        Started { child: command.spawn().expect("the program"), out, err }
    }

    /// The addresses of a host and of our end of its cable, in a network of four.
    fn addresses(&self, host: usize) -> [String; 2] {
        let first = 4 * (HOSTS.len() * self.number as usize + host) % 256;
        [2, 1].map(|last| format!("172.30.{}.{}", std::process::id() % 256, first + last))
    }

    /// Creates the namespaces, the cables of the experiment, and one to each host for ssh.
    fn wire(&self) {
        let [sender, dut, receiver] = HOSTS.map(|host| self.namespace(host));
        for namespace in [&sender, &dut, &receiver] {
            run(&["ip", "netns", "add", namespace]);
            run(&["ip", "-n", namespace, "link", "set", "lo", "up"]);
        }
        let cable = |a: &str, of_a: &str, b: &str, of_b: &str| {
            let words = format!("link add {a} netns {of_a} type veth peer name {b} netns {of_b}");
            run(&[&["ip"][..], &words.split(' ').collect::<Vec<_>>()].concat());
        };
        cable("gen0", &sender, "in0", &dut);
        cable("out0", &dut, "cnt0", &receiver);
        run(&["ip", "-n", &sender, "link", "set", "gen0", "up"]);
        run(&["ip", "-n", &receiver, "link", "set", "cnt0", "up"]);
        for (index, namespace) in [&sender, &dut, &receiver].into_iter().enumerate() {
            let ours = format!("fl{}x{}{index}", std::process::id(), self.number);
            let [theirs, ours_address] =
                self.addresses(index).map(|address| format!("{address}/30"));
            run(&[
                "ip", "link", "add", &ours, "type", "veth", "peer", "name", "adm0", "netns",
                namespace,
            ]);
            run(&["ip", "addr", "add", &ours_address, "dev", &ours]);
            run(&["ip", "link", "set", &ours, "up"]);
            run(&["ip", "-n", namespace, "addr", "add", &theirs, "dev", "adm0"]);
            run(&["ip", "-n", namespace, "link", "set", "adm0", "up"]);
        }
    }

    /// The script that boots a host: a new `/run` and boot ID, disks (`/srv`, `/var/lib`) that
    /// outlive it, more lines, then sshd. `reboot` there must never be this machine's. The limit of
    /// connections, which is this machine's, is a file: other tests change it at the same time.
    pub(crate) fn boot_script(&self, host: &str, more: &str) -> String {
        let at = self.directory.path().display();
        format!(
            "mount -t tmpfs -o size=1m tmpfs /run && mkdir /run/sshd || exit 1\n\
             cat /proc/sys/kernel/random/uuid >{at}/{host}.boot_id\n\
             mount --bind {at}/{host}.srv /srv && mount --bind {at}/{host}.lib /var/lib || exit 1\n\
             mount --bind {at}/{host}.boot_id /proc/sys/kernel/random/boot_id || exit 1\n\
             limit=/proc/sys/net/netfilter/nf_conntrack_max; [ ! -e \"$limit\" ] || \
             {{ echo 65536 >{at}/{host}.limit && mount --bind {at}/{host}.limit $limit; }} || exit 1\n\
             for name in reboot systemctl; do real=$(command -v \"$name\") || continue\n\
             mount --bind {at}/dut.bin/reboot \"$(readlink -f \"$real\")\" || exit 1; done\n{more}\
             exec /usr/sbin/sshd -D -e -f {at}/{host}.conf 2>>{at}/{host}.log\n"
        )
    }

    /// `reboot` of the DUT, which waits until its caller has left its session, and `power_cycle`
    /// for it. The contents of its memory are lost; it stays down if a file requires it. Processes
    /// are killed until none is left: a session that begins during one pass outlives it.
    fn commands_of_the_dut(&self) {
        let at = self.directory.path().display();
        let down = format!(
            "own=$(readlink /proc/self/ns/net)\n\
             while :; do found=\n\
             for ns in /proc/[0-9]*/ns/net; do pid=${{ns#/proc/}}; pid=${{pid%%/*}}\n\
             [ \"$(readlink \"$ns\" 2>/dev/null)\" = \"$own\" ] && [ \"$pid\" != $$ ] && found=1 && \
             kill -KILL \"$pid\" 2>/dev/null; done\n\
             [ \"$found\" ] || break; done\n\
             ip addr flush dev in0; ip addr flush dev out0; ip link set in0 down\n\
             ip link set out0 down; nft flush ruleset; sysctl -q net.ipv4.ip_forward=0\n\
             echo down >>{at}/boots\n"
        );
        self.write(
            "down.sh",
            &format!("{down}[ -e {at}/stays-down ] && exit 0\nsleep 1\nexec sh {at}/dut.boot\n"),
        );
        self.write(
            "dut.bin/reboot",
            &format!("#!/bin/sh\nsetsid sh {at}/down.sh >{at}/down.log 2>&1 &\nsleep 1\n"),
        );
        self.write(
            "power_cycle",
            &format!(
                "#!/bin/sh\nrm -f {at}/stays-down; echo power >>{at}/boots\n\
                 setsid ip netns exec {} sh {at}/down.sh >/dev/null 2>&1 </dev/null &\n",
                self.namespace("dut")
            ),
        );
        run(&[
            "chmod",
            "755",
            &text(&self.path("dut.bin/reboot")),
            &text(&self.path("power_cycle")),
        ]);
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for host in HOSTS {
            // Twice: a starting process may be missed once.
            for _ in 0..2 {
                self.processes(host).iter().for_each(|(pid, _)| signal("KILL", *pid));
            }
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(host)]).status();
        }
    }
}

fn is_listener(line: &str) -> bool {
    line.contains("[listener]")
}

/// Checks that namespaces, mounts in them and an sshd are possible here.
fn possible(number: u32) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("it needs root".into());
    }
    if !Path::new("/usr/sbin/sshd").exists() {
        return Err("sshd is not installed".into());
    }
    let name = format!("fwdlab-{}-{}-{number}probe", std::process::id(), start_time());
    let probe = format!(
        "ip netns add {name} && ip netns exec {name} mount -t tmpfs tmpfs /run; status=$?
         ip netns delete {name}; exit $status"
    );
    let output = Command::new("sh").args(["-c", &probe]).output().map_err(|e| e.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(error) }
}

/// Removes hosts of tests that were killed.
fn clean_up_after_the_dead() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix("fwdlab-").and_then(|rest| rest.split('-').next());
        let is_host = HOSTS.iter().any(|host| name.ends_with(host));
        if is_host && pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let output = Command::new("ip").args(["netns", "pids", &name]).output().expect("ip");
            let pids = String::from_utf8_lossy(&output.stdout).into_owned();
            pids.split_whitespace().flat_map(str::parse).for_each(|pid| signal("KILL", pid));
            let _ = Command::new("ip").args(["netns", "delete", &name]).status();
        }
    }
}

/// Field 22 of `/proc/self/stat` (proc(5)).
fn start_time() -> String {
    let stat = fs::read_to_string("/proc/self/stat").expect("proc");
    let after = stat.rsplit_once(") ").expect("a name").1;
    after.split(' ').nth(19).expect("22 fields").to_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
