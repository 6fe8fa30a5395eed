//! What can be chosen of fwdlab's own software router (`dut.kind = "router"`).
//! Routes, firewall and queues are settings of every device and not here.

use serde::{Deserialize, Serialize};

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

/// How the router finds the longest prefix that matches an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FibAlgorithm {
    /// The router's own choice by family and number of routes.
    #[serde(rename = "auto")]
    Auto,
    /// Binary radix trie, as BSD kernels have had it since 4.3BSD-Reno.
    #[serde(rename = "radix")]
    Radix,
    /// The same trie as a copy in one piece that is read without a lock.
    #[serde(rename = "radix_lockless")]
    RadixLockless,
    /// Binary search over the sorted borders of address ranges.
    #[serde(rename = "bsearch")]
    BSearch,
    /// DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998) for inet; a multi-bit
    /// trie for inet6.
    #[serde(rename = "dir24_8")]
    Dir24_8,
    /// Poptrie (Asai and Ohara, SIGCOMM 2015).
    #[serde(rename = "poptrie")]
    Poptrie,
}

impl FibAlgorithm {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            FibAlgorithm::Auto => "auto",
            FibAlgorithm::Radix => "radix",
            FibAlgorithm::RadixLockless => "radix_lockless",
            FibAlgorithm::BSearch => "bsearch",
            FibAlgorithm::Dir24_8 => "dir24_8",
            FibAlgorithm::Poptrie => "poptrie",
        }
    }
}

/// What the router's workers hold while they look a route up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locking {
    /// One mutex for all workers.
    Global,
    /// One readers-writer lock: readers share it, but all write its counter.
    Rwlock,
    /// Nothing: the table is replaced as a whole.
    Lockless,
}

impl Locking {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Locking::Global => "global",
            Locking::Rwlock => "rwlock",
            Locking::Lockless => "lockless",
        }
    }
}

/// Which way through the router's code a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardingPath {
    /// Every packet through every step of the input path.
    Full,
    /// Packets that need nothing special are forwarded early; the others take
    /// the full path.
    Fast,
}

impl ForwardingPath {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            ForwardingPath::Full => "full",
            ForwardingPath::Fast => "fast",
        }
    }
}

/// Where the router's stateful firewall keeps its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateTable {
    /// Nowhere: every packet is judged by the rules.
    None,
    /// One table behind one lock.
    Global,
    /// One table in many parts, each behind a lock of its own.
    Sharded,
    /// One table for each worker, without locks.
    PerWorker,
}

impl StateTable {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            StateTable::None => "none",
            StateTable::Global => "global",
            StateTable::Sharded => "sharded",
            StateTable::PerWorker => "per_worker",
        }
    }
}

/// What the router receives from and sends to on the `netns` testbed; the
/// `memory` testbed has rings in memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouterPort {
    /// The fastest one whose probe succeeds.
    Auto,
    /// AF_XDP sockets.
    Xsk,
    /// AF_PACKET sockets.
    Packet,
}

impl RouterPort {
    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            RouterPort::Auto => "auto",
            RouterPort::Xsk => "xsk",
            RouterPort::Packet => "packet",
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of files and of the serialised plan are the same ones.
    #[test]
    fn names_are_what_serde_writes() {
        use {FibAlgorithm as F, ForwardingPath as P, Locking as L, RouterPort as R};
        let json = |value: serde_json::Value| value.as_str().unwrap().to_owned();
        for v in [F::Auto, F::Radix, F::RadixLockless, F::BSearch, F::Dir24_8, F::Poptrie] {
            assert_eq!(json(serde_json::to_value(v).unwrap()), v.name());
        }
        for v in [L::Global, L::Rwlock, L::Lockless] {
            assert_eq!(json(serde_json::to_value(v).unwrap()), v.name());
        }
        for v in [P::Full, P::Fast] {
            assert_eq!(json(serde_json::to_value(v).unwrap()), v.name());
        }
        for v in [StateTable::None, StateTable::Global, StateTable::Sharded, StateTable::PerWorker]
        {
            assert_eq!(json(serde_json::to_value(v).unwrap()), v.name());
        }
        for v in [R::Auto, R::Xsk, R::Packet] {
            assert_eq!(json(serde_json::to_value(v).unwrap()), v.name());
        }
    }
}
