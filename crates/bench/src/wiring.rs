//! Namespaces and the veth pairs between them.
//!
//! ```text
//! sender --g0====d0-- DUT --d1====r0-- receiver        with a DUT
//! sender --g0=======================r0-- receiver      the ceiling
//! ```

use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal::Journal;
use crate::links::mac;
use fwdlab_port::NetNs;
use std::fmt::Write;

/// Largest MTU that every frame of a trial fits in (1518 with FCS).
const MTU: u16 = 1500;

/// A wired testbed; [`Wiring::down`] takes it away, and so does dropping it.
#[derive(Debug)]
pub struct Wiring {
    names: Vec<String>,
    /// Sender's namespace, with g0.
    pub sender: NetNs,
    /// DUT's namespace, with d0 and d1.
    pub dut: Option<NetNs>,
    /// Receiver's namespace, with r0.
    pub receiver: NetNs,
}

impl Wiring {
    /// Makes namespaces and links, with `queues` queue pairs on every interface;
    /// what a predecessor of the same name left is removed first.
    ///
    /// # Errors
    /// When ip(8) is missing or the kernel refuses.
    pub fn up(journal: &Journal, queues: u16, with_dut: bool) -> Result<Wiring, BenchError> {
        let roles: &[&str] = if with_dut { &["g", "d", "r"] } else { &["g", "r"] };
        let names: Vec<String> = roles.iter().map(|role| journal.namespace(role)).collect();
        remove(&names)?;
        let mut text = String::new();
        for name in &names {
            let _ = writeln!(text, "netns add {name}");
        }
        let (g, r) = (&names[0], &names[names.len() - 1]);
        let side = |name: &str, address, namespace: &str| {
            format!(
                "{name} address {} mtu {MTU} numtxqueues {queues} numrxqueues {queues} netns {namespace}",
                mac::text(address)
            )
        };
        let mut pair = |a: String, b: String| {
            let _ = writeln!(text, "link add {a} type veth peer name {b}");
        };
        match with_dut.then(|| &names[1]) {
            Some(d) => {
                pair(side("g0", mac::SENDER, g), side("d0", mac::INGRESS, d));
                pair(side("d1", mac::EGRESS, d), side("r0", mac::RECEIVER, r));
            }
            None => pair(side("g0", mac::SENDER, g), side("r0", mac::RECEIVER, r)),
        }
        let made = LocalHost.run(&["ip", "-batch", "-"], &text).and_then(|_| {
            Ok(Wiring {
                sender: NetNs::open(g)?,
                dut: if with_dut { Some(NetNs::open(&names[1])?) } else { None },
                receiver: NetNs::open(r)?,
                names: names.clone(),
            })
        });
        if made.is_err() {
            remove(&names)?;
        }
        let wiring = made?;
        // The ends send and hear nothing of their own.
        for (namespace, interface) in [(g, "g0"), (r, "r0")] {
            let text = format!("link set {interface} addrgenmode none\nlink set {interface} up\n");
            LocalHost.run(&["ip", "-n", namespace, "-batch", "-"], &text)?;
        }
        // Veth hands what a socket sends to the peer's queue, and so to whoever polls it,
        // only where nothing could be merged (`veth_skb_is_eligible_for_gro`): else it
        // goes to the backlog of the sending CPU, which does the DUT's work then.
        let exec = ["ip", "netns", "exec", g, "ethtool", "-K", "g0", "tso", "off"];
        LocalHost.run(&exec, "")?;
        if !with_dut {
            // Makes r0 poll whatever receives there; see `offloads` in `dut/linux/interfaces.rs`.
            let exec = ["ip", "netns", "exec", r, "ethtool", "-K", "r0", "gro", "on"];
            LocalHost.run(&exec, "")?;
        }
        Ok(wiring)
    }

    /// Removes the namespaces and with them all links, routes, rules, threads.
    ///
    /// # Errors
    /// When ip(8) fails; the names are tried again by the next testbed.
    pub fn down(mut self) -> Result<(), BenchError> {
        remove(&std::mem::take(&mut self.names))
    }
}

impl Drop for Wiring {
    fn drop(&mut self) {
        let _ = remove(&self.names);
    }
}

fn remove(names: &[String]) -> Result<(), BenchError> {
    let present: Vec<&String> = names
        .iter()
        .filter(|name| std::path::Path::new(fwdlab_port::netns::NAMED).join(name).exists())
        .collect();
    if present.is_empty() {
        return Ok(());
    }
    // What a DUT's commands have left in the background is ours: nobody else knows of the
    // namespace.
    for name in &present {
        let left = LocalHost.run(&["ip", "netns", "pids", name], "").unwrap_or_default();
        let own = std::process::id().to_string();
        for pid in left.split_whitespace().filter(|pid| *pid != own) {
            let _ = LocalHost.run(&["kill", "-9", pid], "");
        }
    }
    let text: String = present.iter().map(|name| format!("netns delete {name}\n")).collect();
    LocalHost.run(&["ip", "-batch", "-"], &text).map(drop)
}
