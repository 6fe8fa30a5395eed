//! An Open Traffic Generator (<https://otg.dev>, data model 1.x) over fwdlab's own senders and
//! receivers.
//!
//! [`Generator::answer`] takes a request of the API (method, path, JSON) and returns status and
//! JSON; the HTTP server is in the program. `config` reads the model and refuses every part that
//! is not supported, with its JSON path; `generator` starts, stops and counts; `metrics` writes
//! answers. Ports are interfaces of this network namespace.
//!
//! Rates in bits per second and percent are of the line (layer 1): each frame counts 20 bytes more,
//! for preamble, delimiter and gap. The model's minimum of 672 bit/s is one such frame of 64 bytes.

mod config;
mod generator;
mod metrics;
mod node;
mod packet;
mod transmission;
mod wires;

pub use generator::{Answer, Generator};
pub use wires::{Host, Link, Options, Wires};

/// Bytes of a frame on the line in addition to the frame with FCS: preamble, delimiter, gap.
const LINE_BYTES: u32 = 20;

#[cfg(test)]
mod tests;
