//! Where CPU time goes: profiles of any common profiler, read, counted, drawn.
//!
//! Bytes come in, typed results and text or SVG go out. [`read()`] finds the
//! format by content; what it yields is either [`Stacks`] (every call stack
//! with its count) or a [`FlatProfile`] (functions and who calls whom, where
//! the stacks themselves are lost). A [`Filter`] sets apart what isn't work of
//! the device under test: idle CPUs, and the harness (profiler, sender,
//! receiver). [`functions`] and [`Subsystems`] group, [`compare`](mod@compare)
//! holds two profiles against each other per packet, [`draw`] makes flame
//! graphs.
//!
//! Deliberately left out: starting a profiler, clocks, symbolisation (the
//! profiler's own tools do that), and unwinding.

mod agreement;
pub mod compare;
pub mod document;
pub mod draw;
mod dut;
mod filter;
mod flat;
mod fold;
pub mod functions;
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
pub use pattern::Pattern;
pub use read::ProfileError;
pub use read::{Content, Format, Profile, Unknown, read};
pub use samples::{Sample, Samples, Weight, Window};
pub use stacks::{Frame, Stacks, is_resolved};
pub use subsystems::{OTHER, Subsystem, SubsystemError, Subsystems};
pub use summary::{Divided, Kept, Summary};
