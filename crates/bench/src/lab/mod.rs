//! `lab check`: verifies that the hosts of a laboratory match its file.
//!
//! All hosts are queried in parallel; nothing is changed. Checking cables and measuring the
//! senders' ceilings needs packets: [`traffic()`]. Not checked: the receiver's ceiling, and the
//! direction of cables away from the DUT, which would have to send.

mod cable;
mod cable_ends;
mod ceiling;
mod clock;
mod counter;
pub(crate) mod link;

pub mod protected_routes;
mod traffic;

pub use cable::CableReport;
pub use ceiling::CeilingReport;
pub use traffic::{TrafficReport, traffic};

use crate::error::BenchError;
use crate::host::{Facts, Host, LocalHost, SshHost, SshSettings, facts};
use crate::probe::Probe;
use fwdlab_model::Lab;
use fwdlab_model::lab::{LabHost, LabInterface, Mac, Role, System};
use link::interface_state;
use std::path::Path;
use std::time::{Duration, Instant};

/// Minimum MTU: test frames have up to 1518 bytes.
const MTU_MIN: u32 = 1500;

/// Results of one host.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HostReport {
    /// Name in the lab file.
    pub host: String,
    /// Probes, in order. A single probe if the host cannot be reached.
    pub probes: Vec<Probe>,
}

impl HostReport {
    /// True if everything works.
    pub fn is_fine(&self) -> bool {
        self.probes.iter().all(|probe| probe.works)
    }
}

/// ssh settings of the lab's hosts: settings of the lab file over the defaults. `folder` is the
/// file's directory, for the configuration file that it names.
pub fn ssh_settings(lab: &Lab, folder: &Path) -> SshSettings {
    let (ssh, default) = (&lab.ssh, SshSettings::default());
    let time = |ns: Option<u64>, default| ns.map_or(default, Duration::from_nanos);
    SshSettings {
        config: ssh.config.as_ref().map(|config| folder.join(config)),
        connect: time(ssh.connect_ns, default.connect),
        alive: time(ssh.alive_ns, default.alive),
        deadline: time(ssh.deadline_ns, default.deadline),
        one_shell: ssh.one_shell,
        ..default
    }
}

/// MAC of an interface as reported by its host.
///
/// # Errors
/// Fails if there is no such interface, or it has no MAC.
pub fn mac_of(host: &dyn Host, system: System, interface: &str) -> Result<[u8; 6], BenchError> {
    let found =
        interface_state(host, system, interface)?.mac.and_then(|mac| mac.parse::<Mac>().ok());
    found.map(|mac| mac.0).ok_or_else(|| {
        BenchError::environment(
            format!("{interface} on {} has no MAC", host.name()),
            "name an Ethernet interface in the lab's file",
        )
    })
}

/// Queries every host; reports are in the order of the file.
pub fn check(lab: &Lab, settings: &SshSettings) -> Vec<HostReport> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = lab
            .hosts
            .iter()
            .map(|described| scope.spawn(|| report(described, settings.clone())))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|report| report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn report(described: &LabHost, settings: SshSettings) -> HostReport {
    let begin = Instant::now();
    let mut probes = Vec::new();
    match &described.ssh {
        None => {
            probes.push(good("reach", "this machine"));
            probes.extend(probe_host(&LocalHost, described));
        }
        Some(destination) => match SshHost::connect(destination, settings) {
            Ok(host) => {
                let seconds = begin.elapsed().as_secs_f64();
                probes.push(good("reach", format!("ssh {destination} in {seconds:.1} s")));
                probes.extend(probe_host(&host, described));
                probes.push(clock::probe(&host));
            }
            Err(error) => probes.push(failed("reach", error)),
        },
    }
    let commands = [("console", &described.console), ("power_cycle", &described.power_cycle)];
    probes
        .extend(commands.into_iter().filter_map(|(name, argv)| own_command(name, argv.as_ref()?)));
    HostReport { host: described.name.clone(), probes }
}

/// Checks of a connected host.
fn probe_host(host: &dyn Host, described: &LabHost) -> Vec<Probe> {
    let found = match facts(host) {
        Ok(facts) => facts,
        Err(error) => return vec![failed("system", error)],
    };
    let Some(system) = System::ALL.into_iter().find(|system| system.uname() == found.system) else {
        let next = "use Linux or FreeBSD there";
        return vec![bad("system", format!("{} is not known here", found.system), next)];
    };
    let mut probes = vec![system_probe(&found, system, described)];
    if !described.cpus.is_empty() {
        probes.push(cpus(host, &found, system, described));
    }
    probes.extend(programs(host, system, described));
    for interface in &described.interfaces {
        probes.extend(interface_probes(host, system, interface));
    }
    probes
}

fn system_probe(found: &Facts, system: System, described: &LabHost) -> Probe {
    let Facts { system: name, release, machine, cpus } = found;
    let noun = if *cpus == 1 { "CPU" } else { "CPUs" };
    let detail = format!("{name} {release}, {machine}, {cpus} {noun}");
    match described.system {
        Some(expected) if expected != system => {
            let next =
                format!("write system = \"{}\", or boot {}", system.name(), expected.uname());
            bad("system", detail, next)
        }
        _ => good("system", detail),
    }
}

/// Checks that the CPUs for traffic exist and are online.
fn cpus(host: &dyn Host, found: &Facts, system: System, described: &LabHost) -> Probe {
    let online = match system {
        System::Linux => match host.get("/sys/devices/system/cpu/online") {
            Ok(list) => list,
            Err(error) => return failed("cpus", error),
        },
        System::FreeBsd => format!("0-{}", found.cpus.saturating_sub(1)),
    };
    let is_online = |cpu: u16| {
        online.split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let bounds = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
            bounds.is_some_and(|(first, last)| (first..=last).contains(&cpu))
        })
    };
    match described.cpus.iter().find(|&&cpu| !is_online(cpu)) {
        None => good("cpus", format!("online: {online}")),
        Some(cpu) => bad(
            "cpus",
            format!("CPU {cpu} is not online: {online}"),
            "change `cpus` in the file, or switch the CPU on",
        ),
    }
}

/// Script that prints those of its arguments that are executable programs.
const FIND: &str =
    r#"for program; do command -v "$program" >/dev/null 2>&1 && echo "$program"; done; true"#;

fn installed(host: &dyn Host, programs: &[&str]) -> Result<Vec<String>, BenchError> {
    let output = host.run(&[&["/bin/sh", "-c", FIND, "find"], programs].concat(), "")?;
    Ok(output.lines().map(str::to_owned).collect())
}

/// Programs that fwdlab runs, with the Debian package of each; FreeBSD has them in the base system.
fn required_programs(system: System, described: &LabHost) -> Vec<(&'static str, &'static str)> {
    match (system, described.is(Role::Dut)) {
        (System::Linux, true) => {
            vec![("ip", "iproute2"), ("ethtool", "ethtool"), ("nft", "nftables")]
        }
        (System::Linux, false) => vec![("ip", "iproute2"), ("ethtool", "ethtool")],
        (System::FreeBsd, _) => vec![("ifconfig", ""), ("netstat", ""), ("sysctl", "")],
    }
}

/// Programs that send and count.
const GENERATORS: [&str; 2] = ["fwdlab", "pkt-gen"];

fn programs(host: &dyn Host, system: System, described: &LabHost) -> Vec<Probe> {
    let required_programs = required_programs(system, described);
    let names: Vec<&str> =
        required_programs.iter().map(|(name, _)| *name).chain(GENERATORS).collect();
    let found = match installed(host, &names) {
        Ok(found) => found,
        Err(error) => return vec![failed("programs", error)],
    };
    let has = |name: &str| found.iter().any(|found| found == name);
    let mut probes: Vec<Probe> = required_programs
        .into_iter()
        .map(|(name, package)| match (has(name), package) {
            (true, _) => good(format!("program {name}"), "installed"),
            (false, "") => {
                let next = "add its folder (/sbin, /usr/sbin or /usr/bin) to PATH there";
                bad(format!("program {name}"), "not found", next)
            }
            (false, package) => {
                let next = format!(
                    "apt-get install {package} there, or add its folder (/usr/sbin) to PATH there"
                );
                bad(format!("program {name}"), "not found", next)
            }
        })
        .collect();
    if described.is(Role::Sender) || described.is(Role::Receiver) {
        let mut installed: Vec<&str> = GENERATORS.into_iter().filter(|name| has(name)).collect();
        if described.ssh.is_none() && !installed.contains(&"fwdlab") {
            installed.insert(0, "fwdlab (this program)");
        }
        probes.push(match (installed.is_empty(), system) {
            (false, _) => good("generator", installed.join(", ")),
            (true, System::Linux) => {
                good("generator", "none installed; fwdlab is copied there when it is needed")
            }
            (true, System::FreeBsd) => bad(
                "generator",
                format!("none of {} found", GENERATORS.join(", ")),
                "put fwdlab or pkt-gen into a folder of PATH there",
            ),
        });
    }
    probes
}

/// Checks a command that this machine runs for the host.
fn own_command(name: &str, argv: &[String]) -> Option<Probe> {
    let program = argv.first()?;
    Some(match installed(&LocalHost, &[program]) {
        Ok(found) if !found.is_empty() => good(name, format!("{program} is installed here")),
        Ok(_) => bad(name, format!("{program} is missing here"), format!("install {program} here")),
        Err(error) => failed(name, error),
    })
}

fn interface_probes(host: &dyn Host, system: System, interface: &LabInterface) -> Vec<Probe> {
    let named = |what: &str| format!("{what} {}", interface.name);
    let link = match interface_state(host, system, &interface.name) {
        Ok(link) => link,
        Err(error) => {
            let mut probe = failed(named("interface"), error);
            probe.next = format!("check its name: `{}` lists them", link::listing(system));
            return vec![probe];
        }
    };
    let reported = link.mac.as_deref().unwrap_or("without MAC");
    let mac = match &interface.mac {
        Some(mac) if link.mac.as_deref() != Some(mac.to_string().as_str()) => bad(
            named("interface"),
            format!("its MAC is {reported}, in the file {mac}"),
            "correct the file, or see whether names of interfaces have changed places",
        ),
        _ => good(named("interface"), reported),
    };
    let state = match link.up {
        true => good(named("link"), &link.state),
        false => bad(named("link"), &link.state, link.next(system, &interface.name)),
    };
    let mtu = match link.mtu {
        Some(mtu) if mtu >= MTU_MIN => good(named("MTU"), mtu.to_string()),
        Some(mtu) => {
            let next = format!("set it to {MTU_MIN} or more: longer frames would be lost");
            bad(named("MTU"), mtu.to_string(), next)
        }
        None => bad(named("MTU"), "unknown", "look at the interface on the host"),
    };
    vec![mac, state, mtu]
}

fn good(name: impl Into<String>, detail: impl Into<String>) -> Probe {
    Probe { name: name.into(), works: true, detail: detail.into(), next: String::new() }
}

fn bad(name: impl Into<String>, detail: impl Into<String>, next: impl Into<String>) -> Probe {
    Probe { name: name.into(), works: false, detail: detail.into(), next: next.into() }
}

fn failed(name: impl Into<String>, error: BenchError) -> Probe {
    match error {
        BenchError::Environment { what, next } => bad(name, what, next),
        other => bad(name, other.to_string(), "run this command on the host by hand"),
    }
}

#[cfg(test)]
mod tests;
