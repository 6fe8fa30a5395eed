//! Namespaces for tests that send real frames.

// Each test binary uses a part of it.
#![allow(dead_code)]

pub(crate) mod forwarder;

use fwdlab_netio::{Batch, NetNs, Port, Sender, clock};
use std::ffi::CStr;
use std::io;
use std::process::Command;
use std::time::Duration;

pub(crate) const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Number of every port.
pub(crate) const NUMBER: u8 = 5;

/// Two namespaces joined by a veth pair, removed on drop.
pub(crate) struct Pair {
    names: [String; 2],
    pub(crate) sender: NetNs,
    pub(crate) receiver: NetNs,
}

impl Pair {
    /// Creates a pair with one queue; `None`, with a notice, if namespaces can't be created.
    pub(crate) fn new() -> Option<Pair> {
        Pair::with_queues(1)
    }

    /// Creates a pair with several queues at both ends.
    pub(crate) fn with_queues(queues: u32) -> Option<Pair> {
        let names = ["g", "r"].map(|role| format!("fwdtest-{}-{role}", std::process::id()));
        let [g, r] = &names;
        let is_created = sh(&format!(
            "ip netns add {g} && ip netns add {r} && \
             ip link add g0 netns {g} numtxqueues {queues} numrxqueues {queues} type veth \
             peer name r0 netns {r} numtxqueues {queues} numrxqueues {queues} && \
             ip -n {g} link set g0 addrgenmode none up && \
             ip -n {r} link set r0 addrgenmode none up && \
             ip netns exec {r} ethtool -K r0 gro on"
        ));
        if !is_created {
            for name in &names {
                sh(&format!("ip netns delete {name} 2>/dev/null"));
            }
            fwdlab_testdata::skip("network namespaces can't be made here (root, ip, ethtool)");
            return None;
        }
        let sender = NetNs::open(g).expect("sender's namespace");
        let receiver = NetNs::open(r).expect("receiver's namespace");
        Some(Pair { names, sender, receiver })
    }

    /// Opens a plain packet socket on r0 and returns a reader of whole frames.
    pub(crate) fn capture(&self) -> impl FnMut() -> Option<Vec<u8>> {
        let socket = self
            .receiver
            .run(|| {
                // SAFETY: plain integers and a whole sockaddr_ll with its size.
                unsafe {
                    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
                    let fd = libc::socket(libc::AF_PACKET, kind, i32::from(0x0003u16.to_be()));
                    assert!(fd >= 0, "{}", io::Error::last_os_error());
                    let room: i32 = 64 << 20;
                    let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
                    libc::setsockopt(fd, level, option, (&raw const room).cast(), 4);
                    Ok(fd)
                }
            })
            .expect("a packet socket");
        move || {
            let mut frame = vec![0xa5; 2048];
            // Frames may be late on a busy machine.
            let mut wait = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
            // SAFETY: one whole pollfd.
            unsafe { libc::poll(&raw mut wait, 1, 200) };
            // SAFETY: the buffer and its length belong together.
            let length = unsafe { libc::recv(socket, frame.as_mut_ptr().cast(), frame.len(), 0) };
            frame.truncate(usize::try_from(length).ok()?);
            Some(frame)
        }
    }
}

impl Pair {
    /// Sends these frames unchanged through g0.
    pub(crate) fn send(&self, frames: &[Vec<u8>]) {
        let frames = frames.to_vec();
        let sent = self.sender.run(move || {
            // SAFETY: plain integers, a whole sockaddr_ll and each frame with its size.
            unsafe {
                let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
                assert!(fd >= 0, "{}", io::Error::last_os_error());
                let mut to: libc::sockaddr_ll = std::mem::zeroed();
                to.sll_family = libc::AF_PACKET as u16;
                to.sll_ifindex = libc::if_nametoindex(c"g0".as_ptr()) as i32;
                let size = size_of::<libc::sockaddr_ll>() as u32;
                for frame in &frames {
                    let sent = libc::sendto(
                        fd,
                        frame.as_ptr().cast(),
                        frame.len(),
                        0,
                        (&raw const to).cast(),
                        size,
                    );
                    assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
                }
                libc::close(fd);
            }
            Ok(())
        });
        sent.expect("frames are sent");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            sh(&format!("ip netns delete {name}"));
        }
    }
}

pub(crate) fn sh(command: &str) -> bool {
    Command::new("sh").arg("-c").arg(command).status().is_ok_and(|status| status.success())
}

/// Waits until the sender has sent another 200 packets, at most a minute.
pub(crate) fn wait_for_packets(sender: &dyn Sender) {
    let sent = || sender.sent().iter().sum::<u64>();
    let (begin, deadline) = (sent(), clock::monotonic_ns() + 60_000_000_000);
    while sent() < begin + 200 && clock::monotonic_ns() < deadline {
        clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}

/// Receives until fifteen waits of 5 ms in sequence have brought no frame.
pub(crate) fn drain(port: &mut dyn Port) -> Vec<Vec<u8>> {
    let (mut batch, mut frames) = (Batch::new(), Vec::new());
    let mut quiet = 0;
    while quiet < 15 {
        port.wait(Duration::from_millis(5)).expect("waiting");
        quiet = if port.receive(&mut batch).expect("receiving") > 0 { 0 } else { quiet + 1 };
        for frame in batch.frames() {
            assert_eq!((frame.ingress(), frame.egress()), (NUMBER, None));
            frames.push(frame.whole().to_vec());
        }
    }
    frames
}

/// Returns a frame of `length` bytes that differs from frames with other numbers.
pub(crate) fn numbered(length: usize, number: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| (at as u32 * 7 + number) as u8).collect();
    bytes[..6].copy_from_slice(&DESTINATION);
    bytes[6..12].copy_from_slice(&SOURCE);
    bytes[12..14].copy_from_slice(&[0x88, 0xb5]); // for local experiments (IEEE 802)
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends one frame of any length through g0; `offload` is its `struct virtio_net_hdr`.
pub(crate) fn send_raw(pair: &Pair, bytes: &[u8], offload: Option<[u8; 10]>) {
    send_raw_through(c"g0", pair, bytes, offload);
}

/// As [`send_raw`], through another of the sender's interfaces.
pub(crate) fn send_raw_through(
    interface: &'static CStr,
    pair: &Pair,
    bytes: &[u8],
    offload: Option<[u8; 10]>,
) {
    let header = offload.iter().flatten();
    let bytes: Vec<u8> = header.chain(bytes).copied().collect();
    let sent = pair.sender.run(move || {
        // SAFETY: plain integers, a whole sockaddr_ll and the frame, with their sizes.
        unsafe {
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            let has_header = i32::from(offload.is_some());
            let (level, option) = (libc::SOL_PACKET, libc::PACKET_VNET_HDR);
            libc::setsockopt(socket, level, option, (&raw const has_header).cast(), 4);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = libc::if_nametoindex(interface.as_ptr()) as i32;
            let (to, size) = ((&raw const address).cast(), size_of_val(&address) as u32);
            let sent = libc::sendto(socket, bytes.as_ptr().cast(), bytes.len(), 0, to, size);
            libc::close(socket);
            Ok(sent)
        }
    });
    assert!(sent.expect("sending") > 0, "{}", io::Error::last_os_error());
}
