//! Connections of a running firewall: listed, or removed.

use super::super::states::{Access, Connection, States, Work};
use super::SharedFirewall;
use std::sync::atomic::Ordering::AcqRel;
use std::time::Duration;

/// Selects connections.
pub type Selector<'a> = &'a dyn Fn(&Connection) -> bool;

/// Connections that were selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Some of them, in no order.
    pub some: Vec<Connection>,
    /// Number of all of them.
    pub total: usize,
}

/// Result of removing connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of connections.
    pub count: usize,
    /// False if a worker has not discarded its cache in time: it may pass further packets of
    /// removed connections for some seconds.
    pub is_complete: bool,
}

impl SharedFirewall {
    /// Connections that `selects`, up to `most` of them; `None` if each worker has its own states.
    pub fn connections(&self, selects: Selector<'_>, most: usize, now_ns: u64) -> Option<Selected> {
        struct List<'a>(&'a States, Selector<'a>, usize, u64);
        impl Work for List<'_> {
            type Result = Selected;
            fn run<X: Access>(self, access: &mut X) -> Selected {
                let List(states, selects, most, now_ns) = self;
                let mut selected = Selected::default();
                states.visit(access, now_ns, |connection| {
                    if selects(&connection) {
                        selected.total += 1;
                        if selected.some.len() < most {
                            selected.some.push(connection);
                        }
                    }
                });
                selected
            }
        }
        self.states.with(None, List(&self.states, selects, most, now_ns))
    }

    /// Removes the connections that `selects`, also from the caches of workers, for which this waits
    /// at most `patience`. `None` if each worker has its own states.
    pub fn remove(&self, selects: Selector<'_>, patience: Duration) -> Option<Removed> {
        struct Remove<'a>(&'a States, Selector<'a>);
        impl Work for Remove<'_> {
            type Result = usize;
            fn run<X: Access>(self, access: &mut X) -> usize {
                let Remove(states, selects) = self;
                states.remove(access, selects)
            }
        }
        let count = self.states.with(None, Remove(&self.states, selects))?;
        let number = self.forgotten.fetch_add(1, AcqRel) + 1;
        Some(Removed { count, is_complete: self.have_followed(number, patience) })
    }
}
