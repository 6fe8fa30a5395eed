//! Entries of next hops and hosts: their MACs, and neighbour unreachability detection (RFC 4861
//! section 7.3), which applies to ARP as well (RFC 1122 section 2.3.2.1).
//!
//! A MAC is reachable for [`REACHABLE_NS`] after an answer, and then stale. [`DELAY_NS`] after the
//! first use of a stale MAC a worker queries the neighbour at this MAC, once a second; after
//! [`PROBES_MAX`] unanswered requests the MAC is forgotten, and the next packet is resolved again.
//!
//! The fast path does not record uses. Workers drop their links to neighbours that become stale, so
//! that the next packet takes the slow way, which records the use and restores the link.

use super::{Gateway, Link, Neighbour, Special};
use crate::path::interface::Interface;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Entry of a next hop or host. Times are in nanoseconds.
#[derive(Debug, Default)]
pub(in super::super) struct Entry {
    pub(super) neighbour: Option<Neighbour>,
    pub(in super::super) gateway: Option<Gateway>,
    pub(in super::super) special: Option<Special>,
    /// A MAC and [`LEARNT`], or 0.
    pub(super) learnt: AtomicU64,
    /// Time at which the MAC was confirmed; earlier by [`REACHABLE_NS`] if it is a stale one that
    /// the neighbour has announced.
    pub(super) confirmed_ns: AtomicU64,
    /// Time of the neighbour's last answer, or 0.
    pub(super) answered_ns: AtomicU64,
    /// Time of the last request, or [`NEVER`].
    pub(super) requested_ns: AtomicU64,
    /// Unanswered requests.
    pub(super) unanswered: AtomicU64,
    /// Time of the first use since it became stale; earlier times mean none.
    pub(super) used_ns: AtomicU64,
    /// Time of the last known use.
    pub(super) last_ns: AtomicU64,
}

/// Set next to a MAC: the entry has one.
pub(super) const LEARNT: u64 = 1 << 48;
/// No time.
pub(super) const NEVER: u64 = u64::MAX;
/// Minimum interval of requests for a next hop: RETRANS_TIMER of RFC 4861 section 10.
pub(in super::super) const ASK_NS: u64 = 1_000_000_000;
/// Time after an answer for which a MAC is not doubted: REACHABLE_TIME.
pub(super) const REACHABLE_NS: u64 = 30 * 1_000_000_000;
/// Time from the use of a stale MAC to the first request: DELAY_FIRST_PROBE_TIME.
pub(super) const DELAY_NS: u64 = 5 * 1_000_000_000;
/// Unanswered requests after which a MAC is forgotten: MAX_UNICAST_SOLICIT.
pub(super) const PROBES_MAX: u64 = 3;
/// Age at which an unused MAC is forgotten: FreeBSD's `net.link.ether.inet.max_age`.
pub(super) const UNUSED_NS: u64 = 1200 * 1_000_000_000;

/// Result of the periodic check of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Rest,
    /// It has become stale, and the next use must be noticed.
    Watch,
    /// Query the neighbour at this MAC.
    Query([u8; 6]),
    /// Forget this value of [`Entry::learnt`].
    Forget(u64),
}

impl Entry {
    pub(super) fn new(neighbour: Option<Neighbour>, gateway: Option<Gateway>) -> Entry {
        let requested_ns = AtomicU64::new(NEVER);
        Entry { neighbour, gateway, requested_ns, ..Entry::default() }
    }

    /// True once per second: a request is due, and no other worker sends it.
    pub(super) fn is_time(&self, now_ns: u64) -> bool {
        let last = self.requested_ns.load(Relaxed);
        if last != NEVER && now_ns < last.saturating_add(ASK_NS) {
            return false;
        }
        self.requested_ns.compare_exchange(last, now_ns, Relaxed, Relaxed).is_ok()
    }

    pub(in super::super) fn is_known(&self) -> bool {
        self.neighbour.is_some() || self.mac().is_some()
    }

    /// The learnt MAC.
    pub(super) fn mac(&self) -> Option<[u8; 6]> {
        mac_of(self.learnt.load(Acquire))
    }

    /// Time from which the MAC is stale.
    pub(super) fn stale_ns(&self) -> u64 {
        self.confirmed_ns.load(Relaxed).saturating_add(REACHABLE_NS)
    }

    /// Records a use at a time that may be a second old. Returns true for the first use of a stale
    /// MAC.
    pub(in super::super) fn use_at(&self, now_ns: u64) -> bool {
        self.last_ns.fetch_max(now_ns, Relaxed);
        let awaits_use = self.awaits_use(now_ns);
        if awaits_use {
            self.used_ns.store(now_ns, Relaxed);
        }
        awaits_use
    }

    /// True for a stale MAC that was not used since it became stale: workers have no link to it.
    pub(super) fn awaits_use(&self, now_ns: u64) -> bool {
        let stale_ns = self.stale_ns();
        self.neighbour.is_none()
            && now_ns >= stale_ns
            && self.used_ns.load(Relaxed) < stale_ns
            && self.mac().is_some()
    }

    /// Periodic check; `since_ns` is the time of the worker's previous one.
    pub(super) fn step(&self, now_ns: u64, since_ns: u64) -> Step {
        let learnt = self.learnt.load(Acquire);
        let (stale_ns, used_ns) = (self.stale_ns(), self.used_ns.load(Relaxed));
        let Some(mac) = mac_of(learnt).filter(|_| self.neighbour.is_none()) else {
            return Step::Rest;
        };
        // Another worker's clock may be slightly ahead.
        if now_ns < stale_ns {
            return Step::Rest;
        }
        if used_ns < stale_ns {
            return match () {
                () if now_ns - stale_ns >= UNUSED_NS - REACHABLE_NS => Step::Forget(learnt),
                () if stale_ns >= since_ns => Step::Watch,
                () => Step::Rest,
            };
        }
        if now_ns < used_ns.saturating_add(DELAY_NS) || !self.is_time(now_ns) {
            return Step::Rest;
        }
        match self.unanswered.fetch_add(1, Relaxed) < PROBES_MAX {
            true => Step::Query(mac),
            false => Step::Forget(learnt),
        }
    }

    /// Order in which entries give way in a full table: those without a MAC first, then those that
    /// were not used for the longest time.
    pub(super) fn rank(&self) -> (bool, u64) {
        match self.mac() {
            None => (false, self.requested_ns.load(Relaxed)),
            Some(_) => (true, self.last_ns.load(Relaxed)),
        }
    }

    pub(in super::super) fn link(&self, interfaces: &[Interface]) -> Link {
        let learnt = || Some(Neighbour { port: self.gateway?.port, mac: self.mac()? });
        let Some(neighbour) = self.neighbour.or_else(learnt) else {
            return self.no_link();
        };
        let Some(interface) = interfaces.get(usize::from(neighbour.port)) else {
            return Link::UNKNOWN;
        };
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&neighbour.mac);
        macs[6..].copy_from_slice(&interface.mac);
        Link { macs, mtu: interface.mtu, port: neighbour.port }
    }

    /// A link that no packet fits, with the port.
    fn no_link(&self) -> Link {
        let port = match self.special {
            Some(Special::Link(port)) => Some(port),
            _ => self.gateway.map(|gateway| gateway.port),
        };
        Link { port: port.unwrap_or(u8::MAX), ..Link::UNKNOWN }
    }

    /// As [`Entry::link`], but no link if the next use must be noticed.
    pub(super) fn watched_link(&self, interfaces: &[Interface], now_ns: u64) -> Link {
        if self.awaits_use(now_ns) { self.no_link() } else { self.link(interfaces) }
    }
}

fn mac_of(learnt: u64) -> Option<[u8; 6]> {
    let [_, _, mac @ ..] = learnt.to_be_bytes();
    (learnt & LEARNT != 0).then_some(mac)
}
