//! What emulated devices executed: exact counts, and what they say of two variants.
//!
//! A run's figure is a sum over functions of the median of its bursts ([`Foreground`]). Where
//! counts repeat a verdict needs no test ([`Exact`]): it says how well they repeat instead.
//! [`Differences`] tells two variants apart function by function. Left out: counting, and any
//! statement about time.

mod exact;
mod functions;
mod misses;
mod picture;
mod total;

pub use exact::{CountVerdict, Exact, Repetition, compare_executed};
pub(crate) use exact::{Repeated, compare, signed};
pub(crate) use functions::by_subsystem;
pub use functions::{Differences, FunctionCount, FunctionDifference, costs};
pub(crate) use misses::misses;
pub use misses::{FunctionMisses, Modelled, OF_A_MODEL};
pub(crate) use picture::{flames, flames_of_calls, red_and_blue, red_and_blue_of_calls};
pub use total::{Foreground, Total};

/// What must stand beside every such figure.
pub const NOT_TIME: &str = "Instructions are not time: caches, branches and contention between \
                            CPUs are not in them.";

/// Smallest difference of a function that counts as one, instructions per packet. Below it lies
/// what depends on the state that a boot left behind, such as how full a slab is.
pub const SHOWN: f64 = 0.5;
