//! The firewall's two hooks: incoming, after the header checks and before the route lookup;
//! outgoing, after the headers are rewritten.
//!
//! Whole batches are filtered at once, so that a lock is taken, or memory fetched, once
//! for many packets. A set of packets is a word: bit n is the packet at place n.

use fwdlab_netio::Frame;
use std::any::Any;

/// Decides which of the packets that may be forwarded are.
///
/// Packets of the router itself are not filtered; those to it have rules of their own.
pub trait Firewall: Send {
    /// Those of the packets `among` a batch that may go on to the lookup. Their
    /// headers have been checked. `now_ns` never goes back.
    fn incoming(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// Told of packets before [`Firewall::incoming`] is asked about the batch in which they are
    /// at the places from `from` on: time to ask for memory.
    #[inline(always)]
    fn ahead(&mut self, _packets: &[Frame], _from: usize) {}

    /// Those of the packets `among` a batch that may go out where
    /// [`Frame::egress`] says; headers are rewritten.
    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// True when a packet to the router itself may be answered. ARP and neighbour discovery
    /// are not asked about.
    fn local(&mut self, _: &Frame) -> bool {
        true
    }

    /// Called now and then while no packet comes. True if there is more to do than was done.
    fn rest(&mut self, _now_ns: u64) -> bool {
        false
    }

    /// What this one knows of connections, for the one that takes its place.
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Takes that over, as far as it is the same here.
    fn take_over(&mut self, _: Box<dyn Any + Send>) {}

    /// Returns and resets how many of the packets that did not pass were held back for
    /// reasons that are counted apart.
    fn take_held_back(&mut self) -> HeldBack {
        HeldBack::default()
    }
}

/// Packets that a firewall held back, but not by a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// There was no room for their state.
    pub full: u64,
    /// Their headers can't be read as far as rules ask for them.
    pub unreadable: u64,
    /// Fragments that don't follow a first one, or cover what has passed.
    pub fragments: u64,
    /// They say that they are of a TCP connection, and lie outside of its windows, or have a
    /// wrong checksum.
    pub stray: u64,
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
