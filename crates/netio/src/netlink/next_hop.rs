//! Next hop objects (ip-nexthop(8)), which routes name by number. With
//! `net.ipv4.nexthop_compat_mode=0` routes do not repeat their content.

use super::message::{Malformed, attributes, word};
use super::route::{Hop, RTNH_DEAD, address};

/// Attributes of next hops (linux/nexthop.h).
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;
/// Bytes before the attributes: `struct nhmsg`.
pub(super) const NEXT_HOP_MESSAGE: usize = 8;
/// Bytes of a member of a group: `struct nexthop_grp`.
const MEMBER: usize = 8;

/// A next hop object in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHopEvent {
    /// Number of the object.
    pub number: u32,
    /// Content of the object.
    pub object: NextHopObject,
}

/// Content of a next hop object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHopObject {
    /// Packets are dropped silently.
    Blackhole,
    /// A next hop, of weight 1.
    Hop {
        /// The next hop.
        hop: Hop,
        /// False if its link is gone or has no carrier.
        is_usable: bool,
        /// True if packets are encapsulated.
        is_encapsulated: bool,
    },
    /// Numbers of other objects, each with its share of flows.
    Group(Vec<(u32, u16)>),
}

pub(super) fn next_hop(bytes: &[u8]) -> Result<Option<NextHopEvent>, Malformed> {
    let (Some(&family), Some(flags), Some(rest)) =
        (bytes.first(), word(bytes, 4), bytes.get(NEXT_HOP_MESSAGE..))
    else {
        return Err(Malformed { at: 0 });
    };
    let mut hop = Hop { gateway: None, interface: 0, weight: 1 };
    let (mut number, mut group) = (None, None);
    let (mut is_blackhole, mut is_encapsulated) = (false, false);
    for attribute in attributes(rest) {
        let (kind, value) = attribute?;
        match kind {
            NHA_ID => number = word(value, 0),
            NHA_GROUP => group = Some(members(value)?),
            NHA_BLACKHOLE => is_blackhole = true,
            NHA_OIF => hop.interface = word(value, 0).ok_or(Malformed { at: 0 })?,
            NHA_GATEWAY => hop.gateway = address(family, value),
            NHA_ENCAP_TYPE | NHA_ENCAP => is_encapsulated = true,
            _ => {}
        }
    }
    let is_usable = flags & u32::from(RTNH_DEAD) == 0;
    let object = match group {
        Some(group) => NextHopObject::Group(group),
        None if is_blackhole => NextHopObject::Blackhole,
        None => NextHopObject::Hop { hop, is_usable, is_encapsulated },
    };
    Ok(number.map(|number| NextHopEvent { number, object }))
}

fn members(bytes: &[u8]) -> Result<Vec<(u32, u16)>, Malformed> {
    if !bytes.len().is_multiple_of(MEMBER) {
        return Err(Malformed { at: 0 });
    }
    let member = |bytes: &[u8]| {
        // The weight less one in 16 bits, whose upper half old kernels leave 0.
        let weight = u16::from(bytes[4]) | u16::from(bytes[5]) << 8;
        Some((word(bytes, 0)?, weight.saturating_add(1)))
    };
    Ok(bytes.chunks(MEMBER).filter_map(member).collect())
}
