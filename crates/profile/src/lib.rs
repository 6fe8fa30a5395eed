//! Profiles of CPU time: reads, summarises and draws the output of common profilers.
//!
//! Bytes come in, typed results and text or SVG go out. [`read()`] detects the format by content
//! and returns either [`Stacks`] (every call stack with its count) or a [`FlatProfile`] (functions
//! and calls between them, if the stacks are lost). [`Profile::notes`] contains everything that a
//! reader left out, and names are in one [normal form](FrameName). A [`Filter`] separates the work
//! of the device under test from idle CPUs and the harness (profiler, sender, receiver).
//! [`functions`] and [`Subsystems`] group, [`compare`](mod@compare) compares two profiles per
//! packet, [`draw`] makes flame graphs.
//!
//! Out of scope: starting a profiler, clocks, symbolisation (the profiler's own tools do that), and
//! unwinding.

mod agreement;
pub mod compare;
pub mod document;
pub mod draw;
mod dut;
mod filter;
mod flat;
mod fold;
pub mod functions;
mod name;
mod pattern;
mod read;
mod samples;
mod stacks;
mod subsystems;
mod summary;

pub use agreement::{Agreement, SAMPLER, agreement, measured_rates};
pub use dut::of_dut;
pub use filter::{Class, Filter, Split};
pub use flat::{Edge, FlatFunction, FlatProfile};
pub use fold::{fold, fold_run, unfold};
pub use name::{FrameName, normal};
pub use pattern::Pattern;
pub use read::ProfileError;
pub use read::{Content, Format, LeftOut, Profile, Unknown, is_majority, read};
pub use samples::{Sample, Samples, Weight, Window};
pub use stacks::{Frame, Stacks, is_resolved};
pub use subsystems::{OTHER, Subsystem, SubsystemError, Subsystems};
pub use summary::{FilteredProfile, Incomparable, KeptPart, Summary, comparable};
