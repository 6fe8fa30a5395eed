//! The connections that a worker knows, and writing its flow cache back to the states.

use super::Filter;
use crate::firewall::states::{Access, Connection, Flows, States, Work};
use std::sync::atomic::Ordering::Release;

/// Maximum number of flows visited before the worker looks for packets again.
const VISITED: usize = 512;

impl Filter {
    /// Returns the connections that have a state, in no order: of all workers, or of this one if
    /// each has its own states. Packets that other workers' caches passed in the last moments (20
    /// ms, with a million flows 5 s) may be missing from the counters.
    pub fn connections(&mut self) -> Vec<Connection> {
        struct List<'a>(&'a States);
        impl Work for List<'_> {
            type Result = Vec<Connection>;
            fn run<X: Access>(self, access: &mut X) -> Vec<Connection> {
                let mut list = Vec::new();
                // At time 0 nothing has expired.
                self.0.visit(access, 0, |connection| list.push(connection));
                list
            }
        }
        self.tell_flows();
        let states = &self.shared.states;
        states.with(self.own.as_mut(), List(states)).unwrap_or_default()
    }

    /// Writes the counters of the flow cache back to the states.
    pub(super) fn tell_flows(&mut self) {
        struct WriteBack<'a>(&'a States, &'a mut Flows);
        impl Work for WriteBack<'_> {
            type Result = ();
            fn run<X: Access>(self, access: &mut X) {
                let WriteBack(states, flows) = self;
                flows.tell(states, access);
            }
        }
        let states = &self.shared.states;
        if let Some(flows) = &mut self.flows {
            let _ = states.with(self.own.as_mut(), WriteBack(states, flows));
        }
    }

    /// Visits cached flows while no packet comes; returns true if more of them are due.
    pub(super) fn visit_flows(&mut self, now_ns: u64) -> bool {
        struct Visit<'a>(&'a States, &'a mut Flows, u64);
        impl Work for Visit<'_> {
            type Result = bool;
            fn run<X: Access>(self, access: &mut X) -> bool {
                let Visit(states, flows, now_ns) = self;
                flows.tell_forgotten(states, access, now_ns);
                flows.visit(states, access, now_ns, VISITED)
            }
        }
        let states = &self.shared.states;
        let Some(flows) = &mut self.flows else { return false };
        states.with(self.own.as_mut(), Visit(states, flows, now_ns)).unwrap_or(false)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // Keep [`SharedFirewall::forget`] from waiting for a dropped worker.
        self.counts.forgotten.store(u64::MAX, Release);
        self.tell_flows();
        if let Some(own) = &self.own {
            self.shared.states.give_up(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firewall::{SharedFirewall, StateConfig, text};
    use crate::path::{Firewall, Frame};
    use fwdlab_netio::frame::BATCH;
    use fwdlab_packet::{Family, Flows as Range, FrameWriter, Phase};
    use fwdlab_packet::{Stream, Template};

    /// Creates a frame of each flow.
    fn frames(family: Family, flows: u32) -> Vec<Frame> {
        let range = Range { sources: flows / 100, destinations: 100 };
        let size = Template::smallest_frame(family);
        let template = Template::new(&Stream::new(family, size, range), 1, [2; 6], [4; 6]);
        let mut writer = FrameWriter::new(template, 0);
        let mut bytes = vec![0; writer.frame_length()];
        writer.prepare(&mut bytes);
        let one = |_| {
            writer.write_next(&mut bytes, Phase::Window, 0);
            Frame::of(0, &bytes).expect("it fits")
        };
        (0..flows).map(one).collect()
    }

    #[test]
    fn flow_cache_grows_and_counts_every_packet() {
        const FLOWS: u32 = 32_000;
        for family in [Family::Inet, Family::Inet6] {
            let rules = text::read("pass in all keep state").expect("sound rules");
            // The distribution of similar flows over the pairs depends on the seed.
            let config = StateConfig { seed: Some(1), ..StateConfig::default() };
            let wall = SharedFirewall::new(&rules, &config).expect("sound rules");
            let mut filter = wall.filter();
            let frames = frames(family, FLOWS);
            let pairs = |filter: &Filter| {
                let flows = filter.flows.as_ref().expect("a cache");
                if family == Family::Inet { flows.inet.pairs() } else { flows.inet6.pairs() }
            };
            let (mut now_ns, mut sent, rounds) = (0, 0, 8);
            for round in 0..rounds {
                for batch in frames.chunks(BATCH) {
                    let all = u64::MAX >> (BATCH - batch.len());
                    assert_eq!(filter.incoming(batch, all, now_ns), all);
                    (now_ns, sent) = (now_ns + 4_000, sent + batch.len() as u64);
                }
                // A pause, in which the cache writes its counters back.
                while round == 6 && filter.rest(now_ns) {}
            }
            assert_eq!(pairs(&filter), 65_536, "{family:?}");
            let flows = filter.flows.as_mut().expect("a cache");
            let hits: u32 = frames
                .chunks(BATCH)
                .map(|batch| {
                    flows.end_batch();
                    flows.take(batch, u64::MAX >> (BATCH - batch.len()), now_ns).count_ones()
                })
                .sum();
            // With half as many flows as pairs, 99.6 of 100 find a place.
            assert!(hits * 100 / FLOWS >= 98, "{family:?}: {hits} hits");
            sent += u64::from(hits);
            let connections = filter.connections();
            let packets: u64 = connections.iter().map(|one| one.packets[0]).sum();
            assert_eq!((connections.len() as u32, packets), (FLOWS, sent), "{family:?}");
            let first = connections.iter().map(|one| one.last_ns).min();
            assert!(first > Some(now_ns * 6 / 8), "{family:?}: {first:?} of {now_ns}");
        }
    }
}
