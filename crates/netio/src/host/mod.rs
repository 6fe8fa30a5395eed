//! The router's own host: a kernel device for each of its interfaces.
//!
//! The kernel and its daemons answer what the router itself does not, above all routing protocols.
//! They see a tap with the interface's MAC and addresses. Frames they send there leave by the
//! interface, and frames for them arrive there.

mod allmulti;
mod device;
mod port;

pub use allmulti::AllMulticast;
pub use device::{Carrier, HostDevice, has_no_inet6};
pub use port::HostPort;
