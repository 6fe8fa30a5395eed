//! Next hops as the link knows them: static ARP and NDP entries.
//!
//! There are no entries for single hosts of a connected link: a host that packets are
//! to reach has a route of its own.

use super::interface::Interface;
use crate::fib::NextHop;
use std::sync::Arc;

/// Where packets to a next hop are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Port that it is reached through.
    pub port: u8,
    /// Its MAC.
    pub mac: [u8; 6],
}

/// Neighbours by the number of the next hop. Clones share their entries.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    entries: Vec<Option<Arc<Neighbour>>>,
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
        if next_hop.number() > NUMBER_MAX {
            return Err(NumberTooHigh(next_hop.number()));
        }
        let at = next_hop.number() as usize;
        if at >= self.entries.len() {
            self.entries.resize(at + 1, None);
        }
        self.entries[at] = Some(Arc::new(neighbour));
        Ok(())
    }

    /// The neighbour of a next hop.
    #[inline]
    pub fn get(&self, next_hop: NextHop) -> Option<&Neighbour> {
        self.entries.get(next_hop.number() as usize)?.as_deref()
    }

    /// All neighbours.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.entries.iter().flatten().map(Arc::as_ref)
    }

    /// What forwarding needs of each, in the same places.
    pub(super) fn links(&self, interfaces: &[Interface]) -> Box<[Link]> {
        let link = |entry: &Option<Arc<Neighbour>>| {
            let neighbour = entry.as_ref()?;
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
    pub(super) fn reference(&self, next_hop: NextHop) -> Option<Arc<Neighbour>> {
        self.entries.get(next_hop.number() as usize)?.clone()
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
        let reference = neighbours.clone().reference(number(2)).expect("an entry");
        assert_eq!(Arc::strong_count(&reference), 2, "clones count the same references");
    }
}
