//! Merged frames and incomplete checksums, which stacks leave to devices, at packet ports.

mod common;

use common::{DESTINATION, NUMBER, Pair, SOURCE, drain, numbered, send_raw, send_raw_through, sh};
use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::{Batch, NetNs, Port, tun};
use fwdlab_packet::checksum;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One pair of namespaces at a time; CPUs are scarce.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn open(namespace: &NetNs, interface: &str) -> PacketPort {
    let config = PacketConfig { interface: interface.into(), number: NUMBER, fanout: None };
    namespace.run(move || PacketPort::open(&config)).expect("a port")
}

/// Returns a `struct virtio_net_hdr` of a frame with an incomplete checksum.
fn offload_header(kind: u8, size: u16, (start, offset): (usize, u16)) -> [u8; 10] {
    let [[a, b], [c, d]] = [start as u16 + 20, size].map(u16::to_ne_bytes);
    let [[e, f], [g, h]] = [start as u16, offset].map(u16::to_ne_bytes);
    [1, kind, a, b, c, d, e, f, g, h]
}

/// A TCP segment over IPv4 with its number and payload, and the sum of its pseudo header.
fn tcp(tag: &[u8], number: u16, sequence: u32, payload: &[u8]) -> (Vec<u8>, [u8; 2]) {
    let mut ip = [&[0x45; 20][..], &[0; 20], payload].concat();
    let length = ip.len() as u16;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[4..6].copy_from_slice(&number.to_be_bytes());
    ip[6..12].copy_from_slice(&[0, 0, 64, 6, 0, 0]);
    let check = checksum::finish(checksum::add(0, &ip[..20]));
    ip[10..12].copy_from_slice(&check);
    ip[24..28].copy_from_slice(&sequence.to_be_bytes());
    (ip[32], ip[33]) = (0x50, 0x10);
    let pseudo = checksum::add(checksum::add(0, &ip[12..20]), &(length - 20).to_be_bytes());
    let pseudo = checksum::add(pseudo, &[0, 6]);
    let check = checksum::finish(checksum::add(pseudo, &ip[20..]));
    ip[36..38].copy_from_slice(&check);
    let frame = [&DESTINATION[..], &SOURCE, tag, &[8, 0], &ip].concat();
    (frame, checksum::finish(pseudo).map(|byte| !byte))
}

#[test]
fn packet_port_cuts_merged_segments_and_completes_checksums() {
    const SIZE: u16 = 1400;
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let completed = Arc::<AtomicU64>::default();
    let mut port = open(&pair.receiver, "r0").completing(Arc::clone(&completed));
    let mut expected = Vec::new();
    // The first one is not merged, the second one fits in a slot, others need the queue.
    for (number, length) in [100, 1800, 5000, 60_000, 1401].into_iter().enumerate() {
        for tag in [&[][..], &[0x81, 0, 0x60, 7]] {
            let (id, sequence) = (number as u16 * 1000, u32::MAX - 3000);
            let payload: Vec<u8> = (0..length).map(|at| (at * 7 / 3) as u8).collect();
            let (mut merged, pseudo) = tcp(tag, id, sequence, &payload);
            let start = 34 + tag.len();
            merged[start + 16..start + 18].copy_from_slice(&pseudo);
            let (kind, size) = if length > SIZE.into() { (1, SIZE) } else { (0, 0) };
            send_raw(&pair, &merged, Some(offload_header(kind, size, (start, 16))));
            for (at, chunk) in payload.chunks(SIZE.into()).enumerate() {
                let sequence = sequence.wrapping_add((at * usize::from(SIZE)) as u32);
                expected.push(tcp(tag, id + at as u16, sequence, chunk).0);
            }
            // The order remains.
            expected.push(numbered(60, number as u32));
            send_raw(&pair, &expected[expected.len() - 1], None);
        }
    }
    let received = drain(&mut port);
    assert_eq!(received.len(), expected.len());
    for (at, (received, expected)) in received.iter().zip(&expected).enumerate() {
        assert!(received == expected, "{at}: {received:x?}\n{expected:x?}");
    }
    assert_eq!((port.missed(), completed.load(Ordering::Relaxed)), (0, 10));
}

/// The offload header describes the inner packet, here of VXLAN.
#[test]
fn packet_port_misses_merged_frames_inside_tunnels() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let has_tunnel = sh(&format!(
        "ip -n {sender} address add 10.9.0.1/24 dev g0 && \
         ip -n {sender} neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev g0 && \
         ip netns exec {sender} sysctl -qw net.ipv6.conf.default.disable_ipv6=1 && \
         ip -n {sender} link add v0 type vxlan id 1 remote 10.9.0.2 dstport 4789 dev g0 && \
         ip -n {sender} link set v0 addrgenmode none up",
        sender = pair.sender.name()
    ));
    if !has_tunnel {
        return fwdlab_testdata::skip("VXLAN interfaces can't be made here");
    }
    let mut port = open(&pair.receiver, "r0");
    // The first frame fits in a slot, the second one needs the queue.
    for (missed, length) in [(1, 1000), (2, 5000)] {
        let (mut merged, pseudo) = tcp(&[], 1, 1, &vec![7; length]);
        merged[50..52].copy_from_slice(&pseudo);
        send_raw_through(c"v0", &pair, &merged, Some(offload_header(1, 500, (34, 16))));
        let ordinary = numbered(60, length as u32);
        send_raw(&pair, &ordinary, None);
        assert_eq!(drain(&mut port), [ordinary]);
        assert_eq!(port.missed(), missed);
    }
}

/// Receives without waiting, as a worker that is busy with other ports.
fn drain_busily(port: &mut PacketPort) -> Vec<Vec<u8>> {
    let (mut batch, mut frames) = (Batch::new(), Vec::new());
    for _ in 0..5000 {
        port.receive(&mut batch).expect("receiving");
        frames.extend(batch.frames().iter().map(|frame| frame.whole().to_vec()));
    }
    frames
}

/// Kernels that cannot describe a merged frame may stop filling the ring: here UDP fragments (UFO)
/// from a tap, as from an old guest.
#[test]
fn packet_port_receives_after_a_frame_that_the_kernel_cannot_describe() {
    const UFO: u8 = 3;
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let Ok(tap) = pair.receiver.run(|| tun::open("t0", 1)) else {
        return fwdlab_testdata::skip("taps can't be made here (/dev/net/tun)");
    };
    assert!(sh(&format!(
        "ip netns exec {receiver} sysctl -qw net.ipv6.conf.t0.disable_ipv6=1 && \
         ip -n {receiver} link set t0 up",
        receiver = pair.receiver.name()
    )));
    let mut tap = tap.into_iter().map(File::from).next().expect("one queue");
    let mut write = |header: [u8; 10], bytes: &[u8]| {
        let frame = [&header[..], bytes].concat();
        assert_eq!(tap.write(&frame).expect("writing"), frame.len());
    };
    let mut port = open(&pair.receiver, "t0");
    let (mut written, mut received) = (0, 0);
    for is_busy in [false, true] {
        let (mut datagram, _) = tcp(&[], 1, 1, &[0; 4000]);
        datagram[23] = 17;
        write(offload_header(UFO, 1400, (34, 6)), &datagram);
        written += 1;
        let is_received = (0..20).any(|number| {
            let frame = numbered(60, number);
            write([0; 10], &frame);
            written += 1;
            let frames = if is_busy { drain_busily(&mut port) } else { drain(&mut port) };
            received += frames.len() as u64;
            // Two new rings within 100 ms would be too many.
            std::thread::sleep(Duration::from_millis(20));
            frames == [frame]
        });
        assert!(is_received);
        assert_eq!(received + port.missed(), written);
    }
    // The ring remains intact, and keeps the order.
    let frames: Vec<_> = (0..50).map(|number| numbered(60, number)).collect();
    frames.iter().for_each(|frame| write([0; 10], frame));
    assert!(drain(&mut port) == frames);
}

/// The queue of merged frames reports that the interface is gone, and nothing else does.
#[test]
fn packet_port_reports_removal_after_a_queued_frame() {
    let _guard = ONE_AT_A_TIME.lock();
    let Some(pair) = Pair::new() else { return };
    let mut port = open(&pair.receiver, "r0");
    let (mut merged, pseudo) = tcp(&[], 1, 1, &[7; 5000]);
    merged[50..52].copy_from_slice(&pseudo);
    send_raw(&pair, &merged, Some(offload_header(1, 500, (34, 16))));
    port.wait(Duration::from_secs(60)).expect("waiting");
    assert!(sh(&format!("ip -n {} link delete r0", pair.receiver.name())));
    let mut batch = Batch::new();
    assert_eq!(port.receive(&mut batch).expect("segments"), 10);
    assert!(port.receive(&mut batch).is_err(), "the interface is gone");
}
