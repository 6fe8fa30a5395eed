//! A laboratory whose DUT is a real FreeBSD: another kernel, an overlay and a machine that has to
//! be switched off and on, from the experiment's file to the store. This machine sends and
//! receives, in its own namespace.

use super::guest::Lab;
use fwdlab_model::RunRecord;
use fwdlab_model::warning::Warning;
use fwdlab_netio::NetNs;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address, peer_address, routed_prefix};
use fwdlab_results::store::Store;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The other ends of the guest's `vtnet3` and `vtnet4`.
pub(super) const TAPS: [&str; 2] = ["fb0", "fb1"];
/// Their MACs.
const MACS: [&str; 2] = ["02:00:c6:12:01:01", "02:00:c6:12:02:01"];
/// Time for an experiment, boots included.
const PATIENCE: Duration = Duration::from_secs(900);

/// The namespace of the calling thread and its child processes.
pub(super) struct Space(String);

impl Space {
    /// Creates and enters one; `None` if that is not permitted, which fails in CI.
    pub(super) fn enter() -> Option<Space> {
        if !rustix::process::geteuid().is_root() {
            fwdlab_testdata::skip("no laboratory around FreeBSD: taps need root");
            return None;
        }
        // Named like fwdlab's own: the next start removes the remains of a killed test.
        let stat = fs::read_to_string("/proc/self/stat").expect("proc");
        let start = stat.rsplit_once(") ").expect("a name").1.split(' ').nth(19).expect("a start");
        let space = Space(format!("fwdlab-{}-{start}-freebsd", std::process::id()));
        let name = &space.0;
        shell(&format!("ip netns add {name}; ip -n {name} link set lo up"));
        // The program looks for its interfaces in /sys.
        NetNs::open(name).and_then(|space| space.enter_with_sysfs()).expect("a namespace");
        // No neighbour discovery by this machine on the cables.
        fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("a sysctl");
        Some(space)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).output().expect("sh");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const LAB: &str = r#"
version = 1
name = "real-freebsd"
[ssh]
config = "SSH_CONFIG"
connect = "60s"
alive = "120s"
deadline = "120s"
one_shell = true
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
power_cycle = ["sh", "-c", "touch POWER; while [ -e POWER ]; do sleep 0.1; done"]
reboot_timeout = "TIMEOUT s"
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
MORE
[traffic]
rate = 200
flows = { sources = 1, destinations = 4 }
[trial]
warmup = "300ms"
duration = "1500ms"
drain = "1s"
[design]
blocks = 1
"#;

/// The state of the guest that these experiments change and have to restore.
const STATE: &str = "cat /etc/rc.conf /etc/sysctl.conf; cat /boot/loader.conf.local 2>&1; true";

/// Another kernel, before whose boot the machine stays off until it is power-cycled; then an
/// overlay, with which the machine's own kernel boots again.
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
    let power = at.join("power");
    let file = LAB.replace("SSH_CONFIG", &config).replace("POWER", &power.display().to_string());
    // Services that a forwarding machine does not need lengthen its boots.
    let needless = ["devd", "syslogd", "cron", "newsyslog", "hostid", "savecore", "virecover"];
    let lines: String = needless.iter().map(|name| format!("{name}_enable=NO\n")).collect();
    let interfaces = "network_interfaces=\"lo0 vtnet0 vtnet3 vtnet4\"";
    lab.sh(&format!("cat >>/etc/rc.conf <<'.'\n{lines}{interfaces}\n.\n"));
    // The second kernel of the same sources.
    let kernel = image.with_file_name("freebsd-13.2-kernel-noalgo.tar.zst");
    shell(&format!(
        "ssh -F {config} dut 'zstd -dc --long=27 | tar -C /boot -xf -' <{}",
        kernel.display()
    ));
    let before = lab.sh(STATE);

    // It goes down, and switches itself off instead of booting.
    lab.sh("mkdir -p /usr/local/etc/rc.d; cat >/usr/local/etc/rc.d/stays_off <<'.'
#!/bin/sh
# PROVIDE: stays_off
# KEYWORD: shutdown
case $1 in *stop) rm /usr/local/etc/rc.d/stays_off; exec halt -p -q ;; esac
.
chmod 755 /usr/local/etc/rc.d/stays_off");
    // After a power cycle it has three times as long.
    write("lab.toml", &file.replace("TIMEOUT", &lab.booted_in.as_secs().max(60).to_string()));
    let other = "install = [\"nextboot -k kernel.noalgo\"]\nverify = \"sysctl -n kern.bootfile\"\n\
                 expect = \"/boot/kernel.noalgo/kernel\"";
    write("other.toml", &EXPERIMENT.replace("MORE", other));
    // Data on a connection that a boot has cut is lost.
    lab.host.close();
    let mut cycles = 0;
    let run = fwdlab(&at, "other", || {
        if power.exists() {
            eprintln!("switched off and on");
            cycles += 1;
            lab.running.machine.power_cycle().unwrap_or_else(|error| panic!("{error}"));
            fs::remove_file(&power).expect("a file");
        }
    });
    assert_eq!(cycles, 1);
    assert_eq!(run.facts["kernel file"], "/boot/kernel.noalgo/kernel");
    assert_eq!(run.facts["revision"], "/boot/kernel.noalgo/kernel");
    assert!(!run.facts["kernel options"].contains("FIB_ALGO"), "{:?}", run.facts);

    // nextboot(8) applies to one boot: from here on the machine boots its own kernel.
    write("lab.toml", &file.replace("TIMEOUT", "600"));
    let rc_conf = lab.sh("cat /etc/rc.conf");
    write("tree/etc/rc.conf", &(rc_conf + &laid()));
    write("tree/etc/sysctl.conf", "kern.eventtimer.idletick=1\nnet.inet.ip.ttl=77\n");
    write("tree/boot/loader.conf.local", "hw.vtnet.lro_disable=\"1\"\n");
    // Only the overlay itself installs the settings that are read back here.
    let laid = "overlay = \"tree\"\nverify = \"kenv hw.vtnet.lro_disable\"\nexpect = \"1\"";
    let inet6 = EXPERIMENT.replace("[traffic]", "[traffic]\nfamily = \"inet6\"");
    write("laid.toml", &inet6.replace("MORE", laid));
    lab.host.close();
    let run = fwdlab(&at, "laid", || ());
    assert_eq!(run.facts["kernel file"], "/boot/kernel/kernel");
    assert_eq!(run.facts["loader"], "the overlay's /boot/loader.conf.local");
    assert_eq!(run.facts["revision"], "1");
    assert!(run.facts["kernel options"].contains("FIB_ALGO"), "{:?}", run.facts);
    assert_eq!(lab.sh("sysctl -n net.inet.ip.ttl").trim(), "77", "what it booted with");
    assert_eq!(lab.sh(STATE), before);
}

/// Lines of rc.conf(5) that make the guest forward without further commands.
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

/// Runs an experiment of one run, and returns the run; calls `poll` repeatedly.
fn fwdlab(at: &Path, experiment: &str, mut poll: impl FnMut()) -> RunRecord {
    let (log, began) = (at.join("said"), Instant::now());
    let mut child = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .args(["run", &format!("{experiment}.toml"), "--no-calibration"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).expect("a file"))
        .spawn()
        .expect("the program");
    let read = || fs::read_to_string(&log).unwrap_or_default();
    let status = loop {
        poll();
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it does not end; it said:\n{}", read());
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    eprintln!("{experiment}: {:?}\n{}", began.elapsed(), read());
    // 4: a rate that may have been affected by the machine's other work.
    assert!(matches!(status.code(), Some(0 | 4)), "{status}: {}", read());
    let store = at.join(format!("results/{experiment}/run.sqlite"));
    let mut runs = Store::open_read_only(&store).expect("a store").runs().expect("runs");
    assert_eq!(runs.len(), 1, "{}", read());
    let run = runs.remove(0);
    assert!(run.trial.total.forwarded > 30, "{:?}", run.trial.total);
    let is_of_settings = |warning: &&Warning| matches!(warning, Warning::NotVerified { .. });
    let doubts: Vec<&Warning> = run.warnings.iter().filter(is_of_settings).collect();
    assert!(doubts.is_empty(), "{doubts:?}");
    run
}
