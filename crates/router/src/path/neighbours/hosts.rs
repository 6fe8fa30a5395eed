//! Hosts of connected links that packets were sent to, or that have requested the router, by
//! address.
//!
//! Any host on a link can claim any address there. Unsolicited hosts are therefore limited in rate
//! and number, and a host with a known MAC is never evicted.

use super::{Entry, Gateway, Neighbour};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum number of known or requested hosts. A sender to all addresses of a link evicts silent
/// hosts, not those that answer.
const HOSTS_MAX: usize = 4096;
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
    all: RwLock<HashMap<Gateway, Arc<Entry>>>,
    /// Time at which the rate of [`SPEAKER_NS`] is not exceeded.
    even_ns: AtomicU64,
}

impl Hosts {
    pub(super) fn get(&self, host: &Gateway) -> Option<Arc<Entry>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    /// Entry of a host, initially without a MAC. `None` if hosts with known MACs take all places.
    pub(super) fn get_or_new(&self, host: Gateway) -> Option<Arc<Entry>> {
        if let Some(known) = self.get(&host) {
            return Some(known);
        }
        let mut hosts = self.all.write().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(&host) {
            let silent = hosts.iter().filter(|(_, entry)| !entry.is_known());
            let first_requested = silent.min_by_key(|(_, entry)| entry.asked_ns.load(Relaxed));
            let place = *first_requested?.0;
            hosts.remove(&place);
        }
        let entry = hosts.entry(host).or_insert_with(|| Arc::new(Entry::new(None, Some(host))));
        Some(Arc::clone(entry))
    }

    /// Entry of an unsolicited host; a new one only if there were few others recently.
    pub(super) fn get_or_begin(&self, host: Gateway, now_ns: u64) -> Option<Arc<Entry>> {
        if let Some(known) = self.get(&host) {
            return Some(known);
        }
        let even_ns = self.even_ns.load(Relaxed);
        let ahead_ns = even_ns.max(now_ns);
        let is_time = ahead_ns - now_ns < SPEAKERS_AT_ONCE * SPEAKER_NS && {
            let next_ns = ahead_ns.saturating_add(SPEAKER_NS);
            self.even_ns.compare_exchange(even_ns, next_ns, Relaxed, Relaxed).is_ok()
        };
        if !is_time || self.speakers() >= SPEAKERS_MAX {
            return None;
        }
        self.get_or_new(host)
    }

    /// Number of known hosts that were never requested.
    fn speakers(&self) -> usize {
        let hosts = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let was_requested = |entry: &Entry| entry.asked_ns.load(Relaxed) != super::NEVER;
        hosts.values().filter(|entry| entry.mac().is_some() && !was_requested(entry)).count()
    }

    /// Sets a host with a static MAC.
    pub(super) fn set(&self, host: Gateway, mac: [u8; 6]) {
        let neighbour = Neighbour { port: host.port, mac };
        let entry = Arc::new(Entry::new(Some(neighbour), Some(host)));
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(host, entry);
    }

    /// Takes over hosts that only `other` knows.
    pub(super) fn take_over(&self, other: &Hosts) {
        let other = other.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = self.all.write().unwrap_or_else(PoisonError::into_inner);
        for (host, entry) in other.iter().filter(|(_, entry)| entry.mac().is_some()) {
            hosts.entry(*host).or_insert_with(|| Arc::clone(entry));
        }
    }

    /// Returns all hosts, and removes those that have been silent for too long.
    pub(super) fn all(&self, now_ns: u64) -> Vec<Arc<Entry>> {
        let silent = |entry: &Entry| {
            let asked_ns = entry.asked_ns.load(Relaxed);
            !entry.is_known()
                && asked_ns != super::NEVER
                && asked_ns.saturating_add(SILENCE_NS) <= now_ns
        };
        let (all, forgets) = {
            let hosts = self.all.read().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<_> = hosts.values().cloned().collect();
            let forgets = all.iter().any(|entry| silent(entry));
            (all, forgets)
        };
        if forgets {
            let mut hosts = self.all.write().unwrap_or_else(PoisonError::into_inner);
            hosts.retain(|_, entry| !silent(entry));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u32) -> Gateway {
        Gateway { port: 0, address: (0x0a00_0000 + number).to_be_bytes().into() }
    }

    #[test]
    fn known_hosts_stay_and_unsolicited_hosts_are_limited() {
        let hosts = Hosts::default();
        // A static host never sent anything.
        hosts.set(host(0), [2; 6]);
        let learn = |entry: Option<Arc<Entry>>, number: u32| {
            let is_new = entry.is_some();
            entry.into_iter().for_each(|entry| entry.learnt.store(super::super::LEARNT, Relaxed));
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
        // The other places are for hosts that packets are sent to; hosts that answer keep their
        // place.
        let mut answered = 0;
        for number in 200_000..210_000 {
            let Some(entry) = hosts.get_or_new(host(number)) else { continue };
            entry.asked_ns.store(u64::from(number), Relaxed);
            entry.learnt.store(super::super::LEARNT, Relaxed);
            answered += 1;
        }
        assert_eq!((answered, hosts.all(0).len()), (HOSTS_MAX - SPEAKERS_MAX - 1, HOSTS_MAX));
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&host(1)).is_some());
        assert!(hosts.get_or_new(host(9_000_000)).is_none(), "nobody is silent");
    }

    #[test]
    fn answering_hosts_survive_a_scan() {
        let hosts = Hosts::default();
        let new = |number| hosts.get_or_new(host(number)).expect("somebody is silent");
        new(0).learnt.store(super::super::LEARNT | 5, Relaxed);
        for number in 1..10_000 {
            new(number).asked_ns.store(number.into(), Relaxed);
        }
        assert_eq!(hosts.all(0).len(), HOSTS_MAX);
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&host(9_999)).is_some());
        assert!(hosts.get(&host(1)).is_none());
        hosts.all(SILENCE_NS + 10_000);
        assert_eq!(hosts.all(0).len(), 1);
    }
}
