//! Killed while real namespaces, links and machine-wide settings exist.

use crate::support::{Lab, values_per_variant};
use std::process::Stdio;
use std::time::Duration;

/// How often the program is killed before it may end.
const KILLS: usize = 5;
const BUDGET: &str = "/proc/sys/net/core/netdev_budget";

const REAL: &str = "\
version = 1
title = \"Killed again and again\"
[testbed]
kind = \"netns\"
[[factor]]
name = \"change\"
levels = [
  { label = \"before\" },
  { label = \"after\", sysctl = { \"net.core.netdev_budget\" = 299 } },
]
[trial]
warmup = \"50ms\"
duration = \"200ms\"
drain = \"100ms\"
[design]
blocks = 6
";

fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&format!("fwdlab-{pid}-")))
        .collect()
}

#[test]
fn a_killed_laboratory_leaves_nothing_behind_and_loses_nothing() {
    if !rustix::process::geteuid().is_root() {
        let in_ci = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
        assert!(!in_ci, "not root in CI");
        eprintln!("SKIPPED: namespaces that outlive a process need root");
        return;
    }
    let budget = || std::fs::read_to_string(BUDGET).expect("netdev_budget");
    let before = budget();
    let lab = Lab::new(REAL);
    let arguments = ["run", "x.toml", "--no-calibration"];
    let mut random: u32 = 88_172_645;
    let mut pids = Vec::new();
    for _ in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let mut command = lab.command(&arguments);
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("the program starts");
        std::thread::sleep(Duration::from_millis(u64::from(100 + random % 1200)));
        pids.push(child.id());
        child.kill().expect("a child, living or ended");
        child.wait().expect("its end");
    }
    lab.fwdlab(&arguments).expect(0);
    for pid in pids {
        assert_eq!(namespaces_of(pid), Vec::<String>::new());
    }
    assert_eq!(budget(), before, "the machine's setting is put back");
    let shown = lab.fwdlab(&["show", "results/x", "--json"]).expect(0).json();
    assert_eq!(values_per_variant(&shown), [6, 6], "every run once");
}
