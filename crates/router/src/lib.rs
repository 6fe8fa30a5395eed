//! fwdlab's software router: a device under test with a known implementation.
//!
//! [`path`] processes packets between two ports. [`fib`] contains the forwarding tables, one
//! algorithm per file, [`routes`] reads or generates their contents, [`tables`] puts a table of any
//! name behind one trait, and [`mod@bench`] measures them. [`worker`] connects a path to ports.
//!
//! This crate does not know experiments, plans or reports.
#![forbid(unsafe_code)]

pub mod bench;
pub mod fib;
pub mod firewall;
pub mod path;
pub mod routes;
pub mod tables;
pub mod worker;
