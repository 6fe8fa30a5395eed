//! `[vm]`: the QEMU guest under test.

use super::field::field;
use super::{Kind, Owner, Section, integer, key, words};
use crate::settings::{Accel, Nic};

/// `[vm]`.
pub const VM: Section = Section {
    path: "vm",
    doc: "The QEMU guest that is the device under test; with `kind = \"vm\"` in `[testbed]`.",
    keys: &[
        key(
            "kernel",
            Kind::File,
            "",
            "Linux: the kernel to boot: a package (`.deb`, `.rpm`, `.pkg.tar.zst`) with its other parts next to it, a directory with `/boot` and `/lib/modules`, a build tree, an image, the release of an installed kernel, or `running`. fwdlab builds the small system around it; `fwdlab kernels` fetches packages of Debian. FreeBSD: a directory or archive that becomes a kernel in /boot, next to the disk's own. The plan contains its name, not its content; each run records the kernel that ran.",
        )
        .example("\"linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb\"")
        .of(Owner::Vm)
        .title("Kernel of the virtual machine")
        .restart(field!(some text, |s| &mut s.testbed.vm.kernel)),
        key(
            "disk",
            Kind::File,
            "",
            "Disk image to boot, raw or qcow2, .zst if compressed. It is never written: the guest writes to an overlay.",
        )
        .example("\"freebsd-13.2.raw.zst\"")
        .of(Owner::Vm)
        .title("Disk of the virtual machine")
        .restart(field!(some text, |s| &mut s.testbed.vm.disk)),
        key(
            "accel",
            words(Accel::NAMES),
            "\"auto\"",
            "Accelerator. `tcg`: QEMU's emulation, with exact instruction counts and meaningless times; `kvm`: the CPU itself, with the guest's real rates and no counts; `auto`: `tcg` to count instructions; to measure a rate (`figure` in `[compare]`), `kvm` if a small test guest and then the guest itself boot with it, else `tcg`.",
        )
        .example("\"tcg\"")
        .of(Owner::Vm)
        .title("What executes the virtual machine")
        .restart(field!(word, |s| &mut s.testbed.vm.accel)),
        key("cpus", integer(1, 64), "1", "CPUs of the guest.")
            .unit("CPUs")
            .example("2")
            .of(Owner::Vm)
            .title("CPUs of the virtual machine")
            .restart(field!(integer, |s| &mut s.testbed.vm.cpus)),
        key("memory", integer(128, 1_048_576), "512", "Memory of the guest.")
            .unit("MiB")
            .example("1024")
            .of(Owner::Vm)
            .title("Memory of the virtual machine in MiB")
            .restart(field!(integer, |s| &mut s.testbed.vm.memory)),
        key(
            "nic",
            Kind::Word { words: Nic::NAMES, absent: &["igb"] },
            "\"virtio\"",
            "Network cards of the guest for traffic, if this machine's QEMU and the guest's kernel support them.",
        )
        .example("\"e1000e\"")
        .of(Owner::Vm)
        .title("Cards of the virtual machine")
        .restart(field!(word, |s| &mut s.testbed.vm.nic)),
        key(
            "batch",
            integer(1, 64),
            "32",
            "Packets that the guest finds per poll while its instructions are counted; they share the cost of the poll.",
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
            "Record call stacks while instructions are counted, for flame graphs with stacks.",
        )
        .example("true")
        .of(Owner::Vm)
        .title("Callers are followed")
        .restart(field!(boolean, |s| &mut s.testbed.vm.calls)),
        key(
            "caches",
            Kind::Boolean,
            "false",
            "Model caches while instructions are counted: misses of code and data per packet. They come from a model, not from a real machine.",
        )
        .example("true")
        .of(Owner::Vm)
        .title("Caches are modelled")
        .restart(field!(boolean, |s| &mut s.testbed.vm.caches)),
    ],
    ..Section::TABLE
};
