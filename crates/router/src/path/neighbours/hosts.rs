//! Hosts of connected links that packets were sent to, by address.

use super::{Entry, Gateway, Neighbour};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};

/// Hosts that are known or asked for at a time. Whoever sends to all addresses of a link
/// pushes out those that don't answer, not those that do.
const HOSTS_MAX: usize = 4096;
/// Time after which a host that never answered is forgotten.
const SILENCE_NS: u64 = 10_000_000_000;

/// The hosts of all links.
#[derive(Debug, Default)]
pub(super) struct Hosts(RwLock<HashMap<Gateway, Arc<Entry>>>);

impl Hosts {
    pub(super) fn get(&self, host: &Gateway) -> Option<Arc<Entry>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    /// The entry of a host, which begins without a MAC.
    pub(super) fn get_or_new(&self, host: Gateway) -> Arc<Entry> {
        if let Some(known) = self.get(&host) {
            return known;
        }
        let mut hosts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() >= HOSTS_MAX {
            // One without an answer, or who was heard of least lately.
            let first = hosts.iter().min_by_key(|(_, entry)| {
                (entry.is_known(), entry.told_ns.load(Relaxed), entry.asked_ns.load(Relaxed))
            });
            if let Some(&first) = first.map(|(host, _)| host) {
                hosts.remove(&first);
            }
        }
        Arc::clone(hosts.entry(host).or_insert_with(|| Arc::new(Entry::new(None, Some(host)))))
    }

    /// Sets a host whose MAC is known for good.
    pub(super) fn set(&self, host: Gateway, mac: [u8; 6]) {
        let neighbour = Neighbour { port: host.port, mac };
        let entry = Arc::new(Entry::new(Some(neighbour), Some(host)));
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(host, entry);
    }

    /// Takes over those that are known elsewhere and not here.
    pub(super) fn take_over(&self, other: &Hosts) {
        let other = other.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = self.0.write().unwrap_or_else(PoisonError::into_inner);
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
            let hosts = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<_> = hosts.values().cloned().collect();
            let forgets = all.iter().any(|entry| silent(entry));
            (all, forgets)
        };
        if forgets {
            let mut hosts = self.0.write().unwrap_or_else(PoisonError::into_inner);
            hosts.retain(|_, entry| !silent(entry));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_stays_however_many_do_not() {
        let hosts = Hosts::default();
        let host =
            |number: u32| Gateway { port: 0, address: (0x0a00_0000 + number).to_be_bytes().into() };
        let known = hosts.get_or_new(host(0));
        known.learnt.store(super::super::LEARNT | 5, Relaxed);
        for number in 1..10_000 {
            hosts.get_or_new(host(number)).asked_ns.store(number.into(), Relaxed);
        }
        assert_eq!(hosts.all(0).len(), HOSTS_MAX);
        assert!(hosts.get(&host(0)).is_some() && hosts.get(&host(9_999)).is_some());
        assert!(hosts.get(&host(1)).is_none());
        hosts.all(SILENCE_NS + 10_000);
        assert_eq!(hosts.all(0).len(), 1);
    }
}
