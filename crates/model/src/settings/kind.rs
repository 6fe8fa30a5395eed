//! Kinds of devices under test, one row each: properties of a kind that are known without a device.

use super::{Directions, Engine, GeneratorKind, Settings, TestbedKind};
use crate::system::System;
use fwdlab_packet::named;

named! {
    /// Kind of device under test.
    pub enum DutKind {
        /// The Linux kernel's own forwarding.
        Linux = "linux",
        /// fwdlab's own software router, a separate process.
        Router = "router",
        /// The FreeBSD kernel's own forwarding; in laboratories and imported runs.
        Freebsd = "freebsd",
        /// Any program that forwards between two interfaces.
        Command = "command",
    }
}

/// Properties of a kind.
#[derive(Clone, Copy, Debug)]
pub struct DutRow {
    /// Description, for a sentence.
    pub words: &'static str,
    /// True for a program, whose work is CPU time of processes; false for a kernel.
    pub is_program: bool,
    /// True if settings can be switched while traffic flows.
    pub alternates: bool,
    /// True if its firewall's connections can be counted and removed.
    pub tells_states: bool,
    /// Time that its start and stop add to a run, including the wait until it forwards.
    pub start_ms: u64,
    /// Time that a guest of this kind takes to boot.
    pub boot_ms: u64,
    /// Operating systems that it runs on.
    pub systems: &'static [System],
    /// Testbeds without this kind, the reason, and what to write instead.
    pub lacking: &'static [(TestbedKind, &'static str, &'static str)],
}

/// The testbed of packets in memory has no kernel.
const NO_KERNEL: (TestbedKind, &str, &str) = (
    TestbedKind::Memory,
    "no kernel forwards packets in memory",
    "write kind = \"router\" in [dut], or kind = \"netns\" in [testbed]",
);
/// Guests run no forwarding programs: a virtual machine is used for its kernel.
const NO_PROGRAM: (TestbedKind, &str, &str) = (
    TestbedKind::Vm,
    "a virtual machine has a kernel under test, not a program",
    "write kind = \"linux\" or \"freebsd\" in [dut], or kind = \"netns\" in [testbed]",
);
/// A single machine has no FreeBSD.
const NO_FREEBSD: (&str, &str) = (
    "this machine's kernel is not FreeBSD's",
    "write kind = \"vm\" in [testbed] and disk = \"IMAGE\" in [vm], or kind = \"ssh\" and \
     lab = \"lab.toml\": a host with FreeBSD",
);

impl DutKind {
    /// Returns the properties of a kind.
    pub fn row(self) -> DutRow {
        match self {
            DutKind::Linux => DutRow {
                words: "the Linux kernel",
                is_program: false,
                alternates: true,
                tells_states: true,
                start_ms: 0,
                boot_ms: 10_000,
                systems: &[System::Linux],
                lacking: &[NO_KERNEL],
            },
            DutKind::Router => DutRow {
                words: "fwdlab's own router",
                is_program: true,
                alternates: false,
                tells_states: true,
                start_ms: 0,
                boot_ms: 0,
                systems: &[System::Linux],
                lacking: &[NO_PROGRAM],
            },
            DutKind::Freebsd => DutRow {
                words: "the FreeBSD kernel",
                is_program: false,
                alternates: true,
                tells_states: true,
                start_ms: 0,
                boot_ms: 35_000,
                systems: &[System::FreeBsd],
                lacking: &[
                    NO_KERNEL,
                    (TestbedKind::Auto, NO_FREEBSD.0, NO_FREEBSD.1),
                    (TestbedKind::Netns, NO_FREEBSD.0, NO_FREEBSD.1),
                ],
            },
            DutKind::Command => DutRow {
                words: "a program that is started by commands",
                is_program: true,
                alternates: false,
                tells_states: false,
                start_ms: 4_000,
                boot_ms: 0,
                systems: &[System::Linux, System::FreeBsd],
                lacking: &[
                    (
                        TestbedKind::Memory,
                        "a program that is started by commands has interfaces, not packets in \
                         memory",
                        "write kind = \"netns\" in [testbed]",
                    ),
                    NO_PROGRAM,
                ],
            },
        }
    }
}

impl Settings {
    /// Returns why the described device is not available, and the remedy; `None` if it is.
    pub fn lacks_device(&self) -> Option<(&'static str, &'static str)> {
        let lacking = self.dut.kind.row().lacking;
        let here = lacking.iter().find(|(testbed, ..)| *testbed == self.testbed.kind);
        here.map(|(_, why, next)| (*why, *next))
            .or_else(|| self.dut.lacks_program().or_else(|| self.lacks_machine()))
    }

    /// Returns why no generator here can send in the requested directions, and the remedy; `None`
    /// if one can.
    pub fn lacks_direction(&self) -> Option<(&'static str, &'static str)> {
        let is_ours = self.traffic.generator == GeneratorKind::Fwdlab;
        let here = [TestbedKind::Auto, TestbedKind::Memory, TestbedKind::Netns, TestbedKind::Sim];
        match self.traffic.directions {
            Directions::One => None,
            Directions::Both if !is_ours || !here.contains(&self.testbed.kind) => Some((
                "`directions` is \"one\" where fwdlab's own senders and receivers are not at both \
                 ends of a device on this machine",
                "leave it out, or write kind = \"netns\" or \"memory\" in [testbed]",
            )),
            Directions::Both if self.testbed.engine == Engine::Xdp => Some((
                "`directions` can't be \"both\" for XDP live frames: senders of both directions \
                 share a CPU, and those would hold it for milliseconds",
                "leave `engine` out of [testbed], or write engine = \"xsk\"",
            )),
            Directions::Both if self.dut.nat.is_of_sources() => Some((
                "`directions` can't be \"both\" with translated sources: the device chooses their \
                 ports, and fwdlab does not know which ones to answer",
                "write nat = \"destination\", or leave `directions` out",
            )),
            Directions::Both => None,
        }
    }

    /// Returns what a virtual machine lacks to boot, and the remedy.
    fn lacks_machine(&self) -> Option<(&'static str, &'static str)> {
        let vm = &self.testbed.vm;
        match self.dut.kind {
            _ if self.testbed.kind != TestbedKind::Vm => None,
            DutKind::Linux if vm.disk.is_some() => Some((
                "a Linux guest has a system that fwdlab makes, and no disk",
                "leave `disk` out and write kernel = \"linux-image-....deb\" in [vm]",
            )),
            DutKind::Linux if vm.kernel.is_none() => Some((
                "a virtual machine without a kernel",
                "write kernel = \"linux-image-....deb\" in [vm], or beside it in the level",
            )),
            DutKind::Freebsd if vm.disk.is_none() => {
                Some(("a FreeBSD guest without a disk", "write disk = \"freebsd.raw\" in [vm]"))
            }
            _ => None,
        }
    }
}
