//! Whole machines as devices under test: guests of QEMU, made, booted and watched, and
//! what they execute counted.
//!
//! A guest under emulation (TCG) says nothing about time. What it *executes* is exact: a
//! plugin of QEMU counts every instruction of an unchanged kernel binary, so that the
//! cost of a packet is known by function, the same on a noisy shared machine as on a
//! quiet one, and without any privilege.
//!
//! [`linux`] boots a guest of Linux: [`kernel`] finds kernel and modules, [`initrd`] makes
//! the small system around them; [`freebsd`] boots one of FreeBSD from a disk. Either is a
//! [`guest`] then. [`machine`] runs QEMU, [`console`] reads the guest's serial line and names a panic,
//! [`wire`] joins the guest's data interfaces to this process, [`plugin`] and [`counts`]
//! count, [`calls`] knows who calls whom, [`caches`] models caches, [`bursts`] are what was counted, [`forwarding`] asks a guest, [`symbols`] gives addresses their functions, and [`costs`] is what a packet
//! costs.
//!
//! Instructions are not time: caches, branches and contention between CPUs are invisible
//! here.
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
pub mod plugin;
pub mod probe;
mod qemu;
pub mod symbols;
mod tool;
pub mod wire;

pub use error::VmError;
