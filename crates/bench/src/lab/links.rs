//! The DUT's interfaces and what is at the other end of their cables, as a laboratory's
//! file and its hosts say.

use super::ways::Way;
use crate::dut::linux::mac;
use crate::dut::{EGRESS, INGRESS};
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address, peer_address};
use std::net::IpAddr;

/// Both sides of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Towards the senders.
    pub ingress: Link,
    /// Towards the receiver.
    pub egress: Link,
    /// What the DUT must go on reaching by other interfaces; in namespaces nothing.
    pub ways: Vec<Way>,
}

impl Links {
    /// Those of a testbed of namespaces, by the address plan.
    pub fn of_namespaces() -> Links {
        let families = [Family::Inet, Family::Inet6];
        let link = |side, interface: &str, mac, peer: (&str, &str, [u8; 6])| Link {
            interface: interface.to_owned(),
            mac,
            addresses: families.iter().filter_map(|&f| prefix(dut_address(f, side))).collect(),
            peers: vec![Peer {
                host: peer.0.to_owned(),
                interface: peer.1.to_owned(),
                mac: peer.2,
                addresses: families
                    .iter()
                    .filter_map(|&f| peer_address(f, side).parse().ok())
                    .collect(),
            }],
        };
        let (sender, receiver) = (("sender", "g0", mac::SENDER), ("receiver", "r0", mac::RECEIVER));
        Links {
            ingress: link(Side::Sender, INGRESS, mac::INGRESS, sender),
            egress: link(Side::Receiver, EGRESS, mac::EGRESS, receiver),
            ways: Vec::new(),
        }
    }

    /// Both, the senders' first.
    pub fn both(&self) -> [&Link; 2] {
        [&self.ingress, &self.egress]
    }
}

/// An address with the length of its prefix, from `ADDRESS/LENGTH`.
pub fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
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
