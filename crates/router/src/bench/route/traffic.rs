//! Packets that the generator writes.

use super::RouteError;
use fwdlab_netio::frame::Frame;
use fwdlab_packet::Flows;
use fwdlab_packet::Stream;
use fwdlab_packet::template::{TTL, Template};
use fwdlab_packet::{Family, FrameWriter, Phase, checksum};
use std::net::IpAddr;

/// Maximum number of flows.
pub const FLOWS_MAX: u32 = 1_000_000;
/// Largest Ethernet frame, with FCS.
const FRAME_MAX: u16 = 1518;
/// Destination addresses; further flows differ in their sources.
const DESTINATIONS: u32 = 100;
/// Bytes written for each packet, from the destination MAC to the end of the stamp. All bytes after
/// them are 0.
const INET: usize = 60;
const INET6: usize = 80;

/// MACs of the sender, of the router's two ports, and of the receiver.
pub(super) const MACS: [[u8; 6]; 4] = [[2; 6], [4; 6], [6; 6], [8; 6]];

/// Headers of all flows, one packet each: UDP, from the sender's to the receiver's side.
#[derive(Clone, Debug)]
pub struct Traffic {
    family: Family,
    /// [`INET`] or [`INET6`] bytes for each flow.
    headers: Vec<u8>,
    /// Bytes of a frame without FCS.
    length: usize,
    expires: bool,
}

impl Traffic {
    /// Creates packets of `flows` flows, from 1 to [`FLOWS_MAX`], in frames of `frame_size` bytes
    /// with FCS; `None` for the smallest possible size.
    ///
    /// # Errors
    /// If frames can't have that size.
    pub fn new(family: Family, frame_size: Option<u16>, flows: u32) -> Result<Traffic, RouteError> {
        let (least, most) = (Template::smallest_frame(family), FRAME_MAX);
        let size = frame_size.unwrap_or(least);
        if !(least..=most).contains(&size) {
            return Err(RouteError::FrameSize { size, least, most });
        }
        let flows = flows.clamp(1, FLOWS_MAX);
        let range = Flows { sources: flows.div_ceil(DESTINATIONS), destinations: DESTINATIONS };
        let mut writer = FrameWriter::new(
            Template::new(&Stream::new(family, size, range), 1, MACS[0], MACS[1]),
            0,
        );
        let mut frame = vec![0; writer.frame_length()];
        writer.prepare(&mut frame);
        let header = header(family);
        let mut headers = Vec::with_capacity(header * flows as usize);
        for _ in 0..flows {
            writer.write_next(&mut frame, Phase::Window, 0);
            headers.extend(&frame[..header]);
        }
        Ok(Traffic { family, headers, length: frame.len(), expires: false })
    }

    /// The same packets with TTL or hop limit 1: the router answers each with an error message.
    pub fn expiring(mut self) -> Traffic {
        self.expires = true;
        for packet in self.headers.chunks_mut(header(self.family)) {
            match self.family {
                Family::Inet => {
                    debug_assert_eq!(packet[22], TTL);
                    packet[22] = 1;
                    packet[24..26].fill(0);
                    let check = checksum::finish(checksum::add(0, &packet[14..34]));
                    packet[24..26].copy_from_slice(&check);
                }
                Family::Inet6 => packet[21] = 1,
            }
        }
        self
    }

    /// The same flows, sent to `destinations` in order; flows beyond the last destination, or of
    /// the other family, keep their addresses.
    pub fn towards(mut self, destinations: impl IntoIterator<Item = IpAddr>) -> Traffic {
        let packets = self.headers.chunks_mut(header(self.family));
        for (packet, destination) in packets.zip(destinations) {
            match (self.family, destination) {
                (Family::Inet, IpAddr::V4(address)) => {
                    redirect(packet, 30, &address.octets(), &[24, 40]);
                }
                (Family::Inet6, IpAddr::V6(address)) => {
                    redirect(packet, 38, &address.octets(), &[60]);
                }
                _ => {}
            }
        }
        self
    }

    /// The same packets without UDP checksum, which IPv4 allows (RFC 768).
    pub fn without_udp_checksum(mut self) -> Traffic {
        let header = header(self.family);
        self.headers.chunks_mut(header).for_each(|packet| packet[header - 20..][..2].fill(0));
        self
    }

    /// Address family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Number of flows.
    pub fn flows(&self) -> usize {
        self.headers.len() / header(self.family)
    }

    /// Returns true if the packets expire at the router.
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// A complete frame of each flow, without FCS.
    pub fn frames(&self) -> impl Iterator<Item = Vec<u8>> {
        self.headers.chunks(header(self.family)).map(|packet| {
            let mut frame = packet.to_vec();
            frame.resize(self.length, 0);
            frame
        })
    }

    /// Fills frames with packets of the flows from number `next` on; returns the number of the flow
    /// after them.
    #[inline]
    pub(super) fn write(&self, frames: &mut [Frame], next: usize) -> usize {
        match self.family {
            Family::Inet => write::<INET>(&self.headers, self.length, frames, next),
            Family::Inet6 => write::<INET6>(&self.headers, self.length, frames, next),
        }
    }
}

fn header(family: Family) -> usize {
    match family {
        Family::Inet => INET,
        Family::Inet6 => INET6,
    }
}

/// Writes an address at an offset of a packet, and updates the checksums at `checks`, of which the
/// last is UDP's.
fn redirect(packet: &mut [u8], at: usize, address: &[u8], checks: &[usize]) {
    for (place, after) in (at..).step_by(2).zip(address.as_chunks::<2>().0) {
        let before = [packet[place], packet[place + 1]];
        packet[place..place + 2].copy_from_slice(after);
        for &check in checks {
            let sum = checksum::update([packet[check], packet[check + 1]], before, *after);
            packet[check..check + 2].copy_from_slice(&sum);
        }
    }
    if let [.., udp] = checks
        && packet[*udp..udp + 2] == [0, 0]
    {
        // 0 would mean that there is no checksum (RFC 768).
        packet[*udp..udp + 2].fill(0xff);
    }
}

/// Writes headers into frames. Buffers are 0 after the header, and are never written there.
fn write<const N: usize>(
    headers: &[u8],
    length: usize,
    frames: &mut [Frame],
    mut next: usize,
) -> usize {
    let (headers, _) = headers.as_chunks::<N>();
    for frame in frames {
        // Always fits: the largest Ethernet frame does.
        let _ = frame.receive(0, &headers[next]);
        frame.set_len(length);
        next += 1;
        if next >= headers.len() {
            next = 0;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use std::collections::HashSet;

    #[test]
    fn packets_are_valid_and_flows_distinct() {
        for (family, size) in [(Family::Inet, 64), (Family::Inet6, 84), (Family::Inet6, 1518)] {
            let traffic = Traffic::new(family, Some(size), 250).expect("a size");
            let mut frames = vec![Frame::new(); 250];
            assert_eq!(traffic.write(&mut frames, 1), 1);
            let mut distinct = HashSet::new();
            for (at, (frame, whole)) in frames.iter().zip(traffic.frames().skip(1)).enumerate() {
                assert_eq!(frame.bytes(), whole, "{at}");
                assert_eq!(whole.len(), usize::from(size) - 4);
                let packet = SlicedPacket::from_ethernet(&whole).expect("etherparse reads it");
                assert!(matches!(packet.transport, Some(TransportSlice::Udp(_))));
                distinct.insert(whole.clone());
            }
            assert_eq!(distinct.len(), 249);
        }
    }

    #[test]
    fn flows_get_distinct_destinations() {
        let cases: [(Family, [IpAddr; 2]); 2] = [
            (Family::Inet, [[203, 0, 113, 7].into(), [1, 2, 3, 4].into()]),
            (
                Family::Inet6,
                [[0x2001, 0xdb8, 1, 2, 3, 4, 5, 6].into(), [0x2600, 0, 0, 0, 0, 0, 0, 9].into()],
            ),
        ];
        for (family, destinations) in cases {
            let traffic = Traffic::new(family, None, 3).expect("a size");
            let before: Vec<_> = traffic.frames().collect();
            let traffic = traffic.towards(destinations);
            assert_eq!(traffic.frames().last(), before.last().cloned());
            for (frame, destination) in traffic.frames().zip(destinations) {
                let packet = SlicedPacket::from_ethernet(&frame).expect("etherparse reads it");
                let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP") };
                let (header, payload) = (udp.to_header(), udp.payload());
                let (found, right) = match packet.net {
                    Some(NetSlice::Ipv4(ip)) => {
                        let ip = ip.header().to_header();
                        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                        (IpAddr::from(ip.destination), header.calc_checksum_ipv4(&ip, payload))
                    }
                    Some(NetSlice::Ipv6(ip)) => {
                        let ip = ip.header().to_header();
                        (IpAddr::from(ip.destination), header.calc_checksum_ipv6(&ip, payload))
                    }
                    _ => panic!("neither"),
                };
                assert_eq!((found, header.checksum), (destination, right.expect("a length")));
            }
        }
    }

    #[test]
    fn packet_variants_are_valid() {
        for family in [Family::Inet, Family::Inet6] {
            let traffic = Traffic::new(family, None, 3).expect("a size");
            let traffic = traffic.expiring().without_udp_checksum();
            for frame in traffic.frames() {
                let packet = SlicedPacket::from_ethernet(&frame).expect("etherparse reads it");
                match packet.net {
                    Some(NetSlice::Ipv4(ip)) => {
                        let header = ip.header().to_header();
                        assert_eq!(header.time_to_live, 1);
                        assert_eq!(header.header_checksum, header.calc_header_checksum());
                    }
                    Some(NetSlice::Ipv6(ip)) => assert_eq!(ip.header().hop_limit(), 1),
                    _ => panic!("neither"),
                }
                let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("not UDP") };
                assert_eq!(udp.checksum(), 0);
            }
        }
    }
}
