//! Configuration of a router.

use super::advertise::Advertiser;
use super::drop_log::DropLog;
use super::harvest::Pool;
use super::interface::Interface;
use super::neighbours::Neighbours;
use super::resolve::ReversePath;
use super::slow::Rate;
use super::{MTU_MAX, MTU_MIN, PORTS_MAX};
use crate::fib::{Address, V4, V6};
use fwdlab_netio::xsk::FlowTable;
use fwdlab_packet::forwarding::ForwardingPath;
use std::net::IpAddr;
use std::sync::Arc;

/// Configuration of a router, without its routes.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Interfaces, one for each port.
    pub interfaces: Vec<Interface>,
    /// Next hops.
    pub neighbours: Neighbours,
    /// Rate limit of ICMP and ICMPv6 error messages and redirects, for each worker and port. One
    /// receiver gets at most a quarter. Errors that path MTU discovery needs are limited separately
    /// for each source and destination.
    pub errors: Rate,
    /// Rate limits of answers to ARP and of answers to neighbour discovery, separate for each
    /// worker, port and requester.
    pub answers: Rate,
    /// Rate limit of answers to echo requests, for each worker and port.
    pub echoes: Echoes,
    /// Source filters, by port; ports beyond the last have none.
    pub reverse_paths: Vec<ReversePath>,
    /// Processing path of packets.
    pub path: ForwardingPath,
    /// Send ICMP redirects for packets that leave by the port at which they came in. The fast path
    /// then passes all of these packets to the full path.
    pub redirects: bool,
    /// Port to the router's own host for each interface: it passes frames that the router does not
    /// answer to the host, and sends the host's frames out of the interface. Ports beyond the last
    /// have none.
    pub host_ports: Vec<Option<u8>>,
    /// Rate limit of frames to the host, separate for each port and for three kinds: neighbour
    /// messages, frames to groups, and all others.
    pub host_rate: HostRate,
    /// Contents of the interfaces' advertisements; clones of this configuration share it.
    pub advertiser: Option<Arc<Advertiser>>,
    /// Log of dropped packets, if any; clones of this configuration share it.
    pub drop_log: Option<Arc<DropLog>>,
    /// Pool for entropy of every received packet, if any; clones of this configuration share it.
    pub harvest: Option<Arc<Pool>>,
    /// Table of flows of [`ForwardingPath::Xdp`]. `None` if the ports run no XDP program: the path
    /// is then the fast one, as with `harvest`, which needs every packet.
    pub flows: Option<Arc<FlowTable>>,
}

/// Rate limit of answers to echo requests, for each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echoes(pub Rate);

/// 10,000 per second, bursts of 1000: enough to answer a flood ping.
impl Default for Echoes {
    fn default() -> Echoes {
        Echoes(Rate { per_second: 10_000, burst: 1000 })
    }
}

/// Rate limit of frames to the router's host, for each kind and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRate(pub Rate);

/// Enough for routing protocols that start by sending all their routes.
impl Default for HostRate {
    fn default() -> HostRate {
        HostRate(Rate { per_second: 10_000, burst: 1000 })
    }
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// More ports than one byte can number.
    #[error("{0} interfaces: there may be up to {PORTS_MAX}")]
    TooManyPorts(usize),
    /// An MTU below IPv6's minimum or above the frame size.
    #[error("port {port}: an MTU of {mtu} bytes is not within {MTU_MIN} to {MTU_MAX}")]
    Mtu {
        /// The interface's port.
        port: usize,
        /// Its MTU.
        mtu: u16,
    },
    /// A multicast MAC.
    #[error("port {0}: its MAC is a group address")]
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
    /// A port to the host that an interface or another interface's host also uses, or that is out
    /// of range.
    #[error("host port {0}: it is another port's number, or beyond {PORTS_MAX}")]
    HostPort(u8),
    /// A neighbour at a port that has no interface.
    #[error("a neighbour at port {0}, which has no interface")]
    NeighbourPort(u8),
}

impl Config {
    /// Rejects invalid configurations.
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
