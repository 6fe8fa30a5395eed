//! Settings of fwdlab's own software router (`dut.kind = "router"`). Routes, firewall and queues
//! are settings of every device.

use fwdlab_packet::forwarding::{FibAlgorithm, ForwardingPath, Locking, StateTable};
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest permitted number of states in the router's table.
pub const STATES_MAX: u32 = 16_777_216;

/// The router's part of `[dut]`. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterSettings {
    /// Algorithm of the longest-prefix match.
    pub fib: FibAlgorithm,
    /// Lock that workers hold during a route lookup.
    pub locking: Locking,
    /// Code path of packets.
    pub path: ForwardingPath,
    /// Storage of the stateful firewall's states.
    pub state: StateTable,
    /// Maximum number of states, 1 to [`STATES_MAX`].
    pub state_limit: u32,
    /// Feed every packet to an entropy pool that all workers share.
    pub entropy_harvest: bool,
    /// Sockets that the router receives from and sends to.
    pub port: RouterPort,
    /// Routes from a file in place of synthesised ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes_file: Option<RoutesFile>,
}

impl RouterSettings {
    /// True if nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            fib: FibAlgorithm::Auto,
            locking: Locking::Lockless,
            path: ForwardingPath::Fast,
            state: StateTable::Sharded,
            state_limit: 2_097_152,
            entropy_harvest: false,
            port: RouterPort::Auto,
            routes_file: None,
        }
    }
}

named! {
    /// Sockets of the router on the `netns` testbed; the `memory` testbed only has rings in memory.
    pub enum RouterPort {
        /// The fastest one whose probe succeeds.
        Auto = "auto",
        /// AF_XDP sockets.
        Xsk = "xsk",
        /// AF_PACKET sockets.
        Packet = "packet",
    }
}

/// A file of routes. A plan only contains its identification: a dump of the Internet's routes is
/// far too big to be copied into every store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesFile {
    /// File name as in the experiment.
    pub file: String,
    /// Digest of its content, so the plan's hash covers it.
    pub digest: String,
}

impl fmt::Display for RoutesFile {
    /// Writes the notation of experiment files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)
    }
}
