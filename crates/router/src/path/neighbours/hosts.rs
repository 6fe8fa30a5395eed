//! Hosts of connected links that packets were sent to, or that have requested the router, by
//! address.
//!
//! Any host on a link can claim any address there. Each link and family therefore has its own
//! places. If all are taken, hosts that have not answered give way first, then the host that was
//! not used for the longest time. Unsolicited hosts are limited in rate and number, and take no
//! known host's place.

use super::entry::{Entry, NEVER};
use super::{Gateway, Neighbour};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Maximum number of known or requested hosts of a link, by family; and the number that gives way
/// together, so that a flood does not cost a search each.
const HOSTS_MAX: usize = 4096;
const MAKE_WAY: usize = 64;
/// Maximum number of hosts that were never requested, and the rate at which they are accepted, in
/// the long run and in a burst. Others are requested when a packet is sent to them.
const SPEAKERS_MAX: usize = HOSTS_MAX / 2;
const SPEAKER_NS: u64 = 10_000_000;
const SPEAKERS_AT_ONCE: u64 = 256;
/// Time after which a host that never answered is forgotten.
const SILENCE_NS: u64 = 10_000_000_000;

/// The hosts of all links.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    links: RwLock<HashMap<LinkFamily, LinkHosts>>,
}

/// A port, and true for IPv6.
type LinkFamily = (u8, bool);

/// Hosts of one link and family.
#[derive(Debug, Default)]
struct LinkHosts {
    all: HashMap<IpAddr, Arc<Entry>>,
    /// Time at which the rate of [`SPEAKER_NS`] is not exceeded.
    even_ns: u64,
}

/// An entry, and true if hosts with a known MAC gave way to it.
pub(super) type Entered = (Arc<Entry>, bool);

fn link_of(host: &Gateway) -> LinkFamily {
    (host.port, host.address.is_ipv6())
}

impl Hosts {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<LinkFamily, LinkHosts>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<LinkFamily, LinkHosts>> {
        self.links.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, host: &Gateway) -> Option<Arc<Entry>> {
        self.read().get(&link_of(host))?.all.get(&host.address).cloned()
    }

    /// Entry of a host, initially without a MAC.
    pub(super) fn get_or_new(&self, host: Gateway) -> Entered {
        if let Some(known) = self.get(&host) {
            return (known, false);
        }
        let mut links = self.write();
        let hosts = links.entry(link_of(&host)).or_default();
        let makes_way = hosts.all.len() >= HOSTS_MAX && !hosts.all.contains_key(&host.address);
        let has_evicted = makes_way && hosts.make_way(true);
        (hosts.enter(host), has_evicted)
    }

    /// Entry of an unsolicited host; a new one only if there were few others recently.
    pub(super) fn get_or_begin(&self, host: Gateway, now_ns: u64) -> Option<Arc<Entry>> {
        if let Some(known) = self.get(&host) {
            return Some(known);
        }
        let mut links = self.write();
        let hosts = links.entry(link_of(&host)).or_default();
        let ahead_ns = hosts.even_ns.max(now_ns);
        if ahead_ns - now_ns >= SPEAKERS_AT_ONCE * SPEAKER_NS {
            return None;
        }
        hosts.even_ns = ahead_ns.saturating_add(SPEAKER_NS);
        if hosts.all.len() >= HOSTS_MAX {
            hosts.make_way(false);
        }
        let has_room = hosts.all.len() < HOSTS_MAX && hosts.speakers() < SPEAKERS_MAX;
        has_room.then(|| hosts.enter(host))
    }

    /// Sets a host with a static MAC.
    pub(super) fn set(&self, host: Gateway, mac: [u8; 6]) {
        let neighbour = Neighbour { port: host.port, mac };
        let entry = Arc::new(Entry::new(Some(neighbour), Some(host)));
        self.write().entry(link_of(&host)).or_default().all.insert(host.address, entry);
    }

    /// Takes over hosts that only `other` knows.
    pub(super) fn take_over(&self, other: &Hosts) {
        let (other, mut links) = (other.read(), self.write());
        for (link, hosts) in other.iter() {
            let own = links.entry(*link).or_default();
            for (host, entry) in hosts.all.iter().filter(|(_, entry)| entry.mac().is_some()) {
                own.all.entry(*host).or_insert_with(|| Arc::clone(entry));
            }
        }
    }

    /// Visits all hosts, and removes those that have been silent for too long.
    pub(super) fn age(&self, now_ns: u64, mut visit: impl FnMut(&Entry)) {
        let silent = |entry: &Entry| {
            let requested_ns = entry.requested_ns.load(Relaxed);
            let is_over =
                requested_ns == NEVER || requested_ns.saturating_add(SILENCE_NS) <= now_ns;
            is_over && !entry.is_known()
        };
        let mut forgets = false;
        for entry in self.read().values().flat_map(|hosts| hosts.all.values()) {
            visit(entry);
            forgets |= silent(entry);
        }
        if forgets {
            for hosts in self.write().values_mut() {
                hosts.all.retain(|_, entry| !silent(entry));
            }
        }
    }

    /// All hosts.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.read().values().flat_map(|hosts| hosts.all.values().cloned()).collect()
    }

    /// Forgets the hosts of a port, except for static ones.
    pub(super) fn forget(&self, port: u8) {
        for (_, hosts) in self.write().iter_mut().filter(|((of, _), _)| *of == port) {
            hosts.all.retain(|_, entry| entry.neighbour.is_some());
        }
    }
}

impl LinkHosts {
    fn enter(&mut self, host: Gateway) -> Arc<Entry> {
        let new = || Arc::new(Entry::new(None, Some(host)));
        Arc::clone(self.all.entry(host.address).or_insert_with(new))
    }

    /// Removes the hosts that give way first; with `known`, also hosts with a MAC. Returns true if
    /// one of these was removed.
    fn make_way(&mut self, known: bool) -> bool {
        let dynamic = self.all.iter().filter(|(_, entry)| entry.neighbour.is_none());
        let ranked = dynamic.map(|(address, entry)| (entry.rank(), *address));
        let mut ranked: Vec<_> = ranked.filter(|((is_known, _), _)| known || !is_known).collect();
        let count = MAKE_WAY.min(ranked.len());
        if count == 0 {
            return false;
        }
        ranked.select_nth_unstable(count - 1);
        ranked.truncate(count);
        for (_, address) in &ranked {
            self.all.remove(address);
        }
        ranked.iter().any(|((is_known, _), _)| *is_known)
    }

    /// Number of known hosts that were never requested.
    fn speakers(&self) -> usize {
        let was_requested = |entry: &Entry| entry.requested_ns.load(Relaxed) != NEVER;
        self.all.values().filter(|entry| entry.mac().is_some() && !was_requested(entry)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::LEARNT;
    use super::*;

    fn host(number: u32) -> Gateway {
        Gateway { port: 0, address: (0x0a00_0000 + number).to_be_bytes().into() }
    }

    fn count(hosts: &Hosts) -> usize {
        let mut count = 0;
        hosts.age(0, |_| count += 1);
        count
    }

    /// A host that answers at this time.
    fn answer(hosts: &Hosts, host: Gateway, now_ns: u64) {
        let (entry, _) = hosts.get_or_new(host);
        entry.requested_ns.store(now_ns, Relaxed);
        entry.learnt.store(LEARNT, Relaxed);
        entry.use_at(now_ns);
    }

    #[test]
    fn unsolicited_hosts_are_limited_and_take_no_known_place() {
        let hosts = Hosts::default();
        // A static host never sent anything.
        hosts.set(host(0), [2; 6]);
        let learn = |entry: Option<Arc<Entry>>, number: u32| {
            let is_new = entry.is_some();
            entry.into_iter().for_each(|entry| entry.learnt.store(LEARNT, Relaxed));
            hosts.get(&host(number)).is_some() == is_new && is_new
        };
        // In a flood: a burst, then one every ten milliseconds, and no more than half of all.
        let at_once = (1..1000).filter(|&n| learn(hosts.get_or_begin(host(n), 5), n)).count();
        assert_eq!(at_once, 256);
        let second = 5 + 1_000_000_000;
        let later = (1000..2000).filter(|&n| learn(hosts.get_or_begin(host(n), second), n));
        assert_eq!(later.count(), 100);
        let ever = (1..5_000u64).filter(|&n| {
            let number = 10_000 + n as u32;
            learn(hosts.get_or_begin(host(number), second + n * SPEAKER_NS), number)
        });
        assert_eq!(356 + ever.count(), SPEAKERS_MAX);
        assert!(hosts.get_or_begin(host(1), second).is_some(), "known already");
        let other_link = Gateway { port: 1, ..host(9_000) };
        assert!(hosts.get_or_begin(other_link, 5).is_some());
        // The other places are for hosts that packets are sent to.
        (200_000..210_000).for_each(|number| answer(&hosts, host(number), number.into()));
        assert!(hosts.get(&host(0)).is_some(), "static");
    }

    /// One link's hosts, however many answer, cost neither another link's hosts nor the other
    /// family's, and their own link only those that are not in use.
    #[test]
    fn places_are_separate_by_link_and_family_and_the_least_recently_used_goes() {
        let hosts = Hosts::default();
        let six = Gateway { port: 0, address: "2001:db8::1".parse().expect("an address") };
        let other = Gateway { port: 1, ..host(1) };
        for one in [six, other, host(1), host(2)] {
            answer(&hosts, one, 1);
        }
        for number in 10..30_000 {
            answer(&hosts, host(number), number.into());
            if number % 100 == 0 {
                hosts.get(&host(1)).expect("it is in use").use_at(number.into());
            }
        }
        assert!([six, other, host(1)].iter().all(|one| hosts.get(one).is_some()));
        assert!(hosts.get(&host(2)).is_none() && hosts.get(&host(29_999)).is_some());
        assert!((HOSTS_MAX - MAKE_WAY..=HOSTS_MAX + 2).contains(&count(&hosts)));
    }

    #[test]
    fn answering_hosts_survive_a_scan() {
        let hosts = Hosts::default();
        answer(&hosts, host(0), 5);
        for number in 1..10_000 {
            let (entry, has_evicted) = hosts.get_or_new(host(number));
            assert!(!has_evicted, "only silent hosts give way");
            entry.requested_ns.store(number.into(), Relaxed);
        }
        assert!((HOSTS_MAX - MAKE_WAY..=HOSTS_MAX).contains(&count(&hosts)));
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&host(9_999)).is_some());
        assert!(hosts.get(&host(1)).is_none());
        hosts.age(SILENCE_NS + 10_000, |_| {});
        assert_eq!(count(&hosts), 1);
    }

    #[test]
    fn forget_removes_the_hosts_of_one_port() {
        let hosts = Hosts::default();
        let other = Gateway { port: 1, ..host(1) };
        hosts.set(host(0), [2; 6]);
        for one in [host(1), other] {
            answer(&hosts, one, 1);
        }
        hosts.forget(0);
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&other).is_some());
        assert!(hosts.get(&host(1)).is_none());
    }
}
