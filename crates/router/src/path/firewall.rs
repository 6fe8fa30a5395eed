//! The firewall's two hooks: incoming, after the header checks and before the route lookup;
//! outgoing, after the headers are rewritten.
//!
//! Whole batches are filtered in one call, so that many packets share one lock acquisition or
//! memory fetch. A set of packets is a word: bit n is the packet at place n.

use fwdlab_netio::Frame;
use fwdlab_netio::xsk::{FlowCount, FlowKey};
use std::any::Any;

/// Decides which of the valid packets are forwarded.
///
/// Packets from the router itself are not filtered; packets to it have separate rules.
pub trait Firewall: Send {
    /// Returns the packets `among` a batch that may continue to the lookup. Their headers have been
    /// checked. `now_ns` never decreases.
    fn incoming(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// Announces packets before [`Firewall::incoming`] gets the batch in which they are at the
    /// places from `from` on, for prefetching.
    #[inline(always)]
    fn ahead(&mut self, _packets: &[Frame], _from: usize) {}

    /// Returns the packets `among` a batch that may leave by [`Frame::egress`]; their headers are
    /// rewritten.
    fn outgoing(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64;

    /// Returns the packets of the last batch whose flows are steady: their further packets, except
    /// of TCP with SYN, FIN or RST, pass in both hooks and change only counters, as long as
    /// [`Firewall::credit`] keeps the flow.
    fn steady(&self) -> u64 {
        0
    }

    /// Adds packets of steady flows, at most 64, that passed without this firewall. Returns the
    /// flows that are still steady.
    fn credit(&mut self, _uses: &[FlowUse], _now_ns: u64) -> u64 {
        0
    }

    /// True if a packet to the router itself may be answered, or handed to its host. Not called for
    /// ARP and neighbour discovery.
    fn local(&mut self, _: &Frame, _now_ns: u64) -> bool {
        true
    }

    /// Background work, called from time to time while no packet comes. Returns true if there is
    /// more to do.
    fn rest(&mut self, _now_ns: u64) -> bool {
        false
    }

    /// Returns what this firewall knows of connections, for its replacement.
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Takes over the state of another firewall, as far as it is compatible.
    fn take_over(&mut self, _: Box<dyn Any + Send>) {}

    /// Returns the number of the rule that decided about a packet of the last batch; one beyond the
    /// last rule for the policy. `None` if no rule decided.
    fn rule(&self, _place: usize) -> Option<u32> {
        None
    }

    /// Returns and resets the places of dropped packets that have separate reasons.
    fn take_held_back(&mut self) -> HeldBack {
        HeldBack::default()
    }
}

/// Packets of a flow that passed without the firewall.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowUse {
    /// The flow.
    pub key: FlowKey,
    /// Its packets since the last report.
    pub count: FlowCount,
}

/// Places in the batch of packets that a firewall dropped, but not by a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// The table had no room for their state.
    pub full: u64,
    /// Their headers can't be read as far as rules need them.
    pub unreadable: u64,
    /// Fragments that don't follow a first one, or cover bytes that have passed.
    pub fragments: u64,
    /// They claim to belong to a TCP connection, but are outside its windows or have a wrong
    /// checksum.
    pub stray: u64,
}

/// Passes all packets.
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

    fn steady(&self) -> u64 {
        u64::MAX
    }

    fn credit(&mut self, _: &[FlowUse], _: u64) -> u64 {
        u64::MAX
    }
}
