//! Redirects: inform a sender of a better router, or of the destination itself, on its own link
//! (RFC 792, RFC 1812 section 5.2.7.2, RFC 4861 section 8.2).
//!
//! Always for one host, never for a network.

use super::super::interface::Interface;
use super::super::neighbours::Link;
use super::super::slow::{self, icmp};
use super::super::{ethernet, ipv4, ipv6};
use crate::fib::{Address, V4, V6};
use fwdlab_netio::frame::Frame;
use std::net::IpAddr;

/// The better next hop of a packet.
pub(super) enum Redirect {
    /// The router or host to send to.
    Inet(V4),
    /// The router or host to send to, and the router's address that sends the redirect.
    Inet6(V6, V6),
}

/// Finds the better next hop of a packet that leaves where it came in, given in its received form:
/// `gateway`, or the destination itself if that is the gateway or there is no gateway of its
/// family.
pub(super) fn find(
    frame: &Frame,
    interface: &Interface,
    gateway: Option<IpAddr>,
) -> Option<Redirect> {
    let bytes = frame.buffer();
    if ethernet::ether_type(frame) == ethernet::IPV4 {
        let source = ipv4::address(bytes, ipv4::field::SOURCE);
        let destination = ipv4::address(bytes, ipv4::field::DESTINATION);
        let target = gateway.and_then(V4::from_ip).unwrap_or(destination);
        let is_shorter = target != source
            && share_link(interface, source, target)
            && icmp::deserves_error4(frame, interface);
        return is_shorter.then_some(Redirect::Inet(target));
    }
    let source = ipv6::address(bytes, ipv6::field::SOURCE);
    let destination = ipv6::address(bytes, ipv6::field::DESTINATION);
    // Routers use link-local addresses in redirects, for themselves and as target.
    let mut addresses = interface.addresses.iter();
    let own = addresses.find_map(|&(own, _)| V6::from_ip(own).filter(|own| own.is_link_local()))?;
    let gateway = gateway.and_then(V6::from_ip).filter(|gateway| *gateway != destination);
    let (target, is_on_link) = match gateway {
        Some(target) => (target, target.is_link_local() && share_link(interface, source, source)),
        None => (destination, share_link(interface, source, destination)),
    };
    let is_shorter = target != source && is_on_link && icmp::deserves_error6(frame, interface);
    is_shorter.then_some(Redirect::Inet6(target, own))
}

/// Writes the message over the packet.
pub(super) fn write(frame: &mut Frame, interface: &Interface, link: &Link, redirect: Redirect) {
    let length = match redirect {
        Redirect::Inet(V4(target)) => {
            icmp::write_error4(frame, interface, 5, 1, target.to_be_bytes())
        }
        Redirect::Inet6(target, own) => {
            let mac = link.macs.first_chunk().copied().unwrap_or_default();
            icmp::write_redirect6(frame, own, target, mac)
        }
    };
    slow::turn_back(frame, interface, length);
}

/// True if both are on the link of one of the interface's addresses.
fn share_link<A: Address>(interface: &Interface, a: A, b: A) -> bool {
    interface.addresses.iter().any(|&(own, length)| {
        A::from_ip(own).is_some_and(|own| own.shares(a, length) && own.shares(b, length))
    })
}
