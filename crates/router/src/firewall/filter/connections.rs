//! The connections that a worker knows, and what its cache of flows still has to tell.

use super::Filter;
use crate::firewall::states::{Access, Connection, Flows, States, Work};
use std::sync::atomic::Ordering::Release;

impl Filter {
    /// The connections that have a state, in no order: of all workers, or where each
    /// has its own, of this one. Of packets that other workers' caches let through, those
    /// of the last moments (20 ms) may be missing.
    pub fn connections(&mut self) -> Vec<Connection> {
        struct List<'a>(&'a States);
        impl Work for List<'_> {
            type Result = Vec<Connection>;
            fn run<X: Access>(self, access: &mut X) -> Vec<Connection> {
                self.0.list(access)
            }
        }
        self.tell_flows();
        let states = &self.shared.states;
        states.with(self.own.as_mut(), List(states)).unwrap_or_default()
    }

    /// Writes the counters of the flow cache back to the states.
    pub(super) fn tell_flows(&mut self) {
        struct Tell<'a>(&'a States, &'a mut Flows);
        impl Work for Tell<'_> {
            type Result = ();
            fn run<X: Access>(self, access: &mut X) {
                let Tell(states, flows) = self;
                flows.tell(states, access);
            }
        }
        let states = &self.shared.states;
        if let Some(flows) = &mut self.flows {
            let _ = states.with(self.own.as_mut(), Tell(states, flows));
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        // Nobody waits for a worker that is gone.
        self.counts.forgotten.store(u64::MAX, Release);
        self.tell_flows();
        if let Some(own) = &self.own {
            self.shared.states.give_up(own);
        }
    }
}
