//! One variant's complete settings: everything that a testbed needs to know.
//!
//! The base comes from `[testbed]`, `[dut]`, `[traffic]`; a factor's level lays
//! its own values over it. Nothing here is optional that has a default.

mod command;
mod hooks;
mod kind;
mod laboratory;
mod nat;
mod router;
mod sim;
mod vm;

pub use command::*;
pub use fwdlab_packet::forwarding::{FibAlgorithm, ForwardingPath, Locking, StateTable};
pub use fwdlab_packet::{Family, Flows};
pub use hooks::*;
pub use kind::*;
pub use laboratory::*;
pub use nat::*;
pub use router::*;
pub use sim::*;
pub use vm::*;

use crate::units::FrameSize;
use fwdlab_packet::address::Side;
use fwdlab_packet::{Stream, named};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// All settings of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where the packets flow.
    pub testbed: TestbedSettings,
    /// What forwards them.
    pub dut: DutSettings,
    /// What is sent.
    pub traffic: TrafficSettings,
}

impl Settings {
    /// True for a paced rate, false for the maximum rate.
    pub fn is_paced(&self) -> bool {
        self.traffic.rate != Rate::Max
    }
}

impl Default for Settings {
    /// Default settings; the tables of keys document the same values, and a test
    /// compares them.
    fn default() -> Self {
        Self {
            testbed: TestbedSettings {
                kind: TestbedKind::Auto,
                arrangement: Arrangement::Open,
                senders: 1,
                engine: Engine::Auto,
                lab: None,
                vm: VmSettings::default(),
                sim: SimSettings::default(),
            },
            dut: DutSettings {
                kind: DutKind::Linux,
                routes: 2,
                firewall: Firewall::None,
                nat: Nat::None,
                icmp_redirect: false,
                offloads: false,
                queues: 1,
                bind_queues: false,
                napi: Napi::Auto,
                rps: String::new(),
                sysctl: BTreeMap::new(),
                router: RouterSettings::default(),
                remote: RemoteSettings::default(),
                command: CommandSettings::default(),
                hooks: Hooks::default(),
            },
            traffic: TrafficSettings {
                family: Family::Inet,
                frame_size: FrameSize::of(64),
                flows: Flows { sources: 20, destinations: 100 },
                rate: Rate::Max,
                timestamps: false,
                directions: Directions::One,
                checks: Checks::Auto,
                generator: GeneratorKind::Fwdlab,
                generator_server: String::new(),
                generator_options: Vec::new(),
            },
        }
    }
}

named! {
    /// Kind of testbed.
    pub enum TestbedKind {
        /// The best that this machine permits: `netns`, else `sim`.
        Auto = "auto",
        /// Linux network namespaces joined by veth pairs.
        Netns = "netns",
        /// fwdlab's own router between a generator and a sink that share memory
        /// with it: packets, but no kernel that forwards them, and no privileges.
        Memory = "memory",
        /// Hosts of a laboratory, reached over ssh.
        Ssh = "ssh",
        /// A machine of QEMU on this machine.
        Vm = "vm",
        /// A simulated device of known capacity.
        Sim = "sim",
        /// Imported logs of another laboratory.
        Archive = "archive",
    }
}

named! {
    /// How sender, DUT and receiver share the machine's CPUs.
    pub enum Arrangement {
        /// Sender on dedicated CPUs, DUT and receiver on others, as in a rack: a DUT that is
        /// slower than the sender drops packets.
        Open = "open",
        /// Each sending CPU generates, forwards and counts its own packets, run to completion:
        /// the rate is 1 / (cost of all three). Nothing is dropped unless two CPUs share a
        /// queue.
        Closed = "closed",
    }
}

named! {
    /// Mechanism that puts frames on the wire.
    pub enum Engine {
        /// The fastest one whose probe succeeds.
        Auto = "auto",
        /// XDP live frames (`BPF_PROG_RUN`).
        Xdp = "xdp",
        /// AF_XDP socket.
        Xsk = "xsk",
        /// AF_PACKET socket with qdisc bypass.
        Packet = "packet",
    }
}

/// `[testbed]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestbedSettings {
    /// Kind of testbed.
    pub kind: TestbedKind,
    /// CPU arrangement.
    pub arrangement: Arrangement,
    /// Number of sending threads, one CPU each (1 in the open arrangement).
    pub senders: u16,
    /// Sending mechanism.
    pub engine: Engine,
    /// File that describes the laboratory, as written in the experiment (`ssh` only). What
    /// stands in it is no part of a plan: the same plan runs in any laboratory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<String>,
    /// The machine of QEMU (`vm` only). The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "VmSettings::is_default")]
    pub vm: VmSettings,
    /// Parameters of the simulated device (used by `sim` only).
    pub sim: SimSettings,
}

/// Firewall of the DUT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "value")]
pub enum Firewall {
    /// No table is loaded.
    None,
    /// Filter without state: a forward hook that accepts, `rules` non-matching
    /// rules before (default 1).
    Stateless,
    /// Connection tracking: established accepted, new accepted by rule.
    Stateful,
    /// Forward hook with this many rules that do not match, then accept
    /// (`"rules:100"`; `"rules:0"` is an empty hook).
    Rules(u32),
    /// Text of a ruleset file, as `nft -f` reads it.
    Ruleset {
        /// File name as written in the experiment.
        file: String,
        /// Its text (so that the plan's hash covers it).
        text: String,
    },
}

impl Firewall {
    /// True if it may keep connection states: a user's own ruleset may.
    pub fn may_keep_states(&self) -> bool {
        matches!(self, Firewall::Stateful | Firewall::Ruleset { .. })
    }
}

impl fmt::Display for Firewall {
    /// As an experiment file writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Firewall::None => f.write_str("none"),
            Firewall::Stateless => f.write_str("stateless"),
            Firewall::Stateful => f.write_str("stateful"),
            Firewall::Rules(rules) => write!(f, "rules:{rules}"),
            Firewall::Ruleset { file, .. } => f.write_str(file),
        }
    }
}

named! {
    /// How the DUT's receive work is scheduled.
    pub enum Napi {
        /// `threaded` in the open arrangement, `softirq` in the closed one.
        Auto = "auto",
        /// NAPI polls in kernel threads that are pinned to the DUT's CPUs.
        Threaded = "threaded",
        /// NAPI polls in softirq context of the CPU that raised it.
        Softirq = "softirq",
    }
}

/// `[dut]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DutSettings {
    /// Kind of DUT.
    pub kind: DutKind,
    /// Number of static routes (at least 2: one to each side).
    pub routes: u32,
    /// Firewall.
    pub firewall: Firewall,
    /// Addresses that it translates. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Nat::is_default")]
    pub nat: Nat,
    /// ICMP redirect allowed.
    pub icmp_redirect: bool,
    /// Generic receive/segmentation offloads allowed.
    pub offloads: bool,
    /// Receive and transmit queue pairs of each DUT interface.
    pub queues: u16,
    /// Bind each outgoing queue to a CPU of the same number (XPS).
    pub bind_queues: bool,
    /// NAPI placement.
    pub napi: Napi,
    /// Receive packet steering: hexadecimal CPU mask, empty for off.
    pub rps: String,
    /// sysctls, dotted name to value.
    pub sysctl: BTreeMap<String, String>,
    /// What only fwdlab's own router has. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "RouterSettings::is_default")]
    pub router: RouterSettings,
    /// What only the DUT of a laboratory has. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "RemoteSettings::is_default")]
    pub remote: RemoteSettings,
    /// What only a program has that is started by commands. The defaults add nothing to a
    /// plan's hash.
    #[serde(default, skip_serializing_if = "CommandSettings::is_default")]
    pub command: CommandSettings,
    /// Commands of the user's around each run. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Hooks::is_default")]
    pub hooks: Hooks,
}

/// Intended load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "value")]
pub enum Rate {
    /// As fast as the sender can.
    Max,
    /// Packets per second.
    Pps(f64),
    /// Share of the calibrated ceiling, 0 to 1.
    Ceiling(f64),
    /// L2 bits per second (frame with FCS).
    Bps(f64),
}

impl fmt::Display for Rate {
    /// As an experiment file writes it, with the prefix that leaves the number short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match *self {
            Rate::Max => return f.write_str("max"),
            // Rounded, since 0.07 times 100 is not 7 in binary.
            Rate::Ceiling(share) => return write!(f, "{}%", (share * 1e8).round() / 1e6),
            Rate::Pps(pps) => (pps, "pps"),
            Rate::Bps(bps) => (bps, "bit/s"),
        };
        match value {
            v if v >= 1e9 => write!(f, "{}G{unit}", v / 1e9),
            v if v >= 1e6 => write!(f, "{}M{unit}", v / 1e6),
            v if v >= 1e3 => write!(f, "{}k{unit}", v / 1e3),
            v => write!(f, "{v}{unit}"),
        }
    }
}

named! {
    /// The ways that packets go (RFC 2544, section 14).
    pub enum Directions default One {
        /// From the sender to the receiver.
        One = "one",
        /// Both at once, each at the intended load: every flow is answered.
        Both = "both",
    }
}

impl Directions {
    /// Their number.
    pub fn count(self) -> u32 {
        self.ways().len() as u32
    }

    /// From which side to which each goes.
    pub fn ways(self) -> &'static [[Side; 2]] {
        const WAYS: [[Side; 2]; 2] =
            [[Side::Sender, Side::Receiver], [Side::Receiver, Side::Sender]];
        match self {
            Directions::One => &WAYS[..1],
            Directions::Both => &WAYS,
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// Which packets a receiver in the kernel checks beyond their stamp.
    pub enum Checks default Auto {
        /// A sample at rates at which checking all of them would cost the receiver a part of
        /// its own, all of them below.
        Auto = "auto",
        /// Every one.
        All = "all",
        /// The first of a run, and a sample of those after them.
        Sample = "sample",
    }
}

/// Up to this rate, packets per second, every packet is checked unless something else is
/// asked for: a quarter of what a receiver that checks them all takes on a slow CPU
/// (docs/PERFORMANCE.md).
const CHECKED_PPS: f64 = 1e6;

impl Checks {
    /// True when not every packet is checked at this rate; none: as fast as possible.
    pub fn is_sample(self, rate_pps: Option<f64>) -> bool {
        match self {
            Checks::Auto => rate_pps.is_none_or(|rate| rate > CHECKED_PPS),
            Checks::All => false,
            Checks::Sample => true,
        }
    }

    /// True for the default, which adds nothing to a plan's hash.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// `[traffic]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficSettings {
    /// Address family.
    pub family: Family,
    /// Frame size with FCS. The smallest frame of inet6 that carries the stamp
    /// is 84 bytes; a smaller one asked for is raised and said so.
    pub frame_size: FrameSize,
    /// Flows.
    pub flows: Flows,
    /// Intended load.
    pub rate: Rate,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// The ways that packets go. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Directions::is_default")]
    pub directions: Directions,
    /// Which packets the receiver checks. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Checks::is_default")]
    pub checks: Checks,
    /// What makes and counts the traffic. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "GeneratorKind::is_default")]
    pub generator: GeneratorKind,
    /// Where a generator that is a server listens: `host:port` or an URL; empty: on the
    /// sending host, at its usual port. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generator_server: String,
    /// More arguments of the generator's command line, as they are. The default adds
    /// nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generator_options: Vec<String>,
}

impl TrafficSettings {
    /// The stream of packets that is sent.
    pub fn stream(&self) -> Stream {
        Stream::new(self.family, self.frame_size, self.flows)
    }
}
