//! Settings of a laboratory's DUT (`testbed.kind = "ssh"`), and of its traffic generator.

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A laboratory's part of `[dut]`. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteSettings {
    /// Firewall program.
    pub firewall_program: FirewallProgram,
    /// FreeBSD: lines of loader.conf(5) by name.
    pub loader: BTreeMap<String, String>,
    /// FreeBSD: lines of rc.conf(5) by name.
    pub rc: BTreeMap<String, String>,
    /// FreeBSD: `kern.random.harvest.mask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_mask: Option<u32>,
    /// Bind the interrupts of queue n of the DUT's interfaces to a separate CPU.
    pub bind_interrupts: bool,
    /// Directory of files that replace the DUT's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Overlay>,
    /// Revision that is installed before measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Reboots of the DUT.
    pub reboot: Reboot,
}

impl RemoteSettings {
    /// True if nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// Firewall program of a DUT.
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
    /// Reboots of a DUT.
    pub enum Reboot default Needed {
        /// Before a run whose variant requires it.
        Needed = "needed",
        /// Before every run: each starts from the same state.
        Always = "always",
        /// Never: settings that require a reboot are refused.
        Never = "never",
    }
}

/// Files that replace a DUT's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Directory as in the experiment.
    pub directory: String,
    /// Text of each file by its path from the DUT's root without the leading slash, `etc/rc.conf`
    /// (so the plan's hash covers it).
    pub files: BTreeMap<String, String>,
}

impl fmt::Display for Overlay {
    /// Writes the notation of experiment files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.directory)
    }
}

/// A revision of the DUT's software: its installation and its verification. Commands are words
/// divided as by a shell; nothing is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revision {
    /// Commands on the DUT, in order; the DUT is rebooted after them.
    pub install: Vec<String>,
    /// File on this machine that is piped to `upgrade` on the DUT, before `install`. `.xz`, `.gz`
    /// and `.zst` files are decompressed in transit.
    pub image: Option<String>,
    /// Command on the DUT that reads the image from its standard input.
    pub upgrade: String,
    /// Command whose output identifies the running revision.
    pub verify: String,
    /// Text that this output must contain; empty to record the output only.
    pub expect: String,
}

named! {
    /// Generator and counter of the traffic.
    pub enum GeneratorKind default Fwdlab {
        /// fwdlab's own senders and receiver.
        Fwdlab = "fwdlab",
        /// netmap's pkt-gen.
        PktGen = "pkt-gen",
        /// The Linux kernel's pktgen, with fwdlab as receiver.
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
    /// False for a generator that cannot pace by itself: on a dedicated device it can only send at
    /// the maximum rate.
    pub fn keeps_rate(self) -> bool {
        self != GeneratorKind::Testpmd
    }

    /// True for the default, which adds nothing to a plan's hash.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
