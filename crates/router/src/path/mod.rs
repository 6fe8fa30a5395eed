//! Packet processing between two ports.
//!
//! On the fast path a batch runs to completion: check all its packets, apply the firewall, look up
//! all destinations together, rewrite all packets. Packets that need more (options, fragmentation,
//! redirects) take the full path one by one; with [`ForwardingPath::Full`], all packets do. Packets
//! that can't be forwarded are counted by their [`Reason`], or passed to the slow path, which turns
//! the frame into an answer if there is one. Every received frame is counted exactly once as
//! forwarded, dropped or passed to the slow path.
//!
//! Frames stay in their buffers: afterwards each contains its egress port, if any. Additional
//! frames are fetched with [`Router::take_emitted`]. The caller receives and sends frames and
//! provides the time.

mod advertise;
mod arp_queue;
mod check;
mod config;
pub mod counters;
mod drop_log;
mod egress;
mod ethernet;
pub mod firewall;
mod full;
mod handover;
pub mod harvest;
mod host;
mod interface;
mod ipv4;
mod ipv6;
mod lookup;
pub mod neighbours;
mod offload;
mod originated;
mod punt;
mod resolve;
mod slow;

pub use advertise::{AdvertisedOption, Advertisement, Advertiser, Nat64Length, Preference};
pub use config::{Config, ConfigError, Echoes, HostRate};
pub use counters::{Counters, Reason, Snapshot, Tally};
pub use drop_log::{DropLog, DropLogCounts, DropLogSetting};
pub use firewall::{Firewall, FlowUse, HeldBack, NoFirewall};
pub use fwdlab_netio::frame::BATCH;
pub use fwdlab_netio::{Batch, Frame};
pub use fwdlab_packet::forwarding::{Class, ForwardingPath};
pub use handover::HandedOver;
pub use interface::Interface;
pub(crate) use ipv4::is_martian;
pub use lookup::Lookup;
pub use neighbours::{Gateway, KnownNeighbour, Neighbour, Neighbours, Reachability, Special};
pub use resolve::ReversePath;
pub use slow::Rate;

use crate::fib::{NextHop, V4, V6};
use arp_queue::ArpQueue;
use check::Destination;
use egress::Egresses;
use full::Full;
use fwdlab_netio::frame::LONGEST;
use harvest::Pool;
use host::Host;
use interface::Owners;
use lookup::{AHEAD, Lane};
use neighbours::Link;
use offload::Offload;
use originated::OriginatedFrames;
use punt::{Exceptions, Rewrite, SlowPacket};
use slow::Slow;
use slow::learn::{self, Learnt};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of a router's ports.
const PORTS_MAX: usize = 255;

/// The smallest MTU (RFC 8200 section 5).
pub const MTU_MIN: u16 = 1280;
/// The largest MTU: a packet of this size fits into a frame with Ethernet header and two tags.
pub const MTU_MAX: u16 = 9216;

const _: () = assert!(MTU_MAX as usize + ethernet::HEADER + 8 <= LONGEST);

/// One worker's router.
pub struct Router<W = NoFirewall> {
    ports: Ports,
    links: Box<[Link]>,
    neighbours: Neighbours,
    /// Links to hosts to which this worker has sent recently.
    near: HashMap<Gateway, Link>,
    waiting: ArpQueue,
    /// Version of the neighbours from which `links` was built.
    changes: u64,
    /// Next time to check for expired neighbours.
    next_age_ns: u64,
    inet: Lane<V4>,
    inet6: Lane<V6>,
    firewall: W,
    interfaces: Vec<Interface>,
    /// Empty if there is no source filter.
    reverse_paths: Vec<ReversePath>,
    kind: ForwardingPath,
    redirects: bool,
    harvest: Option<Arc<Pool>>,
    offload: Option<Offload>,
    full: Full,
    slow: Slow,
    host: Host,
    advertiser: Option<Arc<Advertiser>>,
    emitted: OriginatedFrames,
    exceptions: Exceptions,
    drop_log: Option<Arc<DropLog>>,
    tally: Tally,
}

/// Data for checking frames.
struct Ports {
    macs: Vec<u64>,
    owners: Owners,
}

impl<W: Firewall> Router<W> {
    /// Creates a router with these tables, which counts in `tally`.
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
            // The order matters: anything learnt in between is then found by the next check.
            changes: config.neighbours.changes(),
            links: config.neighbours.links(interfaces),
            neighbours: config.neighbours.clone(),
            near: HashMap::new(),
            waiting: ArpQueue::default(),
            next_age_ns: match config.advertiser.is_some() || config.neighbours.are_asked_for() {
                true => 0,
                false => u64::MAX,
            },
            inet: Lane::new(inet),
            inet6: Lane::new(inet6),
            firewall,
            interfaces: interfaces.clone(),
            reverse_paths: match config.reverse_paths.iter().all(|&p| p == ReversePath::Off) {
                true => Vec::new(),
                false => config.reverse_paths.clone(),
            },
            kind: config.path,
            redirects: config.redirects,
            harvest: config.harvest.clone(),
            offload: match (&config.flows, &config.harvest, config.path) {
                (Some(table), None, ForwardingPath::Xdp) => Some(Offload::new(table, interfaces)),
                _ => None,
            },
            full: Full::default(),
            slow: Slow::new(config),
            host: Host::new(config),
            advertiser: config.advertiser.clone(),
            emitted: OriginatedFrames::default(),
            exceptions: Exceptions::new(
                config.drop_log.as_ref().map(|log| log.reasons()).unwrap_or_default(),
            ),
            drop_log: config.drop_log.clone(),
            tally,
        })
    }

    /// Forwards a batch. Afterwards [`Frame::egress`] of each frame is its egress port, and its
    /// outcome is counted; counts become visible with [`Router::flush`].
    ///
    /// `now_ns` is a monotonic time in nanoseconds, with any origin.
    pub fn process(&mut self, batch: &mut [Frame], now_ns: u64) {
        if now_ns >= self.next_age_ns {
            self.repeat_requests(now_ns);
        }
        if self.neighbours.changes() != self.changes {
            self.renew(now_ns);
        }
        if let Some(offload) = &mut self.offload {
            offload.begin(&mut self.firewall, now_ns);
        }
        for batch in batch.chunks_mut(BATCH) {
            if let Some(pool) = &self.harvest {
                batch.iter().for_each(|frame| pool.harvest(frame, now_ns));
            }
            match self.kind {
                ForwardingPath::Fast | ForwardingPath::Xdp => {
                    self.check(batch, now_ns);
                    self.forward(batch, now_ns);
                    self.forward_handed(batch, now_ns);
                }
                ForwardingPath::Full => self.process_fully(batch, now_ns),
            }
            self.answer(batch, now_ns);
            if !self.exceptions.asked.is_empty() {
                self.send_requests(now_ns);
            }
            if !self.exceptions.dropped.is_empty() {
                self.log_drops(batch, now_ns);
            }
        }
        // This batch may have contained the answer for which packets wait.
        if !self.waiting.is_empty() && self.neighbours.changes() != self.changes {
            self.renew(now_ns);
        }
    }

    /// Moves frames that the router sends in addition to received ones (fragments, redirects and
    /// requests for neighbours) to `work`, whose previous frames are lost, and returns their
    /// number. [`Frame::egress`] contains the port of each.
    ///
    /// Call this after [`Router::process`] until it returns 0: there is room for 256 frames;
    /// further ones are counted as lost, and not sent.
    #[inline]
    pub fn take_emitted(&mut self, work: &mut Batch) -> usize {
        self.emitted.take(work)
    }

    /// Counts frames of a batch as lost because the port had no room for them. They are forwarded
    /// packets or answers. A port can't distinguish the two, so they count as packets up to the
    /// number forwarded since the last flush, and beyond that as the router's own frames: an
    /// answered packet stays counted as answered.
    pub fn no_room(&mut self, frames: u64) {
        let packets = self.tally.take_back(Reason::Forwarded, frames);
        self.tally.add(Reason::NoRoom, packets);
        self.tally.add(Reason::ExtraLost, frames - packets);
    }

    /// Counts the router's own frames ([`Router::take_emitted`]) as lost because the port had no
    /// room for them.
    pub fn extra_lost(&mut self, frames: u64) {
        self.tally.add(Reason::ExtraLost, frames);
    }

    /// Background work. Call this from time to time while no packet comes; afterwards there may be
    /// frames to take ([`Router::take_emitted`]). Returns true if it should be called again soon.
    pub fn rest(&mut self, now_ns: u64) -> bool {
        let mut more = self.firewall.rest(now_ns);
        if self.offload.is_some() {
            more |= self.keep_flows(now_ns);
        }
        if self.advertiser.as_ref().is_some_and(|own| own.due_ns() <= now_ns) {
            self.advertise(now_ns);
        }
        if !self.waiting.is_empty() {
            self.check_waiting(now_ns);
        }
        more
    }

    /// Publishes the counts to readers.
    pub fn flush(&mut self) {
        self.tally.flush();
    }

    /// Validates the packets, and assigns them to the lookups of their family or to the exceptions.
    fn check(&mut self, batch: &mut [Frame], now_ns: u64) {
        (self.inet.count, self.inet6.count) = (0, 0);
        let mut among = 0;
        for (some, frames) in batch.chunks_mut(AHEAD).enumerate() {
            let from = some * AHEAD;
            for (place, frame) in (from..).zip(frames.iter_mut()) {
                frame.send_nowhere();
                match self.ports.check(frame).map_err(|reason| self.host.sorted(frame, reason)) {
                    Ok(Destination::Inet(address)) => self.inet.push(place, address),
                    Ok(Destination::Inet6(address)) => self.inet6.push(place, address),
                    Ok(Destination::Options) => self.exceptions.full.push(place as u8),
                    Err(reason) => {
                        self.exceptions.sort_out(&mut self.tally, place, reason, [0; 4]);
                        continue;
                    }
                }
                among |= 1 << place;
            }
            self.firewall.ahead(frames, from);
        }
        if !self.reverse_paths.is_empty() {
            let right = self.with_right_sources(batch, among);
            self.exceptions.drop_all(&mut self.tally, among ^ right, Reason::ReversePath);
            self.retain(right);
            among = right;
        }
        let passed = self.firewall.incoming(batch, among, now_ns) & among;
        if passed != among {
            self.exceptions.block(&mut self.tally, &mut self.firewall, among ^ passed);
            self.retain(passed);
        }
    }

    /// Drops all other packets from the lookups and exceptions.
    #[cold]
    fn retain(&mut self, among: u64) {
        self.inet.retain(among);
        self.inet6.retain(among);
        self.exceptions.full.retain(|place| among >> place & 1 != 0);
    }

    /// Looks up the destinations, rewrites the packets and applies the outgoing firewall.
    fn forward(&mut self, batch: &mut [Frame], now_ns: u64) {
        let Router { links, inet, inet6, tally, exceptions, firewall, .. } = self;
        let Router { neighbours, near, interfaces, .. } = self;
        let redirects = self.redirects;
        let mut egresses = Egresses { neighbours, links, near, interfaces };
        let mut among = 0u64;
        for (place, next_hop) in inet.lookup() {
            let link = link(links, next_hop);
            let frame = &mut batch[place];
            if redirects && link.port == frame.ingress() {
                exceptions.full.push(place as u8);
                continue;
            }
            match ipv4::rewrite(frame, link) {
                Ok(()) => among |= 1 << place,
                Err(reason) => {
                    let attempt = (next_hop, link, ipv4::rewrite as Rewrite);
                    let found =
                        exceptions.refuse(tally, &mut egresses, place, frame, reason, attempt);
                    among |= u64::from(found) << place;
                }
            }
        }
        for (place, next_hop) in inet6.lookup() {
            let link = link(links, next_hop);
            let frame = &mut batch[place];
            if redirects && link.port == frame.ingress() {
                exceptions.full.push(place as u8);
                continue;
            }
            match ipv6::rewrite(frame, link) {
                Ok(()) => among |= 1 << place,
                Err(reason) => {
                    let attempt = (next_hop, link, ipv6::rewrite as Rewrite);
                    let found =
                        exceptions.refuse(tally, &mut egresses, place, frame, reason, attempt);
                    among |= u64::from(found) << place;
                }
            }
        }
        let passed = firewall.outgoing(batch, among, now_ns) & among;
        if passed != among {
            exceptions.block(tally, firewall, among ^ passed);
            for place in (0..batch.len()).filter(|place| (among ^ passed) >> place & 1 != 0) {
                batch[place].send_nowhere();
            }
        }
        tally.add(Reason::Forwarded, u64::from(passed.count_ones()));
        if let Some(offload) = &mut self.offload {
            offload.learn(batch, passed, firewall.steady(), &exceptions.found, now_ns);
        }
        exceptions.found.clear();
        if !exceptions.unresolved.is_empty() {
            self.wait_all(batch, now_ns);
        }
    }

    /// Passes the exceptions to the slow path, and learns neighbours' MACs from them.
    fn answer(&mut self, batch: &mut [Frame], now_ns: u64) {
        for at in 0..self.exceptions.slow.len() {
            let SlowPacket { place, mut reason, word } = self.exceptions.slow[at];
            let frame = &mut batch[place];
            if reason == Reason::SlowExpired && self.is_for_host(frame) {
                self.tally.take_back(reason, 1);
                // As for packets with a larger TTL, whose lookup then finds the host.
                let passed = self.check_source(frame).and_then(|()| self.filter(frame, now_ns));
                reason = passed.map_or_else(|(why, _)| why, |()| Reason::SlowLocal);
                self.tally.add(reason, 1);
                if reason != Reason::SlowLocal {
                    self.exceptions.note(place, reason, self.firewall.rule(0));
                    continue;
                }
            }
            let port = usize::from(frame.ingress());
            let interface = &self.interfaces[port];
            if !may_be_answered(&mut self.firewall, frame, reason, now_ns) {
                self.tally.take_back(reason, 1);
                self.exceptions.block_one(&mut self.tally, &mut self.firewall, place);
                continue;
            }
            if self.neighbours.are_asked_for()
                && matches!(reason, Reason::SlowNeighbour | Reason::SlowLocal)
                && let Some(learnt) = learn::learnt(frame, interface)
            {
                let Learnt { address, mac, manner, confirms } = learnt;
                let gateway = Gateway { port: frame.ingress(), address };
                self.neighbours.learn(gateway, mac, (manner, confirms), now_ns);
            }
            if matches!(reason, Reason::SlowNeighbour | Reason::SlowLocal)
                && self.hear_solicitation(&batch[place], now_ns)
            {
                self.tally.add(Reason::Solicited, 1);
                continue;
            }
            let (frame, interface) = (&mut batch[place], &self.interfaces[port]);
            let mut outcome = self.slow.handle(frame, reason, word, interface, now_ns);
            if outcome == Reason::Silent {
                outcome = self.host.tell(frame, reason, now_ns);
            }
            self.tally.add(outcome, 1);
        }
        self.exceptions.slow.clear();
    }
}

/// Places in a set, in ascending order.
#[inline(always)]
pub(crate) fn places(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let place = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(place)
    })
}

/// An MTU in the format of error messages.
fn mtu_word(mtu: u16) -> [u8; 4] {
    u32::from(mtu).to_be_bytes()
}

/// True if the firewall passes a packet for the slow path. A packet that has skipped the incoming
/// rules is filtered by them now.
fn may_be_answered<W: Firewall>(
    firewall: &mut W,
    frame: &Frame,
    reason: Reason,
    now_ns: u64,
) -> bool {
    match reason {
        Reason::SlowExpired | Reason::SlowBeyondScope => {
            firewall.incoming(std::slice::from_ref(frame), 1, now_ns) & 1 != 0
        }
        Reason::SlowLocal => slow::is_discovery(frame) || firewall.local(frame, now_ns),
        Reason::SlowGroup => {
            let is_ip = matches!(ethernet::ether_type(frame), ethernet::IPV4 | ethernet::IPV6);
            !is_ip || slow::is_discovery(frame) || firewall.local(frame, now_ns)
        }
        _ => true,
    }
}

/// Link of a next hop; without one, a link that no packet fits.
#[inline(always)]
fn link(links: &[Link], next_hop: Option<NextHop>) -> &Link {
    let number = next_hop.map_or(usize::MAX, |next_hop| next_hop.number() as usize);
    links.get(number).unwrap_or(&Link::UNKNOWN)
}

impl Ports {
    #[inline(always)]
    fn check(&self, frame: &Frame) -> Result<Destination, Reason> {
        check::check(frame, self.mac(frame)?, &self.owners)
    }

    /// MAC of the interface at which a frame came in.
    #[inline(always)]
    fn mac(&self, frame: &Frame) -> Result<u64, Reason> {
        self.macs.get(usize::from(frame.ingress())).copied().ok_or(Reason::PortUnknown)
    }
}
