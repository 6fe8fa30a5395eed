//! A DUT that is any forwarding program (`dut.kind = "command"`).

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Commands to start, query and stop a forwarding program, as lists of arguments. All defaults add
/// nothing to a plan's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandSettings {
    /// Starts it: the program itself, or a command that leaves it in the background.
    pub start: Vec<String>,
    /// Succeeds once it forwards; empty to wait until packets come through.
    pub ready: Vec<String>,
    /// Stops it; empty for a signal.
    pub stop: Vec<String>,
    /// Prints its counters; empty if it has none.
    pub statistics: Vec<String>,
    /// Counters in that output: name, and a regular expression with one group or a JSON pointer
    /// (RFC 6901).
    pub counters: BTreeMap<String, String>,
    /// Changes that it makes to packets.
    pub rewrites: Rewrites,
}

impl CommandSettings {
    /// True if nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// Changes that a forwarding device makes to a packet.
    pub enum Rewrites default Route {
        /// MAC addresses and TTL or hop limit, as a router (RFC 1812).
        Route = "route",
        /// MAC addresses only.
        Mac = "mac",
        /// Nothing, as a bridge.
        None = "none",
    }
}

/// Placeholders of the commands, with descriptions of their values.
pub const PLACEHOLDERS: [(&str, &str); 9] = [
    ("{ingress}", "the DUT's interface towards the sender"),
    ("{egress}", "its interface towards the receiver"),
    ("{ingress_mac}", "the MAC address of that towards the sender"),
    ("{egress_mac}", "the MAC address of that towards the receiver"),
    ("{sender_mac}", "the sender's MAC address"),
    ("{receiver_mac}", "the receiver's MAC address"),
    ("{cpus}", "CPUs of the DUT, as in `1,2`"),
    ("{queues}", "`queues` of the variant"),
    ("{run}", "a name that no other run on that machine has"),
];

impl super::DutSettings {
    /// Returns the changes that the device makes to a packet.
    pub fn rewrites(&self) -> Rewrites {
        match self.kind {
            super::DutKind::Command => self.command.rewrites,
            _ => Rewrites::Route,
        }
    }

    /// Returns the missing part of a forwarding program, and the remedy.
    pub(super) fn lacks_program(&self) -> Option<(&'static str, &'static str)> {
        (self.kind == super::DutKind::Command && self.command.start.is_empty()).then_some((
            "nothing says how the program that forwards is started",
            "write start = [\"PROGRAM\", \"ARGUMENT\"] beside it",
        ))
    }
}
