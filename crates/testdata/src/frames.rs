//! Frame changes made by devices.

use std::net::IpAddr;

/// Offset of the header checksum in an IPv4 frame over Ethernet.
const IP_CHECK: usize = 24;

/// Translates the source of a UDP packet as a NAT device does: address, port, and the checksums by
/// difference (RFC 1624, equation 3).
///
/// # Panics
/// If the frame is shorter than its headers.
pub fn translate_source(frame: &mut [u8], address: IpAddr, port: u16) {
    translate(frame, address, port, 0);
}

/// Translates the destination, like [`translate_source`].
///
/// # Panics
/// If the frame is shorter than its headers.
pub fn translate_destination(frame: &mut [u8], address: IpAddr, port: u16) {
    translate(frame, address, port, 1);
}

/// Translates one side: 0 is the source, 1 the destination.
fn translate(frame: &mut [u8], address: IpAddr, port: u16, side: usize) {
    let (bytes, first, udp) = match address {
        IpAddr::V4(address) => (address.octets().to_vec(), 26, 34),
        IpAddr::V6(address) => (address.octets().to_vec(), 22, 54),
    };
    let ip_check = address.is_ipv4().then_some(IP_CHECK);
    let udp_check = udp + 6;
    let mut replace = |at: usize, after: [u8; 2], is_of_ip: bool| {
        let before = word(frame, at);
        frame[at..at + 2].copy_from_slice(&after);
        for check in ip_check.filter(|_| is_of_ip).into_iter().chain([udp_check]) {
            let sum = [!word(frame, check), !before, u16::from_be_bytes(after)].map(u32::from);
            let sum: u32 = sum.iter().sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            frame[check..check + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
    };
    for (n, after) in bytes.as_chunks::<2>().0.iter().enumerate() {
        replace(first + side * bytes.len() + 2 * n, *after, true);
    }
    replace(udp + 2 * side, port.to_be_bytes(), false);
    // A checksum of zero means no checksum (RFC 768).
    if word(frame, udp_check) == 0 {
        frame[udp_check..udp_check + 2].fill(0xff);
    }
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}
