//! The kernel as a forwarder: one frame in, all resulting frames out.

use crate::packets::{Mark, mark_of, marks};
use crate::seen::{Seen, Side};
use crate::setup::KERNEL;
use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::{Batch, NetNs, Port, affinity, clock};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time limit for an expected frame, on any machine.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Two namespaces with the kernel's forwarding; dropping it removes them.
pub(crate) struct Kernel {
    /// Declared before the namespaces, so that they are closed before these are removed.
    near: PacketPort,
    far: PacketPort,
    namespaces: Namespaces,
}

struct Namespaces([String; 2]);

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            sh(&format!("ip netns delete {name} 2>/dev/null"));
        }
    }
}

impl Kernel {
    /// Sets the kernel up; `None` if that is impossible.
    pub(crate) fn new() -> Option<Kernel> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let names = ["e", "d"].map(|role| format!("fwdkernel-{process}-{number}-{role}"));
        let script = format!("set -e\nE={} D={}\n{KERNEL}", names[0], names[1]);
        let namespaces = Namespaces(names);
        if !sh(&script) {
            return None;
        }
        // Frames of one CPU stay in order: a frame sent first has been forwarded first.
        let cpus = affinity::allowed_cpus().expect("CPUs");
        affinity::pin_thread(&cpus[..1]).expect("a CPU of its own");
        let ends = NetNs::open(&namespaces.0[0]).expect("a namespace");
        let open = |interface: &str, side| {
            let (interface, number) = (interface.to_owned(), side as u8);
            let config = PacketConfig { interface, number, fanout: None };
            ends.run(move || PacketPort::open(&config)).expect("a port")
        };
        let (near, far) = (open("g0", Side::Near), open("r0", Side::Far));
        Some(Kernel { near, far, namespaces })
    }

    /// Replaces the filter by these rules of nft(8).
    pub(crate) fn filter(&self, rules: &str) {
        let Namespaces([_, router]) = &self.namespaces;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", router, "nft", "-f", "-"]).stdin(Stdio::piped());
        let mut nft = command.spawn().expect("ip starts");
        let mut input = nft.stdin.take().expect("a pipe");
        write!(input, "flush ruleset\n{rules}").expect("it reads");
        drop(input);
        assert!(nft.wait().expect("its end").success(), "nft: {rules}");
    }

    /// Sends a frame in at a side, and returns all resulting frames.
    pub(crate) fn forward(&mut self, number: u32, side: Side, frame: &[u8]) -> Vec<Seen> {
        let [to_near, to_far] = marks(number);
        self.send(side, &[frame]);
        self.send(Side::Near, &[&to_near, &to_far]);
        let mut seen = Vec::new();
        until_marked(&mut self.near, Side::Near, number, &mut seen);
        until_marked(&mut self.far, Side::Far, number, &mut seen);
        seen
    }

    fn send(&mut self, side: Side, frames: &[&[u8]]) {
        let mut batch = Batch::new();
        for (place, bytes) in batch.fill(frames.len()).iter_mut().zip(frames) {
            place.receive(9, bytes).expect("it fits");
            place.send_to(side as u8);
        }
        let port = match side {
            Side::Near => &mut self.near,
            Side::Far => &mut self.far,
        };
        let sent = port.send(&mut batch).expect("sending");
        assert_eq!(sent.lost, 0, "a frame can't be sent at the {side} side");
    }
}

/// Receives until the mark with a number arrives.
fn until_marked(port: &mut PacketPort, side: Side, number: u32, seen: &mut Vec<Seen>) {
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    let mut batch = Batch::new();
    loop {
        assert!(clock::monotonic_ns() < deadline, "the kernel lost a mark at the {side} side");
        port.wait(Duration::from_millis(10)).expect("waiting");
        port.receive(&mut batch).expect("receiving");
        let frames = batch.frames().iter().map(|frame| frame.bytes());
        for bytes in frames.filter(|bytes| !is_group_report(bytes)) {
            match mark_of(bytes) {
                Some(Mark(marked)) if marked == number => return,
                Some(Mark(other)) => panic!("mark {other} while {number} was due"),
                None => seen.push(Seen { side, bytes: bytes.to_vec() }),
            }
        }
    }
}

/// True for the kernel's reports of its groups, which it sends at any time (MLDv2, RFC 3810).
fn is_group_report(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x33, 0x33, 0, 0, 0, 0x16])
}

fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).status().is_ok_and(|status| status.success())
}
