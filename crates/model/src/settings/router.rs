//! What can be chosen of fwdlab's own software router (`dut.kind = "router"`).
//! Routes, firewall and queues are settings of every device and not here.

use fwdlab_packet::forwarding::{FibAlgorithm, ForwardingPath, Locking, StateTable};
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most states that the router's table may be asked to hold.
pub const STATES_MAX: u32 = 16_777_216;

/// The router's part of `[dut]`. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterSettings {
    /// How the longest matching prefix is found.
    pub fib: FibAlgorithm,
    /// What workers hold while they look a route up.
    pub locking: Locking,
    /// Which way through the code a packet takes.
    pub path: ForwardingPath,
    /// Where the stateful firewall keeps its states.
    pub state: StateTable,
    /// Most states held at a time, 1 to [`STATES_MAX`].
    pub state_limit: u32,
    /// Feed every packet to a pool of entropy that all workers share.
    pub entropy_harvest: bool,
    /// What the router receives from and sends to.
    pub port: RouterPort,
    /// Routes from a file in place of synthesised ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes_file: Option<RoutesFile>,
}

impl RouterSettings {
    /// True when nothing differs from the defaults.
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
    /// What the router receives from and sends to on the `netns` testbed; the
    /// `memory` testbed has rings in memory only.
    pub enum RouterPort {
        /// The fastest one whose probe succeeds.
        Auto = "auto",
        /// AF_XDP sockets.
        Xsk = "xsk",
        /// AF_PACKET sockets.
        Packet = "packet",
    }
}

/// A file of routes. Only what identifies it goes into a plan: a dump of the
/// Internet's routes is far too big to be copied into every store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesFile {
    /// File name as written in the experiment.
    pub file: String,
    /// Digest of its content, so that the plan's hash covers it.
    pub digest: String,
}

impl fmt::Display for RoutesFile {
    /// As an experiment file writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)
    }
}
