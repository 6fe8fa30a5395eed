//! The DUT's interfaces and what is at the other end of their cables, as a laboratory's
//! file and its hosts say.

use std::net::IpAddr;

/// Both sides of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Towards the senders.
    pub ingress: Link,
    /// Towards the receiver.
    pub egress: Link,
}

impl Links {
    /// Both, the senders' first.
    pub fn both(&self) -> [&Link; 2] {
        [&self.ingress, &self.egress]
    }
}

/// One side of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The DUT's interface.
    pub interface: String,
    /// Its MAC.
    pub mac: [u8; 6],
    /// Its addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// What is at the other ends: one, or two senders behind a switch.
    pub peers: Vec<Peer>,
}

/// An interface at the other end of a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Host's name in the laboratory's file.
    pub host: String,
    /// Its interface.
    pub interface: String,
    /// Its MAC.
    pub mac: [u8; 6],
    /// Its addresses, at most one of a family.
    pub addresses: Vec<IpAddr>,
}
