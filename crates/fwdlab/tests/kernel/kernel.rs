//! The kernel as a forwarder, or `fwdlab route` in its place: one frame in, all resulting frames out.

use crate::packets::{Mark, mark_of, marks};
use crate::seen::{Seen, Side};
use crate::setup::{KERNEL, routed};
use fwdlab_model::router::RouterStats;
use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::{Batch, NetNs, Port, affinity, clock};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Time limit for an expected frame, on any machine.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Two namespaces with the kernel's forwarding; dropping it removes them.
pub(crate) struct Kernel {
    /// Declared before the namespaces, so that they are closed before these are removed.
    near: PacketPort,
    far: PacketPort,
    router: Option<Child>,
    namespaces: Namespaces,
}

struct Namespaces([String; 2]);

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(mut router) = self.router.take() {
            let _ = router.kill();
            let _ = router.wait();
        }
    }
}

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
        Some(Kernel { near, far, router: None, namespaces })
    }

    /// Sets `fwdlab route` up in the kernel's place, with sockets on its interfaces; `None` if that
    /// is impossible. With `polls` both ends take frames that an XDP program redirects to them.
    pub(crate) fn replaced(path: &str, directory: &Path, polls: bool) -> Option<Kernel> {
        let mut kernel = Kernel::new()?;
        let Namespaces([_, router]) = &kernel.namespaces;
        let off = "net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0";
        assert!(sh(&format!("ip netns exec {router} sysctl -qw {off}")));
        // A veth takes redirected frames only if its other end polls.
        let Namespaces([ends, router]) = &kernel.namespaces;
        for interface in ["g0", "r0"].iter().filter(|_| polls) {
            assert!(sh(&format!("ip netns exec {ends} ethtool -K {interface} gro on")));
        }
        let file = directory.join("router.toml");
        fs::write(&file, routed(path)).expect("a file");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", router, env!("CARGO_BIN_EXE_fwdlab"), "route"]);
        let child = command.arg(file).arg("--json").stdout(Stdio::piped()).spawn();
        kernel.router = Some(child.expect("ip starts"));
        // It forwards as soon as a mark arrives.
        let [near, _] = marks(0);
        let deadline = clock::monotonic_ns() + PATIENCE_NS;
        let mut batch = Batch::new();
        loop {
            assert!(clock::monotonic_ns() < deadline, "the router does not forward");
            kernel.send(Side::Near, &[&near]);
            kernel.near.wait(Duration::from_millis(50)).expect("waiting");
            kernel.near.receive(&mut batch).expect("receiving");
            if batch.frames().iter().any(|frame| mark_of(frame.bytes()).is_some()) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        while kernel.near.receive(&mut batch).expect("receiving") > 0 {}
        Some(kernel)
    }

    /// Ends the router in the kernel's place; returns its counters.
    pub(crate) fn end(&mut self) -> RouterStats {
        let router = self.router.take().expect("a router");
        assert!(sh(&format!("kill -INT {}", router.id())));
        let output = router.wait_with_output().expect("its end");
        serde_json::from_slice(&output.stdout).expect("a line of JSON")
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
        let [mut to_near, mut to_far] = marks(number);
        if self.router.is_some() {
            // Bytes after a packet, which the XDP program leaves to the process: marks do not
            // overtake other frames.
            for mark in [&mut to_near, &mut to_far] {
                mark.extend([0; 8]);
            }
        }
        self.send(side, &[frame]);
        // The router sends fragments and redirects after the batch of their packet, which may
        // include the first marks. A later batch includes the second ones.
        let rounds = if self.router.is_some() { 2 } else { 1 };
        let mut seen = Vec::new();
        for _ in 0..rounds {
            self.send(Side::Near, &[&to_near, &to_far]);
            until_marked(&mut self.near, Side::Near, number, &mut seen);
            until_marked(&mut self.far, Side::Far, number, &mut seen);
        }
        seen
    }

    /// Sends a frame in at the near side, without marks, and returns the frames that come out at
    /// the far side soon.
    pub(crate) fn forward_some(&mut self, frame: &[u8]) -> Vec<Seen> {
        self.send(Side::Near, &[frame]);
        let (mut batch, mut seen) = (Batch::new(), Vec::new());
        for _ in 0..5 {
            self.far.wait(Duration::from_millis(10)).expect("waiting");
            self.far.receive(&mut batch).expect("receiving");
            let frames = batch.frames().iter().map(|frame| frame.bytes());
            let frames = frames.filter(|bytes| !is_group_report(bytes));
            seen.extend(frames.map(|bytes| Seen { side: Side::Far, bytes: bytes.to_vec() }));
            if !seen.is_empty() {
                break;
            }
        }
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

/// Receives until the mark with a number arrives, including frames that were received with it.
fn until_marked(port: &mut PacketPort, side: Side, number: u32, seen: &mut Vec<Seen>) {
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    let mut batch = Batch::new();
    loop {
        assert!(clock::monotonic_ns() < deadline, "the kernel lost a mark at the {side} side");
        port.wait(Duration::from_millis(10)).expect("waiting");
        port.receive(&mut batch).expect("receiving");
        let frames = batch.frames().iter().map(|frame| frame.bytes());
        let mut is_marked = false;
        for bytes in frames.filter(|bytes| !is_group_report(bytes)) {
            match mark_of(bytes) {
                Some(Mark(marked)) if marked == number => is_marked = true,
                Some(Mark(other)) => panic!("mark {other} while {number} was due"),
                None => seen.push(Seen { side, bytes: bytes.to_vec() }),
            }
        }
        if is_marked {
            return;
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
