//! Packets that wait while the MAC of their next hop is being resolved (RFC 1122 section 2.3.2.2,
//! RFC 4861 section 7.2.2).
//!
//! Each worker has its own queues. The packets have passed the firewall; when the MAC arrives they
//! are sent in order, and after three unanswered requests their senders get an error.

use super::neighbours::Hop;
use fwdlab_netio::frame::Frame;
use std::collections::VecDeque;

/// Maximum number of waiting packets per next hop; a further one replaces the oldest.
const EACH: usize = 8;
/// Maximum number of waiting packets of a port, each of 1600 bytes.
const ALL: usize = 256;

/// All waiting packets.
#[derive(Debug, Default)]
pub(super) struct ArpQueue {
    queues: Vec<Queue>,
}

/// Packets to one next hop.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) hop: Hop,
    /// Port of the next hop.
    port: u8,
    /// Arrival time of the first packet.
    pub(super) since_ns: u64,
    pub(super) frames: VecDeque<Frame>,
}

impl ArpQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Adds a packet for a next hop at a port. Returns false if this dropped another one, or the
    /// packet itself.
    pub(super) fn push(&mut self, (hop, port): (Hop, u8), frame: &Frame, now_ns: u64) -> bool {
        let of_port = self.queues.iter().filter(|queue| queue.port == port);
        let total: usize = of_port.map(|queue| queue.frames.len()).sum();
        let at = self.queues.iter().position(|queue| queue.hop == hop);
        if total >= ALL && at.is_none() {
            return false;
        }
        let at = at.unwrap_or_else(|| {
            self.queues.push(Queue { hop, port, since_ns: now_ns, frames: VecDeque::new() });
            self.queues.len() - 1
        });
        let frames = &mut self.queues[at].frames;
        let is_full = frames.len() >= EACH || total >= ALL;
        if is_full {
            frames.pop_front();
        }
        frames.push_back(frame.clone());
        !is_full
    }

    /// Removes and returns the queues that match the predicate.
    pub(super) fn take(&mut self, is_over: impl Fn(&Queue) -> bool) -> Vec<Queue> {
        let (over, left) = std::mem::take(&mut self.queues).into_iter().partition(is_over);
        self.queues = left;
        over
    }

    /// Next hops whose MAC is still unknown.
    pub(super) fn hops(&self) -> impl Iterator<Item = Hop> {
        self.queues.iter().map(|queue| queue.hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::NextHop;

    #[test]
    fn waiting_packets_are_limited() {
        let mut waiting = ArpQueue::default();
        let hop = |number| {
            let number = NextHop::new(number).expect("a number");
            Hop { number, host: None, mtu: u16::MAX }
        };
        let frame = |number: u8| Frame::of(0, &[number]).expect("it fits");
        for number in 0..10 {
            assert_eq!(waiting.push((hop(0), 1), &frame(number), 5), number < 8);
        }
        for number in 1..=100 {
            for copy in 0..8 {
                waiting.push((hop(number), 1), &frame(copy), 6);
            }
        }
        // Packets to other links have separate places.
        assert!(waiting.push((hop(200), 2), &frame(0), 6));
        assert_eq!(waiting.take(|queue| queue.port == 2).len(), 1);
        let of_first = waiting.take(|queue| queue.hop == hop(0));
        let numbers: Vec<u8> = of_first[0].frames.iter().map(|frame| frame.bytes()[0]).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 9]);
        let rest = waiting.take(|_| true);
        assert_eq!(rest.iter().map(|queue| queue.frames.len()).sum::<usize>(), ALL - 8);
        assert!(waiting.is_empty());
    }
}
