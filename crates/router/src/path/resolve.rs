//! Packets that wait for a neighbour's answer, requests for neighbours, and the source filter.

use super::arp_queue::Queue;
use super::neighbours::{ASK_NS, Aged, Gateway, Hop, Link, Special};
use super::originated::OriginatedFrames;
use super::slow::learn;
use super::{Firewall, Interface, Reason, Router, Tally};
use super::{ethernet, full, ipv4, ipv6, link, mtu_word};
use crate::fib::{V4, V6};
use fwdlab_netio::frame::Frame;

/// Number of requests, one per second, for which packets wait (RFC 4861 section 10:
/// MAX_MULTICAST_SOLICIT).
const QUESTIONS: u64 = 3;
/// Sources that are accepted at a port (RFC 3704).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReversePath {
    /// Any source.
    #[default]
    Off,
    /// Sources to which any route leads.
    Loose,
    /// Sources whose route leads out at the same port.
    Strict,
}

impl<W: Firewall> Router<W> {
    /// Returns the packets `among` a batch whose source is accepted at the ports where they came
    /// in.
    #[cold]
    pub(super) fn with_right_sources(&mut self, batch: &[Frame], among: u64) -> u64 {
        let right = |place: &usize| {
            let frame = &batch[*place];
            let mode = self.reverse_paths.get(usize::from(frame.ingress()));
            among >> place & 1 != 0
                && mode.is_none_or(|&mode| mode == ReversePath::Off || self.leads_back(frame, mode))
        };
        (0..batch.len()).filter(right).fold(0, |set, place| set | 1 << place)
    }

    /// True if the route to a packet's source satisfies `mode`.
    pub(super) fn leads_back(&self, frame: &Frame, mode: ReversePath) -> bool {
        let mut next_hop = [None];
        if ethernet::ether_type(frame) == ethernet::IPV4 {
            let source: V4 = ipv4::address(frame.buffer(), ipv4::field::SOURCE);
            self.inet.fib.lookup_batch(&[source], &mut next_hop);
        } else {
            let source: V6 = ipv6::address(frame.buffer(), ipv6::field::SOURCE);
            self.inet6.fib.lookup_batch(&[source], &mut next_hop);
        }
        let [Some(number)] = next_hop else { return false };
        let leads_out = |number| {
            let number = self.neighbours.without_limit(number);
            link(&self.links, Some(number)).port == frame.ingress()
        };
        let entry = self.neighbours.entry(number);
        match entry.and_then(|entry| entry.special.as_ref()) {
            Some(
                Special::Blackhole
                | Special::NoRoute
                | Special::Unreachable
                | Special::Prohibit
                | Special::Host,
            ) => false,
            _ if mode == ReversePath::Loose => true,
            Some(Special::Several(members)) => members.iter().any(|&number| leads_out(number)),
            _ => leads_out(number),
        }
    }

    /// Queues a packet that has reached its next hop, if the firewall passes it there. Returns the
    /// reason to count.
    #[cold]
    pub(super) fn wait(
        &mut self,
        batch: &mut [Frame],
        place: usize,
        (hop, port): (Hop, u8),
        now_ns: u64,
    ) -> Result<Reason, ()> {
        batch[place].send_to(port);
        let passed = self.firewall.outgoing(batch, 1 << place, now_ns) >> place & 1 != 0;
        batch[place].send_nowhere();
        if !passed {
            return Err(());
        }
        if !self.waiting.push((hop, port), &batch[place], now_ns) {
            self.tally.add(Reason::WaitedLost, 1);
        }
        self.exceptions.asked.push(hop);
        self.next_age_ns = self.next_age_ns.min(now_ns.saturating_add(ASK_NS));
        Ok(Reason::SlowWaiting)
    }

    /// Queues the packets of a batch that have no link yet.
    #[cold]
    pub(super) fn wait_all(&mut self, batch: &mut [Frame], now_ns: u64) {
        for (place, hop, port) in std::mem::take(&mut self.exceptions.unresolved) {
            match self.wait(batch, place, (hop, port), now_ns) {
                Ok(reason) => self.exceptions.sort_out(&mut self.tally, place, reason, [0; 4]),
                Err(()) => {
                    self.exceptions.block(&mut self.tally, &mut self.firewall, 1 << place);
                }
            }
        }
    }

    /// Updates the links with learnt entries, and sends packets that waited for them.
    #[cold]
    pub(super) fn renew(&mut self, now_ns: u64) {
        self.changes = self.neighbours.changes();
        match self.neighbours.follow() | self.neighbours.take_unlinked() {
            true => self.links = self.neighbours.links(&self.interfaces),
            false => self.neighbours.renew(&mut self.links, &self.interfaces),
        }
        self.near.clear();
        self.invalidate_flows();
        if self.waiting.is_empty() {
            return;
        }
        let (neighbours, links, interfaces) = (&self.neighbours, &self.links, &self.interfaces);
        let of = |hop: &Hop| match &hop.host {
            Some(host) => neighbours.host(host, interfaces),
            None => Some(*link(links, Some(hop.number))).filter(|link| link.mtu > 0),
        };
        let of = |hop: &Hop| of(hop).map(|link| link.limited_to(hop.mtu));
        let ready = self.waiting.take(|queue| of(&queue.hop).is_some());
        let ready: Vec<(Queue, Link)> = ready
            .into_iter()
            .filter_map(|queue| of(&queue.hop).map(|link| (queue, link)))
            .collect();
        for (queue, link) in ready {
            for frame in queue.frames {
                self.send_waited(frame, &link, now_ns);
            }
        }
    }

    fn send_waited(&mut self, mut frame: Frame, link: &Link, now_ns: u64) {
        let is_inet = ethernet::ether_type(&frame) == ethernet::IPV4;
        let rewrite = if is_inet { ipv4::rewrite } else { ipv6::rewrite };
        let mut done = rewrite(&mut frame, link);
        if done == Err(Reason::Ipv4Fragment) {
            done = rewrite(&mut frame, &Link { mtu: u16::MAX, ..*link });
            let cut = full::cut(&mut frame, link, link.mtu, &mut self.emitted, &mut self.tally);
            if cut.is_err() {
                return self.tally.add(Reason::WaitedLost, 1);
            }
        }
        match done {
            Ok(()) => {
                let sent = self.emitted.push(frame);
                self.tally.add(if sent { Reason::WaitedSent } else { Reason::ExtraLost }, 1);
            }
            Err(reason) => self.notify_sender(frame, reason, mtu_word(link.mtu), now_ns),
        }
    }

    /// Sends an error to the sender of a packet whose next hop did not answer.
    fn notify_sender(&mut self, mut frame: Frame, reason: Reason, word: [u8; 4], now_ns: u64) {
        let Some(interface) = self.interfaces.get(usize::from(frame.ingress())) else { return };
        let outcome = self.slow.handle(&mut frame, reason, word, interface, now_ns);
        let sent = outcome == Reason::Answered && self.emitted.push(frame);
        self.tally.add(if sent { Reason::WaitedTold } else { Reason::WaitedLost }, 1);
    }

    /// Repeats requests for which packets wait, and gives up after the last one.
    pub(super) fn ask_for_waiting(&mut self, now_ns: u64) {
        let patience = QUESTIONS * ASK_NS;
        let given_up = self.waiting.take(|queue| now_ns.saturating_sub(queue.since_ns) >= patience);
        for frame in given_up.into_iter().flat_map(|queue| queue.frames) {
            self.notify_sender(frame, Reason::SlowUnreachable, [0; 4], now_ns);
        }
        self.exceptions.asked.extend(self.waiting.hops());
    }

    /// Sends requests for next hops whose MAC was missing.
    #[cold]
    pub(super) fn send_requests(&mut self, now_ns: u64) {
        for hop in self.exceptions.asked.drain(..) {
            if let Some(gateway) = self.neighbours.to_be_asked(hop, now_ns) {
                request_mac(&gateway, None, &self.interfaces, &mut self.emitted, &mut self.tally);
            }
        }
    }

    /// Sends packets whose next hop another worker has learnt, and repeats requests.
    #[cold]
    pub(super) fn check_waiting(&mut self, now_ns: u64) {
        if self.neighbours.changes() != self.changes {
            self.renew(now_ns);
        }
        if now_ns >= self.next_age_ns {
            self.repeat_requests(now_ns);
        }
    }

    /// Sends requests for next hops whose learnt MAC is in doubt, or for which packets wait.
    #[cold]
    pub(super) fn repeat_requests(&mut self, now_ns: u64) {
        if !self.waiting.is_empty() {
            self.ask_for_waiting(now_ns);
            self.send_requests(now_ns);
        }
        self.advertise(now_ns);
        let since_ns = self.next_age_ns.saturating_sub(ASK_NS);
        self.next_age_ns = now_ns.saturating_add(ASK_NS);
        let Aged { requests, is_newly_stale } = self.neighbours.age(now_ns, since_ns);
        if is_newly_stale {
            self.neighbours.renew(&mut self.links, &self.interfaces);
            self.near.clear();
            self.invalidate_flows();
        }
        for (gateway, mac) in requests {
            let to = Some(mac);
            request_mac(&gateway, to, &self.interfaces, &mut self.emitted, &mut self.tally);
        }
    }
}

/// Sends a request for a gateway's MAC, to its known MAC or the whole link, if the interface has an
/// address to send it from.
fn request_mac(
    gateway: &Gateway,
    to: Option<[u8; 6]>,
    interfaces: &[Interface],
    emitted: &mut OriginatedFrames,
    tally: &mut Tally,
) {
    let interface = interfaces.get(usize::from(gateway.port));
    if let Some(request) = interface.and_then(|interface| learn::request(gateway, to, interface)) {
        let sent = emitted.push(request);
        tally.add(if sent { Reason::NeighboursAsked } else { Reason::ExtraLost }, 1);
    }
}
