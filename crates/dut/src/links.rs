//! Interfaces of the DUT, and their peers at the other ends of the cables.

use fwdlab_model::settings::Nat;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address, peer_address};
use std::fmt;
use std::net::IpAddr;

/// Interface of a namespace's DUT on the sender's side.
pub const INGRESS: &str = "d0";
/// Interface of a namespace's DUT on the receiver's side.
pub const EGRESS: &str = "d1";

/// Both sides of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Link towards the senders.
    pub ingress: Link,
    /// Link towards the receiver.
    pub egress: Link,
    /// Addresses and networks that the DUT must keep reaching through other interfaces; empty in
    /// namespaces.
    pub ways: Vec<ProtectedRoute>,
}

impl Links {
    /// Links of a testbed of namespaces, with the default addresses.
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

    /// Both links, the senders' first.
    pub fn both(&self) -> [&Link; 2] {
        [&self.ingress, &self.egress]
    }
}

/// Parses an address with its prefix length from `ADDRESS/LENGTH`.
pub fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}

/// One side of a DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The DUT's interface.
    pub interface: String,
    /// MAC of the interface.
    pub mac: [u8; 6],
    /// Addresses with prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Peers: one, or two senders behind a switch.
    pub peers: Vec<Peer>,
}

impl Link {
    /// Returns the interface's first address of this family that other links can reach; `None` if
    /// it has none.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        let mut addresses = self.addresses.iter().map(|(address, _)| *address);
        addresses.find(|address| match (family, address) {
            (Family::Inet, IpAddr::V4(_)) => true,
            (Family::Inet6, IpAddr::V6(address)) => !address.is_unicast_link_local(),
            _ => false,
        })
    }

    /// Source address of packets that a device translates and sends on this link; `None` if it
    /// translates none.
    pub fn translated(&self, nat: Nat, family: Family) -> Option<IpAddr> {
        self.address(family).filter(|_| nat.is_of_sources())
    }
}

/// An interface at the other end of a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Host's name in the lab file.
    pub host: String,
    /// Interface of the host.
    pub interface: String,
    /// MAC of the interface.
    pub mac: [u8; 6],
    /// Addresses, at most one per family.
    pub addresses: Vec<IpAddr>,
}

/// An address that the DUT must keep reaching, or a network that it is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedRoute {
    /// The address with full prefix length, or the network.
    pub network: (IpAddr, u8),
    /// Owner, for messages.
    pub whose: String,
}

impl ProtectedRoute {
    /// True if a route to `prefix` would divert traffic from this address or network. For an
    /// attached network only equal or longer prefixes do.
    pub fn is_lost_by(&self, prefix: (IpAddr, u8)) -> bool {
        let (address, length) = self.network;
        let is_one = length == bits(address);
        overlaps(self.network, prefix) && (is_one || prefix.1 >= length)
    }
}

impl fmt::Display for ProtectedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, length) = self.network;
        match length == bits(address) {
            true => write!(f, "{} ({address})", self.whose),
            false => write!(f, "{} ({address}/{length})", self.whose),
        }
    }
}

/// True if one of two prefixes contains the other.
pub fn overlaps(one: (IpAddr, u8), other: (IpAddr, u8)) -> bool {
    let shorter = u32::from(one.1.min(other.1));
    match (one.0, other.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32 - shorter.min(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128 - shorter.min(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Length of an address in bits.
pub fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// MAC addresses of the testbed's interfaces, locally administered.
pub mod mac {
    /// Sender.
    pub const SENDER: [u8; 6] = [2, 0x19, 0x80, 0, 0, 1];
    /// DUT, towards the sender.
    pub const INGRESS: [u8; 6] = [2, 0x19, 0x80, 0, 0, 2];
    /// DUT, towards the receiver.
    pub const EGRESS: [u8; 6] = [2, 0x19, 0x80, 0, 0, 3];
    /// Receiver.
    pub const RECEIVER: [u8; 6] = [2, 0x19, 0x80, 0, 0, 4];

    /// Formats a MAC address.
    pub fn text(mac: [u8; 6]) -> String {
        mac.map(|byte| format!("{byte:02x}")).join(":")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_detects_containment_in_both_orders() {
        let at = |text| prefix(text).expect("a prefix");
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.255.255.255/32", true),
            ("10.0.0.0/8", "11.0.0.0/32", false),
            ("0.0.0.0/0", "192.0.2.1/32", true),
            ("192.0.2.1/32", "192.0.2.1/32", true),
            ("192.0.2.1/32", "192.0.2.0/32", false),
            ("2001:2::/48", "2001:2:0:ffff::1/128", true),
            ("2001:2::/48", "2001:2:1::1/128", false),
            ("::/0", "2001:db8::1/128", true),
            ("::/0", "192.0.2.1/32", false),
        ] {
            let (a, b) = (at(one), at(other));
            assert_eq!((overlaps(a, b), overlaps(b, a)), (expected, expected), "{one} {other}");
        }
    }
}
