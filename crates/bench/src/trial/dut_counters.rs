//! DUT counters that a trial reads, and conditions it waits for.

/// Queries to the DUT during a trial. They take time, so they are made before and after the window,
/// never within it.
pub trait DutCounters {
    /// Packets of this trial that the DUT's counters report as dropped so far, of `sent`; `None` if
    /// the counters are incomplete.
    fn dropped(&mut self, _sent: u64) -> Option<u64> {
        None
    }
    /// Connection states in the DUT now; `None` if it keeps none or does not report them.
    fn states(&mut self) -> Option<u64> {
        None
    }
}

/// Placeholder for a DUT that is absent or not queried.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCounters;

impl DutCounters for NoCounters {}

/// Conditions for opening the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpeningConditions {
    /// Number of flows that must have arrived; 0 means no wait.
    pub flows: u32,
    /// Number of senders that each cycle through all flows.
    pub senders: u32,
    /// True if the DUT must hold a connection state for each flow.
    pub states: bool,
}
