//! The router's own host: a device of the kernel's for each of its interfaces.
//!
//! What the router doesn't answer itself, routing protocols above all, is the kernel's and
//! its daemons'. They see a tap with the interface's MAC and addresses; what they send there
//! goes out of the interface, and what is for them comes in there.

mod allmulti;
mod device;
mod port;

pub use allmulti::AllMulticast;
pub use device::{Carrier, HostDevice, has_no_inet6};
pub use port::HostPort;
