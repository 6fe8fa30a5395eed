//! Flow cache: a per-worker exact-match cache of flows with a state. Packets that would change only
//! the counters and the time of their state pass without access to it, as in software switches
//! (Pfaff et al., The Design and Implementation of Open vSwitch, NSDI 2015, section 6).
//!
//! A flow is one direction of a connection. It is cached when further packets can't change the
//! phase of its state ([`Found::Steady`]); packets with SYN, FIN or RST bypass the cache and evict
//! the flow. Counters are written back to the state at least every two periods; a flow without
//! packets since the last visit is then evicted. A state's time therefore lags by at most two
//! periods, and a period is at most an eighth of the shortest timeout: no state expires early, only
//! counters may lag.
//!
//! With many more flows than slots the hit rate is low, and the cache grows with the number of
//! states, to at most 128 MB per family: a flow is half the size of a state, is in one cache line
//! while a state needs an indirection, and takes a third of the instructions. Larger caches are
//! visited less often, so visits cost no more. With short flows the hit rate stays low; the cache
//! is then bypassed, and retried from time to time.
//!
//! [`Found::Steady`]: super::Found::Steady

mod slots;

use super::key::{self, Key, Of, Seed};
use super::phase::Limits;
use super::{Access, States};
use crate::firewall::packet::{Packet, bit};
use fwdlab_netio::frame::Frame;
use slots::{PAIRS, Slots};
use std::sync::atomic::Ordering::Relaxed;

/// Periods in the shortest timeout.
const PERIODS: u64 = 8;
/// Number of packets, per pair, after which the hit rate is evaluated.
const TRIAL: u32 = 16;
/// Number of trials for which the cache is bypassed after a low hit rate.
const REST: u32 = 32;

/// Flows of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Flows {
    pub(in crate::firewall) inet: Slots<2>,
    pub(in crate::firewall) inet6: Slots<5>,
    trial: Trial,
    started: StartedLookups,
}

/// Packets of a batch whose lookups have started: the first `count` ones.
#[derive(Clone, Copy, Debug, Default)]
struct StartedLookups {
    count: usize,
    of_inet6: u64,
    without: u64,
}

/// Decides by hit rate whether to use the cache.
#[derive(Debug, Default)]
struct Trial {
    /// Remaining packets that bypass the cache.
    resting: u64,
    /// Lookups and hits since the last evaluation.
    lookups: u32,
    found: u32,
}

impl Flows {
    /// An empty cache for states with these timeouts.
    pub(super) fn new(limits: &Limits, seed: &Seed) -> Flows {
        let period_max_ns = limits.shortest() / PERIODS;
        Flows {
            inet: Slots::new(period_max_ns, seed),
            inet6: Slots::new(period_max_ns, seed),
            trial: Trial::default(),
            started: StartedLookups::default(),
        }
    }

    /// True if a batch of this many packets should use the cache. If false, do not insert its flows
    /// either.
    #[inline(always)]
    pub(in crate::firewall) fn is_awake(&mut self, packets: u32, states: &States) -> bool {
        let trial = &mut self.trial;
        if trial.resting > 0 {
            trial.resting = trial.resting.saturating_sub(packets.into());
            return false;
        }
        trial.lookups += packets;
        let length = TRIAL * self.inet.pairs().max(self.inet6.pairs()).max(PAIRS) as u32;
        if trial.lookups >= length {
            self.judge(length, states);
        }
        true
    }

    /// Grows the cache, or bypasses it if its hit rate was low.
    #[cold]
    fn judge(&mut self, length: u32, states: &States) {
        let Trial { lookups, found, .. } = std::mem::take(&mut self.trial);
        let has_room = found >= lookups / 8 * 7;
        let live = states.live.load(Relaxed);
        let grows = !has_room && [self.inet.grow(live), self.inet6.grow(live)].contains(&true);
        if found < lookups / 3 && !grows {
            self.trial.resting = u64::from(REST) * u64::from(length);
        }
    }

    /// Records the number of hits in a batch.
    #[inline(always)]
    pub(in crate::firewall) fn found(&mut self, packets: u32) {
        self.trial.found += packets;
    }

    /// Writes back the counters of flows that are due, at most `most` of each family. Returns true
    /// if more are due.
    #[inline(always)]
    pub(in crate::firewall) fn visit<X: Access>(
        &mut self,
        states: &States,
        access: &mut X,
        now_ns: u64,
        most: usize,
    ) -> bool {
        let inet = self.inet.visit(states, access, now_ns, most);
        let inet6 = self.inet6.visit(states, access, now_ns, most);
        inet || inet6 || self.inet.has_forgotten() || self.inet6.has_forgotten()
    }

    /// Writes back the counters of flows that were just evicted.
    #[inline(always)]
    pub(in crate::firewall) fn tell_forgotten<X: Access>(
        &mut self,
        states: &States,
        access: &mut X,
        now_ns: u64,
    ) {
        self.inet.tell_forgotten(states, access, now_ns);
        self.inet6.tell_forgotten(states, access, now_ns);
    }

    /// Writes back all counters.
    pub(in crate::firewall) fn tell<X: Access>(&mut self, states: &States, access: &mut X) {
        self.inet.tell(states, access);
        self.inet6.tell(states, access);
    }

    /// Returns the packets `among` a batch that hit the cache and can't change their state's
    /// phase.
    #[inline(always)]
    pub(in crate::firewall) fn take(&mut self, batch: &[Frame], among: u64, now_ns: u64) -> u64 {
        let from = self.started.count.min(batch.len());
        self.start_lookups(&batch[from..], from);
        let Flows { inet, inet6, started: StartedLookups { of_inet6, without, .. }, .. } = self;
        let taken = inet.take(among & !*of_inet6 & !*without, now_ns);
        if *of_inet6 == 0 { taken } else { taken | inet6.take(among & *of_inet6, now_ns) }
    }

    /// Starts the lookups of packets that a later [`Flows::take`] includes, at the places from
    /// `from` on, so that a caller with other work to do first need not wait for memory. Does
    /// nothing while the cache is bypassed.
    #[inline(always)]
    pub(in crate::firewall) fn ahead(&mut self, packets: &[Frame], from: usize) {
        if self.trial.resting == 0 {
            self.start_lookups(packets, from);
        }
    }

    /// Discards started lookups: the next ones belong to another batch.
    #[inline(always)]
    pub(in crate::firewall) fn end_batch(&mut self) {
        self.started = StartedLookups::default();
    }

    /// First pass over packets. The lookup is unspecified for packets that `take` excludes.
    #[inline(never)]
    fn start_lookups(&mut self, packets: &[Frame], from: usize) {
        let Flows { inet, inet6, started: StartedLookups { count, of_inet6, without }, .. } = self;
        // Local copies, so that the compiler knows they do not change.
        let (places_of_inet, places_of_inet6) = (inet.pairing, inet6.pairing);
        *count = from + packets.len();
        let lookups = inet.asked.iter_mut().enumerate().skip(from);
        for (frame, (place, lookup)) in packets.iter().zip(lookups) {
            if let Some((key, more)) = key::quick(frame.buffer()) {
                *lookup = places_of_inet.ask(key, more);
                continue;
            }
            let packet = Packet::read(frame);
            if !packet.is(bit::TRACKABLE) {
                // Includes fragments. An ICMP error would look like a query with the identifier 0.
                *without |= 1 << place;
            } else if packet.is(bit::INET6) {
                *of_inet6 |= 1 << place;
                let key: Key<5> = Of::of(frame.buffer(), &packet);
                inet6.asked[place] = places_of_inet6.ask(key.counting(), packet.more);
            } else {
                let key: Key<2> = Of::of(frame.buffer(), &packet);
                *lookup = places_of_inet.ask(key.counting(), packet.more);
            }
        }
    }
}
