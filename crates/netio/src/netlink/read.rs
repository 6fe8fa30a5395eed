//! Interprets routing messages.

use super::message::{Malformed, Message, NLM_F_REPLACE, RTM_DELROUTE, attributes, word};
use super::next_hop::{NextHopEvent, next_hop};
use super::route::{RouteEvent, route};

/// From linux/rtnetlink.h and linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
/// Bytes before the attributes: `struct ifinfomsg`.
const LINK: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A route was added or removed.
    Route(RouteEvent),
    /// A new next hop object.
    NextHop(NextHopEvent),
    /// Current state of an interface.
    Link(LinkState),
    /// An interface is gone.
    LinkGone(u32),
    /// An address is gone or a next hop has changed; the kernel removes or changes the affected
    /// IPv4 routes without notification.
    Silent(Topic),
    /// End of a dump: 0, or the negative number of an error that ended it.
    Done(i32),
    /// Answer to a request: 0, or the negative number of an error.
    Answer(i32),
}

/// An object whose change may have changed routes silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// An address.
    Address,
    /// A next hop object.
    NextHop,
}

/// An interface in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Index of the interface.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
    /// True if the interface is up.
    pub is_up: bool,
    /// True if it has a carrier.
    pub has_carrier: bool,
    /// Number of times that it has lost its carrier, also between two messages; 0 if unknown.
    pub carrier_losses: u32,
}

/// Reads a message; `None` if it is about anything else.
///
/// # Errors
/// If the message ends too early.
pub fn read(message: &Message<'_>) -> Result<Option<Event>, Malformed> {
    let payload = message.payload;
    Ok(match message.kind {
        // Old kernels send no code.
        NLMSG_DONE => Some(Event::Done(word(payload, 0).unwrap_or(0) as i32)),
        NLMSG_ERROR => {
            let code = word(payload, 0).ok_or(Malformed { at: 0 })?;
            Some(Event::Answer(code as i32))
        }
        RTM_NEWROUTE | RTM_DELROUTE => route(message)?.map(Event::Route),
        RTM_NEWLINK => Some(Event::Link(link(payload)?)),
        RTM_DELLINK => Some(Event::LinkGone(word(payload, 4).ok_or(Malformed { at: 0 })?)),
        RTM_DELADDR => Some(Event::Silent(Topic::Address)),
        RTM_DELNEXTHOP => Some(Event::Silent(Topic::NextHop)),
        RTM_NEWNEXTHOP if message.flags & NLM_F_REPLACE != 0 => Some(Event::Silent(Topic::NextHop)),
        RTM_NEWNEXTHOP => next_hop(payload)?.map(Event::NextHop),
        RTM_NEWADDR => None,
        _ => None,
    })
}

fn link(bytes: &[u8]) -> Result<LinkState, Malformed> {
    let (Some(index), Some(flags)) = (word(bytes, 4), word(bytes, 8)) else {
        return Err(Malformed { at: 0 });
    };
    let (mut name, mut carrier_losses) = (String::new(), 0);
    for attribute in attributes(bytes.get(LINK..).ok_or(Malformed { at: 0 })?) {
        match attribute? {
            (IFLA_IFNAME, value) => {
                let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                name = String::from_utf8_lossy(&value[..end]).into_owned();
            }
            (IFLA_CARRIER_DOWN_COUNT, value) => carrier_losses = word(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    let (is_up, has_carrier) = (flags & IFF_UP != 0, flags & IFF_LOWER_UP != 0);
    Ok(LinkState { index, name, is_up, has_carrier, carrier_losses })
}

#[cfg(test)]
mod tests;
