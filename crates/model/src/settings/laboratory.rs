//! What can be chosen of the DUT of a laboratory (`testbed.kind = "ssh"`), and of its
//! traffic generator.

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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

named! {
    /// Which program makes a DUT's firewall.
    pub enum FirewallProgram default Auto {
        /// nft on Linux, pf on FreeBSD.
        Auto = "auto",
        /// Linux: nft(8).
        Nft = "nft",
        /// Linux: iptables(8) and ip6tables(8).
        Iptables = "iptables",
        /// FreeBSD: ipfw(8).
        Ipfw = "ipfw",
        /// FreeBSD: pf(4), by pfctl(8).
        Pf = "pf",
        /// FreeBSD: ipfilter(4), by ipf(8).
        Ipf = "ipf",
    }
}

named! {
    /// When a DUT is rebooted.
    pub enum Reboot default Needed {
        /// Before a run whose variant needs it.
        Needed = "needed",
        /// Before every run: each starts from the same state.
        Always = "always",
        /// Not at all: what needs one is refused.
        Never = "never",
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

impl fmt::Display for Overlay {
    /// As an experiment file writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.directory)
    }
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

named! {
    /// What makes and counts the traffic.
    pub enum GeneratorKind default Fwdlab {
        /// fwdlab's own senders and receiver.
        Fwdlab = "fwdlab",
        /// netmap's pkt-gen.
        PktGen = "pkt-gen",
        /// The Linux kernel's pktgen; fwdlab receives.
        Pktgen = "pktgen",
        /// A TRex server (stateless mode).
        Trex = "trex",
        /// DPDK's testpmd.
        Testpmd = "testpmd",
        /// A server of the Open Traffic Generator API.
        Otg = "otg",
    }
}

impl GeneratorKind {
    /// False for one that keeps no rate by itself: on a device of its own it can only send as fast
    /// as possible.
    pub fn keeps_rate(self) -> bool {
        self != GeneratorKind::Testpmd
    }

    /// True for the default, which adds nothing to a plan's hash.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
