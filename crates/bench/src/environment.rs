//! The surroundings of an invocation: everything that a reader of the report may
//! need to doubt or repeat it. What can't be read is left out, never guessed.

use crate::host::{Host, LocalHost};
use fwdlab_model::record::Environment;
use std::collections::BTreeMap;

/// Sysctls of the machine that change forwarding and that no experiment sets.
const SYSCTLS: &[&str] = &[
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/dev_weight",
    "net/core/bpf_jit_enable",
    "net/core/bpf_jit_harden",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_buckets",
    "kernel/unprivileged_bpf_disabled",
];

/// Reads them.
pub fn capture(version: &str) -> Environment {
    let mut sections = BTreeMap::new();
    let mut section = |name: &str, pairs: Vec<(String, Option<String>)>| {
        let found: BTreeMap<String, String> =
            pairs.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        if !found.is_empty() {
            sections.insert(name.to_owned(), found);
        }
    };
    let file = |path: &str| LocalHost.get(path).ok().filter(|text| !text.is_empty());
    let cpuinfo = file("/proc/cpuinfo").unwrap_or_default();
    let cpu = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(key));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let count = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    section(
        "cpu",
        vec![
            ("model".into(), cpu("model name")),
            ("count".into(), Some(count.to_string())),
            ("MHz".into(), cpu("cpu MHz").map(|mhz| format!("{:.0}", mhz.parse().unwrap_or(0.0)))),
            ("cache".into(), cpu("cache size")),
            ("governor".into(), file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            (
                "hypervisor".into(),
                cpu("flags").filter(|flags| flags.contains("hypervisor")).map(|_| "yes".into()),
            ),
        ],
    );
    section(
        "kernel",
        vec![
            ("release".into(), file("/proc/sys/kernel/osrelease")),
            ("version".into(), file("/proc/sys/kernel/version")),
            ("command line".into(), file("/proc/cmdline")),
            (
                "clock source".into(),
                file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            ),
        ],
    );
    section("mitigations", mitigations());
    let sysctls = SYSCTLS
        .iter()
        .map(|name| (name.replace('/', "."), file(&format!("/proc/sys/{name}"))))
        .collect();
    section("sysctl", sysctls);
    let first_line = |argv: &[&str]| {
        let text = LocalHost.run(argv, "").ok()?;
        Some(text.lines().next()?.trim().to_owned())
    };
    section(
        "tools",
        vec![
            ("fwdlab".into(), Some(version.to_owned())),
            ("ip".into(), first_line(&["ip", "-V"])),
            ("nft".into(), first_line(&["nft", "--version"])),
            ("ethtool".into(), first_line(&["ethtool", "--version"])),
        ],
    );
    section(
        "system",
        vec![(
            "os".into(),
            file("/etc/os-release").and_then(|text| {
                let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
                Some(line.trim_matches('"').to_owned())
            }),
        )],
    );
    Environment(sections)
}

fn mitigations() -> Vec<(String, Option<String>)> {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = LocalHost.get(&format!("{directory}/{name}")).ok()?;
            (text != "Not affected").then_some((name, Some(text)))
        })
        .collect()
}
