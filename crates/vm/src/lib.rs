//! Whole machines as devices under test: creates, boots and watches guests of QEMU, and counts what
//! they execute.
//!
//! A guest under emulation (TCG) provides no information about time. The code it *executes* is
//! exact: a plugin of QEMU counts every instruction of an unchanged kernel binary. The cost of a
//! packet is thus known by function, is the same on a noisy shared machine as on a quiet one, and
//! needs no privileges.
//!
//! [`linux`] boots a Linux guest: [`kernel`] finds kernel and modules, [`initrd`] builds the small
//! system around them, in which `modprobe` loads the modules that the kernel requests. [`freebsd`] boots a FreeBSD guest from a disk. Either is then a [`guest`].
//! [`machine`] runs QEMU, [`console`] reads the guest's serial line and recognises panics, and
//! [`wire`] connects the guest's data interfaces to this process. [`plugin`] and [`counts`] count,
//! [`calls`] follows calls, and [`caches`] models caches. [`bursts`] collects the counts,
//! [`forwarding`] measures a guest, [`symbols`] maps addresses to functions, and [`costs`] computes
//! the cost of a packet.
//!
//! Instructions are not time: caches, branches and contention between CPUs are invisible here.
#![forbid(unsafe_code)]

pub mod bursts;
mod cache;
pub mod caches;
pub mod calls;
pub mod card;
pub mod console;
pub mod costs;
pub mod counts;
pub mod error;
pub mod forwarding;
pub mod freebsd;
pub mod guest;
pub mod initrd;
pub mod kernel;
pub mod linux;
pub mod machine;
mod modprobe;
pub mod plugin;
pub mod probe;
mod qemu;
pub mod symbols;
mod tool;
pub mod wire;

pub use error::VmError;
