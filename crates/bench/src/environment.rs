//! Environment of an invocation: hardware and software that a reader needs to judge or repeat the
//! experiment. Values that cannot be read are left out, never guessed.

use crate::host::{Host, LocalHost};
use fwdlab_model::record::Environment;
use std::collections::BTreeMap;

/// Machine-wide sysctls that affect forwarding and that experiments do not set.
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

/// Sysctls read on FreeBSD: section, name, sysctl.
const FREEBSD: &[(&str, &str, &str)] = &[
    ("cpu", "model", "hw.model"),
    ("cpu", "count", "hw.ncpu"),
    ("cpu", "MHz", "hw.clockrate"),
    ("cpu", "hypervisor", "kern.vm_guest"),
    ("kernel", "release", "kern.osrelease"),
    ("kernel", "version", "kern.version"),
    ("kernel", "configuration", "kern.ident"),
    ("kernel", "clock source", "kern.timecounter.hardware"),
    ("mitigations", "meltdown (PTI)", "vm.pmap.pti"),
    ("mitigations", "spectre_v2 (IBRS)", "hw.ibrs_active"),
    ("mitigations", "mds", "hw.mds_disable_state"),
    ("sysctl", "net.isr.dispatch", "net.isr.dispatch"),
    ("sysctl", "net.isr.maxthreads", "net.isr.maxthreads"),
    ("sysctl", "net.isr.bindthreads", "net.isr.bindthreads"),
    ("sysctl", "kern.random.harvest.mask", "kern.random.harvest.mask"),
];

/// Environment of this machine. `version` is fwdlab's.
pub fn capture(version: &str) -> Environment {
    of_linux(&LocalHost, version)
}

/// Environment of a FreeBSD host.
pub fn of_freebsd(host: &dyn Host, version: &str) -> Environment {
    // Names that a release lacks are skipped (sysctl(8), -i).
    let mut argv = vec!["sysctl", "-i"];
    argv.extend(FREEBSD.iter().map(|(_, _, name)| *name));
    let output = host.run(&argv, "").unwrap_or_default();
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (section, key, name) in FREEBSD {
        let value = output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let value = value.filter(|value| !["", "none"].contains(&value.trim()));
        if let Some(value) = value {
            let section = sections.entry((*section).to_owned()).or_default();
            section.insert((*key).to_owned(), value.trim().to_owned());
        }
    }
    let tools = BTreeMap::from([("fwdlab".to_owned(), version.to_owned())]);
    sections.insert("tools".into(), tools);
    Environment(sections)
}

/// Environment of a Linux host.
pub fn of_linux(host: &dyn Host, version: &str) -> Environment {
    let mut sections = BTreeMap::new();
    let mut section = |name: &str, pairs: Vec<(String, Option<String>)>| {
        let found: BTreeMap<String, String> =
            pairs.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        if !found.is_empty() {
            sections.insert(name.to_owned(), found);
        }
    };
    let file = |path: &str| host.get(path).ok().filter(|text| !text.is_empty());
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
    section("mitigations", mitigations(host));
    let sysctls = SYSCTLS
        .iter()
        .map(|name| (name.replace('/', "."), file(&format!("/proc/sys/{name}"))))
        .collect();
    section("sysctl", sysctls);
    let first_line = |argv: &[&str]| {
        let text = host.run(argv, "").ok()?;
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

fn mitigations(host: &dyn Host) -> Vec<(String, Option<String>)> {
    let output = host.run(&["grep", "-r", ".", "/sys/devices/system/cpu/vulnerabilities"], "");
    let output = output.unwrap_or_default();
    let entries = output.lines().filter_map(|line| {
        let (path, text) = line.split_once(':')?;
        Some((path.rsplit('/').next()?.to_owned(), text.trim().to_owned()))
    });
    entries
        .filter(|(_, text)| text != "Not affected")
        .map(|(name, text)| (name, Some(text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    #[test]
    fn capture_groups_facts_by_section() {
        let Environment(here) = capture("fwdlab 1");
        assert_eq!(here["tools"]["fwdlab"], "fwdlab 1");
        assert!(here["cpu"]["count"].parse::<u32>().is_ok_and(|count| count > 0), "{here:?}");
        assert!(here["kernel"]["release"].contains('.'), "{here:?}");
    }

    #[test]
    fn freebsd_host_is_queried_once_and_gaps_are_omitted() {
        let mut host = FakeHost::default();
        host.outputs.insert(
            "sysctl -i".into(),
            "hw.model: Intel(R) Xeon(R) CPU E5-2650 v4 @ 2.20GHz\nhw.ncpu: 12\n\
             kern.vm_guest: none\nkern.osrelease: 13.0-CURRENT\n\
             kern.version: FreeBSD 13.0-CURRENT #1 r367600\n    root@builder:/usr/obj\n"
                .into(),
        );
        let Environment(sections) = of_freebsd(&host, "1");
        assert_eq!(sections["cpu"]["model"], "Intel(R) Xeon(R) CPU E5-2650 v4 @ 2.20GHz");
        assert_eq!(sections["cpu"].len(), 2);
        assert_eq!(sections["kernel"]["release"], "13.0-CURRENT");
        assert!(!sections.contains_key("mitigations"));
    }
}
