//! Frames to any group, as a router needs them: a network card drops those that nobody asked
//! it for.

use crate::PortError;
use crate::packet_socket::listening_to_all_groups;
use std::os::fd::OwnedFd;

/// Lets an interface receive frames to all groups, as long as it lives.
#[derive(Debug)]
pub struct AllMulticast {
    _socket: OwnedFd,
}

impl AllMulticast {
    /// Of an interface in the calling thread's namespace.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or when there is no such interface.
    pub fn at(interface: &str) -> Result<AllMulticast, PortError> {
        Ok(AllMulticast { _socket: listening_to_all_groups(interface)? })
    }
}
