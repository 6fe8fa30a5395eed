//! `[vm]`: the machine of QEMU that is the device under test.

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// The machine. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmSettings {
    /// Linux: a package, a directory, an image or the release of a kernel. FreeBSD: a directory
    /// or archive that becomes a kernel beside the disk's own. As written in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Image of a disk, which is never written; as written in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// What executes it.
    pub accel: Accel,
    /// Its CPUs.
    pub cpus: u16,
    /// Its memory in MiB.
    pub memory: u32,
    /// Its cards for traffic.
    pub nic: Nic,
    /// Packets that it finds at once while its instructions are counted.
    pub batch: u16,
    /// True where it is followed who calls whom while its instructions are counted.
    #[serde(skip_serializing_if = "is_false")]
    pub calls: bool,
    /// True where caches are modelled while its instructions are counted.
    #[serde(skip_serializing_if = "is_false")]
    pub caches: bool,
    /// True when a rate is measured: packets come over taps then, by senders that don't wait.
    /// Not written but derived of what stands for a run.
    #[serde(skip_serializing_if = "is_false")]
    pub is_timed: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Default for VmSettings {
    fn default() -> Self {
        VmSettings {
            kernel: None,
            disk: None,
            accel: Accel::Auto,
            cpus: 1,
            memory: 512,
            nic: Nic::Virtio,
            batch: 32,
            calls: false,
            caches: false,
            is_timed: false,
        }
    }
}

impl VmSettings {
    /// True when nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// What executes a virtual machine.
    pub enum Accel default Auto {
        /// Emulation where instructions are counted; where a rate is measured, the CPU itself
        /// if it can.
        Auto = "auto",
        /// The CPU itself.
        Kvm = "kvm",
        /// QEMU's emulation: exact counts of instructions, and a time that is no machine's.
        Tcg = "tcg",
    }
}

named! {
    /// A network card that QEMU emulates.
    pub enum Nic default Virtio {
        /// virtio-net, with queue pairs.
        Virtio = "virtio",
        /// Intel 82540EM.
        E1000 = "e1000",
        /// Intel 82574.
        E1000e = "e1000e",
        /// VMware's.
        Vmxnet3 = "vmxnet3",
    }
}
