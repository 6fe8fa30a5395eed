//! A DUT that is any program (`dut.kind = "command"`).

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a program that forwards is started, asked and ended. Commands are lists of
/// arguments. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandSettings {
    /// Starts it: the program itself, or what leaves it in the background.
    pub start: Vec<String>,
    /// Succeeds as soon as it forwards; empty: as soon as packets come through.
    pub ready: Vec<String>,
    /// Ends it; empty: by a signal.
    pub stop: Vec<String>,
    /// Prints what it has counted; empty: it doesn't tell.
    pub statistics: Vec<String>,
    /// What is read from that: a counter's name, and a regular expression with one group or
    /// a JSON pointer (RFC 6901).
    pub counters: BTreeMap<String, String>,
    /// What it changes of packets.
    pub rewrites: Rewrites,
}

impl CommandSettings {
    /// True when nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// What a device that forwards changes of a packet.
    pub enum Rewrites default Route {
        /// MAC addresses and TTL or hop limit, as a router (RFC 1812).
        Route = "route",
        /// MAC addresses only.
        Mac = "mac",
        /// Nothing, as a bridge.
        None = "none",
    }
}

/// Placeholders of the commands, with what takes their place.
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
    /// What the device changes of a packet.
    pub fn rewrites(&self) -> Rewrites {
        match self.kind {
            super::DutKind::Command => self.command.rewrites,
            _ => Rewrites::Route,
        }
    }

    /// What the program that forwards is missing, and what to write.
    pub(super) fn lacks_program(&self) -> Option<(&'static str, &'static str)> {
        (self.kind == super::DutKind::Command && self.command.start.is_empty()).then_some((
            "nothing says how the program that forwards is started",
            "write start = [\"PROGRAM\", \"ARGUMENT\"] beside it",
        ))
    }
}
