//! Routes of the kernel that the router does not follow.

use fwdlab_netio::netlink::RouteEvent;
use std::fmt;
use std::net::IpAddr;

/// A route that is not followed, with the cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    address: IpAddr,
    length: u8,
    source: Option<(IpAddr, u8)>,
    metric: u32,
    cause: Option<Cause>,
}

/// The cause for which a route is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It applies to some sources only.
    Source,
    /// It applies to one type of service only.
    TypeOfService,
    /// A next hop encapsulates packets.
    Encapsulation,
    /// It uses a next hop object with this number, which is unknown.
    NextHop(u32),
}

impl Cause {
    /// True if the route applies to some of the packets to its prefix only. Others take other
    /// routes.
    pub(super) fn is_of_some_packets(self) -> bool {
        matches!(self, Cause::Source | Cause::TypeOfService)
    }
}

impl LeftOut {
    pub(super) fn new(event: &RouteEvent, cause: Option<Cause>) -> LeftOut {
        let &RouteEvent { address, length, source, metric, .. } = event;
        LeftOut { address, length, source, metric, cause }
    }

    /// True if removing the other route removes this one.
    pub(super) fn is_removed_with(&self, other: &LeftOut) -> bool {
        // The next hop object may be known by now.
        self == other || matches!(self.cause, Some(Cause::NextHop(_))) && self.is_replaced_by(other)
    }

    /// True if the other route has the same place in the kernel's table.
    pub(super) fn is_replaced_by(&self, other: &LeftOut) -> bool {
        let place = |of: &LeftOut| (of.address, of.length, of.source, of.metric);
        place(self) == place(other)
            && (self.cause == Some(Cause::TypeOfService))
                == (other.cause == Some(Cause::TypeOfService))
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)?;
        if let Some((address, length)) = self.source {
            write!(f, " from {address}/{length}")?;
        }
        match self.cause {
            Some(Cause::Source) | None => Ok(()),
            Some(Cause::TypeOfService) => f.write_str(" (type of service)"),
            Some(Cause::Encapsulation) => f.write_str(" (encapsulation)"),
            Some(Cause::NextHop(number)) => write!(f, " (next hop {number} is unknown)"),
        }
    }
}
