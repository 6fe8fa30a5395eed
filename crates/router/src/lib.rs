//! fwdlab's software router: a device under test with a known implementation.
//!
//! [`path`] is what happens to a packet between two ports. [`fib`] holds the forwarding tables,
//! one algorithm a file, [`routes`] reads or makes what they are filled with, [`tables`] puts a
//! table of any name behind one trait, and [`mod@bench`] measures them. [`worker`] joins a path
//! to ports.
//!
//! Nothing here knows experiments, plans or reports.
#![forbid(unsafe_code)]

pub mod bench;
pub mod fib;
pub mod firewall;
pub mod path;
pub mod routes;
pub mod tables;
pub mod worker;
