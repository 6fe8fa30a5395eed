//! Ports around ports, to see what passes or to let some go wrong on purpose.
//!
//! None of them belongs into a measurement: each costs far more than a frame.

mod capture;
mod fault;
mod trace;

pub use capture::PcapTap;
pub use fault::{FaultCounts, FaultTap, Faults};
pub use trace::TraceTap;
