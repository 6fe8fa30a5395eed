//! The kernel's routes, links and addresses, by netlink (netlink(7), rtnetlink(7)).
//!
//! `message.rs` reads and writes the bytes on the socket and `read.rs` interprets them: both are
//! functions of arbitrary bytes. `socket.rs` is the socket.

mod message;
mod read;
mod request;
mod socket;

pub use message::{Malformed, Message, attributes, messages};
pub use read::{Event, Hop, LinkState, RouteEvent, RouteKind, Topic, read};
pub use request::{configure_link, new_address};
pub use socket::{Groups, Netlink, Pending, wait_for};
