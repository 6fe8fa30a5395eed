//! Requests for neighbours, and learning from their messages (RFC 826, RFC 4861 section 7.2).

use super::super::ethernet::{self, HEADER as ETHERNET};
use super::super::interface::Interface;
use super::super::neighbours::{Gateway, Manner};
use super::super::{ipv4, ipv6};
use super::link::{self, MESSAGE, OPTIONS, TARGET};
use super::{end6, icmp};
use crate::fib::{Address, V4, V6};
use fwdlab_netio::frame::Frame;
use std::net::IpAddr;

/// Flags of an advertisement.
const SOLICITED_FLAG: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
/// Options with the MAC of a message's sender, and of its target.
const SOURCE_MAC: u8 = 1;
const TARGET_MAC: u8 = 2;
/// Solicited-node groups, ff02::1:ff00:0/104.
const SOLICITED: u128 = 0xff02 << 112 | 0x0001_ff00_0000;

/// Address and MAC that a neighbour announces.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Learnt {
    pub(in super::super) address: IpAddr,
    pub(in super::super) mac: [u8; 6],
    pub(in super::super) manner: Manner,
    /// True for an answer to a request.
    pub(in super::super) confirms: bool,
}

/// Extracts a neighbour's MAC from a frame on the slow path: from answers, from requests for an own
/// address, and for known neighbours from any other message about themselves (RFC 826; RFC 4861
/// section 7.2.5).
pub(in super::super) fn learnt(frame: &Frame, interface: &Interface) -> Option<Learnt> {
    match ethernet::ether_type(frame) {
        ethernet::ARP => learnt_by_arp(frame, interface),
        ethernet::IPV6 => learnt_by_discovery(frame, interface),
        _ => None,
    }
}

fn learnt_by_arp(frame: &Frame, interface: &Interface) -> Option<Learnt> {
    use link::field;
    let bytes = frame.buffer();
    let is_known = matches!(bytes[field::OPERATION..field::SENDER], [0, 1 | 2]);
    let to = ipv4::address(bytes, field::TARGET_ADDRESS);
    let address = ipv4::address(bytes, field::SENDER + 6);
    let mac = *bytes[field::SENDER..].first_chunk()?;
    let is_request = bytes[field::OPERATION + 1] == 1;
    let manner = match link::has(interface, to) {
        true if is_request && interface.is_on_link(address) => Manner::Begins,
        true => Manner::Replaces,
        false => Manner::Updates,
    };
    let is_learnt = is_known && !link::has(interface, address);
    let confirms = !is_request && manner == Manner::Replaces;
    is_learnt.then(|| Learnt { address: address.to_ip(), mac, manner, confirms })
}

fn learnt_by_discovery(frame: &Frame, interface: &Interface) -> Option<Learnt> {
    let bytes = frame.buffer();
    let is_sound = icmp::is_sound6(frame)
        && end6(frame) >= OPTIONS
        && bytes[ipv6::field::HOP_LIMIT] == 255
        && bytes[MESSAGE + 1] == 0;
    if !is_sound {
        return None;
    }
    let is_advertisement = bytes[MESSAGE] == ipv6::ADVERTISEMENT;
    let confirms = is_advertisement && bytes[MESSAGE + 4] & SOLICITED_FLAG != 0;
    // No one solicits an answer to a group (RFC 4861 section 7.1.2).
    if confirms && bytes[ipv6::field::DESTINATION] == 0xff {
        return None;
    }
    let target = ipv6::address(bytes, TARGET);
    let (address, option, manner) = match bytes[MESSAGE] {
        ipv6::ADVERTISEMENT => {
            let replaces = bytes[MESSAGE + 4] & OVERRIDE != 0;
            let manner = if replaces { Manner::Replaces } else { Manner::Confirms };
            (target, TARGET_MAC, manner)
        }
        ipv6::SOLICITATION if link::has(interface, target) => {
            let source = ipv6::address(bytes, ipv6::field::SOURCE);
            let begins = interface.is_on_link(source);
            (source, SOURCE_MAC, if begins { Manner::Begins } else { Manner::Replaces })
        }
        _ => return None,
    };
    let learnt = |mac, manner| Learnt { address: address.to_ip(), mac, manner, confirms };
    match option_of(bytes.get(OPTIONS..end6(frame))?, option) {
        Some(mac) => Some(learnt(mac, manner)),
        // An answer to a request at a known MAC may omit it (section 4.4).
        None if confirms => Some(learnt(*bytes[6..].first_chunk()?, Manner::Repeats)),
        None => None,
    }
}

/// MAC in the option of this kind.
fn option_of(mut options: &[u8], kind: u8) -> Option<[u8; 6]> {
    loop {
        // Option lengths are in units of eight bytes.
        let length = 8 * usize::from(*options.get(1)?);
        if length == 0 || length > options.len() {
            return None;
        }
        if options[0] == kind {
            return options[2..length].first_chunk().copied();
        }
        options = &options[length..];
    }
}

/// Creates a request for a gateway's MAC, to its known MAC or the whole link, if the interface has
/// an address to send it from.
pub(in super::super) fn request(
    gateway: &Gateway,
    to: Option<[u8; 6]>,
    interface: &Interface,
) -> Option<Frame> {
    let mut frame = Frame::of(gateway.port, &[0; ethernet::SMALLEST]).ok()?;
    match (V4::from_ip(gateway.address), V6::from_ip(gateway.address)) {
        (Some(target), _) => write_arp_request(&mut frame, interface, target)?,
        (_, Some(target)) => write_solicitation(&mut frame, interface, target, to.is_some())?,
        _ => return None,
    }
    if let Some(mac) = to {
        frame.buffer_mut()[..6].copy_from_slice(&mac);
    }
    frame.buffer_mut()[6..12].copy_from_slice(&interface.mac);
    frame.send_to(gateway.port);
    Some(frame)
}

fn write_arp_request(frame: &mut Frame, interface: &Interface, target: V4) -> Option<()> {
    use link::field;
    let own = interface.nearest(target)?;
    let bytes = frame.buffer_mut();
    bytes[..6].fill(0xff);
    bytes[12..14].copy_from_slice(&ethernet::ARP.to_be_bytes());
    bytes[ETHERNET..field::SENDER].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    bytes[field::SENDER..field::SENDER + 6].copy_from_slice(&interface.mac);
    bytes[field::SENDER + 6..field::TARGET].copy_from_slice(&own.0.to_be_bytes());
    bytes[field::TARGET_ADDRESS..ethernet::ARP_END].copy_from_slice(&target.0.to_be_bytes());
    Some(())
}

fn write_solicitation(
    frame: &mut Frame,
    interface: &Interface,
    target: V6,
    is_unicast: bool,
) -> Option<()> {
    let own = interface.nearest(target)?;
    let [.., a, b, c] = target.0.to_be_bytes();
    let to = if is_unicast { target } else { V6(SOLICITED | target.0 & 0xff_ffff) };
    let bytes = frame.buffer_mut();
    bytes[..6].copy_from_slice(&[0x33, 0x33, 0xff, a, b, c]);
    bytes[12..14].copy_from_slice(&ethernet::IPV6.to_be_bytes());
    bytes[MESSAGE..TARGET].copy_from_slice(&[ipv6::SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
    bytes[TARGET..OPTIONS].copy_from_slice(&target.0.to_be_bytes());
    bytes[OPTIONS..OPTIONS + 2].copy_from_slice(&[SOURCE_MAC, 1]);
    bytes[OPTIONS + 2..OPTIONS + 8].copy_from_slice(&interface.mac);
    let end = icmp::finish6(bytes, own, to, 255, OPTIONS + 8);
    frame.set_len(end);
    Some(())
}
