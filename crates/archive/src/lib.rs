//! Reads experiments of the netbenches archive: pkt-gen logs, configurations and published results.
//!
//! The archive (<https://github.com/ocochard/netbenches>) contains ten years of forwarding
//! benchmarks, in the layout that its shell scripts produced.
//!
//! - [`scan`](mod@scan): assigns files to result sets; [`found`] holds the types of its result.
//! - [`assemble`](mod@assemble): the plan, runs and documents of one set.
//! - [`config`]: settings of a tree of FreeBSD configuration files, and changes between two trees.
//! - [`lab_config`]: the settings of the harness that ran the benchmarks.
//! - [`published`]: the published text and tables, and whether the runs' figures reproduce them.
//!   The comparison runs once, at import, and the store keeps its result
//!   ([`Reproductions`](fwdlab_results::store::Reproductions)).
//! - [`import`](mod@import): imports many sets and skips unchanged ones.
//!
//! The crate never writes into the source tree and never executes anything it reads.

pub mod assemble;
pub mod config;
pub mod found;
pub mod import;
pub mod lab_config;
pub mod published;
pub mod scan;

pub use published::complete;
