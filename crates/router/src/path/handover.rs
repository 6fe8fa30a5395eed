//! A router in the place of another, between two batches: no packet is lost for it.

use super::neighbours::{Gateway, Hop};
use super::originated::Emitted;
use super::{Firewall, NextHop, Reason, Router};
use fwdlab_netio::frame::Frame;
use std::any::Any;
use std::collections::VecDeque;

/// What a router has of packets and connections.
pub struct HandedOver {
    /// Packets that wait for the MAC of a gateway, with the time of the first.
    waiting: Vec<(Gateway, u64, VecDeque<Frame>)>,
    emitted: Emitted,
    firewall: Option<Box<dyn Any + Send>>,
}

impl<W: Firewall> Router<W> {
    /// Gives away what is under way; of what is counted everything is visible then. This
    /// router is to be dropped.
    pub fn hand_over(&mut self) -> HandedOver {
        let mut waiting = Vec::new();
        for queue in self.waiting.take(|_| true) {
            let Hop { number, host } = queue.hop;
            let listed = self.neighbours.entry(number).and_then(|entry| entry.gateway);
            match host.or(listed) {
                Some(gateway) => waiting.push((gateway, queue.since_ns, queue.frames)),
                None => self.tally.add(Reason::WaitedLost, queue.frames.len() as u64),
            }
        }
        let (emitted, firewall) = (std::mem::take(&mut self.emitted), self.firewall.hand_over());
        self.flush();
        HandedOver { waiting, emitted, firewall }
    }

    /// Goes on with what another router had. Packets go where the other one sent them.
    pub fn take_over(&mut self, before: HandedOver, now_ns: u64) {
        let HandedOver { waiting, emitted, firewall } = before;
        self.emitted = emitted;
        if let Some(firewall) = firewall {
            self.firewall.take_over(firewall);
        }
        // Of a host its own address counts, so that any number does.
        let Some(number) = NextHop::new(NextHop::MAX) else { return };
        for (gateway, since_ns, frames) in waiting {
            let hop = Hop { number, host: Some(gateway) };
            for frame in &frames {
                if usize::from(gateway.port) >= self.interfaces.len()
                    || !self.waiting.push(hop, frame, since_ns)
                {
                    self.tally.add(Reason::WaitedLost, 1);
                }
            }
        }
        // It looks after them at once.
        self.next_age_ns = self.next_age_ns.min(now_ns);
        self.changes = u64::MAX;
    }
}
