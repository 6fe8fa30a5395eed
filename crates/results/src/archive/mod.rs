//! Reads experiments of the netbenches archive: logs of pkt-gen, what was
//! configured, and what was published.
//!
//! The archive (<https://github.com/ocochard/netbenches>) holds ten years of
//! forwarding benchmarks as its shell scripts left them. [`found`] says what
//! files make a result set, [`assemble`] makes plan, runs and documents of one;
//! [`rule`] holds the two ways to make one figure of a log.
//! [`scan`] finds the sets of a tree, and [`import`] brings them into stores.
//! Nothing is written into the source tree.

pub mod assemble;
pub mod found;
pub mod import;
pub mod rule;
pub mod scan;
