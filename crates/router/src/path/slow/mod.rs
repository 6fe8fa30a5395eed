//! Packets that are not forwarded: packets to the router itself, and packets that are answered with
//! an error.
//!
//! An answer is written over the packet that it answers, in the same buffer, and leaves where the
//! packet came in, to the MAC that sent it, without a route lookup. Redirects, which are sent in
//! addition to the packet, are written in [`super::full`].
//!
//! Rate limits keep the router from sending floods without costing other hosts their messages
//! (RFC 4443 section 2.4 (f)):
//!
//! | message | limit of each worker and port |
//! |---|---|
//! | "fragmentation needed", "packet too big" | by source and destination of the packet: one answer serves all packets of a pair |
//! | other errors, redirects | in total, and a quarter of it by receiver |
//! | answers to ARP and neighbour discovery | by requester; an answer is no larger than its request, and stays on the link |
//! | answers to echo requests | in total |

pub(super) mod icmp;
pub(super) mod learn;
mod limit;
mod link;
mod peers;

pub use limit::Rate;
pub(super) use limit::TokenBucket;

use super::counters::Reason;
use super::interface::Interface;
use super::{Config, Echoes};
use super::{ethernet, ipv4, ipv6};
use fwdlab_netio::frame::Frame;
use peers::{Peer, PeerLimits};

/// Receivers that can use up a port's limit of errors together.
const RECEIVERS: u32 = 4;

/// The slow path of one worker.
pub(super) struct Slow {
    /// By port: packets at one port don't use up another port's limits.
    limits: Vec<Limits>,
}

/// Limits of one port.
struct Limits {
    errors: TokenBucket,
    errors_by_receiver: PeerLimits,
    too_big: PeerLimits,
    arp: PeerLimits,
    discovery: PeerLimits,
    echoes: TokenBucket,
}

/// Kinds of answers with separate limits.
#[derive(Clone, Copy)]
enum Kind {
    Arp,
    Discovery,
    Echo,
}

/// An answer to send, and its writer.
enum Answer {
    /// Written over the frame by this function, which returns the new length.
    Reply(Kind, fn(&mut Frame, &Interface) -> usize),
    /// An error message about an IPv4 packet: type, code and second word.
    Error4(u8, u8, [u8; 4]),
    /// An error message about an IPv6 packet: type, code and second word.
    Error6(u8, u8, [u8; 4]),
}

impl Slow {
    pub(super) fn new(config: &Config) -> Slow {
        Slow { limits: config.interfaces.iter().map(|_| Limits::new(config)).collect() }
    }

    /// Takes a token; returns true if a redirect may be sent to the sender of a packet.
    pub(super) fn may_redirect(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let limits = self.limits.get_mut(usize::from(frame.ingress()));
        limits.is_some_and(|limits| limits.may_send_error(frame, now_ns))
    }

    /// Turns the frame into an answer that leaves where it came in, if there is one. `word` is the
    /// second word of an error message: the MTU of the link that was too small, or the offset of
    /// the fault.
    #[cold]
    pub(super) fn handle(
        &mut self,
        frame: &mut Frame,
        reason: Reason,
        word: [u8; 4],
        interface: &Interface,
        now_ns: u64,
    ) -> Reason {
        let Some(answer) = find(frame, reason, word, interface) else {
            return Reason::Silent;
        };
        let limits = self.limits.get_mut(usize::from(frame.ingress()));
        let is_within = limits.is_some_and(|limits| match answer {
            Answer::Reply(Kind::Arp, _) => limits.arp.take(requester(frame), now_ns),
            Answer::Reply(Kind::Discovery, _) => limits.discovery.take(requester(frame), now_ns),
            Answer::Reply(Kind::Echo, _) => limits.echoes.take(now_ns),
            Answer::Error4(..) | Answer::Error6(..) if reason == Reason::SlowTooBig => {
                limits.too_big.take(ends(frame), now_ns)
            }
            Answer::Error4(..) | Answer::Error6(..) => limits.may_send_error(frame, now_ns),
        });
        if !is_within {
            return Reason::Limited;
        }
        let length = match answer {
            Answer::Reply(_, write) => write(frame, interface),
            Answer::Error4(kind, code, word) => {
                icmp::write_error4(frame, interface, kind, code, word)
            }
            Answer::Error6(kind, code, word) => {
                icmp::write_error6(frame, interface, kind, code, word)
            }
        };
        turn_back(frame, interface, length);
        Reason::Answered
    }
}

impl Limits {
    fn new(config: &Config) -> Limits {
        let Config { errors, answers, echoes: Echoes(echoes), .. } = *config;
        let share = Rate {
            per_second: errors.per_second.div_ceil(RECEIVERS),
            burst: errors.burst.div_ceil(RECEIVERS),
        };
        Limits {
            errors: TokenBucket::new(errors),
            errors_by_receiver: PeerLimits::new(share),
            too_big: PeerLimits::new(errors),
            arp: PeerLimits::new(answers),
            discovery: PeerLimits::new(answers),
            echoes: TokenBucket::new(echoes),
        }
    }

    /// Takes a token of the sender of an IP packet, and of all.
    fn may_send_error(&mut self, frame: &Frame, now_ns: u64) -> bool {
        let [source, _] = ends(frame);
        self.errors_by_receiver.take([source, 0], now_ns) && self.errors.take(now_ns)
    }
}

/// Source and destination of an IP packet.
fn ends(frame: &Frame) -> Peer {
    use super::{ipv4::field as inet, ipv6::field as inet6};
    let bytes = frame.buffer();
    match ethernet::ether_type(frame) == ethernet::IPV4 {
        true => [inet::SOURCE, inet::DESTINATION].map(|at| ipv4::address(bytes, at).0.into()),
        false => [inet6::SOURCE, inet6::DESTINATION].map(|at| ipv6::address(bytes, at).0),
    }
}

/// MAC and address of the sender of an ARP request or a solicitation.
fn requester(frame: &Frame) -> Peer {
    let bytes = frame.buffer();
    let mac = bytes[6..12].iter().fold(0, |mac, &byte| mac << 8 | u128::from(byte));
    let address = match ethernet::ether_type(frame) == ethernet::ARP {
        true => ipv4::address(bytes, link::field::SENDER + 6).0.into(),
        false => ipv6::address(bytes, ipv6::field::SOURCE).0,
    };
    [mac, address]
}

/// The answer to a packet, if any.
fn find(frame: &Frame, reason: Reason, word: [u8; 4], interface: &Interface) -> Option<Answer> {
    let is_inet = ethernet::ether_type(frame) == ethernet::IPV4;
    // Types and codes of RFC 792, 1191 and 4443. Only IPv4 has options here, only IPv6 scopes.
    let error =
        |[kind4, code4]: [u8; 2], [kind6, code6]: [u8; 2]| match is_inet {
            true => icmp::deserves_error4(frame, interface)
                .then_some(Answer::Error4(kind4, code4, word)),
            false => icmp::deserves_error6(frame, interface)
                .then_some(Answer::Error6(kind6, code6, word)),
        };
    match reason {
        Reason::SlowExpired => error([11, 0], [3, 0]),
        Reason::SlowNoRoute => error([3, 0], [1, 0]),
        Reason::SlowUnreachable => error([3, 1], [1, 3]),
        Reason::SlowProhibited => error([3, 13], [1, 1]),
        Reason::SlowTooBig if !is_inet => {
            icmp::deserves_too_big(frame, interface).then_some(Answer::Error6(2, 0, word))
        }
        Reason::SlowTooBig => error([3, 4], [2, 0]),
        Reason::SlowBeyondScope => error([0, 0], [1, 2]),
        Reason::SlowSourceRoute => error([3, 5], [0, 0]),
        Reason::SlowOptions => error([12, 0], [0, 0]),
        Reason::SlowNeighbour if ethernet::ether_type(frame) == ethernet::ARP => {
            let is_request = link::asks_arp(frame, interface);
            is_request.then_some(Answer::Reply(Kind::Arp, link::write_arp))
        }
        Reason::SlowNeighbour => link::solicitation(frame, interface),
        Reason::SlowLocal if is_inet => {
            let is_request = icmp::is_echo4(frame) && fits(end4(frame), interface);
            is_request.then_some(Answer::Reply(Kind::Echo, icmp::write_echo4))
        }
        Reason::SlowLocal if icmp::is_echo6(frame) => {
            let answer = Answer::Reply(Kind::Echo, icmp::write_echo6);
            fits(end6(frame), interface).then_some(answer)
        }
        Reason::SlowLocal => link::solicitation(frame, interface),
        _ => None,
    }
}

/// True for a neighbour discovery message from the link itself (RFC 4861 section 7.1).
pub(super) fn is_discovery(frame: &Frame) -> bool {
    let bytes = frame.buffer();
    ethernet::ether_type(frame) == ethernet::IPV6
        && bytes[ipv6::field::NEXT_HEADER] == ipv6::ICMP
        && bytes[ipv6::field::HOP_LIMIT] == 255
        && frame.len() > link::MESSAGE
        && matches!(bytes[link::MESSAGE], 133..=137)
}

/// True if a packet that ends at `end` in its frame fits the link's MTU: some links receive more
/// than they may send, and answers are not fragmented.
fn fits(end: usize, interface: &Interface) -> bool {
    end <= ethernet::HEADER + usize::from(interface.mtu)
}

/// Sends the frame, now `length` bytes long, back to its sender.
pub(super) fn turn_back(frame: &mut Frame, interface: &Interface, length: usize) {
    let bytes = frame.buffer_mut();
    bytes.copy_within(6..12, 0);
    bytes[6..12].copy_from_slice(&interface.mac);
    if let Some(padding) = bytes.get_mut(length..ethernet::SMALLEST) {
        padding.fill(0);
    }
    frame.set_len(length.max(ethernet::SMALLEST));
    frame.send_to(frame.ingress());
}

/// End of the IPv4 packet in a checked frame.
fn end4(frame: &Frame) -> usize {
    ethernet::HEADER + usize::from(ipv4::total_length(frame.buffer()))
}

/// End of the IPv6 packet in a checked frame.
pub(super) fn end6(frame: &Frame) -> usize {
    ethernet::HEADER + ipv6::packet_length(frame.buffer())
}
