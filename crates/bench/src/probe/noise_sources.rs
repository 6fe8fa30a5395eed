//! Noise sources that make a machine's rates vary: read from sysfs and procfs, without changing
//! anything.

use super::Probe;
use std::fs;
use std::path::Path;

/// Checks load, frequencies, sibling threads, interrupts and battery.
pub fn quietness() -> Vec<Probe> {
    checks_in(Path::new("/"), std::thread::available_parallelism().map_or(1, usize::from))
}

/// Runs these checks in the file tree of another machine with `cpus` CPUs.
fn checks_in(root: &Path, cpus: usize) -> Vec<Probe> {
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    vec![
        load(&read("proc/loadavg"), cpus),
        governor(&root.join("sys/devices/system/cpu")),
        turbo(
            &read("sys/devices/system/cpu/intel_pstate/no_turbo"),
            &read("sys/devices/system/cpu/cpufreq/boost"),
        ),
        siblings(&read("sys/devices/system/cpu/smt/active")),
        interrupts(&root.join("proc")),
        battery(&root.join("sys/class/power_supply")),
    ]
}

fn probe(name: &str, works: bool, detail: impl Into<String>, next: &str) -> Probe {
    let next = if works { String::new() } else { next.to_owned() };
    Probe { name: name.to_owned(), works, detail: detail.into(), next }
}

fn load(loadavg: &str, cpus: usize) -> Probe {
    let minute = loadavg.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    let Some(minute) = minute else { return probe("load", true, "not known", "") };
    // Other work of half a CPU affects every rate of a small machine.
    let detail = format!("{minute} runnable on average over a minute, on {cpus} CPUs");
    probe("load", minute < 0.5, detail, "end what else runs, or measure at another time")
}

fn governor(cpus: &Path) -> Probe {
    let entries = fs::read_dir(cpus).into_iter().flatten().flatten();
    let governors = entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("cpufreq/scaling_governor")).ok());
    let mut governors: Vec<String> = governors.map(|text| text.trim().to_owned()).collect();
    governors.sort();
    governors.dedup();
    if governors.is_empty() {
        return probe("governor", true, "the kernel does not control the CPUs' frequencies", "");
    }
    probe(
        "governor",
        governors == ["performance"],
        governors.join(", "),
        "cpupower frequency-set -g performance",
    )
}

/// Checks `no_turbo` of Intel's driver, and `boost` of the others; both are empty without such a
/// file.
fn turbo(no_turbo: &str, boost: &str) -> Probe {
    let (is_on, next) = match (no_turbo, boost) {
        ("0", _) => (true, "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"),
        (_, "1") => (true, "echo 0 > /sys/devices/system/cpu/cpufreq/boost"),
        ("", "") => return probe("turbo", true, "not controlled by the kernel", ""),
        _ => (false, ""),
    };
    let detail = if is_on { "on: the frequency depends on heat and neighbours" } else { "off" };
    probe("turbo", !is_on, detail, next)
}

fn siblings(active: &str) -> Probe {
    match active {
        "1" => probe(
            "sibling threads",
            false,
            "on: two CPUs share a core",
            "echo off > /sys/devices/system/cpu/smt/control, or bind to one CPU of each core",
        ),
        _ => probe("sibling threads", true, "none", ""),
    }
}

fn interrupts(proc: &Path) -> Probe {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let is_running = entries.map(|entry| entry.path()).any(|process| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "irqbalance")
    });
    let detail =
        if is_running { "irqbalance moves them during runs" } else { "irqbalance does not run" };
    probe(
        "interrupts",
        !is_running,
        detail,
        "systemctl stop irqbalance, at least of hosts with cards",
    )
}

fn battery(supplies: &Path) -> Probe {
    let entries = fs::read_dir(supplies).into_iter().flatten().flatten();
    let is_discharging = entries.map(|entry| entry.path()).any(|supply| {
        fs::read_to_string(supply.join("status")).is_ok_and(|status| status.trim() == "Discharging")
    });
    let detail = if is_discharging { "on battery" } else { "not from a battery" };
    probe("power", !is_discharging, detail, "plug it in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn doubts(files: &[(&str, &str)]) -> Vec<String> {
        let probes = checks_in(machine(files).path(), 8);
        probes.into_iter().filter(|probe| !probe.works).map(|probe| probe.name).collect()
    }

    #[test]
    fn quiet_machine_has_no_noise_sources() {
        let cpu = "sys/devices/system/cpu";
        let governor = format!("{cpu}/cpu0/cpufreq/scaling_governor");
        let no_turbo = format!("{cpu}/intel_pstate/no_turbo");
        let quiet = [
            ("proc/loadavg", "0.08 0.10 0.09 1/201 4242\n"),
            (governor.as_str(), "performance\n"),
            (no_turbo.as_str(), "1\n"),
            ("sys/devices/system/cpu/smt/active", "0\n"),
            ("proc/17/comm", "sshd\n"),
            ("sys/class/power_supply/BAT0/status", "Full\n"),
        ];
        assert_eq!(doubts(&quiet), [""; 0]);
        // A virtual machine has none of these files.
        assert_eq!(doubts(&[]), [""; 0]);
    }

    #[test]
    fn busy_laptop_fails_every_check() {
        let busy = [
            ("proc/loadavg", "3.50 1.00 0.50 4/900 4242\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("sys/devices/system/cpu/smt/active", "1\n"),
            ("proc/17/comm", "irqbalance\n"),
            ("sys/class/power_supply/BAT0/status", "Discharging\n"),
        ];
        let all = ["load", "governor", "turbo", "sibling threads", "interrupts", "power"];
        assert_eq!(doubts(&busy), all);
        let probes = checks_in(machine(&busy).path(), 8);
        assert!(probes.iter().all(|probe| !probe.next.is_empty() && !probe.detail.is_empty()));
        assert_eq!(probes[1].detail, "performance, powersave");
    }
}
