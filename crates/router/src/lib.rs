//! fwdlab's own software router: a device under test of which everything is known.
//!
//! What is here so far decides where a packet goes: [`fib`] holds the forwarding
//! tables, one algorithm a file, [`routes`] reads or makes what they are filled
//! with, and [`bench`] measures them. Receiving, rewriting and sending are left
//! out; they belong beside these modules.
//!
//! Nothing here knows experiments, plans or reports.
#![forbid(unsafe_code)]

pub mod bench;
pub mod fib;
pub mod path;
pub mod routes;
