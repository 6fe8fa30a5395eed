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
//! Learnt entries age (RFC 1122 section 2.3.2.1), checked when frames come in: a MAC that was not
//! confirmed for twenty minutes is requested again, whether it is in use or not; forwarding
//! continues during that time. After three unanswered requests, one per second, the entry expires.
//! This is the same for ARP and neighbour discovery: neighbour unreachability detection (RFC 4861
//! section 7.3) and unicast requests are not implemented. Static entries never age.

mod dynamic;
mod hosts;
mod link;
mod special;

use super::interface::Interface;
use crate::fib::NextHop;
use dynamic::DynamicNextHops;
use hosts::Hosts;
pub(super) use link::{Link, Manner};
pub(super) use special::Hop;
pub use special::Special;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Numbers of the next hops with an address.
    gateways: Vec<NextHop>,
    hosts: Option<Arc<Hosts>>,
    /// Version: number of entries learnt or expired so far.
    changes: Arc<AtomicU64>,
    /// Next hops added after cloning.
    grown: Option<DynamicNextHops>,
}

/// Entry of a next hop.
#[derive(Debug, Default)]
pub(super) struct Entry {
    neighbour: Option<Neighbour>,
    pub(super) gateway: Option<Gateway>,
    pub(super) special: Option<Special>,
    /// A MAC and [`LEARNT`], or 0.
    learnt: AtomicU64,
    /// Time at which the MAC was last confirmed.
    told_ns: AtomicU64,
    /// Time at which it was last requested, or [`NEVER`].
    asked_ns: AtomicU64,
    /// Unanswered requests since it became old.
    unanswered: AtomicU64,
}

/// Set next to a MAC: the entry has one.
const LEARNT: u64 = 1 << 48;
/// No time.
const NEVER: u64 = u64::MAX;
/// Minimum interval of requests for a next hop.
pub(super) const ASK_NS: u64 = 1_000_000_000;
/// Age at which a MAC is requested again: FreeBSD's `net.link.ether.inet.max_age`.
const AGE_NS: u64 = 1200 * 1_000_000_000;
/// Unanswered requests after which an old MAC expires: MAX_UNICAST_SOLICIT of RFC 4861
/// section 10.
const QUESTIONS_MAX: u64 = 3;

/// The highest next hop number that can have a neighbour.
const NUMBER_MAX: u32 = (1 << 20) - 1;

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
        if entry.gateway.is_some() && self.gateway(next_hop).is_none() {
            self.gateways.push(next_hop);
        }
        self.entries[at] = Some(entry);
        Ok(())
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
        let link = |entry: &Option<Arc<Entry>>| Some(entry.as_ref()?.link(interfaces));
        self.entries.iter().map(|entry| link(entry).unwrap_or(Link::UNKNOWN)).collect()
    }

    /// Updates `links` with learnt entries.
    #[cold]
    pub(super) fn renew(&self, links: &mut [Link], interfaces: &[Interface]) {
        for &next_hop in &self.gateways {
            if let Some(link) = links.get_mut(next_hop.number() as usize)
                && let Some(entry) = self.entry(next_hop)
            {
                *link = entry.link(interfaces);
            }
        }
    }

    /// A number that grows whenever an entry is learnt or forgotten.
    #[inline(always)]
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// True if there are entries to learn.
    pub(super) fn are_asked_for(&self) -> bool {
        !self.gateways.is_empty() || self.hosts.is_some()
    }

    /// Link to a host, if its MAC is known.
    pub(super) fn host(&self, host: &Gateway, interfaces: &[Interface]) -> Option<Link> {
        let entry = self.hosts.as_ref()?.get(host)?;
        Some(entry.link(interfaces)).filter(|link| link.mtu > 0)
    }

    /// Learns a MAC, or confirms a known one.
    pub(super) fn learn(&self, gateway: Gateway, mac: [u8; 6], manner: Manner, now_ns: u64) {
        if mac[0] & 1 != 0 || mac == [0; 6] {
            return;
        }
        let learnt = LEARNT | super::ethernet::number(mac);
        let gateways = self.gateways.iter().filter_map(|&next_hop| self.entry(next_hop));
        // If next hops may be added later, remember hosts that send requests.
        let begins = self.grown.is_some() && manner == Manner::Begins;
        let host = self.hosts.as_ref().and_then(|hosts| match begins {
            true => hosts.get_or_begin(gateway, now_ns),
            false => hosts.get(&gateway),
        });
        let entries = gateways.filter(|entry| entry.gateway == Some(gateway)).cloned().chain(host);
        for entry in entries {
            let before = entry.learnt.load(Ordering::Acquire);
            let is_told = match manner {
                Manner::Begins | Manner::Replaces => true,
                Manner::Confirms => before == 0 || before == learnt,
                Manner::Updates => before != 0,
            };
            if !is_told {
                continue;
            }
            entry.told_ns.store(now_ns, Ordering::Relaxed);
            entry.unanswered.store(0, Ordering::Relaxed);
            if before != learnt {
                entry.learnt.store(learnt, Ordering::Release);
                self.changes.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Next hops whose old MAC must be requested again, each at most once per second over all
    /// workers. Expires entries that don't answer.
    pub(super) fn age(&self, now_ns: u64) -> impl Iterator<Item = Gateway> {
        let hosts = self.hosts.as_ref().map(|hosts| hosts.all(now_ns)).unwrap_or_default();
        let gateways = self.gateways.iter().filter_map(|&next_hop| self.entry(next_hop).cloned());
        gateways.chain(hosts).filter_map(move |entry| {
            let learnt = entry.learnt.load(Ordering::Acquire);
            // Another worker's clock may be slightly ahead.
            let age_ns = now_ns.saturating_sub(entry.told_ns.load(Ordering::Relaxed));
            if entry.neighbour.is_some() || learnt == 0 || age_ns < AGE_NS || !entry.is_time(now_ns)
            {
                return None;
            }
            if entry.unanswered.fetch_add(1, Ordering::Relaxed) < QUESTIONS_MAX {
                return entry.gateway;
            }
            // Unless another MAC was learnt in the meantime.
            let (exchanged, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            if entry.learnt.compare_exchange(learnt, 0, exchanged, failed).is_ok() {
                self.changes.fetch_add(1, Ordering::Release);
            }
            None
        })
    }

    /// Forgets all MACs learnt at a port: its neighbours may have changed.
    pub fn forget(&self, port: u8) {
        let hosts = self.hosts.as_ref().map(|hosts| hosts.all(0)).unwrap_or_default();
        let gateways = self.gateways.iter().filter_map(|&next_hop| self.entry(next_hop).cloned());
        let of_port =
            |entry: &Arc<Entry>| entry.gateway.is_some_and(|gateway| gateway.port == port);
        for entry in gateways.chain(hosts).filter(of_port) {
            entry.learnt.store(0, Ordering::Release);
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The gateway from which to request the MAC of a next hop or host, unless a worker requested
    /// it within the last second.
    pub(super) fn to_be_asked(&self, hop: Hop, now_ns: u64) -> Option<Gateway> {
        let entry = match (hop.host, &self.hosts) {
            (Some(host), Some(hosts)) => hosts.get_or_new(host)?,
            _ => self.entry(hop.number).cloned()?,
        };
        let gateway = entry.gateway?;
        if entry.neighbour.is_some() || entry.mac().is_some() {
            return None;
        }
        entry.is_time(now_ns).then_some(gateway)
    }

    /// A counted reference to an entry.
    #[inline]
    pub(super) fn reference(&self, next_hop: NextHop) -> Option<Arc<Entry>> {
        self.entry(next_hop).cloned()
    }
}

impl Entry {
    fn new(neighbour: Option<Neighbour>, gateway: Option<Gateway>) -> Entry {
        let [learnt, told_ns, unanswered] = [const { AtomicU64::new(0) }; 3];
        let asked_ns = AtomicU64::new(NEVER);
        Entry { neighbour, gateway, special: None, learnt, told_ns, asked_ns, unanswered }
    }

    /// True once per second: a request is due, and no other worker sends it.
    fn is_time(&self, now_ns: u64) -> bool {
        let last = self.asked_ns.load(Ordering::Relaxed);
        if last != NEVER && now_ns < last.saturating_add(ASK_NS) {
            return false;
        }
        let requested = &self.asked_ns;
        requested.compare_exchange(last, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(super) fn is_known(&self) -> bool {
        self.neighbour.is_some() || self.mac().is_some()
    }

    /// The learnt MAC.
    fn mac(&self) -> Option<[u8; 6]> {
        let learnt = self.learnt.load(Ordering::Acquire);
        let [_, _, mac @ ..] = learnt.to_be_bytes();
        (learnt & LEARNT != 0).then_some(mac)
    }

    pub(super) fn link(&self, interfaces: &[Interface]) -> Link {
        let learnt = || Some(Neighbour { port: self.gateway?.port, mac: self.mac()? });
        let Some(neighbour) = self.neighbour.or_else(learnt) else {
            let port = match self.special {
                Some(Special::Link(port)) => Some(port),
                _ => self.gateway.map(|gateway| gateway.port),
            };
            return Link { port: port.unwrap_or(u8::MAX), ..Link::UNKNOWN };
        };
        let Some(interface) = interfaces.get(usize::from(neighbour.port)) else {
            return Link::UNKNOWN;
        };
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&neighbour.mac);
        macs[6..].copy_from_slice(&interface.mac);
        Link { macs, mtu: interface.mtu, port: neighbour.port }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(number: NextHop) -> Hop {
        Hop { number, host: None }
    }

    #[test]
    fn entries_are_indexed_by_next_hop() {
        let number = |n| NextHop::new(n).expect("a number");
        let neighbour = Neighbour { port: 0, mac: [2; 6] };
        let mut neighbours = Neighbours::new();
        neighbours.set(number(2), neighbour).expect("a low number");
        assert_eq!(neighbours.get(number(2)), Some(&neighbour));
        assert_eq!(neighbours.get(number(1)), None);
        assert_eq!(neighbours.get(number(3)), None);
        let high = neighbours.set(number(NUMBER_MAX + 1), neighbour);
        assert_eq!(high, Err(NumberTooHigh(NUMBER_MAX + 1)));
        let interface = Interface { mac: [4; 6], mtu: 1500, addresses: Vec::new() };
        let links = neighbours.links(&[interface]);
        assert_eq!(links[2].macs, [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        assert_eq!((links[1].mtu, links[2].mtu), (0, 1500));
        let address = "198.18.0.9".parse().expect("one");
        let gateway = Gateway { port: 0, address };
        neighbours.set_gateway(number(2), gateway).expect("a low number");
        neighbours.set_gateway(number(0), gateway).expect("a low number");
        assert_eq!(neighbours.gateway(number(2)), Some(&gateway));
        assert_eq!(
            (neighbours.get(number(0)), neighbours.get(number(2))),
            (None, Some(&neighbour))
        );
        assert_eq!((neighbours.iter().count(), neighbours.ports().count()), (1, 3));
        let reference = neighbours.clone().reference(number(2)).expect("an entry");
        assert_eq!(Arc::strong_count(&reference), 2, "clones count the same references");
    }

    #[test]
    fn clones_share_learnt_macs_and_request_once_a_second() {
        let [known, unresolved, other] = [0, 1, 2].map(|n| NextHop::new(n).expect("a number"));
        let gateway = |last| Gateway { port: 0, address: [198, 18, 0, last].into() };
        let mut neighbours = Neighbours::new();
        let fixed = Neighbour { port: 0, mac: [2; 6] };
        neighbours.set(known, fixed).expect("a low number");
        neighbours.set_gateway(known, gateway(8)).expect("a low number");
        neighbours.set_gateway(unresolved, gateway(9)).expect("a low number");
        let clone = neighbours.clone();
        const SECOND: u64 = 1_000_000_000;
        assert_eq!(neighbours.to_be_asked(hop(known), 0), None);
        assert_eq!(neighbours.to_be_asked(hop(other), 0), None);
        assert_eq!(neighbours.to_be_asked(hop(unresolved), 0), Some(gateway(9)));
        assert_eq!(clone.to_be_asked(hop(unresolved), SECOND - 1), None);
        assert_eq!(clone.to_be_asked(hop(unresolved), SECOND), Some(gateway(9)));
        let before = clone.changes();
        // Another port, another address, invalid MACs.
        neighbours.learn(Gateway { port: 1, ..gateway(9) }, [4; 6], Manner::Replaces, 0);
        neighbours.learn(gateway(7), [4; 6], Manner::Replaces, 0);
        neighbours.learn(gateway(9), [5; 6], Manner::Replaces, 0);
        neighbours.learn(gateway(9), [0; 6], Manner::Replaces, 0);
        assert_eq!((clone.changes(), clone.learnt(unresolved)), (before, None));
        neighbours.learn(gateway(9), [4; 6], Manner::Confirms, 0);
        neighbours.learn(gateway(9), [6; 6], Manner::Confirms, 0);
        assert_eq!(clone.learnt(unresolved), Some([4; 6]));
        assert_eq!(clone.to_be_asked(hop(unresolved), 9 * SECOND), None);
        neighbours.learn(gateway(8), [6; 6], Manner::Replaces, 0);
        let interface = Interface { mac: [8; 6], mtu: 1500, addresses: Vec::new() };
        let mut links = [Link::UNKNOWN; 2];
        clone.renew(&mut links, &[interface]);
        assert_eq!(links[0].macs, [2, 2, 2, 2, 2, 2, 8, 8, 8, 8, 8, 8]);
        assert_eq!(links[1].macs, [4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8]);
    }

    #[test]
    fn old_macs_are_requested_and_expire_without_answer() {
        const SECOND: u64 = 1_000_000_000;
        let [known, learnt, silent] = [0, 1, 2].map(|n| NextHop::new(n).expect("a number"));
        let gateway = |last| Gateway { port: 0, address: [198, 18, 0, last].into() };
        let mut neighbours = Neighbours::new();
        neighbours.set(known, Neighbour { port: 0, mac: [2; 6] }).expect("a low number");
        for (next_hop, last) in [(known, 8), (learnt, 9), (silent, 10)] {
            neighbours.set_gateway(next_hop, gateway(last)).expect("a low number");
        }
        let other = neighbours.clone();
        let requests = |of: &Neighbours, second| of.age(second * SECOND).collect::<Vec<_>>();
        for last in 8..=10 {
            neighbours.learn(gateway(last), [4; 6], Manner::Replaces, 5 * SECOND);
        }
        // Confirmed early, and contradicted by a message that must not override.
        neighbours.learn(gateway(10), [4; 6], Manner::Confirms, 15 * SECOND);
        neighbours.learn(gateway(9), [6; 6], Manner::Confirms, 15 * SECOND);
        let changes = neighbours.changes();
        assert_eq!(requests(&neighbours, 0), [], "a clock behind");
        assert_eq!(requests(&neighbours, 1204), []);
        assert_eq!(requests(&neighbours, 1205), [gateway(9)]);
        assert_eq!(requests(&other, 1205), [], "each second once");
        assert_eq!(requests(&other, 1206), [gateway(9)]);
        neighbours.learn(gateway(9), [4; 6], Manner::Replaces, 1206 * SECOND);
        // After any pause, all requests are sent before expiry.
        let late = 1_000_000;
        for second in late..late + QUESTIONS_MAX {
            assert_eq!(requests(&other, second), [gateway(9), gateway(10)]);
            assert_eq!((other.learnt(silent), other.changes()), (Some([4; 6]), changes));
        }
        neighbours.learn(gateway(9), [6; 6], Manner::Replaces, (late + 3) * SECOND - 1);
        assert_eq!(requests(&neighbours, late + 3), []);
        assert_eq!((other.learnt(learnt), other.learnt(silent)), (Some([6; 6]), None));
        assert_eq!(other.learnt(known), Some([4; 6]), "set, so never asked");
        assert_eq!(other.changes(), changes + 2);
        assert_eq!(
            other.to_be_asked(hop(silent), (late + 3) * SECOND),
            None,
            "a second after the last"
        );
        assert_eq!(other.to_be_asked(hop(silent), (late + 4) * SECOND), Some(gateway(10)));
        neighbours.learn(gateway(10), [8; 6], Manner::Confirms, (late + 4) * SECOND);
        assert_eq!(requests(&other, late + 4 + 1199), [gateway(9)]);
        assert_eq!(requests(&other, late + 4 + 1200), [gateway(9), gateway(10)]);
    }
}
