//! Next hops that are added while packets are forwarded, and entries that a reconfigured router
//! keeps from its predecessor.
//!
//! Each worker has its own copy of the list and takes over new entries when it sees a change, at
//! the latest when it looks up an unknown number: a route may therefore be added right after its
//! next hop.

use super::{Entry, Gateway, Neighbours, NumberTooHigh, Special};
use crate::fib::NextHop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Added next hops, and the number of them in this copy.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicNextHops {
    all: Arc<Mutex<Vec<Added>>>,
    followed: usize,
}

/// An added next hop.
type Added = (NextHop, Arc<Entry>);

impl Neighbours {
    /// Allows adding next hops later, with [`Neighbours::grow`].
    pub fn may_grow(&mut self) {
        self.grown.get_or_insert_default();
        self.hosts.get_or_insert_default();
    }

    /// Adds next hops to this set of neighbours and all its clones: routers know each of them
    /// before they see a route that is added afterwards. An already known MAC of a gateway is valid
    /// from the beginning.
    ///
    /// # Errors
    /// If a number is too high; those before it were added.
    ///
    /// # Panics
    /// Unless [`Neighbours::may_grow`] was called before cloning.
    pub fn grow(
        &mut self,
        more: impl IntoIterator<Item = (NextHop, Result<Gateway, Special>)>,
    ) -> Result<(), NumberTooHigh> {
        for (number, what) in more {
            let entry = Arc::new(match what {
                Ok(gateway) => self.entry_like_known(gateway),
                Err(special) => Entry { special: Some(special), ..Entry::new(None, None) },
            });
            self.put_shared(number, Arc::clone(&entry))?;
            let grown = self.grown.as_mut().expect("neighbours that may grow");
            grown.all.lock().unwrap_or_else(PoisonError::into_inner).push((number, entry));
            grown.followed += 1;
        }
        self.changes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Creates an entry for a gateway, with the known MAC of an equal gateway.
    fn entry_like_known(&self, gateway: Gateway) -> Entry {
        let entry = Entry::new(None, Some(gateway));
        let listed = self.gateways.iter().filter_map(|&number| self.entry(number).cloned());
        let host = self.hosts.as_ref().and_then(|hosts| hosts.get(&gateway));
        let mut same = listed.filter(|other| other.gateway == Some(gateway)).chain(host);
        match same.find(|other| other.is_known()) {
            Some(known) => Entry { neighbour: known.neighbour, ..entry }.learnt_as(&known),
            None => entry,
        }
    }

    /// Takes over added next hops; returns true if there were any.
    pub(in super::super) fn follow(&mut self) -> bool {
        let Some(grown) = &mut self.grown else { return false };
        let more = {
            let all = grown.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(grown.followed..).unwrap_or_default().to_vec()
        };
        grown.followed += more.len();
        let is_more = !more.is_empty();
        for (number, entry) in more {
            // It fitted in the set to which it was added.
            let _ = self.put_shared(number, entry);
        }
        is_more
    }

    /// As [`Neighbours::entry`], including next hops added in the meantime.
    pub(in super::super) fn entry_by_now(&mut self, number: NextHop) -> Option<&Arc<Entry>> {
        if self.entry(number).is_none() {
            self.follow();
        }
        self.entry(number)
    }

    /// Takes over the learnt MACs of equal gateways and hosts, so that a reconfigured router does
    /// not request them again.
    pub fn learn_from(&mut self, before: &Neighbours) {
        if let (Some(hosts), Some(known)) = (&self.hosts, &before.hosts) {
            hosts.take_over(known);
        }
        for number in self.gateways.clone() {
            let Some(entry) = self.entry(number) else { continue };
            let Some(gateway) = entry.gateway.filter(|_| !entry.is_known()) else { continue };
            let entry = before.entry_like_known(gateway);
            if entry.mac().is_some() {
                self.entries[number.number() as usize] =
                    Some(Arc::new(Entry { neighbour: None, ..entry }));
            }
        }
    }
}

impl Entry {
    /// Copies the MAC that another entry has learnt.
    fn learnt_as(self, other: &Entry) -> Entry {
        for (own, other) in [
            (&self.learnt, &other.learnt),
            (&self.confirmed_ns, &other.confirmed_ns),
            (&self.last_ns, &other.last_ns),
        ] {
            own.store(other.load(Ordering::Acquire), Ordering::Release);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::Manner;
    use super::*;

    fn number(number: u32) -> NextHop {
        NextHop::new(number).expect("a number")
    }

    fn gateway(port: u8, address: &str) -> Gateway {
        Gateway { port, address: address.parse().expect("an address") }
    }

    #[test]
    fn clones_see_added_next_hops_and_their_macs() {
        let mut all = Neighbours::new();
        all.may_grow();
        let mut worker = all.clone();
        let near = gateway(1, "192.0.2.7");
        // The host's own neighbour, before any route leads there.
        worker.learn(near, [2, 0, 0, 0, 0, 7], (Manner::Begins, false), 5);
        // An address that is neither known nor requested is not learnt.
        let unrequested = gateway(1, "192.0.2.8");
        worker.learn(unrequested, [2, 0, 0, 0, 0, 8], (Manner::Replaces, true), 5);
        assert!(worker.hosts.as_ref().is_some_and(|hosts| hosts.get(&unrequested).is_none()));
        let added = [(number(3), Ok(near)), (number(4), Err(Special::Blackhole))];
        all.grow(added).expect("low numbers");
        assert!(worker.entry(number(3)).is_none());
        let entry = worker.entry_by_now(number(3)).expect("it was added");
        assert_eq!(entry.mac(), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!(
            worker.entry(number(4)).and_then(|e| e.special.clone()),
            Some(Special::Blackhole)
        );
        assert!(!worker.follow() && worker.changes() > 0);
    }

    #[test]
    fn learn_from_keeps_known_macs() {
        let (mut before, mut after) = (Neighbours::new(), Neighbours::new());
        let (near, far) = (gateway(0, "192.0.2.7"), gateway(0, "192.0.2.8"));
        before.set_gateway(number(0), near).expect("a low number");
        before.learn(near, [2, 0, 0, 0, 0, 7], (Manner::Replaces, true), 5);
        after.set_gateway(number(8), near).expect("a low number");
        after.set_gateway(number(9), far).expect("a low number");
        after.learn_from(&before);
        assert_eq!(after.learnt(number(8)), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!(after.learnt(number(9)), None);
    }
}
