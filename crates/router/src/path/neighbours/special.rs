//! Next hops that are no neighbours themselves.

use super::Gateway;
use crate::fib::NextHop;

/// What a next hop is that has no neighbour of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Special {
    /// The hosts of the link at a port, each by its own address.
    Link(u8),
    /// Several others, by weight: as many places as each is to have of all flows.
    Several(Box<[NextHop]>),
    /// Packets end, in silence (`blackhole`).
    Blackhole,
    /// Packets end, and their sender is told that the host can't be reached (`unreachable`).
    Unreachable,
    /// Packets end, and their sender is told that they are not wanted (`prohibit`).
    Prohibit,
    /// They are for the router's own host.
    Host,
}

/// Whose MAC a packet needs: a next hop's, or of those a link has, the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Hop {
    pub(in super::super) number: NextHop,
    pub(in super::super) host: Option<Gateway>,
}
