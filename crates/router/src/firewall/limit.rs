//! Rates up to which rules match, by the generic cell rate algorithm (ITU-T I.371): a cell contains
//! the time at which its credit is used up.
//!
//! All workers share the cells. A rule has one, or one for each source: a secret hash maps sources
//! to cells, and sources with the same cell share its rate. An IPv6 source is its /64, as a host
//! with one address there can use any.

use super::packet::{Packet, bit, ends, ends6};
use super::rule::Limit;
use fwdlab_netio::frame::Frame;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of cells of a limit by source: a power of two.
const PLACES: usize = 1 << 14;

/// A limit and its cells.
#[derive(Debug)]
pub(super) struct RateLimit {
    cells: Box<[AtomicU64]>,
    /// Random: no one can choose sources that share a place.
    seed: u64,
    /// Nanoseconds for one packet.
    interval: u64,
    /// Nanoseconds for a burst.
    tolerance: u64,
}

impl RateLimit {
    pub(super) fn new(limit: &Limit) -> RateLimit {
        let cells = if limit.per_source { PLACES } else { 1 };
        let interval = limit.period_ns() / u64::from(limit.packets.max(1));
        RateLimit {
            cells: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            seed: RandomState::new().build_hasher().finish(),
            interval,
            tolerance: interval.saturating_mul(limit.burst.into()),
        }
    }

    /// Takes the credit for a packet; returns false if the rate is used up.
    #[inline(never)]
    pub(super) fn take(&self, packet: &Packet, frame: &Frame, now_ns: u64) -> bool {
        let cell = self.cell(packet, frame);
        let next = |full_at: u64| {
            let full_at = full_at.max(now_ns).saturating_add(self.interval);
            (full_at <= now_ns.saturating_add(self.tolerance)).then_some(full_at)
        };
        cell.fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    fn cell(&self, packet: &Packet, frame: &Frame) -> &AtomicU64 {
        if self.cells.len() == 1 {
            return &self.cells[0];
        }
        let source = match packet.is(bit::INET6) {
            true => ends6(frame.buffer())[0],
            false => ends(frame.buffer()) & u64::from(u32::MAX),
        };
        &self.cells[(mix(source ^ self.seed) >> 50) as usize % PLACES]
    }
}

/// MurmurHash3's finaliser: each bit changes half of the others. A multiplication alone maps
/// consecutive addresses to few places under some multipliers.
fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    value = (value ^ value >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ value >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// A UDP packet from an address.
    fn frame(source: &str) -> Frame {
        let mut bytes = vec![0; 62];
        match source.parse().expect("an address") {
            IpAddr::V4(source) => {
                bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
                bytes[16..18].copy_from_slice(&28u16.to_be_bytes());
                (bytes[22], bytes[23]) = (64, 17);
                bytes[26..30].copy_from_slice(&source.octets());
            }
            IpAddr::V6(source) => {
                bytes[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
                bytes[18..22].copy_from_slice(&[0, 8, 17, 64]);
                bytes[22..38].copy_from_slice(&source.octets());
            }
        }
        Frame::of(0, &bytes).expect("it fits")
    }

    fn limit(packets: u32, seconds: u32, burst: u32, per_source: bool) -> RateLimit {
        RateLimit::new(&Limit { packets, seconds, burst, per_source })
    }

    /// Number of packets that match, of `tries` packets at a time.
    fn matching(limit: &RateLimit, source: &str, now_ns: u64, tries: usize) -> usize {
        let frame = frame(source);
        let packet = Packet::read(&frame);
        (0..tries).filter(|_| limit.take(&packet, &frame, now_ns)).count()
    }

    #[test]
    fn burst_is_followed_by_the_rate() {
        let limit = limit(10, 1, 5, false);
        let at = |milliseconds: u64| 77_000_000_000 + 1_000_000 * milliseconds;
        assert_eq!(matching(&limit, "10.0.0.1", at(0), 100), 5);
        assert_eq!(matching(&limit, "10.0.0.1", at(99), 100), 0);
        assert_eq!(matching(&limit, "2001:db8::1", at(100), 100), 1);
        let later = (101..10_101).map(|time| matching(&limit, "10.0.0.2", at(time), 3));
        assert_eq!(later.sum::<usize>(), 100);
        // Silence fills the burst, but no more.
        assert_eq!(matching(&limit, "10.0.0.1", at(1_000_000), 100), 5);
    }

    #[test]
    fn sources_have_their_own_rates() {
        // Of 200 sources in 16,384 places, one pair is expected to share, with any seed.
        for _ in 0..50 {
            let limit = limit(2, 60, 3, true);
            let hosts = (1..=200).map(|host| matching(&limit, &format!("10.0.0.{host}"), 5, 9));
            let shared = hosts.filter(|matched| *matched < 3).count();
            assert!(shared < 12, "{shared}");
        }
        let limit = limit(2, 60, 3, true);
        assert_eq!(matching(&limit, "2001:db8:1::1", 5, 2), 2);
        assert_eq!(matching(&limit, "2001:db8:1::ffff:1", 5, 9), 1, "the same /64");
        assert_eq!(matching(&limit, "2001:db8:1::1", 30_000_000_005, 9), 1, "two a minute");
        let others = (2..50).map(|n| matching(&limit, &format!("2001:db8:{n:x}::1"), 5, 9));
        let whole = others.filter(|matched| *matched == 3).count();
        assert!(whole > 45, "{whole} other /64s");
    }

    #[test]
    fn workers_share_a_rate() {
        let limit = limit(1, 60, 1000, false);
        let matched: usize = std::thread::scope(|scope| {
            let work = || matching(&limit, "10.0.0.1", 9, 700);
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker")).sum()
        });
        assert_eq!(matched, 1000);
    }
}
