//! `[vm]`: the QEMU guest that is the device under test.

use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// The guest. All defaults add nothing to a plan's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VmSettings {
    /// Linux: a package, a directory, an image or the release of a kernel. FreeBSD: a directory or
    /// archive that becomes a kernel next to the disk's own. As in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Disk image, which is never written; as in the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Accelerator.
    pub accel: Accel,
    /// Number of CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// Network cards for traffic.
    pub nic: Nic,
    /// Packets that it finds per poll while its instructions are counted.
    pub batch: u16,
    /// True if call stacks are recorded while its instructions are counted.
    #[serde(skip_serializing_if = "is_false")]
    pub calls: bool,
    /// True if caches are modelled while its instructions are counted.
    #[serde(skip_serializing_if = "is_false")]
    pub caches: bool,
    /// True if a rate is measured: packets then come over taps, from senders that don't wait. Not
    /// in the file, but derived from the metric that summarises a run.
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
    /// True if nothing differs from the defaults.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

named! {
    /// Accelerator of a virtual machine.
    pub enum Accel default Auto {
        /// Emulation to count instructions; to measure a rate, the CPU itself if possible.
        Auto = "auto",
        /// The CPU itself.
        Kvm = "kvm",
        /// QEMU's emulation: exact instruction counts and meaningless times.
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
