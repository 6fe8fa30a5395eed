//! The full path: one packet at a time, through the stages of a BSD kernel.
//!
//! | stage | in FreeBSD |
//! |---|---|
//! | frames are queued by protocol, then taken from the queues one by one | `ether_demux`, `netisr_queue` |
//! | headers are checked, destinations compared with every own address | `ip_input`, `ip6_input` |
//! | IPv4 options are processed | `ip_dooptions` |
//! | header and eight bytes are saved for a possible error message | `ip_forward` (`mcopy`) |
//! | one lookup, and a reference to the next hop, which all workers count in the same place | `fib4_lookup`, `rtalloc1`, `RTFREE` |
//! | TTL | `ip_forward` |
//! | packets that leave where they came in: a redirect to their sender | `ip_forward` (`icmp_error`) |
//! | the interface's MTU, the whole header's checksum, fragments | `ip_output`, `ip_fragment` |
//! | MACs, and a queue at the port | `ether_output`, `if_transmit` |
//!
//! The fast path passes exceptional packets to it, starting with `ip_dooptions`. Both paths send
//! identical bytes; only the amount of work differs.
//!
//! Not implemented: reassembly, timestamp options, multicast, and queues shared with other threads.
//! IPv6 options are forwarded unread (RFC 8200 section 4.3).

mod fragment;
mod options;
mod redirect;

use super::check::{Protocol, protocol};
use super::egress::{Egress, Egresses};
use super::ethernet::{self, HEADER as ETHERNET};
use super::interface::Walk;
use super::neighbours::{Entry, Link};
use super::originated::OriginatedFrames;
use super::punt::apart;
use super::{Firewall, Reason, ReversePath, Router, Tally, link, mtu_word};
use super::{ipv4, ipv6};
use crate::fib::{NextHop, V4};
use fwdlab_netio::frame::Frame;
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

/// Bytes of a frame to save: the longest IPv4 header and eight bytes.
const HEAD: usize = ETHERNET + 60 + 8;

/// Queues of one worker.
#[derive(Default)]
pub(super) struct Full {
    /// Places in the batch, by protocol.
    inet: VecDeque<usize>,
    inet6: VecDeque<usize>,
    /// Places and ports, in the order of sending.
    output: VecDeque<(usize, u8)>,
    /// The rule that blocked the last packet that the firewall dropped.
    rule: Option<u32>,
}

/// The beginning of a frame before forwarding changed it.
struct Head([u8; HEAD]);

impl Head {
    fn of(frame: &Frame) -> Head {
        let mut head = [0; HEAD];
        head.copy_from_slice(&frame.buffer()[..HEAD]);
        Head(head)
    }

    fn restore(&self, frame: &mut Frame) {
        frame.buffer_mut()[..HEAD].copy_from_slice(&self.0);
        frame.send_nowhere();
    }
}

/// A reference to a next hop: taking and dropping it writes to memory that all workers share.
type Held = Option<Arc<Entry>>;

/// Reason why a packet was not forwarded, with the second word of an error message about it.
type Refused = (Reason, [u8; 4]);

fn plain(reason: Reason) -> Refused {
    (reason, [0; 4])
}

impl<W: Firewall> Router<W> {
    /// Processes a whole batch on the full path.
    pub(super) fn process_fully(&mut self, batch: &mut [Frame], now_ns: u64) {
        for (place, frame) in batch.iter_mut().enumerate() {
            frame.send_nowhere();
            match self.ports.mac(frame).and_then(|mac| protocol(frame, mac)) {
                Ok(Protocol::Inet) => self.full.inet.push_back(place),
                Ok(Protocol::Inet6) => self.full.inet6.push_back(place),
                Err(reason) => {
                    let reason = self.host.sorted(frame, reason);
                    self.conclude(place, Err(plain(reason)));
                }
            }
        }
        while let Some(place) = self.full.inet.pop_front() {
            let outcome = self.input4(&mut batch[place], now_ns);
            self.conclude(place, outcome);
        }
        while let Some(place) = self.full.inet6.pop_front() {
            let outcome = self.input6(&mut batch[place], now_ns);
            self.conclude(place, outcome);
        }
        self.transmit(batch);
    }

    /// Processes the exceptions of the fast path.
    #[inline(always)]
    pub(super) fn forward_handed(&mut self, batch: &mut [Frame], now_ns: u64) {
        if !self.exceptions.full.is_empty() {
            self.forward_each_handed(batch, now_ns);
        }
    }

    #[cold]
    fn forward_each_handed(&mut self, batch: &mut [Frame], now_ns: u64) {
        for at in 0..self.exceptions.full.len() {
            let place = usize::from(self.exceptions.full[at]);
            let outcome = match ethernet::ether_type(&batch[place]) {
                ethernet::IPV4 => self.forward4(batch, place, now_ns),
                _ => self.forward6(batch, place, now_ns),
            };
            self.conclude(place, outcome);
        }
        self.exceptions.full.clear();
        self.transmit(batch);
    }

    /// `ip_input`.
    fn input4(&mut self, frame: &mut Frame, now_ns: u64) -> Result<u8, Refused> {
        ipv4::check(frame, &Walk(&self.ports.owners)).map_err(plain)?;
        self.check_source(frame)?;
        self.filter(frame, now_ns)?;
        self.forward4(slice::from_mut(frame), 0, now_ns)
    }

    /// `ip6_input`.
    fn input6(&mut self, frame: &mut Frame, now_ns: u64) -> Result<u8, Refused> {
        ipv6::check(frame, &Walk(&self.ports.owners)).map_err(plain)?;
        self.check_source(frame)?;
        self.filter(frame, now_ns)?;
        self.forward6(slice::from_mut(frame), 0, now_ns)
    }

    /// Applies the source filter.
    pub(super) fn check_source(&self, frame: &Frame) -> Result<(), Refused> {
        let mode = self.reverse_paths.get(usize::from(frame.ingress())).copied();
        match mode.unwrap_or_default() {
            ReversePath::Off => Ok(()),
            mode if self.leads_back(frame, mode) => Ok(()),
            _ => Err(plain(Reason::ReversePath)),
        }
    }

    /// `ip_forward` and `ip_output` of the packet at a place of the batch in which the firewall has
    /// seen it come in; returns the egress port.
    fn forward4(&mut self, batch: &mut [Frame], place: usize, now_ns: u64) -> Result<u8, Refused> {
        let frame = &mut batch[place];
        let record = options::check(frame)?;
        let head = Head::of(frame);
        let destination = ipv4::address(frame.buffer(), ipv4::field::DESTINATION);
        let mut next_hop = [None];
        self.inet.fib.lookup_batch(&[destination], &mut next_hop);
        let (link, reference) = self.next_hop(next_hop, batch, place, now_ns)?;
        let frame = &mut batch[place];
        let interface = self.interfaces.get(usize::from(link.port));
        // Of the link, or less by the route.
        let mtu = link.mtu;
        if let Some(at) = record
            && let Some(own) = interface.and_then(|interface| interface.address::<V4>())
        {
            options::record(frame, at, own);
        }

        let bytes = frame.buffer_mut();
        bytes[ipv4::field::TTL] -= 1;
        let total = ipv4::total_length(bytes);
        let header = usize::from(bytes[ETHERNET] & 15) * 4;
        let must_be_cut = total > mtu;
        if must_be_cut && bytes[ipv4::field::FLAGS] & 0x40 != 0 {
            head.restore(frame);
            return Err((Reason::SlowTooBig, mtu_word(mtu)));
        }
        ipv4::write_checksum(bytes, header);
        bytes[..12].copy_from_slice(&link.macs);
        let end = (ETHERNET + usize::from(total)).max(ethernet::SMALLEST);
        frame.set_len(frame.len().min(end));
        self.filter_outgoing(batch, place, link.port, now_ns)?;
        let frame = &mut batch[place];
        if must_be_cut {
            cut(frame, &link, mtu, &mut self.emitted, &mut self.tally)?;
        }
        if self.redirects && link.port == frame.ingress() {
            self.redirect(frame, &head, &link, reference, now_ns);
        }
        Ok(link.port)
    }

    /// `ip6_forward` and `nd6_output` of a packet, as [`Router::forward4`].
    fn forward6(&mut self, batch: &mut [Frame], place: usize, now_ns: u64) -> Result<u8, Refused> {
        let frame = &mut batch[place];
        let head = Head::of(frame);
        let destination = ipv6::address(frame.buffer(), ipv6::field::DESTINATION);
        let mut next_hop = [None];
        self.inet6.fib.lookup_batch(&[destination], &mut next_hop);
        let (link, reference) = self.next_hop(next_hop, batch, place, now_ns)?;
        let frame = &mut batch[place];
        let mtu = link.mtu;
        let bytes = frame.buffer_mut();
        bytes[ipv6::field::HOP_LIMIT] -= 1;
        let packet = ipv6::packet_length(bytes);
        if packet > usize::from(mtu) {
            head.restore(frame);
            return Err((Reason::SlowTooBig, mtu_word(mtu)));
        }
        bytes[..12].copy_from_slice(&link.macs);
        frame.set_len(frame.len().min((ETHERNET + packet).max(ethernet::SMALLEST)));
        self.filter_outgoing(batch, place, link.port, now_ns)?;
        let frame = &mut batch[place];
        if self.redirects && link.port == frame.ingress() {
            self.redirect(frame, &head, &link, reference, now_ns);
        }
        Ok(link.port)
    }

    /// Link of a next hop, if it exists and is known, and a reference that lasts as long as the
    /// packet needs it.
    fn next_hop(
        &mut self,
        [next_hop]: [Option<NextHop>; 1],
        batch: &mut [Frame],
        place: usize,
        now_ns: u64,
    ) -> Result<(Link, Held), Refused> {
        let Some(number) = next_hop else {
            return Err(plain(Reason::SlowNoRoute));
        };
        let link = *link(&self.links, next_hop);
        if link.mtu > 0 {
            return Ok((link, self.neighbours.reference(number)));
        }
        let Router { neighbours, links, near, interfaces, .. } = self;
        match (Egresses { neighbours, links, near, interfaces }).find(&batch[place], number) {
            Egress::Link(link) => Ok((link, self.neighbours.reference(number))),
            Egress::End(reason) => Err(plain(reason)),
            Egress::Wait(hop, port) => {
                let waits = self.wait(batch, place, (hop, port), now_ns);
                Err(waits.map_or_else(|()| self.held_back(place), plain))
            }
        }
    }

    /// Sends a redirect to the sender of a packet that leaves where it came in, if there is a
    /// shorter path.
    #[cold]
    fn redirect(&mut self, frame: &Frame, head: &Head, link: &Link, to: Held, now_ns: u64) {
        let Some(interface) = self.interfaces.get(usize::from(link.port)) else { return };
        let mut message = frame.clone();
        head.restore(&mut message);
        let gateway = to.and_then(|entry| entry.gateway).map(|gateway| gateway.address);
        let Some(write) = redirect::find(&message, interface, gateway) else { return };
        let outcome = match self.slow.may_redirect(&message, now_ns) {
            false => Reason::RedirectsLimited,
            true => {
                redirect::write(&mut message, interface, link, write);
                let sent = self.emitted.push(message);
                if sent { Reason::RedirectsSent } else { Reason::ExtraLost }
            }
        };
        self.tally.add(outcome, 1);
    }

    /// Filters an incoming packet.
    pub(super) fn filter(&mut self, frame: &Frame, now_ns: u64) -> Result<(), Refused> {
        let passed = self.firewall.incoming(slice::from_ref(frame), 1, now_ns);
        if passed & 1 != 0 { Ok(()) } else { Err(self.held_back(0)) }
    }

    /// Reason why the firewall dropped the packet at a place of its last batch.
    #[cold]
    fn held_back(&mut self, place: usize) -> Refused {
        self.full.rule = self.firewall.rule(place);
        let apart = apart(self.firewall.take_held_back());
        let found = apart.into_iter().find(|&(_, places)| places != 0);
        plain(found.map_or(Reason::Firewall, |(reason, _)| reason))
    }

    /// Filters an outgoing packet, before fragmentation.
    fn filter_outgoing(
        &mut self,
        batch: &mut [Frame],
        place: usize,
        port: u8,
        now_ns: u64,
    ) -> Result<(), Refused> {
        batch[place].send_to(port);
        let passed = self.firewall.outgoing(batch, 1 << place, now_ns);
        batch[place].send_nowhere();
        if passed >> place & 1 != 0 { Ok(()) } else { Err(self.held_back(place)) }
    }

    /// Counts a packet, and adds it to its port's queue.
    fn conclude(&mut self, place: usize, outcome: Result<u8, Refused>) {
        match outcome {
            Ok(port) => {
                self.tally.add(Reason::Forwarded, 1);
                self.full.output.push_back((place, port));
            }
            Err((reason, word)) => {
                let rule = self.full.rule.take();
                self.exceptions.sort_out_by(&mut self.tally, place, reason, (word, rule));
            }
        }
    }

    /// Sends the packets in the ports' queues.
    fn transmit(&mut self, batch: &mut [Frame]) {
        while let Some((place, port)) = self.full.output.pop_front() {
            batch[place].send_to(port);
        }
    }
}

/// Shortens the frame to its packet's first fragment, and emits the others.
#[cold]
pub(super) fn cut(
    frame: &mut Frame,
    link: &Link,
    mtu: u16,
    emitted: &mut OriginatedFrames,
    tally: &mut Tally,
) -> Result<(), Refused> {
    let further = fragment::further(frame, mtu);
    let Some(further) = further.filter(|further| further.len() <= emitted.room()) else {
        return Err(plain(Reason::Ipv4Fragment));
    };
    tally.add(Reason::FragmentsSent, further.len() as u64);
    for mut fragment in further {
        fragment.send_to(link.port);
        emitted.push(fragment);
    }
    fragment::shorten(frame, mtu);
    Ok(())
}
