//! Next hops that are not neighbours themselves.

use super::Gateway;
use crate::fib::NextHop;

/// Meaning of a next hop that has no neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Special {
    /// The hosts of the link at a port, each by its own address.
    Link(u8),
    /// Several other next hops, repeated by weight: each flow selects an index.
    Several(Box<[NextHop]>),
    /// Another next hop, with a smaller MTU in bytes.
    Limited(NextHop, u16),
    /// Drop packets silently (`blackhole`).
    Blackhole,
    /// Drop packets as if there were no route (`throw`).
    NoRoute,
    /// Drop packets, and report to their sender that the host is unreachable (`unreachable`).
    Unreachable,
    /// Drop packets, and report to their sender that they are prohibited (`prohibit`).
    Prohibit,
    /// Packets for the router's own host.
    Host,
}

/// The neighbour whose MAC a packet needs: the next hop, or a host of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Hop {
    pub(in super::super) number: NextHop,
    pub(in super::super) host: Option<Gateway>,
    /// Largest IP packet of the route, in bytes.
    pub(in super::super) mtu: u16,
}
