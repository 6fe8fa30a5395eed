//! Frame changes made by devices.

/// Offsets in an IPv4 frame over Ethernet.
const IP_CHECK: usize = 24;
const SOURCE: usize = 26;
const PORT: usize = 34;
const UDP_CHECK: usize = 40;

/// Translates the source of a UDP packet over IPv4 as a NAT device does: address, port, and both
/// checksums by difference (RFC 1624, equation 3).
///
/// # Panics
/// If the frame is shorter than its headers.
pub fn translate_source(frame: &mut [u8], address: [u8; 4], port: u16) {
    let words = [
        (SOURCE, [address[0], address[1]], &[IP_CHECK, UDP_CHECK][..]),
        (SOURCE + 2, [address[2], address[3]], &[IP_CHECK, UDP_CHECK]),
        (PORT, port.to_be_bytes(), &[UDP_CHECK]),
    ];
    for (at, after, checks) in words {
        let before = word(frame, at);
        frame[at..at + 2].copy_from_slice(&after);
        for &check in checks {
            let sum = [!word(frame, check), !before, u16::from_be_bytes(after)].map(u32::from);
            let sum: u32 = sum.iter().sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            frame[check..check + 2].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
    }
    // A checksum of zero means no checksum (RFC 768).
    if word(frame, UDP_CHECK) == 0 {
        frame[UDP_CHECK..UDP_CHECK + 2].fill(0xff);
    }
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}
