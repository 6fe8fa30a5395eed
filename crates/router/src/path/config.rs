//! How a router is set up.

use super::advertise::Advertiser;
use super::harvest::Pool;
use super::interface::Interface;
use super::neighbours::Neighbours;
use super::resolve::ReversePath;
use super::slow::Rate;
use super::{MTU_MAX, MTU_MIN, PORTS_MAX};
use crate::fib::{Address, V4, V6};
use fwdlab_packet::forwarding::ForwardingPath;
use std::net::IpAddr;
use std::sync::Arc;

/// How a router is set up, apart from its routes.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Interfaces, one for each port.
    pub interfaces: Vec<Interface>,
    /// Next hops.
    pub neighbours: Neighbours,
    /// ICMP and ICMPv6 error messages that each worker may send.
    pub errors: Rate,
    /// Answers to ARP, and answers to neighbour discovery, likewise, each for each port.
    pub answers: Rate,
    /// Answers to echo requests, likewise.
    pub echoes: Echoes,
    /// Sources that may come in, by port; those of ports beyond the last may all.
    pub reverse_paths: Vec<ReversePath>,
    /// How packets are processed.
    pub path: ForwardingPath,
    /// Send ICMP redirects for packets that leave by the port at which they came in. The fast
    /// path then passes all such packets to the full path.
    pub redirects: bool,
    /// The port at which the router's own host is told what comes in at each port and isn't
    /// answered here, and sends what goes out there; ports beyond the last have none.
    pub host_ports: Vec<Option<u8>>,
    /// Frames that the host is told a second, at each port by itself: of neighbours, to
    /// groups, and all others, each as many.
    pub host_rate: HostRate,
    /// What interfaces advertise, which clones of this set-up share.
    pub advertiser: Option<Arc<Advertiser>>,
    /// Where entropy of every received packet goes, if anywhere: one pool, which clones
    /// of this set-up share.
    pub harvest: Option<Arc<Pool>>,
}

/// Answers to echo requests, of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoes(pub Rate);

/// Ten thousand a second, a thousand at once: a flood of one sender is answered.
impl Default for Echoes {
    fn default() -> Echoes {
        Echoes(Rate { per_second: 10_000, burst: 1000 })
    }
}

/// Frames that the router's host is told, of each kind at each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRate(pub Rate);

/// Enough for routing protocols that begin with all their routes.
impl Default for HostRate {
    fn default() -> HostRate {
        HostRate(Rate { per_second: 10_000, burst: 1000 })
    }
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Ports are numbered in a byte.
    #[error("{0} interfaces: there may be up to {PORTS_MAX}")]
    TooManyPorts(usize),
    /// An MTU that IPv6 forbids or that frames don't hold.
    #[error("port {port}: an MTU of {mtu} bytes is not within {MTU_MIN} to {MTU_MAX}")]
    Mtu {
        /// The interface's port.
        port: usize,
        /// Its MTU.
        mtu: u16,
    },
    /// A MAC with the bit of groups.
    #[error("port {0}: its MAC is that of a group")]
    GroupMac(usize),
    /// A prefix longer than its address.
    #[error("port {port}: {address} has no prefix of {length} bits")]
    PrefixLength {
        /// The interface's port.
        port: usize,
        /// Its address.
        address: IpAddr,
        /// The prefix's length.
        length: u8,
    },
    /// A host's port that an interface has, or another host's port, or none can have.
    #[error("host port {0}: it is another port's number, or beyond {PORTS_MAX}")]
    HostPort(u8),
    /// A neighbour at a port that has no interface.
    #[error("a neighbour at port {0}, which has no interface")]
    NeighbourPort(u8),
}

impl Config {
    /// Says what can't be set up.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.interfaces.len() > PORTS_MAX {
            return Err(ConfigError::TooManyPorts(self.interfaces.len()));
        }
        for (port, interface) in self.interfaces.iter().enumerate() {
            if !(MTU_MIN..=MTU_MAX).contains(&interface.mtu) {
                return Err(ConfigError::Mtu { port, mtu: interface.mtu });
            }
            if interface.mac[0] & 1 != 0 {
                return Err(ConfigError::GroupMac(port));
            }
            let too_long = |&&(address, length): &&(IpAddr, u8)| match address {
                IpAddr::V4(_) => length > V4::BITS,
                IpAddr::V6(_) => length > V6::BITS,
            };
            if let Some(&(address, length)) = interface.addresses.iter().find(too_long) {
                return Err(ConfigError::PrefixLength { port, address, length });
            }
        }
        let mut taken: Vec<u8> = Vec::new();
        for &port in self.host_ports.iter().flatten() {
            let is_free = usize::from(port) >= self.interfaces.len() && !taken.contains(&port);
            if !is_free || usize::from(port) >= PORTS_MAX {
                return Err(ConfigError::HostPort(port));
            }
            taken.push(port);
        }
        let unknown = |&port: &u8| usize::from(port) >= self.interfaces.len();
        match self.neighbours.ports().find(unknown) {
            Some(port) => Err(ConfigError::NeighbourPort(port)),
            None => Ok(()),
        }
    }
}
