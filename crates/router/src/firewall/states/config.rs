//! Configuration of the tables of states.

use super::phase::Timeouts;
use crate::firewall::rule::Action;
use fwdlab_packet::forwarding::StateTable;
use std::time::Duration;

/// Configuration of the state tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// Storage of the states.
    pub kind: StateTable,
    /// Maximum number of states, over all workers.
    pub limit: usize,
    /// Action for new connections when the table is full: block, or pass without state.
    /// Existing connections are not affected.
    pub when_full: Action,
    /// Shorten timeouts as the table fills up, and when it is full, evict states that are closed or
    /// of which one side has sent fewer than two packets.
    pub gives_way: bool,
    /// Maximum number of states that one source may have begun, for IPv6 one /64; 0 for no limit.
    pub source_limit: u32,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Interval in which every state is checked for expiry once.
    pub interval: Duration,
    /// Enable the flow cache of each worker, which writes back to the states about a hundred times
    /// a second. It grows with their number to at most 128 MB per family, and a larger cache writes
    /// back less often: with a million flows every 2.6 seconds. Not used with a single lock for all
    /// states.
    pub flow_cache: bool,
    /// Seed of the hash; `None` for a random one.
    pub seed: Option<u64>,
}

impl Default for StateConfig {
    /// Sharded, one million states, pf's timeouts and interval.
    fn default() -> StateConfig {
        StateConfig {
            kind: StateTable::Sharded,
            limit: 1 << 20,
            when_full: Action::Block,
            gives_way: true,
            source_limit: 0,
            timeouts: Timeouts::default(),
            interval: Duration::from_secs(10),
            flow_cache: true,
            seed: None,
        }
    }
}
