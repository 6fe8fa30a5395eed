//! The router's side of a port: MAC, MTU, addresses.

use crate::fib::{Address, V4, V6};
use std::net::IpAddr;

/// The router's end of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Unicast MAC.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes, from 1280 to 9216.
    pub mtu: u16,
    /// Own addresses, each with the length of the link's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl Interface {
    /// The first own address of a family, if any.
    pub(super) fn address<A: Address>(&self) -> Option<A> {
        self.addresses.iter().find_map(|&(address, _)| A::from_ip(address))
    }

    /// True for the anycast address of all routers of the link.
    pub(super) fn is_anycast(&self, address: V6) -> bool {
        self.addresses.iter().any(|&(own, length)| {
            V6::from_ip(own).is_some_and(|own| own != address && own.masked(length) == address)
        })
    }

    /// True for addresses on this link, by the prefixes of the own addresses.
    pub(super) fn is_on_link<A: Address>(&self, address: A) -> bool {
        let own =
            self.addresses.iter().filter_map(|&(own, length)| Some((A::from_ip(own)?, length)));
        own.into_iter().any(|(own, length)| own.shares(address, length))
    }

    /// The own address on the link of `target`, or the first one.
    pub(super) fn nearest<A: Address>(&self, target: A) -> Option<A> {
        let mut addresses = self.addresses.iter();
        let near = addresses
            .find_map(|&(own, length)| A::from_ip(own).filter(|own| own.shares(target, length)));
        near.or_else(|| self.address())
    }
}

/// Meaning of an address to this router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owned {
    /// An address of an interface.
    Address,
    /// The broadcast address of an attached IPv4 link.
    Broadcast,
}

/// Index of the router's own addresses.
pub(super) trait Own {
    fn inet(&self, address: V4) -> Option<Owned>;
    /// Link-local addresses belong to the link of one port (RFC 4007 section 6).
    fn inet6(&self, address: V6, port: u8) -> Option<Owned>;
}

/// Bits of the filter in front of the list.
const FILTER_BITS: usize = 4096;

/// Addresses of all interfaces. Nearly all packets are neither from nor to one of them, and for
/// nearly all of those a single bit decides.
#[derive(Clone, Debug)]
pub(super) struct Owners {
    filter: Box<[u64; FILTER_BITS / 64]>,
    inet: Vec<(V4, Owned)>,
    /// Link-local addresses include their port.
    inet6: Vec<(V6, Option<u8>)>,
}

impl Owners {
    pub(super) fn of(interfaces: &[Interface]) -> Owners {
        let filter = Box::new([0; FILTER_BITS / 64]);
        let mut owners = Owners { filter, inet: Vec::new(), inet6: Vec::new() };
        let ports = interfaces.iter().zip(0u8..);
        let all =
            ports.flat_map(|(interface, port)| interface.addresses.iter().map(move |a| (a, port)));
        for (&(address, length), port) in all {
            if let Some(own) = V4::from_ip(address) {
                owners.inet.push((own, Owned::Address));
                // Links with one or two addresses have no broadcast (RFC 3021).
                if length < 31 {
                    owners.inet.push((own.last(length), Owned::Broadcast));
                    owners.inet.push((own.masked(length), Owned::Broadcast));
                }
            }
            if let Some(own) = V6::from_ip(address) {
                let is_link_local = own.is_link_local();
                owners.inet6.push((own, is_link_local.then_some(port)));
                // Subnet-router anycast (RFC 4291 section 2.6.1), unless both addresses of the link
                // are assigned (RFC 6164).
                if !is_link_local && length < 127 {
                    owners.inet6.push((own.masked(length), None));
                }
            }
        }
        let inet = owners.inet.iter().map(|&(address, _)| bit4(address));
        let inet6 = owners.inet6.iter().map(|&(address, _)| bit6(address));
        for bit in inet.chain(inet6).collect::<Vec<_>>() {
            owners.filter[bit / 64] |= 1 << (bit % 64);
        }
        owners
    }

    #[inline(always)]
    fn misses(&self, bit: usize) -> bool {
        self.filter[bit / 64 % (FILTER_BITS / 64)] & 1 << (bit % 64) == 0
    }
}

impl Own for Owners {
    #[inline(always)]
    fn inet(&self, address: V4) -> Option<Owned> {
        if self.misses(bit4(address)) { None } else { find(&self.inet, address) }
    }

    #[inline(always)]
    fn inet6(&self, address: V6, port: u8) -> Option<Owned> {
        if self.misses(bit6(address)) { None } else { find6(&self.inet6, address, port) }
    }
}

/// The list without the filter: an address is compared with each entry.
pub(super) struct Walk<'a>(pub(super) &'a Owners);

impl Own for Walk<'_> {
    fn inet(&self, address: V4) -> Option<Owned> {
        find(&self.0.inet, address)
    }

    fn inet6(&self, address: V6, port: u8) -> Option<Owned> {
        find6(&self.0.inet6, address, port)
    }
}

#[inline(always)]
fn bit4(V4(address): V4) -> usize {
    (address.wrapping_mul(0x9e37_79b1) >> 20) as usize
}

#[inline(always)]
fn bit6(V6(address): V6) -> usize {
    let half = (address >> 64) as u64 ^ address as u64;
    bit4(V4((half >> 32) as u32 ^ half as u32))
}

#[cold]
fn find<A: Address>(owned: &[(A, Owned)], address: A) -> Option<Owned> {
    owned.iter().find(|(own, _)| *own == address).map(|&(_, what)| what)
}

#[cold]
fn find6(owned: &[(V6, Option<u8>)], address: V6, port: u8) -> Option<Owned> {
    let is_it = |&&(own, at): &&(V6, Option<u8>)| own == address && at.is_none_or(|at| at == port);
    owned.iter().find(is_it).map(|_| Owned::Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_knows_exactly_own_addresses_and_broadcasts() {
        let addresses = ["198.18.0.1", "2001:2::1", "198.19.0.0"].map(|a| a.parse().expect("one"));
        let addresses = addresses.into_iter().zip([24, 64, 31]).collect();
        let interface = Interface { mac: [2; 6], mtu: 1500, addresses };
        let owners = Owners::of(std::slice::from_ref(&interface));
        let inet = |text: &str| owners.inet(V4::from_ip(text.parse().expect("one")).expect("IPv4"));
        assert_eq!(inet("198.18.0.1"), Some(Owned::Address));
        assert_eq!(inet("198.18.0.255"), Some(Owned::Broadcast));
        assert_eq!(inet("198.18.0.0"), Some(Owned::Broadcast));
        assert_eq!(inet("198.19.0.0"), Some(Owned::Address));
        assert_eq!(inet("198.19.0.1"), None);
        let strangers = (0..1 << 16).filter(|n| owners.inet(V4(0xc613_0000 + n)).is_some()).count();
        assert_eq!(strangers, 1);
        let walked = |address| Walk(&owners).inet(V4(address));
        assert!((0..1 << 10).all(|n| walked(0xc612_0000 + n) == owners.inet(V4(0xc612_0000 + n))));
        let own6: V6 = V6(0x2001_0002 << 96 | 1);
        assert_eq!(owners.inet6(own6, 9), Some(Owned::Address));
        assert_eq!(owners.inet6(V6(own6.0 + 1), 0), None);
        assert_eq!(interface.address::<V4>(), Some(V4(0xc612_0001)));
    }
}
