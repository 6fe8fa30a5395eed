//! The kernel's routes, links and addresses, by netlink (netlink(7), rtnetlink(7)).
//!
//! `message.rs` reads and writes the bytes on the socket; `read.rs`, `route.rs` and `next_hop.rs`
//! interpret them. All are functions of arbitrary bytes. `socket.rs` is the socket.

mod message;
mod next_hop;
mod read;
mod request;
mod route;
mod socket;

pub use message::{Malformed, Message, attributes, messages};
pub use next_hop::{NextHopEvent, NextHopObject};
pub use read::{Event, LinkState, Topic, read};
pub use request::{configure_link, new_address};
pub use route::{Hop, RouteEvent, RouteKind, RouteMtu, Unsupported};
pub use socket::{Groups, Netlink, Pending, wait_for};
