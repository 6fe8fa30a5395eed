//! Replaces a router by another one between two batches, without packet loss.

use super::neighbours::{Gateway, Hop};
use super::originated::OriginatedFrames;
use super::{Firewall, NextHop, Reason, Router};
use fwdlab_netio::frame::Frame;
use std::any::Any;
use std::collections::VecDeque;

/// A router's pending packets and connections.
pub struct HandedOver {
    /// Packets that wait for the MAC of a gateway, with the MTU and the arrival time of the first.
    waiting: Vec<((Gateway, u16), u64, VecDeque<Frame>)>,
    emitted: OriginatedFrames,
    firewall: Option<Box<dyn Any + Send>>,
}

impl<W: Firewall> Router<W> {
    /// Returns the pending packets and connections, and publishes all counts. Drop this router
    /// afterwards.
    pub fn hand_over(&mut self) -> HandedOver {
        self.end_flows(self.neighbours.clock_ns());
        let mut waiting = Vec::new();
        for queue in self.waiting.take(|_| true) {
            let Hop { number, host, mtu } = queue.hop;
            let listed = self.neighbours.entry(number).and_then(|entry| entry.gateway);
            match host.or(listed) {
                Some(gateway) => waiting.push(((gateway, mtu), queue.since_ns, queue.frames)),
                None => self.tally.add(Reason::WaitedLost, queue.frames.len() as u64),
            }
        }
        let (emitted, firewall) = (std::mem::take(&mut self.emitted), self.firewall.hand_over());
        self.flush();
        HandedOver { waiting, emitted, firewall }
    }

    /// Continues with the packets and connections of another router. Packets go to the next hops
    /// that the other one chose.
    pub fn take_over(&mut self, before: HandedOver, now_ns: u64) {
        let HandedOver { waiting, emitted, firewall } = before;
        self.emitted = emitted;
        self.invalidate_flows();
        if let Some(firewall) = firewall {
            self.firewall.take_over(firewall);
        }
        // For a host only its address matters, so any number is valid.
        let Some(number) = NextHop::new(NextHop::MAX) else { return };
        for ((gateway, mtu), since_ns, frames) in waiting {
            let hop = Hop { number, host: Some(gateway), mtu };
            for frame in &frames {
                if usize::from(gateway.port) >= self.interfaces.len()
                    || !self.waiting.push((hop, gateway.port), frame, since_ns)
                {
                    self.tally.add(Reason::WaitedLost, 1);
                }
            }
        }
        // Check the waiting packets immediately.
        self.next_age_ns = self.next_age_ns.min(now_ns);
        self.changes = u64::MAX;
    }
}
