//! Router advertisements (RFC 4861 section 6.2): hosts of a link learn of the router, and of the
//! prefixes that they may make addresses of (RFC 4862).
//!
//! All workers share one [`Advertiser`], and whoever looks first when one is due sends it. Whoever
//! solicits is answered with everybody else of the link, so that there is one message for many.
//! Unicast answers, and the checks of what other routers advertise (section 6.2.7), are left out.

mod message;

use super::interface::Interface;
use super::{Firewall, Reason, Router, ethernet};
use crate::fib::V6;
use fwdlab_netio::frame::Frame;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SECOND: u64 = 1_000_000_000;
/// Constants of RFC 4861 section 10: the first advertisements follow each other soon; between
/// two to all is some time, whatever is asked; and answers are not all sent at once.
const INITIAL: u32 = 3;
const INITIAL_INTERVAL: u64 = 16 * SECOND;
const MIN_DELAY: u64 = 3 * SECOND;
const MAX_ANSWER_DELAY: u64 = SECOND / 2;

/// What an interface advertises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Prefixes of the link, which hosts reach there; of those of 64 bits they make addresses.
    pub prefixes: Vec<(V6, u8)>,
    /// Longest time between two advertisements, seconds.
    pub interval: u16,
    /// Seconds for which the router is a default router; 0: it is none.
    pub lifetime: u16,
    /// Seconds for which the prefixes are on the link.
    pub valid: u32,
    /// Seconds for which addresses made of them are used for new connections.
    pub preferred: u32,
    /// Tell the link's MTU.
    pub tells_mtu: bool,
    /// Addresses are had by DHCPv6 as well; and other things are.
    pub flags: (bool, bool),
}

/// What is sent when, at all interfaces.
#[derive(Debug)]
pub struct Advertiser {
    ports: Vec<Option<Advertisement>>,
    schedule: Mutex<Schedule>,
    /// When the first one is due.
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
    /// When the last one was sent, if any was.
    last_ns: Option<u64>,
    /// Of those that follow soon.
    initial: u32,
}

impl Advertiser {
    /// What each port advertises.
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

    /// Goes on after another one: no link is told sooner than it may be.
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

    /// Ports at which one is due; the next one is planned.
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
            // MinRtrAdvInterval is a third of the longest, by default.
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

    /// Somebody asks at a port.
    fn asked(&self, port: u8, now_ns: u64) {
        let mut schedule = self.locked();
        let delay = schedule.draw(0, MAX_ANSWER_DELAY);
        if let Some(times) = schedule.times.get_mut(usize::from(port)) {
            let earliest = times.last_ns.map_or(0, |last| last.saturating_add(MIN_DELAY));
            times.due_ns = times.due_ns.min(now_ns.max(earliest).saturating_add(delay));
        }
        self.note(&schedule);
    }

    /// A link is there again: its hosts may be others.
    pub fn begin_again(&self, port: u8) {
        let mut schedule = self.locked();
        if self.of(port).is_some() {
            let first = Times { due_ns: 0, last_ns: None, initial: INITIAL };
            schedule.times[usize::from(port)] = first;
        }
        self.note(&schedule);
    }

    /// Ports whose hosts are to know that the router ends; nothing is due any more.
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

    /// True of a solicitation (section 4.1) at a port that advertises. Its IPv6 header was
    /// looked at before.
    pub(super) fn is_asked(&self, frame: &Frame) -> bool {
        self.of(frame.ingress()).is_some() && message::is_solicitation(frame)
    }
}

impl Schedule {
    /// A random number of a range.
    fn draw(&mut self, low: u64, high: u64) -> u64 {
        // xorshift64 (Marsaglia 2003): enough to keep routers from speaking together.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        low + self.random % (high - low).max(1)
    }
}

impl<W: Firewall> Router<W> {
    /// Notes that somebody solicits; false if that isn't what the frame does.
    #[cold]
    pub(super) fn hear_solicitation(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let Some(advertiser) = &self.advertiser else { return false };
        let is_asked = ethernet::ether_type(frame) == ethernet::IPV6
            && advertiser.is_asked(frame)
            && message::is_sound(frame);
        if is_asked {
            advertiser.asked(frame.ingress(), now_ns);
            self.next_age_ns = self.next_age_ns.min(advertiser.due_ns());
        }
        is_asked
    }

    /// Sends what is due.
    #[cold]
    pub(super) fn advertise(&mut self, now_ns: u64) {
        let Some(advertiser) = self.advertiser.clone() else { return };
        for port in advertiser.due(now_ns) {
            if let Some(advertisement) = advertiser.of(port) {
                self.send_advertisement(port, advertisement);
            }
        }
    }

    /// Says good-bye (section 6.2.5); afterwards there may be frames to be taken.
    pub fn end(&mut self) {
        let Some(advertiser) = self.advertiser.clone() else { return };
        for port in advertiser.end() {
            if let Some(advertisement) = advertiser.of(port) {
                self.send_advertisement(
                    port,
                    &Advertisement { lifetime: 0, ..advertisement.clone() },
                );
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

/// The address that advertisements come from: of the link, as they must (section 6.1.2).
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
        };
        Advertiser::new(vec![None, Some(advertisement)])
    }

    /// When advertisements are sent within some seconds, looked at every ten milliseconds.
    fn sent(advertiser: &Advertiser, seconds: u64, solicits: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut sent = Vec::new();
        for now in (0..seconds * 100).map(|tick| tick * SECOND / 100) {
            if solicits(now) {
                advertiser.asked(1, now);
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
    fn the_first_ones_follow_soon_and_the_others_at_random() {
        let sent = sent(&advertiser(300), 3600, |_| false);
        let gaps: Vec<u64> = sent.windows(2).map(|pair| (pair[1] - pair[0]) / SECOND).collect();
        assert_eq!(sent[0], 0);
        assert!(gaps[..2].iter().all(|&gap| gap <= 16), "{gaps:?}");
        assert!(gaps[2..].iter().all(|gap| (100..=300).contains(gap)), "{gaps:?}");
        assert!(gaps[2..].iter().any(|gap| gap != &gaps[2]), "{gaps:?}");
    }

    #[test]
    fn however_many_solicit_there_is_one_in_three_seconds_and_a_quick_one_for_who_is_alone() {
        let storm = sent(&advertiser(1800), 30, |_| true);
        let apart = storm.windows(2).all(|pair| pair[1] - pair[0] >= MIN_DELAY);
        assert!(apart && (8..=11).contains(&storm.len()), "{storm:?}");
        let alone = advertiser(1800);
        sent(&alone, 60, |_| false);
        let at = 100 * SECOND;
        alone.asked(1, at);
        alone.asked(0, at);
        assert!((at..at + SECOND).contains(&alone.due_ns()), "{}", alone.due_ns());
        assert_eq!(alone.due(at + SECOND), [1]);
        let next = advertiser(1800);
        next.follow(&alone);
        assert_eq!(next.due_ns(), at + SECOND + MIN_DELAY);
        assert_eq!((alone.end(), alone.end()), (vec![1], vec![]));
        assert!(alone.due(u64::MAX).is_empty());
    }
}
