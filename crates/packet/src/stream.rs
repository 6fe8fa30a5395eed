//! The packets that one experiment sends, as senders, receivers, agents, guests and generators
//! of other projects must agree on them.

use crate::address::{Side, flow_address};
use crate::{Family, Flows, FrameSize};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// UDP ports of RFC 2544 appendix C.2.6.4 (source 0xC020, destination 7, echo).
pub const SOURCE_PORT: u16 = 0xc020;
/// See [`SOURCE_PORT`].
pub const DESTINATION_PORT: u16 = 7;
/// Time to live and hop limit of sent packets.
pub const TTL: u8 = 64;

/// Description of a stream of packets. Identity and MACs are added per run: see
/// [`Template::new`](crate::Template::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Address family.
    pub family: Family,
    /// Bytes of a frame with FCS, or of the frames of a mix.
    pub frame_size: FrameSize,
    /// Addresses of both sides.
    pub flows: Flows,
    /// Endpoints outside the address plan. `None` for [`Endpoints::planned`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
}

/// First addresses, ports and time to live of a stream. Further flows add their indices to the last
/// 32 bits of the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// First source address.
    pub source: IpAddr,
    /// First destination address, of the same family.
    pub destination: IpAddr,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
    /// Time to live or hop limit.
    pub ttl: u8,
}

impl Endpoints {
    /// Endpoints of the benchmark's address plan ([`crate::address`]).
    pub fn planned(family: Family) -> Endpoints {
        Endpoints {
            source: flow_address(family, Side::Sender, 0),
            destination: flow_address(family, Side::Receiver, 0),
            source_port: SOURCE_PORT,
            destination_port: DESTINATION_PORT,
            ttl: TTL,
        }
    }

    /// Endpoints of the other direction.
    pub fn swapped(self) -> Endpoints {
        Endpoints {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ttl: self.ttl,
        }
    }

    /// Last 32 bits of source and destination, in host order.
    pub fn lows(&self) -> (u32, u32) {
        let low = |address| match address {
            IpAddr::V4(address) => u32::from(address),
            IpAddr::V6(address) => u128::from(address) as u32,
        };
        (low(self.source), low(self.destination))
    }

    /// True if the addresses of all flows exist: counting up does not overflow.
    pub fn have_room_for(&self, flows: Flows) -> bool {
        let (source, destination) = self.lows();
        let has_room = |low: u32, count: u32| low.checked_add(count.saturating_sub(1)).is_some();
        has_room(source, flows.sources) && has_room(destination, flows.destinations)
    }

    /// True if both addresses are of this family.
    pub fn are_of(&self, family: Family) -> bool {
        [self.source, self.destination].iter().all(|address| match family {
            Family::Inet => address.is_ipv4(),
            Family::Inet6 => address.is_ipv6(),
        })
    }
}

impl Stream {
    /// Endpoints of the first flow.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints.unwrap_or(Endpoints::planned(self.family))
    }

    /// A stream of `family` in frames of `frame_size` bytes with FCS, or of a mix of sizes.
    pub fn new(family: Family, frame_size: impl Into<FrameSize>, flows: Flows) -> Stream {
        Stream { family, frame_size: frame_size.into(), flows, endpoints: None }
    }
}
