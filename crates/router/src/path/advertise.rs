//! Router advertisements (RFC 4861 section 6.2): they announce to the hosts of a link the router
//! and the prefixes from which hosts form addresses (RFC 4862).
//!
//! All workers share one [`Advertiser`], and the first worker that looks when an advertisement is
//! due sends it. Answers to solicitations go to all hosts of the link, so that one message answers
//! many. Unicast answers, and the checks of other routers' advertisements (section 6.2.7), are not
//! implemented.

mod message;
mod options;

pub use options::{AdvertisedOption, Nat64Length, Preference};

use super::interface::Interface;
use super::{Firewall, Reason, Router, ethernet};
use crate::fib::V6;
use fwdlab_netio::frame::Frame;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SECOND: u64 = 1_000_000_000;
/// Constants of RFC 4861 section 10: the first advertisements follow each other quickly;
/// advertisements to all hosts keep a minimum distance, even if solicited; and answers are delayed
/// at random.
const INITIAL: u32 = 3;
const INITIAL_INTERVAL: u64 = 16 * SECOND;
const MIN_DELAY: u64 = 3 * SECOND;
const MAX_ANSWER_DELAY: u64 = SECOND / 2;

/// Contents of an interface's advertisements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// On-link prefixes; hosts form addresses from those of 64 bits.
    pub prefixes: Vec<(V6, u8)>,
    /// Maximum time between two advertisements, in seconds.
    pub interval: u16,
    /// Seconds for which the router is a default router; 0 if it is not one.
    pub lifetime: u16,
    /// Seconds for which the prefixes are valid on the link.
    pub valid: u32,
    /// Seconds for which addresses formed from them are preferred for new connections.
    pub preferred: u32,
    /// Include the link's MTU.
    pub tells_mtu: bool,
    /// The flags "managed" and "other": DHCPv6 provides addresses, or other configuration.
    pub flags: (bool, bool),
    /// Preference over other default routers.
    pub preference: Preference,
    /// Further information for hosts.
    pub options: Vec<AdvertisedOption>,
    /// Seconds for which `options` are valid.
    pub options_lifetime: u32,
}

impl Advertisement {
    /// Returns the bytes of the IPv6 packet.
    pub fn packet_len(&self) -> usize {
        message::packet_len(self)
    }

    /// Returns the final advertisement (RFC 4861 section 6.2.5, RFC 4191 section 4, RFC 8106
    /// section 5.1).
    fn last(&self) -> Advertisement {
        Advertisement { lifetime: 0, options_lifetime: 0, ..self.clone() }
    }
}

/// Schedule and contents of the advertisements of all interfaces.
#[derive(Debug)]
pub struct Advertiser {
    ports: Vec<Option<Advertisement>>,
    schedule: Mutex<Schedule>,
    /// Time at which the first one is due.
    due_ns: AtomicU64,
}

#[derive(Debug)]
struct Schedule {
    times: Vec<Times>,
    random: u64,
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    due_ns: u64,
    /// Time of the last one; `None` if none was sent.
    last_ns: Option<u64>,
    /// Number of initial advertisements left.
    initial: u32,
}

impl Advertiser {
    /// Schedules the advertisements of each port.
    pub fn new(ports: Vec<Option<Advertisement>>) -> Advertiser {
        let random = RandomState::new().build_hasher().finish();
        let first = |port: &Option<Advertisement>| Times {
            due_ns: if port.is_some() { 0 } else { u64::MAX },
            last_ns: None,
            initial: INITIAL,
        };
        let times = ports.iter().map(first).collect();
        let schedule = Mutex::new(Schedule { times, random: random | 1, is_over: false });
        Advertiser { ports, schedule, due_ns: AtomicU64::new(0) }
    }

    /// Continues the schedule of `before`, keeping the minimum distance on each link.
    pub fn follow(&self, before: &Advertiser) {
        let before = before.locked();
        let mut schedule = self.locked();
        for (times, before) in schedule.times.iter_mut().zip(&before.times) {
            times.last_ns = before.last_ns;
            let earliest = before.last_ns.map_or(0, |last| last.saturating_add(MIN_DELAY));
            times.due_ns = times.due_ns.max(earliest);
        }
        self.note(&schedule);
    }

    fn locked(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, port: u8) -> Option<&Advertisement> {
        self.ports.get(usize::from(port))?.as_ref()
    }

    #[inline]
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns.load(Ordering::Relaxed)
    }

    /// Returns the ports at which an advertisement is due, and schedules the next ones.
    fn due(&self, now_ns: u64) -> Vec<u8> {
        let mut schedule = self.locked();
        let mut due = Vec::new();
        for (port, advertisement) in (0u8..).zip(&self.ports) {
            let Some(advertisement) = advertisement else { continue };
            let times = schedule.times[usize::from(port)];
            if schedule.is_over || times.due_ns > now_ns {
                continue;
            }
            due.push(port);
            // MinRtrAdvInterval is a third of the maximum by default.
            let longest = u64::from(advertisement.interval) * SECOND;
            let mut wait = schedule.draw(longest / 3, longest);
            let initial = times.initial.saturating_sub(1);
            if initial > 0 {
                wait = wait.min(INITIAL_INTERVAL);
            }
            let due_ns = now_ns.saturating_add(wait.max(MIN_DELAY));
            schedule.times[usize::from(port)] = Times { due_ns, last_ns: Some(now_ns), initial };
        }
        self.note(&schedule);
        due
    }

    /// Schedules an answer to a solicitation at a port.
    fn schedule_answer(&self, port: u8, now_ns: u64) {
        let mut schedule = self.locked();
        let delay = schedule.draw(0, MAX_ANSWER_DELAY);
        if let Some(times) = schedule.times.get_mut(usize::from(port)) {
            let earliest = times.last_ns.map_or(0, |last| last.saturating_add(MIN_DELAY));
            times.due_ns = times.due_ns.min(now_ns.max(earliest).saturating_add(delay));
        }
        self.note(&schedule);
    }

    /// Restarts the schedule of a link that is up again, as its hosts may have changed.
    pub fn begin_again(&self, port: u8) {
        let mut schedule = self.locked();
        if self.of(port).is_some() {
            let first = Times { due_ns: 0, last_ns: None, initial: INITIAL };
            schedule.times[usize::from(port)] = first;
        }
        self.note(&schedule);
    }

    /// Returns the ports at which to announce that the router stops; after that nothing is due.
    fn end(&self) -> Vec<u8> {
        let mut schedule = self.locked();
        if std::mem::replace(&mut schedule.is_over, true) {
            return Vec::new();
        }
        let sent = (0u8..).zip(&schedule.times).filter(|(_, times)| times.last_ns.is_some());
        sent.map(|(port, _)| port).collect()
    }

    fn note(&self, schedule: &Schedule) {
        let first = schedule.times.iter().map(|times| times.due_ns).min();
        self.due_ns.store(first.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// True for a solicitation (section 4.1) at a port that advertises. Its IPv6 header was checked
    /// before.
    pub(super) fn is_asked(&self, frame: &Frame) -> bool {
        self.of(frame.ingress()).is_some() && message::is_solicitation(frame)
    }
}

impl Schedule {
    /// A random number in a range.
    fn draw(&mut self, low: u64, high: u64) -> u64 {
        // xorshift64 (Marsaglia 2003): enough to keep routers from synchronising.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        low + self.random % (high - low).max(1)
    }
}

impl<W: Firewall> Router<W> {
    /// Records a solicitation; returns false if the frame is not one.
    #[cold]
    pub(super) fn hear_solicitation(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let Some(advertiser) = &self.advertiser else { return false };
        let is_solicitation = ethernet::ether_type(frame) == ethernet::IPV6
            && advertiser.is_asked(frame)
            && message::is_sound(frame);
        if is_solicitation {
            advertiser.schedule_answer(frame.ingress(), now_ns);
            self.next_age_ns = self.next_age_ns.min(advertiser.due_ns());
        }
        is_solicitation
    }

    /// Sends the advertisements that are due.
    #[cold]
    pub(super) fn advertise(&mut self, now_ns: u64) {
        let Some(advertiser) = self.advertiser.clone() else { return };
        for port in advertiser.due(now_ns) {
            if let Some(advertisement) = advertiser.of(port) {
                self.send_advertisement(port, advertisement);
            }
        }
    }

    /// Sends final advertisements (section 6.2.5); afterwards there may be frames to take.
    pub fn end(&mut self) {
        let Some(advertiser) = self.advertiser.clone() else { return };
        for port in advertiser.end() {
            if let Some(advertisement) = advertiser.of(port) {
                self.send_advertisement(port, &advertisement.last());
            }
        }
    }

    fn send_advertisement(&mut self, port: u8, advertisement: &Advertisement) {
        let interface = self.interfaces.get(usize::from(port));
        let Some(frame) = interface.and_then(|i| message::write(port, i, advertisement)) else {
            return;
        };
        let sent = self.emitted.push(frame);
        self.tally.add(if sent { Reason::AdvertisementsSent } else { Reason::ExtraLost }, 1);
    }
}

/// Source address of advertisements: a link-local address, as required (section 6.1.2).
fn own(interface: &Interface) -> Option<V6> {
    use crate::fib::Address;
    let mut addresses = interface.addresses.iter();
    addresses.find_map(|&(own, _)| V6::from_ip(own).filter(|own| own.is_link_local()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advertiser(interval: u16) -> Advertiser {
        let advertisement = Advertisement {
            prefixes: Vec::new(),
            interval,
            lifetime: 3 * interval,
            valid: 100,
            preferred: 50,
            tells_mtu: false,
            flags: (false, false),
            preference: Preference::Medium,
            options: Vec::new(),
            options_lifetime: 3 * u32::from(interval),
        };
        Advertiser::new(vec![None, Some(advertisement)])
    }

    /// Times at which advertisements are sent within some seconds, polled every ten milliseconds.
    fn sent(advertiser: &Advertiser, seconds: u64, solicits: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut sent = Vec::new();
        for now in (0..seconds * 100).map(|tick| tick * SECOND / 100) {
            if solicits(now) {
                advertiser.schedule_answer(1, now);
            }
            if advertiser.due_ns() <= now {
                let due = advertiser.due(now);
                assert!(due.is_empty() || due == [1]);
                sent.extend(due.iter().map(|_| now));
            }
        }
        sent
    }

    #[test]
    fn initial_advertisements_are_fast_and_later_ones_random() {
        let sent = sent(&advertiser(300), 3600, |_| false);
        let gaps: Vec<u64> = sent.windows(2).map(|pair| (pair[1] - pair[0]) / SECOND).collect();
        assert_eq!(sent[0], 0);
        assert!(gaps[..2].iter().all(|&gap| gap <= 16), "{gaps:?}");
        assert!(gaps[2..].iter().all(|gap| (100..=300).contains(gap)), "{gaps:?}");
        assert!(gaps[2..].iter().any(|gap| gap != &gaps[2]), "{gaps:?}");
    }

    #[test]
    fn answers_are_rate_limited_and_a_single_solicitation_is_answered_quickly() {
        let storm = sent(&advertiser(1800), 30, |_| true);
        let apart = storm.windows(2).all(|pair| pair[1] - pair[0] >= MIN_DELAY);
        assert!(apart && (8..=11).contains(&storm.len()), "{storm:?}");
        let alone = advertiser(1800);
        sent(&alone, 60, |_| false);
        let at = 100 * SECOND;
        alone.schedule_answer(1, at);
        alone.schedule_answer(0, at);
        assert!((at..at + SECOND).contains(&alone.due_ns()), "{}", alone.due_ns());
        assert_eq!(alone.due(at + SECOND), [1]);
        let next = advertiser(1800);
        next.follow(&alone);
        assert_eq!(next.due_ns(), at + SECOND + MIN_DELAY);
        assert_eq!((alone.end(), alone.end()), (vec![1], vec![]));
        assert!(alone.due(u64::MAX).is_empty());
    }
}
