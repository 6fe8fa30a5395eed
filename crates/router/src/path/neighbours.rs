//! Next hops as the link knows them: static ARP and NDP entries.
//!
//! There are no entries for single hosts of a connected link: a host that packets are
//! to reach has a route of its own.

use super::interface::Interface;
use crate::fib::NextHop;
use std::net::IpAddr;
use std::sync::Arc;

/// Where packets to a next hop are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Port that it is reached through.
    pub port: u8,
    /// Its MAC.
    pub mac: [u8; 6],
}

/// The IP address of a next hop: a router on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Port that it is reached through.
    pub port: u8,
    /// Its address. Routers are known by link-local ones in IPv6.
    pub address: IpAddr,
}

/// Neighbours by the number of the next hop. Clones share their entries.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    entries: Vec<Option<Arc<Entry>>>,
}

/// What is known of a next hop.
#[derive(Debug, Default)]
pub(super) struct Entry {
    neighbour: Option<Neighbour>,
    pub(super) gateway: Option<Gateway>,
}

/// The highest number of a next hop that can have a neighbour.
const NUMBER_MAX: u32 = (1 << 20) - 1;

/// The number of a next hop is beyond what a table of neighbours holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("next hop number {0}: neighbours have numbers up to {NUMBER_MAX}")]
pub struct NumberTooHigh(pub u32);

impl Neighbours {
    /// No neighbours.
    pub fn new() -> Neighbours {
        Neighbours::default()
    }

    /// Sets the neighbour of a next hop.
    pub fn set(&mut self, next_hop: NextHop, neighbour: Neighbour) -> Result<(), NumberTooHigh> {
        let gateway = self.gateway(next_hop).copied();
        self.put(next_hop, Entry { neighbour: Some(neighbour), gateway })
    }

    /// Sets the address of a next hop, which redirects tell. Without one, a next hop
    /// stands for the hosts of its link, so they are told the destination itself.
    pub fn set_gateway(
        &mut self,
        next_hop: NextHop,
        gateway: Gateway,
    ) -> Result<(), NumberTooHigh> {
        let neighbour = self.get(next_hop).copied();
        self.put(next_hop, Entry { neighbour, gateway: Some(gateway) })
    }

    fn put(&mut self, next_hop: NextHop, entry: Entry) -> Result<(), NumberTooHigh> {
        if next_hop.number() > NUMBER_MAX {
            return Err(NumberTooHigh(next_hop.number()));
        }
        let at = next_hop.number() as usize;
        if at >= self.entries.len() {
            self.entries.resize(at + 1, None);
        }
        self.entries[at] = Some(Arc::new(entry));
        Ok(())
    }

    /// The neighbour that was set for a next hop.
    #[inline]
    pub fn get(&self, next_hop: NextHop) -> Option<&Neighbour> {
        self.entry(next_hop)?.neighbour.as_ref()
    }

    /// The address that was set for a next hop.
    pub fn gateway(&self, next_hop: NextHop) -> Option<&Gateway> {
        self.entry(next_hop)?.gateway.as_ref()
    }

    /// All neighbours that were set.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.entries.iter().flatten().filter_map(|entry| entry.neighbour.as_ref())
    }

    /// Ports that neighbours and gateways are at.
    pub(super) fn ports(&self) -> impl Iterator<Item = u8> {
        let entries = self.entries.iter().flatten();
        entries.flat_map(|entry| {
            let neighbour = entry.neighbour.map(|neighbour| neighbour.port);
            neighbour.into_iter().chain(entry.gateway.map(|gateway| gateway.port))
        })
    }

    #[inline]
    fn entry(&self, next_hop: NextHop) -> Option<&Arc<Entry>> {
        self.entries.get(next_hop.number() as usize)?.as_ref()
    }

    /// What forwarding needs of each, in the same places.
    pub(super) fn links(&self, interfaces: &[Interface]) -> Box<[Link]> {
        let link = |entry: &Option<Arc<Entry>>| {
            let neighbour = entry.as_ref()?.neighbour?;
            let interface = interfaces.get(usize::from(neighbour.port))?;
            let mut macs = [0; 12];
            macs[..6].copy_from_slice(&neighbour.mac);
            macs[6..].copy_from_slice(&interface.mac);
            Some(Link { macs, mtu: interface.mtu, port: neighbour.port })
        };
        self.entries.iter().map(|entry| link(entry).unwrap_or(Link::UNKNOWN)).collect()
    }

    /// A way to hold on to an entry.
    #[inline]
    pub(super) fn reference(&self, next_hop: NextHop) -> Option<Arc<Entry>> {
        self.entry(next_hop).cloned()
    }
}

/// A neighbour as packets are rewritten: 16 bytes, so four to a cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Destination and source MAC, as they lie in the frame.
    pub(super) macs: [u8; 12],
    /// Largest IP packet, in bytes; 0 when the neighbour is unknown.
    pub(super) mtu: u16,
    pub(super) port: u8,
}

impl Link {
    pub(super) const UNKNOWN: Link = Link { macs: [0; 12], mtu: 0, port: u8::MAX };
}

const _: () = assert!(size_of::<Link>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_places_of_their_next_hops() {
        let number = |n| NextHop::new(n).expect("a number");
        let neighbour = Neighbour { port: 0, mac: [2; 6] };
        let mut neighbours = Neighbours::new();
        neighbours.set(number(2), neighbour).expect("a low number");
        assert_eq!(neighbours.get(number(2)), Some(&neighbour));
        assert_eq!(neighbours.get(number(1)), None);
        assert_eq!(neighbours.get(number(3)), None);
        let high = neighbours.set(number(NUMBER_MAX + 1), neighbour);
        assert_eq!(high, Err(NumberTooHigh(NUMBER_MAX + 1)));
        let interface = Interface { mac: [4; 6], mtu: 1500, addresses: Vec::new() };
        let links = neighbours.links(&[interface]);
        assert_eq!(links[2].macs, [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4]);
        assert_eq!((links[1].mtu, links[2].mtu), (0, 1500));
        let address = "198.18.0.9".parse().expect("one");
        let gateway = Gateway { port: 0, address };
        neighbours.set_gateway(number(2), gateway).expect("a low number");
        neighbours.set_gateway(number(0), gateway).expect("a low number");
        assert_eq!(neighbours.gateway(number(2)), Some(&gateway));
        assert_eq!(
            (neighbours.get(number(0)), neighbours.get(number(2))),
            (None, Some(&neighbour))
        );
        assert_eq!((neighbours.iter().count(), neighbours.ports().count()), (1, 3));
        let reference = neighbours.clone().reference(number(2)).expect("an entry");
        assert_eq!(Arc::strong_count(&reference), 2, "clones count the same references");
    }
}
