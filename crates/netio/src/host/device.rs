//! The device.

use crate::NetioError;
use crate::netlink::{Groups, Netlink, configure_link, new_address};
use crate::tun;
use crate::xdp::interface_index;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Of linux/if_tun.h.
const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;

/// A tap that the kernel's stack sees; gone when all its queues and carriers are dropped.
#[derive(Debug)]
pub struct HostDevice {
    name: String,
    index: u32,
    queues: Vec<OwnedFd>,
    netlink: Netlink,
}

impl HostDevice {
    /// Makes the device with this MAC and MTU in the calling thread's network namespace and
    /// sets it up.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN over the namespace or `/dev/net/tun`, when the name is taken, or
    /// what the kernel refuses of MAC and MTU.
    pub fn make(name: &str, queues: u16, link: ([u8; 6], u16)) -> Result<HostDevice, NetioError> {
        let queues = tun::open_plain(name, queues)?;
        let index = interface_index(name)?;
        // The router speaks for the link: nobody is asked for routes or addresses.
        for setting in ["accept_ra", "router_solicitations"] {
            // Where there is no IPv6 there is nothing to be set.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{setting}"), "0");
        }
        let mut netlink = Netlink::open(Groups::None)?;
        let what = format!("setting {name} up");
        let has_inet6 = Path::new("/proc/sys/net/ipv6/conf").join(name).exists();
        netlink.request(&what, |number| configure_link(number, index, link, has_inet6))?;
        Ok(HostDevice { name: name.to_owned(), index, queues, netlink })
    }

    /// Gives it an address with the length of its link's prefix, in the namespace where it was
    /// made.
    ///
    /// # Errors
    /// What the kernel says; see [`has_no_inet6`].
    pub fn add_address(&mut self, own: (IpAddr, u8)) -> Result<(), NetioError> {
        let what = format!("giving {} the address {}/{}", self.name, own.0, own.1);
        let index = self.index;
        self.netlink.request(&what, |number| new_address(number, index, own))
    }

    /// Number of the interface in its namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// A way to switch its carrier.
    ///
    /// # Errors
    /// When the process has as many descriptors as it may.
    pub fn carrier(&self) -> Result<Carrier, NetioError> {
        let first = self.queues.first().map(OwnedFd::try_clone);
        let copy = first.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        copy.map(Carrier).map_err(|e| NetioError::system("copying a descriptor", e))
    }

    /// Its queues, one for each worker.
    pub fn into_queues(self) -> Vec<OwnedFd> {
        self.queues
    }
}

/// True of what the kernel says to an IPv6 address where IPv6 is switched off, at a device or
/// altogether.
pub fn has_no_inet6(error: &NetioError) -> bool {
    matches!(error.errno(), Some(libc::EACCES | libc::EOPNOTSUPP | libc::EAFNOSUPPORT))
}

/// The carrier of a host device: it has one as long as the router's interface has.
#[derive(Debug)]
pub struct Carrier(OwnedFd);

impl Carrier {
    /// Switches it.
    ///
    /// # Errors
    /// What the kernel says, as of a device that was deleted.
    pub fn set(&self, is_there: bool) -> Result<(), NetioError> {
        let value = libc::c_int::from(is_there);
        // SAFETY: TUNSETCARRIER reads one int, which outlives the call.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), TUNSETCARRIER, &raw const value) };
        if status == 0 {
            return Ok(());
        }
        Err(NetioError::system("switching a tap's carrier", io::Error::last_os_error()))
    }
}
