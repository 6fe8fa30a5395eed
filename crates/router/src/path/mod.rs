//! What happens to a packet between two ports.
//!
//! A batch runs to completion: check all its packets, ask the firewall, look all
//! destinations up together, rewrite all. What can't be forwarded is counted by its
//! [`Reason`], or handed to the slow path, which turns the frame into an answer
//! where there is one. Every frame that came in is counted as forwarded, dropped or
//! handed over, exactly once.
//!
//! Frames stay in their buffers: each says afterwards at which port it goes out, if
//! at any. Receiving and sending belong to the caller, and so does the time.

pub mod counters;
mod ethernet;
pub mod firewall;
mod interface;
mod ipv4;
mod ipv6;
pub mod neighbours;
mod slow;

pub use counters::{Class, Counters, Reason, Snapshot, Tally};
pub use firewall::{Firewall, NoFirewall};
pub use fwdlab_port::Frame;
pub use fwdlab_port::frame::BATCH;
pub use interface::Interface;
pub use neighbours::{Neighbour, Neighbours};
pub use slow::Rate;

use crate::fib::{Address, Fib, NextHop, Shared, V4, V6};
use ethernet::Destination;
use fwdlab_port::frame::CAPACITY;
use interface::Owners;
use neighbours::Link;
use slow::Slow;
use std::net::IpAddr;
use std::sync::Arc;

/// Ports that a router can have.
const PORTS_MAX: usize = 255;

/// A table that packets are forwarded by: a [`Fib`], or one that is [`Shared`] with
/// whoever changes it.
pub trait Lookup<A>: Send + Sync {
    /// As [`Fib::lookup_batch`].
    fn lookup_batch(&self, addresses: &[A], next_hops: &mut [Option<NextHop>]);
}

macro_rules! lookup {
    ($address:ty) => {
        impl<F: Fib<$address>> Lookup<$address> for F {
            fn lookup_batch(&self, addresses: &[$address], next_hops: &mut [Option<NextHop>]) {
                Fib::lookup_batch(self, addresses, next_hops);
            }
        }

        impl<F: Fib<$address> + Clone> Lookup<$address> for Shared<$address, F> {
            fn lookup_batch(&self, addresses: &[$address], next_hops: &mut [Option<NextHop>]) {
                self.read().lookup_batch(addresses, next_hops);
            }
        }
    };
}

// Not for every `Address`: another crate's own could make the two overlap.
lookup!(V4);
lookup!(V6);

/// How a router is set up, apart from its routes.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Interfaces, one for each port.
    pub interfaces: Vec<Interface>,
    /// Next hops.
    pub neighbours: Neighbours,
    /// ICMP and ICMPv6 error messages that each worker may send.
    pub errors: Rate,
    /// Answers to ARP, neighbour discovery and echo requests, likewise.
    pub answers: Rate,
}

/// What can't be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Ports are numbered in a byte.
    #[error("{0} interfaces: there may be up to {PORTS_MAX}")]
    TooManyPorts(usize),
    /// An MTU that IPv6 forbids or that buffers don't hold.
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
    /// A neighbour at a port that has no interface.
    #[error("a neighbour at port {0}, which has no interface")]
    NeighbourPort(u8),
}

/// The smallest MTU (RFC 8200 section 5).
pub const MTU_MIN: u16 = 1280;
/// The largest MTU that buffers hold.
pub const MTU_MAX: u16 = (CAPACITY - ethernet::HEADER) as u16;

/// One worker's router.
pub struct Router<W = NoFirewall> {
    ports: Ports,
    links: Box<[Link]>,
    inet: Lane<V4>,
    inet6: Lane<V6>,
    firewall: W,
    interfaces: Vec<Interface>,
    slow: Slow,
    troubled: Vec<Trouble>,
    tally: Tally,
}

/// A packet for the slow path.
struct Trouble {
    place: usize,
    reason: Reason,
    /// Of the next link.
    mtu: u16,
}

/// What checking a frame needs.
struct Ports {
    macs: Vec<u64>,
    owners: Owners,
}

/// The packets of one family in a batch.
struct Lane<A> {
    fib: Arc<dyn Lookup<A>>,
    count: usize,
    addresses: [A; BATCH],
    /// Where in the batch each packet is.
    places: [u8; BATCH],
    next_hops: [Option<NextHop>; BATCH],
}

impl<W: Firewall> Router<W> {
    /// A router with these tables, which counts in `tally`.
    pub fn new(
        config: &Config,
        inet: Arc<dyn Lookup<V4>>,
        inet6: Arc<dyn Lookup<V6>>,
        firewall: W,
        tally: Tally,
    ) -> Result<Router<W>, ConfigError> {
        config.check()?;
        let interfaces = &config.interfaces;
        let macs = interfaces.iter().map(|interface| ethernet::number(interface.mac)).collect();
        Ok(Router {
            ports: Ports { macs, owners: Owners::of(interfaces) },
            links: config.neighbours.links(interfaces),
            inet: Lane::new(inet),
            inet6: Lane::new(inet6),
            firewall,
            interfaces: interfaces.clone(),
            slow: Slow::new(config.errors, config.answers),
            troubled: Vec::with_capacity(BATCH),
            tally,
        })
    }

    /// Forwards a batch. Afterwards [`Frame::egress`] of each says where it goes, and
    /// what became of it is counted, but not seen before [`Router::flush`].
    ///
    /// `now_ns` is a time that never goes back, in nanoseconds from any beginning.
    pub fn process(&mut self, batch: &mut [Frame], now_ns: u64) {
        for batch in batch.chunks_mut(BATCH) {
            self.check(batch, now_ns);
            self.forward(batch, now_ns);
            self.answer(batch, now_ns);
        }
    }

    /// Counts packets that were forwarded as lost: the port had no room for them.
    pub fn no_room(&mut self, packets: u64) {
        self.tally.take_back(Reason::Forwarded, packets);
        self.tally.add(Reason::NoRoom, packets);
    }

    /// Makes what was counted visible to others.
    pub fn flush(&mut self) {
        self.tally.flush();
    }

    /// Sorts packets into lanes, or out.
    fn check(&mut self, batch: &mut [Frame], now_ns: u64) {
        (self.inet.count, self.inet6.count) = (0, 0);
        let mut among = 0;
        for (place, frame) in batch.iter_mut().enumerate() {
            frame.send_nowhere();
            match self.ports.check(frame) {
                Ok(Destination::Inet(address)) => self.inet.push(place, address),
                Ok(Destination::Inet6(address)) => self.inet6.push(place, address),
                Err(reason) => {
                    sort_out(&mut self.tally, &mut self.troubled, place, reason, 0);
                    continue;
                }
            }
            among |= 1 << place;
        }
        let passed = self.firewall.incoming(batch, among, now_ns) & among;
        if passed != among {
            blocked(&mut self.tally, &mut self.firewall, among ^ passed);
            self.inet.retain(passed);
            self.inet6.retain(passed);
        }
    }

    /// Sends what is in the lanes.
    fn forward(&mut self, batch: &mut [Frame], now_ns: u64) {
        let Router { links, inet, inet6, tally, troubled, firewall, .. } = self;
        let mut among = 0u64;
        let mut except = |place, reason, mtu| sort_out(tally, troubled, place, reason, mtu);
        for (place, next_hop) in inet.lookup() {
            let link = link(links, next_hop);
            match ipv4::rewrite(&mut batch[place], link) {
                Ok(()) => among |= 1 << place,
                Err(_) if next_hop.is_none() => except(place, Reason::SlowNoRoute, 0),
                Err(reason) => except(place, reason, link.mtu),
            }
        }
        for (place, next_hop) in inet6.lookup() {
            let link = link(links, next_hop);
            match ipv6::rewrite(&mut batch[place], link) {
                Ok(()) => among |= 1 << place,
                Err(_) if next_hop.is_none() => except(place, Reason::SlowNoRoute, 0),
                Err(reason) => except(place, reason, link.mtu),
            }
        }
        let passed = firewall.outgoing(batch, among, now_ns) & among;
        if passed != among {
            blocked(tally, firewall, among ^ passed);
            for place in (0..batch.len()).filter(|place| (among ^ passed) >> place & 1 != 0) {
                batch[place].send_nowhere();
            }
        }
        tally.add(Reason::Forwarded, u64::from(passed.count_ones()));
    }

    /// The slow path.
    fn answer(&mut self, batch: &mut [Frame], now_ns: u64) {
        for Trouble { place, reason, mtu } in self.troubled.drain(..) {
            let frame = &mut batch[place];
            let port = usize::from(frame.ingress());
            let interface = &self.interfaces[port];
            let outcome = self.slow.handle(frame, reason, mtu, interface, now_ns);
            self.tally.add(outcome, 1);
        }
    }
}

/// Counts a packet that isn't forwarded, and keeps it in mind for the slow path.
#[cold]
fn sort_out(
    tally: &mut Tally,
    troubled: &mut Vec<Trouble>,
    place: usize,
    reason: Reason,
    mtu: u16,
) {
    tally.add(reason, 1);
    if reason.class() == Class::Slow {
        troubled.push(Trouble { place, reason, mtu });
    }
}

/// Counts packets that the firewall holds back.
#[cold]
fn blocked<W: Firewall>(tally: &mut Tally, firewall: &mut W, packets: u64) {
    let packets = u64::from(packets.count_ones());
    let full = firewall.take_full().min(packets);
    tally.add(Reason::StateFull, full);
    tally.add(Reason::Firewall, packets - full);
}

/// The link of a next hop; where there is none, one that no packet fits.
#[inline(always)]
fn link(links: &[Link], next_hop: Option<NextHop>) -> &Link {
    let number = next_hop.map_or(usize::MAX, |next_hop| next_hop.number() as usize);
    links.get(number).unwrap_or(&Link::UNKNOWN)
}

impl Ports {
    #[inline(always)]
    fn check(&self, frame: &Frame) -> Result<Destination, Reason> {
        let mac = self.macs.get(usize::from(frame.ingress())).ok_or(Reason::PortUnknown)?;
        ethernet::check(frame, *mac, &self.owners)
    }
}

impl<A: Address> Lane<A> {
    fn new(fib: Arc<dyn Lookup<A>>) -> Lane<A> {
        let (addresses, places) = ([A::default(); BATCH], [0; BATCH]);
        Lane { fib, count: 0, addresses, places, next_hops: [None; BATCH] }
    }

    #[inline(always)]
    fn push(&mut self, place: usize, address: A) {
        self.addresses[self.count] = address;
        self.places[self.count] = place as u8;
        self.count += 1;
    }

    /// Keeps the packets at these places.
    #[cold]
    fn retain(&mut self, places: u64) {
        let mut kept = 0;
        for at in 0..self.count {
            if places >> self.places[at] & 1 != 0 {
                self.places[kept] = self.places[at];
                self.addresses[kept] = self.addresses[at];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Place and next hop of each packet.
    #[inline(always)]
    fn lookup(&mut self) -> impl Iterator<Item = (usize, Option<NextHop>)> {
        let count = self.count;
        let next_hops = &mut self.next_hops[..count];
        if count > 0 {
            self.fib.lookup_batch(&self.addresses[..count], next_hops);
        }
        let places = self.places[..count].iter().map(|&place| usize::from(place));
        places.zip(next_hops.iter().copied())
    }
}

impl Config {
    fn check(&self) -> Result<(), ConfigError> {
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
        let unknown = |neighbour: &&Neighbour| usize::from(neighbour.port) >= self.interfaces.len();
        match self.neighbours.iter().find(unknown) {
            Some(neighbour) => Err(ConfigError::NeighbourPort(neighbour.port)),
            None => Ok(()),
        }
    }
}
