//! What can be chosen of the DUT of a laboratory (`testbed.kind = "ssh"`), and of its
//! traffic generator.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A laboratory's part of `[dut]`. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteSettings {
    /// Which program makes the firewall.
    pub firewall_program: FirewallProgram,
    /// FreeBSD: lines of loader.conf(5) by name.
    pub loader: BTreeMap<String, String>,
    /// FreeBSD: lines of rc.conf(5) by name.
    pub rc: BTreeMap<String, String>,
    /// FreeBSD: `kern.random.harvest.mask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_mask: Option<u32>,
    /// Bind the interrupts of queue n of the DUT's interfaces to a CPU of its own.
    pub bind_interrupts: bool,
    /// Directory of files that are laid over the DUT's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Overlay>,
    /// What is installed before anything is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// When the DUT is rebooted.
    pub reboot: Reboot,
}

impl RemoteSettings {
    /// True when nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Which program makes a DUT's firewall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirewallProgram {
    /// nft on Linux, pf on FreeBSD.
    #[default]
    Auto,
    /// Linux: nft(8).
    Nft,
    /// Linux: iptables(8) and ip6tables(8).
    Iptables,
    /// FreeBSD: ipfw(8).
    Ipfw,
    /// FreeBSD: pf(4), by pfctl(8).
    Pf,
    /// FreeBSD: ipfilter(4), by ipf(8).
    Ipf,
}

impl FirewallProgram {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            FirewallProgram::Auto => "auto",
            FirewallProgram::Nft => "nft",
            FirewallProgram::Iptables => "iptables",
            FirewallProgram::Ipfw => "ipfw",
            FirewallProgram::Pf => "pf",
            FirewallProgram::Ipf => "ipf",
        }
    }
}

/// When a DUT is rebooted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reboot {
    /// Before a run whose variant needs it.
    #[default]
    Needed,
    /// Before every run: each starts from the same state.
    Always,
    /// Not at all: what needs one is refused.
    Never,
}

impl Reboot {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Reboot::Needed => "needed",
            Reboot::Always => "always",
            Reboot::Never => "never",
        }
    }
}

/// Files that are laid over a DUT's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Directory as written in the experiment.
    pub directory: String,
    /// Text of each file by its path from the DUT's root without the leading slash,
    /// `etc/rc.conf` (so that the plan's hash covers it).
    pub files: BTreeMap<String, String>,
}

/// A revision of the DUT's software: how it gets there, and how one sees that it runs.
/// Commands are words as a shell would divide them; nothing is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revision {
    /// Commands on the DUT, in their order; the DUT is rebooted after them.
    pub install: Vec<String>,
    /// File of this machine that is fed to `upgrade` on the DUT, before `install`. One that
    /// ends with `.xz`, `.gz` or `.zst` is unpacked on the way.
    pub image: Option<String>,
    /// Command on the DUT that reads the image from its standard input.
    pub upgrade: String,
    /// Command whose output names the revision that runs.
    pub verify: String,
    /// Text that this output must contain; empty: what is printed is recorded only.
    pub expect: String,
}

/// What makes and counts the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GeneratorKind {
    /// fwdlab's own senders and receiver.
    #[default]
    #[serde(rename = "fwdlab")]
    Fwdlab,
    /// netmap's pkt-gen.
    #[serde(rename = "pkt-gen")]
    PktGen,
    /// The Linux kernel's pktgen; fwdlab receives.
    #[serde(rename = "pktgen")]
    Pktgen,
    /// A TRex server (stateless mode).
    #[serde(rename = "trex")]
    Trex,
    /// DPDK's testpmd.
    #[serde(rename = "testpmd")]
    Testpmd,
    /// A server of the Open Traffic Generator API.
    #[serde(rename = "otg")]
    Otg,
}

impl GeneratorKind {
    /// All of them.
    pub const ALL: [GeneratorKind; 6] = [
        GeneratorKind::Fwdlab,
        GeneratorKind::PktGen,
        GeneratorKind::Pktgen,
        GeneratorKind::Trex,
        GeneratorKind::Testpmd,
        GeneratorKind::Otg,
    ];

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            GeneratorKind::Fwdlab => "fwdlab",
            GeneratorKind::PktGen => "pkt-gen",
            GeneratorKind::Pktgen => "pktgen",
            GeneratorKind::Trex => "trex",
            GeneratorKind::Testpmd => "testpmd",
            GeneratorKind::Otg => "otg",
        }
    }

    /// False for one that can only send as fast as possible.
    pub fn keeps_rate(self) -> bool {
        self != GeneratorKind::Testpmd
    }

    /// True for the default, which adds nothing to a plan's hash.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
