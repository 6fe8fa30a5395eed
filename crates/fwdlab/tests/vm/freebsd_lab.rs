//! A laboratory whose DUT is a real FreeBSD: what its life between boots is, from the
//! experiment's file to the store. This machine sends and receives, in a namespace of its own.

use super::freebsd_guest::Lab;
use fwdlab_model::RunRecord;
use fwdlab_model::warning::Warning;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address, peer_address, routed_prefix};
use fwdlab_port::NetNs;
use fwdlab_results::store::Store;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The other ends of the guest's `vtnet3` and `vtnet4`.
pub(super) const TAPS: [&str; 2] = ["fb0", "fb1"];
/// Their MACs.
const MACS: [&str; 2] = ["02:00:c6:12:01:01", "02:00:c6:12:02:01"];
/// Time for an experiment, boots included.
const PATIENCE: Duration = Duration::from_secs(900);

/// A namespace that the calling thread, and what it starts, is in.
pub(super) struct Space(String);

impl Space {
    /// Makes and enters one; none where that is not permitted, which fails in CI.
    pub(super) fn enter() -> Option<Space> {
        if !rustix::process::geteuid().is_root() {
            let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
            assert!(!in_ci, "not root in CI");
            eprintln!("SKIPPED: taps need root");
            return None;
        }
        // As fwdlab's own: what a killed test leaves is removed by the next start.
        let stat = fs::read_to_string("/proc/self/stat").expect("proc");
        let start = stat.rsplit_once(") ").expect("a name").1.split(' ').nth(19).expect("a start");
        let name = format!("fwdlab-{}-{start}-freebsd", std::process::id());
        shell(&format!("ip netns add {name}; ip -n {name} link set lo up"));
        NetNs::open(&name).and_then(|space| space.enter()).expect("a namespace");
        // No neighbour discovery of our own on the cables.
        fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("a sysctl");
        Some(Space(name))
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().expect("sh");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const LAB: &str = r#"
version = 1
name = "real-freebsd"
[ssh]
config = "SSH_CONFIG"
connect = "60s"
alive = "60s"
deadline = "60s"
[[host]]
name = "here"
roles = ["sender", "receiver"]
[[host.interface]]
name = "fb0"
side = "sender"
[[host.interface]]
name = "fb1"
side = "receiver"
[[host]]
name = "dut"
roles = ["dut"]
ssh = "dut"
system = "freebsd"
power_cycle = ["touch", "POWER"]
reboot_timeout = "TIMEOUT"
[[host.interface]]
name = "vtnet3"
side = "sender"
[[host.interface]]
name = "vtnet4"
side = "receiver"
[[cable]]
a = "here:fb0"
b = "dut:vtnet3"
[[cable]]
a = "here:fb1"
b = "dut:vtnet4"
"#;

const EXPERIMENT: &str = r#"
version = 1
title = "A real FreeBSD"
[testbed]
kind = "ssh"
lab = "lab.toml"
[dut]
kind = "freebsd"
[traffic]
family = "inet6"
rate = 200
flows = { sources = 1, destinations = 4 }
[trial]
warmup = "300ms"
duration = "1500ms"
drain = "1s"
"#;

const LEVELS: &str = r#"
[design]
blocks = 1
[[factor]]
name = "machine"
levels = [
  { label = "loader", install = ["nextboot -D"], verify = "sysctl -n kern.bootfile", expect = "/boot/kernel/kernel", loader = { "hw.vtnet.lro_disable" = "1", "net.inet.ip.random_id_period" = "4096" } },
  { label = "laid", install = ["nextboot -D"], verify = "sysctl -n kern.bootfile", expect = "/boot/kernel/kernel", overlay = "tree" },
  { label = "other", install = ["nextboot -k kernel.noalgo"], verify = "sysctl -n kern.bootfile", expect = "/boot/kernel.noalgo/kernel" },
]
"#;

/// Everything of the guest that these experiments change and have to put back.
const STATE: &str = "cat /etc/rc.conf /etc/sysctl.conf; cat /boot/loader.conf.local 2>&1; true";

/// Loader lines, an overlay, another kernel and a guest that has to be switched off and on.
pub(super) fn lives_through_experiments(lab: &mut Lab, image: &Path) {
    let at = lab.directory.path().to_owned();
    let write = |name: &str, text: &str| {
        let path = at.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    for (tap, mac) in TAPS.iter().zip(MACS) {
        shell(&format!("ip link set {tap} address {mac} up"));
    }
    let config = lab.running.ssh_config.display().to_string();
    let power = at.join("power").display().to_string();
    let file = LAB.replace("SSH_CONFIG", &config).replace("POWER", &power);
    write("lab.toml", &file.replace("TIMEOUT", "10min"));
    // The second kernel of the same sources.
    let kernel = image.with_file_name("freebsd-13.2-kernel-noalgo.tar.zst");
    shell(&format!(
        "zstd -dcq --long=27 {} | ssh -F {config} dut 'tar -C /boot -xf -'",
        kernel.display()
    ));
    let ask = |script: &str| shell(&format!("ssh -F {config} dut \"/bin/sh -c '{script}'\""));
    let before = ask(STATE);
    let own = ask("cat /etc/rc.conf");
    write("tree/etc/rc.conf", &(own + &laid()));
    write("tree/etc/sysctl.conf", "kern.eventtimer.idletick=1\nnet.inet.ip.ttl=77\n");
    write("tree/boot/loader.conf.local", "hw.vtnet.csum_disable=\"1\"\n");
    write("x.toml", &format!("{EXPERIMENT}{LEVELS}"));
    let began = Instant::now();
    fwdlab(&at, "x.toml", |_| ());
    eprintln!("three machines: {:?}", began.elapsed());
    let runs = runs(&at, "x");
    assert_eq!(runs.len(), 3);
    for run in &runs {
        let total = run.trial.total;
        assert!(total.forwarded > 100, "{total:?}");
        let doubts: Vec<&Warning> =
            run.warnings.iter().filter(|w| matches!(w, Warning::NotVerified { .. })).collect();
        assert!(doubts.is_empty(), "{doubts:?}");
    }
    let facts = |variant: usize| {
        let run = runs.iter().find(|run| run.variants[0] == variant).expect("a run");
        &run.facts
    };
    assert_eq!(facts(0)["loader hw.vtnet.lro_disable"], "1");
    assert_eq!(facts(0)["kernel file"], "/boot/kernel/kernel");
    assert_eq!(facts(1)["loader"], "the overlay's /boot/loader.conf.local");
    assert_eq!(facts(2)["kernel file"], "/boot/kernel.noalgo/kernel");
    assert!(!facts(2)["kernel options"].contains("FIB_ALGO"), "{:?}", facts(2));
    assert!(facts(0)["kernel options"].contains("FIB_ALGO"), "{:?}", facts(0));
    // Halted under traffic, it answers nobody until it is switched off and on.
    write("lab.toml", &file.replace("TIMEOUT", "150s"));
    write("y.toml", &format!("{EXPERIMENT}[design]\nblocks = 2\n"));
    let (mut is_halted, mut cycles, began) = (false, 0, Instant::now());
    fwdlab(&at, "y.toml", |said| {
        if !is_halted && said.lines().any(|line| line.contains("pps")) {
            is_halted = true;
            // It takes the connection with it.
            let mut halt = Command::new("ssh");
            halt.args(["-F", &config, "-o", "ServerAliveInterval=5", "dut", "halt -q"]);
            drop(halt.stdin(Stdio::null()).status());
        }
        if fs::remove_file(&power).is_ok() {
            cycles += 1;
            lab.running.machine.power_cycle().unwrap_or_else(|error| panic!("{error}"));
        }
    });
    eprintln!("a halt and a power cycle: {:?}", began.elapsed());
    assert_eq!(cycles, 1);
    let runs = self::runs(&at, "y");
    assert_eq!(runs.len(), 2, "the run that was cut is repeated");
    assert!(runs.iter().all(|run| run.trial.total.forwarded > 100), "{runs:?}");
    assert_eq!(ask(STATE), before);
}

/// Lines of rc.conf(5) that make the guest forward by themselves.
fn laid() -> String {
    let mut text = String::from("gateway_enable=YES\nipv6_gateway_enable=YES\n");
    let sides = [(Side::Sender, "vtnet3", MACS[0]), (Side::Receiver, "vtnet4", MACS[1])];
    for (side, interface, mac) in sides {
        let [own, own6] = [Family::Inet, Family::Inet6].map(|family| dut_address(family, side));
        let [peer, peer6] = [Family::Inet, Family::Inet6].map(|family| peer_address(family, side));
        let [net, net6] = [Family::Inet, Family::Inet6].map(|family| routed_prefix(family, side));
        let (net6, length) = net6.split_once('/').expect("a prefix");
        text += &format!(
            "ifconfig_{interface}=\"inet {own}\"\nifconfig_{interface}_ipv6=\"inet6 {own6}\"\n\
             route_{interface}=\"-net {net} {peer}\"\n\
             ipv6_route_{interface}=\"{net6} -prefixlen {length} {peer6}\"\n\
             static_arp_{interface}=\"{peer} {mac}\"\nstatic_ndp_{interface}=\"{peer6} {mac}\"\n"
        );
    }
    for list in ["static_routes", "ipv6_static_routes", "static_arp_pairs", "static_ndp_pairs"] {
        text += &format!("{list}=\"vtnet3 vtnet4\"\n");
    }
    text
}

/// Runs an experiment; `meanwhile` is told what was said so far, again and again.
fn fwdlab(at: &Path, file: &str, mut meanwhile: impl FnMut(&str)) {
    let said = at.join("said");
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .args(["run", file, "--no-calibration"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("the program");
    let read = || fs::read_to_string(&said).unwrap_or_default();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        meanwhile(&read());
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it does not end; it said:\n{}", read());
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    eprintln!("{}", read());
    // 4: a rate that the machine's other work may have touched.
    assert!(matches!(status.code(), Some(0 | 4)), "{status}: {}", read());
}

fn runs(at: &Path, experiment: &str) -> Vec<RunRecord> {
    let store = at.join(format!("results/{experiment}/run.sqlite"));
    Store::open_read_only(&store).expect("a store").runs().expect("runs")
}
