//! The benchmark's address plan.
//!
//! IPv4 uses 198.18.0.0/15 (RFC 2544 appendix C.2.2), IPv6 2001:2::/48 (RFC 5180 section 8). Each
//! is divided into the sender's half and the receiver's half.
//!
//! | | sender's half | link of the DUT | first flow address |
//! |---|---|---|---|
//! | inet | 198.18.0.0/16 | 198.18.0.0/24 (DUT .1, sender .2) | 198.18.1.0 |
//! | inet6 | 2001:2::/49 | 2001:2::/64 (DUT ::1, sender ::2) | 2001:2:0:1::1:0 |
//!
//! The receiver's side is the same, with 198.19.0.0/16 and 2001:2:0:8000::/49.

use crate::named;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

named! {
    /// Address family.
    pub enum Family {
        /// IPv4
        Inet = "inet",
        /// IPv6
        Inet6 = "inet6",
    }
}

impl Family {
    /// Returns the name of the protocol in sentences.
    pub fn protocol(self) -> &'static str {
        match self {
            Family::Inet => "IPv4",
            Family::Inet6 => "IPv6",
        }
    }
}

named! {
    /// Side of the DUT, of its interfaces and links, and of the traffic.
    pub enum Side {
        /// Source of packets.
        Sender = "sender",
        /// Destination of packets.
        Receiver = "receiver",
    }
}

/// Flows as a product of two address ranges: every source sends to every destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Number of source addresses.
    pub sources: u32,
    /// Number of destination addresses; the inner loop.
    pub destinations: u32,
}

impl Flows {
    /// Returns the number of flows (distinct 5-tuples).
    pub fn count(self) -> u32 {
        self.sources * self.destinations
    }
}

impl fmt::Display for Flows {
    /// Writes the number of flows, then sources and destinations.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} x {})", self.count(), self.sources, self.destinations)
    }
}

/// Maximum number of addresses in one range: the hosts of a /16 minus the /24 of the link and the
/// last /24.
pub const MAX_ADDRESSES: u32 = 65_024;

/// Returns the last 32 bits of the first flow address, in host byte order.
pub fn flow_base(family: Family, side: Side) -> u32 {
    match (family, side) {
        (Family::Inet, Side::Sender) => u32::from(Ipv4Addr::new(198, 18, 1, 0)),
        (Family::Inet, Side::Receiver) => u32::from(Ipv4Addr::new(198, 19, 1, 0)),
        (Family::Inet6, _) => 0x0001_0000,
    }
}

/// Returns address number `index` of a flow range.
pub fn flow_address(family: Family, side: Side, index: u32) -> IpAddr {
    let low = flow_base(family, side) + index;
    match family {
        Family::Inet => IpAddr::V4(Ipv4Addr::from(low)),
        Family::Inet6 => {
            let subnet = match side {
                Side::Sender => 0x0001,
                Side::Receiver => 0x8001,
            };
            let (high, low) = ((low >> 16) as u16, low as u16);
            IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, high, low))
        }
    }
}

/// Returns the prefix that is routed to a side.
pub fn routed_prefix(family: Family, side: Side) -> &'static str {
    match (family, side) {
        (Family::Inet, Side::Sender) => "198.18.0.0/16",
        (Family::Inet, Side::Receiver) => "198.19.0.0/16",
        (Family::Inet6, Side::Sender) => "2001:2::/49",
        (Family::Inet6, Side::Receiver) => "2001:2:0:8000::/49",
    }
}

/// Returns the address of the DUT's interface on a side, with the link's prefix length.
pub fn dut_address(family: Family, side: Side) -> &'static str {
    match (family, side) {
        (Family::Inet, Side::Sender) => "198.18.0.1/24",
        (Family::Inet, Side::Receiver) => "198.19.0.1/24",
        (Family::Inet6, Side::Sender) => "2001:2::1/64",
        (Family::Inet6, Side::Receiver) => "2001:2:0:8000::1/64",
    }
}

/// Returns the address of the sender or receiver on its link to the DUT.
pub fn peer_address(family: Family, side: Side) -> &'static str {
    match (family, side) {
        (Family::Inet, Side::Sender) => "198.18.0.2",
        (Family::Inet, Side::Receiver) => "198.19.0.2",
        (Family::Inet6, Side::Sender) => "2001:2::2",
        (Family::Inet6, Side::Receiver) => "2001:2:0:8000::2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_stay_inside_the_benchmark_prefixes() {
        let last = MAX_ADDRESSES - 1;
        assert_eq!(flow_address(Family::Inet, Side::Sender, 0).to_string(), "198.18.1.0");
        assert_eq!(flow_address(Family::Inet, Side::Sender, last).to_string(), "198.18.254.255");
        assert_eq!(flow_address(Family::Inet, Side::Receiver, last).to_string(), "198.19.254.255");
        assert_eq!(flow_address(Family::Inet6, Side::Sender, 5).to_string(), "2001:2:0:1::1:5");
        assert_eq!(
            flow_address(Family::Inet6, Side::Receiver, last).to_string(),
            "2001:2:0:8001::1:fdff"
        );
    }
}
