//! Next hops that come while packets are forwarded, and what a router that is set up anew keeps
//! of the one before.
//!
//! Each worker has its own copy of the list and takes over what is new when it sees that
//! something has changed, at the latest when it looks a number up that it doesn't know: so a
//! route may be added right after its next hop.

use super::{Entry, Gateway, Neighbours, NumberTooHigh, Special};
use crate::fib::NextHop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What was added, and how much of it this copy has.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicNextHops {
    all: Arc<Mutex<Vec<Added>>>,
    followed: usize,
}

/// A next hop that was added.
type Added = (NextHop, Arc<Entry>);

impl Neighbours {
    /// Lets more be added later, with [`Neighbours::grow`].
    pub fn may_grow(&mut self) {
        self.grown.get_or_insert_default();
        self.hosts.get_or_insert_default();
    }

    /// Adds next hops, of this set of neighbours and all its clones: routers know of each before
    /// they see a route that is added afterwards. What is known of a gateway's MAC is known
    /// of it from the beginning.
    ///
    /// # Errors
    /// If a number is too high; those before it were added.
    ///
    /// # Panics
    /// Unless [`Neighbours::may_grow`] was called before clones were made.
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

    /// An entry for a gateway, with what is known of the same one.
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

    /// Takes over what was added; true if there was anything.
    pub(in super::super) fn follow(&mut self) -> bool {
        let Some(grown) = &mut self.grown else { return false };
        let more = {
            let all = grown.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(grown.followed..).unwrap_or_default().to_vec()
        };
        grown.followed += more.len();
        let is_more = !more.is_empty();
        for (number, entry) in more {
            // It was put where it came from.
            let _ = self.put_shared(number, entry);
        }
        is_more
    }

    /// As [`Neighbours::entry`], with what was added meanwhile.
    pub(in super::super) fn entry_by_now(&mut self, number: NextHop) -> Option<&Arc<Entry>> {
        if self.entry(number).is_none() {
            self.follow();
        }
        self.entry(number)
    }

    /// Takes over what other neighbours have learnt, of gateways and hosts that are the same
    /// here: a router that is set up anew asks nobody twice.
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
    /// With the MAC that another one has learnt.
    fn learnt_as(self, other: &Entry) -> Entry {
        for (own, other) in [(&self.learnt, &other.learnt), (&self.told_ns, &other.told_ns)] {
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
    fn clones_learn_of_next_hops_and_of_their_macs() {
        let mut all = Neighbours::new();
        all.may_grow();
        let mut worker = all.clone();
        let near = gateway(1, "192.0.2.7");
        // A neighbour of the host's, before any route leads there.
        worker.learn(near, [2, 0, 0, 0, 0, 7], Manner::Begins, 5);
        // Whom nobody knows or has asked isn't believed.
        let unasked = gateway(1, "192.0.2.8");
        worker.learn(unasked, [2, 0, 0, 0, 0, 8], Manner::Replaces, 5);
        assert!(worker.hosts.as_ref().is_some_and(|hosts| hosts.get(&unasked).is_none()));
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
    fn what_was_learnt_is_learnt_once() {
        let (mut before, mut after) = (Neighbours::new(), Neighbours::new());
        let (near, far) = (gateway(0, "192.0.2.7"), gateway(0, "192.0.2.8"));
        before.set_gateway(number(0), near).expect("a low number");
        before.learn(near, [2, 0, 0, 0, 0, 7], Manner::Replaces, 5);
        after.set_gateway(number(8), near).expect("a low number");
        after.set_gateway(number(9), far).expect("a low number");
        after.learn_from(&before);
        assert_eq!(after.learnt(number(8)), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!(after.learnt(number(9)), None);
    }
}
