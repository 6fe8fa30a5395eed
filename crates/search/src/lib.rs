//! Search for the highest rate within a tolerated loss: multiple loss ratio search, MLRsearch, as
//! RFC 9971 defines it.
//!
//! [`Search`] is the RFC's controller. It knows no device, no clock and no thread: it requests
//! trials ([`Step`]) and receives their outcomes ([`Outcome`]). The RFC's measurer is the code that
//! measures (a testbed, a simulated device), and its manager is the code that reads the
//! [`SearchResult`]. `docs/MLRSEARCH.md` compares this crate with the RFC's requirements.
#![forbid(unsafe_code)]

pub mod bisect;
pub mod bounds;
mod burst;
pub mod classify;
mod controller;
mod curve;
mod dip;
mod drift;
mod estimate;
mod fault;
mod floor;
mod forecast;
pub mod goal;
mod grid;
mod limits;
mod normal;
pub mod result;
pub mod simulated;
mod strategy;
pub mod trial;
mod trials;

pub use bounds::Bounds;
pub use burst::{Burst, Longest};
pub use classify::{Class, Sums, conditional_throughput};
pub use controller::{Search, Step, run};
pub use curve::Curve;
pub use dip::LossDip;
pub use drift::Drift;
pub use fault::Fault;
pub use floor::LossFloor;
pub use forecast::Forecast;
pub use goal::{Goal, PRESETS};
pub use limits::{INVALID_AT_START, INVALID_MAX, Limits};
pub use result::{Ending, GoalResult, Irregular, SearchResult};
pub use trial::{Invalid, Measured, Outcome, Output, Trial};
pub use trials::Trials;
