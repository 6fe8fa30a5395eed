//! Namespaces and the veth pairs between them.
//!
//! ```text
//! sender --g0====d0-- DUT --d1====r0-- receiver        with a DUT
//! sender --g0=======================r0-- receiver      the ceiling
//! sender --g0== QEMU's guest ========r0-- receiver      g0 and r0 are taps
//! ```

use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use crate::journal::{Journal, kill_within};
use crate::links::mac;
use fwdlab_netio::{NetNs, tun};
use std::fmt::Write;
use std::os::fd::OwnedFd;

/// Maximum MTU; every frame of a trial fits in it (1518 bytes with FCS).
const MTU: u16 = 1500;

/// Namespaces and links of a testbed; [`Wiring::down`] or dropping removes them.
#[derive(Debug)]
pub struct Wiring {
    names: Vec<String>,
    /// Sender's namespace, which contains g0.
    pub sender: NetNs,
    /// DUT's namespace, which contains d0 and d1.
    pub dut: Option<NetNs>,
    /// Receiver's namespace, which contains r0.
    pub receiver: NetNs,
    /// True if a guest of QEMU is between g0 and r0, which are then taps.
    pub has_guest: bool,
}

/// Descriptors of the queues of both taps: the sender's and the receiver's.
pub type Taps = [Vec<OwnedFd>; 2];

impl Wiring {
    /// Creates namespaces and links, with `queues` queue pairs on every interface, after removing
    /// the remains of a predecessor of the same name.
    ///
    /// # Errors
    /// Fails if ip(8) is missing or the kernel rejects a command.
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
                has_guest: false,
            })
        });
        if made.is_err() {
            remove(&names)?;
        }
        let wiring = made?;
        wiring.ends_up()?;
        // A veth passes sent packets to the peer's queue, and so to its polling thread, only if
        // nothing can be merged (`veth_skb_is_eligible_for_gro`). Otherwise they go to the backlog
        // of the sending CPU, which then does the DUT's work.
        let exec = ["ip", "netns", "exec", g, "ethtool", "-K", "g0", "tso", "off"];
        LocalHost.run(&exec, "")?;
        if !with_dut {
            // Makes r0 poll its received packets; see `offloads` in `dut/linux/interfaces.rs`.
            let exec = ["ip", "netns", "exec", r, "ethtool", "-K", "r0", "gro", "on"];
            LocalHost.run(&exec, "")?;
        }
        Ok(wiring)
    }

    /// Creates the namespaces of sender and receiver with one tap each, with `queues` queues, for
    /// the guest `number` of this process. The taps exist as long as their descriptors are open, in
    /// QEMU or the caller.
    ///
    /// # Errors
    /// Fails if ip(8) or `/dev/net/tun` is missing, or the kernel rejects a command.
    pub fn taps(journal: &Journal, number: u32, queues: u16) -> Result<(Wiring, Taps), BenchError> {
        let names = ["g", "r"].map(|role| journal.namespace(&format!("{role}{number}")));
        remove(&names)?;
        let text: String = names.iter().map(|name| format!("netns add {name}\n")).collect();
        let made = LocalHost.run(&["ip", "-batch", "-"], &text).and_then(|_| {
            let (sender, receiver) = (NetNs::open(&names[0])?, NetNs::open(&names[1])?);
            let taps = [
                sender.run(move || tun::open("g0", queues))?,
                receiver.run(move || tun::open("r0", queues))?,
            ];
            let names = names.to_vec();
            Ok((Wiring { names, sender, dut: None, receiver, has_guest: true }, taps))
        });
        if made.is_err() {
            remove(&names)?;
        }
        let (wiring, taps) = made?;
        for (namespace, interface, address) in
            [(&names[0], "g0", mac::SENDER), (&names[1], "r0", mac::RECEIVER)]
        {
            let address = mac::text(address);
            let text = format!("link set {interface} address {address} mtu {MTU}\n");
            LocalHost.run(&["ip", "-n", namespace, "-batch", "-"], &text)?;
        }
        wiring.ends_up()?;
        Ok((wiring, taps))
    }

    /// Brings both ends up without any traffic of their own.
    fn ends_up(&self) -> Result<(), BenchError> {
        for (namespace, interface) in [(&self.sender, "g0"), (&self.receiver, "r0")] {
            let text = format!("link set {interface} addrgenmode none\nlink set {interface} up\n");
            LocalHost.run(&["ip", "-n", namespace.name(), "-batch", "-"], &text)?;
        }
        Ok(())
    }

    /// Removes the namespaces and with them all links, routes, rules, threads.
    ///
    /// # Errors
    /// Fails if ip(8) fails; the next testbed tries again.
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
        .filter(|name| std::path::Path::new(fwdlab_netio::netns::NAMED).join(name).exists())
        .collect();
    if present.is_empty() {
        return Ok(());
    }
    for name in &present {
        kill_within(name);
    }
    let text: String = present.iter().map(|name| format!("netns delete {name}\n")).collect();
    LocalHost.run(&["ip", "-batch", "-"], &text).map(drop)
}
