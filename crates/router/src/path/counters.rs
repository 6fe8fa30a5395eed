//! Counters of every packet's outcome, by name.
//!
//! Each received packet is counted in exactly one of [`Class::Forwarded`], [`Class::Dropped`] and
//! [`Class::Slow`]; results of the slow path are [`Class::Answer`], additional sent frames are
//! [`Class::Extra`]. Each worker updates its own counters once per batch; readers sum them.

use fwdlab_packet::forwarding::Class;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! reasons {
    ($($class:ident $reason:ident $name:literal $doc:literal,)*) => {
        /// Outcome of a packet. Names are stable: records use them as keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $doc] $reason,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Reason] = &[$(Reason::$reason,)*];

            /// Stable name.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$reason => $name,)* }
            }

            /// Class of the reason.
            pub fn class(self) -> Class {
                match self { $(Reason::$reason => Class::$class,)* }
            }
        }
    };
}

reasons! {
    Forwarded Forwarded "forwarded" "Sent on towards its destination.",
    Dropped PortUnknown "port_unknown" "It came in at a port without an interface.",
    Dropped EthernetShort "ethernet_short" "Shorter than an Ethernet header.",
    Dropped OtherMac "other_mac" "To the MAC of another station.",
    Dropped LinkBroadcast "link_broadcast" "Broadcast or multicast on the link (RFC 1812 5.3.4).",
    Dropped EtherType "ether_type" "Neither IPv4, IPv6 nor ARP.",
    Dropped VlanUnknown "vlan_unknown" "Of a VLAN that no interface is (IEEE 802.1Q).",
    Dropped ArpInvalid "arp_invalid" "Not Ethernet and IPv4, or truncated.",
    Dropped Ipv4Truncated "ipv4_truncated" "Shorter than its IPv4 header.",
    Dropped Ipv4Version "ipv4_version" "Version is not 4.",
    Dropped Ipv4HeaderLength "ipv4_header_length" "Header length below 20 bytes.",
    Dropped Ipv4TotalLength "ipv4_total_length" "Total length below the header's or beyond the frame.",
    Dropped Ipv4Checksum "ipv4_checksum" "Header checksum is wrong.",
    Dropped Ipv4Source "ipv4_source" "Source that no packet on a wire may have (RFC 1812 5.3.7).",
    Dropped Ipv4Destination "ipv4_destination" "Destination that is never forwarded to.",
    Dropped Ipv4Fragment "ipv4_fragment" "Too big for the next link, and its fragments find no room, or have offsets too high.",
    Dropped Ipv6Truncated "ipv6_truncated" "Shorter than its IPv6 header.",
    Dropped Ipv6Version "ipv6_version" "Version is not 6.",
    Dropped Ipv6Length "ipv6_length" "Payload length beyond the frame.",
    Dropped Ipv6Source "ipv6_source" "Source that no packet on a wire may have (RFC 4291 2.5).",
    Dropped Ipv6Destination "ipv6_destination" "Destination that is never forwarded to.",
    Dropped Firewall "firewall" "The firewall blocked it.",
    Dropped StateFull "state_full" "The firewall had no room for its state.",
    Dropped FirewallUnreadable "firewall_unreadable" "The firewall can't read its headers (RFC 3128, RFC 7112).",
    Dropped FirewallFragment "firewall_fragment" "A fragment without the first of its packet, or over what has passed (RFC 1858).",
    Dropped FirewallStray "firewall_stray" "Outside of the windows of its TCP connection, or with a wrong checksum (RFC 5961).",
    Dropped NeighbourUnknown "neighbour_unknown" "The next hop's MAC isn't known.",
    Dropped Blackhole "blackhole" "Its route leads nowhere.",
    Dropped ReversePath "reverse_path" "No route leads back to its source as it came in (RFC 3704).",
    Dropped NoRoom "no_room" "The port that it was to go out at had no room.",
    Slow SlowLocal "slow_local" "To an address of the router.",
    Slow SlowGroup "slow_group" "To a group of the link that the router's host may listen to.",
    Slow SlowNeighbour "slow_neighbour" "ARP or neighbour discovery.",
    Slow SlowExpired "slow_expired" "TTL or hop limit ends here.",
    Slow SlowNoRoute "slow_no_route" "No route to its destination.",
    Slow SlowUnreachable "slow_unreachable" "Its route says that it can't be reached.",
    Slow SlowProhibited "slow_prohibited" "Its route says that it isn't wanted.",
    Slow SlowWaiting "slow_waiting" "It waits until its next hop's MAC is known: `waited_sent` or `waited_told`.",
    Slow SlowBeyondScope "slow_beyond_scope" "From a link-local address to one beyond the link (RFC 4007 section 9).",
    Slow SlowTooBig "slow_too_big" "Too big for the next link, and must not be cut.",
    Slow SlowSourceRoute "slow_source_route" "Its options say which way to go: that isn't done.",
    Slow SlowOptions "slow_options" "Its options can't be read.",
    Answer Answered "answered" "The slow path sent an answer or an error message.",
    Answer Limited "limited" "The slow path sent nothing, as it had sent too much.",
    Answer Silent "silent" "The slow path had nothing to say.",
    Answer ToHost "to_host" "It was handed to the router's own host.",
    Answer HostLimited "host_limited" "It wasn't, as too much had been.",
    Answer Solicited "solicited" "Somebody solicits an advertisement, and all will get one.",
    Extra FromHost "from_host" "A frame of the router's own host was sent.",
    Extra FragmentsSent "fragments_sent" "A fragment beyond the first of a packet, which is the one forwarded.",
    Extra RedirectsSent "redirects_sent" "A redirect was sent to a sender.",
    Extra RedirectsLimited "redirects_limited" "It wasn't, as too many messages had been sent.",
    Extra NeighboursAsked "neighbours_asked" "A next hop was asked for its MAC.",
    Extra AdvertisementsSent "advertisements_sent" "A link was told of the router (RFC 4861 section 6.2).",
    Extra WaitedSent "waited_sent" "A packet that had waited was sent.",
    Extra WaitedTold "waited_told" "The sender of a packet that had waited in vain was told.",
    Extra WaitedLost "waited_lost" "A waiting packet was lost: others displaced it, or its sender \
                                    isn't notified.",
    Extra ExtraLost "extra_lost" "A frame of the router's own that found no room.",
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reasons(u64);

const _: () = assert!(Reason::ALL.len() <= 64);

impl Reasons {
    pub(super) fn of(reasons: &[Reason]) -> Reasons {
        Reasons(reasons.iter().fold(0, |set, &reason| set | 1 << reason as u8))
    }

    pub(super) fn contains(self, reason: Reason) -> bool {
        self.0 >> reason as u8 & 1 != 0
    }
}

/// Number of reasons.
const COUNT: usize = Reason::ALL.len();

/// Counters of one worker, on separate cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Worker([AtomicU64; COUNT]);

/// Counters of all workers.
#[derive(Debug)]
pub struct Counters {
    workers: Box<[Worker]>,
}

impl Counters {
    /// Creates counters for this many workers, all 0.
    pub fn new(workers: usize) -> Arc<Counters> {
        let worker = |_| Worker(std::array::from_fn(|_| AtomicU64::new(0)));
        Arc::new(Counters { workers: (0..workers).map(worker).collect() })
    }

    /// The tally of worker number `worker`, if it exists.
    pub fn tally(self: &Arc<Counters>, worker: usize) -> Option<Tally> {
        self.workers.get(worker)?;
        Some(Tally { counters: Arc::clone(self), worker, pending: [0; COUNT] })
    }

    /// Packets received by each worker, in the order of their numbers.
    pub fn received_by_worker(&self) -> Vec<u64> {
        let of = |Worker(counters): &Worker| {
            Snapshot(std::array::from_fn(|at| counters[at].load(Relaxed))).received()
        };
        self.workers.iter().map(of).collect()
    }

    /// Sums over all workers. While they run, a batch may be visible in part.
    pub fn read(&self) -> Snapshot {
        let sum = |at: usize| {
            self.workers.iter().map(|Worker(counters)| counters[at].load(Relaxed)).sum()
        };
        Snapshot(std::array::from_fn(sum))
    }
}

/// Counts of one worker.
#[derive(Debug)]
pub struct Tally {
    counters: Arc<Counters>,
    worker: usize,
    pending: [u64; COUNT],
}

impl Tally {
    /// Adds `packets` to a counter.
    #[inline(always)]
    pub fn add(&mut self, reason: Reason, packets: u64) {
        self.pending[reason as usize] += packets;
    }

    /// Subtracts up to `packets` that were added since the last flush; returns the number
    /// subtracted.
    #[inline(always)]
    pub fn take_back(&mut self, reason: Reason, packets: u64) -> u64 {
        let pending = &mut self.pending[reason as usize];
        let taken = packets.min(*pending);
        *pending -= taken;
        taken
    }

    /// Publishes the counts to readers.
    pub fn flush(&mut self) {
        let Some(Worker(counters)) = self.counters.workers.get(self.worker) else { return };
        for (counter, pending) in counters.iter().zip(&mut self.pending) {
            if *pending != 0 {
                counter.fetch_add(*pending, Relaxed);
                *pending = 0;
            }
        }
    }
}

/// Counters at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot([u64; COUNT]);

impl Snapshot {
    /// Packets counted for one reason.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets of all reasons of a class. [`Class::Answer`] and [`Class::Slow`] have equal totals.
    pub fn total(&self, class: Class) -> u64 {
        let of_class = Reason::ALL.iter().filter(|reason| reason.class() == class);
        of_class.map(|&reason| self.get(reason)).sum()
    }

    /// Packets received: the sum over all outcomes.
    pub fn received(&self) -> u64 {
        [Class::Forwarded, Class::Dropped, Class::Slow].map(|class| self.total(class)).iter().sum()
    }

    /// Each reason that occurred, with its number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().map(|&reason| (reason, self.get(reason))).filter(|&(_, n)| n > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_reasons_index_them() {
        let names: HashSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), COUNT);
        assert!(Reason::ALL.iter().enumerate().all(|(at, &reason)| at == reason as usize));
    }

    #[test]
    fn read_sums_workers_without_unflushed_packets() {
        let counters = Counters::new(2);
        let mut tallies = [0, 1].map(|worker| counters.tally(worker).expect("a worker"));
        assert!(counters.tally(2).is_none());
        tallies[0].add(Reason::Forwarded, 3);
        tallies[1].add(Reason::Forwarded, 4);
        tallies[1].add(Reason::SlowExpired, 1);
        tallies[0].flush();
        assert_eq!(counters.read().received(), 3);
        tallies[1].flush();
        tallies[1].flush();
        let snapshot = counters.read();
        assert_eq!(snapshot.received(), 8);
        let seen: Vec<_> = snapshot.iter().map(|(reason, n)| (reason.name(), n)).collect();
        assert_eq!(seen, [("forwarded", 7), ("slow_expired", 1)]);
        assert_eq!(counters.received_by_worker(), [3, 5]);
    }
}
