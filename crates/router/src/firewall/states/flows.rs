//! Flow cache: a per-worker exact-match cache of flows with a state. Packets that would
//! change only the counters and the time of their state pass without access to it, as in
//! software switches (Pfaff et al., The Design and Implementation of Open vSwitch, NSDI
//! 2015, section 6).
//!
//! A flow is one direction of a connection. It is cached when further packets can't change
//! the phase of its state ([`Found::Steady`]); packets with SYN, FIN or RST bypass the cache
//! and evict the flow. Counters are written back to the state at least every two periods; a
//! flow without packets since the last visit is then evicted. So a state's time lags by at
//! most two periods, and a period is at most an eighth of the shortest timeout: no state
//! expires early, only counters may lag.
//!
//! With many more flows than slots the hit rate is low, and the cache grows with the number of
//! states, to at most 128 MB a family: a flow is half as large as a state, lies in one
//! line where a state is found by way of another, and is looked at with a third of the
//! instructions. Larger caches are visited less often, so that visits cost no more. With short
//! flows the hit rate stays low; the cache is then bypassed, and tried again from time to time.
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
/// Number of packets after which the hit rate is evaluated, for each pair.
const TRIAL: u32 = 16;
/// Number of trials that the cache is bypassed for after a low hit rate.
const REST: u32 = 32;

/// Flows of both families.
#[derive(Debug)]
pub(in crate::firewall) struct Flows {
    pub(in crate::firewall) inet: Slots<2>,
    pub(in crate::firewall) inet6: Slots<5>,
    trial: Trial,
    asked: SourceRequest,
}

/// The packets of a batch whose lookups have begun: so many from the first on.
#[derive(Clone, Copy, Debug, Default)]
struct SourceRequest {
    count: usize,
    of_inet6: u64,
    without: u64,
}

/// Whether the cache is used, by its hit rate.
#[derive(Debug, Default)]
struct Trial {
    /// Remaining packets that bypass it.
    resting: u64,
    /// Lookups and hits since the last evaluation.
    asked: u32,
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
            asked: SourceRequest::default(),
        }
    }

    /// True if a batch of so many packets should use the cache. Otherwise its flows must not be
    /// inserted either.
    #[inline(always)]
    pub(in crate::firewall) fn is_awake(&mut self, packets: u32, states: &States) -> bool {
        let trial = &mut self.trial;
        if trial.resting > 0 {
            trial.resting = trial.resting.saturating_sub(packets.into());
            return false;
        }
        trial.asked += packets;
        let length = TRIAL * self.inet.pairs().max(self.inet6.pairs()).max(PAIRS) as u32;
        if trial.asked >= length {
            self.judge(length, states);
        }
        true
    }

    /// Lets the cache grow, or rest, if it was of little use.
    #[cold]
    fn judge(&mut self, length: u32, states: &States) {
        let Trial { asked, found, .. } = std::mem::take(&mut self.trial);
        let has_room = found >= asked / 8 * 7;
        let live = states.live.load(Relaxed);
        let grows = !has_room && [self.inet.grow(live), self.inet6.grow(live)].contains(&true);
        if found < asked / 3 && !grows {
            self.trial.resting = u64::from(REST) * u64::from(length);
        }
    }

    /// Records the number of hits in a batch.
    #[inline(always)]
    pub(in crate::firewall) fn found(&mut self, packets: u32) {
        self.trial.found += packets;
    }

    /// Tells the states what they don't know yet of the flows whose turn it is, of at most `most`
    /// of a family. True if it is the turn of more.
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
        let from = self.asked.count.min(batch.len());
        self.ask(&batch[from..], from);
        let Flows { inet, inet6, asked: SourceRequest { of_inet6, without, .. }, .. } = self;
        let taken = inet.take(among & !*of_inet6 & !*without, now_ns);
        if *of_inet6 == 0 { taken } else { taken | inet6.take(among & *of_inet6, now_ns) }
    }

    /// Begins the lookups of packets that [`Flows::take`] will be asked about, which are at the
    /// places from `from` on: whoever has other work before that needn't wait for memory. Does
    /// nothing where the cache is bypassed.
    #[inline(always)]
    pub(in crate::firewall) fn ahead(&mut self, packets: &[Frame], from: usize) {
        if self.trial.resting == 0 {
            self.ask(packets, from);
        }
    }

    /// Forgets what lookups have begun: the next ones are of another batch.
    #[inline(always)]
    pub(in crate::firewall) fn end_batch(&mut self) {
        self.asked = SourceRequest::default();
    }

    /// The first pass over packets. Of those that `take` isn't asked about the lookup is
    /// unspecified.
    #[inline(never)]
    fn ask(&mut self, packets: &[Frame], from: usize) {
        let Flows { inet, inet6, asked: SourceRequest { count, of_inet6, without }, .. } = self;
        // Where the compiler can see that nothing changes them.
        let (places_of_inet, places_of_inet6) = (inet.pairing, inet6.pairing);
        *count = from + packets.len();
        let own = inet.asked.iter_mut().enumerate().skip(from);
        for (frame, (place, asked)) in packets.iter().zip(own) {
            if let Some((key, more)) = key::quick(frame.buffer()) {
                *asked = places_of_inet.ask(key, more);
                continue;
            }
            let packet = Packet::read(frame);
            if !packet.is(bit::TRACKABLE) {
                // Fragments, too. An ICMP error would look like a query with the identifier 0.
                *without |= 1 << place;
            } else if packet.is(bit::INET6) {
                *of_inet6 |= 1 << place;
                let key: Key<5> = Of::of(frame.buffer(), &packet);
                inet6.asked[place] = places_of_inet6.ask(key.counting(), packet.more);
            } else {
                let key: Key<2> = Of::of(frame.buffer(), &packet);
                *asked = places_of_inet.ask(key.counting(), packet.more);
            }
        }
    }
}
