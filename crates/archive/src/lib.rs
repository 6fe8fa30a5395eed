//! Reads experiments of the netbenches archive: logs of pkt-gen, what was
//! configured, and what was published.
//!
//! The archive (<https://github.com/ocochard/netbenches>) holds ten years of
//! forwarding benchmarks as its shell scripts left them.
//!
//! - [`scan`](mod@scan): which files make which result set; [`found`] holds what
//!   it finds.
//! - [`assemble`](mod@assemble): plan, runs and documents of one set.
//! - [`config`]: what a tree of FreeBSD configuration files sets, and what one
//!   tree changes against another.
//! - [`lab_config`]: the settings of the harness that ran the benchmarks.
//! - [`published`]: the text and tables that were published, and whether the
//!   runs' figures reproduce them; found out once, at import, and kept in the store
//!   ([`Reproductions`](fwdlab_results::store::Reproductions)).
//! - [`import`](mod@import): many sets at once, and only those that changed.
//!
//! Nothing is written into the source tree, and nothing that is read is ever
//! executed.

pub mod assemble;
pub mod config;
pub mod found;
pub mod import;
pub mod lab_config;
pub mod published;
pub mod scan;

pub use published::complete;
