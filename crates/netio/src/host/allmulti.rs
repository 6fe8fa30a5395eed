//! Reception of all multicast groups, as a router needs it: network cards drop groups that were not
//! requested.

use crate::NetioError;
use crate::packet_socket::listening_to;
use std::os::fd::OwnedFd;

/// Makes an interface receive frames to all groups while this value exists.
#[derive(Debug)]
pub struct AllMulticast {
    _socket: OwnedFd,
}

impl AllMulticast {
    /// Receives all groups at an interface in the calling thread's namespace.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, or if there is no such interface.
    pub fn at(interface: &str) -> Result<AllMulticast, NetioError> {
        let what = ("receiving all groups", libc::PACKET_MR_ALLMULTI);
        Ok(AllMulticast { _socket: listening_to(interface, what)? })
    }

    /// Also receives frames to any station, of any VLAN.
    ///
    /// # Errors
    /// As [`AllMulticast::at`].
    pub fn promiscuous(interface: &str) -> Result<AllMulticast, NetioError> {
        let what = ("receiving all frames", libc::PACKET_MR_PROMISC);
        Ok(AllMulticast { _socket: listening_to(interface, what)? })
    }
}
