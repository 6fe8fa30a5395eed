//! Taps of the kernel's stack for the router's interfaces.

use crate::NetioError;
use crate::netlink::{Groups, Netlink, configure_link, new_address};
use crate::tun;
use crate::xdp::interface_index;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// From linux/if_tun.h.
const TUNSETCARRIER: libc::c_ulong = 0x4004_54e2;

/// A tap of the kernel's stack; gone when all its queues and carriers are dropped.
#[derive(Debug)]
pub struct HostDevice {
    name: String,
    index: u32,
    queues: Vec<OwnedFd>,
    netlink: Netlink,
}

impl HostDevice {
    /// Creates the device with this MAC and MTU in the calling thread's network namespace and sets
    /// it up.
    ///
    /// # Errors
    /// Without CAP_NET_ADMIN over the namespace or `/dev/net/tun`, if the name is taken, or if the
    /// kernel refuses MAC or MTU.
    pub fn make(name: &str, queues: u16, link: ([u8; 6], u16)) -> Result<HostDevice, NetioError> {
        let queues = tun::open_plain(name, queues)?;
        let index = interface_index(name)?;
        // The router handles the link: the kernel solicits no routes or addresses.
        for setting in ["accept_ra", "router_solicitations"] {
            // Without IPv6 there is nothing to set.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{setting}"), "0");
        }
        let mut netlink = Netlink::open(Groups::None)?;
        let what = format!("setting {name} up");
        let has_inet6 = Path::new("/proc/sys/net/ipv6/conf").join(name).exists();
        netlink.request(&what, |number| configure_link(number, index, link, has_inet6))?;
        Ok(HostDevice { name: name.to_owned(), index, queues, netlink })
    }

    /// Adds an address with its prefix length, in the namespace where the device was created.
    ///
    /// # Errors
    /// If the kernel refuses; see [`has_no_inet6`].
    pub fn add_address(&mut self, address: (IpAddr, u8)) -> Result<(), NetioError> {
        let what = format!("giving {} the address {}/{}", self.name, address.0, address.1);
        let index = self.index;
        self.netlink.request(&what, |number| new_address(number, index, address))
    }

    /// Index of the interface in its namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns a handle to switch the carrier.
    ///
    /// # Errors
    /// If the process has reached its limit of descriptors.
    pub fn carrier(&self) -> Result<Carrier, NetioError> {
        let first = self.queues.first().map(OwnedFd::try_clone);
        let copy = first.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        copy.map(Carrier).map_err(|e| NetioError::system("copying a descriptor", e))
    }

    /// Returns the queues, one for each worker.
    pub fn into_queues(self) -> Vec<OwnedFd> {
        self.queues
    }
}

/// True for the kernel's answer to an IPv6 address if IPv6 is disabled, at a device or globally.
pub fn has_no_inet6(error: &NetioError) -> bool {
    matches!(error.errno(), Some(libc::EACCES | libc::EOPNOTSUPP | libc::EAFNOSUPPORT))
}

/// Carrier of a host device: on as long as the router's interface has a carrier.
#[derive(Debug)]
pub struct Carrier(OwnedFd);

impl Carrier {
    /// Switches the carrier on or off.
    ///
    /// # Errors
    /// If the kernel refuses, e.g. because the device was deleted.
    pub fn set(&self, is_on: bool) -> Result<(), NetioError> {
        let value = libc::c_int::from(is_on);
        // SAFETY: TUNSETCARRIER reads one int, which outlives the call.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), TUNSETCARRIER, &raw const value) };
        if status == 0 {
            return Ok(());
        }
        Err(NetioError::system("switching a tap's carrier", io::Error::last_os_error()))
    }
}
