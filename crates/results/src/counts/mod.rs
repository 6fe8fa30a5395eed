//! Exact counts of instructions that emulated devices executed, and comparisons of them.
//!
//! A run's result is the sum over functions of the median of their bursts ([`Foreground`]). If
//! counts repeat, a verdict needs no test ([`Exact`]): it reports how well they repeat instead.
//! [`Differences`] compares two variants by function. Counting itself is elsewhere, and nothing
//! here is about time.

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

/// Caveat to print with every such number.
pub const NOT_TIME: &str = "Instructions are not time: caches, branches and contention between \
                            CPUs are not in them.";

/// Smallest difference of a function that counts, in instructions per packet. Smaller differences
/// depend on the state after boot, such as the fill level of a slab.
pub const SHOWN: f64 = 0.5;
