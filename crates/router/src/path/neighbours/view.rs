//! Known neighbours of a running router.

use super::entry::{Entry, NEVER};
use super::{Gateway, Neighbours};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A neighbour and its MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownNeighbour {
    /// Its address and port.
    pub gateway: Gateway,
    /// Its MAC, if known.
    pub mac: Option<[u8; 6]>,
    /// Certainty of the MAC.
    pub reachability: Reachability,
    /// Time of its last answer in nanoseconds; `None` if there was none.
    pub answered_ns: Option<u64>,
}

/// Certainty of a neighbour's MAC (RFC 4861 section 7.3.2), the least certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reachability {
    /// No MAC is known, and none was requested.
    Unknown,
    /// No MAC is known, and one was requested.
    Incomplete,
    /// The neighbour has not answered for some time.
    Stale,
    /// In use since it became stale: about to be queried.
    Delay,
    /// Queried, without an answer so far.
    Probe,
    /// The neighbour has answered recently.
    Reachable,
    /// The MAC is configured.
    Static,
}

impl Neighbours {
    /// All neighbours, by port and address.
    pub fn list(&self, now_ns: u64) -> Vec<KnownNeighbour> {
        let mut all: BTreeMap<_, KnownNeighbour> = BTreeMap::new();
        let hosts = self.hosts.iter().flat_map(|hosts| hosts.all());
        for entry in self.listed().cloned().chain(hosts) {
            let Some(known) = entry.view(now_ns) else { continue };
            let Gateway { port, address } = known.gateway;
            let listed = all.entry((port, address)).or_insert(known);
            if listed.reachability < known.reachability {
                *listed = known;
            }
        }
        all.into_values().collect()
    }

    /// Forgets the MAC of one neighbour, unless it is static. Returns false if none is known.
    pub fn forget_one(&self, gateway: &Gateway) -> bool {
        let host = self.hosts.as_ref().and_then(|hosts| hosts.get(gateway));
        let entries = self.of_gateway(gateway).cloned().chain(host);
        let forget = |entry: Arc<Entry>| entry.learnt.swap(0, Ordering::AcqRel) != 0;
        let was_known = entries.map(forget).fold(false, |any, known| any | known);
        self.change();
        was_known
    }
}

impl Entry {
    fn view(&self, now_ns: u64) -> Option<KnownNeighbour> {
        let load = |time: &std::sync::atomic::AtomicU64| time.load(Ordering::Relaxed);
        let is_fixed = self.neighbour.is_some();
        let mac = self.neighbour.map(|neighbour| neighbour.mac).or_else(|| self.mac());
        let reachability = match mac {
            _ if is_fixed => Reachability::Static,
            None if load(&self.requested_ns) == NEVER => Reachability::Unknown,
            None => Reachability::Incomplete,
            Some(_) if now_ns < self.stale_ns() => Reachability::Reachable,
            Some(_) if load(&self.used_ns) < self.stale_ns() => Reachability::Stale,
            Some(_) if load(&self.unanswered) > 0 => Reachability::Probe,
            Some(_) => Reachability::Delay,
        };
        let answered_ns = Some(load(&self.answered_ns)).filter(|&time| time > 0 && !is_fixed);
        Some(KnownNeighbour { gateway: self.gateway?, mac, reachability, answered_ns })
    }
}
