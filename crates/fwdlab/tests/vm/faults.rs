//! Guests that fail under traffic, as kernels under development do: each failure is named, its run
//! is repeated once in a freshly booted machine, and a successful repetition is a result.
//!
//! Variants differ by their memory, which identifies the guest and its list of faults.

use super::experiment::{experiment, fwdlab, has_said};
use fwdlab_testdata::guests::{Machine, kernel, left, machines};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{Scope, sleep};
use std::time::{Duration, Instant};

/// A fault of a guest.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Its kernel panics under traffic.
    Panic,
    /// Nothing is executed any more, under traffic.
    Hang,
    /// Its ssh server and all sessions disappear, under traffic.
    Deaf,
}

/// Waits for packets of the trial: more than the preflight sends.
const FLOWS: &str = "n=0; until [ $n -gt 150 ]; do sleep 0.05; \
                     read n < /sys/class/net/eth1/statistics/rx_packets; done";
/// Printed by a guest that is reached.
const HERE: &str = "here";

impl Fault {
    /// Inflicts the fault on a machine of fwdlab's process `lab`, which is stopped from the guest's
    /// boot until the guest is reached, so that no race matters.
    fn inflict(self, machine: &Machine, lab: u32) {
        let ssh = |script: &str| {
            let config = machine.directory.join("ssh_config");
            let mut ssh = Command::new("ssh");
            ssh.args(["-F", &config.to_string_lossy(), "-o", "LogLevel=ERROR"]);
            ssh.args(["-o", "ConnectTimeout=10", "dut", script]);
            ssh.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("ssh")
        };
        let reached = || {
            let output = ssh(&format!("echo {HERE}")).wait_with_output().expect("ssh");
            String::from_utf8_lossy(&output.stdout).contains(HERE)
        };
        let directory = machine.directory.parent().expect("that of the test");
        let deadline = Instant::now() + Duration::from_secs(240);
        // The console may still be the previous machine's: then this one needs the laboratory.
        while Instant::now() < deadline {
            sleep(Duration::from_millis(20));
            if has_said(directory, "fwdlab: up") {
                signal("STOP", lab);
                if reached() {
                    break;
                }
                signal("CONT", lab);
            }
        }
        let mut waiting = ssh(&match self {
            Fault::Panic => format!("echo {HERE}; {FLOWS}; echo c > /proc/sysrq-trigger"),
            Fault::Deaf => format!("echo {HERE}; {FLOWS}; kill -9 $(pidof sshd sshd-session)"),
            Fault::Hang => format!("echo {HERE}; {FLOWS}; echo {HERE}"),
        });
        let mut output = BufReader::new(waiting.stdout.take().expect("its output"));
        let mut next_line = || output.read_line(&mut String::new()).expect("a line");
        next_line();
        signal("CONT", lab);
        if let Fault::Hang = self {
            // At the second line: the connection may end later than the trial.
            next_line();
            signal("STOP", machine.pid);
            waiting.kill().expect("ssh");
        }
        // The connection ends with the guest.
        waiting.wait().expect("ssh");
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.expect("kill").success(), "{name} to {pid}");
}

/// Inflicts the next fault in the list for its memory on each new machine in `directory`.
fn watch<'s>(
    scope: &'s Scope<'s, '_>,
    directory: &Path,
    lab: u32,
    faults: &mut BTreeMap<u32, Vec<Fault>>,
    known: &mut Vec<u32>,
) {
    for machine in machines(directory) {
        if known.contains(&machine.pid) {
            continue;
        }
        known.push(machine.pid);
        if let Some(fault) = faults.get_mut(&machine.memory).and_then(Vec::pop) {
            scope.spawn(move || fault.inflict(&machine, lab));
        }
    }
}

#[test]
fn failing_guest_is_named_and_others_are_measured() {
    let Some(kernel) = kernel() else { return };
    let directory = tempfile::tempdir().unwrap();
    // An invalid package represents a kernel that does not boot.
    std::fs::write(directory.path().join("broken.deb"), "no package").unwrap();
    let factor = "[[factor]]\nname = \"machine\"\nlevels = [\
                  { label = \"lost\", memory = 301 }, { label = \"once\", memory = 302 }, \
                  { label = \"broken\", kernel = \"broken.deb\" }]\n";
    // The last one of a list comes first.
    let mut faults =
        BTreeMap::from([(301, vec![Fault::Deaf, Fault::Panic]), (302, vec![Fault::Hang])]);
    // Long enough that a fault happens within a trial even on a busy machine.
    let text = experiment(&kernel, "", 1, factor).replace("1500ms", "5s");
    let mut child = fwdlab(directory.path(), &text)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lab, mut known) = (child.id(), Vec::new());
    std::thread::scope(|scope| {
        while child.try_wait().unwrap().is_none() {
            watch(scope, directory.path(), lab, &mut faults, &mut known);
            sleep(Duration::from_millis(50));
        }
    });
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(faults.values().all(Vec::is_empty), "{faults:?} did not happen: {stderr}");
    let given_up = |label: &str| {
        let mut lines = stderr.lines();
        let line = lines.find(|line| line.contains(&format!("{label} was given up: ")));
        line.unwrap_or_else(|| panic!("{label} was not given up: {stderr}")).to_owned()
    };
    let (lost, broken) = (given_up("lost"), given_up("broken"));
    let expect_words = |line: &str, words: &[&str]| {
        words.iter().for_each(|word| assert!(line.contains(word), "{word} is not in {line}"));
    };
    expect_words(
        &lost,
        &["dut: ", "the first time: ", "the guest panicked: ", "the machine boots anew"],
    );
    expect_words(&lost, &["Kernel panic - not syncing: sysrq triggered crash"]);
    expect_words(&broken, &["broken.deb"]);
    // The variant that failed once is measured, and the report mentions the failure.
    let read = |name: &str| std::fs::read_to_string(directory.path().join("out").join(name));
    assert!(read("README.md").unwrap().contains("once"), "{stderr}");
    let results = read("results.json").unwrap();
    assert!(results.contains("the guest took no frame: it hangs"), "{results}");
    assert_eq!(left(directory.path()), Vec::<String>::new());
    assert_eq!(known.len(), 4, "each booted twice: {stderr}");
}
