//! Next hops on the link: entries of ARP and neighbour discovery, static or learnt.
//!
//! If only the IP address of a next hop is known, its MAC is requested when packets are to be sent
//! there. Learnt MACs are in entries that all workers share and read without a lock; each worker
//! has its own forwarding table, rebuilt when an entry is learnt or expires. Packets wait until the
//! answer arrives (`arp_queue.rs`).
//!
//! A next hop may also represent all hosts of a link, each of which is resolved by its own address
//! (`neighbours/hosts.rs`), several next hops over which flows are spread, or a route that ends
//! here, such as a blackhole.
//!
//! Learnt MACs are confirmed while they are in use (`neighbours/entry.rs`), checked when frames come
//! in; unused ones are forgotten after twenty minutes. Static entries never age.

mod down;
mod dynamic;
mod entry;
mod hosts;
mod link;
mod special;
mod view;

use super::interface::Interface;
use crate::fib::NextHop;
use down::DownPorts;
use dynamic::DynamicNextHops;
pub(super) use entry::{ASK_NS, Entry};
use entry::{LEARNT, REACHABLE_NS, Step};
use hosts::Hosts;
pub(super) use link::{Link, Manner};
pub(super) use special::Hop;
pub use special::Special;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub use view::{KnownNeighbour, Reachability};

/// Link-layer destination of a next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Port through which it is reached.
    pub port: u8,
    /// MAC of the neighbour.
    pub mac: [u8; 6],
}

/// IP address of a next hop: a router on a link, or a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    /// Port through which it is reached.
    pub port: u8,
    /// Address of the gateway. IPv6 routers are identified by link-local addresses.
    pub address: IpAddr,
}

/// Neighbours by the number of the next hop. Clones share their entries, and so everything learnt.
/// Add all neighbours before creating routers, except those added later with [`Neighbours::grow`].
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    entries: Vec<Option<Arc<Entry>>>,
    /// Number of the entries that are never removed.
    own: usize,
    /// Numbers of the next hops with an address, by address.
    gateways: HashMap<Gateway, Vec<NextHop>>,
    hosts: Option<Arc<Hosts>>,
    /// Version: number of entries learnt or expired so far.
    changes: Arc<AtomicU64>,
    /// Time of the latest periodic check of any worker.
    clock_ns: Arc<AtomicU64>,
    /// Next hops added after cloning.
    grown: Option<DynamicNextHops>,
    /// Ports without a carrier.
    down: Arc<DownPorts>,
}

/// The highest next hop number that can have a neighbour.
const NUMBER_MAX: u32 = (1 << 20) - 1;

/// Results of a periodic check.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Aged {
    /// Neighbours to query, each at its MAC.
    pub(super) requests: Vec<(Gateway, [u8; 6])>,
    /// True if links must be renewed, so that the next use of a stale MAC is noticed.
    pub(super) is_newly_stale: bool,
}

/// The number of a next hop exceeds the size of a table of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("next hop number {0}: neighbours have numbers up to {NUMBER_MAX}")]
pub struct NumberTooHigh(pub u32);

impl Neighbours {
    /// No neighbours.
    pub fn new() -> Neighbours {
        Neighbours::default()
    }

    /// Sets the neighbour of a next hop.
    pub fn set(&mut self, next_hop: NextHop, neighbour: Neighbour) -> Result<(), NumberTooHigh> {
        let gateway = self.gateway(next_hop).copied();
        self.put(next_hop, Entry::new(Some(neighbour), gateway))
    }

    /// Sets the address of a next hop. Without [`Neighbours::set`] its MAC is requested and learnt.
    /// Redirects name this address; for a next hop without one, which represents the hosts of its
    /// link, they name the destination itself.
    pub fn set_gateway(
        &mut self,
        next_hop: NextHop,
        gateway: Gateway,
    ) -> Result<(), NumberTooHigh> {
        let neighbour = self.get(next_hop).copied();
        self.put(next_hop, Entry::new(neighbour, Some(gateway)))
    }

    /// Sets the MAC of a host of a link ([`Special::Link`]), which is then never requested.
    pub fn set_host(&mut self, host: Gateway, mac: [u8; 6]) {
        self.hosts.get_or_insert_default().set(host, mac);
    }

    /// Sets the special meaning of a next hop that is not a neighbour itself.
    pub fn set_special(
        &mut self,
        next_hop: NextHop,
        special: Special,
    ) -> Result<(), NumberTooHigh> {
        if matches!(special, Special::Link(_)) {
            self.hosts.get_or_insert_default();
        }
        let special = Some(special);
        self.put(next_hop, Entry { special, ..Entry::new(None, None) })
    }

    fn put(&mut self, next_hop: NextHop, entry: Entry) -> Result<(), NumberTooHigh> {
        self.put_shared(next_hop, Arc::new(entry))
    }

    fn put_shared(&mut self, next_hop: NextHop, entry: Arc<Entry>) -> Result<(), NumberTooHigh> {
        if next_hop.number() > NUMBER_MAX {
            return Err(NumberTooHigh(next_hop.number()));
        }
        let at = next_hop.number() as usize;
        if at >= self.entries.len() {
            self.entries.resize(at + 1, None);
        }
        self.unlist(next_hop);
        if let Some(gateway) = entry.gateway {
            self.gateways.entry(gateway).or_default().push(next_hop);
        }
        self.entries[at] = Some(entry);
        Ok(())
    }

    /// Removes a next hop from the list of those with an address.
    fn unlist(&mut self, next_hop: NextHop) {
        let Some(&gateway) = self.gateway(next_hop) else { return };
        if let Some(numbers) = self.gateways.get_mut(&gateway) {
            numbers.retain(|&number| number != next_hop);
            if numbers.is_empty() {
                self.gateways.remove(&gateway);
            }
        }
    }

    /// Next hops with an address.
    fn numbers(&self) -> impl Iterator<Item = NextHop> {
        self.gateways.values().flatten().copied()
    }

    /// Entries of the next hops with an address.
    fn listed(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.numbers().filter_map(|number| self.entry(number))
    }

    /// Entries of the next hops with this address.
    fn of_gateway(&self, gateway: &Gateway) -> impl Iterator<Item = &Arc<Entry>> {
        let numbers = self.gateways.get(gateway).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|&number| self.entry(number))
    }

    /// The neighbour set for a next hop.
    #[inline]
    pub fn get(&self, next_hop: NextHop) -> Option<&Neighbour> {
        self.entry(next_hop)?.neighbour.as_ref()
    }

    /// The address set for a next hop.
    pub fn gateway(&self, next_hop: NextHop) -> Option<&Gateway> {
        self.entry(next_hop)?.gateway.as_ref()
    }

    /// The MAC learnt for a next hop.
    pub fn learnt(&self, next_hop: NextHop) -> Option<[u8; 6]> {
        self.entry(next_hop)?.mac()
    }

    /// All static neighbours.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.entries.iter().flatten().filter_map(|entry| entry.neighbour.as_ref())
    }

    /// Ports of neighbours and gateways.
    pub(super) fn ports(&self) -> impl Iterator<Item = u8> {
        let entries = self.entries.iter().flatten();
        entries.flat_map(|entry| {
            let neighbour = entry.neighbour.map(|neighbour| neighbour.port);
            let link = match entry.special {
                Some(Special::Link(port)) => Some(port),
                _ => None,
            };
            neighbour.into_iter().chain(entry.gateway.map(|gateway| gateway.port)).chain(link)
        })
    }

    #[inline]
    pub(super) fn entry(&self, next_hop: NextHop) -> Option<&Arc<Entry>> {
        self.entries.get(next_hop.number() as usize)?.as_ref()
    }

    /// Link of each next hop, at the next hop's index.
    pub(super) fn links(&self, interfaces: &[Interface]) -> Box<[Link]> {
        let now_ns = self.clock_ns();
        let link =
            |entry: &Option<Arc<Entry>>| Some(entry.as_ref()?.watched_link(interfaces, now_ns));
        self.entries.iter().map(|entry| link(entry).unwrap_or(Link::UNKNOWN)).collect()
    }

    /// Updates `links` with learnt entries; stale ones that await their use have no link.
    #[cold]
    pub(super) fn renew(&self, links: &mut [Link], interfaces: &[Interface]) {
        let now_ns = self.clock_ns();
        for next_hop in self.numbers() {
            if let Some(link) = links.get_mut(next_hop.number() as usize)
                && let Some(entry) = self.entry(next_hop)
            {
                *link = entry.watched_link(interfaces, now_ns);
            }
        }
    }

    /// A number that grows whenever an entry is learnt or forgotten.
    #[inline(always)]
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Makes all workers renew their links.
    pub(super) fn change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Time of the latest periodic check, at most a second old while frames come in.
    pub(super) fn clock_ns(&self) -> u64 {
        self.clock_ns.load(Ordering::Relaxed)
    }

    /// True if there are entries to learn.
    pub(super) fn are_asked_for(&self) -> bool {
        !self.gateways.is_empty() || self.hosts.is_some()
    }

    /// Link to a host, if its MAC is known; this counts as its use.
    pub(super) fn host(&self, host: &Gateway, interfaces: &[Interface]) -> Option<Link> {
        let entry = self.hosts.as_ref()?.get(host)?;
        entry.use_at(self.clock_ns());
        Some(entry.link(interfaces)).filter(|link| link.mtu > 0)
    }

    /// Learns a MAC from a message. With `confirms`, the message answers a request: the neighbour is
    /// reachable at this MAC.
    pub(super) fn learn(
        &self,
        gateway: Gateway,
        mac: [u8; 6],
        (manner, confirms): (Manner, bool),
        now_ns: u64,
    ) {
        if mac[0] & 1 != 0 || mac == [0; 6] {
            return;
        }
        let learnt = LEARNT | super::ethernet::number(mac);
        // If next hops may be added later, remember hosts that send requests.
        let begins = self.grown.is_some() && manner == Manner::Begins;
        let host = self.hosts.as_ref().and_then(|hosts| match begins {
            true => hosts.get_or_begin(gateway, now_ns),
            false => hosts.get(&gateway),
        });
        let entries = self.of_gateway(&gateway).cloned().chain(host);
        for entry in entries {
            let before = entry.learnt.load(Ordering::Acquire);
            let applies = match manner {
                Manner::Begins | Manner::Replaces => true,
                Manner::Confirms => before == 0 || before == learnt,
                Manner::Updates => before != 0,
                Manner::Repeats => before == learnt,
            };
            // Without an answer a known MAC is no more certain than before.
            if !applies || before == learnt && !confirms {
                continue;
            }
            let confirmed_ns = if confirms { now_ns } else { now_ns.saturating_sub(REACHABLE_NS) };
            entry.confirmed_ns.store(confirmed_ns, Ordering::Relaxed);
            entry.answered_ns.store(if confirms { now_ns } else { 0 }, Ordering::Relaxed);
            entry.unanswered.store(0, Ordering::Relaxed);
            if before == 0 {
                entry.last_ns.fetch_max(now_ns, Ordering::Relaxed);
            }
            if before != learnt {
                entry.learnt.store(learnt, Ordering::Release);
                self.change();
            }
        }
    }

    /// Checks all entries, at most once per second and worker; `since_ns` is the time of the
    /// worker's previous check. One worker queries each neighbour.
    pub(super) fn age(&self, now_ns: u64, since_ns: u64) -> Aged {
        self.clock_ns.fetch_max(now_ns, Ordering::Relaxed);
        let mut aged = Aged::default();
        let mut check = |entry: &Entry| match entry.step(now_ns, since_ns) {
            Step::Rest => {}
            Step::Watch => aged.is_newly_stale = true,
            Step::Query(mac) => {
                aged.requests.extend(entry.gateway.map(|gateway| (gateway, mac)));
            }
            Step::Forget(learnt) => {
                // Unless another MAC was learnt in the meantime.
                let (exchanged, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                if entry.learnt.compare_exchange(learnt, 0, exchanged, failed).is_ok() {
                    self.change();
                }
            }
        };
        self.listed().for_each(|entry| check(entry));
        self.hosts.iter().for_each(|hosts| hosts.age(now_ns, &mut check));
        aged
    }

    /// Forgets all MACs learnt at a port: its neighbours may have changed.
    pub fn forget(&self, port: u8) {
        self.hosts.iter().for_each(|hosts| hosts.forget(port));
        let of_port =
            |entry: &&Arc<Entry>| entry.gateway.is_some_and(|gateway| gateway.port == port);
        self.listed().filter(of_port).for_each(|entry| entry.learnt.store(0, Ordering::Release));
        self.change();
    }

    /// The gateway from which to request the MAC of a next hop or host, unless a worker requested
    /// it within the last second.
    pub(super) fn to_be_asked(&self, hop: Hop, now_ns: u64) -> Option<Gateway> {
        let entry = match (hop.host, &self.hosts) {
            (Some(host), Some(hosts)) => {
                let (entry, has_evicted) = hosts.get_or_new(host);
                if has_evicted {
                    self.change();
                }
                entry
            }
            _ => self.entry(hop.number).cloned()?,
        };
        let gateway = entry.gateway?;
        if entry.neighbour.is_some() || entry.mac().is_some() {
            return None;
        }
        entry.is_time(now_ns).then_some(gateway)
    }

    /// The next hop itself in place of one with a smaller MTU.
    pub(super) fn without_limit(&self, next_hop: NextHop) -> NextHop {
        match self.entry(next_hop).and_then(|entry| entry.special.as_ref()) {
            Some(&Special::Limited(inner, _)) => inner,
            _ => next_hop,
        }
    }

    /// A counted reference to an entry.
    #[inline]
    pub(super) fn reference(&self, next_hop: NextHop) -> Option<Arc<Entry>> {
        self.entry(next_hop).cloned()
    }
}

#[cfg(test)]
mod tests;
