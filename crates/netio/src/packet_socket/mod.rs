//! Sending and receiving through AF_PACKET (packet(7)): slower than XDP, but allowed wherever raw
//! sockets are, including namespaces of ordinary users.

mod offload;
mod outbox;
mod persistent;
mod port;
mod receiver;
mod ring;
mod sender;
mod socket;

pub use persistent::{LastingPort, Presence, Reserve, ReturnKind};
pub use port::{PacketConfig, PacketPort, Share};
pub use receiver::PacketReceiver;
pub use sender::sender;
pub(crate) use socket::listening_to;
