//! Probes the mechanisms of this machine by trying each one.

mod noise_sources;
mod router;

pub use noise_sources::quietness;

use crate::engines::{ReceiverKind, engine_name, open_receiver, open_sender};
use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal::Journal;
use crate::profiler;
use crate::wiring::{Taps, Wiring};
use fwdlab_model::settings::Engine;
use fwdlab_netio::{SenderConfig, Watch, affinity, clock, sender, tun, userns};
use fwdlab_packet::Flows;
use fwdlab_packet::{Family, Stream, Template};

/// Permission to create namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Root of this machine (or of this container).
    Root,
    /// Root in a user namespace that this process created.
    UserNamespace,
    /// No permission.
    None {
        /// Reason that the kernel gave.
        why: String,
    },
}

impl Privilege {
    /// Returns root privilege or none: no user namespace is entered.
    pub fn of_root() -> Privilege {
        match userns::is_root() {
            true => Privilege::Root,
            false => Privilege::None { why: "not root".into() },
        }
    }

    /// Determines the privilege, and enters a user namespace if not root. Must be called while the
    /// process has a single thread.
    pub fn obtain() -> Privilege {
        if userns::is_root() {
            return Privilege::Root;
        }
        match userns::enter() {
            Ok(()) => Privilege::UserNamespace,
            Err(error) => Privilege::None { why: error.to_string() },
        }
    }
}

/// Result of one probe.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Probe {
    /// Mechanism that was tried.
    pub name: String,
    /// True if it works.
    pub works: bool,
    /// Observation, or reason for the failure.
    pub detail: String,
    /// Next step if it does not work; empty if there is none.
    pub next: String,
}

/// Returns an error unless a program is installed; `package` is its Debian package.
///
/// # Errors
/// Returns [`BenchError::Environment`] that names the package.
pub fn need_program(program: &str, package: &str) -> Result<(), BenchError> {
    let found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    });
    if found {
        return Ok(());
    }
    Err(BenchError::environment(
        format!("the program {program} is missing"),
        format!("apt-get install {package}"),
    ))
}

/// Connection between sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// Veth pairs.
    Veth,
    /// Taps, with a QEMU guest between them.
    Taps,
}

impl Cable {
    /// Connects sender and receiver without a DUT; between taps a thread copies the frames, as long
    /// as the second return value lives.
    fn up(self, journal: &Journal) -> Result<(Wiring, Option<tun::Copier>), BenchError> {
        if self == Cable::Veth {
            return Ok((Wiring::up(journal, 1, false)?, None));
        }
        let (wiring, taps): (Wiring, Taps) = Wiring::taps(journal, 0, 1)?;
        let [from, to] = taps.map(|mut queues| queues.pop());
        let lacking = || BenchError::Refused("a tap without a queue".into());
        let copier = tun::Copier::start(from.ok_or_else(lacking)?, to.ok_or_else(lacking)?)?;
        Ok((wiring, Some(copier)))
    }
}

/// Finds a working sender and receiver by sending a few packets.
///
/// # Errors
/// Returns an error if namespaces cannot be created, or no mechanism works.
pub fn find_engines(
    journal: &Journal,
    request: Engine,
    cable: Cable,
) -> Result<(Engine, ReceiverKind, Vec<String>), BenchError> {
    let candidates: &[Engine] = match request {
        Engine::Auto => &[Engine::Xdp, Engine::Xsk, Engine::Packet],
        Engine::Xdp => &[Engine::Xdp],
        Engine::Xsk => &[Engine::Xsk],
        Engine::Packet => &[Engine::Packet],
    };
    let (wiring, _copier) = cable.up(journal).map_err(|error| match error {
        environment @ BenchError::Environment { .. } => environment,
        other => BenchError::environment(
            format!("network namespaces can't be made here: {other}"),
            "run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN (docker run --privileged), or take \
             kind = \"sim\"",
        ),
    })?;
    let mut reasons = Vec::new();
    let mut result = None;
    'search: for &engine in candidates {
        let mut failures = Vec::new();
        for receiving in [ReceiverKind::Xdp, ReceiverKind::XdpGeneric, ReceiverKind::Packet] {
            match attempt(&wiring, engine, receiving) {
                Ok(packets) => {
                    reasons.push(format!(
                        "{} to {} works ({packets} packets in the probe)",
                        engine_name(engine),
                        receiving.name()
                    ));
                    result = Some((engine, receiving));
                    break 'search;
                }
                Err(why) => failures.push(why),
            }
        }
        // The last receiver is the simplest: a failure with it is the sender's fault.
        let why = failures.pop().unwrap_or_default();
        reasons.push(format!("{} does not work: {why}", engine_name(engine)));
    }
    wiring.down()?;
    match result {
        Some((engine, receiving)) => Ok((engine, receiving, reasons)),
        None => Err(BenchError::environment(
            format!("no way to send packets works here:\n    {}", reasons.join("\n    ")),
            "see `fwdlab doctor`",
        )),
    }
}

/// Number of packets that a probe sends before it ends.
const PROBE_PACKETS: u64 = 200;
/// Time limit for these packets: a sender on a busy machine starts late, and must not be mistaken
/// for one that does not work.
const PROBE_PATIENCE_NS: u64 = 500_000_000;

/// Run id of a probe's packets: any value is suitable.
const PROBE_ID: u32 = 0x7072_6f62;

/// Sends some packets to a receiver; returns the number that arrived, or the reason why none did.
fn attempt(wiring: &Wiring, engine: Engine, receiving: ReceiverKind) -> Result<u64, String> {
    let watch = Watch::Stamps { run_id: PROBE_ID, flows: 0 };
    let receiver =
        open_receiver(receiving, &wiring.receiver, "r0", &watch, &[]).map_err(|e| e.to_string())?;
    let sent = send(wiring, engine)?;
    clock::sleep_until(clock::monotonic_ns() + 10_000_000);
    match receiver.received().total() {
        0 => Err(format!("{sent} packets were sent, none arrived")),
        received => Ok(received),
    }
}

/// Sends some packets at 100 kpps; returns their number, at least one.
fn send(wiring: &Wiring, engine: Engine) -> Result<u64, String> {
    let flows = Flows { sources: 4, destinations: 4 };
    let (source, destination) = (crate::links::mac::SENDER, crate::links::mac::RECEIVER);
    let cpus = affinity::allowed_cpus().map_err(|e| e.to_string())?;
    let config = SenderConfig {
        namespace: wiring.sender.clone(),
        interface: "g0".into(),
        cpu: cpus[0],
        number: 0,
        template: Template::new(
            &Stream::new(Family::Inet, 64, flows),
            PROBE_ID,
            source,
            destination,
        ),
        rate_pps: Some(100_000.0),
        limit: None,
        burst: sender::burst(1),
        timestamps: false,
        spread: None,
        flood: None,
        yields: false,
        batch: 1,
    };
    let sender = open_sender(engine, &config).map_err(|e| e.to_string())?;
    sender.start();
    let deadline = clock::monotonic_ns() + PROBE_PATIENCE_NS;
    while sender.sent().iter().sum::<u64>() < PROBE_PACKETS && clock::monotonic_ns() < deadline {
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
    match sender.halt().map_err(|e| e.to_string())?.iter().sum() {
        0 => Err("nothing was sent".into()),
        sent => Ok(sent),
    }
}

/// Probes everything that an experiment may need, for `fwdlab doctor`.
pub fn everything(privilege: &Privilege, journal: Result<&Journal, String>) -> Vec<Probe> {
    let mut probes = Vec::new();
    let mut add = |name: &str, result: Result<String, String>, next: &str| {
        let works = result.is_ok();
        let detail = result.unwrap_or_else(|why| why);
        let next = if works { String::new() } else { next.to_owned() };
        probes.push(Probe { name: name.into(), works, detail, next });
    };
    add(
        "privilege",
        match privilege {
            Privilege::Root => Ok("root".into()),
            Privilege::UserNamespace => Ok("a user namespace (no BPF, no kernel threads)".into()),
            Privilege::None { why } => Err(why.clone()),
        },
        "run as root, or set sysctl user.max_user_namespaces above 0",
    );
    for (program, package, use_) in [
        ("ip", "iproute2", "namespaces, links, routes"),
        ("ethtool", "ethtool", "offloads"),
        ("nft", "nftables", "firewalls"),
    ] {
        let result = need_program(program, package).map(|()| use_.to_owned());
        let next = format!("apt-get install {package}");
        add(&format!("program {program}"), result.map_err(|e| e.to_string()), &next);
    }
    let file = match journal {
        Ok(journal) => journal.temporary("probe"),
        Err(_) => std::env::temp_dir().join(format!("fwdlab-probe-{}", std::process::id())),
    };
    let probed = profiler::probe::attempt(&LocalHost, &file);
    let (result, next) = match &probed {
        Ok(_) => (probed.clone(), ""),
        Err(why) => match why.split_once(": next step: ") {
            Some((what, next)) => (Err(what.to_owned()), next),
            None => (probed.clone(), "apt-get install linux-perf"),
        },
    };
    add("CPU profiles", result, next);
    let cpus = affinity::allowed_cpus().map_or(0, |cpus| cpus.len());
    add(
        "CPUs",
        if cpus >= 2 { Ok(format!("{cpus}")) } else { Err(format!("{cpus}")) },
        "the open arrangement (sender apart from the DUT) needs two; closed is used instead",
    );
    add(
        "router: packets in memory",
        router::memory(),
        "the kernel needs CONFIG_MEMFD_CREATE, and /proc must be mounted",
    );
    let taps = journal.as_ref().map_err(Clone::clone).and_then(|journal| {
        let engines = find_engines(journal, Engine::Auto, Cable::Taps);
        engines.map(|(.., reasons)| reasons.join("; ")).map_err(|error| error.to_string())
    });
    let wiring = journal
        .and_then(|journal| Wiring::up(journal, 1, false).map_err(|error| error.to_string()));
    let wiring = match wiring {
        Ok(wiring) => wiring,
        Err(why) => {
            let next = "run as root with CAP_NET_ADMIN and CAP_SYS_ADMIN; until then kind = \
                        \"auto\" simulates";
            add("network namespaces and veth", Err(why), next);
            return probes;
        }
    };
    add("network namespaces and veth", Ok("made and wired".into()), "");
    let packets = |result: Result<u64, String>| result.map(|n| format!("{n} packets arrived"));
    let restricted = LocalHost.get("/proc/sys/kernel/unprivileged_bpf_disabled");
    let hint = match restricted.as_deref() {
        Ok("0") => "the kernel needs CONFIG_BPF_SYSCALL and 5.18 or later",
        _ => "run as root: kernel.unprivileged_bpf_disabled forbids BPF to others",
    };
    let xdp = attempt(&wiring, Engine::Xdp, ReceiverKind::Xdp);
    add("sender: XDP live frames, receiver: XDP program", packets(xdp), hint);
    let xsk = attempt(&wiring, Engine::Xsk, ReceiverKind::Packet);
    add("sender: AF_XDP", packets(xsk), "the kernel needs CONFIG_XDP_SOCKETS");
    let packet = attempt(&wiring, Engine::Packet, ReceiverKind::Packet);
    add("sender and receiver: AF_PACKET", packets(packet), "the kernel needs CONFIG_PACKET");
    add("router: ports on AF_XDP", router::xsk(&wiring), hint);
    let next = "the kernel needs CONFIG_PACKET; the testbed `memory` needs no ports";
    add("router: ports on AF_PACKET", router::packet(&wiring), next);
    let firewall = LocalHost.run(
        &["ip", "netns", "exec", wiring.receiver.name(), "nft", "-f", "-"],
        "table inet probe {\n chain forward {\n type filter hook forward priority 0;\n ct state new accept\n }\n}\n",
    );
    add(
        "nftables with connection tracking",
        firewall.map(|_| "loaded".into()).map_err(|e| e.to_string()),
        "the kernel needs CONFIG_NF_TABLES and CONFIG_NF_CONNTRACK; install nftables",
    );
    let host = crate::host::NamespaceHost::new(&wiring.receiver, &[]).map_err(|e| e.to_string());
    let threads = host.and_then(|host| {
        let cpus = affinity::allowed_cpus().map_err(|e| e.to_string())?;
        let threads = crate::dut::linux::scheduling::thread_polling(&host, "r0", &cpus[..1]);
        // The row has its own next step.
        threads.map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
    });
    add(
        "NAPI threads bound to a CPU",
        threads.map(|threads| format!("{} thread", threads.len())),
        "run as root; until then receive packet steering takes their place",
    );
    let _ = wiring.down();
    add(
        "taps (a guest's rate)",
        taps,
        "run as root where /dev/net/tun is; until then guests are counted, over Unix sockets",
    );
    probes
}
