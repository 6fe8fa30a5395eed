//! Hosts of connected links that packets were sent to, or that have asked for the router, by
//! address.
//!
//! Anybody on a link can speak for any address there. So whoever speaks first gets a place only
//! so often and only so many of them, and nobody's place is taken whose MAC is known.

use super::{Entry, Gateway, Neighbour};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

/// Hosts that are known or asked for at a time. Whoever sends to all addresses of a link
/// pushes out those that don't answer, not those that do.
const HOSTS_MAX: usize = 4096;
/// How many of them may be hosts that nobody has asked for, and how often one of those is taken
/// up: in the long run, and at once. Who isn't is asked for when a packet goes there.
const SPEAKERS_MAX: usize = HOSTS_MAX / 2;
const SPEAKER_NS: u64 = 10_000_000;
const SPEAKERS_AT_ONCE: u64 = 256;
/// Time after which a host that never answered is forgotten.
const SILENCE_NS: u64 = 10_000_000_000;

/// The hosts of all links.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    all: RwLock<HashMap<Gateway, Arc<Entry>>>,
    /// When nobody would be ahead of [`SPEAKER_NS`].
    even_ns: AtomicU64,
}

impl Hosts {
    pub(super) fn get(&self, host: &Gateway) -> Option<Arc<Entry>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    /// The entry of a host, which begins without a MAC. None where all places are taken by
    /// hosts whose MACs are known.
    pub(super) fn get_or_new(&self, host: Gateway) -> Option<Arc<Entry>> {
        if let Some(known) = self.get(&host) {
            return Some(known);
        }
        let mut hosts = self.all.write().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS_MAX && !hosts.contains_key(&host) {
            let silent = hosts.iter().filter(|(_, entry)| !entry.is_known());
            let asked_first = silent.min_by_key(|(_, entry)| entry.asked_ns.load(Relaxed));
            let place = *asked_first?.0;
            hosts.remove(&place);
        }
        let entry = hosts.entry(host).or_insert_with(|| Arc::new(Entry::new(None, Some(host))));
        Some(Arc::clone(entry))
    }

    /// The entry of a host that speaks without having been asked; of one that isn't known yet
    /// only if there were few others lately.
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

    /// Known hosts that nobody has asked for.
    fn speakers(&self) -> usize {
        let hosts = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let was_asked = |entry: &Entry| entry.asked_ns.load(Relaxed) != super::NEVER;
        hosts.values().filter(|entry| entry.mac().is_some() && !was_asked(entry)).count()
    }

    /// Sets a host whose MAC is known for good.
    pub(super) fn set(&self, host: Gateway, mac: [u8; 6]) {
        let neighbour = Neighbour { port: host.port, mac };
        let entry = Arc::new(Entry::new(Some(neighbour), Some(host)));
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(host, entry);
    }

    /// Takes over those that are known elsewhere and not here.
    pub(super) fn take_over(&self, other: &Hosts) {
        let other = other.all.read().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = self.all.write().unwrap_or_else(PoisonError::into_inner);
        for (host, entry) in other.iter().filter(|(_, entry)| entry.mac().is_some()) {
            hosts.entry(*host).or_insert_with(|| Arc::clone(entry));
        }
    }

    /// All of them, without those that have been silent for long.
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
    fn whose_mac_is_known_stays_and_who_speaks_first_gets_some_of_the_places() {
        let hosts = Hosts::default();
        // It has never been heard of, as its MAC was written.
        hosts.set(host(0), [2; 6]);
        let learn = |entry: Option<Arc<Entry>>, number: u32| {
            let is_new = entry.is_some();
            entry.into_iter().for_each(|entry| entry.learnt.store(super::super::LEARNT, Relaxed));
            hosts.get(&host(number)).is_some() == is_new && is_new
        };
        // In a flood, some at once, then one in ten milliseconds, and no more than half.
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
        // All others are there for those that packets are sent to; who answers keeps its place.
        let mut asked = 0;
        for number in 200_000..210_000 {
            let Some(entry) = hosts.get_or_new(host(number)) else { continue };
            entry.asked_ns.store(u64::from(number), Relaxed);
            entry.learnt.store(super::super::LEARNT, Relaxed);
            asked += 1;
        }
        assert_eq!((asked, hosts.all(0).len()), (HOSTS_MAX - SPEAKERS_MAX - 1, HOSTS_MAX));
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&host(1)).is_some());
        assert!(hosts.get_or_new(host(9_000_000)).is_none(), "nobody is silent");
    }

    #[test]
    fn who_answers_stays_however_many_do_not() {
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
