//! Frames to any group, as a router needs them: a network card drops those that nobody asked
//! it for.

use crate::NetioError;
use crate::packet_socket::listening_to;
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
    pub fn at(interface: &str) -> Result<AllMulticast, NetioError> {
        let what = ("receiving all groups", libc::PACKET_MR_ALLMULTI);
        Ok(AllMulticast { _socket: listening_to(interface, what)? })
    }

    /// Likewise, and frames to any station, of any VLAN.
    ///
    /// # Errors
    /// As [`AllMulticast::at`].
    pub fn promiscuous(interface: &str) -> Result<AllMulticast, NetioError> {
        let what = ("receiving all frames", libc::PACKET_MR_PROMISC);
        Ok(AllMulticast { _socket: listening_to(interface, what)? })
    }
}
