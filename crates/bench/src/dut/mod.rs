//! Devices under test. A DUT touches its machine only through a [`crate::host::Host`].

pub mod counters;
pub mod findings;
pub mod freebsd;
pub mod keeper;
pub mod linux;
pub mod linux_remote;
pub mod nft;
pub mod path;
pub mod queues;
pub mod remote;
pub mod router;
pub mod routes;
pub mod scheduling;

/// Interface of the DUT on the sender's side.
pub const INGRESS: &str = "d0";
/// Interface of the DUT on the receiver's side.
pub const EGRESS: &str = "d1";
