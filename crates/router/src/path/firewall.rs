//! The firewall's two hooks: incoming, after the header checks and before the route lookup;
//! outgoing, after the headers are rewritten.
//!
//! Whole batches are filtered at once, so that a lock is taken, or memory fetched, once
//! for many packets. A set of packets is a word: bit n is the packet at place n.

use fwdlab_port::Frame;

/// Decides which of the packets that may be forwarded are.
///
/// Packets to or from the router itself are not filtered.
pub trait Firewall: Send {
    /// Those of the packets `among` a batch that may go on to the lookup. Their
    /// headers have been checked. `now_ns` never goes back.
    fn incoming(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// Those of the packets `among` a batch that may go out where
    /// [`Frame::egress`] says; headers are rewritten.
    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// Called now and then while no packet comes.
    fn rest(&mut self) {}

    /// Returns and resets the count of packets dropped because the table of states was full:
    /// they are counted under a reason of their own.
    fn take_state_limit_drops(&mut self) -> u64 {
        0
    }
}

/// Everything passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFirewall;

impl Firewall for NoFirewall {
    #[inline(always)]
    fn incoming(&mut self, _: &[Frame], among: u64, _: u64) -> u64 {
        among
    }

    #[inline(always)]
    fn outgoing(&mut self, _: &[Frame], among: u64, _: u64) -> u64 {
        among
    }
}
