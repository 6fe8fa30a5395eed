//! Compares the machine code of two builds of a kernel, function by function.
//!
//! Two functions are equal if the processor executes the same instructions on the same data in
//! both, wherever the linker placed them. Addresses are therefore compared by what they refer to:
//! the name of a function or variable, or the content of a string. What the kernel patches at boot
//! (alternatives, static keys) is compared with it, and so is the initial content of data.
//!
//! The comparison is conservative: whatever it cannot resolve counts as changed.
//!
//! - `kallsyms` reads the symbols that a kernel contains, since distributions strip its symbol
//!   table;
//! - `vmlinux` and `module` load the kernel and its modules into an `image` each, which `build`
//!   joins;
//! - `patches` reads the places that the kernel patches;
//! - `function` decodes functions, `reference` finds what their instructions refer to;
//! - `compare` compares functions, and `data` their targets;
//! - `callers` finds calls between functions.
//!
//! Only x86-64 is supported.
#![forbid(unsafe_code)]

mod build;
mod callers;
mod compare;
mod data;
mod error;
mod function;
mod image;
mod kallsyms;
mod module;
mod patches;
mod reason;
mod reference;
#[cfg(test)]
mod tests;
mod vmlinux;

pub use build::Build;
pub use callers::callers;
pub use compare::{Change, Comparison, compare};
pub use error::CodeError;
pub use reason::Reason;
