//! Read-only access to states.

use super::phase::Sort;
use super::segment::{Of, Query, Segment};
use super::table::{Entry, Table};
use super::{Access, Connection, States};
use std::sync::atomic::Ordering::Relaxed;

impl States {
    /// True if the connection exists, has not expired, and for TCP may have had this sequence
    /// number in flight. The question is not about a packet of the connection, so nothing of it
    /// changes, not even its time.
    pub(in crate::firewall) fn holds<const N: usize, X: Access>(
        &self,
        access: &mut X,
        query: &Query<N>,
        sequence: u32,
        now_ns: u64,
    ) -> bool
    where
        Segment: Of<N>,
    {
        let mut segment = access.segment(self.segment(query.hash));
        let table = segment.table();
        let Some((at, reply)) = table.find(&query.key, query.hash) else { return false };
        let entry = table.entry(at);
        let (over, sort) = (entry.is_over(now_ns, &self.limits), entry.sort);
        !over && (sort != Sort::Tcp || table.window(at).may_be_on_its_way(sequence, reply))
    }

    /// Number of states, and their memory in bytes.
    pub(in crate::firewall) fn size(&self) -> (u64, u64) {
        let [inet, inet6] = [0, 1].map(|family| self.slots[family].load(Relaxed));
        let bytes = inet * Table::<2>::SLOT + inet6 * Table::<5>::SLOT;
        (self.live.load(Relaxed) as u64, bytes as u64)
    }

    /// Calls `visit` with all states that have not expired, in no order.
    pub(in crate::firewall) fn visit<X: Access>(
        &self,
        access: &mut X,
        now_ns: u64,
        mut visit: impl FnMut(Connection),
    ) {
        for at in 0..self.segments {
            let segment = access.segment(at);
            let inet = segment.inet.iter().filter(|entry| !entry.is_over(now_ns, &self.limits));
            inet.map(Connection::of).for_each(&mut visit);
            let inet6 = segment.inet6.iter().filter(|entry| !entry.is_over(now_ns, &self.limits));
            inet6.map(Connection::of).for_each(&mut visit);
        }
    }

    /// Removes the states that `selects`; returns their number.
    pub(in crate::firewall) fn remove<X: Access>(
        &self,
        access: &mut X,
        selects: &dyn Fn(&Connection) -> bool,
    ) -> usize {
        let mut removed = 0;
        for at in 0..self.segments {
            let mut segment = access.segment(at);
            removed += segment.inet.remove_if(|entry| selects(&Connection::of(entry)));
            removed += segment.inet6.remove_if(|entry| selects(&Connection::of(entry)));
        }
        self.live.fetch_sub(removed, Relaxed);
        removed
    }
}

impl Connection {
    fn of<const N: usize>(entry: &Entry<N>) -> Connection {
        let (ends, marks) = entry.key.parts();
        Connection {
            ends,
            marks,
            protocol: entry.key.protocol(),
            phase: entry.phase,
            last_ns: entry.last_ns,
            packets: entry.packets,
            bytes: entry.bytes,
        }
    }
}
