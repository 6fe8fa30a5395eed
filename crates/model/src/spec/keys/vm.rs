//! `[vm]`: the machine of QEMU under test.

use super::field::field;
use super::{Kind, Owner, Section, integer, key, words};
use crate::settings::{Accel, Nic};

/// `[vm]`.
pub const VM: Section = Section {
    path: "vm",
    doc: "The machine of QEMU that is the device under test; with `kind = \"vm\"` in `[testbed]`.",
    keys: &[
        key(
            "kernel",
            Kind::File,
            "",
            "Linux: the kernel that boots: a package (`.deb`, `.rpm`, `.pkg.tar.zst`), whose other parts are next to it, a directory with `/boot` and `/lib/modules`, a build tree, an image, the release of an installed kernel, or `running`. fwdlab makes the small system around it; `fwdlab kernels` fetches packages of Debian. FreeBSD: a directory or archive that becomes a kernel in /boot beside the disk's own. The plan keeps its name, not its content; each run records which kernel ran.",
        )
        .example("\"linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb\"")
        .of(Owner::Vm)
        .title("Kernel of the virtual machine")
        .restart(field!(some text, |s| &mut s.testbed.vm.kernel)),
        key(
            "disk",
            Kind::File,
            "",
            "The image of a disk that boots, raw or qcow2, .zst where it is compressed. It is never written: the machine has an overlay.",
        )
        .example("\"freebsd-13.2.raw.zst\"")
        .of(Owner::Vm)
        .title("Disk of the virtual machine")
        .restart(field!(some text, |s| &mut s.testbed.vm.disk)),
        key(
            "accel",
            words(Accel::NAMES),
            "\"auto\"",
            "What executes the machine. `tcg`: QEMU's emulation, whose instructions are counted exactly and whose time is no machine's; `kvm`: the CPU itself, whose rates are the guest's, and which counts nothing; `auto`: `tcg` where instructions are counted; where a rate is measured (`figure` in `[compare]`), `kvm` if a small guest and then the machine itself boot that way, else `tcg`.",
        )
        .example("\"tcg\"")
        .of(Owner::Vm)
        .title("What executes the virtual machine")
        .restart(field!(word, |s| &mut s.testbed.vm.accel)),
        key("cpus", integer(1, 64), "1", "CPUs of the machine.")
            .unit("CPUs")
            .example("2")
            .of(Owner::Vm)
            .title("CPUs of the virtual machine")
            .restart(field!(integer, |s| &mut s.testbed.vm.cpus)),
        key("memory", integer(128, 1_048_576), "512", "Memory of the machine.")
            .unit("MiB")
            .example("1024")
            .of(Owner::Vm)
            .title("Memory of the virtual machine in MiB")
            .restart(field!(integer, |s| &mut s.testbed.vm.memory)),
        key(
            "nic",
            Kind::Word { words: Nic::NAMES, absent: &["igb"] },
            "\"virtio\"",
            "The machine's cards for traffic, as far as the QEMU here and the kernel have them.",
        )
        .example("\"e1000e\"")
        .of(Owner::Vm)
        .title("Cards of the virtual machine")
        .restart(field!(word, |s| &mut s.testbed.vm.nic)),
        key(
            "batch",
            integer(1, 64),
            "32",
            "Packets that the machine finds at once while its instructions are counted: what a poll costs is shared by so many.",
        )
        .unit("packets")
        .example("8")
        .of(Owner::Vm)
        .title("Packets that the machine finds at once")
        .restart(field!(integer, |s| &mut s.testbed.vm.batch)),
        key(
            "calls",
            Kind::Boolean,
            "false",
            "Follow who calls whom while instructions are counted: flame graphs have stacks then.",
        )
        .example("true")
        .of(Owner::Vm)
        .title("Callers are followed")
        .restart(field!(boolean, |s| &mut s.testbed.vm.calls)),
        key(
            "caches",
            Kind::Boolean,
            "false",
            "Model caches while instructions are counted: how often code and data of a packet would not have been there. The misses are a model's, of no machine.",
        )
        .example("true")
        .of(Owner::Vm)
        .title("Caches are modelled")
        .restart(field!(boolean, |s| &mut s.testbed.vm.caches)),
    ],
    ..Section::TABLE
};
