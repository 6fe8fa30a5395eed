//! A device that translates addresses: the program in the kernel decides like the receiver in user
//! space, and both name the fault of a wrong translator.

mod common;

use common::forwarder::{FROM, Forwarder, TO, Wrong};
use fwdlab_netio::xdp::XdpReceiver;
use fwdlab_netio::{Frame, Receiver, Watch, affinity};
use fwdlab_packet::arrivals::{Expected, FAULTS, Fault};
use fwdlab_packet::stream::Endpoints;
use fwdlab_packet::{Family, Flows, FrameWriter, Phase, Stream, Template};
use fwdlab_testdata::{translate_destination, translate_source};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::net::IpAddr;

const FLOWS: Flows = Flows { sources: 3, destinations: 4 };

/// Addresses that a device translates.
#[derive(Clone, Copy, Debug)]
struct Sides {
    source: bool,
    destination: bool,
}

const SOURCE: Sides = Sides { source: true, destination: false };
const DESTINATION: Sides = Sides { source: false, destination: true };
const BOTH: Sides = Sides { source: true, destination: true };

/// Address `n` after the device's own on the receiver's side.
fn device(family: Family, n: u8) -> IpAddr {
    match family {
        Family::Inet => IpAddr::from([198, 19, 0, 1 + n]),
        Family::Inet6 => IpAddr::from([0x2001, 2, 0, 0x8000, 0, 0, 0, 1 + u16::from(n)]),
    }
}

/// Receiver's address of a destination.
fn receiver(family: Family, n: u8) -> IpAddr {
    match family {
        Family::Inet => IpAddr::from([198, 19, 1, n]),
        Family::Inet6 => IpAddr::from([0x2001, 2, 0, 0x8001, 0, 0, 1, u16::from(n)]),
    }
}

/// First address and port that packets are sent to if the device translates destinations.
fn target(family: Family) -> Endpoints {
    let destination = match family {
        Family::Inet => IpAddr::from([203, 0, 113, 0]),
        Family::Inet6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]),
    };
    Endpoints { destination, destination_port: 8080, ..Endpoints::planned(family) }
}

fn template(stream: Stream) -> Template {
    Template::new(&stream, 0x1234_5678, [2; 6], [6; 6])
}

fn expected(family: Family, size: u16, sides: Sides) -> Expected {
    Expected {
        template: template(Stream::new(family, size, FLOWS)),
        destination_mac: Some(TO),
        source_mac: Some(FROM),
        translated: sides.source.then(|| device(family, 0)),
        hops: 1,
        senders: 1,
        timestamps: false,
        same_clock: true,
        sampled: false,
    }
}

/// Writes packets as sent, and forwards them without translation.
struct Sent(FrameWriter);

impl Sent {
    fn new(family: Family, size: u16, sides: Sides) -> Sent {
        let endpoints = sides.destination.then(|| target(family));
        Sent(FrameWriter::new(
            template(Stream { endpoints, ..Stream::new(family, size, FLOWS) }),
            0,
        ))
    }

    fn next(&mut self) -> Vec<u8> {
        let mut frame = Frame::of(0, &vec![0; self.0.frame_length()]).expect("it fits");
        let length = frame.bytes().len();
        self.0.prepare(&mut frame.buffer_mut()[..length]);
        self.0.write_next(&mut frame.buffer_mut()[..length], Phase::Window, 0);
        Forwarder::new(Wrong::Nothing, 0).forward_one(&mut frame);
        frame.whole().to_vec()
    }
}

/// Faults of a translator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slip {
    /// Another address, with correct checksums.
    Address,
    /// Another port: of the source, or else of the destination.
    Port,
    /// No translation.
    Omitted,
    /// The checksum of UDP is not updated.
    StaleUdp,
    /// The checksum of the IPv4 header is not updated.
    StaleIp,
    /// The time to live is decremented twice.
    Ttl,
}

/// Translates packet `n` as a device does, or with a fault.
fn translate(frame: &mut [u8], family: Family, sides: Sides, n: u32, slip: Option<Slip>) {
    let before = frame.to_vec();
    let (udp_check, flow) = if family == Family::Inet { (40, n % 12) } else { (60, n % 12) };
    let other = u8::from(slip == Some(Slip::Address));
    let other_port = 100 * u16::from(slip == Some(Slip::Port));
    if slip == Some(Slip::Omitted) {
        return;
    }
    if sides.source {
        translate_source(frame, device(family, other), 1024 + flow as u16 + other_port);
    }
    if sides.destination {
        let (other, other_port) = if sides.source { (0, 0) } else { (100 * other, other_port) };
        let address = receiver(family, (flow % 4) as u8 + other);
        translate_destination(frame, address, 7 + other_port);
    }
    match slip {
        Some(Slip::StaleUdp) => {
            frame[udp_check..udp_check + 2].copy_from_slice(&before[udp_check..udp_check + 2]);
        }
        Some(Slip::StaleIp) => frame[24..26].copy_from_slice(&before[24..26]),
        // Of IPv4 in the high byte of its word; the header checksum covers it.
        Some(Slip::Ttl) if family == Family::Inet => {
            frame[22] -= 1;
            let check = u16::from_be_bytes([frame[24], frame[25]]);
            let (sum, carry) = check.overflowing_add(0x100);
            frame[24..26].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
        }
        Some(Slip::Ttl) => frame[21] -= 1,
        _ => {}
    }
}

/// Pins this thread, because the program keeps state per CPU and user space only once. Returns
/// false if programs cannot be loaded.
fn is_ready() -> bool {
    if XdpReceiver::detached(&Watch::Stamps { run_id: 1, flows: 0 }).is_err() {
        fwdlab_testdata::skip("BPF programs can't be loaded here");
        return false;
    }
    affinity::pin_thread(&affinity::allowed_cpus().expect("CPUs")[..1]).expect("pinned");
    true
}

#[test]
fn kernel_and_user_space_agree_on_translated_packets() {
    if !is_ready() {
        return;
    }
    let cases = [
        (Family::Inet, 64, SOURCE),
        (Family::Inet, 200, BOTH),
        (Family::Inet6, 84, SOURCE),
        (Family::Inet6, 200, BOTH),
        (Family::Inet6, 84, DESTINATION),
    ];
    for (seed, (family, size, sides)) in cases.into_iter().enumerate() {
        let expected = expected(family, size, sides);
        let watch = Watch::Packets(Box::new(expected.clone()));
        let mut kernel = XdpReceiver::detached(&watch).expect("the program");
        let mut user = watch.arrivals();
        let mut random = Xoshiro256StarStar::seed_from_u64(seed as u64);
        let mut draw = |below: u64| random.next_u64() % below;
        let mut sent = Sent::new(family, size, sides);
        for n in 0..10_000 {
            let mut frame = sent.next();
            let slip = match draw(20) {
                0 => Some(Slip::Omitted),
                1 => Some(Slip::Port),
                _ => None,
            };
            translate(&mut frame, family, sides, n, slip);
            match draw(4) {
                0 => {
                    let bit = draw(8 * frame.len() as u64) as usize;
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
                1 if draw(10) == 0 => frame.truncate(15 + draw(frame.len() as u64 - 15) as usize),
                _ => {}
            }
            kernel.show(&frame, 1).expect("shown");
            user.take(&frame, frame.len(), 0);
            assert_eq!(kernel.received(), *user.counts(), "{n}: {frame:02x?}");
        }
        let counts = user.counts();
        assert!(counts.total() > 5000, "{counts:?}");
        let (omitted, port) = match sides {
            Sides { source: true, .. } => (Fault::SourceAddress, Fault::Mapping),
            _ => (Fault::DestinationAddress, Fault::UdpHeader),
        };
        assert!(counts.faults[omitted as usize] > 200, "{counts:?}");
        assert!(counts.faults[port as usize] > 200, "{counts:?}");
        assert_eq!(kernel.flows(), user.flows());
    }
}

#[test]
fn wrong_translators_are_named_by_kernel_and_user_space() {
    if !is_ready() {
        return;
    }
    let slips = [
        (None, None),
        (Some(Slip::Address), None),
        (Some(Slip::Port), None),
        (Some(Slip::Omitted), None),
        (Some(Slip::StaleUdp), Some(Fault::UdpChecksum)),
        (Some(Slip::StaleIp), Some(Fault::IpChecksum)),
        (Some(Slip::Ttl), Some(Fault::Ttl)),
    ];
    for (family, sides) in
        Family::ALL.into_iter().flat_map(|family| [SOURCE, DESTINATION, BOTH].map(|s| (family, s)))
    {
        for (slip, fault) in slips {
            if slip == Some(Slip::StaleIp) && family == Family::Inet6 {
                continue;
            }
            let fault = fault.or(slip.map(|slip| match (slip, sides.source) {
                (Slip::Port, true) => Fault::Mapping,
                (Slip::Port, false) => Fault::UdpHeader,
                (_, true) => Fault::SourceAddress,
                (_, false) => Fault::DestinationAddress,
            }));
            check(family, sides, slip, fault);
        }
    }
}

/// Shows packets of a translator with this fault in every 25th packet to both receivers.
fn check(family: Family, sides: Sides, slip: Option<Slip>, fault: Option<Fault>) {
    const PACKETS: u32 = 600;
    let expected = expected(family, 84, sides);
    let watch = Watch::Packets(Box::new(expected));
    let mut kernel = XdpReceiver::detached(&watch).expect("the program");
    let mut user = watch.arrivals();
    let mut sent = Sent::new(family, 84, sides);
    let (mut faults, mut ports) = ([0; FAULTS], [0; 12]);
    for n in 0..PACKETS {
        let slip = slip.filter(|_| n % 25 == 24);
        let mut frame = sent.next();
        translate(&mut frame, family, sides, n, slip);
        kernel.show(&frame, 1).expect("shown");
        user.take(&frame, frame.len(), 0);
        // A flow that returns to its former port has changed it again.
        let port = 1 + u32::from(slip == Some(Slip::Port));
        let before = std::mem::replace(&mut ports[n as usize % 12], port);
        let is_wrong = match fault {
            Some(Fault::Mapping) => before != 0 && before != port,
            _ => slip.is_some(),
        };
        faults[fault.map_or(0, |fault| fault as usize)] += u64::from(is_wrong);
    }
    let damaged: u64 = faults.iter().sum();
    let context = format!("{family}, {sides:?}, {slip:?}");
    assert_eq!(kernel.received(), *user.counts(), "{context}");
    assert_eq!(user.counts().faults, faults, "{context}");
    assert_eq!(user.counts().total(), u64::from(PACKETS) - damaged, "{context}");
    assert_eq!(damaged > 0, slip.is_some(), "{context}");
}
