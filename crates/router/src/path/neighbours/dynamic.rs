//! Next hops that come and go while packets are forwarded, and entries that a reconfigured router
//! keeps from its predecessor.
//!
//! Each worker has its own copy of the list and takes over changes when it sees one, at the latest
//! when it looks up an unknown number: a route may therefore be added right after its next hop. A
//! removed number may be used again as soon as no worker looks up routes of the time before.

use super::{Entry, Gateway, Neighbours, NumberTooHigh, Special};
use crate::fib::NextHop;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes of next hops, and the number of them in this copy.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicNextHops {
    log: Arc<Mutex<Log>>,
    followed: usize,
    /// True if links lack some of the changes that this copy contains.
    is_unlinked: bool,
}

/// Changes, without those that later ones undo.
#[derive(Debug, Default)]
struct Log {
    /// Number of changes before these, which these replace.
    begin: usize,
    changes: Vec<Change>,
    /// Number of changes from which on those that others undo are removed.
    most: usize,
}

/// A next hop that was added, or removed.
type Change = (NextHop, Option<Arc<Entry>>);

/// Minimum number of changes before those that later ones undo are removed.
const CHANGES_MIN: usize = 4096;

impl Log {
    fn end(&self) -> usize {
        self.begin + self.changes.len()
    }

    fn push(&mut self, change: Change) {
        self.changes.push(change);
        if self.changes.len() <= self.most.max(CHANGES_MIN) {
            return;
        }
        let end = self.end();
        let mut latest = BTreeMap::new();
        for (number, entry) in self.changes.drain(..) {
            latest.insert(number, entry);
        }
        self.changes.extend(latest.into_iter().filter(|(_, entry)| entry.is_some()));
        (self.begin, self.most) = (end, 2 * self.changes.len());
    }
}

impl Neighbours {
    /// Allows adding next hops later, with [`Neighbours::grow`].
    pub fn may_grow(&mut self) {
        self.grown.get_or_insert_default();
        self.hosts.get_or_insert_default();
    }

    /// Ends the set of next hops that are never removed.
    pub fn seal(&mut self) {
        self.own = self.entries.len();
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
            self.record((number, Some(entry)));
        }
        self.change();
        Ok(())
    }

    /// Removes next hops that were added with [`Neighbours::grow`], and to which no route leads any
    /// more. Their numbers may be used again when every worker has processed a batch since.
    ///
    /// # Panics
    /// As [`Neighbours::grow`].
    pub fn shrink(&mut self, gone: impl IntoIterator<Item = NextHop>) {
        for number in gone {
            self.remove(number);
            self.record((number, None));
        }
        self.change();
    }

    fn remove(&mut self, number: NextHop) {
        self.unlist(number);
        if let Some(entry) = self.entries.get_mut(number.number() as usize) {
            *entry = None;
        }
    }

    fn record(&mut self, change: Change) {
        let grown = self.grown.as_mut().expect("neighbours that may grow");
        let mut log = locked(&grown.log);
        log.push(change);
        grown.followed = log.end();
    }

    /// Creates an entry for a gateway, with the known MAC of an equal gateway.
    fn entry_like_known(&self, gateway: Gateway) -> Entry {
        let entry = Entry::new(None, Some(gateway));
        let host = self.hosts.as_ref().and_then(|hosts| hosts.get(&gateway));
        let mut same = self.of_gateway(&gateway).cloned().chain(host);
        match same.find(|other| other.is_known()) {
            Some(known) => Entry { neighbour: known.neighbour, ..entry }.learnt_as(&known),
            None => entry,
        }
    }

    /// Takes over changes of next hops; returns true if there were any.
    pub(in super::super) fn follow(&mut self) -> bool {
        let Some(grown) = &mut self.grown else { return false };
        let (is_behind, changes) = {
            let log = locked(&grown.log);
            let from = grown.followed.checked_sub(log.begin);
            grown.followed = log.end();
            (from.is_none(), log.changes.get(from.unwrap_or(0)..).unwrap_or_default().to_vec())
        };
        if is_behind {
            self.remove_added();
        }
        let is_more = is_behind || !changes.is_empty();
        for (number, entry) in changes {
            match entry {
                // It fitted in the set to which it was added.
                Some(entry) => drop(self.put_shared(number, entry)),
                None => self.remove(number),
            }
        }
        is_more
    }

    /// Removes all next hops that were added: which of them have gone is no longer known.
    fn remove_added(&mut self) {
        for at in self.own..self.entries.len() {
            if let Some(number) = u32::try_from(at).ok().and_then(NextHop::new) {
                self.remove(number);
            }
        }
    }

    /// As [`Neighbours::entry`], including next hops added in the meantime.
    pub(in super::super) fn entry_by_now(&mut self, number: NextHop) -> Option<&Arc<Entry>> {
        if self.entry(number).is_none() {
            let is_more = self.follow();
            if let Some(grown) = &mut self.grown {
                grown.is_unlinked |= is_more;
            }
        }
        self.entry(number)
    }

    /// True once after [`Neighbours::entry_by_now`] took over changes: links lack them.
    pub(in super::super) fn take_unlinked(&mut self) -> bool {
        self.grown.as_mut().is_some_and(|grown| std::mem::take(&mut grown.is_unlinked))
    }

    /// Takes over the learnt MACs of equal gateways and hosts, so that a reconfigured router does
    /// not request them again, and the carriers of ports.
    pub fn learn_from(&mut self, before: &Neighbours) {
        self.down = Arc::clone(&before.down);
        if let (Some(hosts), Some(known)) = (&self.hosts, &before.hosts) {
            hosts.take_over(known);
        }
        for number in self.numbers().collect::<Vec<NextHop>>() {
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

fn locked(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    /// Copies the MAC that another entry has learnt.
    fn learnt_as(self, other: &Entry) -> Entry {
        for (own, other) in [
            (&self.learnt, &other.learnt),
            (&self.confirmed_ns, &other.confirmed_ns),
            (&self.answered_ns, &other.answered_ns),
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
        all.seal();
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

    /// A worker that was idle for any time has the next hops that are left, and no others.
    #[test]
    fn clones_follow_numbers_that_are_given_back() {
        let mut all = Neighbours::new();
        all.may_grow();
        all.set_gateway(number(0), gateway(0, "192.0.2.1")).expect("a low number");
        all.seal();
        let (mut idle, mut busy) = (all.clone(), all.clone());
        let one = |n: u32| gateway(1, &format!("10.0.{}.{}", n >> 8, n & 255));
        for round in 0..20u32 {
            let numbers = || (0..1000).map(move |n| (number(1 + n), round * 1000 + n));
            all.grow(numbers().map(|(number, n)| (number, Ok(one(n))))).expect("low numbers");
            assert!(busy.follow());
            assert_eq!(busy.gateway(number(7)), Some(&one(round * 1000 + 6)));
            let gone = numbers().filter(|(_, n)| round < 19 || n % 2 == 0);
            all.shrink(gone.map(|(number, _)| number));
            assert!(busy.follow() && busy.gateway(number(1)).is_none());
        }
        assert!(idle.follow());
        for neighbours in [&idle, &busy, &all] {
            assert_eq!(neighbours.numbers().count(), 501);
            assert_eq!(neighbours.gateway(number(0)), Some(&gateway(0, "192.0.2.1")));
            assert_eq!(neighbours.gateway(number(2)), Some(&one(19_001)));
            assert_eq!(neighbours.of_gateway(&one(19_001)).count(), 1);
        }
        let log = locked(&all.grown.as_ref().expect("it may grow").log).changes.len();
        assert!(log <= CHANGES_MIN, "{log}");
        assert!(!idle.follow() && !busy.follow());
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
