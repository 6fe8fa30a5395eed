//! Messages that configure an interface.

use super::message::{NLM_F_REPLACE, Writer};
use std::net::IpAddr;

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
/// Request with acknowledgement; replaces an existing address.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_CREATE: u16 = 0x400;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
/// No generated address.
const ADDR_GEN_MODE_NONE: u8 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The address is known to be unique: no duplicate address detection.
const IFA_F_NODAD: u8 = 2;
const IFF_UP: u32 = 1;

/// Sets MAC and MTU of interface number `index`, disables generated IPv6 addresses if the kernel
/// has IPv6, and sets the interface up.
pub fn configure_link(
    sequence: u32,
    index: u32,
    (mac, mtu): ([u8; 6], u16),
    has_inet6: bool,
) -> Vec<u8> {
    let mut writer = Writer::new(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, sequence);
    // Family and type, both unspecified; index; flags and the mask of changed flags.
    writer.put(&[0; 4]);
    [index, IFF_UP, IFF_UP].iter().for_each(|word| writer.put(&word.to_ne_bytes()));
    writer.attribute(IFLA_ADDRESS, &mac);
    writer.attribute(IFLA_MTU, &u32::from(mtu).to_ne_bytes());
    if has_inet6 {
        writer.nested(IFLA_AF_SPEC, |families| {
            families.nested(libc::AF_INET6 as u16, |inet6| {
                inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &[ADDR_GEN_MODE_NONE]);
            });
        });
    }
    writer.finish()
}

/// Adds an address with its prefix length to interface number `index`.
pub fn new_address(sequence: u32, index: u32, (address, length): (IpAddr, u8)) -> Vec<u8> {
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
    let mut writer = Writer::new(RTM_NEWADDR, flags, sequence);
    let (family, address) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    writer.put(&[family as u8, length, IFA_F_NODAD, 0]);
    writer.put(&index.to_ne_bytes());
    writer.attribute(IFA_LOCAL, &address);
    writer.attribute(IFA_ADDRESS, &address);
    writer.finish()
}
