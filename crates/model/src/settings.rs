//! Complete settings of one variant, as a testbed needs them.
//!
//! The base comes from `[testbed]`, `[dut]`, `[traffic]`; a factor's level overrides it. A value
//! with a default is never optional here.

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
use std::net::IpAddr;

/// All settings of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Environment of the packets.
    pub testbed: TestbedSettings,
    /// The device that forwards them.
    pub dut: DutSettings,
    /// The sent traffic.
    pub traffic: TrafficSettings,
}

impl Settings {
    /// True for a paced rate, false for the maximum rate.
    pub fn is_paced(&self) -> bool {
        self.traffic.rate != Rate::Max
    }
}

impl Default for Settings {
    /// Default settings. The tables of keys document the same values, and a test compares them.
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
                nat_address: None,
                nat_port: None,
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
        /// fwdlab's own router between a generator and a sink that share memory with it: packets,
        /// but no forwarding by a kernel, and no privileges.
        Memory = "memory",
        /// Hosts of a laboratory, reached over ssh.
        Ssh = "ssh",
        /// A QEMU guest on this machine.
        Vm = "vm",
        /// A simulated device of known capacity.
        Sim = "sim",
        /// Imported logs of another laboratory.
        Archive = "archive",
    }
}

named! {
    /// Distribution of the machine's CPUs among sender, DUT and receiver.
    pub enum Arrangement {
        /// Sender on dedicated CPUs, DUT and receiver on others, as in a rack: a DUT that is slower
        /// than the sender drops packets.
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
    /// File that describes the laboratory, as in the experiment (`ssh` only). Its content is not
    /// part of a plan: one plan runs in any laboratory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<String>,
    /// QEMU guest (`vm` only). The defaults add nothing to a plan's hash.
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
    /// Stateless filter: a forward hook that accepts, with `rules` non-matching rules before
    /// (default 1).
    Stateless,
    /// Connection tracking: established accepted, new accepted by rule.
    Stateful,
    /// Forward hook with this many rules that do not match, then accept
    /// (`"rules:100"`; `"rules:0"` is an empty hook).
    Rules(u32),
    /// Text of a ruleset file, in the format of `nft -f`.
    Ruleset {
        /// File name as in the experiment.
        file: String,
        /// Text of the file (so the plan's hash covers it).
        text: String,
    },
}

impl Firewall {
    /// True if it may keep connection states, as a user's own ruleset may.
    pub fn may_keep_states(&self) -> bool {
        matches!(self, Firewall::Stateful | Firewall::Ruleset { .. })
    }
}

impl fmt::Display for Firewall {
    /// Writes the notation of experiment files.
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
    /// Scheduling of the DUT's receive work.
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
    /// Addresses that the DUT translates. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Nat::is_default")]
    pub nat: Nat,
    /// First address that packets are sent to if the DUT translates destinations; further ones
    /// count up. `None` for the DUT's address on the sender's side. The default adds nothing to a
    /// plan's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat_address: Option<IpAddr>,
    /// UDP port that packets are sent to if the DUT translates destinations. `None` for the port
    /// that they arrive at. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat_port: Option<u16>,
    /// True if ICMP redirects are permitted.
    pub icmp_redirect: bool,
    /// True if generic receive and segmentation offloads are permitted.
    pub offloads: bool,
    /// Receive and transmit queue pairs of each DUT interface.
    pub queues: u16,
    /// Bind each transmit queue to the CPU of the same number (XPS).
    pub bind_queues: bool,
    /// NAPI placement.
    pub napi: Napi,
    /// Receive packet steering: hexadecimal CPU mask, empty for off.
    pub rps: String,
    /// Sysctls, by dotted name.
    pub sysctl: BTreeMap<String, String>,
    /// Settings of fwdlab's own router. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "RouterSettings::is_default")]
    pub router: RouterSettings,
    /// Settings of a laboratory's DUT. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "RemoteSettings::is_default")]
    pub remote: RemoteSettings,
    /// Settings of a program that is started by commands. The defaults add nothing to a plan's
    /// hash.
    #[serde(default, skip_serializing_if = "CommandSettings::is_default")]
    pub command: CommandSettings,
    /// The user's commands around each run. The defaults add nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Hooks::is_default")]
    pub hooks: Hooks,
}

/// Intended load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "value")]
pub enum Rate {
    /// The sender's maximum rate.
    Max,
    /// Packets per second.
    Pps(f64),
    /// Share of the calibrated ceiling, 0 to 1.
    Ceiling(f64),
    /// L2 bits per second (frame with FCS).
    Bps(f64),
}

impl fmt::Display for Rate {
    /// Writes the notation of experiment files, with the prefix that gives the shortest number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match *self {
            Rate::Max => return f.write_str("max"),
            // Rounded, because 0.07 times 100 is not 7 in binary.
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
    /// Directions of the packets (RFC 2544, section 14).
    pub enum Directions default One {
        /// From the sender to the receiver.
        One = "one",
        /// Both simultaneously, each at the intended load: every flow is answered.
        Both = "both",
    }
}

impl Directions {
    /// Returns the number of directions.
    pub fn count(self) -> u32 {
        self.ways().len() as u32
    }

    /// Returns the source and destination side of each direction.
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
    /// Packets that a receiver in the kernel checks beyond their stamp.
    pub enum Checks default Auto {
        /// A sample at rates at which checking all packets would reduce the receiver's own rate;
        /// all packets at lower rates.
        Auto = "auto",
        /// All packets.
        All = "all",
        /// The first packets of a run, and a sample of the later ones.
        Sample = "sample",
    }
}

/// Maximum rate in packets per second at which every packet is checked by default: a quarter of the
/// rate of a receiver that checks all packets on a slow CPU (docs/PERFORMANCE.md).
const CHECKED_PPS: f64 = 1e6;

impl Checks {
    /// True if not every packet is checked at this rate; `None` is the maximum rate.
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
    /// Frame size with FCS. The smallest frame of inet6 with room for the stamp is 84 bytes; a
    /// smaller request is raised, with a note.
    pub frame_size: FrameSize,
    /// Flows.
    pub flows: Flows,
    /// Intended load.
    pub rate: Rate,
    /// Write the sending time into every packet.
    pub timestamps: bool,
    /// Directions of the packets. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Directions::is_default")]
    pub directions: Directions,
    /// Packets that the receiver checks. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "Checks::is_default")]
    pub checks: Checks,
    /// Generator and counter of the traffic. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "GeneratorKind::is_default")]
    pub generator: GeneratorKind,
    /// Address of a generator that is a server: `host:port` or a URL; empty for the sending host
    /// with the usual port. The default adds nothing to a plan's hash.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub generator_server: String,
    /// Additional options of the generator, passed unchanged. The default adds nothing to a plan's
    /// hash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generator_options: Vec<String>,
}

impl TrafficSettings {
    /// The stream of packets that is sent.
    pub fn stream(&self) -> Stream {
        Stream::new(self.family, self.frame_size, self.flows)
    }
}
